//! The table of attacks. Each body contains a number, so that caches do not help.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::serve::chat_cases::MAX_TOKENS;

/// How an attack is run, in a loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttackMode {
    /// Posts bodies to a route and reads the responses.
    Post(&'static str),
    /// Posts bodies to the chat route and disconnects after this time.
    Leave(Duration),
    /// Writes bytes on a number of connections and keeps each open for some time; with `reads` at
    /// most until the server sends data.
    Hold { connections: usize, reads: bool, at_most: Duration },
}

/// An attack: its name, its mode, and its n-th body (for [`AttackMode::Hold`] its n-th bytes).
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) mode: AttackMode,
    pub(super) body: fn(u64) -> Vec<u8>,
}

const CHAT: AttackMode = AttackMode::Post("/v1/chat/completions");
const CHECK: AttackMode = AttackMode::Post("/v1/louver/check");

/// All attacks. The first two are clients that attack nothing, as baselines for the others.
pub(super) const ATTACKS: [Attack; 12] = [
    Attack { name: "ordinary", mode: CHAT, body: ordinary },
    Attack { name: "long-text", mode: CHAT, body: long_text },
    Attack { name: "patterns", mode: CHAT, body: patterns },
    Attack { name: "ambiguous-grammar", mode: CHAT, body: ambiguous },
    Attack { name: "stop-strings", mode: CHAT, body: stops },
    Attack { name: "many-names", mode: CHAT, body: many_names },
    Attack {
        name: "dropped-compiles",
        mode: AttackMode::Leave(Duration::from_millis(5)),
        body: products,
    },
    Attack { name: "checks", mode: CHECK, body: products },
    Attack { name: "silent-bodies", mode: hold_silently(17), body: head_without_body },
    Attack { name: "unread-streams", mode: UNREAD, body: stream },
    Attack { name: "half-heads", mode: hold_silently(300), body: half_head },
    Attack { name: "products", mode: CHAT, body: products },
];

const UNREAD: AttackMode =
    AttackMode::Hold { connections: 4, reads: false, at_most: Duration::from_secs(2) };

const fn hold_silently(connections: usize) -> AttackMode {
    AttackMode::Hold { connections, reads: true, at_most: Duration::from_secs(60) }
}

/// A chat request with additional members.
fn chat(members: Value) -> Value {
    let mut body = json!({
        "model": "tiny",
        "messages": [{"role": "user", "content": "Plan a day in Oslo."}],
        "max_completion_tokens": MAX_TOKENS,
        "seed": 1,
        "reasoning_effort": "none",
    });
    for (name, value) in members.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

fn with_schema(schema: &Value) -> Value {
    chat(
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}}}),
    )
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

/// A typical request.
fn ordinary(number: u64) -> Vec<u8> {
    let properties = json!({"city": {"enum": ["Oslo", "Lima", number.to_string()]}, "days": {"type": "integer", "maximum": 14}});
    bytes(&with_schema(&json!({
        "type": "object", "properties": properties, "required": ["city", "days"], "additionalProperties": false,
    })))
}

/// Text without a structure, as long as the longest answers to attacks.
fn long_text(number: u64) -> Vec<u8> {
    bytes(&chat(json!({"seed": number})))
}

/// Eight counted patterns over Unicode classes: many configurations per mask.
fn patterns(number: u64) -> Vec<u8> {
    let names: Vec<String> = (0..8).map(|n| format!("p{n}_{number}")).collect();
    let pattern = json!({"type": "string", "pattern": r"^([^\p{L}]*\P{Greek}{1,500})"});
    let properties: serde_json::Map<_, _> =
        names.iter().map(|name| (name.clone(), pattern.clone())).collect();
    bytes(&with_schema(&json!({
        "type": "object", "properties": properties, "required": names, "additionalProperties": false,
    })))
}

/// A highly ambiguous grammar.
fn ambiguous(number: u64) -> Vec<u8> {
    let grammar = format!(
        "root ::= \"{number}\"? x+ y\nx ::= [a-z]+ \" \"? | x x\ny ::= x* y? \".\" | x y\n"
    );
    bytes(&chat(json!({
        "response_format": {"type": "structural_tag", "format": {"type": "grammar", "grammar": grammar}},
    })))
}

