//! The command `louver explain`.

use std::path::PathBuf;

use serde_json::{Value, json};

mod support;

use support::{Folder, bpe_tokenizer, louver};

fn explain(args: &[&str]) -> (Option<i32>, String, String) {
    let out = louver(&[&["explain"], args].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (out.status.code(), text(out.stdout), text(out.stderr))
}

fn explain_json(args: &[&str]) -> Value {
    let (code, out, err) = explain(&[args, &["--json"]].concat());
    assert!(code == Some(0) || code == Some(1), "{err}");
    serde_json::from_str(&out).expect("one JSON object")
}

/// A file that is removed at the end of the test.
struct File {
    _folder: Folder,
    path: PathBuf,
}

impl File {
    fn new(name: &str, text: &str) -> File {
        let folder = Folder::new(name);
        let path = folder.file(name, text);
        File { _folder: folder, path }
    }

    fn path(&self) -> &str {
        self.path.to_str().expect("a path of UTF-8")
    }
}

/// Letters, digits, punctuation, and a few words.
fn tokenizer(name: &str) -> File {
    let mut vocab: serde_json::Map<String, Value> =
        (0x21..0x7fu8).map(|b| (char::from(b).to_string(), json!(b - 0x21))).collect();
    for (word, id) in [("tr", 94), ("fa", 95), ("true", 96), ("tru", 97)] {
        vocab.insert(word.into(), json!(id));
    }
    File::new(name, &bpe_tokenizer(&vocab, 98, &["t r", "f a", "tr u", "tru e"]))
}

/// Automata of counted repeats in counted repeats may have millions of states.
#[test]
fn large_automata_are_shown_in_part() {
    let text =
        r#"{"pattern": "a[b-e.]{1,900}[.][c-f(]{1,6}", "type": "string", "maxLength": 3000}"#;
    let schema = File::new("large.json", text);
    let (code, out, err) = explain(&["--schema", schema.path()]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("there are more states"), "{out}");
}

#[test]
fn stages_are_shown() {
    let (code, out, err) = explain(&["--regex", "(?:ab|cd)(?:e{3,500})?", "--at", "ab"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for part in [
        "source: regex pattern, 22 bytes, 1 lines",
        "::= ([a] [b] | [c] [d]) ",
        "[e]{3,500}",
        "not simplified",
        "1 blocks",
        "{3,500}",
        "after \"ab\":\n  bytes: [e]\n  may end: yes",
    ] {
        assert!(out.contains(part), "{part:?} is not in\n{out}");
    }
    // The answer comes before the stages.
    assert!(out.find("after \"ab\"") < out.find("grammar ("), "{out}");
}

#[test]
fn passes_report_their_effect() {
    let schema = File::new("passes.json", r#"{"type": "boolean"}"#);
    let grammar = File::new("passes.ebnf", "root ::= a b\na ::= \"x\" | a \"y\"\nb ::= \"z\"\n");
    // By default, only grammars as text are simplified.
    for args in [&["--schema", schema.path()][..], &["--ebnf", grammar.path(), "--simplify", "off"]]
    {
        let off = explain_json(args);
        assert_eq!((&off["passes"], &off["simplified"]), (&json!([]), &Value::Null));
    }
    let full = explain_json(&["--ebnf", grammar.path()]);
    assert!(
        explain_json(&["--schema", schema.path(), "--simplify", "on"])["passes"][0].is_object()
    );
    let passes = full["passes"].as_array().expect("passes");
    assert_eq!(passes[0]["pass"], "Reach");
    assert_eq!(passes[0]["rules_before"], full["grammar"]["rules"]);
    // Each pass starts with the result of the previous one, and the last result is compiled.
    for pair in passes.windows(2) {
        assert_eq!(
            (&pair[0]["rules"], &pair[0]["size"]),
            (&pair[1]["rules_before"], &pair[1]["size_before"])
        );
    }
    let last = passes.last().expect("a pass");
    let result = if full["simplified"].is_null() { &full["grammar"] } else { &full["simplified"] };
    assert_eq!((&last["rules"], &last["size"]), (&result["rules"], &result["size"]));
    assert_eq!(
        full["compiled"]["rules"].as_u64(),
        full["automata"].as_array().map(|a| a.len() as u64)
    );
}

#[test]
fn allowed_tokens_are_shown() {
    let tokenizer = tokenizer("tokens.json");
    let args = ["--regex", "x(true|false)", "--tokenizer", tokenizer.path(), "--at"];
    let at = |prefix: &str, more: &[&str]| {
        explain_json(&[&args[..], &[prefix], more].concat())["at"].clone()
    };
    let start = at("x", &[]);
    assert_eq!(start["bytes"], "[ft]");
    let first = start["tokens"]["first"]
        .as_array()
        .expect("tokens")
        .iter()
        .map(|t| t[1].as_str().unwrap_or_default());
    assert_eq!(first.collect::<Vec<_>>(), ["f", "t", "tr", "fa", "true", "tru"]);
    assert_eq!((&start["tokens"]["allowed"], &start["may_end"]), (&json!(6), &json!(false)));
    let end = at("xtrue", &["--why", "<|im_end|>"]);
    assert_eq!(
        (&end["may_end"], &end["why"]["allowed"], &end["why"]["id"]),
        (&json!(true), &json!(true), &json!(98))
    );
    assert_eq!(end["tokens"]["prefix"], json!(["x", "true"]));
    // By id and by text: the rejected byte and what was expected there.
    for token in ["97", "tru"] {
        let why = &at("xf", &["--why", token])["why"];
        assert_eq!(
            (&why["id"], &why["token"], &why["allowed"], &why["accepted"]),
            (&json!(97), &json!("tru"), &json!(false), &json!(0))
        );
        assert_eq!(why["why"], "its byte 0 (t) is not allowed; expected [a]");
    }
    let why = &explain_json(&[
        "--regex",
        "tr(y|ap)",
        "--tokenizer",
        tokenizer.path(),
        "--why",
        "true",
    ])["at"]["why"];
    assert_eq!(why["why"], "its byte 2 (u) is not allowed after \"tr\"; expected [ay]");
    let why = &at("x", &["--why", "<|im_end|>"])["why"];
    assert_eq!(why["why"], "it ends the text, which may not end here; expected [ft]");
}

#[test]
fn rejected_prefixes_are_explained() {
    let tokenizer = tokenizer("prefix.json");
    for tokenizer_args in [&[][..], &["--tokenizer", tokenizer.path()]] {
        let (code, out, _) =
            explain(&[&["--regex", "abc", "--at", "abx"], tokenizer_args].concat());
        assert_eq!(code, Some(1), "{out}");
        assert!(
            out.contains("not allowed: byte 2 is not allowed: \"x\"") && out.contains("bytes: [c]"),
            "{out}"
        );
    }
    let (code, _, err) =
        explain(&["--regex", "abc", "--tokenizer", tokenizer.path(), "--at", "", "--why", "xyz"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no single token") && err.contains(r#""x" "y" "z""#), "{err}");
}

#[test]
fn dispatches_and_graphs_are_written() {
    let tools = json!([{"name": "f", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}]);
    let tools = File::new("tools.json", &tools.to_string());
    let dot = File::new("drawing.dot", "");
    let report =
        explain_json(&["--tools", tools.path(), "--dot", dot.path(), "--at", "Hm. <tool_call>"]);
    let dispatches = report["dispatches"].as_array().expect("dispatches");
    let text = dispatches
        .iter()
        .find(|d| d["tags"][0] == json!(["<tool_call>", "call of f"]))
        .expect("a dispatch of tags");
    // One state per proper prefix of a trigger or exclude, in text before and after a call. After a
    // trigger both continue alike; each spelling of a call has its own state.
    let tags = text["tags"].as_array().expect("tags").len() as u64;
    assert!((1..=tags).contains(&text["fired_states"].as_u64().expect("a number")), "{text}");
    assert!(text["text_states"].as_u64().expect("a number") > "<tool_call>".len() as u64, "{text}");
    assert_eq!(report["at"]["bytes"], "[\\n]");
    let drawing = std::fs::read_to_string(&dot.path).expect("a drawing");
    assert!(drawing.starts_with("digraph louver {") && drawing.ends_with("}\n"));
    assert!(
        drawing.contains("label=\"call of f\"")
            && drawing.contains("label=\"[header of f]\", style=dashed"),
        "{drawing}"
    );
    assert!(
        drawing.matches("subgraph").count() == report["automata"].as_array().map_or(0, Vec::len)
    );
}

#[test]
fn all_kinds_of_grammars_are_explained() {
    let ebnf =
        File::new("list.ebnf", "root ::= item (\",\" item)*\nitem ::= [a-z]+\nspare ::= \"x\"\n");
    let (code, out, err) = explain(&["--ebnf", ebnf.path(), "--at", "a,"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("spare") && out.contains("list.ebnf") && out.contains("warning"), "{out}");
    assert!(out.contains("grammar (") && out.contains("bytes: [a-z]\n  may end: no"), "{out}");
    let lark = File::new("list.lark", "start: item (\",\" item)*\nitem: /[a-z]+/\n");
    assert_eq!(explain_json(&["--lark", lark.path(), "--at", "a"])["at"]["bytes"], "[,a-z]");
    let tag = json!({"type": "structural_tag", "format": {"type": "const_string", "value": "yes"}});
    let tag = File::new("tag.json", &tag.to_string());
    assert_eq!(explain_json(&["--structural-tag", tag.path(), "--at", "ye"])["at"]["bytes"], "[s]");
    let wrong = File::new("wrong.ebnf", "root ::= itme\nitem ::= \"a\"\n");
    let (code, _, err) = explain(&["--ebnf", wrong.path()]);
    assert_eq!(code, Some(2));
    assert!(err.contains("itme") && err.contains("item"), "{err}");
}

#[test]
fn texts_are_explained_without_a_tokenizer() {
    let why = &explain_json(&["--regex", "xtr(y|ap)", "--at", "x", "--why", "true"])["at"]["why"];
    assert_eq!(
        (&why["id"], &why["token"], &why["allowed"]),
        (&Value::Null, &json!("true"), &json!(false))
    );
    assert_eq!(why["why"], "its byte 2 (u) is not allowed after \"tr\"; expected [ay]");
    let why = &explain_json(&["--regex", "try", "--why", "t"])["at"]["why"];
    assert_eq!(why["why"], "it is allowed");
    let (code, out, _) = explain(&["--regex", "try", "--why", "ta"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("text \"ta\": its byte 1 (a) is not allowed"), "{out}");
}

#[test]
fn errors_are_shown_in_the_source() {
    let (code, _, err) = explain(&["--regex", "ab(?>c)"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("pattern:1:3") && err.contains("^ an atomic group"), "{err}");
    let schema = File::new("wrong.json", r#"{"type": "strin"}"#);
    let (code, _, err) = explain(&["--schema", schema.path()]);
    assert!(code == Some(2) && err.contains("/type"), "{err}");
    assert_eq!(explain(&[]).0, Some(2));
    assert_eq!(explain(&["--regex", "a", "--lark", "x"]).0, Some(2));
}
