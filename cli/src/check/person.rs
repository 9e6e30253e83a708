//! One input against one JSON Schema, explained.

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use louver::compile::Compiled;
use louver::engine::{CompletionOptions, Engine, EngineOptions};
use louver::front::json_schema::SchemaOptions;
use louver::fsm::ByteSet;
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::matcher::{Recognizer, Rejected};
use louver::spec::json::push_token;
use louver::vocab::Vocabulary;
use serde_json::Value;

use super::spec;

/// Most violated keywords that are shown.
const MAX_KEYWORDS: usize = 5;
/// Most characters of an example.
const MAX_EXAMPLE: usize = 100;

pub(super) fn run(
    schema: &Path,
    options: &SchemaOptions,
    input: Option<&Path>,
) -> Result<ExitCode> {
    let limits = Limits::default();
    let text =
        fs::read_to_string(schema).with_context(|| format!("cannot read {}", schema.display()))?;
    let (compiled, relaxed) = spec::schema_text(&text, options, &limits)
        .with_context(|| format!("schema {}", schema.display()))?;
    relaxed.iter().for_each(|relaxed| eprintln!("not enforced: {relaxed}"));
    let mut bytes = Vec::new();
    match input {
        Some(path) if path != Path::new("-") => {
            bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        }
        _ => drop(std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?),
    }
    match verdict(Arc::new(compiled), &text, trimmed(&bytes)) {
        Ok(()) => {
            println!("valid");
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            println!("not valid: {why}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Without the line break that ends a text file.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Why the input is not valid: where, by which keyword, and what was allowed there.
fn verdict(compiled: Arc<Compiled>, schema: &str, bytes: &[u8]) -> Result<(), String> {
    let mut recognizer = Recognizer::with_limits(compiled.clone(), &Limits::default());
    let (offset, what, allowed) = match recognizer.push(bytes) {
        Ok(()) if recognizer.is_complete() => return Ok(()),
        Ok(()) => {
            let what = format!("the text ends too early, at {}", place(bytes, bytes.len()));
            (bytes.len(), what, allowed(recognizer.allowed(), false))
        }
        Err(Rejected::Byte { offset, expected, could_end }) => {
            let what =
                format!("{} at {} is not allowed", found(&bytes[offset..]), place(bytes, offset));
            (offset, what, allowed(expected, could_end))
        }
        Err(limit) => return Err(limit.to_string()),
    };
    let mut out = format!("{what}\nin the value at {:?}", pointer(&bytes[..offset]));
    for (at, keyword, why) in keywords(schema, bytes) {
        let _ = write!(out, "\n{at:?}: {why}; keyword {keyword:?}");
    }
    let _ = write!(out, "\nallowed there: {allowed}");
    if let Some(example) = example(compiled, &bytes[..offset]) {
        let _ = write!(out, "\nfor example: {example}");
    }
    Err(out)
}

/// Which keywords a whole instance violates: pointers to the value and to the keyword, and why. If
/// there are none, the value is valid and its spelling, or the order of its members, is none that
/// is generated.
fn keywords(schema: &str, bytes: &[u8]) -> Vec<(String, String, String)> {
    let (Ok(schema), Ok(instance)) =
        (serde_json::from_str(schema), serde_json::from_slice::<Value>(bytes))
    else {
        return Vec::new();
    };
    let Ok(validator) = jsonschema::options().should_validate_formats(true).build(&schema) else {
        return Vec::new();
    };
    let all: Vec<_> = validator.iter_errors(&instance).take(MAX_KEYWORDS).collect();
    if all.is_empty() {
        let why = "the value is valid, but not spelled as it is generated (docs/JSON_SCHEMA.md, Spelling and Numbers)";
        return vec![(String::new(), String::new(), why.to_owned())];
    }
    let shown = |error: &jsonschema::ValidationError<'_>| {
        (error.instance_path.to_string(), error.schema_path.to_string(), error.to_string())
    };
    all.iter().map(shown).collect()
}

/// The beginning of a text and the shortest end that makes it whole.
fn example(compiled: Arc<Compiled>, prefix: &[u8]) -> Option<String> {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let mut matcher = engine.bind(compiled).ok()?.matcher();
    for &byte in prefix {
        matcher.advance(TokenId::from_raw(byte.into())).ok()?;
    }
    let rest = matcher.shortest_completion(&CompletionOptions::default()).ok()?.bytes()?;
    let text = String::from_utf8([prefix, &rest].concat()).ok()?;
    let begin = text.char_indices().rev().nth(MAX_EXAMPLE - 1).map_or(0, |(at, _)| at);
    Some(format!("{}{}", if begin > 0 { "..." } else { "" }, &text[begin..]))
}

/// The JSON pointer of the value that is being written where a text has been cut off.
fn pointer(text: &[u8]) -> String {
    // Per open container: the index in an array, or the name of an object's member behind its
    // colon.
    enum Open {
        Array(usize),
        Object(Option<String>),
    }
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let begin = at - 1;
                while let Some(&byte) = text.get(at) {
                    at += if byte == b'\\' { 2 } else { 1 };
                    if byte == b'"' {
                        break;
                    }
                }
                if let Some(Open::Object(name @ None)) = open.last_mut() {
                    *name = serde_json::from_slice(&text[begin..at.min(text.len())]).ok();
                }
            }
            b'[' => open.push(Open::Array(0)),
            b'{' => open.push(Open::Object(None)),
            b']' | b'}' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Array(index)) => *index += 1,
                Some(Open::Object(name)) => *name = None,
                None => {}
            },
            _ => {}
        }
    }
    let mut out = String::new();
    for open in open {
        match open {
            Open::Array(index) => push_token(&mut out, &index.to_string()),
            Open::Object(Some(name)) => push_token(&mut out, &name),
            Open::Object(None) => {}
        }
    }
    out
}

