//! Custom tools: called with text instead of JSON, perhaps text of a grammar.
//!
//! Models are trained on JSON arguments, so on the wire such a call has the arguments `{"input": "<text>"}` in the style
//! of the family. The grammar of the text is intersected with UTF-8 and written as the style writes strings.

use louver::compile::{CompileError, Compiled};
use louver::front::diagnostic::Diagnostics;
use louver::front::lark::{self, LarkOptions};
use louver::front::regex::{self, Classes, Dot, RegexError, RegexOptions};
use louver::ir::{Grammar, IntersectError, MapError, Simplify};
use louver::limits::Limits;
use louver::spec::json::{Json, Object};
use louver::spec::tools::{Tool, ToolError, ToolErrorKind, unknown_members};
use serde_json::{Value, json};

use crate::raw::{Frame, text_dfa};

/// The one argument that stands for a custom tool's input.
pub(crate) const INPUT: &str = "input";

/// A tool that is called with text.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTool {
    /// Its name: any characters but control characters.
    pub name: String,
    /// For the model.
    pub description: Option<String>,
    /// What its input may be.
    pub input: CustomInput,
    /// Where it stands in the request, for errors: `/tools/1/custom`, or `/tools/1` in Responses.
    pub pointer: String,
    /// Where the grammar's text stands below that.
    grammar: &'static str,
}

/// What a custom tool's input may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomInput {
    /// Any text.
    Text,
    /// A sentence of a Lark grammar.
    Lark(String),
    /// A text that a regular expression matches as a whole.
    Regex(String),
}

/// A custom tool whose input cannot be enforced.
#[derive(Debug, thiserror::Error)]
#[error("{pointer}: {reason}")]
pub struct CustomError {
    /// JSON pointer into the request, such as `/tools/1/custom/format/grammar/definition`.
    pub pointer: String,
    /// Why.
    pub reason: CustomErrorReason,
}

