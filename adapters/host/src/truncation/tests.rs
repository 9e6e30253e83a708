//! Tests of truncation safety with simulated models.

use louver_test_support::data_if_present;
use std::sync::Arc;

use louver::engine::{Engine, EngineOptions};
use louver::front::json_schema::SchemaOptions;
use louver::vocab::Vocabulary;
use louver_hf_tokenizers::VocabOptions;
use serde_json::json;

use super::*;
use crate::options::Draw;
use crate::sampler::split_mix;

/// Simulates a model that always prefers one token. Returns the text, whether it is complete,
/// and whether the mask was narrowed.
fn run(schema: &str, preferred: u8, limit: usize) -> (String, bool, bool) {
    let vocab = Vocabulary::toy(&[b"\":", b"{\"", b"\"}"]);
    run_model(schema, vocab, limit, |_, row| row[usize::from(preferred)] = 5.0)
}

/// Simulates a model that sets the logits of each position.
fn run_model(
    schema: &str,
    vocab: Vocabulary,
    limit: usize,
    model: impl Fn(usize, &mut [f32]),
) -> (String, bool, bool) {
    let engine = Engine::new(Arc::new(vocab), EngineOptions::default());
    let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
    run_matcher(constraint.matcher(), limit, model)
}

/// Louver draws the most likely allowed token.
fn run_matcher(
    matcher: Matcher,
    limit: usize,
    model: impl Fn(usize, &mut [f32]),
) -> (String, bool, bool) {
    run_drawn_by(Draw::Louver, matcher, limit, model)
}

/// As [`run_matcher`], or the host draws.
fn run_drawn_by(
    draw: Draw,
    mut matcher: Matcher,
    limit: usize,
    model: impl Fn(usize, &mut [f32]),
) -> (String, bool, bool) {
    let vocab = matcher.vocab().clone();
    let mut guard = TruncationGuard::default();
    let mut mask = vec![0; vocab.mask_words()];
    let (mut text, mut is_narrowed) = (Vec::new(), false);
    while text.len() < 10_000 {
        let room = limit - matcher.tokens().len();
        if room == 0 {
            break;
        }
        let mut row = vec![0.0; vocab.width()];
        model(matcher.tokens().len(), &mut row);
        vocab.stops().iter().for_each(|stop| row[stop.raw() as usize] = -5.0);
        matcher.fill_mask(&mut mask);
        if draw == Draw::Host {
            is_narrowed |= guard.narrow(&mut matcher, &mut mask, &row, room);
        }
        let draw_from = |mask: &[u32]| {
            let drawn = largest(&row, 1, |id| scalar::allows(mask, id));
            drawn.first().map(|(id, _)| TokenId::from_raw(*id as u32))
        };
        let mut token = draw_from(&mask).unwrap();
        if draw == Draw::Louver {
            let drawn = token;
            token = guard.within_limit(&mut matcher, room, drawn, |refused| {
                mask[refused.index() / 32] &= !(1 << (refused.index() % 32));
                draw_from(&mask)
            });
            is_narrowed |= token != drawn;
        }
        if vocab.is_stop(token) {
            break;
        }
        matcher.advance(token).unwrap();
        text.extend_from_slice(vocab.bytes(token).unwrap());
    }
    (String::from_utf8(text).unwrap(), matcher.is_complete(), is_narrowed)
}

#[test]
fn open_objects_are_closed_within_the_limit() {
    let schema = r#"{"type": "object", "properties": {"a": {"enum": ["yes", "no"]}, "b": {"type": "integer"}},
        "required": ["a", "b"]}"#;
    // Texts of equal length in bytes have different numbers of tokens.
    let words: [&[u8]; 8] =
        [b"\":", b"{\"", b"\"}", b"no\"", b"\n\n", b"\"b\":0", b"b\":0,\"a", b"\",\""];
    for seed in 0..40 {
        for limit in [30, 60, 100] {
            let vocab = Vocabulary::toy(&words);
            let (text, complete, _) = run_model(schema, vocab, limit, |position, row| {
                for (id, logit) in row.iter_mut().enumerate() {
                    let state = seed << 40 ^ (position as u64) << 20 ^ id as u64;
                    *logit = (split_mix(state) >> 40) as f32 / 1e5;
                }
            });
            assert!(complete, "{seed} {limit}: {text}");
        }
    }
}

