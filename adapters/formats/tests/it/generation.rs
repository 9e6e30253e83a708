//! Random tokens under the mask: whatever a model prefers, calls are complete and valid, and a turn
//! that is cut off is reported as incomplete.

use std::collections::HashSet;
use std::sync::Arc;

use louver::engine::{Engine, EngineOptions, Matcher};
use louver::ids::TokenId;
use louver::matcher::Tracer;
use louver::vocab::Vocabulary;
use louver_formats::{Call, Catalog, LoweredRequest, RenderOptions, Turn};
use serde_json::{Value, json};

use crate::harness::{SEED, as_text, request};
use crate::mutation::{tools, validators};

const SEEDS: u64 = 40;
const MAX_TOKENS: usize = 160;
/// The most tokens of a generation with nested tags. Most of them end before.
const MAX_NESTED_TOKENS: usize = 400;
/// Pieces of calls with nested tags.
const NESTED: [&[u8]; 16] = [
    b"]<]minimax[>[",
    b"]<]minimax[>[<item>",
    b"]<]minimax[>[</item>",
    b"]<]minimax[>[</",
    b"<free>",
    b"</any>",
    b"null",
    b"true",
    b"12",
    b"-1.5",
    b"</list>",
    b"</union>",
    b"<x>",
    b"<y>",
    b"<k>b",
    b"</some>",
];
/// Tokens of several bytes, some of them across markers.
const EXTRA: [&[u8]; 8] = [
    b"<tool_call>",
    b"\n</tool_call>",
    b"}\n<",
    b"\": ",
    b"{\"",
    b"</think>\n\n",
    b"\"}}\n",
    b"arguments",
];

