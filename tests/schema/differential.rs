//! Random schemas and instances against the `jsonschema` crate, in both directions: an instance is
//! valid if and only if one of its texts (members in any order) is accepted; with `order: any`, all
//! of them. `LOUVER_DIFFERENTIAL=100000` sets the number of instances, `LOUVER_SEED` the first
//! seed. Strings are spelled with all kinds of escapes where the options allow them, numbers with
//! exponents.

use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::json_schema::{Escapes, MemberOrder, lower};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde_json::{Value, json};

use super::compare_seeds;
use super::generate::{self, Rng};
use super::support::any_spelling;

/// Texts of a value with its members in every order, up to a cap.
pub(super) fn orders(value: &Value) -> Vec<String> {
    const CAP: usize = 60;
    let sequences = |items: Vec<Vec<String>>| {
        items.into_iter().fold(vec![Vec::new()], |done: Vec<Vec<String>>, next| {
            done.iter()
                .flat_map(|head| {
                    next.iter().map(move |item| head.iter().chain([item]).cloned().collect())
                })
                .take(CAP)
                .collect()
        })
    };
    match value {
        Value::Array(items) => sequences(items.iter().map(orders).collect())
            .into_iter()
            .map(|l| format!("[{}]", l.join(", ")))
            .collect(),
        Value::Object(map) => {
            let members: Vec<Vec<String>> = map
                .iter()
                .map(|(k, v)| {
                    orders(v).into_iter().map(|text| format!("{}: {text}", json!(k))).collect()
                })
                .collect();
            let mut out = Vec::new();
            for members in permutations(members) {
                out.extend(sequences(members).into_iter().map(|l| format!("{{{}}}", l.join(", "))));
                out.truncate(CAP);
            }
            out
        }
        scalar => vec![scalar.to_string()],
    }
}

fn permutations<T: Clone>(items: Vec<T>) -> Vec<Vec<T>> {
    if items.len() < 2 {
        return vec![items];
    }
    let mut out = Vec::new();
    for i in 0..items.len() {
        let mut rest = items.clone();
        let first = rest.remove(i);
        for mut tail in permutations(rest) {
            tail.insert(0, first.clone());
            out.push(tail);
        }
    }
    out
}

/// The same JSON, with escapes for any characters of its strings; with `exponents` its numbers have
/// one digit before the point, and an exponent.
fn respelled(text: &str, rng: &mut Rng, exponents: bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let string = strings.next().and_then(Result::ok).expect("a string");
            rest = &rest[strings.byte_offset()..];
            out.push('"');
            string.chars().for_each(|c| spell(c, rng, &mut out));
            out.push('"');
        } else if exponents && (c == '-' || c.is_ascii_digit()) {
            let length = rest.find([',', ']', '}']).unwrap_or(rest.len());
            let value: f64 = rest[..length].parse().expect("a number");
            let text = format!("{value:e}");
            out.push_str(if rng.chance(30) { &rest[..length] } else { &text });
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

fn spell(c: char, rng: &mut Rng, out: &mut String) {
    let short =
        "\"\\/\u{8}\u{c}\n\r\t".chars().position(|other| other == c).map(|i| &"\"\\/bfnrt"[i..=i]);
    match (rng.next(3), short) {
        (0, _) if !matches!(c, '"' | '\\') && c >= ' ' => out.push(c),
        (1, Some(letter)) => {
            out.push('\\');
            out.push_str(letter);
        }
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let digits =
                    if rng.chance(50) { format!("{unit:04x}") } else { format!("{unit:04X}") };
                out.push_str("\\u");
                out.push_str(&digits);
            }
        }
    }
}

/// Instances of each schema; half of them are mutations of others.
const INSTANCES: usize = 24;

#[derive(Debug, Default)]
struct Counts {
    lowered: usize,
    refused: usize,
    unsatisfiable: usize,
    instances: usize,
    valid: usize,
}

/// What `jsonschema` 0.33 decides otherwise than the specification: it does not count 1.0 as an
/// integer in a list of types.
fn compare(seed: u64, counts: &mut Counts) {
    let mut rng = Rng::new(seed);
    let root = generate::document(&mut rng);
    let mut instances: Vec<Value> =
        (0..INSTANCES / 2).map(|_| generate::instance(&mut rng, 2)).collect();
    for i in 0..INSTANCES / 2 {
        instances.push(generate::mutation(&mut rng, &instances[i]));
    }
    let limits = Limits::default();
    let order = if rng.chance(50) { MemberOrder::Declared } else { MemberOrder::Any };
    let escapes = if rng.chance(50) { Escapes::Any } else { Escapes::Required };
    let lowered =
        lower(&Json::from(&root), &any_spelling().with_order(order).with_escapes(escapes), &limits);
    let mut recognizer = match &lowered {
        Ok(grammar) => {
            counts.lowered += 1;
            let compiled = Compiled::new(grammar, &limits)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{root}"));
            Some(Recognizer::new(Arc::new(compiled)))
        }
        Err(errors) if errors.is_unsatisfiable() => {
            counts.unsatisfiable += 1;
            None
        }
        Err(_) => {
            counts.refused += 1;
            return;
        }
    };
    let oracle =
        jsonschema::draft202012::new(&root).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{root}"));
    for instance in &instances {
        let valid = oracle.is_valid(instance);
        counts.instances += 1;
        counts.valid += usize::from(valid);
        let mut texts = orders(instance);
        if let (Some(recognizer), Some(first)) = (&mut recognizer, texts.first()) {
            // Not every number may have an exponent; but what is accepted is the same value.
            let text = respelled(first, &mut rng, true);
            recognizer.reset();
            let accepted = recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete();
            assert!(valid || !accepted, "seed {seed}\nschema {root}\ninstance {text}");
        }
        if escapes == Escapes::Any {
            texts = texts.iter().map(|text| respelled(text, &mut rng, false)).collect();
        }
        let accepted = texts.iter().filter(|text| {
            recognizer.as_mut().is_some_and(|recognizer| {
                recognizer.reset();
                recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete()
            })
        });
        let accepted: Vec<&String> = accepted.collect();
        assert_eq!(
            !accepted.is_empty(),
            valid,
            "seed {seed}\nschema {root}\ninstance {instance} {accepted:?}"
        );
        let all = order == MemberOrder::Declared || accepted.len() == texts.len();
        assert!(
            !valid || all,
            "seed {seed}\nschema {root}\ninstance {instance}, only {accepted:?}"
        );
    }
}

#[test]
fn random_schemas_agree_with_jsonschema() {
    let mut counts = Counts::default();
    compare_seeds("LOUVER_DIFFERENTIAL", 1_000, |seed| {
        compare(seed, &mut counts);
        counts.instances
    });
    println!("{counts:?}");
    assert!(counts.valid * 10 > counts.instances && counts.lowered > counts.refused, "{counts:?}");
}
