//! The cost of many keys in one object, and of many distinct elements in one array.

use super::super::*;
use crate::front::json_schema::SchemaOptions;
use crate::matcher::Recognizer;

/// Three letters for each number below 512.
fn letters(i: usize) -> String {
    [i / 64, i / 8 % 8, i % 8].map(|digit| char::from(b'a' + digit as u8)).iter().collect()
}

/// The fuel of reading an instance, of taking it as tokens of one byte, of all masks, and of the
/// most expensive mask.
fn fuel_of(schema: &str, instance: &str) -> ([u64; 3], u64) {
    let words = ["\"key", "000", "item", "\":0,\"", "\",", "},{\""].map(String::from);
    let words: Vec<String> = words.into_iter().chain((0..512).map(letters)).collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let engine = Engine::new(Arc::new(Vocabulary::toy(&words)), EngineOptions::default());
    let constraint = engine.compile_json_schema(schema, &SchemaOptions::default()).unwrap();
    let mut recognizer = Recognizer::new(constraint.compiled().clone());
    let ((), read) = fuel::measure(|| recognizer.push(instance.as_bytes()).unwrap());
    assert!(recognizer.is_complete());
    let mut matcher = constraint.matcher();
    let mut row = vec![0; matcher.vocab().mask_words()];
    let (mut taken, mut masks, mut max_mask) = (0, 0, 0);
    for &byte in instance.as_bytes() {
        let mask = fuel::measure(|| matcher.fill_mask(&mut row)).1;
        (masks, max_mask) = (masks + mask, max_mask.max(mask));
        let token = TokenId::from_raw(byte.into());
        taken += fuel::measure(|| matcher.advance(token).unwrap()).1;
    }
    ([read, taken, masks], max_mask)
}

#[test]
fn each_of_many_values_costs_little_more_than_each_of_few() {
    let array = r#"{"type": "array", "uniqueItems": true}"#;
    let strings = r#"{"type": "array", "uniqueItems": true, "items": {"type": "string"}}"#;
    let cases: [(&str, fn(usize) -> String); 10] = [
        (r#"{"type": "object"}"#, |i| format!(r#""key{i:06}":0"#)),
        (r#"{"type": "object"}"#, |i| format!(r#""\u006b{}{i:06}":0"#, ["e", "\\u0065"][i % 2])),
        (r#"{"additionalProperties": {"type": "integer"}}"#, |i| format!(r#""{i:06}":{i}"#)),
        (r#"{"type": "object"}"#, |i| format!(r#""{}":0"#, letters(i))),
        (strings, |i| format!(r#""{}""#, letters(i))),
        (array, |i| format!(r#""item{i:06}""#)),
        (array, |i| format!("{}", 1_000_000 + i)),
        (array, |i| i.to_string()),
        (array, |i| format!(r#"{{"id":{i},"name":"item"}}"#)),
        (array, |i| format!(r#"[["item",{i}]]"#)),
    ];
    for (schema, element) in cases {
        let instance = |n: usize| {
            let elements = (0..n).map(element).collect::<Vec<_>>().join(",");
            if schema.contains("array") {
                format!("[{elements}]")
            } else {
                format!("{{{elements}}}")
            }
        };
        let [few, many] = [200, 400].map(|n| fuel_of(schema, &instance(n)).0);
        for (few, many) in few.into_iter().zip(many) {
            assert!(many * 2 < few * 5, "{few} and {many} units: {}", instance(1));
        }
    }
}

/// Blocks of earlier values are merged in masks: no merge is much work.
#[test]
fn no_mask_pays_for_all_earlier_values() {
    let instance = |n: usize| {
        let elements: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        format!("[{}]", elements.join(","))
    };
    let schema = r#"{"type": "array", "uniqueItems": true, "items": {"type": "number"}}"#;
    let [few, many] = [130, 520].map(|n| fuel_of(schema, &instance(n)).1);
    assert!(many < few * 3, "{few} and {many} units");
}
