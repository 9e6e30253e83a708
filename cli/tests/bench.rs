//! The commands `louver bench schema` and `louver bench tools`.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

mod support;

use support::{Folder, bpe_tokenizer, louver, path, read_lines, write_lines};

/// `bench schema` with a tokenizer, cases and an output file.
fn bench_schema([tokenizer, cases, out]: [&Path; 3], extra: &[&str]) -> Output {
    let files = ["--tokenizer", path(tokenizer), "--cases", path(cases), "--out", path(out)];
    louver(&[&["bench", "schema"], &files[..], extra].concat())
}

/// A tokenizer of single characters: ids 0 to 94 are `!` to DEL's predecessor, with GPT-2's letters
/// for the other bytes.
fn tokenizer(folder: &Folder) -> PathBuf {
    let mut vocab = serde_json::Map::new();
    let printable = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut other = 0x100u32;
    for byte in 0..=255u8 {
        let c = if printable(byte) { u32::from(byte) } else { other };
        other += u32::from(!printable(byte));
        vocab.insert(char::from_u32(c).expect("a character").to_string(), json!(byte));
    }
    vocab.insert("tr".into(), json!(256));
    vocab.insert("\":".into(), json!(257));
    folder.file("tokenizer.json", &bpe_tokenizer(&vocab, 258, &["t r", "\" :"]))
}

#[test]
fn bench_schema_obeys_policy_and_registry() {
    let folder = Folder::new("bench-policy");
    let tokenizer = tokenizer(&folder);
    let unit = folder.file("unit.json", r#"{"$id": "https://example.org/unit", "const": 1}"#);
    let cases = write_lines(
        &folder,
        "in.jsonl",
        &[
            json!({"id": "relaxed", "schema": {"pattern": "^(a|b)\\1$"}, "tests": [
                {"valid": true, "data": "aa"}, {"valid": false, "data": "ab"}]}),
            json!({"id": "reference", "schema": {"$ref": "https://example.org/unit"}, "tests": [
                {"valid": true, "data": 1}, {"valid": false, "data": 2}]}),
        ],
    );
    for (policy, wrong, invalidated) in [("validate", 0, 1), ("best_effort", 1, 0)] {
        let out = folder.0.join("out.jsonl");
        let options = json!({"policy": policy}).to_string();
        let extra = ["--options", &options, "--registry", path(&unit)];
        let run = bench_schema([&tokenizer, &cases, &out], &extra);
        assert!(run.status.success(), "{run:?}");
        let summary = String::from_utf8(run.stderr).expect("text");
        assert!(summary.contains("schemas: 2; refused 0"), "{summary}");
        assert!(summary.contains(&format!("wrongly accepted {wrong}, ")), "{summary}");
        let validation = format!("only validation rejects {invalidated}\n");
        assert!(summary.contains("not enforced fully 1; "), "{summary}");
        assert!(summary.contains(&validation), "{summary}");
        let lines = read_lines(&out);
        assert!(lines[0]["relaxed"][0].as_str().is_some_and(|text| text.contains("/pattern")));
        assert!(lines[1].get("relaxed").is_none());
    }
}

#[test]
fn bench_schema_measures_and_validates() {
    let folder = Folder::new("bench-schema");
    let tokenizer = tokenizer(&folder);
    let object =
        json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]});
    let cases = write_lines(
        &folder,
        "in.jsonl",
        &[
            json!({"id": "ok", "schema": object, "tests": [
            {"valid": true, "data": {"a": true}}, {"valid": false, "data": {"a": 1}}, {"valid": false, "data": {}}]}),
            json!({"id": "wrong", "schema": object, "tests": [{"valid": false, "data": {"a": false}}, {"valid": true, "data": 1}]}),
            json!({"id": "refused", "schema": {"properties": {"x": {"type": "weird"}}}, "tests": [{"valid": true, "data": 1}]}),
            json!({"id": "none", "schema": {"type": "null"}}),
            json!(["no case"]),
            json!({"id": "spelling", "schema": {"type": "integer"}, "tests": [
                {"valid": true, "data": 1.0}, {"valid": true, "data": 1}, {"valid": true, "data": 1.5}]}),
        ],
    );
    for threads in ["1", "3"] {
        let out = folder.0.join("out.jsonl");
        let run = bench_schema([&tokenizer, &cases, &out], &["--threads", threads]);
        assert!(run.status.success(), "{run:?}");
        let summary = String::from_utf8(run.stderr).expect("text");
        assert!(summary.contains("schemas: 6; refused 2, passing 2\n"), "{summary}");
        assert!(summary.contains("wrongly accepted 1, wrongly rejected 2\n"), "{summary}");
        assert!(summary.contains("spelled otherwise (option `integers`) 1\n"), "{summary}");
        assert!(summary.contains("1  malformed: type\n"), "{summary}");
        let lines = read_lines(&out);
        let ids: Vec<&str> = lines.iter().filter_map(|l| l["id"].as_str()).collect();
        assert_eq!(ids, ["ok", "wrong", "refused", "none", "line 5", "spelling"]);
        // `{"a": true}` is { " a ": ␠ tr u e }, 9 tokens; `{"a": 1}` fails at its 6th; `{}` at its
        // 2nd.
        assert_eq!(lines[0]["masks_ns"].as_array().map(Vec::len), Some(9 + 6 + 2));
        assert_eq!(lines[0]["wrong"], json!([]));
        assert!(
            lines[0]["ttfm_ns"].as_u64() > Some(0) && lines[0]["first_mask_ns"].as_u64() > Some(0)
        );
        assert_eq!(lines[1]["wrong"], json!([[0, false, true], [1, true, false]]));
        assert!(
            lines[2]["error"].as_str().is_some_and(|e| e.contains("/properties/x/type")),
            "{}",
            lines[2]
        );
        assert!(lines[2].get("masks_ns").is_none() && lines[2].get("wrong").is_none());
        assert_eq!((&lines[3]["masks_ns"], &lines[3]["wrong"]), (&json!([]), &json!([])));
        // An integer that is no integer stays wrong.
        assert_eq!(lines[5]["wrong"], json!([[2, true, false]]));
        assert_eq!(lines[5]["spelled_otherwise"], 1);
    }
}

