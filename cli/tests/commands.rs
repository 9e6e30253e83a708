//! The `louver` binary: results, exit codes, output files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

mod support;

use support::Folder;

fn louver(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_louver"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

/// `bench schema` with a tokenizer, cases and an output file.
fn bench_schema([tokenizer, cases, out]: [&Path; 3], extra: &[&str]) -> Output {
    let files = ["--tokenizer", path(tokenizer), "--cases", path(cases), "--out", path(out)];
    louver(&[&["bench", "schema"], &files[..], extra].concat())
}

fn write_lines(folder: &Folder, name: &str, values: &[Value]) -> PathBuf {
    folder.file(name, &values.iter().map(|v| format!("{v}\n")).collect::<String>())
}

fn read_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("an output file");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of UTF-8")
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
    let text = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [
            {"id": 258, "content": "<|im_end|>", "special": true, "single_word": false, "lstrip": false,
             "rstrip": false, "normalized": false},
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                  "vocab": vocab, "merges": ["t r", "\" :"]},
    });
    folder.file("tokenizer.json", &text.to_string())
}

#[test]
fn check_cases_has_a_result_or_an_error_per_line() {
    let folder = Folder::new("cases");
    let tools = json!([{"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false}}]);
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>";
    let cases = [
        (
            json!({"id": "s1", "kind": "json_schema", "spec": {"type": "integer"}, "input": "12", "mode": "full"}),
            json!(true),
        ),
        (
            json!({"id": "s2", "kind": "json_schema", "spec": {"type": "integer"}, "input": "-", "mode": "full"}),
            json!(false),
        ),
        (
            json!({"id": "s3", "kind": "json_schema", "spec": "{\"type\": \"integer\"}", "input": "-", "mode": "prefix"}),
            json!(true),
        ),
        (
            json!({"id": "s4", "kind": "json_schema", "spec": {"const": [1]}, "options": {"whitespace": "compact"}, "input": "[ 1]"}),
            json!(false),
        ),
        (
            json!({"id": "s5", "kind": "json_schema", "spec": {"not": {"properties": {"x": {"type": "weird"}}}}, "input": "1"}),
            json!("type"),
        ),
        (
            json!({"id": "s6", "kind": "json_schema", "spec": {}, "options": {"nope": 1}, "input": "1"}),
            json!("nope"),
        ),
        (
            json!({"id": "r1", "kind": "regex", "spec": "a+", "options": {}, "input_b64": "YWE=", "mode": "full"}),
            json!(true),
        ),
        (
            json!({"id": "r2", "kind": "regex", "spec": "a+", "input": "b", "mode": "prefix"}),
            json!(false),
        ),
        (json!({"id": "r3", "kind": "regex", "spec": "(", "input": "b"}), json!("offset")),
        (json!({"id": "r4", "kind": "regex", "spec": "a", "input_b64": "%"}), json!("input_b64")),
        (
            json!({"id": "t1", "kind": "tools", "spec": tools, "input": format!("Hm.\n{call}"), "mode": "full"}),
            json!(true),
        ),
        (
            json!({"id": "t2", "kind": "tools", "spec": tools, "input": call.replace('1', "true"), "mode": "full"}),
            json!(false),
        ),
        (
            json!({"id": "t3", "kind": "tools", "spec": {"tools": tools, "tool_choice": "required"}, "input": "", "mode": "full"}),
            json!(false),
        ),
        (
            json!({"id": "t4", "kind": "tools", "spec": tools, "options": {"tool_choice": "none"}, "input": call}),
            json!(false),
        ),
        (
            json!({"id": "t5", "kind": "tools", "spec": tools, "options": {"format": "nope"}, "input": ""}),
            json!("nope"),
        ),
        (json!({"id": "e1", "kind": "ebnf", "spec": "root ::= \"a\"", "input": "a"}), json!(true)),
        (
            json!({"id": "e2", "kind": "ebnf", "spec": "go ::= \"a\"", "options": {"root_rule_name": "go"}, "input": "b"}),
            json!(false),
        ),
        (
            json!({"id": "e3", "kind": "ebnf", "spec": "root ::= itme\nitem ::= \"a\"", "input": "a"}),
            json!("item"),
        ),
        (json!({"id": "l1", "kind": "lark", "spec": "start: \"a\"", "input": "a"}), json!(true)),
        (json!({"id": "l2", "kind": "lark", "spec": "start: \"a", "input": "a"}), json!(":1:8")),
        (
            json!({"id": "g1", "kind": "structural_tag", "spec": {"format": {"type": "const_string", "value": "a"}}, "input": "a"}),
            json!(true),
        ),
        (json!({"id": "g2", "kind": "structural_tag", "spec": {}, "input": "a"}), json!("format")),
        (json!({"id": "k", "kind": "runes", "spec": "a", "input": "a"}), json!("unknown")),
        (json!({"id": "i", "kind": "regex", "spec": "a"}), json!("input")),
        (json!({"id": "m"}), json!("kind")),
    ];
    let (lines, wants): (Vec<Value>, Vec<Value>) = cases.into_iter().unzip();
    let input = write_lines(&folder, "in.jsonl", &lines);
    let out = folder.0.join("out.jsonl");
    let run = louver(&["check", "--cases", path(&input), "--out", path(&out)]);
    assert!(run.status.success(), "{run:?}");
    let verdicts = read_lines(&out);
    assert_eq!(verdicts.len(), lines.len());
    for ((line, want), got) in lines.iter().zip(&wants).zip(&verdicts) {
        assert_eq!(got["id"], line["id"]);
        match want {
            Value::String(part) => {
                assert!(
                    got["error"].as_str().is_some_and(|e| e.contains(part.as_str())),
                    "{got}, not {part:?}"
                );
                assert!(got.get("accepted").is_none(), "{got}");
            }
            verdict => assert_eq!(got, &json!({"id": line["id"], "accepted": verdict})),
        }
    }
}

#[test]
fn check_cases_obeys_the_policy() {
    let folder = Folder::new("cases-policy");
    // A back reference is not regular.
    let schema = json!({"type": "string", "pattern": "^(a|b)\\1$"});
    let case = |id: &str, policy: &str, input: &str| {
        let options = json!({"policy": policy});
        json!({"id": id, "kind": "json_schema", "spec": schema, "options": options, "input": input})
    };
    let lines = [
        case("v1", "validate", "\"aa\""),
        case("v2", "validate", "\"ab\""),
        case("b", "best_effort", "\"ab\""),
        case("s", "strict", "\"aa\""),
        case("n", "validate", "1"),
    ];
    let input = write_lines(&folder, "in.jsonl", &lines);
    let out = folder.0.join("out.jsonl");
    let run = louver(&["check", "--cases", path(&input), "--out", path(&out)]);
    assert!(run.status.success(), "{run:?}");
    let summary = String::from_utf8(run.stderr).expect("text");
    assert!(summary.contains("accepted 2, rejected 2, errors 1\n"), "{summary}");
    assert!(summary.contains("specs that are not enforced fully 2: pattern 2\n"), "{summary}");
    let verdicts = read_lines(&out);
    let accepted: Vec<&Value> = verdicts.iter().map(|verdict| &verdict["accepted"]).collect();
    assert_eq!(accepted, [&json!(true), &json!(false), &json!(true), &Value::Null, &json!(false)]);
    assert!(verdicts[0]["relaxed"][0].as_str().is_some_and(|text| text.contains("/pattern")));
    assert!(verdicts[3].get("relaxed").is_none() && verdicts[3]["error"].is_string());
}

#[test]
fn references_lead_to_the_registry() {
    let folder = Folder::new("registry");
    let documents = folder.0.join("documents");
    std::fs::create_dir(&documents).expect("a folder");
    folder
        .file("documents/unit.json", r#"{"$id": "https://example.org/unit", "enum": ["m", "s"]}"#);
    folder.file("documents/count.json", r#"{"type": "integer"}"#);
    let reference = r#"{"properties": {"u": {"$ref": "https://example.org/unit"}, "n": {"$ref": "count.json"}}}"#;
    let schema = folder.file("s.json", reference);
    let check = |input: &str, registry: &Path| {
        let input = folder.file("in.json", input);
        let registry = ["--registry", path(registry)];
        louver(&[&["check", "--schema", path(&schema), path(&input)], &registry[..]].concat())
    };
    assert_eq!(check(r#"{"u": "m", "n": 1}"#, &documents).status.code(), Some(0));
    let wrong = check(r#"{"u": "kg"}"#, &documents);
    assert_eq!(wrong.status.code(), Some(1));
    let text = String::from_utf8(wrong.stdout).expect("text");
    assert!(text.contains("is not one of"), "{text}");
    let only_unit = documents.join("unit.json");
    assert_eq!(check("{}", &only_unit).status.code(), Some(2), "count.json is missing");
    let case = json!({"id": 1, "kind": "json_schema", "spec": reference, "input": "{\"n\": 1}"});
    let input = write_lines(&folder, "in.jsonl", &[case]);
    let (out, registry) = (folder.0.join("out.jsonl"), ["--registry", path(&documents)]);
    let run = ["check", "--cases", path(&input), "--out", path(&out)];
    assert!(louver(&[&run[..], &registry].concat()).status.success());
    assert_eq!(read_lines(&out), [json!({"id": 1, "accepted": true})]);
    let explain = ["explain", "--schema", path(&schema)];
    assert!(louver(&[&explain[..], &registry].concat()).status.success());
    assert_eq!(louver(&explain).status.code(), Some(2));
    let missing = louver(&[&explain[..], &["--registry", "no such file"]].concat());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no such file"), "{missing:?}");
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
fn check_schema_explains_and_sets_the_exit_code() {
    let folder = Folder::new("schema");
    let schema = folder.file(
        "s.json",
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#,
    );
    let check = |input: &str| {
        let input = folder.file("i.json", input);
        let run = louver(&["check", "--schema", path(&schema), path(&input)]);
        (run.status.code(), String::from_utf8(run.stdout).expect("text"))
    };
    assert_eq!(check("{\"n\": 1}\n"), (Some(0), "valid\n".to_owned()));
    let (code, why) = check("{\n  \"n\": x}");
    assert_eq!(code, Some(1));
    assert!(
        why.starts_with(
            "not valid: 'x' at byte 9 (line 2, column 8) is not allowed\nin the value at \""
        ),
        "{why}"
    );
    let (code, why) = check("{\"n\": 1");
    assert_eq!(code, Some(1));
    assert!(why.starts_with("not valid: the text ends too early, at byte 7"), "{why}");

    let unique = folder.file("unique.json", r#"{"type": "array", "uniqueItems": true}"#);
    let input = folder.file("i.json", "[[1], [1]]");
    let validated = r#"{"policy": "validate", "unique_items": "scalars"}"#;
    let run = louver(&["check", "--schema", path(&unique), "--options", validated, path(&input)]);
    assert_eq!(run.status.code(), Some(1), "the finished text is validated");
    let scalars = r#"{"policy": "best_effort", "unique_items": "scalars"}"#;
    let run = louver(&["check", "--schema", path(&unique), "--options", scalars, path(&input)]);
    assert_eq!((run.status.code(), &run.stdout[..]), (Some(0), &b"valid\n"[..]));
    assert!(
        String::from_utf8_lossy(&run.stderr).contains("not enforced: \"/uniqueItems\""),
        "{run:?}"
    );
    let run = louver(&[
        "check",
        "--schema",
        path(&unique),
        "--options",
        "{\"order\": \"none\"}",
        path(&input),
    ]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");

    let refused =
        folder.file("bad.json", r#"{"type": "object", "properties": {"n": {"minimum": "x"}}}"#);
    let run = louver(&["check", "--schema", path(&refused), path(&schema)]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("/properties/n/minimum"), "{run:?}");
    for wrong in [
        &["check"][..],
        &["check", "--cases", "x"],
        &["check", "--schema", "no/such.json", "-"],
        &["nope"],
        &[],
    ] {
        assert_eq!(louver(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn errors_name_what_they_are_about() {
    let folder = Folder::new("errors_name_what_they_are_about");
    let schema = folder.file("s.json", r#"{"type": "object"}"#);
    let twice = folder.file("twice.json", "{\n  \"a\": 1,\n  \"a\": 2\n}");
    let lark = folder.file("bad.lark", "start: a");
    let [schema, twice, lark] = [path(&schema), path(&twice), path(&lark)];
    let cases: [(&[&str], &str); 7] = [
        (&["explain", "--lark", lark], "error: there is no rule `a`\n --> "),
        (&["explain", "--schema", twice], "line 3, column 3: duplicate key \"a\""),
        (&["explain", "--tools", schema], "a request with `tools` or `response_format`"),
        (&["explain", "--schema", schema, "--options", r#"{"order": "wide"}"#], ": order: unknown"),
        (&["check", "--schema", schema, "--options", r#"{"order": "wide"}"#], ": order: unknown"),
        (&["check", "--schema", schema, "--options", "{} x"], "trailing characters"),
        (&["check"], "--schema <S.json>|--regex <PATTERN>|"),
    ];
    for (args, expected) in cases {
        let run = louver(args);
        let message = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert!(message.matches("error:").count() == 1, "{args:?}: {message}");
    }
    let misspelled = folder.file("misspelled.json", r#"{"items": {"requird": ["a"]}}"#);
    let run = louver(&["explain", "--schema", path(&misspelled)]);
    let message = String::from_utf8_lossy(&run.stdout);
    assert!(message.contains(r#""/items/requird": no keyword"#), "{message}");
    let run = louver(&["check", "--schema", path(&misspelled), path(&misspelled)]);
    let message = String::from_utf8_lossy(&run.stderr);
    assert!(message.contains("is `required` meant?"), "{message}");
    let ebnf = folder.file("unused.ebnf", "root ::= \"a\"\nb ::= \"b\"\n");
    let input = folder.file("input", "a\n");
    let run = louver(&["check", "--ebnf", path(&ebnf), path(&input)]);
    assert_eq!(run.stdout, b"valid\n");
    let message = String::from_utf8_lossy(&run.stderr);
    assert!(message.contains("warning") && message.contains("`b`"), "{message}");
    let short = ["explain", "--schema", schema, "--options", r#"{"whitespace": "flexible"}"#];
    assert!(louver(&short).status.success());
}

#[test]
fn check_schema_reads_standard_input() {
    use std::io::Write;
    let folder = Folder::new("stdin");
    let schema = folder.file("s.json", r#"{"enum": ["é"]}"#);
    let mut child = Command::new(env!("CARGO_BIN_EXE_louver"))
        .args(["check", "--schema", path(&schema), "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all("\"é\"".as_bytes()).expect("written");
    let run = child.wait_with_output().expect("it ends");
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(0), &b"valid\n"[..]));
}

#[test]
fn output_that_nobody_reads_ends_the_command_quietly() {
    for command in [&["formats", "list"][..], &["explain", "--regex", "[a-z]{3}"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let run = Command::new(env!("CARGO_BIN_EXE_louver"))
            .args(command)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .expect("it ends");
        let messages = String::from_utf8_lossy(&run.stderr);
        assert_eq!((run.status.code(), &*messages), (Some(141), ""), "{command:?}");
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

#[cfg(feature = "host")]
#[test]
fn check_config_finds_all_faults_or_shows_the_settings() {
    let folder = Folder::new("check-config");
    let template = folder.file("template.jinja", "{{ messages }}");
    let check = |text: &str| {
        let config = folder.file("louver.toml", text);
        let run = louver(&["check", "--config", path(&config)]);
        let out = String::from_utf8(run.stdout).expect("UTF-8");
        (run.status.code(), out.replace(path(&config), "FILE"))
    };
    let valid = format!(
        "reasoning_budget = 9\n[[model]]\nmodel = \"org/name\"\naliases = [\"small\"]\n\
         chat_template = {template:?}\n[model.limits]\nrequests = {{ max_tokens = 5 }}"
    );
    let (code, out) = check(&valid);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("# org/name, small: org/name on the Hugging Face Hub"), "{out}");
    assert!(
        out.contains("\nmax_tokens = 5\n") && out.contains("\nreasoning_budget = 9\n"),
        "{out}"
    );
    assert!(out.ends_with("FILE: valid\n"), "{out}");

    let (code, out) = check("prot = 1\n[[model]]\nmodel = \"a/b\"\ndevice = \"tpu\"");
    let expected = [
        "FILE:1:1: prot: there is no member `prot`; is `port` meant?",
        "FILE:4:10: model[0].device: unknown device \"tpu\": auto, cpu, cuda, cuda:N, metal or metal:N",
    ];
    assert_eq!((code, out.lines().collect::<Vec<_>>()), (Some(1), expected.to_vec()));

    let files = "registry = [\"no/such\"]\n[[model]]\nmodel = \"no/such/model\"\nformat = \"qwen33\"\n\
                 format_files = [\"no/such.toml\"]\nisq = \"Q99\"\ntokenizer = \"no/such.json\"\n\
                 dtype = \"f8\"\nchat_template = \"no/such.jinja\"\n[[model]]\nmodel = \"a/b\"\n\
                 format = \"qwen33\"\n";
    let (code, out) = check(files);
    let at: Vec<&str> = out.lines().filter_map(|line| line.split(": ").next()).collect();
    let expected = [
        "FILE:1:1",
        "FILE:3:1",
        "FILE:5:1",
        "FILE:6:1",
        "FILE:7:1",
        "FILE:8:1",
        "FILE:9:1",
        "FILE:12:1",
    ];
    assert_eq!((code, at), (Some(1), expected.to_vec()), "{out}");
    // A format may be the file of a description.
    let format = folder.0.join("mine.toml");
    let text = include_str!("../../adapters/formats/families/hermes.toml");
    std::fs::write(&format, text.replacen("\"hermes\"", "\"mine\"", 1)).unwrap();
    let own = format!("[[model]]\nmodel = \"a/b\"\nformat = {:?}\n", path(&format));
    assert_eq!(check(&own).0, Some(0), "{}", check(&own).1);
    let (code, out) = check(&own.replace("mine.toml", "other.toml"));
    assert!(code == Some(1) && out.contains("FILE:3:1: model[0].format: "), "{out}");
    let missing = folder.0.join("no-such.toml");
    assert_eq!(louver(&["check", "--config", path(&missing)]).status.code(), Some(2));
}
