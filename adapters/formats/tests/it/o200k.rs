//! Harmony with its real vocabulary: real calls, encoded by the model's tokenizer, token by token
//! under the mask.

use louver_test_support::text_if_present;
use std::sync::Arc;
use std::time::{Duration, Instant};

use louver::engine::{Engine, EngineOptions};
use louver::ids::TokenId;
use louver::mask::bit;
use louver::matcher::Tracer;
use louver::vocab::Vocabulary;
use louver_formats::{Call, Catalog, Turn, python_json};
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::harness::{SEED, all_cases, request};

/// The vocabulary: ordinary tokens, then special tokens.
const ORDINARY: u32 = 199_998;

fn vocabulary(bpe: &CoreBPE) -> Vocabulary {
    let specials: Vec<(u32, &str)> = bpe
        .special_tokens()
        .into_iter()
        .map(|name| (bpe.encode_with_special_tokens(name)[0], name))
        .collect();
    let width = specials.iter().map(|(id, _)| id + 1).max().expect("special tokens");
    let mut builder = Vocabulary::builder(width as usize);
    for (id, bytes) in (0..ORDINARY).zip(bpe._decode_native_and_split((0..ORDINARY).collect())) {
        builder.token(id, &bytes);
    }
    for (id, name) in specials {
        builder.special(id, name);
        if name == "<|return|>" || name == "<|call|>" {
            builder.stop(id);
        }
    }
    builder.build().expect("vocabulary")
}

#[test]
fn real_calls_on_the_models_vocabulary_if_present() {
    let Some(file) = text_if_present("toolcalls-dev.jsonl") else { return };
    let bpe = tiktoken_rs::o200k_harmony().expect("o200k");
    let vocab = Arc::new(vocabulary(&bpe));
    assert_eq!(vocab.special("<|call|>"), Some(TokenId::from_raw(200_012)));
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let format = Catalog::shipped().get("harmony").expect("format").bind(&vocab);
    let mut mask = vec![0; vocab.mask_words()];
    let (mut masks, mut matchers, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
    for line in file.lines().step_by(if all_cases() { 1 } else { 30 }) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let call =
            |c: &Value| Call::new(c["name"].as_str().expect("name"), python_json(&c["arguments"]));
        let want = Turn::default()
            .with_reasoning(case["question"].as_str().expect("question"))
            .with_text("I will look into this.")
            .with_calls(case["calls"].as_array().expect("calls").iter().map(call).collect());
        let request = request(&case["tools"].to_string(), &json!("auto"));
        let begin = Instant::now();
        let lowered = format.lower(&request).expect("lowers");
        let mut matcher = engine.compile(lowered.grammar().clone()).expect("compiles").matcher();
        matchers.push(begin.elapsed());
        let mut first = true;
        let (mut tracer, mut extractor, mut events) =
            (Tracer::new(), lowered.extractor(SEED), Vec::new());
        for token in bpe.encode_with_special_tokens(&format.render(&want).expect("renders")) {
            let token = TokenId::from_raw(token);
            let begin = Instant::now();
            matcher.fill_mask(&mut mask);
            if std::mem::take(&mut first) {
                firsts.push(begin.elapsed());
            }
            assert!(bit(&mask, token), "{}: token {token} is masked", case["id"]);
            matcher.advance_traced(token, &mut tracer).expect("the mask allowed it");
            masks.push(begin.elapsed());
            events.extend(extractor.push(tracer.drain()));
        }
        assert!(matcher.is_complete(), "{}", case["id"]);
        events.extend(extractor.push(tracer.finish()));
        events.extend(extractor.finish(true));
        let mut turn = Turn::collect(&events);
        turn.calls.iter_mut().for_each(|call| call.id.clear());
        assert_eq!(turn, want, "{}", case["id"]);
    }
    println!("{} cases, {} tokens", matchers.len(), masks.len());
    for (what, times) in [
        ("to a matcher", &mut matchers),
        ("first mask", &mut firsts),
        ("mask, advance", &mut masks),
    ] {
        times.sort_unstable();
        let sum: Duration = times.iter().sum();
        let at = |p: usize| times[(times.len() * p / 100).min(times.len() - 1)];
        println!("{what}: avg {:?}, p50 {:?}, p99 {:?}", sum / times.len() as u32, at(50), at(99));
    }
    assert!(matchers.len() > 30);
}

#[test]
fn spelled_out_markers_are_text() {
    let bpe = tiktoken_rs::o200k_harmony().expect("o200k");
    let vocab = Arc::new(vocabulary(&bpe));
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let format = Catalog::shipped().get("harmony").expect("format").bind(&vocab);
    let lowered = format.lower(&request(r#"[{"name": "f"}]"#, &json!("auto"))).expect("lowers");
    let mut matcher = engine.compile(lowered.grammar().clone()).expect("compiles").matcher();
    let begin = bpe.encode_with_special_tokens("<|channel|>final<|message|>");
    let spelled = bpe.encode_ordinary(
        "a <|return|> b <|channel|>commentary to=functions.f<|message|>{}<|call|>",
    );
    let end = bpe.encode_with_special_tokens("<|return|>");
    for &token in begin.iter().chain(&spelled) {
        matcher.advance(TokenId::from_raw(token)).expect("text");
        assert!(!matcher.is_complete());
    }
    matcher.advance(TokenId::from_raw(end[0])).expect("the end");
    assert!(matcher.is_complete());
}