/// Why a custom tool's input cannot be enforced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CustomErrorReason {
    /// The Lark grammar is not one: messages with lines and columns.
    #[error(transparent)]
    Lark(Diagnostics),
    /// The regular expression is not one, or not regular.
    #[error("{0}")]
    Regex(RegexError),
    /// No text is a sentence of the grammar and can stand in the arguments of the wire format.
    #[error("no input of this grammar can be written in wire format `{format}`")]
    Empty {
        /// The format.
        format: String,
    },
    /// Something in the grammar cannot stand in the arguments of a call: a special token, a tag dispatch (lazy rules), a budget.
    #[error("cannot be the input of a tool: {0}")]
    Intersect(#[from] IntersectError),
    /// As above.
    #[error("cannot be the input of a tool: {0}")]
    Map(#[from] MapError),
    /// It is over a limit.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl CustomTool {
    /// A custom tool as a program builds one; the name is checked.
    pub fn new(name: impl Into<String>, input: CustomInput) -> Result<CustomTool, ToolErrorKind> {
        let checked = Tool::new(name, Json::Bool(true))?;
        let (pointer, grammar) = ("/tools".to_owned(), "/format/grammar/definition");
        Ok(CustomTool { name: checked.name, description: None, input, pointer, grammar })
    }

    /// Reads entry `k` of a request's tools: `{"type": "custom", "custom": {"name", "description", "format"}}` as in Chat
    /// Completions, or the members beside `type` as in Responses. All faults are reported. Cost: linear.
    pub fn parse(k: usize, entry: &Json) -> Result<CustomTool, Vec<ToolError>> {
        let at = |pointer: String, kind| vec![ToolError { pointer, kind }];
        let (pointer, members) = match (entry.get("custom"), entry) {
            (Some(Json::Object(members)), _) => (format!("/tools/{k}/custom"), members),
            (Some(_), _) => {
                return Err(at(format!("/tools/{k}/custom"), ToolErrorKind::Expected("an object")));
            }
            (None, Json::Object(members)) => (format!("/tools/{k}"), members),
            (None, _) => {
                return Err(at(format!("/tools/{k}"), ToolErrorKind::Expected("an object")));
            }
        };
        let mut faults = unknown_in_custom(&pointer, entry, members);
        let mut fault = |pointer: String, kind| faults.push(ToolError { pointer, kind });
        let name = match members.get("name") {
            Some(Json::String(name)) => {
                if let Err(kind) = Tool::new(name.as_str(), Json::Bool(true)) {
                    fault(format!("{pointer}/name"), kind);
                }
                name.clone()
            }
            Some(_) => {
                fault(format!("{pointer}/name"), ToolErrorKind::Expected("a string"));
                String::new()
            }
            None => {
                fault(pointer.clone(), ToolErrorKind::Missing("name"));
                String::new()
            }
        };
        let description = match members.get("description") {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) => Some(text.clone()),
            Some(_) => {
                fault(format!("{pointer}/description"), ToolErrorKind::Expected("a string"));
                None
            }
        };
        let (input, grammar) = match members.get("format") {
            None | Some(Json::Null) => (CustomInput::Text, ""),
            Some(Json::Object(format)) => parse_format(format).unwrap_or_else(|(below, kind)| {
                fault(format!("{pointer}/format{below}"), kind);
                (CustomInput::Text, "")
            }),
            Some(_) => {
                fault(format!("{pointer}/format"), ToolErrorKind::Expected("an object"));
                (CustomInput::Text, "")
            }
        };
        if faults.is_empty() {
            Ok(CustomTool { name, description, input, pointer, grammar })
        } else {
            Err(faults)
        }
    }

    /// The function that stands for it in a chat template, in the wrapped form: one argument, `input`, whose description has the
    /// grammar.
    pub fn as_function(&self) -> Value {
        let mut input = json!({"type": "string"});
        let grammar = match &self.input {
            CustomInput::Text => None,
            CustomInput::Lark(text) => Some(format!("Text of this Lark grammar:\n{text}")),
            CustomInput::Regex(text) => {
                Some(format!("Text that this regular expression matches: {text}"))
            }
        };
        if let Some(grammar) = grammar {
            input["description"] = grammar.into();
        }
        let mut function = json!({"name": self.name});
        if let Some(description) = &self.description {
            function["description"] = description.as_str().into();
        }
        function["parameters"] = json!({"type": "object", "properties": {INPUT: input}, "required": [INPUT], "additionalProperties": false});
        json!({"type": "function", "function": function})
    }

    /// The schema of the arguments on the wire, whatever the grammar.
    pub(crate) fn schema() -> Json {
        let properties = json!({INPUT: {"type": "string"}});
        Json::from(
            json!({"type": "object", "properties": properties, "required": [INPUT], "additionalProperties": false}),
        )
    }

    /// Where the grammar's text stands.
    pub(crate) fn definition(&self) -> String {
        format!("{}{}", self.pointer, self.grammar)
    }

    /// Its place among the request's tools.
    pub(crate) fn place(&self) -> Option<usize> {
        self.pointer.strip_prefix("/tools/")?.split('/').next()?.parse().ok()
    }

    /// The grammar of the input, without what it says of captures and the like; none if it may be any text. Warnings too.
    pub(crate) fn grammar(
        &self,
        limits: &Limits,
    ) -> Result<Option<(Grammar, Diagnostics)>, CustomErrorReason> {
        let mut lowered = match &self.input {
            CustomInput::Text => return Ok(None),
            CustomInput::Lark(text) => {
                let lowered = lark::lower(text, &LarkOptions::default(), limits)
                    .map_err(CustomErrorReason::Lark)?;
                (lowered.grammar, lowered.warnings)
            }
            CustomInput::Regex(text) => {
                let grammar =
                    regex::lower(text, &REGEX, limits).map_err(CustomErrorReason::Regex)?;
                (grammar, Diagnostics::new("regex", text))
            }
        };
        for rule in &mut lowered.0.rules {
            // Labels are the plan's; nobody asks for captures.
            (rule.attributes.label, rule.attributes.capture, rule.attributes.hidden) =
                (None, None, false);
        }
        Ok(Some(lowered))
    }

    /// The grammar of those inputs that can stand in a frame, as they are. `format` is for the error.
    pub(crate) fn framed(
        grammar: &Grammar,
        frame: &Frame,
        (format, limits): (&str, &Limits),
    ) -> Result<Grammar, CustomErrorReason> {
        let text = text_dfa(frame, limits.automaton_states).map_err(IntersectError::from)?;
        let both = grammar.intersect(&text, limits)?;
        let both = both.simplify(Simplify::Full).map_err(CompileError::from)?.into_owned();
        match Compiled::new(&both, limits) {
            Ok(_) => Ok(both),
            Err(CompileError::Empty { .. }) => {
                Err(CustomErrorReason::Empty { format: format.to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// As Rust's `regex` crate and OpenAI's documentation read one: the whole text, `.` is any character but a line feed.
pub(crate) const REGEX: RegexOptions = RegexOptions {
    scope: regex::Scope::Match,
    look_around: regex::LookAround::Allowed,
    classes: Classes::Unicode,
    case: regex::Case::Sensitive,
    dot: Dot::NoLineFeed,
};

/// The input's format, and where its grammar stands below the tool; or where what is wrong.
/// Members of a custom tool, and of its format and grammar, that are unknown.
fn unknown_in_custom(pointer: &str, entry: &Json, members: &Object) -> Vec<ToolError> {
    let mut faults = Vec::new();
    let wrapper = pointer.strip_suffix("/custom");
    if let (Some(at), Json::Object(entry)) = (wrapper, entry) {
        unknown_members(at, entry, &["type", "custom"], &mut faults);
    }
    let known: &[&str] = if wrapper.is_some() { &[] } else { &["type"] };
    unknown_members(
        pointer,
        members,
        &[known, &["name", "description", "format"]].concat(),
        &mut faults,
    );
    let Some(Json::Object(format)) = members.get("format") else { return faults };
    unknown_members(
        &format!("{pointer}/format"),
        format,
        &["type", "grammar", "syntax", "definition"],
        &mut faults,
    );
    if let Some(Json::Object(grammar)) = format.get("grammar") {
        unknown_members(
            &format!("{pointer}/format/grammar"),
            grammar,
            &["syntax", "definition"],
            &mut faults,
        );
    }
    faults
}

fn parse_format(
    format: &Object,
) -> Result<(CustomInput, &'static str), (&'static str, ToolErrorKind)> {
    match format.get("type").and_then(Json::as_str) {
        Some("text") => return Ok((CustomInput::Text, "")),
        Some("grammar") => {}
        _ => return Err(("/type", ToolErrorKind::Expected("\"text\" or \"grammar\""))),
    }
    let (syntax_at, definition_at, grammar) = match format.get("grammar") {
        Some(Json::Object(inner)) => ("/grammar/syntax", "/grammar/definition", inner),
        Some(_) => return Err(("/grammar", ToolErrorKind::Expected("an object"))),
        None => ("/syntax", "/definition", format),
    };
    let definition = match grammar.get("definition") {
        Some(Json::String(text)) => text.clone(),
        _ => return Err((definition_at, ToolErrorKind::Expected("a string"))),
    };
    let below = if definition_at == "/definition" {
        "/format/definition"
    } else {
        "/format/grammar/definition"
    };
    match grammar.get("syntax").and_then(Json::as_str) {
        Some("lark") => Ok((CustomInput::Lark(definition), below)),
        Some("regex") => Ok((CustomInput::Regex(definition), below)),
        _ => Err((syntax_at, ToolErrorKind::Expected("\"lark\" or \"regex\""))),
    }
}
