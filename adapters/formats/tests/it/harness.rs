//! Runs wire text through the grammar and the extractor of a request.

use std::path::PathBuf;
use std::sync::Arc;

use louver::compile::Compiled;
use louver::engine::{Constraint, Engine, EngineOptions};
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::matcher::{Recognizer, Tracer};
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{
    Catalog, Event, LazyTools, LoweredRequest, Parallel, Reasoning, ResponseFormat, Tool,
    ToolChoice, ToolRequest, Turn, WireFormat,
};
use serde_json::Value;

pub(crate) const SEED: u64 = 7;

/// A request from the fields of a case file. Schemas are deferred if possible, so that all tests
/// cover deferred schemas.
pub(crate) fn request(tools: &str, choice: &Value) -> ToolRequest {
    let choice = ToolChoice::parse(&Json::from(choice)).expect("tool_choice");
    ToolRequest::default()
        .with_tools(Tool::parse_text(tools, &Limits::default()).expect("tools"))
        .with_tool_choice(choice.0)
        .with_allowed(choice.1)
        .with_lazy(LazyTools::From(1))
}

pub(crate) fn with(
    mut request: ToolRequest,
    parallel: &str,
    reasoning: &str,
    response: Option<&str>,
) -> ToolRequest {
    request.parallel = match parallel {
        "any" => Parallel::Any,
        "one" => Parallel::One,
        other => panic!("parallel {other}"),
    };
    request.reasoning = match reasoning {
        "optional" => Reasoning::Optional,
        "off" => Reasoning::Off,
        "required" => Reasoning::Required,
        "opened" => Reasoning::Opened,
        other => panic!("reasoning {other}"),
    };
    let schema = |text| Json::parse(text, &Limits::default()).expect("response_format");
    request.response_format = response.map(|text| ResponseFormat::Schema(schema(text)));
    request
}

/// A shipped format, bound to a vocabulary without special tokens.
pub(crate) fn as_text(name: &str) -> WireFormat {
    Catalog::shipped().get(name).expect("format").bind(&Vocabulary::toy(&[]))
}

pub(crate) fn recognizer(lowered: &LoweredRequest) -> Recognizer {
    let compiled = Compiled::new(lowered.grammar().clone(), &Limits::default()).expect("compiles");
    Recognizer::new(Arc::new(compiled))
}

/// Whether the text is a complete turn.
pub(crate) fn accepts(recognizer: &mut Recognizer, wire: &str) -> bool {
    recognizer.reset();
    recognizer.push(wire.as_bytes()).is_ok() && recognizer.is_complete()
}

/// The turn and the events of a text that is given in pieces. Fails with the number of accepted
/// pieces if one is refused.
pub(crate) fn extract(
    lowered: &LoweredRequest,
    pieces: &[&[u8]],
    chunk: usize,
) -> Result<(Turn, Vec<Event>), usize> {
    let constraint = bind(lowered, pieces);
    let mut matcher = constraint.matcher();
    let (mut tracer, mut extractor, mut events) =
        (Tracer::new(), lowered.extractor(SEED), Vec::new());
    for (n, _) in pieces.iter().enumerate() {
        matcher.advance_traced(TokenId::new(257 + n), &mut tracer).map_err(|_| n)?;
        if n % chunk == 0 {
            events.extend(extractor.push(tracer.drain()));
        }
    }
    events.extend(extractor.push(tracer.drain()));
    let complete = matcher.is_complete();
    events.extend(extractor.push(tracer.finish()));
    events.extend(extractor.finish(complete));
    let events = joined(events);
    assert_eq!(events.last(), Some(&Event::End));
    Ok((Turn::collect(&events), events))
}

fn bind(lowered: &LoweredRequest, pieces: &[&[u8]]) -> Constraint {
    let engine = Engine::new(Arc::new(Vocabulary::toy(pieces)), EngineOptions::default());
    engine.compile(lowered.grammar().clone()).expect("compiles")
}

/// The text as single bytes.
pub(crate) fn bytes(wire: &str) -> Vec<&[u8]> {
    wire.as_bytes().chunks(1).collect()
}

/// The text in pieces of 1 to `longest` bytes, by the seed. Code points may be cut.
pub(crate) fn pieces(wire: &[u8], seed: u64, longest: usize) -> Vec<&[u8]> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut rest = wire;
    let mut out = Vec::new();
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (piece, tail) = rest.split_at((1 + state as usize % longest).min(rest.len()));
        out.push(piece);
        rest = tail;
    }
    out
}

/// The events with adjacent deltas joined, which must not depend on chunks.
pub(crate) fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for event in events {
        match (out.last_mut(), &event) {
            (Some(Event::TextDelta { delta: a }), Event::TextDelta { delta: b })
            | (Some(Event::ReasoningDelta { delta: a }), Event::ReasoningDelta { delta: b }) => {
                a.push_str(b)
            }
            (
                Some(Event::ArgumentsDelta { index: i, delta: a }),
                Event::ArgumentsDelta { index: j, delta: b },
            ) if i == j => {
                a.push_str(b);
            }
            _ => out.push(event),
        }
    }
    out
}

pub(crate) fn data(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Whether tests run all cases (`LOUVER_ALL_CASES=1`), and not the part that takes the time of a
/// test.
pub(crate) fn all_cases() -> bool {
    std::env::var_os("LOUVER_ALL_CASES").is_some()
}
