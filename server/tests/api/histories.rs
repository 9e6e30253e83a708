//! Conversations with calls and results, from a table: what is refused, where, and what the model
//! sees.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, Server, TableRequest, ask};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    route: String,
    body: String,
    errors: Vec<(String, String)>,
    /// Another conversation that the model sees as the same.
    same: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// The path and the body of a conversation on a route.
fn request(route: &str, history: &str) -> (&'static str, String) {
    let history: Value = serde_json::from_str(history).unwrap_or_else(|e| panic!("{history}: {e}"));
    let (path, body) = match route {
        "chat" => ("/v1/chat/completions", json!({"messages": history, "max_tokens": 1})),
        "responses" => {
            ("/v1/responses", json!({"input": history, "max_output_tokens": 12, "seed": 1}))
        }
        _ => ("/v1/messages", json!({"messages": history, "max_tokens": 1})),
    };
    (path, body.to_string())
}

impl Case {
    fn check(&self, answer: &Answer) {
        let Case { name, errors, .. } = self;
        let status = if errors.is_empty() { 200 } else { 400 };
        assert_eq!(answer.status, status, "{name}: {}", answer.text);
        let found = faults(answer);
        let is_same = found.len() == errors.len()
            && found.iter().zip(errors).all(|((pointer, message), (expected, part))| {
                pointer == expected && message.contains(part)
            });
        assert!(is_same, "{name}: {found:#?}");
    }
}

/// The requests of the table.
pub(crate) fn requests() -> Vec<TableRequest> {
    let cases: Cases = toml::from_str(include_str!("histories.toml")).unwrap();
    let request = |case: Case| {
        let (path, body) = request(&case.route, &case.body);
        let name = case.name.clone();
        TableRequest { name, path, body, check: Box::new(move |answer| case.check(answer)) }
    };
    cases.case.into_iter().map(request).collect()
}

/// What the model wrote and the length of its prompt. They differ if the prompts do.
fn seen(answer: &Answer) -> (Value, Value) {
    let body = answer.json();
    (body["output"][0]["content"].clone(), body["usage"]["input_tokens"].clone())
}

/// The pointers and messages of an answer's faults.
fn faults(answer: &Answer) -> Vec<(String, String)> {
    let body = answer.json();
    let errors = match (&body["errors"], &body["error"]) {
        (Value::Array(errors), _) => errors.clone(),
        (_, error @ Value::Object(_)) => vec![error.clone()],
        _ => Vec::new(),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    errors.iter().map(|error| (text(&error["param"]), text(&error["message"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_results_belong_together() {
    let cases: Cases = toml::from_str(include_str!("histories.toml")).unwrap();
    let server = Server::start("").await;
    for case in &cases.case {
        let send = async |history: &str| {
            let (path, body) = request(&case.route, history);
            server.post(path, body).await
        };
        let answer = send(&case.body).await;
        case.check(&answer);
        if let Some(same) = &case.same {
            assert_eq!(seen(&answer), seen(&send(same).await), "{}", case.name);
        }
    }
}

/// Calls without results in the conversation of a stored response are its fault.
#[tokio::test(flavor = "multi_thread")]
async fn stored_calls_need_their_results() {
    let server = Server::start("").await;
    let tool = json!({"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}});
    let mut body = json!({"input": "u", "tools": [tool], "tool_choice": "required", "seed": 1,
        "parallel_tool_calls": false, "max_output_tokens": 100, "reasoning": {"effort": "none"}});
    let first = server.post("/v1/responses", body.to_string()).await.json();
    let id = first["output"][0]["call_id"].as_str().expect("a call").to_owned();
    body["previous_response_id"] = first["id"].clone();
    let answer = server.post("/v1/responses", body.to_string()).await;
    assert_eq!(faults(&answer)[0].0, "/previous_response_id", "{}", answer.text);
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "r"});
    body["input"] = json!([result(&id), result("other")]);
    let answer = server.post("/v1/responses", body.to_string()).await;
    assert_eq!(faults(&answer)[0].0, "/input/1/call_id", "{}", answer.text);
    let message = json!({"role": "user", "content": "v"});
    for input in [json!([result(&id)]), json!([message, result(&id)])] {
        body["input"] = input;
        let answer = server.post("/v1/responses", body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_count_as_messages() {
    let server = Server::start("[limits.requests]\nmessages = 6").await;
    for (calls, status) in [(2, 200), (3, 400)] {
        let call = |k| json!({"id": format!("{k}"), "type": "function", "function": {"name": "f", "arguments": ""}});
        let result = |k| json!({"role": "tool", "tool_call_id": format!("{k}"), "content": "r"});
        let mut messages = vec![json!({"role": "user", "content": "u"})];
        let calls_json: Vec<Value> = (0..calls).map(call).collect();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls_json}));
        messages.extend((0..calls).map(result));
        let answer = server.chat(&ask(json!({"messages": messages, "max_tokens": 1}))).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(status == 400, answer.text.contains("with the calls in them"));
    }
}
