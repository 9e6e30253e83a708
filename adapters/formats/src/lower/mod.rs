//! Lowering: wire format + request -> grammar of the whole turn.
//!
//! A turn is `reasoning REST end`. REST is text and calls, or the answer, perhaps in a frame. Its
//! labelled rules are the spans that the extractor reads; see [`Role`].

mod answer;
mod arguments;
mod builtin;
mod calls;
mod input;
mod markers;
mod messages;
mod object;
mod raw;
mod reasoning;
mod spelling;
mod text;
mod turn;

use std::collections::HashSet;
use std::sync::Arc;

use louver::front::json_schema::SchemaError;
use louver::ids::RuleId;
use louver::ir::{Expr, GrammarBuilder};
use louver::spec::json::Json;

use self::arguments::LoweredArguments;
use self::spelling::LoweredSpelling;
use crate::format::{IdStyle, Marker, WireFormat};
use crate::plan::{Plan, PlanInner, RelaxedSchema, Role, ToolPlan};
use crate::request::{LowerError, PartErrors, RESPONSE_POINTER, RequestFault, ToolRequest};

impl WireFormat {
    /// The grammar of all turns that the request allows: reasoning, text, calls, answer. Fails with
    /// all errors of the request if a part of it cannot be enforced. Cost: that of lowering the
    /// schemas of the tools that may be called.
    pub fn lower(&self, request: &ToolRequest) -> Result<Plan, LowerError> {
        request.check(self)?;
        let mut lowering = Lowering::new(self, request);
        let unflagged = request.unflagged();
        let lowered = lowering.lower_tools(unflagged.iter().map(|(k, _)| *k).collect());
        lowering.response = lowering.lower_response();
        lowering.findings.errors.check()?;
        let tools: Vec<ToolPlan> = (request.kinds().zip(&lowered))
            .map(|((name, kind), lowered)| ToolPlan {
                name: name.to_owned(),
                kind,
                arguments: lowered.as_ref().map(|lowered| lowered.rule),
            })
            .collect();
        lowering.lower_calls(&tools, &lowered);
        let mut styles = vec![(&self.call.arguments, lowered)];
        lowering.lower_spellings(&mut styles)?;
        let turn = lowering.turn()?;
        let turn = lowering.builder.rule("turn", turn);
        let Findings { warnings, mut relaxed, relaxed_schemas, .. } = lowering.findings;
        relaxed.extend(unflagged.into_iter().map(|(_, error)| error));
        let readers = styles.into_iter().map(|(style, lowered)| {
            let readers = lowered.into_iter().map(|lowered| Some(lowered?.reader));
            (style.clone(), readers.collect())
        });
        let inner = PlanInner {
            grammar: lowering.builder.finish(turn)?.into(),
            tools,
            functions: request.functions(),
            readers: readers.collect(),
            is_budgeted: request.reasoning_budget.is_some(),
            warnings,
            relaxed,
            relaxed_schemas,
            format: self.clone(),
        };
        Ok(Plan { inner: Arc::new(inner) })
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
    /// Calls of built-in tools after their begin marker, in turns that are no messages.
    pub(crate) builtin_calls: Vec<RuleId>,
    /// The rules of ids, by their style.
    ids: Vec<(IdStyle, RuleId)>,
    /// The alternative spellings, in the order of the format.
    pub(crate) spellings: Vec<LoweredSpelling>,
    /// The answer that the request asks for.
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

    /// The arguments of all tools in the template's style, `None` for those that cannot be called.
    /// `unflagged`: indices of tools whose schema is not enforced as they are not `strict`.
    fn lower_tools(&mut self, unflagged: HashSet<usize>) -> Vec<Option<LoweredArguments>> {
        let (request, style) = (self.request, &self.format.call.arguments);
        let mut lowered = Vec::new();
        for (k, tool) in request.tools.iter().enumerate() {
            let before = self.findings.relaxed.len();
            lowered.push(self.arguments(k, tool, style));
            if self.findings.relaxed.len() > before || unflagged.contains(&k) {
                self.note_relaxed(Some(k), &tool.parameters);
            }
        }
        for (k, custom) in request.customs.iter().enumerate() {
            lowered.push(self.custom_arguments(k, custom, style));
        }
        for (k, builtin) in request.builtins.iter().enumerate() {
            let before = self.findings.relaxed.len();
            lowered.push(self.builtin_arguments(k, builtin));
            let schema = self.format.builtin.as_ref().and_then(|format| format.schema(builtin));
            if let Some(schema) = schema.filter(|_| self.findings.relaxed.len() > before) {
                self.note_relaxed(Some(request.functions() + k), &schema);
            }
        }
        lowered
    }

    /// The rule of the answer that `response_format` asks for, if the turn may be an answer.
    fn lower_response(&mut self) -> Option<RuleId> {
        if self.request.is_forced() {
            return None;
        }
        let before = self.findings.relaxed.len();
        let rule = match (&self.request.response_format, &self.request.answer_tag) {
            (Some(schema), _) => {
                let rule = self.json(schema, RESPONSE_POINTER)?;
                if self.findings.relaxed.len() > before {
                    self.note_relaxed(None, schema);
                }
                rule
            }
            (None, Some(answer)) => self.answer(answer)?,
            (None, None) => return None,
        };
        Some(self.builder.labelled("response", Role::Response.label(), Expr::Ref(rule)))
    }

    fn note_relaxed(&mut self, tool: Option<usize>, schema: &Json) {
        self.findings.relaxed_schemas.push(RelaxedSchema { tool, schema: schema.clone() });
    }
}
