//! Automata that all requests of a process share do not depend on the request that needs them
//! first, however little fuel it has.

use std::process::Command;
use std::sync::Arc;

use louver::{Compiled, Limits, fuel};
use louver_formats::Catalog;
use serde_json::json;

use crate::harness::request;
use crate::rig::{Rig, Specials};

/// Set in the processes that this test starts: the fuel of the first request.
const FIRST_FUEL: &str = "LOUVER_FIRST_FUEL";

/// Schemas that are not deferred, so that they are lowered with the fuel of the request.
const TOOLS: &str = r#"[{"name": "ping", "parameters": {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "any": {},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.5},
        "day": {"type": "string", "format": "date"}
    },
    "required": ["text"],
    "patternProperties": {"^x-": {"type": "string"}}
}}]"#;

/// Prints the sizes of the tools' grammars in every format, after a first request with this fuel.
fn print_sizes(first: u64) {
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        let lower = || rig.format.lower(&request(TOOLS, &json!("required")));
        let _ = fuel::with_budget(first, lower);
        if let Ok(lowered) = lower() {
            let compiled = Compiled::new(lowered.grammar().clone(), &Limits::default());
            let automata = Arc::new(compiled.expect("compiles")).automata();
            let states: usize = automata.iter().map(|automaton| automaton.states.len()).sum();
            println!("sizes {} {} {states}", format.name, lowered.grammar().size());
        }
    }
}

#[test]
fn first_request_does_not_decide() {
    if let Ok(first) = std::env::var(FIRST_FUEL) {
        return print_sizes(first.parse().expect("a number"));
    }
    let sizes = |first: u64| {
        let name = "shared_automata::first_request_does_not_decide";
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture"])
            .env(FIRST_FUEL, first.to_string())
            .output()
            .expect("starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{first}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text.lines()
            .filter(|line| line.starts_with("sizes "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let right = sizes(u64::MAX);
    assert!(right.len() > 50, "{right:?}");
    for first in [0, 300, 1_000, 3_000, 10_000, 30_000, 100_000] {
        assert_eq!(sizes(first), right, "after a first request with {first} units");
    }
}
