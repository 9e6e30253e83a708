//! What the grammar does not enforce, checked when it has been said: the policy `validate`.
//!
//! A plan has a validator for each schema that was relaxed. Validating is bounded: see [`meter`].

mod meter;

use louver::front::json_schema::{Dialect, Formats, SchemaOptions};
use louver::spec::json::Json;
use louver_formats::Turn;
use serde_json::Value;

use crate::report::{Part, Violation, ViolationKind};

/// Most violations of one text that are reported.
const MOST_VIOLATIONS: usize = 16;
/// Longest message, in characters: messages may quote what was said.
const MOST_MESSAGE: usize = 300;
/// Longest search of one regular expression that backtracks, in steps.
const BACKTRACKS: usize = 10_000;
/// Largest regular expression, in bytes of its automaton.
const REGEX_BYTES: usize = 1 << 20;
/// Room for a walk as deep as [`meter`] lets through, many times over.
const STACK: usize = 32 << 20;

/// Validators of the schemas that are not wholly enforced.
#[derive(Debug, Default)]
pub(crate) struct Checks(Vec<Check>);

#[derive(Debug)]
struct Check {
    /// The tool whose arguments are meant; none for the answer.
    tool: Option<String>,
    /// Or why there is none.
    schema: Result<Schema, String>,
}

#[derive(Debug)]
struct Schema {
    value: Value,
    validator: jsonschema::Validator,
}

impl Checks {
    /// Compiles the validators of a plan. What has no validator is reported of every text.
    pub(crate) fn new(plan: &louver_formats::Plan, options: &SchemaOptions) -> Checks {
        let check = |loose: &louver_formats::Loose| Check {
            tool: loose.tool.and_then(|k| plan.tools().get(k)).map(|tool| tool.name.clone()),
            schema: Schema::new(&loose.schema, options),
        };
        Checks(plan.loose().iter().map(check).collect())
    }

    /// What is wrong with a turn: with its calls, and where `is_whole`, with an answer that a response format asks for.
    pub(crate) fn violations(&self, turn: &Turn, is_whole: bool) -> Vec<Violation> {
        let mut found = Vec::new();
        for check in &self.0 {
            match &check.tool {
                Some(tool) => {
                    for (index, call) in
                        turn.calls.iter().enumerate().filter(|(_, call)| call.name == *tool)
                    {
                        let part = Part::Call { index, tool: tool.clone() };
                        check.text(&call.arguments, &part, &mut found);
                    }
                }
                None if is_whole && turn.calls.is_empty() => {
                    check.text(&turn.text, &Part::ResponseFormat, &mut found)
                }
                None => {}
            }
        }
        found
    }
}

impl Check {
    fn text(&self, text: &str, part: &Part, found: &mut Vec<Violation>) {
        let mut add = |kind, pointer: String, message: &str| {
            let message = message.chars().take(MOST_MESSAGE).collect();
            found.push(Violation { part: part.clone(), kind, pointer, message });
        };
        let unknown = ViolationKind::Unchecked;
        let schema = match &self.schema {
            Ok(schema) => schema,
            Err(why) => return add(unknown, String::new(), why),
        };
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => {
                return add(unknown, String::new(), &format!("the text cannot be read: {error}"));
            }
        };
        if let Err(error) = meter::text(&schema.value, &value) {
            return add(unknown, String::new(), &error.to_string());
        }
        let errors = apart(|| {
            let errors = schema.validator.iter_errors(&value).take(MOST_VIOLATIONS);
            errors
                .map(|error| (error.instance_path.to_string(), error.to_string()))
                .collect::<Vec<_>>()
        });
        match errors {
            Ok(errors) => errors
                .into_iter()
                .for_each(|(at, message)| add(ViolationKind::Violated, at, &message)),
            Err(why) => add(unknown, String::new(), &why),
        }
    }
}

impl Schema {
    fn new(schema: &Json, options: &SchemaOptions) -> Result<Schema, String> {
        let unread = |error: serde_json::Error| format!("the schema cannot be read: {error}");
        let value: Value = serde_json::from_str(&schema.to_string()).map_err(unread)?;
        meter::schema(&value).map_err(|error| error.to_string())?;
        let patterns = jsonschema::PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS)
            .size_limit(REGEX_BYTES);
        let mut building = jsonschema::options()
            .should_validate_formats(options.formats != Formats::Annotate)
            .with_pattern_options(patterns);
        if value.get("$schema").is_none() {
            building = building.with_draft(match options.dialect {
                Dialect::Draft4 => jsonschema::Draft::Draft4,
                Dialect::Draft6 => jsonschema::Draft::Draft6,
                Dialect::Draft7 => jsonschema::Draft::Draft7,
                Dialect::Draft201909 => jsonschema::Draft::Draft201909,
                Dialect::Draft202012 => jsonschema::Draft::Draft202012,
            });
        }
        let built = apart(|| {
            building.build(&value).map_err(|error| format!("the schema has no validator: {error}"))
        })?;
        Ok(Schema { validator: built?, value })
    }
}

/// Does what recurses on a thread that has room for it; a panic there stays there. The crate is not ours, and schema and text are
/// strangers'.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("no thread to validate on: {error}"))?;
        thread.join().map_err(|_| "the validator panicked".to_owned())
    })
}

#[cfg(test)]
mod tests;
