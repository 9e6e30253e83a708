//! Output that was generated without a constraint: what it says as far as it can be read, and how it differs from what
//! the constraint would have allowed. Reads whole texts; markers count by their spelling.

use std::sync::Arc;

use louver::compile::{CompileError, Compiled};
use louver::engine::{Engine, EngineOptions};
use louver::front::json_schema::{self, MemberOrder, SchemaOptions};
use louver::fuel;
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::matcher::{Recognizer, Tracer};
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use serde::{Deserialize, Serialize};

use crate::arguments::{Reader, read_input};
use crate::format::WireFormat;
use crate::plan::Plan;
use crate::request::{LowerError, Reasoning, ToolRequest};
use crate::scan::{Scan, Scanned};
use crate::turn::{Call, CallKind, Incomplete, Turn};

/// An unconstrained output, read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// What it says.
    pub turn: Turn,
    /// How it differs from what the constraint allows; none: it does not.
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
    /// The constraint would not let the turn end here.
    Unfinished,
    /// A call of a tool that may not be called.
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
        /// The first byte of the arguments, as JSON text, that does not; their length if they end too early.
        at: usize,
    },
    /// A call whose end is missing.
    Unended {
        /// The call's number.
        call: usize,
    },
    /// What looks like the beginning of a call and cannot be read as one: it is left as text.
    Malformed {
        /// The byte's offset.
        at: usize,
    },
    /// A block of reasoning that does not end.
    OpenReasoning,
}

/// Why an output cannot be compared with a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The request cannot be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// Its grammar does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl WireFormat {
    /// Reads an output that was generated without a constraint. What the constraint allows is read as under the
    /// constraint; of anything else, reasoning, text and calls are read as far as they can be told, whatever their
    /// spacing, names and arguments, and the differences are reported. Cost: that of lowering and compiling the
    /// request, then linear.
    pub fn read(&self, request: &ToolRequest, text: &str) -> Result<Reading, ReadError> {
        // The format may be a user's own file: all that is made of it has the request's budget of
        // work.
        fuel::with_default_budget(
            || request.limits.compile_budget(text.len()),
            || self.read_within(request, text),
        )
    }

    fn read_within(&self, request: &ToolRequest, text: &str) -> Result<Reading, ReadError> {
        let format = self.spelled();
        let plan = format.lower(request)?;
        let compiled = Arc::new(Compiled::new(plan.grammar().clone(), &request.limits)?);
        let mut recognizer = Recognizer::with_limits(compiled.clone(), &request.limits);
        let difference = match recognizer.push(text.as_bytes()) {
            Ok(()) if recognizer.is_complete() => {
                return Ok(Reading {
                    turn: as_constrained(&plan, compiled, text)?,
                    differences: Vec::new(),
                });
            }
            Ok(()) => Difference::Unfinished,
            Err(_) => Difference::Refused { at: refused_at(&mut recognizer, text) },
        };
        let scanned = Scan { format: &format, plan: &plan }
            .turn(text, request.reasoning == Reasoning::Opened);
        Ok(report(&plan, request, scanned, difference))
    }
}

fn refused_at(recognizer: &mut Recognizer, text: &str) -> usize {
    recognizer.reset();
    text.bytes().position(|byte| recognizer.push(&[byte]).is_err()).unwrap_or(text.len())
}

