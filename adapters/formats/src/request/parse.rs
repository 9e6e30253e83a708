//! Parsing of a request from an OpenAI request body.

use std::collections::HashMap;

use louver::limits::Limits;
use louver::spec::json::{Json, push_token};
use louver::spec::tools::{Tool, ToolChoice, ToolError, ToolErrorKind, ToolErrors};

use super::answer::AnswerTag;
use super::builtin::Builtin;
use super::custom::CustomTool;
use super::errors::RequestError;
use super::{Parallel, ToolRequest, any_object};

/// The JSON pointer of the schema of `response_format` in a request.
pub(crate) const RESPONSE_POINTER: &str = "/response_format/json_schema/schema";

impl ToolRequest {
    /// Parses `tools`, `tool_choice` (`allowed_tools` too), `parallel_tool_calls`,
    /// `response_format` and `stop` of an OpenAI request body. Other members are ignored. Cost:
    /// linear.
    pub fn parse(body: &Json) -> Result<ToolRequest, RequestError> {
        let malformed = |pointer, expected| RequestError::Malformed { pointer, expected };
        let Json::Object(members) = body else {
            return Err(malformed("", "an object"));
        };
        let OfferedTools { tools, customs, builtins } = match members.get("tools") {
            None | Some(Json::Null) => Default::default(),
            Some(tools) => parse_tools(tools)?,
        };
        let (tool_choice, allowed) =
            parse_choice(members.get("tool_choice").unwrap_or(&Json::Null))?;
        let stop = match members.get("stop") {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::String(text)) => Some(vec![text.clone()]),
            Some(Json::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Some(_) => None,
        };
        let stop = stop.ok_or(malformed("/stop", "a string or an array of strings"))?;
        let parallel = match members.get("parallel_tool_calls") {
            None | Some(Json::Null | Json::Bool(true)) => Parallel::Any,
            Some(Json::Bool(false)) => Parallel::One,
            Some(_) => return Err(malformed("/parallel_tool_calls", "a boolean")),
        };
        let response = members.get("response_format").unwrap_or(&Json::Null);
        check_response_format(response)?;
        let kind = response.get("type").and_then(Json::as_str);
        let response_format = match (kind, response) {
            (_, Json::Null) | (Some("text" | "structural_tag"), _) => None,
            (Some("json_object"), _) => Some(any_object()),
            (Some("json_schema"), _) => match response.pointer("/json_schema/schema") {
                Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
                _ => return Err(malformed(RESPONSE_POINTER, "a JSON Schema")),
            },
            _ => {
                let expected = "\"text\", \"json_object\", \"json_schema\" or \"structural_tag\"";
                return Err(malformed("/response_format/type", expected));
            }
        };
        let answer_tag = match kind {
            Some("structural_tag") => Some(AnswerTag::parse(body, &Limits::default())?),
            _ => None,
        };
        let request = ToolRequest {
            tools,
            customs,
            builtins,
            tool_choice,
            allowed,
            parallel,
            response_format,
            answer_tag,
            stop,
            ..ToolRequest::default()
        };
        request.check_choice()?;
        Ok(request)
    }

    /// Replaces the offered tools by those of a request body's `tools`: functions, custom tools and
    /// built-in tools.
    pub fn offer(&mut self, tools: &Json) -> Result<(), RequestError> {
        OfferedTools { tools: self.tools, customs: self.customs, builtins: self.builtins } =
            parse_tools(tools)?;
        Ok(())
    }
}

