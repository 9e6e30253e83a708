//! Runs every example: the binary, the tiny model, the real host.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A directory of this test run, removed at the end. The tiny model is written below it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("louver-examples-{name}-{}", std::process::id())))
    }

    fn run(&self, binary: &str, args: &[&str]) -> Output {
        Command::new(binary)
            .args(args)
            .env("XDG_CACHE_HOME", &self.0)
            .output()
            .expect("the binary runs")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The output lines of a successful run.
fn lines(binary: &str, args: &[&str]) -> Vec<String> {
    let name = PathBuf::from(binary)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let output = Scratch::new(&name).run(binary, args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{name} {args:?}\n{text}\n{errors}");
    assert!(text.starts_with("model      tiny"), "{text}");
    text.lines().map(str::to_owned).collect()
}

/// The texts after a label.
fn labelled<'l>(lines: &'l [String], head: &str) -> Vec<&'l str> {
    lines.iter().filter_map(|line| line.strip_prefix(head)).collect()
}

/// Parses `name(arguments)`.
fn call(text: &str) -> (String, Value) {
    let (name, rest) = text.split_once('(').unwrap_or_else(|| panic!("no call: {text}"));
    let arguments = rest.strip_suffix(')').unwrap_or_else(|| panic!("no call: {text}"));
    (
        name.to_owned(),
        serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{error}: {text}")),
    )
}

#[test]
fn strict_call() {
    for seed in ["1", "2", "3"] {
        let lines = lines(env!("CARGO_BIN_EXE_strict_call"), &["--seed", seed]);
        let calls = labelled(&lines, "call       ");
        assert!(!calls.is_empty(), "{lines:#?}");
        for text in calls {
            let (name, arguments) = call(text);
            assert_eq!(name, "weather");
            assert!(["Oslo", "Lima"].map(Value::from).contains(&arguments["city"]), "{arguments}");
            assert!((1.0..=9.0).contains(&arguments["days"].as_f64().unwrap()), "{arguments}");
        }
    }
}

/// The first turn must call a tool, every call has a result without an error, and some turn has
/// several calls.
#[test]
fn parallel_tools() {
    let mut several = 0;
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let lines =
            lines(env!("CARGO_BIN_EXE_parallel_tools"), &["--seed", seed, "--max-tokens", "100"]);
        let calls = labelled(&lines, "step 1     calls ");
        let results = labelled(&lines, "step 1     result ");
        assert!((1..=3).contains(&calls.len()) && calls.len() == results.len(), "{lines:#?}");
        for (text, result) in calls.iter().zip(&results) {
            let (name, _) = call(text);
            let result: Value = serde_json::from_str(result).unwrap();
            let member = if name == "weather" { "temperatures" } else { "currency" };
            assert!(result.get(member).is_some(), "{text}: {result}");
        }
        let ends = labelled(&lines, "done       ").len() + labelled(&lines, "answer     ").len();
        assert_eq!(ends, 1, "{lines:#?}");
        several += lines.iter().filter(|line| line.contains("tools side by side")).count();
    }
    assert!(several > 0, "no turn had several calls");
}

/// Bounded reasoning, calls, reasoning again, and an answer that matches its schema.
#[test]
fn reasoning_budget() {
    for seed in ["1", "2", "3"] {
        let lines = lines(env!("CARGO_BIN_EXE_reasoning_budget"), &["--seed", seed]);
        let thoughts = labelled(&lines, "reasoning  ");
        let lengths: Vec<usize> = thoughts
            .iter()
            .filter_map(|text| text.split(' ').next()?.parse::<usize>().ok())
            .collect();
        assert!(lengths.len() == 2 && lengths.iter().all(|length| *length <= 60), "{lines:#?}");
        let calls = labelled(&lines, "call       ");
        assert!((1..=2).contains(&calls.len()), "{lines:#?}");
        for line in calls {
            call(line.split_once(" -> ").expect("a result").0);
        }
        let answer: Value = serde_json::from_str(labelled(&lines, "answer     ")[0]).unwrap();
        assert!(
            ["Lima", "Tokyo", "neither"].map(Value::from).contains(&answer["warmer"]),
            "{answer}"
        );
        assert!(
            answer["sure"].is_boolean()
                && (0.0..=60.0).contains(&answer["degrees"].as_f64().unwrap()),
            "{answer}"
        );
    }
}

/// Tools loaded in a turn are called in the same turn with valid arguments.
#[test]
fn dynamic_tools() {
    let mut live = 0;
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let lines =
            lines(env!("CARGO_BIN_EXE_dynamic_tools"), &["--seed", seed, "--max-tokens", "200"]);
        let calls = labelled(&lines, "calls      ");
        assert!(calls[0].starts_with("load_tools("), "{lines:#?}");
        assert!(!labelled(&lines, "added      ").is_empty(), "{lines:#?}");
        live += labelled(&lines, "live       ").len();
        for result in labelled(&lines, "result     ") {
            assert!(result.contains("saved") || result.contains("sum"), "{lines:#?}");
        }
    }
    assert!(live > 0, "no tool joined a running turn");
}

#[test]
fn wrong_usage_is_rejected() {
    let scratch = Scratch::new("usage");
    for args in [&["--format", "nope"][..], &["--max-tokens", "0"], &["--nope"]] {
        let output = scratch.run(env!("CARGO_BIN_EXE_strict_call"), args);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(args[0].trim_start_matches("--")),
            "{args:?}"
        );
    }
}

/// Tools of an MCP server: the calls match the schemas that it lists, and run there.
#[test]
fn mcp_tools() {
    // The example starts the server, which is built beside it.
    assert!(PathBuf::from(env!("CARGO_BIN_EXE_mcp_server")).exists());
    let mut calls = 0;
    for seed in ["1", "2", "3"] {
        let arguments = ["--seed", seed, "--max-tokens", "150"];
        let lines = lines(env!("CARGO_BIN_EXE_mcp_tools"), &arguments);
        assert_eq!(labelled(&lines, "tools      "), ["convert_length, leap_year"]);
        for line in labelled(&lines, "call       ") {
            let (text, result) = line.split_once(" -> ").unwrap();
            let (name, arguments) = call(text);
            let within = |name: &str, range: std::ops::RangeInclusive<i64>| {
                arguments[name].as_i64().is_some_and(|value| range.contains(&value))
            };
            match name.as_str() {
                "convert_length" => {
                    assert!(within("metres", 0..=100_000), "{line}");
                    let unit = arguments["unit"].as_str().unwrap();
                    assert!(["feet", "miles"].contains(&unit) && result.ends_with(unit), "{line}");
                }
                "leap_year" => {
                    assert!(within("year", 1600..=2400), "{line}");
                    assert!(["true", "false"].contains(&result), "{line}");
                }
                other => panic!("{other}"),
            }
            calls += 1;
        }
    }
    assert!(calls >= 3, "{calls} calls");
}
