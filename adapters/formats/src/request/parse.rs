//! Parsing of a request from an OpenAI request body.

use louver::front::diagnostic::similar;
use louver::limits::Limits;
use louver::spec::json::{Json, push_token};

use super::choice::ToolChoice;
use super::errors::{RequestError, RequestErrors};
use super::members::{MemberError, MemberErrorKind};
use super::response::{ResponseFormat, ResponseTag};
use super::schema_shape::expected_instead;
use super::tool::Tool;
use super::{Parallel, ToolRequest, any_object};

/// The JSON pointer of the schema of `response_format` in a request.
pub(crate) const RESPONSE_POINTER: &str = "/response_format/json_schema/schema";

impl ToolRequest {
    /// Parses `tools`, `tool_choice` (`allowed_tools` too), `parallel_tool_calls`,
    /// `response_format` and `stop` of an OpenAI request body. Other members are ignored. Fails
    /// with all errors. Cost: linear.
    pub fn parse(body: &Json) -> Result<ToolRequest, RequestErrors> {
        ToolRequest::parse_within(body, &Limits::default())
    }

    /// As [`ToolRequest::parse`], with structural tags within these limits.
    pub fn parse_within(body: &Json, limits: &Limits) -> Result<ToolRequest, RequestErrors> {
        let Json::Object(members) = body else {
            return Err(RequestErrors(vec![malformed("", "an object")]));
        };
        let member = |name| members.get_non_null(name);
        let mut errors = Vec::new();
        let tools = member("tools").and_then(|tools| {
            ok_or_report(Tool::parse_list(tools).map_err(|errors| errors.0), &mut errors)
        });
        let choice = member("tool_choice")
            .and_then(|choice| ok_or_report(ToolChoice::parse(choice), &mut errors));
        let (tool_choice, allowed) = choice.unwrap_or_default();
        let is_choice_known = errors.is_empty();
        let parallel = match member("parallel_tool_calls") {
            None | Some(Json::Bool(true)) => Parallel::Any,
            Some(Json::Bool(false)) => Parallel::One,
            Some(_) => {
                errors.push(malformed("/parallel_tool_calls", "a boolean"));
                Parallel::Any
            }
        };
        let request = ToolRequest {
            tools: tools.unwrap_or_default(),
            tool_choice,
            allowed,
            parallel,
            response_format: parse_response_format(body, limits, &mut errors),
            stop: parse_stop(members.get("stop").unwrap_or(&Json::Null), &mut errors),
            ..ToolRequest::default()
        };
        // Errors of the tools would repeat as unknown names.
        if is_choice_known && let Err(error) = request.check_choice() {
            errors.push(error.into());
        }
        if errors.is_empty() { Ok(request) } else { Err(RequestErrors(errors)) }
    }
}

/// The value; adds the errors to a list if there is none.
fn ok_or_report<T, E: Into<RequestError>>(
    result: Result<T, Vec<E>>,
    errors: &mut Vec<RequestError>,
) -> Option<T> {
    result.map_err(|found| errors.extend(found.into_iter().map(E::into))).ok()
}

fn malformed(pointer: impl Into<String>, expected: &'static str) -> RequestError {
    RequestError::Member(MemberError::new(pointer, MemberErrorKind::Expected(expected)))
}

/// Parses stop strings: `null`, one, or an array.
fn parse_stop(stop: &Json, errors: &mut Vec<RequestError>) -> Vec<String> {
    let (texts, is_list) = match stop {
        Json::Null => return Vec::new(),
        Json::String(_) => (std::slice::from_ref(stop), false),
        Json::Array(texts) => (&texts[..], true),
        _ => {
            errors.push(malformed("/stop", "a string or an array of strings"));
            return Vec::new();
        }
    };
    for (k, text) in texts.iter().enumerate() {
        if text.as_str().is_none_or(str::is_empty) {
            let pointer = if is_list { format!("/stop/{k}") } else { "/stop".to_owned() };
            errors.push(malformed(pointer, "a string that is not empty"));
        }
    }
    texts.iter().filter_map(Json::as_str).map(str::to_owned).collect()
}

