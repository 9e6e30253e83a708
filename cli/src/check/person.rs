//! One input against one JSON Schema, explained.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use louver::front::json_schema::SchemaOptions;
use louver::fsm::ByteSet;
use louver::limits::Limits;
use louver::matcher::{Recognizer, Rejected};

use super::spec;

pub(super) fn run(schema: &Path, options: &SchemaOptions, input: Option<&Path>) -> Result<ExitCode> {
    let limits = Limits::default();
    let text = fs::read_to_string(schema).with_context(|| format!("cannot read {}", schema.display()))?;
    let (compiled, relaxed) =
        spec::schema_text(&text, options, &limits).with_context(|| format!("schema {}", schema.display()))?;
    relaxed.iter().for_each(|relaxed| eprintln!("not enforced: {relaxed}"));
    let mut bytes = Vec::new();
    match input {
        Some(path) if path != Path::new("-") => {
            bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        }
        _ => drop(std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?),
    }
    let mut recognizer = Recognizer::with_limits(Arc::new(compiled), &limits);
    match verdict(&mut recognizer, trimmed(&bytes)) {
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

/// Why the input is not valid: where, and what was allowed there.
fn verdict(recognizer: &mut Recognizer, bytes: &[u8]) -> Result<(), String> {
    match recognizer.push(bytes) {
        Ok(()) if recognizer.is_complete() => Ok(()),
        Ok(()) => {
            let place = place(bytes, bytes.len());
            Err(format!("the text ends too early, at {place}\nallowed there: {}", allowed(recognizer.allowed(), false)))
        }
        Err(Rejected::Byte { offset, expected, could_end }) => {
            let found = found(&bytes[offset..]);
            let place = place(bytes, offset);
            Err(format!("{found} at {place} is not allowed\nallowed there: {}", allowed(expected, could_end)))
        }
        Err(limit) => Err(limit.to_string()),
    }
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
        let limits = Limits::default();
        let (compiled, _) = spec::schema_text(schema, &SchemaOptions::default(), &limits).unwrap();
        let mut recognizer = Recognizer::new(Arc::new(compiled));
        verdict(&mut recognizer, trimmed(input.as_bytes())).map_or_else(|why| why, |()| "valid".to_owned())
    }

    #[test]
    fn says_where_and_what() {
        let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}, "ä": {"enum": ["x", "y"]}},
            "required": ["n", "ä"], "additionalProperties": false}"#;
        assert_eq!(explain(schema, "{\"n\": 1, \"ä\": \"x\"}\r\n"), "valid");
        assert_eq!(
            explain(schema, "{\"n\": 1,\n \"ä\": \"é\"}"),
            "'é' at byte 17 (line 2, column 8) is not allowed\nallowed there: [xy]"
        );
        assert_eq!(
            explain(schema, "{\"n\": 1, \"ä\": \"y\""),
            "the text ends too early, at byte 18 (line 1, column 18)\nallowed there: [\\t\\n\\r }]"
        );
        assert_eq!(
            explain(r#"{"const": true}"#, "true!"),
            "'!' at byte 4 (line 1, column 5) is not allowed\nallowed there: the end of the text"
        );
    }

    #[test]
    fn bytes_that_are_no_text() {
        assert_eq!(found(&[0xff, b'a']), "byte 0xff");
        assert_eq!(found(&[0xc3, 0xa9, 0xff, 0xff]), "'é'");
        assert_eq!(place(&[0xff, b'\n', b'a'], 3), "byte 3 (line 2, column 2)");
    }
}
