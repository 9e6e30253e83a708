//! Real function-calling cases, where this machine has them: rendered in every family, accepted, and read back.

use louver_formats::{Call, LowerError, Turn, python_json};
use serde_json::{Value, json};

use crate::harness::{as_text, bytes, extract, request, shared};

/// Every so many cases, for a test's time; `louver bench tools` runs them all.
const STRIDE: usize = 12;

#[test]
fn rendered_calls_are_accepted_and_read_back() {
    let Some(file) = shared("toolcalls-dev.jsonl") else { return };
    let (mut taken, mut unsupported) = (0, 0);
    for line in file.lines().step_by(STRIDE) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let call = |c: &Value| Call {
            id: String::new(),
            name: c["name"].as_str().expect("name").to_owned(),
            arguments: python_json(&c["arguments"]),
        };
        let want = Turn {
            text: format!("I will look into this: {}", case["question"].as_str().expect("question")),
            calls: case["calls"].as_array().expect("calls").iter().map(call).collect(),
            ..Turn::default()
        };
        for format in ["qwen3", "hermes"].map(as_text) {
            let plan = match format.lower(&request(&case["tools"].to_string(), &json!("auto"))) {
                Ok(plan) => plan,
                Err(LowerError::Schemas(_)) => {
                    unsupported += 1;
                    continue;
                }
                Err(error) => panic!("{}: {error}", case["id"]),
            };
            let wire = format.render(&want).expect("renders");
            let (mut turn, _) = extract(&plan, &bytes(&wire), 8).unwrap_or_else(|n| {
                panic!("{} in {}: refused at byte {n}: {:?}", case["id"], format.name, &wire[..n.min(wire.len())])
            });
            turn.calls.iter_mut().for_each(|call| call.id.clear());
            assert_eq!(turn, want, "{} in {}", case["id"], format.name);
            taken += 1;
        }
    }
    println!("{taken} taken, {unsupported} with schemas not supported yet");
    assert!(taken > unsupported);
}
