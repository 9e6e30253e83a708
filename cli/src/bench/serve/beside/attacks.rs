//! The attacks, as a table. Each body has a number in it, so that none is known from an earlier one.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::serve::demands::MOST_TOKENS;

/// How an attack is run, in a loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Bodies are posted to a route, and the answers read.
    Ask(&'static str),
    /// Bodies are posted to the chat route by a client that leaves after so long.
    Leave(Duration),
    /// Bytes are written on so many connections, each of which is kept for a while. `reads`: until
    /// the server says something, at most.
    Hold { connections: usize, reads: bool, at_most: Duration },
}

/// An attack: its name, how it is run, and its n-th body (for [`Way::Hold`] its n-th bytes).
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) way: Way,
    pub(super) body: fn(u64) -> Vec<u8>,
}

const CHAT: Way = Way::Ask("/v1/chat/completions");
const CHECK: Way = Way::Ask("/v1/louver/check");

/// All attacks. The first is none: what any other client costs is the measure of the others.
pub(super) const ATTACKS: [Attack; 11] = [
    Attack { name: "ordinary", way: CHAT, body: ordinary },
    Attack { name: "patterns", way: CHAT, body: patterns },
    Attack { name: "ambiguous-grammar", way: CHAT, body: ambiguous },
    Attack { name: "stop-strings", way: CHAT, body: stops },
    Attack { name: "many-names", way: CHAT, body: names },
    Attack { name: "dropped-compiles", way: Way::Leave(Duration::from_millis(5)), body: products },
    Attack { name: "checks", way: CHECK, body: products },
    Attack { name: "silent-bodies", way: silent(17), body: announced },
    Attack { name: "unread-streams", way: UNREAD, body: stream },
    Attack { name: "half-heads", way: silent(300), body: half_head },
    Attack { name: "products", way: CHAT, body: products },
];

const UNREAD: Way = Way::Hold { connections: 4, reads: false, at_most: Duration::from_secs(2) };

const fn silent(connections: usize) -> Way {
    Way::Hold { connections, reads: true, at_most: Duration::from_secs(60) }
}

/// A chat request with further members.
fn chat(members: Value) -> Value {
    let mut body = json!({
        "model": "tiny",
        "messages": [{"role": "user", "content": "Plan a day in Oslo."}],
        "max_completion_tokens": MOST_TOKENS,
        "seed": 1,
        "reasoning_effort": "none",
    });
    for (name, value) in members.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

fn answer(schema: &Value) -> Value {
    chat(
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}}}),
    )
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

/// What an honest client might ask.
fn ordinary(number: u64) -> Vec<u8> {
    let properties = json!({"city": {"enum": ["Oslo", "Lima", number.to_string()]}, "days": {"type": "integer", "maximum": 14}});
    bytes(&answer(&json!({
        "type": "object", "properties": properties, "required": ["city", "days"], "additionalProperties": false,
    })))
}

/// Eight counted patterns over Unicode classes: many configurations in each mask.
fn patterns(number: u64) -> Vec<u8> {
    let names: Vec<String> = (0..8).map(|n| format!("p{n}_{number}")).collect();
    let pattern = json!({"type": "string", "pattern": r"^([^\p{L}]*\P{Greek}{1,500})"});
    let properties: serde_json::Map<_, _> =
        names.iter().map(|name| (name.clone(), pattern.clone())).collect();
    bytes(&answer(&json!({
        "type": "object", "properties": properties, "required": names, "additionalProperties": false,
    })))
}

/// A grammar in which every text has very many derivations.
fn ambiguous(number: u64) -> Vec<u8> {
    let grammar = format!(
        "root ::= \"{number}\"? x+ y\nx ::= [a-z]+ \" \"? | x x\ny ::= x* y? \".\" | x y\n"
    );
    bytes(&chat(json!({
        "response_format": {"type": "structural_tag", "format": {"type": "grammar", "grammar": grammar}},
    })))
}

/// Stop strings, by turns as long as they may be and longer.
fn stops(number: u64) -> Vec<u8> {
    let bytes_each = if number.is_multiple_of(2) { 8_000 } else { 80_000 };
    let stops: Vec<String> =
        (0..16).map(|n| format!("{}{number} {n}", "ab".repeat(bytes_each / 2))).collect();
    bytes(&chat(json!({"stop": stops})))
}

/// 100,000 names, each declared and required: 3 MB.
fn names(number: u64) -> Vec<u8> {
    static SCHEMA: LazyLock<String> = LazyLock::new(|| {
        let names: Vec<String> =
            (0..100_000u32).map(|n| format!("\"{}\"", n.wrapping_mul(2_654_435_761))).collect();
        let properties: Vec<String> = names.iter().map(|name| format!("{name}:{{}}")).collect();
        format!("\"required\":[{}],\"properties\":{{{}}}", names.join(","), properties.join(","))
    });
    let schema = json!({"type": "object", "title": number.to_string(), "SCHEMA": 0});
    let body = answer(&schema).to_string();
    body.replacen("\"SCHEMA\":0", &SCHEMA, 1).into_bytes()
}

/// Schemas whose compilation costs much, by turns: alternatives that overlap, until the fuel is
/// spent; a product of alternatives that is just within the limits; conditions that hold together,
/// which are refused early.
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
    bytes(&answer(&schema))
}

/// The head of a request with a body of 4 MB, which never comes.
fn announced(_: u64) -> Vec<u8> {
    head(4_000_000)
}

/// A whole request for a stream.
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
    fn bodies_are_requests_and_differ() {
        for attack in &ATTACKS {
            let [first, second] = [0, 1].map(|number| (attack.body)(number));
            if !matches!(attack.way, Way::Hold { .. }) {
                let body: Value = serde_json::from_slice(&first).unwrap();
                assert_eq!(body["model"], "tiny", "{}", attack.name);
                assert_ne!(first, second, "{}", attack.name);
            }
            assert!(first.len() < 4 << 20, "{}", attack.name);
        }
        let names: Value = serde_json::from_slice(&names(0)).unwrap();
        let schema = &names["response_format"]["json_schema"]["schema"];
        assert_eq!(schema["required"].as_array().unwrap().len(), 100_000);
        assert_eq!(schema["properties"].as_object().unwrap().len(), 100_000);
    }
}