#[test]
fn texts_are_complete_at_every_sufficient_limit() {
    let schema = r##"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"$ref": "#"}},
        "c": {"type": "integer"}}, "required": ["a", "c"], "additionalProperties": false}"##;
    // {"a":"","c":0} in tokens: {" a ": " " , " c ": 0 }
    for limit in 11..150 {
        for preferred in [b'x', b'[', b'{', b'"', b'1', b' ', b','] {
            let (text, complete, _) = run(schema, preferred, limit);
            assert!(complete, "{limit} {:?}: {text}", char::from(preferred));
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert!(jsonschema::is_valid(&serde_json::from_str(schema).unwrap(), &value), "{text}");
        }
    }
    // Narrowed only if the model preferred to continue.
    assert!(run(schema, b'x', 60).2);
    // A text that cannot fit is not changed.
    let (_, complete, _) = run(schema, b'x', 9);
    assert!(!complete);
}

/// A required member that the text still lacks, and room for nothing else.
#[test]
fn searches_end_with_the_fuel_of_their_sequence() {
    let schema =
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}"#;
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
    let white_space = TokenId::from_raw(b' '.into());
    let draw = |guard: &mut TruncationGuard| {
        let mut matcher = constraint.matcher();
        matcher.advance(TokenId::from_raw(b'{'.into())).unwrap();
        guard.within_limit(&mut matcher, b"\"a\":\"\"}".len(), white_space, |_| None)
    };
    let mut guard = TruncationGuard::default();
    assert_eq!(draw(&mut guard), TokenId::from_raw(b'"'.into()));
    let spent = guard.spent;
    assert!(spent > 0);
    let all = constraint.matcher().sequence_fuel();
    assert_eq!(
        draw(&mut TruncationGuard { spent: all, ..TruncationGuard::default() }),
        white_space
    );
}

/// A stream of numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        split_mix(self.0) % bound
    }

    fn pick<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len() as u64) as usize]
    }
}

/// A random schema whose instances are finite at every point: no member demands itself.
fn random_schema(random: &mut Random, depth: u64) -> serde_json::Value {
    let kinds = if depth == 0 { 8 } else { 13 };
    match random.below(kinds) {
        0 => json!({"type": "integer"}),
        1 => {
            json!({"type": "integer", "minimum": random.below(20), "maximum": 20 + random.below(500)})
        }
        2 => json!({"enum": ["yes", "no", 12, null]}),
        3 => json!({"type": "string", "maxLength": random.below(30)}),
        4 => json!({"type": "string", "minLength": random.below(6)}),
        5 => {
            json!({"type": "string", "pattern": random.pick(&["^[a-c]+$", "^[0-9]{2,5}x", "b+$"])})
        }
        6 => json!({"type": "string", "format": random.pick(&["date", "uuid", "ipv4"])}),
        7 => json!({"type": "string", "minLength": 20 + random.below(100)}),
        8 => {
            json!({"type": "array", "items": random_schema(random, depth - 1), "minItems": random.below(3)})
        }
        9 => json!({"type": "array", "items": {"type": "integer"}, "minItems": random.below(60)}),
        10 => json!({"type": "array", "uniqueItems": true, "items": {"enum": [1, 2, 3, "a", "b"]},
            "minItems": random.below(4)}),
        11 => {
            json!({"anyOf": [random_schema(random, depth - 1), random_schema(random, depth - 1)]})
        }
        _ => random_object(random, depth),
    }
}

fn random_object(random: &mut Random, depth: u64) -> serde_json::Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for name in ["a", "bb", "a long name", "d"].into_iter().take(1 + random.below(4) as usize) {
        properties.insert(name.to_owned(), random_schema(random, depth.saturating_sub(1)));
        if random.below(2) == 0 {
            required.push(name);
        }
    }
    let additional = match random.below(3) {
        0 => json!(false),
        1 => json!(true),
        _ => json!({"type": "integer"}),
    };
    json!({"type": "object", "properties": properties, "required": required,
        "additionalProperties": additional})
}

/// Samplers that never want to end: each prefers tokens that begin with one of its bytes, by rank
/// (white space; a new member whose name closes, or goes on; text; digits; containers). The last
/// prefers others at each position.
const SAMPLERS: [&[u8]; 7] = [b" \n\t", b"\",:[{ ", b",\" ", b"abcx", b"0123456789", b"[{\"", b""];

fn logits(sampler: &[u8], seed: u64, vocab: &Vocabulary, row: &mut [f32], position: usize) {
    for (id, logit) in row.iter_mut().enumerate() {
        let token = TokenId::from_raw(id as u32);
        let first = vocab.bytes(token).and_then(<[u8]>::first);
        let rank = first.and_then(|first| sampler.iter().position(|byte| byte == first));
        let noise =
            (split_mix(seed << 40 ^ (position as u64) << 20 ^ id as u64) >> 40) as f32 / 1e8;
        let weight = if sampler.is_empty() { 100.0 } else { 0.1 };
        *logit = rank.map_or(0.0, |rank| 10.0 - rank as f32) + weight * noise;
    }
}

