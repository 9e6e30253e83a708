//! What is wrong with a request, as a flat list with places: for answers to people and programs.

use louver::front::diagnostic::{Diagnostic, Diagnostics};
use louver::front::json_schema::SchemaError;
use louver::front::structural_tag::{StructuralTagErrorReason, StructuralTagErrors};
use louver::spec::tools::ToolChoiceError;
use serde::{Deserialize, Serialize};

use crate::custom::{CustomError, CustomErrorReason};
use crate::request::{LowerError, RequestError};

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{pointer}: {message}")]
pub struct RequestFault {
    /// JSON pointer into the request.
    pub pointer: String,
    /// The keyword of a JSON Schema it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// What is wrong, in one line.
    pub message: String,
}

/// Parts of a request that cannot be enforced: all errors of all of them.
#[derive(Debug, Default, thiserror::Error)]
#[error("{}", self.faults().iter().map(RequestFault::to_string).collect::<Vec<_>>().join("; "))]
pub struct PartErrors {
    /// Those of schemas, with pointers into the request.
    pub schemas: Vec<SchemaError>,
    /// Those of custom tools.
    pub customs: Vec<CustomError>,
    /// Those of the structural tag, with pointers into the request.
    pub tag: Option<StructuralTagErrors>,
}

impl RequestFault {
    fn new(pointer: impl Into<String>, message: impl ToString) -> RequestFault {
        RequestFault { pointer: pointer.into(), keyword: None, message: message.to_string() }
    }

    /// The messages about a text that stands at the pointer.
    pub(crate) fn of_text(pointer: &str, messages: &Diagnostics) -> Vec<RequestFault> {
        messages
            .list()
            .iter()
            .map(|message| RequestFault::new(pointer, in_line(messages, message)))
            .collect()
    }
}

/// `line 2, column 5: what is wrong (what was expected); what to do`.
fn in_line(all: &Diagnostics, message: &Diagnostic) -> String {
    let (line, column) = all.place(message.span.start);
    let label = message.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    let help = message.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("line {line}, column {column}: {}{label}{help}", message.message)
}

impl PartErrors {
    pub(crate) fn is_empty(&self) -> bool {
        self.schemas.is_empty() && self.customs.is_empty() && self.tag.is_none()
    }

    /// How many there are of schemas and of custom tools.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.schemas.len(), self.customs.len())
    }

    /// Only the first of them, which [`PartErrors::len`] has counted before.
    pub(crate) fn truncate(&mut self, (schemas, customs): (usize, usize)) {
        self.schemas.truncate(schemas);
        self.customs.truncate(customs);
    }

    /// All of them.
    pub fn faults(&self) -> Vec<RequestFault> {
        let mut out: Vec<RequestFault> = self.schemas.iter().map(of_schema).collect();
        out.extend(self.customs.iter().flat_map(of_custom));
        out.extend(self.tag.iter().flat_map(of_tag));
        out
    }
}

fn of_schema(error: &SchemaError) -> RequestFault {
    let keyword = (!error.keyword.is_empty()).then(|| error.keyword.clone());
    RequestFault { pointer: error.pointer.clone(), keyword, message: error.reason.to_string() }
}

fn of_custom(error: &CustomError) -> Vec<RequestFault> {
    match &error.reason {
        CustomErrorReason::Lark(messages) => RequestFault::of_text(&error.pointer, messages),
        other => vec![RequestFault::new(&error.pointer, other)],
    }
}

fn of_tag(errors: &StructuralTagErrors) -> Vec<RequestFault> {
    let of = |error: &louver::front::structural_tag::StructuralTagError| match &error.reason {
        StructuralTagErrorReason::Grammar(messages) => {
            RequestFault::of_text(&error.pointer, messages)
        }
        reason => vec![RequestFault::new(&error.pointer, reason)],
    };
    errors.iter().flat_map(of).collect()
}

/// Tool choices say their place in their text.
fn of_choice(error: &ToolChoiceError) -> RequestFault {
    let text = error.to_string();
    RequestFault::new("/tool_choice", text.strip_prefix("/tool_choice: ").unwrap_or(&text))
}

impl RequestError {
    /// What is wrong, each with its place.
    pub fn faults(&self) -> Vec<RequestFault> {
        match self {
            RequestError::Tools(errors) => errors
                .0
                .iter()
                .map(|error| RequestFault::new(&*error.pointer, &error.kind))
                .collect(),
            RequestError::Choice(error) => vec![of_choice(error)],
            RequestError::Builtin { tool, expected } => {
                vec![RequestFault::new(format!("/tools/{tool}"), format!("expected {expected}"))]
            }
            RequestError::Malformed { pointer, expected } => {
                vec![RequestFault::new(*pointer, format!("must be {expected}"))]
            }
            RequestError::UnknownMember { pointer, hint } => {
                vec![RequestFault::new(&**pointer, format!("there is no such member{hint}"))]
            }
            RequestError::StructuralTag(errors) => of_tag(errors),
        }
    }
}

impl LowerError {
    /// What is wrong, each with its place; the place of what concerns the whole request is empty.
    pub fn faults(&self) -> Vec<RequestFault> {
        match self {
            LowerError::Choice(error) => vec![of_choice(error)],
            LowerError::Schemas(errors) => errors.iter().map(of_schema).collect(),
            LowerError::Parts(errors) => errors.faults(),
            LowerError::NoBuiltins { .. } => vec![RequestFault::new("/tools", self)],
            LowerError::TooManyCalls { .. } => {
                vec![RequestFault::new("/parallel_tool_calls", self)]
            }
            LowerError::TooMuchText { pointer, .. } => vec![RequestFault::new(&**pointer, self)],
            LowerError::NoReasoning { .. }
            | LowerError::Combination { .. }
            | LowerError::TooLarge { .. }
            | LowerError::Grammar(_) => {
                vec![RequestFault::new("", self)]
            }
        }
    }
}
