//! Built-in tools of a request.

use louver::spec::json::Json;
use louver::spec::tools::MAX_TOOL_NAME_BYTES;

use super::errors::RequestError;
use crate::format::BuiltinFormat;

/// A built-in tool, which the model knows without a schema in the prompt: a browser, an
/// interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Builtin {
    /// Its name, as the model writes it.
    pub name: String,
    /// The JSON Schema of its arguments. `None`: the schema that the family knows, or else the tool
    /// is called with code.
    pub parameters: Option<Json>,
    /// The JSON pointer of `parameters` in the request, for errors.
    pub pointer: String,
}

impl Builtin {
    /// Parses entry `k` of a request's tools: `{"type": "python"}`, `{"type": "browser.search",
    /// "parameters": {...}}`. `None` if its type is `function` or `custom`.
    pub fn parse(k: usize, entry: &Json) -> Result<Option<Builtin>, RequestError> {
        let Some(kind) = entry.get("type").and_then(Json::as_str) else { return Ok(None) };
        if kind == "function" || kind == "custom" || entry.get("function").is_some() {
            return Ok(None);
        }
        let error = |expected| RequestError::Builtin { tool: k, expected };
        let name = match entry.get("name") {
            None | Some(Json::Null) => kind,
            Some(Json::String(name)) => name,
            Some(_) => return Err(error("`name` to be a string")),
        };
        if name.is_empty() || name.len() > MAX_TOOL_NAME_BYTES || name.contains(char::is_control) {
            return Err(error("a name without control characters"));
        }
        let parameters = match entry.get("parameters") {
            None | Some(Json::Null) => None,
            Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
            Some(_) => return Err(error("`parameters` to be a JSON Schema")),
        };
        let pointer = format!("/tools/{k}/parameters");
        Ok(Some(Builtin { name: name.to_owned(), parameters, pointer }))
    }
}

impl BuiltinFormat {
    /// The schema of a tool's arguments, or `None` if the tool is called with code.
    pub(crate) fn schema(&self, builtin: &Builtin) -> Option<Json> {
        let known = || self.known.get(&builtin.name).map(Json::from);
        builtin.parameters.clone().or_else(known)
    }
}
