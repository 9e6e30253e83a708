//! Built-in tools of a request.

use louver::spec::json::{Json, Object};

use super::function::{schema, strict};
use super::members::{MemberError, MemberErrorKind, MemberReader, ToolShape, check_name};
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
    /// "parameters": {...}}`. `kind` is its type. Unknown members are errors, as those of functions
    /// are.
    pub(super) fn parse(
        k: usize,
        kind: &str,
        members: &Object,
    ) -> Result<BuiltinTool, Vec<MemberError>> {
        let pointer = ToolShape::Bare.pointer(k, kind);
        let mut reader = MemberReader { pointer, members, errors: Vec::new() };
        reader.check_unknown(&["type", "name", "description", "parameters", "strict"]);
        let is_named_by_type = members.get_non_null("name").is_none();
        let name = if is_named_by_type {
            if let Err(error) = check_name(kind) {
                reader.fail("/type", error);
            }
            kind.to_owned()
        } else {
            reader.name()
        };
        let parameters = schema(&mut reader);
        // Read for their errors: the model knows the tool, and its schema is always enforced.
        let _ = (reader.description(), strict(&mut reader));
        if !reader.errors.is_empty() {
            return Err(reader.errors);
        }
        Ok(BuiltinTool { name, parameters, is_named_by_type })
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
