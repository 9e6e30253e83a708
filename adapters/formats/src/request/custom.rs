//! Custom tools: tools that are called with text instead of JSON, perhaps a sentence of a grammar.
//!
//! Models are trained on JSON arguments. On the wire, a call of a custom tool therefore has the
//! arguments `{"input": "<text>"}`, in the style of the family. The grammar of the text is
//! intersected with UTF-8, and its sentences are escaped as the style escapes strings.

use louver::compile::CompileError;
use louver::front::diagnostic::Diagnostics;
use louver::front::lark::{self, LarkOptions};
use louver::front::regex::{self, RegexError};
use louver::fsm::TooLarge;
use louver::ir::{AlgebraError, Grammar};
use louver::limits::Limits;
use louver::spec::json::{Json, Object};
use serde_json::{Value, json};

use super::members::{
    MemberError, MemberErrorKind, MemberReader, ToolShape, check_name, unknown_members,
};
use crate::pattern;

/// The name of the argument that holds a custom tool's input, where arguments are JSON.
pub const CUSTOM_INPUT: &str = "input";

/// A tool that is called with text.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTool {
    /// Its name, without control characters.
    pub name: String,
    /// Its description for the model.
    pub description: Option<String>,
    /// The language of its input.
    pub input: CustomInput,
    /// The form of the tool in the request, for JSON pointers.
    pub shape: ToolShape,
    /// The JSON pointer of the grammar's text, below the tool's members.
    grammar_pointer: &'static str,
}

/// The language of a custom tool's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomInput {
    /// Any text.
    Text,
    /// A sentence of a Lark grammar.
    Lark(String),
    /// A text that a regular expression matches as a whole.
    Regex(String),
}

impl CustomInput {
    /// The text of the grammar or regular expression.
    pub(crate) fn grammar(&self) -> Option<&str> {
        match self {
            CustomInput::Text => None,
            CustomInput::Lark(text) | CustomInput::Regex(text) => Some(text),
        }
    }
}

/// Why the input of a custom tool, or code, cannot be enforced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CustomError {
    /// The Lark grammar is invalid. The messages have lines and columns.
    #[error(transparent)]
    Lark(Diagnostics),
    /// The regular expression is invalid, or not regular.
    #[error("{0}")]
    Regex(RegexError),
    /// No sentence of the grammar can be written in the arguments of the wire format.
    #[error("no input of this grammar can be written in wire format `{format}`")]
    Empty { format: String },
    /// The grammar has something that arguments cannot have: a special token, a tag dispatch (lazy
    /// rules), a budget.
    #[error("cannot be the input of a tool: {0}")]
    Algebra(#[from] AlgebraError),
    /// The grammar is over a limit.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The automaton of code is over a limit.
    #[error("code, which is text up to the end of the call: {0}")]
    Code(TooLarge),
}

impl CustomTool {
    /// A custom tool that is not from a request. Fails if the name is not allowed.
    pub fn new(name: impl Into<String>, input: CustomInput) -> Result<CustomTool, MemberErrorKind> {
        let name = name.into();
        check_name(&name)?;
        Ok(CustomTool {
            name,
            description: None,
            input,
            shape: ToolShape::Wrapped,
            grammar_pointer: "/format/grammar/definition",
        })
    }

    /// Parses entry `k` of a request's tools: `{"type": "custom", "custom": {"name", "description",
    /// "format"}}` as in Chat Completions, or the members beside `type` as in Responses.
    pub(super) fn parse(k: usize, entry: &Json) -> Result<CustomTool, Vec<MemberError>> {
        let (shape, members) = match entry.get("custom") {
            Some(custom) => (ToolShape::Wrapped, custom),
            None => (ToolShape::Bare, entry),
        };
        let pointer = shape.pointer(k, "custom");
        let Json::Object(members) = members else {
            return Err(vec![MemberError::new(pointer, MemberErrorKind::Expected("an object"))]);
        };
        let errors = unknown_members_of_custom(k, shape, entry, members);
        let mut reader = MemberReader { pointer, members, errors };
        let (name, description) = (reader.name(), reader.description());
        let format = match members.get_non_null("format") {
            None => Ok((CustomInput::Text, "")),
            Some(Json::Object(format)) => parse_format(format),
            Some(_) => Err(("/format", MemberErrorKind::Expected("an object"))),
        };
        let (input, grammar_pointer) = format.unwrap_or_else(|(below, kind)| {
            reader.fail(below, kind);
            (CustomInput::Text, "")
        });
        if !reader.errors.is_empty() {
            return Err(reader.errors);
        }
        Ok(CustomTool { name, description, input, shape, grammar_pointer })
    }