/// One tool with one member: its name and the member's name follow from the begin marker.
#[test]
fn bench_tools_counts_forced_tokens() {
    let folder = Folder::new("bench-forced");
    let tokenizer = tokenizer(&folder);
    let tools = json!([{"name": "get", "parameters": {"type": "object",
        "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}}]);
    let calls = |n: Value| json!([{"name": "get", "arguments": {"n": n}}]);
    let cases = write_lines(
        &folder,
        "in.jsonl",
        &[
            json!({"id": "a", "tools": tools, "calls": calls(json!(7))}),
            json!({"id": "b", "tools": tools, "calls": calls(json!("x"))}),
        ],
    );
    let out = folder.0.join("out.jsonl");
    let files = ["--tokenizer", path(&tokenizer), "--cases", path(&cases), "--out", path(&out)];
    let command = ["bench", "tools", "--forced", "--format", "qwen3"];
    let output = louver(&[&command[..], &files].concat());
    assert!(output.status.success(), "{output:?}");
    let lines = read_lines(&out);
    let spacings: Vec<&Value> = lines.iter().map(|line| &line["spacing"]).collect();
    assert_eq!(spacings, ["options", "python", "compact", "options", "python", "compact"]);
    assert!(lines[3..].iter().all(|line| line["skipped"] == 1 && line["tokens"] == 0));
    let forced = |line: usize| lines[line]["forced"].as_u64().unwrap_or_default();
    let tokens = |line: usize| lines[line]["tokens"].as_u64().unwrap_or_default();
    assert!(forced(0) < forced(1), "a space after the colon is forced");
    assert_eq!(tokens(1) - tokens(2), 1);
    // Drawn: the marker, which is text in this vocabulary, the digit, and what ends the integer.
    assert_eq!(tokens(2) - forced(2), "<tool_call>7}".len() as u64, "{}", lines[2]);
    let table = String::from_utf8_lossy(&output.stderr);
    assert!(table.lines().any(|line| line.starts_with("qwen3 ") && line.contains(" 1 1 1 |")));
}

#[test]
fn bench_tools_feeds_calls_in_the_format() {
    let folder = Folder::new("bench-tools");
    let tokenizer = tokenizer(&folder);
    let tools = json!([{"type": "function", "function": {"name": "get", "parameters": {"type": "object",
        "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}]);
    let calls = |n: Value| json!([{"name": "get", "arguments": {"n": n}}, {"name": "get", "arguments": {"n": 2}}]);
    let cases = write_lines(
        &folder,
        "in.jsonl",
        &[
            json!({"id": "a", "question": "Which?", "tools": tools, "calls": calls(json!(1))}),
            json!({"id": "b", "question": "Which?", "tools": tools, "calls": calls(json!("x"))}),
            json!({"id": "c", "question": "Which?", "tools": [{"name": ""}], "calls": []}),
        ],
    );
    let out = folder.0.join("out.jsonl");
    let run = |format: &str| {
        let args = [
            "bench",
            "tools",
            "--tokenizer",
            path(&tokenizer),
            "--cases",
            path(&cases),
            "--format",
            format,
            "--out",
            path(&out),
        ];
        louver(&args)
    };
    let output = run("qwen3");
    assert!(output.status.success(), "{output:?}");
    let lines = read_lines(&out);
    assert_eq!((&lines[0]["wrong"], &lines[0]["tools"]), (&json!([]), &json!(1)));
    assert_eq!(lines[1]["wrong"], json!([[0, true, false]]));
    assert!(
        lines[1]["masks_ns"].as_array().map(Vec::len)
            < lines[0]["masks_ns"].as_array().map(Vec::len)
    );
    assert!(
        lines[2]["error"].as_str().is_some_and(|e| e.contains("/tools/0/name")),
        "{}",
        lines[2]
    );
    assert!(
        lines[0].get("prepare_ns").is_none() && lines[0].get("preparation").is_none(),
        "{}",
        lines[0]
    );
    assert_eq!(run("nope").status.code(), Some(2));
    // Preparation changes no result, is measured separately, and some prepared masks are used.
    let output = louver(&[
        "bench",
        "tools",
        "--prepare",
        "--tokenizer",
        path(&tokenizer),
        "--cases",
        path(&cases),
        "--format",
        "qwen3",
        "--out",
        path(&out),
    ]);
    assert!(output.status.success(), "{output:?}");
    let prepared = read_lines(&out);
    for (line, other) in prepared.iter().zip(&lines) {
        assert_eq!((&line["wrong"], line.get("error")), (&other["wrong"], other.get("error")));
    }
    assert!(prepared[0]["prepare_ns"].as_u64().is_some_and(|ns| ns > 0), "{}", prepared[0]);
    let preparation = |name: &str| prepared[0]["preparation"][name].as_u64().unwrap_or(0);
    assert!(
        preparation("built") > 20
            && preparation("used") > 10
            && preparation("candidates") == preparation("built"),
        "{}",
        prepared[0]
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains(" masks built, "), "{output:?}");
    // Harmony's special tokens, which this vocabulary lacks, are treated as text.
    let output = run("all");
    assert!(output.status.success(), "{output:?}");
    let lines = read_lines(&out);
    let right = |line: &&Value| line["wrong"].as_array().is_some_and(Vec::is_empty);
    assert_eq!((lines.len() % 3, lines.iter().filter(right).count()), (0, lines.len() / 3));
    assert!(
        lines.len() > 80 && lines.iter().any(|line| line["format"] == "harmony"),
        "{}",
        lines.len()
    );
}

#[test]
fn ids_are_texts_or_numbers() {
    let folder = Folder::new("bench-ids");
    let tokenizer = tokenizer(&folder);
    let out = folder.0.join("out.jsonl");
    let benches = [
        ("schema", json!({"schema": {}, "tests": []}), &[][..]),
        ("grammar", json!({"kind": "regex", "spec": "a", "tests": []}), &[]),
        ("tools", json!({"tools": [], "calls": []}), &["--format", "qwen3"]),
    ];
    for (bench, case, extra) in benches {
        let run = |ids: &[Value]| {
            let case = |id: &Value| {
                let mut case = case.clone();
                case["id"] = id.clone();
                case
            };
            let lines: Vec<Value> = ids.iter().map(case).collect();
            let cases = write_lines(&folder, "in.jsonl", &lines);
            let files =
                ["--tokenizer", path(&tokenizer), "--cases", path(&cases), "--out", path(&out)];
            let run = louver(&[&["bench", bench], &files[..], extra].concat());
            (run.status.code(), String::from_utf8(run.stderr).expect("text"))
        };
        let (code, said) = run(&[json!(1), json!("b")]);
        assert_eq!(code, Some(0), "{bench}: {said}");
        let ids: Vec<Value> = read_lines(&out).iter().map(|line| line["id"].clone()).collect();
        assert_eq!(ids, [json!("1"), json!("b")], "{bench}");
        let (code, said) = run(&[json!(1), json!(null)]);
        let told = "1 of 2 lines are not cases: line 2: `id` must be a string or a number";
        assert!(code == Some(0) && said.contains(told), "{bench}: {said}");
        let (code, said) = run(&[json!(null)]);
        assert!(
            code == Some(2) && said.contains("is a case: line 1: `id` must"),
            "{bench}: {said}"
        );
        assert!(!said.contains("-0.0"), "{bench}: {said}");
    }
}
