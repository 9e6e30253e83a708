//! Lenient reading: parses output that was generated without a constraint as far as possible, and
//! reports how it differs from what the constraint allows. Reads whole texts. Markers are
//! recognised by their text.

use std::sync::Arc;

use louver::compile::Compiled;
use louver::engine::{Engine, EngineOptions};
use louver::front::json_schema::{self, MemberOrder, Policy, SchemaSource};
use louver::fuel;
use louver::ids::TokenId;
use louver::ir::Grammar;
use louver::matcher::{Recognizer, Tracer};
use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

use super::scan::{ScannedCall, ScannedTurn, Scanner};
use super::turn::{Call, Incomplete, Turn};
use crate::arguments::read_input;
use crate::format::{WireFormat, unique};
use crate::lowered::LoweredRequest;
use crate::request::{CallKind, ConstraintError, Reasoning, ReasoningBudget, Tool, ToolRequest};

/// An output that was generated without a constraint, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reading {
    /// The turn, as far as it could be parsed.
    pub turn: Turn,
    /// How it differs from what the constraint allows. Empty if it does not.
    pub differences: Vec<Difference>,
}

/// A difference between an output and what the constraint allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Difference {
    /// The constraint refuses the output from this byte on.
    Refused {
        /// The byte's offset.
        at: usize,
    },
    /// The constraint does not allow the turn to end where the output does.
    Unfinished,
    /// A call of a tool that the turn may not call.
    UnknownTool {
        /// The call's number.
        call: usize,
        /// The name.
        name: String,
    },
    /// Arguments that do not match the tool's schema.
    Arguments {
        /// The call's number.
        call: usize,
        /// The offset of the first byte that does not match, in the arguments as JSON text. Their
        /// length, if they end too early.
        at: usize,
    },
    /// Members of an object in the arguments with the same name. The last counts.
    RepeatedMember {
        /// The call's number.
        call: usize,
        /// The name.
        name: String,
    },
    /// A call whose end marker is missing.
    Unended {
        /// The call's number.
        call: usize,
    },
    /// A begin marker without a call after it. It is left in the text.
    Malformed {
        /// The byte's offset.
        at: usize,
    },
    /// A reasoning block without an end marker.
    OpenReasoning,
}

impl WireFormat {
    /// Parses an output that was generated without a constraint. Output that the constraint allows
    /// is parsed as constrained output is. In other output, reasoning, text and calls are found as
    /// far as possible, regardless of their spacing, names and arguments, and the differences are
    /// reported. A budget of tokens is ignored: a text does not tell its tokens. Cost: that of
    /// lowering and compiling the request, then linear.
    pub fn read_unconstrained(
        &self,
        request: &ToolRequest,
        text: &str,
    ) -> Result<Reading, ConstraintError> {
        if matches!(request.reasoning_budget, Some(ReasoningBudget::Tokens(_))) {
            let request = request.clone().with_reasoning_budget(None);
            return self.read_unconstrained(&request, text);
        }
        // The format may be a user's file, so that lowering it has the request's budget of work.
        fuel::with_default_budget(
            || request.limits.compile_budget(text.len()),
            || self.read_within(request, text),
        )
    }

    fn read_within(&self, request: &ToolRequest, text: &str) -> Result<Reading, ConstraintError> {
        let format = self.with_text_markers();
        let lowered = format.lower(request)?;
        let compiled = Arc::new(Compiled::new(lowered.grammar().clone(), &request.limits)?);
        let mut recognizer = Recognizer::with_limits(compiled.clone(), &request.limits);
        let difference = match recognizer.push(text.as_bytes()) {
            Ok(()) if recognizer.is_complete() => {
                let turn = lowered.read_constrained(compiled, text.as_bytes())?;
                return Ok(Reading { turn, differences: Vec::new() });
            }
            Ok(()) => Difference::Unfinished,
            Err(rejected) => Difference::Refused { at: rejected.offset() },
        };
        let scanner = Scanner { format: &format, tools: lowered.tools() };
        let scanned = scanner.turn(text, request.reasoning == Reasoning::Opened);
        Ok(report(&format, request, scanned, difference))
    }
}

impl LoweredRequest {
    /// Reads a text that the request's grammar accepts, all of it text: the turn is that of a
    /// constrained generation. For a budget of tokens, every byte is a token. `compiled` is the
    /// compiled grammar. A text that is not accepted is read up to there, as a generation that was
    /// cut off. Cost: linear.
    pub fn read_constrained(
        &self,
        compiled: Arc<Compiled>,
        text: &[u8],
    ) -> Result<Turn, ConstraintError> {
        let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
        let mut matcher = engine.bind(compiled)?.matcher();
        let (mut tracer, mut extractor) = (Tracer::new(), self.extractor(0));
        let mut events = Vec::new();
        for &byte in text {
            if matcher.advance_traced(TokenId::from_raw(u32::from(byte)), &mut tracer).is_err() {
                break;
            }
            events.extend(extractor.push(tracer.drain()));
        }
        let complete = matcher.is_complete();
        events.extend(extractor.push(tracer.finish()));
        events.extend(extractor.finish(complete));
        Ok(Turn::collect(&events))
    }
}

