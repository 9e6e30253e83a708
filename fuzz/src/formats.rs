//! Fuzz targets of the wire formats: request bodies, custom tools, and model output, with the
//! default limits. Fuel bounds the work of an input; nothing is timed.

use std::sync::{Arc, OnceLock};

use louver::engine::{Constraint, Engine, EngineOptions, Matcher};
use louver::fuel;
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::mask::bit;
use louver::matcher::{AdvanceError, Tracer};
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{
    Catalog, Event, LoweredRequest, ToolRequest, Turn, TurnCollector, WireFormat,
};
use serde_json::{Value, json};

/// Number of tokens of a walk.
const STEPS: usize = 60;
/// Maximum fuel of one input, in units of about 10 ns: two seconds.
const MAX_FUEL: u64 = 200_000_000;

/// All targets by name.
pub const TARGETS: &[(&str, fn(&[u8]))] =
    &[("request", request), ("custom_tool", custom_tool), ("wire_text", wire_text)];

/// Runs a target. Panics if it exceeds its fuel.
pub fn bounded(target: fn(&[u8]), data: &[u8]) {
    let ((), spent) = fuel::measure(|| target(data));
    assert!(spent <= MAX_FUEL, "{spent} units of fuel");
}

/// All wire formats, with markers spelled as text.
fn formats() -> &'static [WireFormat] {
    static ALL: OnceLock<Vec<WireFormat>> = OnceLock::new();
    ALL.get_or_init(|| {
        Catalog::shipped().formats().iter().map(WireFormat::with_text_markers).collect()
    })
}

/// Selects a wire format by the first byte and returns the rest of the input.
fn select_format(data: &[u8]) -> Option<(&'static WireFormat, &str)> {
    let (&choice, data) = data.split_first()?;
    let all = formats();
    Some((&all[usize::from(choice) % all.len()], std::str::from_utf8(data).ok()?))
}

fn engine() -> Engine {
    let words: Vec<&[u8]> =
        vec![b"{\"", b"\": ", b"\"}", b"<tool", b"</", b"<|", b"aa", b"\n\n", b"name"];
    let options = EngineOptions::default().with_batch_threads(1).with_background_threads(0);
    Engine::new(Arc::new(Vocabulary::toy(&words)), options)
}

/// Request bodies. The first byte selects the wire format.
pub fn request(data: &[u8]) {
    let Some((format, text)) = select_format(data) else { return };
    let Ok(body) = Json::parse(text, &Limits::default()) else { return };
    match ToolRequest::parse(&body) {
        Ok(request) => turn(format, request, text.as_bytes()),
        Err(error) => assert!(!error.faults().is_empty(), "{error}"),
    }
}

/// Grammars of custom tools: Lark, or a regular expression if it begins with `/`. The first byte
/// selects the wire format.
pub fn custom_tool(data: &[u8]) {
    let Some((format, text)) = select_format(data) else { return };
    let (syntax, definition) =
        text.strip_prefix('/').map_or(("lark", text), |pattern| ("regex", pattern));
    let grammar = json!({"syntax": syntax, "definition": definition});
    let tool =
        json!({"type": "custom", "name": "c", "format": {"type": "grammar", "grammar": grammar}});
    let body = json!({"tools": [tool], "tool_choice": "required"});
    if let Ok(request) = ToolRequest::parse(&Json::from(body)) {
        turn(format, request, text.as_bytes());
    }
}

/// Compiles a request and follows the masks of a turn. The events must agree with the turn's text.
fn turn(format: &WireFormat, request: ToolRequest, seed: &[u8]) {
    let (plan, constraint) = match request.compile(&engine(), format) {
        Ok(made) => made,
        Err(error) => return drop(error.to_string()),
    };
    let text = walk(&constraint, seed);
    let turn = extract(&plan, constraint.matcher(), &text);
    assert!(
        turn.calls.iter().all(|call| plan.tools().iter().any(|tool| tool.name == call.name)),
        "{turn:?}"
    );
}

/// The tokens of a walk along the masks.
fn walk(constraint: &Constraint, seed: &[u8]) -> Vec<TokenId> {
    let vocab = constraint.vocab().clone();
    let (mut matcher, mut mask) = (constraint.matcher(), vec![0; vocab.mask_words()]);
    let mut random =
        seed.iter().fold(0x9E37_79B9_u32, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    for _ in 0..STEPS {
        matcher.fill_mask(&mut mask);
        let allowed: Vec<TokenId> =
            (0..vocab.width()).map(TokenId::new).filter(|&t| bit(&mask, t)).collect();
        assert!(!allowed.is_empty(), "nothing is allowed after {:?}", matcher.tokens());
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let token = allowed[(random >> 16) as usize % allowed.len()];
        if matcher.limit().is_some() || vocab.is_stop(token) {
            break;
        }
        match matcher.advance(token) {
            Ok(()) => {}
            Err(AdvanceError::Limit { .. }) => break,
            Err(error) => panic!("token {token} is in the mask: {error}"),
        }
    }
    matcher.tokens().to_vec()
}

/// Parses tokens as far as the grammar accepts them.
fn extract(plan: &LoweredRequest, mut matcher: Matcher, tokens: &[TokenId]) -> Turn {
    let (mut tracer, mut extractor, mut turn) =
        (Tracer::new(), plan.extractor(0), TurnCollector::new());
    for &token in tokens {
        if matcher.advance_traced(token, &mut tracer).is_err() {
            break;
        }
        extractor.push(tracer.drain()).iter().for_each(|event| turn.push(event));
    }
    extractor.push(tracer.finish()).iter().for_each(|event| turn.push(event));
    let last = extractor.finish(matcher.is_complete());
    assert_eq!(last.last(), Some(&Event::End));
    last.iter().for_each(|event| turn.push(event));
    turn.finish()
}

/// Model output, with and without a constraint. The first byte selects the wire format.
pub fn wire_text(data: &[u8]) {
    let Some((format, text)) = select_format(data) else { return };
    let request = confusing_tools();
    let Ok((plan, constraint)) = request.clone().compile(&engine(), format) else { return };
    let tokens: Vec<TokenId> =
        text.bytes().map(|byte| TokenId::from_raw(u32::from(byte))).collect();
    drop(extract(&plan, constraint.matcher(), &tokens));
    // The lenient parser of unconstrained output.
    let reading = format.read_unconstrained(&request, text).expect("the request compiles");
    if reading.differences.is_empty() {
        let constrained = extract(&plan, constraint.matcher(), &tokens);
        assert_eq!(reading.turn.calls.len(), constrained.calls.len());
        assert_eq!(reading.turn.text, constrained.text);
    }
}

/// Tools with names and arguments that resemble markers.
fn confusing_tools() -> ToolRequest {
    let function = |name: &str, parameters: Value| json!({"name": name, "parameters": parameters});
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    let tools = json!([
        function("get_weather", city),
        function("ping", json!({})),
        function("</tool_call>", json!({"type": "object", "additionalProperties": {"type": "string"}})),
        {"type": "custom", "name": "run"},
    ]);
    ToolRequest::parse(&Json::from(json!({"tools": tools}))).expect("a request")
}
