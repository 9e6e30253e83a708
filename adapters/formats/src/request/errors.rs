//! Errors of a request, and its faults: a flat list of errors with JSON pointers, for responses of
//! a server.

use std::borrow::Cow;
use std::fmt;

use louver::compile::CompileError;
use louver::front::DocumentWarning;
use louver::front::diagnostic::Diagnostics;
use louver::front::json_schema::{SchemaError, SchemaErrors};
use louver::front::structural_tag::{StructuralTagError, StructuralTagErrorReason};
use louver::fsm::TooLarge;
use louver::ir::GrammarError;
use serde::{Deserialize, Serialize};

use super::choice::ToolChoiceError;
use super::custom::CustomError;
use super::members::MemberError;
use super::response::ResponseTag;

/// JSON pointer of the budget of reasoning in the server's requests.
pub(super) const BUDGET: &str = "/louver/reasoning_budget";

/// JSON pointer of the number of calls in the server's requests.
const MAX_CALLS: &str = "/louver/max_calls";

/// All errors of a request body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(RequestError::to_string).collect::<Vec<_>>().join("\n"))]
pub struct RequestErrors(pub Vec<RequestError>);

/// An error of a request body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// An error of `tools`.
    #[error(transparent)]
    Tool(#[from] MemberError),
    /// An error of `tool_choice`.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// An error of the structural tag.
    #[error(transparent)]
    StructuralTag(#[from] StructuralTagError),
    /// An error of another member.
    #[error(transparent)]
    Member(MemberError),
}

/// Why a request cannot be lowered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The tool choice does not go with the tools.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// All errors of schemas, custom tools and a structural tag that cannot be enforced.
    #[error(transparent)]
    Parts(#[from] PartErrors),
    /// Reasoning is required, and the family has none.
    #[error("wire format `{format}` has no reasoning block")]
    NoReasoning {
        /// JSON pointer of the member that requires it, or empty: [`super::ToolRequest::reasoning`]
        /// is no member of a request.
        pointer: &'static str,
        /// The family.
        format: String,
    },
    /// A built-in tool is offered, and the family has none.
    #[error("wire format `{format}` has no built-in tools: only functions and custom tools")]
    NoBuiltins {
        /// JSON pointer of the tool's type.
        pointer: String,
        /// The family.
        format: String,
    },
    /// Parts of the request that do not go together.
    #[error("not supported together: {what}")]
    Combination {
        /// JSON pointer of the member that does not go with the others.
        pointer: &'static str,
        /// The parts.
        what: Cow<'static, str>,
    },
    /// The bound on calls with text between them is too large.
    #[error("at most {max} calls with text between them: over the limit of {limit}")]
    TooManyCalls {
        /// The bound.
        max: u32,
        /// The limit.
        limit: u32,
    },
    /// Stop strings and bans have more bytes than the limit
    /// [`dispatch_bytes`](louver::limits::Limits::dispatch_bytes).
    #[error("the texts that end or interrupt free text have more than {limit} bytes")]
    TooMuchText {
        /// JSON pointer of the first stop string beyond the limit: `/stop/3`, or `/stop` if there
        /// is one only. Empty for a ban.
        pointer: String,
        /// The limit.
        limit: usize,
    },
    /// An automaton is over the limit.
    #[error("{what}: {cause}")]
    TooLarge {
        /// The purpose of the automaton.
        what: &'static str,
        /// The limit.
        cause: TooLarge,
    },
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}

/// All errors of the parts of a request that cannot be enforced.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PartErrors {
    /// Errors of schemas, with pointers into the request such as
    /// `/tools/2/function/parameters/properties/x/not`.
    pub schemas: Vec<SchemaError>,
    /// Errors of custom tools and of code, with pointers such as
    /// `/tools/1/custom/format/grammar/definition`.
    pub customs: Vec<RequestFault>,
    /// Errors of the structural tag, with pointers into the request.
    pub tag: Vec<StructuralTagError>,
}

impl std::error::Error for PartErrors {}

impl fmt::Display for PartErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schemas = SchemaErrors(self.schemas.clone());
        let schemas = (!schemas.0.is_empty()).then(|| schemas.to_string());
        let others = self.grammar_faults().into_iter().map(|fault| fault.to_string());
        f.write_str(&schemas.into_iter().chain(others).collect::<Vec<_>>().join("; "))
    }
}

/// Why a constraint cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum ConstraintError {
    /// The request cannot be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The grammar does not compile for the vocabulary.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// A fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{pointer}: {message}")]
