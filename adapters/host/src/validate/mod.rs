//! Validation of relaxed schemas after generation: the policy `validate`.
//!
//! A lowered request has a validator for each relaxed schema. The cost of validation is bounded:
//! see [`cost`].

mod cost;

use std::sync::OnceLock;

use louver::front::json_schema::{Dialect, Formats, SchemaOptions};
use louver::spec::json::Json;
use louver_formats::{LoweredRequest, RelaxedSchema, Turn};
use serde_json::Value;

use crate::report::{CheckedPart, Violation, ViolationKind};

/// Maximum number of reported violations per text.
const MAX_VIOLATIONS: usize = 16;
/// Maximum message length in characters, because messages may quote the output.
const MAX_MESSAGE_CHARS: usize = 300;
/// Backtracking limit of a regular expression, in steps.
const MAX_BACKTRACKS: usize = 10_000;
/// Size limit of a regular expression's automaton, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Stack size of validation: far more than the depth that [`cost`] permits needs.
const STACK_BYTES: usize = 32 << 20;

/// The validators of a lowered request's relaxed schemas. Each is compiled when a text is to be
/// checked with it.
#[derive(Debug)]
pub(crate) struct SchemaValidators {
    lowered: LoweredRequest,
    options: SchemaOptions,
    /// By relaxed schema: the compiled schema, or why there is none.
    compiled: Vec<OnceLock<Result<CompiledSchema, String>>>,
}

#[derive(Debug)]
struct CompiledSchema {
    value: Value,
    validator: jsonschema::Validator,
}

impl SchemaValidators {
    /// The validators of a lowered request. Cheap.
    pub(crate) fn new(lowered: LoweredRequest, options: SchemaOptions) -> SchemaValidators {
        let compiled = lowered.relaxed_schemas().iter().map(|_| OnceLock::new()).collect();
        SchemaValidators { lowered, options, compiled }
    }

    /// Whether there is nothing to validate.
    pub(crate) fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// The violations of a turn's calls and, if `is_complete`, of a response in a response format.
    /// A schema without a validator is reported for every text. Blocks: the compilation of a
    /// validator and the check of each text have a budget of steps.
    pub(crate) fn violations(&self, turn: &Turn, is_complete: bool) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (k, RelaxedSchema { tool, .. }) in self.lowered.relaxed_schemas().iter().enumerate() {
            match tool.and_then(|k| self.lowered.tools().get(k)).map(|tool| &tool.name) {
                Some(tool) => {
                    for (index, call) in
                        turn.calls.iter().enumerate().filter(|(_, call)| call.name == *tool)
                    {
                        let part = CheckedPart::Call { index, tool: tool.clone() };
                        check_text(self.schema(k), &call.arguments, &part, &mut violations);
                    }
                }
                None if is_complete && turn.calls.is_empty() => check_text(
                    self.schema(k),
                    &turn.text,
                    &CheckedPart::ResponseFormat,
                    &mut violations,
                ),
                None => {}
            }
        }
        violations
    }

    /// The `k`-th relaxed schema, compiled once.
    fn schema(&self, k: usize) -> &Result<CompiledSchema, String> {
        let compile =
            || CompiledSchema::new(&self.lowered.relaxed_schemas()[k].schema, &self.options);
        self.compiled[k].get_or_init(compile)
    }
}

fn check_text(
    schema: &Result<CompiledSchema, String>,
    text: &str,
    part: &CheckedPart,
    violations: &mut Vec<Violation>,
) {
    let mut add = |kind, pointer: String, message: &str| {
        let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
        violations.push(Violation { part: part.clone(), kind, pointer, message });
    };
    let unknown = ViolationKind::Unchecked;
    let schema = match schema {
        Ok(schema) => schema,
        Err(reason) => return add(unknown, String::new(), reason),
    };
    let value = match louver_formats::validator_instance(text.as_bytes()) {
        Ok(value) => value,
        Err(error) => {
            return add(unknown, String::new(), &format!("the text cannot be read: {error}"));
        }
    };
    if let Err(error) = cost::check_value(&schema.value, &value) {
        return add(unknown, String::new(), &error.to_string());
    }
    let errors = run_on_large_stack(|| {
        let errors = schema.validator.iter_errors(&value).take(MAX_VIOLATIONS);
        errors.map(|error| (error.instance_path.to_string(), error.to_string())).collect::<Vec<_>>()
    });
    match errors {
        Ok(errors) => errors
            .into_iter()
            .for_each(|(pointer, message)| add(ViolationKind::Violated, pointer, &message)),
        Err(reason) => add(unknown, String::new(), &reason),
    }
}

impl CompiledSchema {
    fn new(schema: &Json, options: &SchemaOptions) -> Result<CompiledSchema, String> {
        let parse_error = |error: serde_json::Error| format!("the schema cannot be read: {error}");
        let value: Value = serde_json::from_str(&schema.to_string()).map_err(parse_error)?;
        cost::check_schema(&value).map_err(|error| error.to_string())?;
        let patterns = jsonschema::PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKS)
            .size_limit(MAX_REGEX_BYTES);
        let mut builder = jsonschema::options()
            .should_validate_formats(options.formats != Formats::Annotate)
            .with_pattern_options(patterns);
        if value.get("$schema").is_none() {
            builder = builder.with_draft(match options.dialect {
                Dialect::Draft4 => jsonschema::Draft::Draft4,
                Dialect::Draft6 => jsonschema::Draft::Draft6,
                Dialect::Draft7 => jsonschema::Draft::Draft7,
                Dialect::Draft201909 => jsonschema::Draft::Draft201909,
                Dialect::Draft202012 => jsonschema::Draft::Draft202012,
                other => return Err(format!("there is no validator for the dialect {other:?}")),
            });
        }
        let built = run_on_large_stack(|| {
            builder.build(&value).map_err(|error| format!("the schema has no validator: {error}"))
        })?;
        Ok(CompiledSchema { validator: built?, value })
    }
}

/// Runs recursive work on a thread with a large stack and contains panics. The validator crate is
/// third-party, and schema and text are untrusted.
fn run_on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread =
            thread.map_err(|error| format!("cannot start a validation thread: {error}"))?;
        thread.join().map_err(|_| "the validator panicked".to_owned())
    })
}

#[cfg(test)]
mod tests;
