//! Mutated request bodies: each is either served or rejected with a typed error and a pointer.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Server, ask};

/// Number of bodies per route.
const BODIES: usize = 100;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    fn value(&mut self) -> Value {
        let values = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1e300),
            json!(u64::MAX),
            json!(""),
            json!("\u{0}\u{fffd}</tool_call>"),
            json!("a".repeat(3_000)),
            json!([]),
            json!([[[{}]]]),
            json!({}),
            json!({"type": "function", "function": {"name": "</tool_call>"}}),
            json!({"type": "json_schema", "json_schema": {"schema": {"$ref": "#"}}}),
            json!({"type": "string", "pattern": "((a|a)*)*$", "maxLength": 99_999}),
            json!([{"role": "user", "content": null}]),
        ];
        values[self.below(values.len())].clone()
    }

    /// Replaces, removes or adds a random part of a value.
    fn mutate(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) if !members.is_empty() && self.below(5) > 0 => {
                let name =
                    members.keys().nth(self.below(members.len())).cloned().unwrap_or_default();
                match self.below(8) {
                    0 => drop(members.shift_remove(&name)),
                    1 => drop(members.insert(format!("{name}s"), self.value())),
                    _ => members.get_mut(&name).into_iter().for_each(|inner| self.mutate(inner)),
                }
            }
            Value::Array(items) if !items.is_empty() && self.below(5) > 0 => {
                let at = self.below(items.len());
                match self.below(8) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    _ => self.mutate(&mut items[at]),
                }
            }
            other => *other = self.value(),
        }
    }

    /// Serialises a body; sometimes truncates it or changes a byte.
    fn corrupt(&mut self, body: &Value) -> Vec<u8> {
        let mut text = body.to_string().into_bytes();
        match self.below(12) {
            0 => text.truncate(self.below(text.len())),
            1 => {
                let at = self.below(text.len());
                text[at] = self.below(256) as u8;
            }
            _ => {}
        }
        text
    }
}

fn seeds() -> Vec<Value> {
    let schema = json!({"type": "object", "properties": {"a": {"enum": [1, "x"]}, "b": {"type": "array", "items": {"type": "integer"}}}});
    let function = json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": schema, "strict": true}});
    let grammar =
        json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"a\"+"}});
    let custom = json!({"type": "custom", "custom": {"name": "c", "format": grammar}});
    let conversation = json!([
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "{}"},
    ]);
    let tag = json!({"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"}});
    vec![
        ask(
            json!({"max_tokens": 3, "temperature": 0.5, "top_p": 0.9, "seed": 1, "stop": ["x", "yz"], "n": 1}),
        ),
        ask(
            json!({"max_tokens": 3, "tools": [function, custom], "tool_choice": "required", "messages": conversation}),
        ),
        ask(
            json!({"max_tokens": 3, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}),
        ),
        ask(json!({"max_tokens": 3, "response_format": tag})),
    ]
}

fn messages_seeds() -> Vec<Value> {
    let schema = json!({"type": "object", "properties": {"a": {"enum": [1, "x"]}}});
    let conversation = json!([
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}]},
    ]);
    let ask = |more: Value| {
        let mut body = json!({"model": "tiny", "max_tokens": 3, "thinking": {"type": "disabled"},
            "messages": [{"role": "user", "content": "u"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    vec![
        ask(json!({"system": "s", "stop_sequences": ["x", "yz"], "temperature": 0.5, "top_k": 5})),
        ask(json!({"messages": conversation, "tool_choice": {"type": "any"},
            "tools": [{"name": "f", "description": "d", "input_schema": schema, "strict": true}]})),
        ask(
            json!({"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}}}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_bodies_have_typed_responses() {
    let limits = "[limits.requests]\nmax_tokens = 4\ntimeout_s = 20\n";
    let server = Server::start(limits).await;
    let mut random = Random(0x5DEE_CE66);
    let (mut answered, mut refused) = (0, 0);
    for route in ["/v1/louver/check", "/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        for _ in 0..BODIES {
            let seeds = if route == "/v1/messages" { messages_seeds() } else { seeds() };
            let mut body = seeds[random.below(seeds.len())].clone();
            if route == "/v1/responses" {
                let messages = body["messages"].take();
                body["input"] = messages;
            }
            (0..=random.below(3)).for_each(|_| random.mutate(&mut body));
            let text = random.corrupt(&body);
            let shown = String::from_utf8_lossy(&text).into_owned();
            let answer =
                tokio::time::timeout(Duration::from_secs(60), server.post(route, text)).await;
            let answer = answer.unwrap_or_else(|_| panic!("{route} hangs: {shown}"));
            assert!(
                matches!(answer.status, 200 | 400 | 404 | 408 | 413 | 422),
                "{}: {}\n{shown}",
                answer.status,
                answer.text
            );
            if answer.status == 200 {
                answered += 1;
            } else {
                refused += 1;
                let error = &answer.json()["error"];
                assert!(
                    error["code"].is_string() && error["message"].is_string(),
                    "{}\n{shown}",
                    answer.text
                );
            }
        }
    }
    assert!(
        answered > BODIES / 2 && refused > BODIES / 2,
        "{answered} answered, {refused} refused"
    );
    assert_eq!(server.get("/healthz").await.status, 200);
}
