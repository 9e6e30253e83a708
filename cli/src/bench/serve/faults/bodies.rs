//! Malformed bodies, and requests designed to be expensive.

use serde_json::{Value, json};

/// One of several malformed bodies.
pub(super) fn malformed(which: usize) -> Vec<u8> {
    let texts: [&[u8]; 16] = [
        b"",
        b"{",
        b"[1, 2",
        b"nul",
        b"\"messages\"",
        b"{\"messages\":",
        b"{\"messages\": []} {}",
        b"{\"messages\": [{}]}",
        b"{\"messages\": \"hi\"}",
        b"{\"messages\": [{\"role\": \"user\", \"content\": 5}]}",
        b"{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"tools\": 7}",
        b"{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"temperature\": \"hot\"}",
        b"{\"messages\": [{\"role\": \"user\", \"content\": \"\\ud800\"}], \"n\": 1e99}",
        b"\xff\xfe\x00",
        b"{\"messages\": [{\"role\": \"user\", \"content\": \"\xc3\x28\"}]}",
        b"\x00\x00\x00\x00",
    ];
    let depth = 100_000;
    match which % (texts.len() + 2) {
        0 => "[".repeat(depth).into_bytes(),
        1 => "{\"a\":".repeat(depth).into_bytes(),
        n => texts[n - 2].to_vec(),
    }
}

/// A body of 10 MB that would be valid if it were shorter.
pub(super) fn large() -> Vec<u8> {
    let content = "x".repeat(10_000_000);
    format!("{{\"messages\": [{{\"role\": \"user\", \"content\": \"{content}\"}}]}}").into_bytes()
}

/// A request with a schema that was not used before.
pub(super) fn new_schema(model: &str, number: u64) -> Value {
    let schema = json!({
        "type": "object", "properties": {"id": {"const": format!("{number:x}")}}, "required": ["id"],
        "additionalProperties": false,
    });
    json!({
        "model": model,
        "messages": [{"role": "user", "content": "Which one?"}],
        "max_completion_tokens": 100,
        "seed": number >> 12,
        "reasoning_effort": "none",
        "response_format": {"type": "json_schema", "json_schema": {"name": "fresh", "strict": true, "schema": schema}},
        "louver": {"whitespace": "python_like"},
    })
}

/// A request with an expensive schema: its name and the body. Numbers keep their notation.
// Long: a table of schemas.
pub(super) fn hostile(model: &str, which: usize) -> (&'static str, Vec<u8>) {
    let schemas: [(&str, fn() -> String); 20] = [
        ("a long array", || r#"{"type": "array", "minItems": 1000000000}"#.to_owned()),
        ("a long string", || {
            r#"{"type": "string", "minLength": 1000000000, "maxLength": 1000000000}"#.to_owned()
        }),
        ("repeats of repeats", || {
            r#"{"type": "string", "pattern": "^((a{1000}){1000}){1000}$"}"#.to_owned()
        }),
        ("backtracking", || r#"{"type": "string", "pattern": "^(a+)+(a|aa)*b$"}"#.to_owned()),
        ("many look-aheads", || {
            format!(r#"{{"type": "string", "pattern": "^{}x$"}}"#, "(?=.*a)".repeat(200))
        }),
        ("a reference to itself", || r##"{"$ref": "#"}"##.to_owned()),
        ("references in a ring", || {
            r##"{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}"##.to_owned()
        }),
        ("a reference elsewhere", || r#"{"$ref": "http://127.0.0.1:1/schema.json"}"#.to_owned()),
        ("a large enum", || {
            format!(
                r#"{{"enum": [{}]}}"#,
                join_numbered(20_000, |i| format!("\"value number {i}\""))
            )
        }),
        ("many members", || {
            let members = join_numbered(3000, |i| format!(r#""member{i}": {{"type": "string"}}"#));
            format!(r#"{{"type": "object", "properties": {{{members}}}}}"#)
        }),
        ("deep nesting", || {
            format!(r#"{}{{"type": "null"}}{}"#, r#"{"anyOf": ["#.repeat(300), "]}".repeat(300))
        }),
        ("deep arrays", || {
            format!(r#"{}{{}}{}"#, r#"{"type": "array", "items": "#.repeat(400), "}".repeat(400))
        }),
        ("overlapping branches", || {
            let branch = |i| {
                format!(r#"{{"type": "object", "properties": {{"a{i}": {{"type": "string"}}}}}}"#)
            };
            format!(r#"{{"oneOf": [{}]}}"#, join_numbered(200, branch))
        }),
        ("products of alternatives", || {
            let all = join_numbered(30, |i| {
                format!(r#"{{"anyOf": [{{"minLength": {i}}}, {{"maxLength": {}}}]}}"#, i + 5)
            });
            format!(r#"{{"type": "string", "allOf": [{all}]}}"#)
        }),
        ("a huge number", || {
            r#"{"type": "number", "minimum": 1e400, "maximum": 1e401}"#.to_owned()
        }),
        ("a tiny step", || r#"{"type": "number", "multipleOf": 1e-300}"#.to_owned()),
        ("many digits", || format!(r#"{{"type": "integer", "minimum": {}}}"#, "9".repeat(5000))),
        ("negations", || {
            r#"{"not": {"not": {"not": {"type": "object", "properties": {"a": {"not": {}}}}}}}"#
                .to_owned()
        }),
        ("overlapping patterns", || {
            let patterns =
                join_numbered(40, |i| format!(r#""^(.*{i}|a*b*)$": {{"minLength": {i}}}"#));
            format!(
                r#"{{"type": "object", "patternProperties": {{{patterns}}}, "minProperties": 30}}"#
            )
        }),
        ("a kind that is none", || r#"{"type": ["object", "wish"], "properties": 5}"#.to_owned()),
    ];
    let (name, schema) = schemas[which % schemas.len()];
    let body = format!(
        r#"{{"model": "{model}", "messages": [{{"role": "user", "content": "x"}}], "max_completion_tokens": 24, "seed": 1,
        "reasoning_effort": "none", "response_format": {{"type": "json_schema", "json_schema": {{"name": "x", "strict": true,
        "schema": {}}}}}}}"#,
        schema()
    );
    (name, body.into_bytes())
}

fn join_numbered(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_bodies_have_their_kind() {
        assert!((0..18).all(|which| malformed(which).len() < 1_000_000));
        assert!((2..18).any(|which| serde_json::from_slice::<Value>(&malformed(which)).is_ok()));
        for which in 0..20 {
            let (name, body) = hostile("tiny", which);
            let text = String::from_utf8(body).unwrap();
            assert!(text.len() < 2_000_000 && text.contains("json_schema"), "{name}");
        }
        assert!(large().len() > 10_000_000);
        assert_ne!(new_schema("tiny", 1), new_schema("tiny", 2));
    }
}
