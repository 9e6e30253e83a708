//! The `louver` binary: results, exit codes, output files.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

mod support;

use support::{Folder, louver, path, read_lines, write_lines};

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

/// A spec within a line is read as exactly as one in a file.
#[test]
fn check_cases_rounds_no_number_and_merges_no_key() {
    let folder = Folder::new("cases-exact");
    let cases = [
        (r#"{"type": "integer", "maximum": 18446744073709551616}"#, "18446744073709551617", false),
        (r#"{"type": "integer", "maximum": 18446744073709551616}"#, "18446744073709551616", true),
        (r#"{"const": 0.10000000000000000001}"#, "0.1", false),
        (r#"{"enum": [0.30, -0]}"#, "0.30", true),
        (r#"{"enum": [0.30, -0]}"#, "-0", true),
        (r#"{"minimum": 1e400}"#, "1", false),
    ];
    let line = |(spec, input, _): &(&str, &str, bool)| {
        format!(r#"{{"id": "1", "kind": "json_schema", "spec": {spec}, "input": "{input}"}}"#)
    };
    let repeated = (r#"{"type": "integer", "type": "string"}"#, "1", false);
    let lines: Vec<String> = cases.iter().chain([&repeated]).map(line).collect();
    let input = folder.0.join("in.jsonl");
    std::fs::write(&input, lines.join("\n")).expect("written");
    let out = folder.0.join("out.jsonl");
    let run = louver(&["check", "--cases", path(&input), "--out", path(&out)]);
    assert!(run.status.success(), "{run:?}");
    let verdicts = read_lines(&out);
    for ((spec, input, accepted), verdict) in cases.iter().zip(&verdicts) {
        assert_eq!(verdict["accepted"], json!(accepted), "{spec} {input} {verdict}");
    }
    let error = verdicts[cases.len()]["error"].as_str().unwrap_or_default();
    assert!(error.contains("duplicate key \"type\""), "{error}");
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
    // A bound that is no double: the validator cannot read the schema.
    let wide = r#"{"properties": {"a": {"pattern": "^(a|b)\\1$"}, "b": {"maximum": 1e400}}}"#;
    let wide = folder.file("wide.json", wide);
    let input = folder.file("i.json", r#"{"a": "aa"}"#);
    let validate = r#"{"policy": "validate"}"#;
    let run = louver(&["check", "--schema", path(&wide), "--options", validate, path(&input)]);
    assert_eq!(run.status.code(), Some(1));
    let why = String::from_utf8_lossy(&run.stdout);
    assert!(why.starts_with("not checked: the relaxed keywords"), "{why}");
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
    let list = folder.file("list.json", r#"[{"name": "f", "parameters": {"type": "objekt"}}]"#);
    let tools = folder.file("tools.json", r#"[{"name": "f"}]"#);
    let look = folder.file("look.ebnf", "root ::= \"b\" (= \"c\") \nd ::= e\n");
    let format = folder.file("mine.toml", "name = 1");
    let [list, tools, look, format] = [path(&list), path(&tools), path(&look), path(&format)];
    let of_format = format!("{{\"format\": {format:?}}}");
    let choice = r#"{"tool_choice": {"type": "function", "function": {"name": "g"}}}"#;
    let cases: [(&[&str], &str); 14] = [
        (&["explain", "--tools", list], "list.json: \"/0/parameters/type\": malformed"),
        (&["check", "--tools", tools, "--options", choice], "error: --options: /tool_choice: "),
        (
            &["check", "--tools", tools, "--options", r#"{"tool_choice": 1}"#],
            "error: --options: /t",
        ),
        (&["explain", "--tools", tools, "--options", &of_format], "mine.toml: not a wire format"),
        (&["formats", "show", format], "mine.toml: not a wire format"),
        (&["check", "--ebnf", look], "error: there is no rule `e`"),
        (&["check", "--profile", "openai-strict", "--regex", "a"], "--profile is about schemas"),
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
    let run = louver(&["explain", "--ebnf", path(&ebnf)]);
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(shown.contains("unused.ebnf:2:1") && message.contains("unused.ebnf:2:1"), "{shown}");
    let short = ["explain", "--schema", schema, "--options", r#"{"whitespace": "flexible"}"#];
    assert!(louver(&short).status.success());
}

#[test]
fn schemas_that_cannot_be_read_are_outside_of_a_profile() {
    let folder = Folder::new("profile");
    for (schema, said) in [
        (r#"{"type": "string", "enum": ["a", "b"]}"#, "the schema is accepted"),
        (r#"{"type": "string", "enum": []}"#, "an empty list allows no value"),
        (r#"{"anyOf": []}"#, "`anyOf` must be a non-empty array"),
        (r#"{"type": "string", "pattern": "("}"#, "unclosed group"),
        (r#"{"type": "string", "pattern": "(a)\\1"}"#, "backreference"),
        (r#"{"type": "string", "enum": ["a", 1]}"#, "does not match type 'string'"),
    ] {
        let whole = format!(
            r#"{{"type": "object", "properties": {{"p": {schema}}}, "required": ["p"], "additionalProperties": false}}"#
        );
        let file = folder.file("s.json", &whole);
        let run = louver(&["check", "--profile", "openai-strict", "--schema", path(&file)]);
        let out = String::from_utf8_lossy(&run.stdout);
        assert!(out.contains(said), "{schema}: {out}");
        assert_eq!(run.status.success(), said.ends_with("accepted"), "{schema}: {out}");
    }
}

#[test]
fn check_reads_the_older_form_of_structural_tags() {
    let folder = Folder::new("older_tags");
    let tag = r#"{"type": "structural_tag", "triggers": ["<a"], "structures": [
        {"begin": "<a>", "schema": {"type": "integer"}, "end": "</a>"}]}"#;
    let tag = folder.file("t.json", tag);
    for (input, code) in [("x<a>1</a>", 0), ("<a>x", 1)] {
        let input = folder.file("input", input);
        let run = louver(&["check", "--structural-tag", path(&tag), path(&input)]);
        assert_eq!(run.status.code(), Some(code), "{run:?}");
    }
}

#[test]
fn check_says_why_it_knows_no_keyword() {
    let folder = Folder::new("no_validator");
    for schema in [
        r#"{"type": "object", "description": 5}"#,
        r#"{"type": "object", "required": ["a", "a"]}"#,
        r#"{"type": "object", "properties": {"a": {"items": [{"type": "integer"}]}}}"#,
    ] {
        let schema = folder.file("s.json", schema);
        let input = folder.file("input", "[]");
        let run = louver(&["check", "--schema", path(&schema), path(&input)]);
        let out = String::from_utf8_lossy(&run.stdout);
        let said = "which keyword it violates is not known: the schema has no validator: ";
        assert!(out.contains(said), "{out}");
    }
}

#[test]
fn check_names_keywords_behind_references_and_repeated_members() {
    let folder = Folder::new("keyword_pointers");
    let schema = r##"{"type": "object", "properties": {
        "a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#"},
        "$id": {"type": "null"}, "c": {"$id": "other", "$defs": {"y": {"type": "null"}},
            "properties": {"d": {"$ref": "#/$defs/y"}}}},
        "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/y"}]}, "y": {"items": {"type": "integer"}}}}"##;
    let schema = folder.file("s.json", schema);
    for (text, says) in [
        (r#"{"a": ["x"]}"#, r#"keyword "/$defs/x/anyOf""#),
        (r#"{"b": 1}"#, r#"keyword "/type""#),
        (r#"{"c": {"d": "x"}}"#, r#"keyword "/properties/c/properties/d/$ref/type""#),
        (r#"{"a": [1], "a": [1]}"#, "duplicate"),
    ] {
        let input = folder.file("input", text);
        let run = louver(&["check", "--schema", path(&schema), path(&input)]);
        let out = String::from_utf8_lossy(&run.stdout);
        assert!(out.contains(says), "{text}: {out}");
    }
}

/// A call that is read as text is told from a call.
#[test]
fn check_tools_says_what_a_turn_has() {
    let folder = Folder::new("turns");
    let tools = folder.file("tools.json", r#"[{"name": "f"}, {"name": "g"}]"#);
    let call = |name: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{}}}}\n</tool_call>")
    };
    let both = call("f") + "\n" + &call("g");
    for (text, says) in [
        ("f(1) is 2.", "valid: text, no call\n"),
        (&*call("f"), "valid: 1 call\nf({})\n"),
        (&*both, "valid: 2 calls\nf({})\ng({})\n"),
    ] {
        let input = folder.file("input", text);
        let options = r#"{"format": "hermes"}"#;
        let args = ["check", "--tools", path(&tools), "--options", options, path(&input)];
        assert_eq!(String::from_utf8_lossy(&louver(&args).stdout), says, "{text}");
    }
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

    let (code, out) = check("[[model]]\nmodel = \"a/b\"\ndevice = \"cuda\"");
    if cfg!(not(feature = "cuda")) {
        let place = "FILE:3:1: model[0].device: ";
        assert!(out.starts_with(place) && out.contains("build with `--features cuda`"), "{out}");
        assert_eq!(code, Some(1));
    }

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
    let broken = folder.file("broken.gguf", "GGUF\u{3}\u{0}");
    let template = folder.file("broken.jinja", "{% if %}");
    let (code, out) = check(
        "[[mcp]]\nlabel = \"a\"\nurl = \"http://a\"\nheaders = { \"A B\" = \"c\" }\n\
         [[model]]\nmodel = \"a/b\"",
    );
    assert!(code == Some(1) && out.contains("mcp[0]: the header \"A B\""), "{out}");
    let (code, out) = check(&format!(
        "[[model]]\nmodel = {:?}\n[[model]]\nmodel = \"a/b\"\ndevice = \"cpu\"\n\
         dtype = \"bf16\"\nchat_template = {:?}",
        path(&broken),
        path(&template)
    ));
    for part in [
        "model[0].model: ",
        "broken.gguf",
        "model[1].dtype: the CPU cannot multiply bf16",
        "model[1].chat_template: ",
        "broken.jinja: ",
        "syntax error",
    ] {
        assert!(code == Some(1) && out.contains(part), "{part}: {out}");
    }
    assert_eq!(out.lines().count(), 3, "{out}");
}
