//! Built-in tools of a request.

use louver::spec::json::Json;

use super::members::{MemberError, MemberErrorKind, check_name};
use crate::format::BuiltinFormat;

/// A built-in tool, which the model knows without a schema in the prompt: a browser, an
/// interpreter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BuiltinTool {
    /// Its name, as the model writes it.
    pub name: String,
    /// The JSON Schema of its arguments. `None`: the schema that the family knows, or else the tool
    /// is called with code.
    pub parameters: Option<Json>,
    /// Whether the request names it by `type` alone, for JSON pointers.
    pub is_named_by_type: bool,
}

impl BuiltinTool {
    /// A built-in tool that is not from a request. Fails if the name is not allowed.
    pub fn new(
        name: impl Into<String>,
        parameters: Option<Json>,
    ) -> Result<BuiltinTool, MemberErrorKind> {
        let name = name.into();
        check_name(&name)?;
        Ok(BuiltinTool { name, parameters, is_named_by_type: true })
    }

    /// Parses entry `k` of a request's tools: `{"type": "python"}`, `{"type": "browser.search",
    /// "parameters": {...}}`. `kind` is its type.
    pub(super) fn parse(
        k: usize,
        kind: &str,
        entry: &Json,
    ) -> Result<BuiltinTool, Vec<MemberError>> {
        let mut errors = Vec::new();
        let mut fail =
            |member, kind| errors.push(MemberError::new(format!("/tools/{k}/{member}"), kind));
        let own_name = entry.get_non_null("name");
        let (member, name) = match own_name {
            None => ("type", Some(kind)),
            Some(name) => ("name", name.as_str()),
        };
        match name.map(check_name) {
            None => fail(member, MemberErrorKind::Expected("a string")),
            Some(Err(kind)) => fail(member, kind),
            Some(Ok(())) => {}
        }
        let parameters = match entry.get_non_null("parameters") {
            None => None,
            Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
            Some(_) => {
                fail("parameters", MemberErrorKind::Expected("a JSON Schema"));
                None
            }
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        let name = name.unwrap_or(kind).to_owned();
        Ok(BuiltinTool { name, parameters, is_named_by_type: own_name.is_none() })
    }

    /// The JSON pointer of the name of tool `k`, if it is this one.
    pub(super) fn name_pointer(&self, k: usize) -> String {
        format!("/tools/{k}/{}", if self.is_named_by_type { "type" } else { "name" })
    }
}

impl BuiltinFormat {
    /// The schema of a tool's arguments, or `None` if the tool is called with code.
    pub(crate) fn schema(&self, builtin: &BuiltinTool) -> Option<Json> {
        let known = || self.known.get(&builtin.name).map(Json::from);
        builtin.parameters.clone().or_else(known)
    }
}
