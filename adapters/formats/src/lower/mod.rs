//! Lowering: wire format + request -> grammar of the whole turn.
//!
//! A turn is `reasoning REST end`. REST is text and calls, or the response, perhaps in a frame. Its
//! labelled rules are the spans that the extractor reads; see [`SpanPhase`].

mod arguments;
mod builtin;
mod call_texts;
mod calls;
mod input;
mod markers;
mod messages;
mod object;
mod raw;
mod reasoning;
mod response;
mod spelling;
mod text;
mod text_automata;
mod turn;

use std::borrow::Cow;
use std::sync::Arc;

use louver::front::json_schema::{self, SchemaError};
use louver::ids::RuleId;
use louver::ir::{Expr, GrammarBuilder};
use louver::spec::json::Json;

use self::spelling::LoweredSpelling;
use crate::format::{IdStyle, Marker, WireFormat};
use crate::lowered::{LoweredInner, LoweredRequest, LoweredTool, RelaxedSchema, SpanPhase};
use crate::request::{
    LowerError, PartErrors, RESPONSE_POINTER, RequestFault, ResponseFormat, STOP, Tool, ToolRequest,
};

impl WireFormat {
    /// The grammar of all turns that the request allows: reasoning, text, calls, response. Fails
    /// with all errors of the request if a part of it cannot be enforced. Cost: that of lowering
    /// the schemas of the tools that may be called.
    pub fn lower(&self, request: &ToolRequest) -> Result<LoweredRequest, LowerError> {
        request.check(self)?;
        let mut lowering = Lowering::new(self, request);
        let mut tools: Vec<LoweredTool> =
            (0..).zip(&request.tools).map(|(k, tool)| lowering.lower_tool(k, tool)).collect();
        lowering.response = lowering.lower_response();
        lowering.warn_of_stops();
        if !lowering.findings.errors.is_empty() {
            return Err(std::mem::take(&mut lowering.findings.errors).into());
        }
        lowering.lower_calls(&tools);
        lowering.lower_spellings(&mut tools)?;
        let turn = lowering.turn()?;
        let turn = lowering.builder.rule("turn", turn);
        let Findings { warnings, relaxed, relaxed_schemas, .. } = lowering.findings;
        let inner = LoweredInner {
            grammar: lowering.builder.finish(turn)?.into(),
            tools,
            stops: request.response_stops().to_vec(),
            text_stops: request.text_stops().to_vec(),
            reasoning: request.reasoning,
            is_budgeted: request.reasoning_budget.is_some(),
            warnings,
            relaxed,
            relaxed_schemas,
            format: self.clone(),
        };
        Ok(LoweredRequest { inner: Arc::new(inner) })
    }
}

impl WireFormat {
    /// The JSON Schema of a tool's arguments. `None` for tools that are called with text or code.
    pub(crate) fn parameters<'t>(&self, tool: &'t Tool) -> Option<Cow<'t, Json>> {
        match tool {
            Tool::Function(function) => Some(Cow::Borrowed(&function.parameters)),
            Tool::Custom(_) => None,
            Tool::Builtin(tool) => self.builtin.as_ref()?.schema(tool).map(Cow::Owned),
        }
    }
}

/// What lowering reports of the request.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) errors: PartErrors,
    pub(crate) warnings: Vec<RequestFault>,
    /// Keywords that the grammar does not enforce.
    pub(crate) relaxed: Vec<SchemaError>,
    /// The schemas of those keywords.
    relaxed_schemas: Vec<RelaxedSchema>,
}

/// A request that is being lowered.
pub(crate) struct Lowering<'a> {
    pub(crate) format: &'a WireFormat,
    pub(crate) request: &'a ToolRequest,
    pub(crate) builder: GrammarBuilder,
    pub(crate) findings: Findings,
    /// Calls after their begin marker, one rule per tool. In turns of messages, those of built-in
    /// tools are among them.
    calls: Vec<RuleId>,
    /// Calls of built-in tools after their begin marker, in turns that are not messages.
    pub(crate) builtin_calls: Vec<RuleId>,
    /// The rules of ids, by their style.
    ids: Vec<(IdStyle, RuleId)>,
    /// The alternative spellings, in the order of the format.
    pub(crate) spellings: Vec<LoweredSpelling>,
    /// The response that the request asks for.
    response: Option<RuleId>,
    /// Ends the frame of text and calls, while those are being lowered.
    pub(crate) frame_end: Option<&'a Marker>,
}

impl<'a> Lowering<'a> {
    fn new(format: &'a WireFormat, request: &'a ToolRequest) -> Self {
        Lowering {
            format,
            request,
            builder: GrammarBuilder::new(),
            findings: Findings::default(),
            calls: Vec::new(),
            builtin_calls: Vec::new(),
            ids: Vec::new(),
            spellings: Vec::new(),
            response: None,
            frame_end: None,
        }
    }

    /// Tool `k` with its arguments as the template writes them.
    fn lower_tool(&mut self, k: usize, tool: &Tool) -> LoweredTool {
        let style = self.format.tool_syntax(tool.is_builtin(), false).arguments;
        let before = self.findings.relaxed.len();
        let arguments = self.arguments(k, tool, style);
        if let Tool::Function(function) = tool
            && self.request.may_call(&function.name)
        {
            self.findings.relaxed.extend(self.request.unenforced(k, function));
            self.warn_of_schema(&function.parameters, &function.parameters_pointer(k));
        }
        if self.findings.relaxed.len() > before
            && let Some(schema) = self.format.parameters(tool)
        {
            self.note_relaxed(Some(k), &schema);
        }
        LoweredTool {
            name: tool.name().to_owned(),
            kind: tool.kind(),
            is_builtin: tool.is_builtin(),
            schema_rule: match tool {
                Tool::Function(function) => Some(self.request.schema_rule(function)),
                Tool::Custom(_) | Tool::Builtin(_) => None,
            },
            arguments: arguments.map(|arguments| (style.clone(), arguments)).into_iter().collect(),
        }
    }

    /// The rule of the response that the request asks for, if the turn may be a response.
    fn lower_response(&mut self) -> Option<RuleId> {
        let request = self.request;
        let before = self.findings.relaxed.len();
        let rule = match request.response_format.as_ref().filter(|_| request.may_respond())? {
            ResponseFormat::Schema(schema) => {
                let rule = self.json(schema, RESPONSE_POINTER)?;
                self.warn_of_schema(schema, RESPONSE_POINTER);
                if self.findings.relaxed.len() > before {
                    self.note_relaxed(None, schema);
                }
                rule
            }
            ResponseFormat::StructuralTag(tag) => self.response_tag(tag)?,
        };
        Some(self.builder.labelled("response", SpanPhase::Response.label(), Expr::Ref(rule)))
    }

    /// A stop string ends a constrained response even if its structure is not complete.
    fn warn_of_stops(&mut self) {
        if !self.request.response_stops().is_empty() {
            let message = "ends the response also where its structure is not complete";
            self.findings.warnings.push(RequestFault::new(STOP, message));
        }
    }

    /// Adds the warnings of the schema at the pointer.
    fn warn_of_schema(&mut self, schema: &Json, pointer: &str) {
        let warnings = json_schema::warnings(schema).into_iter();
        let warnings = warnings.map(|warning| warning.below(pointer).into());
        self.findings.warnings.extend(warnings);
    }

    fn note_relaxed(&mut self, tool: Option<usize>, schema: &Json) {
        self.findings.relaxed_schemas.push(RelaxedSchema { tool, schema: schema.clone() });
    }
}