/// Parses the `response_format` of a request body.
fn parse_response_format(
    body: &Json,
    limits: &Limits,
    errors: &mut Vec<RequestError>,
) -> Option<ResponseFormat> {
    let response = body.get_non_null("response_format")?;
    if response.as_object().is_none() {
        errors
            .push(malformed("/response_format", "an object, such as {\"type\": \"json_object\"}"));
        return None;
    }
    check_members(response, errors);
    match response.get("type").and_then(Json::as_str) {
        Some("text") => None,
        Some("json_object") => Some(ResponseFormat::Schema(any_object())),
        Some("json_schema") => {
            let schema = response_schema(response, errors)?;
            let in_properties = "a JSON Schema: its members belong in `properties`";
            match expected_instead(schema, in_properties) {
                None => Some(ResponseFormat::Schema(schema.clone())),
                Some(expected) => {
                    errors.push(malformed(RESPONSE_POINTER, expected));
                    None
                }
            }
        }
        Some("structural_tag") => {
            let tag = ResponseTag::parse(body, limits).map_err(|errors| errors.0);
            ok_or_report(tag, errors).map(|tag| ResponseFormat::StructuralTag(Box::new(tag)))
        }
        _ => {
            let expected = "\"text\", \"json_object\", \"json_schema\" or \"structural_tag\"";
            errors.push(malformed("/response_format/type", expected));
            None
        }
    }
}

/// The schema of a `response_format` of type `json_schema`. Reports that it is missing.
fn response_schema<'a>(response: &'a Json, errors: &mut Vec<RequestError>) -> Option<&'a Json> {
    let mut value = response;
    let mut pointer = "/response_format".to_owned();
    for name in ["json_schema", "schema"] {
        match value.get_non_null(name) {
            Some(inner) => value = inner,
            None if value.as_object().is_none() => {
                errors.push(malformed(pointer, "an object"));
                return None;
            }
            None => {
                let missing = MemberErrorKind::Missing(name);
                errors.push(RequestError::Member(MemberError::new(pointer, missing)));
                return None;
            }
        }
        pointer = format!("{pointer}/{name}");
    }
    Some(value)
}

/// Reports unknown members of a `response_format`, and wrong types. Structural tags have their own
/// parser.
fn check_members(response: &Json, errors: &mut Vec<RequestError>) {
    let known: &[&'static str] = match response.get("type").and_then(Json::as_str) {
        Some("json_schema") => &["type", "json_schema"],
        Some("text" | "json_object") => &["type"],
        _ => return,
    };
    let inner = response.get("json_schema").unwrap_or(&Json::Null);
    let places = [
        ("/response_format", response, known),
        ("/response_format/json_schema", inner, &["name", "description", "schema", "strict"]),
    ];
    for (at, value, known) in places {
        let Json::Object(members) = value else { continue };
        for name in members.unknown(known) {
            let mut pointer = at.to_owned();
            push_token(&mut pointer, name);
            let is_schema =
                ["type", "properties", "$schema", "enum", "anyOf", "$ref", "$defs"].contains(&name);
            let instead = (at.ends_with("json_schema") && is_schema)
                .then_some("the schema belongs in `json_schema.schema`");
            let meant = similar(name, known.iter().copied(), errors.len());
            let kind = MemberErrorKind::UnknownMember { instead, meant };
            errors.push(RequestError::Member(MemberError::new(pointer, kind)));
        }
    }
    let is_text = |value: &Json| value.as_str().is_some();
    let is_flag = |value: &Json| matches!(value, Json::Bool(_));
    let types: [(&str, fn(&Json) -> bool, &str); 3] = [
        ("name", is_text, "a string"),
        ("description", is_text, "a string"),
        ("strict", is_flag, "a boolean"),
    ];
    for (name, has_type, expected) in types {
        if inner.get_non_null(name).is_some_and(|value| !has_type(value)) {
            errors.push(malformed(format!("/response_format/json_schema/{name}"), expected));
        }
    }
}