/// A byte offset, with its line and its column in characters, both from 1.
fn place(bytes: &[u8], offset: usize) -> String {
    let before = &bytes[..offset];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let begin = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[begin..]).chars().count() + 1;
    format!("byte {offset} (line {line}, column {column})")
}

/// The character that begins here, or the byte where there is none.
fn found(rest: &[u8]) -> String {
    let head = &rest[..rest.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    match (valid.chars().next(), rest.first()) {
        (Some(c), _) => format!("{c:?}"),
        (None, Some(byte)) => format!("byte 0x{byte:02x}"),
        (None, None) => "the end".to_owned(),
    }
}

fn allowed(bytes: ByteSet, end: bool) -> String {
    match (bytes.is_empty(), end) {
        (true, true) => "the end of the text".to_owned(),
        (true, false) => "nothing".to_owned(),
        (false, true) => format!("{bytes} or the end of the text"),
        (false, false) => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(schema: &str, input: &str) -> String {
        let (compiled, _) =
            spec::schema_text(schema, &SchemaOptions::default(), &Limits::default()).unwrap();
        verdict(Arc::new(compiled), schema, trimmed(input.as_bytes()))
            .map_or_else(|why| why, |()| "valid".to_owned())
    }

    #[test]
    fn says_where_and_what() {
        let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}, "ä": {"enum": ["x", "y"]}},
            "required": ["n", "ä"], "additionalProperties": false}"#;
        assert_eq!(explain(schema, "{\"n\": 1, \"ä\": \"x\"}\r\n"), "valid");
        assert_eq!(
            explain(schema, "{\"n\": 1,\n \"ä\": \"é\"}"),
            "'é' at byte 17 (line 2, column 8) is not allowed\nin the value at \"/ä\"\n\
             \"/ä\": \"é\" is not one of \"x\" or \"y\"; keyword \"/properties/ä/enum\"\n\
             allowed there: [xy]\nfor example: {\"n\": 1,\n \"ä\": \"x\"}"
        );
        assert_eq!(
            explain(schema, "{\"n\": 1, \"ä\": \"y\""),
            "the text ends too early, at byte 18 (line 1, column 18)\nin the value at \"/ä\"\n\
             allowed there: [\\t\\n\\r }]\nfor example: {\"n\": 1, \"ä\": \"y\"}"
        );
        let schema = r#"{"properties": {"list": {"items": {"multipleOf": 5, "type": "integer"}}}, "type": "object"}"#;
        let why = explain(schema, r#"{"list": [10, 12]}"#);
        assert!(why.contains("\"/list/1\": 12 is not a multiple of 5"), "{why}");
        assert!(why.contains("keyword \"/properties/list/items/multipleOf\""), "{why}");
        assert!(why.contains("for example: {\"list\": [10, 120]}"), "{why}");
        let why = explain(r#"{"type": "integer"}"#, "7.0");
        assert!(why.contains("the value is valid, but not spelled as it is generated"), "{why}");
        let why = explain(r#"{"type": "object", "required": ["a"]}"#, "{}");
        assert!(why.contains("\"a\" is a required property; keyword \"/required\""), "{why}");
    }

    #[test]
    fn pointers_of_texts_that_are_cut_off() {
        for (text, want) in [
            ("", ""),
            ("[1, 2", "/1"),
            (r#"{"a": [{"b~/c": tr"#, "/a/0/b~0~1c"),
            (r#"{"a": "x\", "b"#, "/a"),
            (r#"{"a": 1, "b"#, ""),
            (r#"{"\u0061": {"x": [[], {}]}, "c": [0, ["#, "/c/1/0"),
            ("]]}", ""),
        ] {
            assert_eq!(pointer(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text() {
        assert_eq!(found(&[0xff, b'a']), "byte 0xff");
        assert_eq!(found(&[0xc3, 0xa9, 0xff, 0xff]), "'é'");
        assert_eq!(place(&[0xff, b'\n', b'a'], 3), "byte 3 (line 2, column 2)");
    }
}
