//! Any walk through the masks from the start to a stop token yields a document that the
//! `jsonschema` crate accepts. `LOUVER_WALKS=1000 LOUVER_WALK_SCHEMAS=200` is the full measure.

use louver_test_support::text_if_present;
use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::front::json_schema::{SchemaOptions, lower};
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::mask;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use serde_json::Value;

use super::generate::{self, Rng};
use super::number;

/// Longest walk, in tokens.
const LONGEST: usize = 2_000;
/// From here on whatever may bring the end nearer is preferred.
const HURRY: usize = 60;

/// Tokens that cross borders between JSON's parts.
const WORDS: &[&str] = &[
    "\"", "\":", "\": ", "\",", "\", \"", "{\"", "\"}", "}}", "]}", "],", "[\"", "true", "null",
    "10", "0.", "ab", "\\u00", "}", "é",
];

fn schemas(wanted: usize) -> Vec<Value> {
    let mut out = Vec::new();
    // Without it: only random schemas.
    if let Some(text) = text_if_present("maskbench-dev.jsonl") {
        let lines: Vec<&str> = text.lines().collect();
        // Spread over the file; long ones take too long.
        let chosen = lines
            .iter()
            .step_by((lines.len() / wanted.max(1)).max(1))
            .filter(|line| line.len() < 8_000);
        out.extend(
            chosen.filter_map(|line| {
                serde_json::from_str::<Value>(line).ok()?.get("schema").cloned()
            }),
        );
        out.truncate(wanted / 2);
    }
    let mut rng = Rng::new(7);
    while out.len() < wanted {
        out.push(generate::document(&mut rng));
    }
    out
}

/// The bytes of a finished walk; `None` if it was still going on after [`LONGEST`] tokens.
fn walk(constraint: &Constraint, rng: &mut Rng) -> Option<Vec<u8>> {
    let vocab = constraint.vocab().clone();
    let mut matcher = constraint.matcher();
    let mut words = vec![0; vocab.mask_words()];
    let mut out = Vec::new();
    for step in 0..LONGEST {
        matcher.fill_mask(&mut words);
        let allowed: Vec<TokenId> = (0..vocab.width() as u32)
            .map(TokenId::from_raw)
            .filter(|&t| mask::bit(&words, t))
            .collect();
        assert!(!allowed.is_empty(), "an empty mask after {:?}", String::from_utf8_lossy(&out));
        let stop = allowed.iter().copied().find(|&t| vocab.is_stop(t));
        let ending = |t: &TokenId| {
            vocab.bytes(*t).is_some_and(|b| b.iter().all(|b| b"\"}]:, e1".contains(b)))
        };
        let endings: Vec<TokenId> = allowed.iter().copied().filter(ending).collect();
        let closing: Vec<TokenId> = endings
            .iter()
            .copied()
            .filter(|t| vocab.bytes(*t).is_some_and(|b| b"\"}]".contains(&b[0])))
            .collect();
        let token = match stop {
            Some(stop) if step > HURRY || rng.chance(30) => stop,
            _ if step > HURRY && !closing.is_empty() && rng.chance(90) => *rng.pick(&closing),
            _ if !endings.is_empty() && rng.chance(if step > HURRY { 70 } else { 40 }) => {
                *rng.pick(&endings)
            }
            _ => *rng.pick(&allowed),
        };
        if vocab.is_stop(token) {
            return Some(out);
        }
        out.extend_from_slice(vocab.bytes(token).unwrap_or_default());
        matcher.advance(token).expect("the mask allows it");
    }
    None
}

/// Whether there is a number that is not zero and is zero as a double.
fn underflows(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).any(|number| {
        let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
        mantissa.contains(|c: char| c.is_ascii_digit() && c != '0')
            && number.parse::<f64>() == Ok(0.0)
    })
}

/// Whether a number is so large that doubles are not all the integers there are: the oracle cannot
/// tell of what it is a multiple.
fn is_coarse(text: &str) -> bool {
    let numbers = text.split(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
    numbers.filter_map(|number| number.parse::<f64>().ok()).any(|number| number.abs() >= 9e15)
}

/// `-0` is the integer 0; read as a double the oracle no longer takes it for an integer in draft 4.
fn without_negative_zero(value: Value) -> Value {
    match value {
        Value::Number(n) if n.as_f64() == Some(0.0) => Value::from(0),
        Value::Array(items) => items.into_iter().map(without_negative_zero).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(name, value)| (name, without_negative_zero(value))).collect()
        }
        other => other,
    }
}

#[test]
fn walks_through_masks_end_in_valid_documents() {
    let (walks, wanted) = (number("LOUVER_WALKS", 10), number("LOUVER_WALK_SCHEMAS", 40));
    let words: Vec<&[u8]> = WORDS.iter().map(|word| word.as_bytes()).collect();
    let engine = Engine::new(Arc::new(Vocabulary::toy(&words)), EngineOptions::default());
    let (mut finished, mut cut, mut schemas_walked) = (0, 0, 0);
    let limits = Limits::default();
    for (i, schema) in schemas(wanted).iter().enumerate() {
        // The oracle's numbers are doubles: 14 digits are told apart.
        let options = SchemaOptions::default().with_max_digits(Some(7));
        let Ok(grammar) = lower(&Json::from(schema), &options, &limits) else { continue };
        let Ok(constraint) = engine.compile(&grammar) else { continue };
        let oracle = jsonschema::options().should_validate_formats(true).build(schema);
        let oracle = oracle.unwrap_or_else(|e| panic!("{e}: {schema}"));
        schemas_walked += 1;
        let mut rng = Rng::new(i as u64);
        let divides = schema.to_string().contains("\"multipleOf\"");
        for _ in 0..walks {
            let Some(bytes) = walk(&constraint, &mut rng) else {
                cut += 1;
                continue;
            };
            finished += 1;
            let text = String::from_utf8(bytes).unwrap_or_else(|e| panic!("{e}: {schema}"));
            let value: Value = match serde_json::from_str(&text) {
                Ok(value) => value,
                Err(error) if error.to_string().contains("out of range") => continue,
                Err(error) => panic!("{error}: {text}\n{schema}"),
            };
            if underflows(&text) || divides && is_coarse(&text) {
                continue;
            }
            let value = without_negative_zero(value);
            if let Err(error) = oracle.validate(&value) {
                panic!("{error}\n{text}\n{schema}");
            }
        }
    }
    println!("{schemas_walked} schemas, {finished} walks, {cut} cut off after {LONGEST} tokens");
    assert!(
        schemas_walked * 2 > wanted && cut * 5 < finished,
        "{schemas_walked} schemas, {finished} walks, {cut} cut"
    );
}