/// The numbers of calls go on after a call of a built-in tool, which has a syntax of its own.
#[test]
fn calls_are_numbered_through_the_turn() {
    let catalog = Catalog::shipped();
    let mut format = catalog.get("kimi_k2").unwrap().clone();
    format.builtin.clone_from(&catalog.get("llama3").unwrap().builtin);
    let calls = ["f", "python", "g"].map(|name| Call::new(name, r#"{"code": "1"}"#));
    let turn = Turn::default().with_calls(calls.to_vec());
    let options = RenderOptions::default().with_builtins(&["python"]);
    let text = format.render_with(&turn, options).unwrap();
    assert!(text.contains("functions.f:0") && text.contains("functions.g:2"), "{text}");
}

/// A token that the mask allows, chosen by the state.
fn choose(matcher: &mut Matcher, vocab: &Vocabulary, state: &mut u64) -> TokenId {
    let mut mask = vec![0u32; vocab.mask_words()];
    matcher.fill_mask(&mut mask);
    let allowed: Vec<TokenId> = (0..vocab.width())
        .filter(|t| mask[t / 32] >> (t % 32) & 1 == 1)
        .map(TokenId::new)
        .collect();
    assert!(!allowed.is_empty(), "dead end");
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    // An allowed stop token is taken in half of the steps, or text would hardly end.
    match allowed.iter().find(|t| vocab.is_stop(**t)) {
        Some(stop) if *state >> 40 & 1 == 0 => *stop,
        _ => allowed[(*state >> 20) as usize % allowed.len()],
    }
}

/// One generation of at most so many tokens after a forced prefix, and whether a stop token ended
/// it.
fn generate(
    lowered: &LoweredRequest,
    engine: &Engine,
    (prefix, most): (&str, usize),
    seed: u64,
) -> (Turn, bool) {
    let vocab = engine.vocab().clone();
    let mut matcher = engine.compile(lowered.grammar().clone()).expect("compiles").matcher();
    let (mut tracer, mut extractor, mut events) =
        (Tracer::new(), lowered.extractor(SEED), Vec::new());
    for byte in prefix.bytes() {
        matcher.advance_traced(TokenId::from_raw(u32::from(byte)), &mut tracer).expect("prefix");
    }
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..most {
        let token = choose(&mut matcher, &vocab, &mut state);
        matcher.advance_traced(token, &mut tracer).expect("the mask allowed it");
        events.extend(extractor.push(tracer.drain()));
        if matcher.is_terminated() {
            break;
        }
    }
    let ended = matcher.is_terminated();
    let complete = ended || matcher.is_complete();
    events.extend(extractor.push(tracer.finish()));
    events.extend(extractor.finish(complete));
    (Turn::collect(&events), ended)
}

#[test]
fn random_tokens_under_the_mask_make_valid_calls() {
    let tools = tools();
    let schemas = validators(&tools);
    let engine = Engine::new(Arc::new(Vocabulary::toy(&EXTRA)), EngineOptions::default());
    let named = json!({"type": "function", "name": "book"});
    for (choice, prefix, at_least) in [
        (json!("required"), "", 1),
        (named, "", 1),
        (json!("auto"), "Well, <tool_call>\n", 1),
        (json!("required"), "<think>", 1),
        (json!("none"), "", 0),
    ] {
        let lowered =
            as_text("qwen3").lower(&request(&tools.to_string(), &choice)).expect("lowers");
        let (mut ended_turns, mut cut_turns) = (0, 0);
        for seed in 0..SEEDS {
            let (turn, ended) = generate(&lowered, &engine, (prefix, MAX_TOKENS), seed);
            if ended {
                ended_turns += 1;
                assert_eq!(turn.incomplete, None, "{choice} {seed}");
                assert!(turn.calls.len() >= at_least, "{choice} {seed}: {turn:?}");
            } else {
                cut_turns += usize::from(turn.incomplete.is_some());
            }
            for call in &turn.calls {
                let value: Value =
                    serde_json::from_str(&call.arguments).expect("arguments are JSON");
                assert!(schemas[call.name.as_str()].is_valid(&value), "{choice} {seed}: {call:?}");
            }
        }
        println!(
            "{choice} after {prefix:?}: {ended_turns} of {SEEDS} ended, {cut_turns} were cut off"
        );
        assert!(ended_turns > 0 || prefix == "<think>", "{choice}: no turn ended");
    }
}

/// Values between tags, read by the types of their places, are those that the grammar has allowed.
#[test]
fn random_tokens_between_nested_tags_make_valid_calls() {
    let node = json!({"type": "object", "properties": {"v": {"type": "string", "maxLength": 2},
        "next": {"$ref": "#/$defs/node"}}, "additionalProperties": false});
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "additionalProperties": false, "$defs": {"node": node}, "properties": {
            "s": {"type": "string", "maxLength": 5},
            "u": {"type": ["string", "integer", "null"], "maxLength": 4},
            "list": {"type": "array", "items": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "boolean"}]}, "maxItems": 3},
            "tuple": {"type": "array", "prefixItems": [{"type": "string", "pattern": "^[0-9]{1,2}$"}, {"type": "integer"}],
                "items": false, "minItems": 1},
            "union": {"type": ["object", "array", "number"], "properties": {"a": {"enum": ["1", 1, "x"]}},
                "additionalProperties": {"type": "boolean"}, "maxProperties": 2, "maxItems": 2},
            "either": {"oneOf": [
                {"type": "object", "required": ["k", "x"], "additionalProperties": false,
                    "properties": {"k": {"const": "a"}, "y": {},
                    "x": {"type": "string", "maxLength": 2}}},
                {"type": "object", "required": ["k", "x"], "additionalProperties": false,
                    "properties": {"k": {"const": "b"},
                    "x": {"type": ["integer", "array"], "minimum": -9, "maximum": 9, "maxItems": 1,
                        "items": {"type": "boolean"}},
                    "y": {"type": "object", "maxProperties": 1,
                        "additionalProperties": {"type": "null"}}}}]},
            "some": {"type": "array", "maxItems": 3, "contains": {"type": "boolean"},
                "maxContains": 2, "items": {"type": ["string", "boolean"], "maxLength": 2}},
            "free": {"type": "object", "maxProperties": 2},
            "any": {},
            "node": {"$ref": "#/$defs/node"}}}}}]);
    let schema = jsonschema::validator_for(&tools[0]["function"]["parameters"]).expect("schema");
    let engine = Engine::new(Arc::new(Vocabulary::toy(&NESTED)), EngineOptions::default());
    let lowered = as_text("minimax_m3")
        .lower(&request(&tools.to_string(), &json!("required")))
        .expect("lowers");
    let call = "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">";
    let (mut members, mut complete) = (HashSet::new(), 0);
    let names = ["s", "u", "list", "tuple", "union", "either", "some", "free", "any", "node"];
    for (k, member) in names.iter().enumerate() {
        let prefix = format!("{call}]<]minimax[>[<{member}>");
        for seed in 0..SEEDS {
            let seed = seed * 10 + k as u64;
            let (turn, _) = generate(&lowered, &engine, (&prefix, MAX_NESTED_TOKENS), seed);
            for call in &turn.calls {
                let value: Value = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|error| panic!("{seed}: {error}: {call:?}"));
                assert!(schema.is_valid(&value), "{seed}: {call:?}");
                complete += 1;
                members.extend(value.as_object().expect("object").keys().cloned());
            }
        }
    }
    println!("{complete} calls with {members:?}");
    assert!(complete > 50 && members.len() == names.len(), "{complete} calls with {members:?}");
}