fn report(
    format: &WireFormat,
    request: &ToolRequest,
    scanned: ScannedTurn,
    difference: Difference,
) -> Reading {
    let mut turn = Turn { text: scanned.text, reasoning: scanned.reasoning, ..Turn::default() };
    let mut differences = vec![difference];
    differences.extend(scanned.malformed.into_iter().map(|at| Difference::Malformed { at }));
    if scanned.open_reasoning {
        differences.push(Difference::OpenReasoning);
    }
    for (k, ScannedCall { mut call, has_end, repeated }) in scanned.calls.into_iter().enumerate() {
        call.name = offered_name(format, request, &call).unwrap_or(call.name);
        let tool = request.tools.iter().find(|tool| tool.name() == call.name);
        let is_custom = tool.is_some_and(|tool| tool.kind() == CallKind::Custom);
        if let (true, Some(input)) = (is_custom, read_input(&call.arguments)) {
            (call.arguments, call.kind) = (input, CallKind::Custom);
        }
        match tool.filter(|tool| request.may_call(tool.name())) {
            None => {
                differences.push(Difference::UnknownTool { call: k, name: call.name.clone() });
            }
            // The arguments are not the one string that stands for an input.
            Some(_) if is_custom && call.kind == CallKind::Function => {
                differences.push(Difference::Arguments { call: k, at: 0 });
            }
            Some(tool) => {
                let at = mismatch(format, request, tool, &call.arguments);
                differences.extend(at.map(|at| Difference::Arguments { call: k, at }));
            }
        }
        let repeated = unique(repeated).into_iter();
        differences.extend(repeated.map(|name| Difference::RepeatedMember { call: k, name }));
        if !has_end {
            differences.push(Difference::Unended { call: k });
        }
        turn.calls.push(call);
    }
    turn.incomplete = scanned.cut.map(|(why, partial)| Incomplete { why, call: None, partial });
    Reading { turn, differences }
}

/// The offered tool that an unknown name probably means. Models add types, namespaces and numbers
/// to names, as in ids: the name without them is tried. If the name is a made-up id alone, it means
/// the only tool whose schema the arguments match.
fn offered_name(format: &WireFormat, request: &ToolRequest, call: &Call) -> Option<String> {
    let known = |name: &str| request.tools.iter().any(|tool| tool.name() == name);
    if known(&call.name) {
        return None;
    }
    let name = call.name.split("<|").next().unwrap_or_default().trim();
    let bare = ["functions.", "functions_"]
        .iter()
        .find_map(|space| name.strip_prefix(space))
        .unwrap_or(name);
    let unnumbered = bare.trim_end_matches(|c: char| c.is_ascii_digit());
    let unnumbered = if unnumbered.len() < bare.len() {
        unnumbered.trim_end_matches([':', '_', '.'])
    } else {
        bare
    };
    if let Some(found) = [name, bare, unnumbered].into_iter().find(|name| known(name)) {
        return Some(found.to_owned());
    }
    let mut fitting = request.tools.iter().filter(|tool| {
        tool.kind() == CallKind::Function
            && mismatch(format, request, tool, &call.arguments).is_none()
    });
    let tool = fitting.next().filter(|_| unnumbered == "call")?;
    fitting.next().is_none().then(|| tool.name().to_owned())
}

/// The offset at which arguments stop matching their tool's schema. `None` if they match.
fn mismatch(
    format: &WireFormat,
    request: &ToolRequest,
    tool: &Tool,
    arguments: &str,
) -> Option<usize> {
    let schema = match tool {
        Tool::Function(function) => request.arguments_schema(function),
        Tool::Custom(custom) => {
            let (grammar, _) = custom.grammar(&request.limits).ok()??;
            return grammar_mismatch(&grammar, request, arguments);
        }
        builtin => format.parameters(builtin)?,
    };
    // The order of members is not a difference, unless the schema can be lowered with an order
    // only.
    let orders = [MemberOrder::Any, request.schema_options.order];
    let grammar = orders.into_iter().find_map(|order| {
        let options = request.schema_options.with_order(order).with_policy(Policy::Strict);
        let (schema, registry, limits) = (&schema, &request.registry, &request.limits);
        let source = SchemaSource { schema, registry, options, limits };
        Some(json_schema::lower_reported(source).ok()?.grammar)
    })?;
    grammar_mismatch(&grammar, request, arguments)
}

/// The offset at which a text stops being a sentence of the grammar. `None` if it is a sentence.
fn grammar_mismatch(grammar: &Grammar, request: &ToolRequest, text: &str) -> Option<usize> {
    let compiled = Arc::new(Compiled::new(grammar, &request.limits).ok()?);
    let mut recognizer = Recognizer::with_limits(compiled, &request.limits);
    match recognizer.push(text.as_bytes()) {
        Ok(()) => (!recognizer.is_complete()).then_some(text.len()),
        Err(rejected) => Some(rejected.offset()),
    }
}