/// Stop strings, alternating between the maximum length and beyond it.
fn stops(number: u64) -> Vec<u8> {
    let bytes_each = if number.is_multiple_of(2) { 8_000 } else { 80_000 };
    let stops: Vec<String> =
        (0..16).map(|n| format!("{}{number} {n}", "ab".repeat(bytes_each / 2))).collect();
    bytes(&chat(json!({"stop": stops})))
}

/// 100,000 property names, each declared and required: 3 MB.
fn many_names(number: u64) -> Vec<u8> {
    static SCHEMA: LazyLock<String> = LazyLock::new(|| {
        let names: Vec<String> =
            (0..100_000u32).map(|n| format!("\"{}\"", n.wrapping_mul(2_654_435_761))).collect();
        let properties: Vec<String> = names.iter().map(|name| format!("{name}:{{}}")).collect();
        format!("\"required\":[{}],\"properties\":{{{}}}", names.join(","), properties.join(","))
    });
    let schema = json!({"type": "object", "title": number.to_string(), "SCHEMA": 0});
    let body = with_schema(&schema).to_string();
    body.replacen("\"SCHEMA\":0", &SCHEMA, 1).into_bytes()
}

/// Schemas with expensive compilation, in rotation: overlapping alternatives, until the fuel is
/// spent; a product of alternatives just within the limits; joint conditions, which are rejected
/// early.
fn products(number: u64) -> Vec<u8> {
    let string = |name: String, length: u64| json!({"properties": {name: {"type": "string", "maxLength": length}}});
    let mut schema = match number % 3 {
        0 => {
            json!({"oneOf": (0..200).map(|n| string(format!("a{n}_{number}"), 9)).collect::<Vec<_>>()})
        }
        1 => {
            let part = |n: u64| {
                let pattern = json!({"properties": {format!("b{n}"): {"pattern": format!("^(.*{n}|a*b*)$")}}});
                json!({"oneOf": [string(format!("a{n}_{number}"), n + 3), pattern, {"required": [format!("c{n}")]}]})
            };
            json!({"allOf": (0..6).map(part).collect::<Vec<_>>()})
        }
        _ => {
            let part = |n: u64| {
                let condition = json!({"properties": {"kind": {"const": format!("{n} {number}")}}, "required": ["kind"]});
                json!({"if": condition, "then": {"required": [format!("b{n}")]}, "else": string(format!("b{n}"), n)})
            };
            json!({"allOf": (0..200).map(part).collect::<Vec<_>>()})
        }
    };
    schema["type"] = "object".into();
    bytes(&with_schema(&schema))
}

/// The head of a request whose body of 4 MB never arrives.
fn head_without_body(_: u64) -> Vec<u8> {
    head(4_000_000)
}

/// A complete streaming request.
fn stream(number: u64) -> Vec<u8> {
    let body = bytes(&chat(json!({"stream": true, "seed": number})));
    [head(body.len()), body].concat()
}

fn half_head(_: u64) -> Vec<u8> {
    let head = head(10);
    head[..head.len() / 2].to_vec()
}

fn head(body_bytes: usize) -> Vec<u8> {
    let route =
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    format!("{route}\r\ncontent-length: {body_bytes}\r\n\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_distinct_requests() {
        for attack in &ATTACKS {
            let [first, second] = [0, 1].map(|number| (attack.body)(number));
            if !matches!(attack.mode, AttackMode::Hold { .. }) {
                let body: Value = serde_json::from_slice(&first).unwrap();
                assert_eq!(body["model"], "tiny", "{}", attack.name);
                assert_ne!(first, second, "{}", attack.name);
            }
            assert!(first.len() < 4 << 20, "{}", attack.name);
        }
        let names: Value = serde_json::from_slice(&many_names(0)).unwrap();
        let schema = &names["response_format"]["json_schema"]["schema"];
        assert_eq!(schema["required"].as_array().unwrap().len(), 100_000);
        assert_eq!(schema["properties"].as_object().unwrap().len(), 100_000);
    }
}
