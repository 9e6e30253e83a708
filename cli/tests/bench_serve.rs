//! The command `louver bench serve` at a small size: the binary, the tiny model, the real host and
//! server.
#![cfg(feature = "host")]

use std::process::{Command, Output};

use serde_json::Value;

mod support;

use support::Folder;

/// The output of a run and the lines of its results.
fn bench(folder: &Folder, args: &[&str]) -> (Output, Vec<Value>) {
    let out = folder.0.join("out.jsonl");
    let output = Command::new(env!("CARGO_BIN_EXE_louver"))
        .args(["bench", "serve"])
        .args(args)
        .arg("--out")
        .arg(&out)
        .env("XDG_CACHE_HOME", &folder.0)
        .output()
        .expect("the binary runs");
    let lines = std::fs::read_to_string(&out).unwrap_or_default();
    let lines =
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    (output, lines)
}

/// The output and the lines of a successful run.
fn successful_run(folder: &Folder, args: &[&str]) -> (String, Vec<Value>) {
    let (output, lines) = bench(folder, args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.ends_with("passed\n") && lines.iter().all(|line| line.get("error").is_none()));
    (text, lines)
}

#[test]
fn matrix_responses_match_their_schemas() {
    let (text, lines) = successful_run(
        &Folder::new("matrix"),
        &["matrix", "--requests", "48", "--formats", "qwen3,llama3_function"],
    );
    assert_eq!(lines.len(), 48);
    assert!(
        lines.iter().all(|line| line["status"] == 200 && line["tokens"].as_u64() > Some(0)),
        "{text}"
    );
    assert!(lines.iter().any(|line| line["calls"].as_u64() > Some(0)), "{text}");
    let (output, _) = bench(&Folder::new("matrix-usage"), &["matrix", "--formats", "nope"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn faulty_requests_do_not_affect_others() {
    let (text, lines) =
        successful_run(&Folder::new("faults"), &["faults", "--requests", "64", "--soak", "16"]);
    assert_eq!(lines.len(), 80);
    assert!(text.contains("0 failed") && text.contains("nothing runs"), "{text}");
    let left = |line: &&Value| {
        ["Leave", "GiveUp", "HangUp"]
            .iter()
            .any(|head| line["id"].as_str().unwrap().starts_with(head))
    };
    assert_eq!(lines.iter().filter(left).count(), 20);
    assert!(lines.iter().filter(|line| line["tokens"].as_u64() > Some(0)).count() >= 40, "{text}");
}

#[test]
fn load_has_no_failures() {
    let (text, lines) =
        successful_run(&Folder::new("load"), &["load", "--connections", "4", "--seconds", "3"]);
    assert!(!lines.is_empty() && lines.iter().all(|line| line["status"] == 200), "{text}");
    assert!(lines.iter().any(|line| line["louver_ns"].as_u64() > Some(0)), "{text}");
}

#[test]
fn throughput_is_measured_for_all_setups() {
    let (text, lines) = successful_run(
        &Folder::new("throughput"),
        &["throughput", "--tokens", "24", "--rounds", "1", "--at-once", "1", "--prompt", "1"],
    );
    // Text and rows in five setups; calls without the host's.
    assert_eq!(lines.len(), 2 * 5 + 4, "{text}");
    assert!(lines.iter().all(|line| line["tokens_per_second"].as_f64() > Some(0.0)), "{text}");
    // Every arrangement is a row, good or bad.
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| 548 ids, ")).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows[2].starts_with("| 548 ids, calls, 1 |"), "{text}");
    assert!(text.contains(" 0.99 of the unconstrained rate"), "{text}");
}

#[test]
fn calls_with_louver_are_valid_by_schema() {
    let (text, lines) = successful_run(&Folder::new("bfcl"), &["bfcl", "--max-tokens", "120"]);
    // Four built-in cases in three modes.
    assert_eq!(lines.len(), 12, "{text}");
    // No mode fails unnoticed.
    assert!(lines.iter().all(|line| line["tokens"].as_u64() > Some(0)), "{text}");
    let own: Vec<&Value> =
        lines.iter().filter(|line| line["id"].as_str().unwrap().ends_with(" louver")).collect();
    assert_eq!(own.len(), 4);
    for line in own {
        assert!(line["calls"].as_u64() > Some(0) && line["calls"] == line["valid"], "{line}");
        assert!(line["louver_ns"].as_u64() > Some(0), "{line}");
    }
    let rows = text.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, 1 + 3 * 4, "three categories and all of them: {text}");
}

#[test]
fn attacks_do_not_affect_good_requests() {
    let (text, lines) = successful_run(&Folder::new("beside"), &["beside", "--requests", "3"]);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 12, "{text}");
    assert_eq!(lines.len(), 12 * 6);
    assert!(
        lines.iter().all(|line| line["status"] == 200 && line["tokens"].as_u64() > Some(0)),
        "{text}"
    );
    // The attacks have the expected outcomes.
    for (name, got) in
        [("ordinary", "200: "), ("stop-strings", "400: "), ("dropped-compiles", "left: ")]
    {
        let row = rows.iter().find(|row| row.starts_with(&format!("| {name} |")));
        assert!(row.is_some_and(|row| row.contains(got)), "{text}");
    }
    let (output, _) = bench(&Folder::new("beside-usage"), &["beside", "--attacks", "nope"]);
    assert_eq!(output.status.code(), Some(2));
}