    /// The function that stands for the tool in a chat template, in the wrapped form. It has one
    /// argument, `input`, whose description contains the grammar.
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
        function["parameters"] = arguments_schema(input);
        json!({"type": "function", "function": function})
    }

    /// The schema of the arguments on the wire, regardless of the grammar.
    pub(crate) fn schema() -> Json {
        Json::from(arguments_schema(json!({"type": "string"})))
    }

    /// The JSON pointer of the grammar's text of tool `k`, if it is this one.
    pub(crate) fn grammar_pointer(&self, k: usize) -> String {
        self.shape.pointer(k, "custom") + self.grammar_pointer
    }

    /// The grammar of the input, simplified if it was written in Lark, and its warnings. `None` if
    /// the input may be any text.
    pub(crate) fn grammar(
        &self,
        limits: &Limits,
    ) -> Result<Option<(Grammar, Diagnostics)>, CustomError> {
        let mut lowered = match &self.input {
            CustomInput::Text => return Ok(None),
            CustomInput::Lark(text) => {
                let lowered = lark::lower(text, &LarkOptions::default(), limits);
                let lowered = lowered.map_err(CustomError::Lark)?;
                (lowered.grammar, lowered.warnings)
            }
            CustomInput::Regex(text) => {
                let grammar = regex::lower(text, &pattern::dialect(), limits);
                (grammar.map_err(CustomError::Regex)?, Diagnostics::new("regex", text))
            }
        };
        for rule in &mut lowered.0.rules {
            // Labels are those of `SpanPhase`, so that the grammar must have none.
            let attributes = &mut rule.attributes;
            (attributes.label, attributes.capture, attributes.hidden) = (None, None, false);
        }
        if let (CustomInput::Lark(_), Ok(simplified)) = (&self.input, lowered.0.simplify()) {
            lowered.0 = simplified;
        }
        Ok(Some(lowered))
    }
}

/// The schema of arguments with `input` alone.
fn arguments_schema(input: Value) -> Value {
    json!({
        "type": "object",
        "properties": {CUSTOM_INPUT: input},
        "required": [CUSTOM_INPUT],
        "additionalProperties": false,
    })
}

/// Errors for unknown members of a custom tool, its format and its grammar.
fn unknown_members_of_custom(
    k: usize,
    shape: ToolShape,
    entry: &Json,
    members: &Object,
) -> Vec<MemberError> {
    let mut errors = Vec::new();
    let is_bare = shape == ToolShape::Bare;
    if let (false, Json::Object(entry)) = (is_bare, entry) {
        unknown_members(&format!("/tools/{k}"), entry, &["type", "custom"], &mut errors);
    }
    let beside: &[&str] = if is_bare { &["type"] } else { &[] };
    let known = [beside, &["name", "description", "format"]].concat();
    let pointer = &shape.pointer(k, "custom");
    unknown_members(pointer, members, &known, &mut errors);
    let Some(Json::Object(format)) = members.get("format") else { return errors };
    let pointer = format!("{pointer}/format");
    let known: &[&str] = match (format.get("type").and_then(Json::as_str), format.get("grammar")) {
        (Some("text"), _) => &["type"],
        (_, Some(_)) => &["type", "grammar"],
        (_, None) => &["type", "syntax", "definition"],
    };
    unknown_members(&pointer, format, known, &mut errors);
    if let Some(Json::Object(grammar)) = format.get("grammar") {
        let known = ["syntax", "definition"];
        unknown_members(&format!("{pointer}/grammar"), grammar, &known, &mut errors);
    }
    errors
}

/// Parses a custom tool's format. Returns the language of the input and the pointer of the
/// grammar's text below the tool, or the pointer of an error below the tool.
fn parse_format(
    format: &Object,
) -> Result<(CustomInput, &'static str), (&'static str, MemberErrorKind)> {
    match format.get("type").and_then(Json::as_str) {
        Some("text") => return Ok((CustomInput::Text, "")),
        Some("grammar") => {}
        _ => return Err(("/format/type", MemberErrorKind::Expected("\"text\" or \"grammar\""))),
    }
    let (syntax, definition, grammar) = match format.get("grammar") {
        Some(Json::Object(inner)) => {
            ("/format/grammar/syntax", "/format/grammar/definition", inner)
        }
        Some(_) => return Err(("/format/grammar", MemberErrorKind::Expected("an object"))),
        None => ("/format/syntax", "/format/definition", format),
    };
    let text = match grammar.get("definition") {
        Some(Json::String(text)) => text.clone(),
        _ => return Err((definition, MemberErrorKind::Expected("a string"))),
    };
    match grammar.get("syntax").and_then(Json::as_str) {
        Some("lark") => Ok((CustomInput::Lark(text), definition)),
        Some("regex") => Ok((CustomInput::Regex(text), definition)),
        _ => Err((syntax, MemberErrorKind::Expected("\"lark\" or \"regex\""))),
    }
}