#[non_exhaustive]
pub struct RequestFault {
    /// JSON pointer into the request.
    pub pointer: String,
    /// The keyword, if the fault is in a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// What is wrong, in one line.
    pub message: String,
}

impl RequestFault {
    /// A fault that is in no JSON Schema.
    pub fn new(pointer: impl Into<String>, message: impl ToString) -> RequestFault {
        RequestFault { pointer: pointer.into(), keyword: None, message: message.to_string() }
    }

    /// The error of the input of a tool, which is at the pointer.
    pub(crate) fn of_custom(pointer: &str, error: &CustomError) -> Vec<RequestFault> {
        match error {
            CustomError::Lark(messages) => RequestFault::of_text(pointer, messages),
            other => vec![RequestFault::new(pointer, other)],
        }
    }

    /// The messages about a text of the request, which is at the pointer.
    pub(crate) fn of_text(pointer: &str, messages: &Diagnostics) -> Vec<RequestFault> {
        messages.lines().map(|line| RequestFault::new(pointer, line)).collect()
    }
}

impl From<DocumentWarning> for RequestFault {
    fn from(warning: DocumentWarning) -> RequestFault {
        RequestFault::new(warning.pointer, warning.message)
    }
}

impl PartErrors {
    /// The error of a structural tag that no text satisfies.
    pub(crate) fn of_empty_tag(tag: &ResponseTag) -> PartErrors {
        let reason = StructuralTagErrorReason::Contradictory("no text satisfies it".into());
        let pointer = tag.request_pointer("/format");
        PartErrors { tag: vec![StructuralTagError { pointer, reason }], ..PartErrors::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.schemas.is_empty() && self.customs.is_empty() && self.tag.is_empty()
    }

    /// All errors as faults.
    pub fn faults(&self) -> Vec<RequestFault> {
        self.schemas.iter().map(schema_fault).chain(self.grammar_faults()).collect()
    }

    /// The errors of custom tools and of the structural tag as faults.
    pub fn grammar_faults(&self) -> Vec<RequestFault> {
        self.customs.iter().cloned().chain(self.tag.iter().flat_map(tag_faults)).collect()
    }
}

fn schema_fault(error: &SchemaError) -> RequestFault {
    let keyword = (!error.keyword.is_empty()).then(|| error.keyword.clone());
    RequestFault { pointer: error.pointer.clone(), keyword, message: error.reason.to_string() }
}

fn tag_faults(error: &StructuralTagError) -> Vec<RequestFault> {
    match &error.reason {
        StructuralTagErrorReason::Grammar(messages) => {
            RequestFault::of_text(&error.pointer, messages)
        }
        reason => vec![RequestFault::new(&error.pointer, reason)],
    }
}

fn member_fault(error: &MemberError) -> RequestFault {
    RequestFault::new(&*error.pointer, &error.kind)
}

fn choice_fault(error: &ToolChoiceError) -> RequestFault {
    match error {
        ToolChoiceError::Member(error) => member_fault(error),
        error => RequestFault::new(
            "/tool_choice",
            error.to_string().trim_start_matches("/tool_choice: "),
        ),
    }
}

impl RequestErrors {
    /// All errors as faults.
    pub fn faults(&self) -> Vec<RequestFault> {
        self.0.iter().flat_map(RequestError::faults).collect()
    }
}

impl RequestError {
    /// The error as faults: several if it is one of a text, such as a grammar.
    pub fn faults(&self) -> Vec<RequestFault> {
        match self {
            RequestError::Tool(error) | RequestError::Member(error) => vec![member_fault(error)],
            RequestError::StructuralTag(error) => tag_faults(error),
            RequestError::Choice(error) => vec![choice_fault(error)],
        }
    }
}

impl LowerError {
    /// All errors as faults. A fault of the whole request has an empty pointer.
    pub fn faults(&self) -> Vec<RequestFault> {
        let pointer = match self {
            LowerError::Choice(error) => return vec![choice_fault(error)],
            LowerError::Parts(errors) => return errors.faults(),
            LowerError::NoBuiltins { pointer, .. } => pointer,
            LowerError::TooManyCalls { .. } => MAX_CALLS,
            LowerError::TooMuchText { pointer, .. } => pointer,
            LowerError::Combination { pointer, .. } => pointer,
            LowerError::NoReasoning { pointer, .. } => pointer,
            LowerError::TooLarge { .. } | LowerError::Grammar(_) => "",
        };
        vec![RequestFault::new(pointer, self)]
    }
}
