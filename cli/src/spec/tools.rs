//! Specs of tools: lists of tools, and requests.

use louver::front::json_schema::SchemaOptions;
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::spec::json::{Json, Object};
use louver_formats::{
    Catalog, LowerError, Reasoning, RequestError, RequestErrors, Strictness, ToolRequest,
};
use serde::Deserialize;
use serde_json::Value;

use super::{LoweredSpec, SpecError, SpecWarnings, json, parse_options};

/// The default wire format of `tools` specs.
const DEFAULT_FORMAT: &str = "qwen3";

/// Members that make an object a request.
const REQUEST: [&str; 2] = ["tools", "response_format"];

/// Options of `tools` specs. The choice and the following options may also be given next to `tools`
/// in the spec, as in a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolsOptions {
    /// A wire format's name, or a file that describes one (*.toml).
    format: Option<String>,
    tool_choice: Value,
    parallel_tool_calls: Option<bool>,
    /// `optional`, `off`, `required` or `opened`.
    reasoning: Reasoning,
    schema: SchemaOptions,
    /// Whether only the arguments of tools marked `strict` must match their schema; others accept
    /// any object.
    strict_as_flagged: bool,
}

impl ToolsOptions {
    fn strictness(&self) -> Strictness {
        if self.strict_as_flagged { Strictness::AsFlagged } else { Strictness::All }
    }
}

/// Lowers tools, given as a list, or as a request with `tools`, `tool_choice`,
/// `parallel_tool_calls` and `response_format`, or as text of either. Markers are compared by their
/// spelling.
pub(super) fn lowered(
    spec: &Json,
    options: &Value,
    limits: &Limits,
) -> Result<LoweredSpec, SpecError> {
    let options: ToolsOptions = parse_options("tools", options)?;
    let spec = json(spec, limits)?;
    let mut body: Vec<(String, Json)> = match &spec {
        Json::Array(_) => vec![("tools".to_owned(), spec.clone())],
        Json::Object(members) if REQUEST.iter().any(|name| members.get(name).is_some()) => {
            members.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
        }
        _ => {
            return Err(SpecError::SpecType {
                kind: "tools",
                expected: "an array of tools, or a request with `tools` or `response_format`",
            });
        }
    };
    let mut set_member = |name: &str, value: Json| {
        body.retain(|(member, _)| member != name);
        body.push((name.to_owned(), value));
    };
    if !options.tool_choice.is_null() {
        set_member("tool_choice", Json::from(&options.tool_choice));
    }
    if let Some(parallel) = options.parallel_tool_calls {
        set_member("parallel_tool_calls", Json::Bool(parallel));
    }
    let Ok(body) = Object::new(body) else {
        return Err(SpecError::SpecType {
            kind: "tools",
            expected: "a request without repeated members",
        });
    };
    let origins = MemberOrigins {
        is_list: matches!(spec, Json::Array(_)),
        has_choice: !options.tool_choice.is_null(),
    };
    let request = ToolRequest::parse(&Json::Object(body))
        .map_err(|errors| origins.request_errors(errors))?
        .with_reasoning(options.reasoning)
        .with_strictness(options.strictness())
        .with_schema_options(options.schema)
        .with_limits(limits.clone());
    let format =
        Catalog::shipped().named_or_file(options.format.as_deref().unwrap_or(DEFAULT_FORMAT))?;
    let lowered = format.with_text_markers().lower(&request);
    let lowered = lowered.map_err(|error| origins.lower_error(error))?;
    let (mut warnings, mut relaxed) = (lowered.warnings().to_vec(), lowered.relaxed().to_vec());
    warnings.iter_mut().for_each(|warning| origins.shorten(&mut warning.pointer));
    relaxed.iter_mut().for_each(|error| origins.shorten(&mut error.pointer));
    Ok(LoweredSpec {
        grammar: Grammar::clone(lowered.grammar()),
        warnings: SpecWarnings::of_document(&warnings),
        relaxed,
        request: Some(lowered),
    })
}

/// Where the members of a request come from: errors name the places of the spec and the options.
#[derive(Clone, Copy)]
struct MemberOrigins {
    /// Whether the spec is the list of tools.
    is_list: bool,
    /// Whether the options have the choice.
    has_choice: bool,
}

impl MemberOrigins {
    /// Makes the pointer into a request one into the spec.
    fn shorten(self, pointer: &mut String) {
        if self.is_list
            && let Some(rest) = pointer.strip_prefix("/tools")
        {
            *pointer = rest.to_owned();
        }
    }

    fn request_errors(self, RequestErrors(errors): RequestErrors) -> SpecError {
        let (mut request, mut choice) = (Vec::new(), Vec::new());
        for error in errors {
            match error {
                RequestError::Choice(error) if self.has_choice => choice.push(error),
                RequestError::Tool(mut error) => {
                    self.shorten(&mut error.pointer);
                    request.push(RequestError::Tool(error));
                }
                error => request.push(error),
            }
        }
        let request = RequestErrors(request);
        match choice.is_empty() {
            true => SpecError::Request(request),
            false => SpecError::OptionsChoice { request, choice },
        }
    }

    fn lower_error(self, error: LowerError) -> SpecError {
        match error {
            LowerError::Choice(error) if self.has_choice => {
                self.request_errors(RequestErrors(vec![error.into()]))
            }
            LowerError::Parts(mut errors) => {
                errors.schemas.iter_mut().for_each(|error| self.shorten(&mut error.pointer));
                errors.customs.iter_mut().for_each(|fault| self.shorten(&mut fault.pointer));
                SpecError::Lower(LowerError::Parts(errors))
            }
            LowerError::NoBuiltins { mut pointer, format } => {
                self.shorten(&mut pointer);
                SpecError::Lower(LowerError::NoBuiltins { pointer, format })
            }
            error => SpecError::Lower(error),
        }
    }
}
