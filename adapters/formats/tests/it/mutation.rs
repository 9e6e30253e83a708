//! No corruption of a valid turn makes a call that its schema refuses.

use std::collections::HashMap;

use louver_formats::python_json;
use serde_json::{Value, json};

use crate::harness::{accepts, as_text, bytes, extract, recognizer, request};

pub(crate) fn tools() -> Value {
    json!([
        {"type": "function", "function": {"name": "book", "parameters": {
            "type": "object",
            "properties": {
                "room": {"enum": ["A1", "A2"]},
                "hours": {"type": "array", "items": {"type": "integer", "minimum": 8, "maximum": 18}, "maxItems": 3},
                "note": {"type": "string", "maxLength": 8}
            },
            "required": ["room", "hours"],
            "additionalProperties": false}}},
        {"type": "function", "function": {"name": "boo", "parameters": {
            "type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"], "additionalProperties": false}}}
    ])
}

pub(crate) fn validators(tools: &Value) -> HashMap<&str, jsonschema::Validator> {
    (tools.as_array().expect("array").iter())
        .map(|t| &t["function"])
        .map(|f| {
            (
                f["name"].as_str().expect("name"),
                jsonschema::validator_for(&f["parameters"]).expect("schema"),
            )
        })
        .collect()
}

#[test]
fn corruptions_never_make_an_invalid_call() {
    let tools = tools();
    let schemas = validators(&tools);
    let arguments = python_json(&json!({"room": "A2", "hours": [9, 18], "note": "é\"</t"}));
    let wire = format!(
        "Ok.\n<tool_call>\n{{\"name\": \"book\", \"arguments\": {arguments}}}\n</tool_call>\n<tool_call>\n{{\"name\": \"boo\", \
         \"arguments\": {{\"x\": true}}}}\n</tool_call>"
    );
    let (mut refused, mut taken) = (0, 0);
    for name in ["qwen3", "hermes"] {
        let lowered =
            as_text(name).lower(&request(&tools.to_string(), &json!("auto"))).expect("lowers");
        let mut recognizer = recognizer(&lowered);
        assert!(accepts(&mut recognizer, &wire));
        for mutant in mutants(&wire) {
            if !accepts(&mut recognizer, &mutant) {
                refused += 1;
                continue;
            }
            taken += 1;
            let (turn, _) =
                extract(&lowered, &bytes(&mutant), 1).expect("what is recognised is taken");
            assert_eq!(turn.incomplete, None, "{mutant:?}");
            for call in &turn.calls {
                let value: Value = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|e| panic!("{mutant:?}: {e}"));
                assert!(schemas[call.name.as_str()].is_valid(&value), "{mutant:?}: {call:?}");
            }
        }
    }
    assert!(refused > 500 && taken > 50, "refused {refused}, taken {taken}");
}

/// The text with each code point deleted, doubled and replaced, each pair of neighbours swapped,
/// and each prefix.
fn mutants(wire: &str) -> Vec<String> {
    let chars: Vec<char> = wire.chars().collect();
    let mut out = Vec::new();
    for i in 0..chars.len() {
        let (before, after): (String, String) =
            (chars[..i].iter().collect(), chars[i + 1..].iter().collect());
        out.push(format!("{before}{after}"));
        out.push(format!("{before}{0}{0}{after}", chars[i]));
        out.push(before.clone());
        for other in ['"', '}', '<', '0', ' ', '\n', 'k', '\\'] {
            out.push(format!("{before}{other}{after}"));
        }
        if let Some(next) = chars.get(i + 1) {
            let rest: String = chars[i + 2..].iter().collect();
            out.push(format!("{before}{next}{}{rest}", chars[i]));
        }
    }
    out
}
