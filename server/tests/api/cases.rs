//! Chat requests from a table, with checks of their responses.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, Server, TableRequest, ask, tools};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    body: Option<String>,
    raw: Option<String>,
    status: u16,
    code: Option<String>,
    param: Option<String>,
    params: Option<Vec<String>>,
    finish: Option<Vec<String>>,
    /// The only tool that is called.
    calls: Option<String>,
    /// The report's completion; "none": there is no report.
    completion: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

impl Case {
    fn request(&self) -> String {
        let Some(body) = &self.body else { return self.raw.clone().unwrap() };
        let mut request = ask(
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{}: {error}", self.name))
        );
        if request["tools"] == "TOOLS" {
            request["tools"] = tools();
        }
        request.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        request.to_string()
    }

    fn check(&self, answer: &Answer) {
        let name = &self.name;
        assert_eq!(answer.status, self.status, "{name}: {}", answer.text);
        let body = answer.json();
        if self.status != 200 {
            return self.check_error(&body);
        }
        let choice = &body["choices"][0];
        if let Some(finish) = &self.finish {
            assert!(finish.iter().any(|word| choice["finish_reason"] == **word), "{name}: {body}");
        }
        let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
        // A turn truncated after a call has this finish reason.
        let finish = if calls.is_empty() { ["stop", "length"] } else { ["tool_calls", "length"] };
        assert!(finish.iter().any(|word| choice["finish_reason"] == *word), "{name}: {body}");
        let sent: Value = serde_json::from_str(&self.request()).unwrap();
        for call in &calls {
            check_call_of(name, &sent["tools"], call);
            assert!(
                self.calls.as_ref().is_none_or(|only| call["function"]["name"] == **only),
                "{name}: {body}"
            );
        }
        match self.completion.as_deref() {
            Some("none") => assert!(body.get("louver").is_none(), "{name}: {body}"),
            Some(completion) => {
                assert_eq!(body["louver"]["report"]["completion"], completion, "{name}: {body}")
            }
            None => assert!(body["louver"]["report"]["level"].is_string(), "{name}: {body}"),
        }
        let usage = &body["usage"];
        let total =
            usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
        assert_eq!(usage["total_tokens"], total, "{name}: {body}");
    }

    fn check_error(&self, body: &Value) {
        let name = &self.name;
        let error = &body["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{name}: {body}");
        if let Some(code) = &self.code {
            assert_eq!(error["code"], **code, "{name}: {body}");
        }
        if let Some(param) = &self.param {
            assert_eq!(error["param"], **param, "{name}: {body}");
        }
        if let Some(params) = &self.params {
            let found: Vec<&str> = body["errors"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|e| e["param"].as_str())
                .collect();
            assert_eq!(found, *params, "{name}: {body}");
        }
    }
}

/// Checks that arguments match their tool's schema. A tool that is not strict may have none, or one
/// that is no schema; then they are an object.
pub(crate) fn check_arguments(name: &str, tool: &Value, schema: &Value, arguments: &Value) {
    match jsonschema::validator_for(schema) {
        Err(_) => assert!(tool["strict"] != true && arguments.is_object(), "{name}: {arguments}"),
        Ok(schema) => {
            if let Err(error) = schema.validate(arguments) {
                panic!("{name}: {error} in {arguments}");
            }
        }
    }
}

/// Checks that a call uses one of the default tools and matches its schema.
pub(crate) fn check_call(name: &str, call: &Value) {
    check_call_of(name, &tools(), call);
}

/// Checks that a call uses one of the tools and matches its schema, if it has one.
fn check_call_of(name: &str, tools: &Value, call: &Value) {
    let of_name = |tool: &&Value| tool["function"]["name"] == call["function"]["name"];
    let tool =
        tools.as_array().unwrap().iter().find(of_name).unwrap_or_else(|| panic!("{name}: {call}"));
    let arguments: Value =
        serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    check_arguments(name, &tool["function"], &tool["function"]["parameters"], &arguments);
    assert!(
        call["id"].as_str().is_some_and(|id| id.len() > 4) && call["type"] == "function",
        "{name}: {call}"
    );
}

/// The requests of the table.
pub(crate) fn requests() -> Vec<TableRequest> {
    let cases: Cases = toml::from_str(include_str!("cases.toml")).unwrap();
    let request = |case: Case| TableRequest {
        name: case.name.clone(),
        path: "/v1/chat/completions",
        body: case.request(),
        check: Box::new(move |answer| case.check(answer)),
    };
    cases.case.into_iter().map(request).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_requests_of_the_table_have_their_responses() {
    let server = Server::start("[limits.requests]\nmax_tokens = 7000").await;
    let (requests, mut errors) = (requests(), 0);
    for request in &requests {
        let answer = server.post(request.path, request.body.clone()).await;
        (request.check)(&answer);
        errors += usize::from(answer.status >= 400);
    }
    assert_eq!(server.metric("louver_errors_total").await, errors as f64);
    println!("{} requests", requests.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn server_policies_are_applied() {
    let server = Server::start("strict_tools = \"all\"\nunknown_members = \"refuse\"").await;
    let answer = server.chat(&ask(json!({"whatever": 1, "metadata": {}}))).await;
    assert_eq!(answer.error(), (400, "unknown_member".to_owned(), Some("/whatever".to_owned())));
    for (body, pointer) in [
        (json!({"stream": true, "stream_options": {"include": 1}}), "/stream_options/include"),
        (json!({"messages": [{"role": "assistant", "reasoning": 1}]}), "/messages/0/reasoning"),
    ] {
        let answer = server.chat(&ask(body)).await;
        assert_eq!(answer.error().2.as_deref(), Some(pointer), "{}", answer.text);
    }
    let loose =
        json!([{"type": "function", "function": {"name": "a", "parameters": {"type": "frog"}}}]);
    let answer = server.chat(&ask(json!({"tools": loose}))).await;
    assert_eq!(answer.error().2.as_deref(), Some("/tools/0/function/parameters/type"));
}