/// Random schemas, with every sampler and limit that the shortest text fits: the text is complete
/// and an instance. Returns the number of texts.
fn check_random_schemas(vocab: Vocabulary, schemas: std::ops::Range<u64>) -> usize {
    let vocab = Arc::new(vocab);
    let engine = Engine::new(vocab.clone(), EngineOptions::default());
    let mut texts = 0;
    for seed in schemas {
        let mut random = Random(seed << 32);
        let schema = random_object(&mut random, 2);
        let options = SchemaOptions::default();
        let constraint = engine.compile_json_schema(&schema.to_string(), &options).unwrap();
        let least = shortest_completion(&mut constraint.matcher()).0.unwrap().len();
        for (k, sampler) in SAMPLERS.into_iter().enumerate() {
            let extra = [0, 1, 2 + random.below(6) as usize, 20, 40 + random.below(80) as usize];
            for limit in extra.map(|extra| least + extra) {
                let seed = seed * 7 + k as u64;
                let model = |position: usize, row: &mut [f32]| {
                    logits(sampler, seed, &vocab, row, position);
                };
                let (text, complete, _) = run_matcher(constraint.matcher(), limit, model);
                assert!(complete, "{schema}, limit {limit}, {sampler:?}: {text}");
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert!(jsonschema::is_valid(&schema, &value), "{schema}: {text}");
                texts += 1;
            }
        }
    }
    texts
}

#[test]
fn texts_of_random_schemas_are_complete_on_bytes() {
    let words: [&[u8]; 9] =
        [b"\":", b"{\"", b"\"}", b"\n\n", b"\"a\":", b"\",\"", b"}}", b" , ", b"12"];
    let texts = check_random_schemas(Vocabulary::toy(&words), 0..24);
    println!("{texts} texts");
}

/// The vocabularies at hand; none without the shared data.
fn real_vocabularies_if_present() -> Vec<Vocabulary> {
    let load = |name: &&str| {
        let path = data_if_present(format!("tokenizers/{name}/tokenizer.json"))?;
        Some(louver_hf_tokenizers::load(&path, &VocabOptions::default()).unwrap().vocab)
    };
    ["qwen3", "llama3_1", "llama2"].iter().filter_map(load).collect()
}

#[test]
fn texts_of_random_schemas_are_complete_on_real_vocabularies_if_present() {
    for vocab in real_vocabularies_if_present() {
        println!("{} texts", check_random_schemas(vocab, 100..102));
    }
}

/// An object with this many required strings.
fn large_object(members: usize) -> serde_json::Value {
    let names: Vec<String> = (0..members).map(|i| format!("street_name_{i}")).collect();
    let properties = names.iter().map(|name| (name.clone(), json!({"type": "string"})));
    let properties: serde_json::Map<String, serde_json::Value> = properties.collect();
    json!({"type": "object", "properties": properties, "required": names,
        "additionalProperties": false})
}

/// Parts that no completion needs, each longer than the limits of the test.
fn parts_beyond_the_limit() -> Vec<serde_json::Value> {
    let numbers = json!({"type": "array", "items": {"type": "integer"}, "minItems": 90});
    let optional = |part| json!({"properties": {"part": part}});
    let nullable = |part| {
        let part = json!({"anyOf": [part, {"type": "null"}]});
        json!({"properties": {"part": part}, "required": ["part"]})
    };
    let items = |part| json!({"properties": {"part": {"type": "array", "items": part}}});
    let mut schemas = vec![optional(json!({"type": "string", "minLength": 200}))];
    for part in [
        numbers,
        large_object(12),
        json!({"type": "array", "items": large_object(4), "minItems": 3}),
    ] {
        schemas.extend([optional(part.clone()), nullable(part.clone()), items(part)]);
    }
    for schema in &mut schemas {
        schema["type"] = json!("object");
        schema["additionalProperties"] = json!(false);
    }
    schemas
}

#[test]
fn parts_beyond_the_limit_are_not_begun() {
    let words: [&[u8]; 4] = [b"{\"", b"\":", b"\":[", b"[{"];
    let mut narrowed = 0;
    for schema in parts_beyond_the_limit() {
        for seed in 0..20 {
            for limit in [30, 60, 100, 150] {
                let model = |position: usize, row: &mut [f32]| {
                    let vocab = Vocabulary::toy(&words);
                    logits(b"", seed, &vocab, row, position);
                };
                let (text, complete, is_narrowed) =
                    run_model(&schema.to_string(), Vocabulary::toy(&words), limit, model);
                assert!(complete, "{schema}, limit {limit}: {text}");
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert!(jsonschema::is_valid(&schema, &value), "{schema}: {text}");
                narrowed += usize::from(is_narrowed);
            }
        }
    }
    assert!(narrowed > 100, "{narrowed}");
}