/// Refuses unknown members of a `response_format`. Structural tags are checked by their own parser.
fn check_response_format(response: &Json) -> Result<(), RequestError> {
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

/// The tools of a request, by kind.
#[derive(Debug, Default)]
struct OfferedTools {
    tools: Vec<Tool>,
    customs: Vec<CustomTool>,
    builtins: Vec<Builtin>,
}

/// Parses `tools`: functions, custom tools and built-in tools. Fails with all errors.
fn parse_tools(tools: &Json) -> Result<OfferedTools, RequestError> {
    let Json::Array(entries) = tools else {
        return Ok(OfferedTools { tools: Tool::parse_list(tools)?, ..OfferedTools::default() });
    };
    let mut offered = OfferedTools::default();
    let (mut functions, mut errors) = (Vec::new(), Vec::new());
    for (k, entry) in entries.iter().enumerate() {
        if is_custom(entry) {
            match CustomTool::parse(k, entry) {
                Ok(custom) => offered.customs.push(custom),
                Err(found) => errors.extend(found),
            }
        } else if let Some(builtin) = Builtin::parse(k, entry)? {
            offered.builtins.push(builtin);
        } else {
            functions.push((k, entry.clone()));
        }
    }
    let list = Json::Array(functions.iter().map(|(_, entry)| entry.clone()).collect());
    // The index in the request of a function.
    let index = |k: usize| functions.get(k).map(|(index, _)| *index);
    match Tool::parse_list(&list) {
        Ok(tools) => offered.tools = tools,
        Err(found) => errors.extend(found.0.into_iter().map(|mut error| {
            let mut tokens: Vec<String> = error.pointer.split('/').map(str::to_owned).collect();
            if let Some(token) = tokens.get_mut(2)
                && let Some(k) = token.parse::<usize>().ok().and_then(index)
            {
                *token = k.to_string();
            }
            error.pointer = tokens.join("/");
            if let ToolErrorKind::Duplicate { first, .. } = &mut error.kind {
                *first = index(*first).unwrap_or(*first);
            }
            error
        })),
    }
    // If a custom tool and another tool have the same name, the later one is an error.
    let functions =
        functions.iter().zip(&offered.tools).map(|((k, _), tool)| (*k, &tool.name, None));
    let customs =
        offered.customs.iter().filter_map(|c| Some((c.index()?, &c.name, Some(&c.pointer))));
    let mut named: Vec<(usize, &String, Option<&String>)> = functions.chain(customs).collect();
    named.sort_unstable();
    let mut first: HashMap<&String, (usize, bool)> = HashMap::new();
    for (k, name, custom) in named {
        match first.get(name) {
            Some(&(first, was_custom)) if was_custom || custom.is_some() => {
                let pointer = custom.map_or_else(|| format!("/tools/{k}"), String::clone);
                let kind = ToolErrorKind::Duplicate { name: name.clone(), first };
                errors.push(ToolError { pointer: format!("{pointer}/name"), kind });
            }
            Some(_) => {}
            None => drop(first.insert(name, (k, custom.is_some()))),
        }
    }
    if errors.is_empty() { Ok(offered) } else { Err(ToolErrors(errors).into()) }
}

fn is_custom(entry: &Json) -> bool {
    entry.get("type").and_then(Json::as_str) == Some("custom")
}

/// Parses `tool_choice`. Also returns the names that it allows.
fn parse_choice(choice: &Json) -> Result<(ToolChoice, Option<Vec<String>>), RequestError> {
    let malformed = |expected| RequestError::Malformed { pointer: "/tool_choice", expected };
    let named = |name: &str| Ok((ToolChoice::Named(name.to_owned()), None));
    let name = choice.get("name").and_then(Json::as_str);
    match choice.get("type").and_then(Json::as_str) {
        Some("allowed_tools") => {
            // Chat Completions nests the list, Responses does not.
            let inner = choice.get("allowed_tools").unwrap_or(choice);
            let mode = match inner.get("mode").and_then(Json::as_str) {
                Some("auto") => ToolChoice::Auto,
                Some("required") => ToolChoice::Required,
                _ => return Err(malformed("allowed tools with `mode` \"auto\" or \"required\"")),
            };
            let tools = inner.get("tools").and_then(Json::as_array);
            let tools = tools.ok_or(malformed("allowed tools with `tools`, an array"))?;
            let names: Option<Vec<String>> = tools.iter().map(allowed_name).collect();
            Ok((mode, Some(names.ok_or(malformed("allowed tools that have names"))?)))
        }
        Some("custom") => {
            let nested = choice.pointer("/custom/name").map(Json::as_str);
            let name = nested.unwrap_or(name);
            named(name.ok_or(malformed("a custom tool choice that has a name"))?)
        }
        Some(kind) if kind != "function" && choice.get("function").is_none() => {
            named(name.unwrap_or(kind))
        }
        _ => Ok((ToolChoice::parse(choice)?, None)),
    }
}

/// The name of an entry of `allowed_tools`.
fn allowed_name(tool: &Json) -> Option<String> {
    let nested = tool.pointer("/function/name").or_else(|| tool.pointer("/custom/name"));
    let name = nested.or_else(|| tool.get("name")).or_else(|| tool.get("type"));
    name.and_then(Json::as_str).map(str::to_owned)
}
