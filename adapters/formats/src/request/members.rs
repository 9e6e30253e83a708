//! Members of a request: their errors, and what all kinds of tools share.

use louver::front::diagnostic::similar;
use louver::spec::json::{Json, JsonError, Object, push_token};

/// Maximum length of a tool name, in bytes.
pub(crate) const MAX_TOOL_NAME_BYTES: usize = 256;

/// Members of a tool that clients send and that do not affect the output of the model: of
/// Anthropic's and OpenAI's APIs, of MCP, and what transformers derives from a docstring.
pub const NEUTRAL_TOOL_MEMBERS: [&str; 8] = [
    "cache_control",
    "defer_loading",
    "metadata",
    "title",
    "annotations",
    "outputSchema",
    "output_schema",
    "return",
];

/// Names that other protocols give to the parameters of a tool.
const FOREIGN_PARAMETERS: [&str; 9] = [
    "input_schema",
    "inputSchema",
    "json_schema",
    "schema",
    "args_schema",
    "arguments",
    "params",
    "properties",
    "parametersJsonSchema",
];

/// The form of a tool in a request's `tools`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolShape {
    /// With the members under the type's name, as in Chat Completions:
    /// `{"type": "function", "function": {"name": ...}}`.
    #[default]
    Wrapped,
    /// With the members beside `type`, as in Responses: `{"type": "function", "name": ...}`.
    Bare,
}

impl ToolShape {
    /// The JSON pointer of the members of tool `k` of a type.
    pub(crate) fn pointer(self, k: usize, kind: &str) -> String {
        match self {
            ToolShape::Wrapped => format!("/tools/{k}/{kind}"),
            ToolShape::Bare => format!("/tools/{k}"),
        }
    }
}

/// An error of a member of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {kind}")]
#[non_exhaustive]
pub struct MemberError {
    /// JSON pointer into the request, such as `/tools/3/function/name`.
    pub pointer: String,
    /// The reason.
    pub kind: MemberErrorKind,
}

impl MemberError {
    pub(crate) fn new(pointer: impl Into<String>, kind: MemberErrorKind) -> MemberError {
        MemberError { pointer: pointer.into(), kind }
    }
}

/// What is wrong with a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemberErrorKind {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    NotJson(JsonError),
    /// The value has the wrong JSON type.
    #[error("must be {0}")]
    Expected(&'static str),
    /// A member is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// An unknown member: it could require something that would not be enforced.
    #[error("there is no such member{}", advice(*instead, *meant))]
    UnknownMember {
        /// Advice on what to write instead.
        instead: Option<&'static str>,
        /// The member that is likely meant.
        meant: Option<&'static str>,
    },
    /// A type that does not go with the member `function`.
    #[error("there is no type {0:?} of tools with a member `function`: it is \"function\"")]
    UnsupportedType(String),
    /// An empty name.
    #[error("must not be empty")]
    EmptyName,
    /// A name that is too long.
    #[error("has {len} bytes, over the limit of {MAX_TOOL_NAME_BYTES}")]
    LongName {
        /// The length in bytes.
        len: usize,
    },
    /// A control character in a name.
    #[error("must not contain the control character U+{:04X}", u32::from(*.0))]
    ControlCharacter(char),
    /// A name that an earlier tool has.
    #[error("{name:?} is already the name of /tools/{first}")]
    Duplicate {
        /// The name.
        name: String,
        /// The index of the first tool of this name.
        first: usize,
    },
}

/// Advice after a message.
fn advice(instead: Option<&str>, meant: Option<&str>) -> String {
    let instead = instead.map(|advice| format!(": {advice}"));
    instead.or(meant.map(|name| format!("; is `{name}` meant?"))).unwrap_or_default()
}

/// Checks the name of a tool.
pub(super) fn check_name(name: &str) -> Result<(), MemberErrorKind> {
    if name.is_empty() {
        return Err(MemberErrorKind::EmptyName);
    }
    if name.len() > MAX_TOOL_NAME_BYTES {
        return Err(MemberErrorKind::LongName { len: name.len() });
    }
    match name.chars().find(|c| c.is_control()) {
        Some(c) => Err(MemberErrorKind::ControlCharacter(c)),
        None => Ok(()),
    }
}

/// Parses members of an object, and collects errors.
pub(super) struct MemberReader<'a> {
    /// The JSON pointer of the object.
    pub(super) pointer: String,
    pub(super) members: &'a Object,
    pub(super) errors: Vec<MemberError>,
}

impl MemberReader<'_> {
    /// Reports an error at a pointer below the object.
    pub(super) fn fail(&mut self, below: &str, kind: MemberErrorKind) {
        self.errors.push(MemberError::new(format!("{}{below}", self.pointer), kind));
    }

    /// Reports the members that are not in `known`.
    pub(super) fn check_unknown(&mut self, known: &[&'static str]) {
        unknown_members(&self.pointer, self.members, known, &mut self.errors);
    }

    /// The name of the tool.
    pub(super) fn name(&mut self) -> String {
        match self.members.get("name") {
            Some(Json::String(name)) => {
                if let Err(kind) = check_name(name) {
                    self.fail("/name", kind);
                }
                return name.clone();
            }
            Some(_) => self.fail("/name", MemberErrorKind::Expected("a string")),
            None => self.fail("", MemberErrorKind::Missing("name")),
        }
        String::new()
    }

    /// The description of the tool.
    pub(super) fn description(&mut self) -> Option<String> {
        match self.members.get_non_null("description") {
            None => None,
            Some(Json::String(text)) => Some(text.clone()),
            Some(_) => {
                self.fail("/description", MemberErrorKind::Expected("a string"));
                None
            }
        }
    }
}

/// Reports the members of a tool, or of an object within it, that are not in `known`.
pub(super) fn unknown_members(
    pointer: &str,
    members: &Object,
    known: &[&'static str],
    errors: &mut Vec<MemberError>,
) {
    for name in members.unknown(known).filter(|name| !NEUTRAL_TOOL_MEMBERS.contains(name)) {
        let instead = match name {
            name if FOREIGN_PARAMETERS.contains(&name) => Some("use `parameters`"),
            "name" | "description" | "strict" if known.contains(&"function") => {
                Some("it belongs in `function`")
            }
            _ => None,
        };
        let meant = similar(name, known.iter().copied(), errors.len());
        let mut pointer = pointer.to_owned();
        push_token(&mut pointer, name);
        errors.push(MemberError::new(pointer, MemberErrorKind::UnknownMember { instead, meant }));
    }
}
