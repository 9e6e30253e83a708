//! Deferred schemas: tools whose schemas are lowered when a parse reaches their arguments.

use std::sync::Arc;

use louver::engine::{Engine, EngineOptions, Matcher};
use louver::ids::TokenId;
use louver::internals::MaskTuning;
use louver::ir::Expr;
use louver::vocab::Vocabulary;
use louver_formats::{Call, Catalog, LazyTools, LowerError, LoweredRequest, RenderError, Turn};
use serde_json::{Value, json};

use crate::harness::request;

/// Tools whose schemas can be deferred, and one whose schema cannot.
fn tools() -> Value {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    json!([
        tool(
            "get_weather",
            json!({"type": "object", "properties": {
            "city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "kelvin"]}, "days": {"type": "integer"}
        }, "required": ["city"], "additionalProperties": false})
        ),
        tool(
            "get_time",
            json!({"type": "object", "properties": {"zones": {"type": "array", "items": {"type": "string"}, "minItems": 1}}})
        ),
        tool(
            "get_stock",
            json!({"type": "object", "properties": {"symbol": {"type": "string", "pattern": "^[A-Z]{1,5}$"}}, "required": ["symbol"]})
        ),
        tool(
            "plan",
            json!({"type": "object", "properties": {"steps": {"type": "array", "items": {"type": "object", "properties": {
            "what": {"type": "string"}, "hours": {"type": "number", "minimum": 0}
        }, "required": ["what"]}}}})
        ),
    ])
}

fn turns() -> Vec<Turn> {
    let call = |name: &str, arguments: &str| Call::new(name, arguments);
    let turn = |text: &str, calls: Vec<Call>| Turn::default().with_text(text).with_calls(calls);
    let weather = call("get_weather", r#"{"city": "São \"Paulo\"", "unit": "kelvin", "days": 3}"#);
    let time = call("get_time", r#"{"zones": ["UTC", "CET"]}"#);
    let stock = call("get_stock", r#"{"symbol": "ABC"}"#);
    let plan = call(
        "plan",
        r#"{"steps": [{"what": "a", "hours": 0.5}, {"what": "b"}], "more": {"x": [1, null]}}"#,
    );
    vec![
        turn("Nothing to do.", vec![]),
        turn("", vec![weather.clone()]),
        turn("", vec![stock, weather, plan.clone()]),
        turn("", vec![time.clone(), time, plan]),
    ]
}

/// The number of deferred schemas in a request, and of those that were lowered.
fn deferred(lowered: &LoweredRequest) -> (usize, usize) {
    let deferred = lowered.grammar().rules.iter().filter_map(|rule| match &rule.body {
        Expr::Deferred(deferred) => Some(deferred.is_made()),
        _ => None,
    });
    deferred.fold((0, 0), |(all, made), is_made| (all + 1, made + usize::from(is_made)))
}

fn mask(matcher: &mut Matcher, vocab: &Vocabulary) -> Vec<u32> {
    let mut mask = vec![0; vocab.mask_words()];
    matcher.fill_mask(&mut mask);
    mask
}

/// In every family, the masks along a turn are the same with and without deferred schemas, and only
/// the schemas of called tools are lowered.
#[test]
fn deferred_schemas_do_not_change_masks() {
    let text = tools().to_string();
    let words = [
        "{\"", "\": ", "\", \"", "\"}", "city", "get_", "weather", ": \"", "}}", "[{\"", "ABC",
        ", \"", "0.", "steps",
    ];
    let words: Vec<&[u8]> = words.iter().map(|w| w.as_bytes()).collect();
    let vocab = Arc::new(Vocabulary::toy(&words));
    let (mut families, mut read) = (0, 0);
    for format in Catalog::shipped().formats() {
        // Markers that may be special tokens are text here.
        let format = format.with_text_markers();
        let eager = format.lower(&request(&text, &json!("auto")).with_lazy(LazyTools::Never));
        let eager = match eager {
            Ok(lowered) => lowered,
            Err(LowerError::Parts(_)) => continue,
            Err(error) => panic!("{}: {error}", format.name),
        };
        assert_eq!(deferred(&eager), (0, 0));
        for turn in turns() {
            let wire = match format.render(&turn) {
                Ok(wire) => wire,
                Err(RenderError::TextBesideCalls) => continue,
                Err(error) => panic!("{}: {error}", format.name),
            };
            let lazy = format.lower(&request(&text, &json!("auto"))).expect("lowers");
            let (all, made) = deferred(&lazy);
            assert_eq!(made, 0, "{}", format.name);
            assert_eq!(all % 3, 0, "{}: three of four in each style", format.name);
            assert!(all > 0, "{}: none is deferred", format.name);
            families += 1;
            for direct_walk in [0, 1024] {
                let engine = Engine::new(
                    vocab.clone(),
                    EngineOptions::default().with_tuning(MaskTuning::with_direct_walk(direct_walk)),
                );
                let [mut one, mut other] = [&lazy, &eager].map(|lowered| {
                    engine.compile(lowered.grammar().clone()).expect("compiles").matcher()
                });
                for (at, &byte) in wire.as_bytes().iter().enumerate() {
                    let said = &wire.as_bytes()[..at];
                    assert_eq!(
                        mask(&mut one, &vocab),
                        mask(&mut other, &vocab),
                        "{} after {:?}",
                        format.name,
                        String::from_utf8_lossy(said)
                    );
                    let token = TokenId::from_raw(u32::from(byte));
                    assert_eq!(
                        one.advance(token).is_ok(),
                        other.advance(token).is_ok(),
                        "{} after {:?}",
                        format.name,
                        String::from_utf8_lossy(said)
                    );
                    read += 1;
                }
                assert_eq!(one.is_complete(), other.is_complete());
                assert!(one.limit().is_none());
            }
            if turn.calls.is_empty() {
                assert_eq!(deferred(&lazy).1, 0, "{}: made without a call", format.name);
            }
        }
    }
    assert!(families >= 80 && read > 5_000, "{families} turns of families, {read} bytes");
}

/// All errors of schemas are found when the request is lowered.
#[test]
fn deferred_schemas_do_not_hide_errors() {
    let mut tools = tools();
    tools[1]["function"]["parameters"]["properties"]["zones"]["minItems"] = json!(-1);
    tools[3]["function"]["parameters"]["properties"]["steps"]["type"] = json!("list");
    let format = Catalog::shipped().get("hermes").expect("hermes").with_text_markers();
    let Err(LowerError::Parts(errors)) = format.lower(&request(&tools.to_string(), &json!("auto")))
    else {
        panic!("schemas with faults");
    };
    let pointers: Vec<&str> = errors.schemas.iter().map(|error| &*error.pointer).collect();
    assert_eq!(pointers.len(), 2, "{pointers:?}");
    assert!(
        pointers[0].starts_with("/tools/1/") && pointers[1].starts_with("/tools/3/"),
        "{pointers:?}"
    );
}