fn as_constrained(plan: &Plan, compiled: Arc<Compiled>, text: &str) -> Result<Turn, ReadError> {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let mut matcher = engine.bind(compiled)?.matcher();
    let (mut tracer, mut extractor, mut events) = (Tracer::new(), plan.extractor(0), Vec::new());
    for byte in text.bytes() {
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

fn report(plan: &Plan, request: &ToolRequest, scanned: Scanned, difference: Difference) -> Reading {
    let mut reading = Reading::default();
    reading.differences.push(difference);
    reading.turn.text = scanned.text;
    reading.turn.reasoning = scanned.reasoning;
    reading
        .differences
        .extend(scanned.malformed.into_iter().map(|at| Difference::Malformed { at }));
    if scanned.open_reasoning {
        reading.differences.push(Difference::OpenReasoning);
    }
    for (k, (mut call, ended)) in scanned.calls.into_iter().enumerate() {
        call.name = offered_name(plan, request, &call).unwrap_or(call.name);
        let custom =
            plan.tools().iter().any(|tool| tool.name == call.name && tool.kind == CallKind::Custom);
        if let (true, Some(input)) = (custom, read_input(&call.arguments)) {
            (call.arguments, call.kind) = (input, CallKind::Custom);
        }
        match plan
            .tools()
            .iter()
            .position(|tool| tool.name == call.name && tool.arguments.is_some())
        {
            None => reading
                .differences
                .push(Difference::UnknownTool { call: k, name: call.name.clone() }),
            // Not the one string that stands for an input.
            Some(_) if custom && call.kind == CallKind::Function => {
                reading.differences.push(Difference::Arguments { call: k, at: 0 });
            }
            Some(tool) => {
                let at = mismatch(plan, request, tool, &call.arguments);
                reading.differences.extend(at.map(|at| Difference::Arguments { call: k, at }));
            }
        }
        if !ended {
            reading.differences.push(Difference::Unended { call: k });
        }
        reading.turn.calls.push(call);
    }
    if let Some((why, partial)) = scanned.cut {
        reading.turn.incomplete = Some(Incomplete { why, call: None, partial });
    }
    reading
}

/// The tool that a name stands for which is no tool's: without a type behind it, a namespace before
/// it or a number behind it, as models take them from ids; or, of a made-up id alone, the only tool
/// that the arguments fit.
fn offered_name(plan: &Plan, request: &ToolRequest, call: &Call) -> Option<String> {
    let known = |name: &str| plan.tools().iter().any(|tool| tool.name == name);
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
    let mut fitting = (0..plan.tools().len()).filter(|&tool| {
        plan.tools()[tool].kind == CallKind::Function
            && mismatch(plan, request, tool, &call.arguments).is_none()
    });
    let tool = fitting.next().filter(|_| unnumbered == "call")?;
    fitting.next().is_none().then(|| plan.tools()[tool].name.clone())
}

/// Where arguments stop matching their tool's schema.
fn mismatch(plan: &Plan, request: &ToolRequest, tool: usize, arguments: &str) -> Option<usize> {
    let schema = match request.tools.get(tool) {
        Some(tool) => request.arguments_schema(tool).into_owned(),
        None if tool < request.functions() => {
            return input_mismatch(request, tool - request.tools.len(), arguments);
        }
        None => plan
            .inner
            .format
            .builtin
            .as_ref()?
            .schema(request.builtins.get(tool - request.functions())?)?,
    };
    // Members in any order where that is possible: their order is no fault.
    let orders = [MemberOrder::Any, request.schema_options.order];
    let grammar = orders.into_iter().find_map(|order| {
        let options = SchemaOptions { order, ..request.schema_options };
        json_schema::lower(&schema, &options, &request.limits).ok()
    })?;
    let mut recognizer = Recognizer::with_limits(
        Arc::new(Compiled::new(&grammar, &request.limits).ok()?),
        &request.limits,
    );
    match recognizer.push(arguments.as_bytes()) {
        Ok(()) => (!recognizer.is_complete()).then_some(arguments.len()),
        Err(_) => Some(refused_at(&mut recognizer, arguments)),
    }
}

/// Where a custom tool's input stops being a sentence of its grammar.
fn input_mismatch(request: &ToolRequest, custom: usize, input: &str) -> Option<usize> {
    let (grammar, _) = request.customs.get(custom)?.grammar(&request.limits).ok()??;
    let compiled = Arc::new(Compiled::new(&grammar, &request.limits).ok()?);
    let mut recognizer = Recognizer::with_limits(compiled, &request.limits);
    match recognizer.push(input.as_bytes()) {
        Ok(()) => (!recognizer.is_complete()).then_some(input.len()),
        Err(_) => Some(refused_at(&mut recognizer, input)),
    }
}

/// A call that was read, from its name and JSON text; none if that is no object.
pub(crate) fn call(name: &str, arguments: &str) -> Option<Call> {
    let value = Json::parse(arguments, &Limits::default()).ok()?;
    // Some models write the object as a string.
    let inner = match &value {
        Json::String(text) => Json::parse(text, &Limits::default()).ok()?,
        _ => value,
    };
    matches!(inner, Json::Object(_)).then(|| {
        let mut text = String::new();
        crate::arguments::spaced(&mut text, &inner);
        Call { id: String::new(), name: name.to_owned(), arguments: text, kind: CallKind::Function }
    })
}

/// Everything that a reader makes of a text.
pub(crate) fn read_whole(mut reader: Reader, text: &str) -> String {
    reader.push(text.as_bytes()) + &reader.close()
}
