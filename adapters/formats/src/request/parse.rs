//! Parsing of a request from an OpenAI request body.

use louver::limits::Limits;
use louver::spec::json::{Json, push_token};

use super::choice::ToolChoice;
use super::errors::RequestError;
use super::response::{ResponseFormat, ResponseTag};
use super::tool::Tool;
use super::{Parallel, ToolRequest, any_object};

/// The JSON pointer of the schema of `response_format` in a request.
pub(crate) const RESPONSE_POINTER: &str = "/response_format/json_schema/schema";

impl ToolRequest {
    /// Parses `tools`, `tool_choice` (`allowed_tools` too), `parallel_tool_calls`,
    /// `response_format` and `stop` of an OpenAI request body. Other members are ignored. Cost:
    /// linear.
    pub fn parse(body: &Json) -> Result<ToolRequest, RequestError> {
        let Json::Object(members) = body else {
            return Err(malformed("", "an object"));
        };
        let tools = match members.get_non_null("tools") {
            None => Vec::new(),
            Some(tools) => Tool::parse_list(tools)?,
        };
        let (tool_choice, allowed) =
            ToolChoice::parse(members.get("tool_choice").unwrap_or(&Json::Null))?;
        let parallel = match members.get_non_null("parallel_tool_calls") {
            None | Some(Json::Bool(true)) => Parallel::Any,
            Some(Json::Bool(false)) => Parallel::One,
            Some(_) => return Err(malformed("/parallel_tool_calls", "a boolean")),
        };
        let request = ToolRequest {
            tools,
            tool_choice,
            allowed,
            parallel,
            response_format: parse_response_format(body)?,
            stop: parse_stop(members.get("stop").unwrap_or(&Json::Null))?,
            ..ToolRequest::default()
        };
        request.check_choice()?;
        Ok(request)
    }
}

fn malformed(pointer: impl Into<String>, expected: &'static str) -> RequestError {
    RequestError::Malformed { pointer: pointer.into(), expected }
}

/// Parses stop strings: `null`, one, or an array.
fn parse_stop(stop: &Json) -> Result<Vec<String>, RequestError> {
    match stop {
        Json::Null => Ok(Vec::new()),
        Json::String(text) => Ok(vec![text.clone()]),
        Json::Array(items) => {
            let texts = items.iter().enumerate().map(|(k, item)| {
                let text = item.as_str().map(str::to_owned);
                text.ok_or_else(|| malformed(format!("/stop/{k}"), "a string"))
            });
            texts.collect()
        }
        _ => Err(malformed("/stop", "a string or an array of strings")),
    }
}

/// Parses the `response_format` of a request body.
fn parse_response_format(body: &Json) -> Result<Option<ResponseFormat>, RequestError> {
    let response = body.get("response_format").unwrap_or(&Json::Null);
    check_members(response)?;
    if *response == Json::Null {
        return Ok(None);
    }
    Ok(match response.get("type").and_then(Json::as_str) {
        Some("text") => None,
        Some("json_object") => Some(ResponseFormat::Schema(any_object())),
        Some("json_schema") => match response.pointer("/json_schema/schema") {
            Some(schema @ (Json::Object(_) | Json::Bool(_))) => {
                Some(ResponseFormat::Schema(schema.clone()))
            }
            _ => return Err(malformed(RESPONSE_POINTER, "a JSON Schema")),
        },
        Some("structural_tag") => {
            let tag = ResponseTag::parse(body, &Limits::default())?;
            Some(ResponseFormat::StructuralTag(Box::new(tag)))
        }
        _ => {
            let expected = "\"text\", \"json_object\", \"json_schema\" or \"structural_tag\"";
            return Err(malformed("/response_format/type", expected));
        }
    })
}

/// Refuses unknown members of a `response_format`. Structural tags are checked by their own parser.
fn check_members(response: &Json) -> Result<(), RequestError> {
    let known: &[&str] = match response.get("type").and_then(Json::as_str) {
        Some("json_schema") => &["type", "json_schema"],
        Some("text" | "json_object") => &["type"],
        _ => return Ok(()),
    };
    let inner = response.get("json_schema").unwrap_or(&Json::Null);
    let places = [
        ("/response_format", response, known),
        ("/response_format/json_schema", inner, &["name", "description", "schema", "strict"]),
    ];
    for (at, value, known) in places {
        let Json::Object(members) = value else { continue };
        if let Some(name) = members.unknown(known).next() {
            let mut pointer = at.to_owned();
            push_token(&mut pointer, name);
            let is_schema =
                ["type", "properties", "$schema", "enum", "anyOf", "$ref", "$defs"].contains(&name);
            let hint = if at.ends_with("json_schema") && is_schema {
                ": the schema belongs in `json_schema.schema`"
            } else {
                ""
            };
            return Err(RequestError::UnknownMember { pointer, hint });
        }
    }
    Ok(())
}
