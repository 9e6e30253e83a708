//! The command `louver demo`: the binary, the tiny model, the real host.
#![cfg(feature = "host")]

use std::process::{Command, Output};

use serde_json::Value;

mod support;

use support::Folder;

fn demo(folder: &Folder, args: &[&str]) -> Output {
    let dir = folder.0.display().to_string();
    let binary = Command::new(env!("CARGO_BIN_EXE_louver"))
        .args(["demo", "--model-dir", &dir])
        .args(args)
        .output();
    binary.expect("the binary runs")
}

fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn events_of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn constrained_runs_are_valid_and_repeatable() {
    let folder = Folder::new("constrained");
    let first = demo(&folder, &["--json", "--seed", "7"]);
    assert_eq!(first.status.code(), Some(0), "{}", String::from_utf8_lossy(&first.stderr));
    let (first, second) = (events(&first), events(&demo(&folder, &["--json", "--seed", "7"])));
    assert_eq!(
        (&first[0]["fresh"], &second[0]["fresh"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    let summary = first.last().expect("a summary");
    assert!(
        summary["calls"].as_u64() >= Some(2) && summary["calls"] == summary["valid"],
        "{summary}"
    );
    assert_eq!(summary["answer_valid"], true);
    let names: Vec<_> =
        events_of_type(&first, "call_start").into_iter().map(|event| &event["name"]).collect();
    assert!(
        names.contains(&&Value::from("forecast")) && names.contains(&&Value::from("calculate")),
        "{names:?}"
    );
    assert_eq!(events_of_type(&first, "tool_result").len() as u64, summary["calls"]);
    // Everything except times and ids is equal.
    let count = first.len();
    assert_eq!(second.len(), count);
    let [first, second] = [first, second].map(|events| without_ids(&events[1..count - 1]));
    assert_eq!(first, second);
}

/// The events with their ids by order of appearance. Ids differ from run to run.
fn without_ids(events: &[Value]) -> Vec<Value> {
    let (mut events, mut ids) = (events.to_vec(), Vec::new());
    for id in events.iter_mut().filter_map(|event| event.get_mut("id")) {
        let known = ids.iter().position(|known| known == id).unwrap_or_else(|| {
            ids.push(id.clone());
            ids.len() - 1
        });
        *id = known.into();
    }
    events
}

#[test]
fn text_output_ends_with_the_report() {
    let output = demo(&Folder::new("text"), &["--tool-choice", "calculate", "What is 2 + 2?"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("What is 2 + 2?") && text.contains("random"), "{text}");
    assert!(text.contains("louver demo --trained"), "{text}");
    let tail: Vec<&str> = text.lines().rev().take(5).collect();
    for (line, head) in
        tail.iter().rev().zip(["calls      made 1, valid 1", "answer", "tokens", "mask", "Louver"])
    {
        assert!(line.starts_with(head), "{line}");
    }
}

#[test]
fn unconstrained_runs_fail() {
    let output = demo(&Folder::new("free"), &["--json", "--unconstrained", "--max-tokens", "200"]);
    assert_eq!(output.status.code(), Some(1));
    let events = events(&output);
    let summary = events.last().expect("a summary");
    assert_eq!(
        (&summary["constrained"], &summary["answer_valid"]),
        (&Value::Bool(false), &Value::Bool(false))
    );
    assert!(events_of_type(&events, "call_start").is_empty());
}

#[test]
fn truncated_calls_are_not_calls() {
    let output = demo(&Folder::new("cut"), &["--json", "--max-tokens", "12"]);
    assert_eq!(output.status.code(), Some(1));
    let events = events(&output);
    assert!(!events_of_type(&events, "incomplete").is_empty());
    assert!(events_of_type(&events, "call_end").is_empty());
    assert_eq!(events.last().expect("a summary")["missing"], 1);
}

#[test]
fn wrong_usage_has_its_exit_code() {
    let folder = Folder::new("usage");
    for args in [&["--tool-choice", "nope"][..], &["--format", "nope"], &["--max-tokens", "0"]] {
        let output = demo(&folder, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("nope") || args[0] == "--max-tokens"
        );
    }
}
