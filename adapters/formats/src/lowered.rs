//! The result of lowering: the grammar of the turn, and the meaning of its labels.

use std::sync::Arc;

use louver::front::json_schema::SchemaError;
use louver::ids::{Label, RuleId};
use louver::ir::Grammar;
use louver::spec::json::Json;

use crate::arguments::ArgumentReader;
use crate::format::{ArgumentStyle, CallSyntax, WireFormat};
use crate::request::{CallKind, Reasoning, RequestFault, SchemaRule};

/// The phase of a labelled span of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanPhase {
    /// Free text.
    Text,
    /// Free text after a begin marker that turned out to be text.
    ResumedText,
    /// Reasoning.
    Reasoning,
    /// The response that `response_format` asks for.
    Response,
    /// Delimiters that open calls, stand between them, or end text, reasoning or a frame. They are
    /// read like bytes without a label.
    Marker,
    /// The header of a call of this tool (an index into [`LoweredRequest::tools`]).
    Header(usize),
    /// The arguments of a call of this tool.
    Arguments(usize),
    /// The trailer and end marker of a call of this tool.
    Trailer(usize),
}

impl SpanPhase {
    /// The roles without a tool, in the order of their labels.
    const WITHOUT_TOOL: [SpanPhase; 5] = [
        SpanPhase::Text,
        SpanPhase::Reasoning,
        SpanPhase::Response,
        SpanPhase::Marker,
        SpanPhase::ResumedText,
    ];

    /// The label of the phase in the grammar.
    pub fn label(self) -> Label {
        let first = SpanPhase::WITHOUT_TOOL.len();
        Label::new(match self {
            SpanPhase::Header(tool) => first + 3 * tool,
            SpanPhase::Arguments(tool) => first + 3 * tool + 1,
            SpanPhase::Trailer(tool) => first + 3 * tool + 2,
            phase => SpanPhase::WITHOUT_TOOL.iter().position(|other| *other == phase).unwrap_or(0),
        })
    }

    /// The phase of a label of the grammar.
    pub fn from_label(label: Label) -> SpanPhase {
        let first = SpanPhase::WITHOUT_TOOL.len();
        match label.index().checked_sub(first).map(|n| (n % 3, n / 3)) {
            None => SpanPhase::WITHOUT_TOOL[label.index()],
            Some((0, tool)) => SpanPhase::Header(tool),
            Some((1, tool)) => SpanPhase::Arguments(tool),
            Some((_, tool)) => SpanPhase::Trailer(tool),
        }
    }
}

/// A request lowered for one wire format. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LoweredRequest {
    pub(crate) inner: Arc<LoweredInner>,
}

#[derive(Debug)]
pub(crate) struct LoweredInner {
    pub(crate) grammar: Arc<Grammar>,
    pub(crate) tools: Vec<LoweredTool>,
    /// The texts that end a constrained response. Its grammar knows nothing of them.
    pub(crate) stops: Vec<String>,
    /// The texts that end free text, as its grammar says.
    pub(crate) text_stops: Vec<String>,
    /// Whether the turn begins with a reasoning block.
    pub(crate) reasoning: Reasoning,
    /// Whether reasoning has a budget.
    pub(crate) is_budgeted: bool,
    pub(crate) warnings: Vec<RequestFault>,
    pub(crate) relaxed: Vec<SchemaError>,
    pub(crate) relaxed_schemas: Vec<RelaxedSchema>,
    pub(crate) format: WireFormat,
}

/// A schema of the request that the grammar does not enforce as a whole.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RelaxedSchema {
    /// The tool whose arguments it describes, an index into [`LoweredRequest::tools`]. `None`: the
    /// response.
    pub tool: Option<usize>,
    /// The schema as it was sent.
    pub schema: Json,
}

/// A tool of a lowered request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoweredTool {
    /// Its name.
    pub name: String,
    /// What it is called with.
    pub kind: CallKind,
    /// Whether it is a built-in tool, whose calls have a syntax of their own.
    pub is_builtin: bool,
    /// Of a function: whether its schema is enforced, and why.
    pub schema_rule: Option<SchemaRule>,
    /// Its arguments by style, that of the template first. Empty if the turn cannot call it.
    pub(crate) arguments: Vec<(ArgumentStyle, LoweredArguments)>,
}

/// Lowered arguments: their rule and their reader.
#[derive(Clone, Debug)]
pub(crate) struct LoweredArguments {
    pub(crate) rule: RuleId,
    pub(crate) reader: ArgumentReader,
}

impl LoweredTool {
    /// Whether the turn can call it.
    pub fn is_callable(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// Its arguments in a style.
    pub(crate) fn arguments(&self, style: &ArgumentStyle) -> Option<&LoweredArguments> {
        self.arguments.iter().find(|(known, _)| known == style).map(|(_, arguments)| arguments)
    }

    /// Whether it is called with code.
    pub(crate) fn takes_code(&self) -> bool {
        self.arguments.first().is_some_and(|(_, arguments)| arguments.reader.is_code())
    }

    /// The syntax of its calls as the template writes them, or in an alternative spelling of the
    /// format (an index into its list).
    pub(crate) fn syntax<'f>(
        &self,
        format: &'f WireFormat,
        spelling: Option<usize>,
    ) -> CallSyntax<'f> {
        match spelling.and_then(|k| format.all_spellings().nth(k)) {
            Some(spelling) => format.spelling_syntax(spelling),
            None => format.tool_syntax(self.is_builtin, self.takes_code()),
        }
    }
}

impl LoweredRequest {
    /// The grammar of the whole turn.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.inner.grammar
    }

    /// The tools of the request, in its order. [`SpanPhase`]s have indices into this list.
    pub fn tools(&self) -> &[LoweredTool] {
        &self.inner.tools
    }

    /// Warnings: those of grammars in the request, with pointers into the request.
    pub fn warnings(&self) -> &[RequestFault] {
        &self.inner.warnings
    }

    /// What the request demands and the grammar does not enforce, with pointers into the request:
    /// keywords that the policy relaxes, and parameters of tools that are not `strict` under
    /// [`Strictness::AsFlagged`](crate::Strictness::AsFlagged).
    pub fn relaxed(&self) -> &[SchemaError] {
        &self.inner.relaxed
    }

    /// The schemas of [`LoweredRequest::relaxed`]. Arguments of these tools, or the response,
    /// may violate them.
    pub fn relaxed_schemas(&self) -> &[RelaxedSchema] {
        &self.inner.relaxed_schemas
    }

    /// Whether the request bounds the length of reasoning.
    pub fn has_reasoning_budget(&self) -> bool {
        self.inner.is_budgeted
    }

    /// The wire format, as it was given to [`WireFormat::lower`].
    pub fn wire_format(&self) -> &WireFormat {
        &self.inner.format
    }
}
