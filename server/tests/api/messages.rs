//! The route `/v1/messages`: requests from a table, complete and streamed.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cases::check_arguments;
use crate::support::{Answer, Server, TableRequest, data, seed, tools};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    body: String,
    status: u16,
    /// The pointer of the first fault, with which its message begins.
    param: Option<String>,
    /// The pointers of all faults.
    params: Option<Vec<String>>,
    /// A part of the message of the first fault.
    message: Option<String>,
    /// The allowed stop reasons.
    reasons: Option<Vec<String>>,
    /// The allowed block types.
    blocks: Option<Vec<String>>,
    /// The only tool that is called.
    calls: Option<String>,
    /// A pattern for the text, as a regular expression of JSON Schema.
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// The tools in this API's format.
fn messages_tools() -> Value {
    let tool = |tool: &Value| {
        let function = &tool["function"];
        json!({"name": function["name"], "strict": true, "input_schema": function["parameters"]})
    };
    tools().as_array().unwrap().iter().map(tool).collect()
}

/// A request without reasoning, so that random output ends.
fn ask(more: &Value) -> Value {
    let mut request = json!({
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 60,
        "seed": seed(),
        "thinking": {"type": "disabled"},
        "louver": {"whitespace": "python_like"},
    });
    for (name, value) in more.as_object().unwrap() {
        match (name.as_str(), value) {
            ("louver", Value::Object(members)) => {
                request[name].as_object_mut().unwrap().extend(members.clone())
            }
            _ => request[name] = value.clone(),
        }
    }
    if request["tools"] == "TOOLS" {
        request["tools"] = messages_tools();
    }
    request.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    request
}

async fn send(server: &Server, body: &Value) -> Answer {
    server.post("/v1/messages", body.to_string()).await
}

impl Case {
    fn request(&self) -> Value {
        let more = serde_json::from_str(&self.body);
        ask(&more.unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }

    fn check_error(&self, answer: &Answer) {
        let (name, body) = (&self.name, answer.json());
        assert_eq!(body["type"], "error", "{name}: {body}");
        assert_eq!(answer.headers["request-id"], body["request_id"].as_str().unwrap(), "{name}");
        let message = body["error"]["message"].as_str().unwrap();
        if let Some(param) = &self.param {
            assert_eq!(body["error"]["param"], **param, "{name}: {body}");
            assert!(message.starts_with(&format!("{param}: ")), "{name}: {message}");
        }
        if let Some(part) = &self.message {
            assert!(message.contains(part), "{name}: {message}");
        }
        if let Some(params) = &self.params {
            let errors = body["errors"].as_array().unwrap_or_else(|| panic!("{name}: {body}"));
            let mut pointers: Vec<&str> =
                errors.iter().map(|error| error["param"].as_str().unwrap()).collect();
            let mut expected: Vec<&str> = params.iter().map(String::as_str).collect();
            pointers.sort_unstable();
            expected.sort_unstable();
            assert_eq!(pointers, expected, "{name}: {body}");
        }
    }

    fn check(&self, request: &Value, answer: &Answer) {
        let name = &self.name;
        assert_eq!(answer.status, self.status, "{name}: {}", answer.text);
        if self.status != 200 {
            return self.check_error(answer);
        }
        let message = answer.json();
        assert_eq!(
            (&message["type"], &message["role"], &message["model"]),
            (&json!("message"), &json!("assistant"), &json!("tiny"))
        );
        assert!(message["id"].as_str().unwrap().starts_with("msg_"), "{name}");
        let reason = message["stop_reason"].as_str().unwrap();
        let reasons = self.reasons.as_ref();
        assert!(reasons.is_none_or(|all| all.iter().any(|r| r == reason)), "{name}: {message}");
        assert_eq!(message["stop_sequence"].is_string(), reason == "stop_sequence", "{name}");
        assert!(message["louver"]["report"]["level"].is_string(), "{name}: {message}");
        let usage = &message["usage"];
        assert!(usage["input_tokens"].as_u64() > Some(0), "{name}: {usage}");
        assert!(usage["output_tokens"].is_u64(), "{name}: {usage}");
        let blocks = message["content"].as_array().unwrap();
        let has_call = blocks.iter().any(|block| block["type"] == "tool_use");
        assert!(reason != "tool_use" || has_call, "{name}: {message}");
        for block in blocks {
            let kind = block["type"].as_str().unwrap();
            let kinds = self.blocks.as_ref();
            assert!(kinds.is_none_or(|kinds| kinds.iter().any(|k| k == kind)), "{name}: {block}");
            self.check_block(kind, block, &request["tools"]);
        }
        let is_empty = self.blocks.as_ref().is_none_or(|all| all.is_empty() == blocks.is_empty());
        assert!(is_empty, "{name}: {message}");
    }

    fn check_block(&self, kind: &str, block: &Value, tools: &Value) {
        let name = &self.name;
        match kind {
            "tool_use" => {
                let of_name = |tool: &&Value| tool["name"] == block["name"];
                let tool = tools.as_array().unwrap().iter().find(of_name);
                let tool = tool.unwrap_or_else(|| panic!("{name}: {block}"));
                check_arguments(name, tool, &tool["input_schema"], &block["input"]);
                assert!(block["id"].as_str().unwrap().starts_with("toolu_"), "{name}: {block}");
                let called = self.calls.as_ref();
                assert!(called.is_none_or(|tool| block["name"] == **tool), "{name}: {block}");
            }
            "text" => {
                let pattern = self.text.as_deref().unwrap_or("");
                let schema = json!({"type": "string", "pattern": pattern});
                assert!(jsonschema::is_valid(&schema, &block["text"]), "{name}: {block}");
            }
            other => assert_eq!(other, "thinking", "{name}"),
        }
    }
}

/// The events of a stream, with their order checked.
fn typed_events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let events: Vec<Value> =
        data(&answer.text).iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let names: Vec<&str> =
        answer.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names, types);
    assert_eq!(types[..2], ["message_start", "ping"]);
    events
}

/// Puts a message together from its events, as clients do. A call without an object as its input
/// is left out.
fn assembled(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    let mut inputs: Vec<String> = Vec::new();
    for event in events {
        let index = event["index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(index, inputs.len(), "{event}");
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                let (delta, block) = (&event["delta"], &mut message["content"][index]);
                let mut append = |name: &str| {
                    let old = block[name].as_str().unwrap();
                    block[name] = format!("{old}{}", delta[name].as_str().unwrap()).into();
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => append("text"),
                    "thinking_delta" => append("thinking"),
                    "signature_delta" => append("signature"),
                    _ => inputs[index].push_str(delta["partial_json"].as_str().unwrap()),
                }
            }
            "message_delta" => {
                for (name, value) in event["delta"].as_object().unwrap() {
                    message[name] = value.clone();
                }
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    let blocks = message["content"].as_array_mut().unwrap();
    for (block, input) in blocks.iter_mut().zip(&inputs).filter(|(_, input)| !input.is_empty()) {
        block["input"] = serde_json::from_str(input).unwrap_or_default();
    }
    blocks.retain(|block| !block.get("input").is_some_and(Value::is_null));
    message
}

/// Removes what differs between responses.
fn comparable(message: &Value) -> Value {
    let mut message = message.clone();
    message.as_object_mut().unwrap().retain(|name, _| name != "id" && name != "louver");
    for block in message["content"].as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("id");
    }
    message
}

/// The requests of the table.
pub(crate) fn requests() -> Vec<TableRequest> {
    let cases: Cases = toml::from_str(include_str!("messages.toml")).unwrap();
    let request = |case: Case| {
        let body = case.request();
        TableRequest {
            name: case.name.clone(),
            path: "/v1/messages",
            body: body.to_string(),
            check: Box::new(move |answer| case.check(&body, answer)),
        }
    };
    cases.case.into_iter().map(request).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_requests_of_the_table_have_their_responses() {
    let cases: Cases = toml::from_str(include_str!("messages.toml")).unwrap();
    let server = Server::start("").await;
    for case in &cases.case {
        let mut request = case.request();
        let answer = send(&server, &request).await;
        case.check(&request, &answer);
        if case.status != 200 {
            continue;
        }
        let whole = answer.json();
        request["stream"] = true.into();
        let events = typed_events(&send(&server, &request).await);
        let (last, delta) = (&events[events.len() - 1], &events[events.len() - 2]);
        assert_eq!(last, &json!({"type": "message_stop"}), "{}", case.name);
        assert!(delta["louver"]["report"]["level"].is_string(), "{}: {delta}", case.name);
        let mut streamed = assembled(&events);
        let begun = streamed["content"].as_array().unwrap().len();
        let complete = whole["content"].as_array().unwrap().len();
        if whole["stop_reason"] == "max_tokens" && begun == complete + 1 {
            // A call whose input is truncated between two members, or before the first one.
            streamed["content"].as_array_mut().unwrap().pop();
        }
        assert_eq!(comparable(&streamed), comparable(&whole), "{}", case.name);
    }
    println!("{} requests", cases.case.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_input_is_streamed_in_pieces() {
    let server = Server::start("").await;
    let body = ask(
        &json!({"tools": "TOOLS", "tool_choice": {"type": "any"}, "stream": true, "max_tokens": 500}),
    );
    let events = typed_events(&send(&server, &body).await);
    let pieces = events.iter().filter(|event| event["delta"]["type"] == "input_json_delta");
    assert!(pieces.count() > 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn thinking_is_a_block() {
    let server = Server::start("").await;
    let mut seen = 0;
    for seed in 0..6 {
        let mut body = ask(&json!({"seed": seed, "max_tokens": 500,
            "tools": "TOOLS", "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
            "thinking": {"type": "enabled", "budget_tokens": 30}}));
        let message = send(&server, &body).await.json();
        let tokens = message["usage"]["output_tokens_details"]["thinking_tokens"].as_u64().unwrap();
        assert!(tokens <= 30, "{message}");
        let blocks = message["content"].as_array().unwrap();
        let thinking = blocks.iter().position(|block| block["type"] == "thinking");
        assert_eq!(thinking, (tokens > 0).then_some(0), "{message}");
        if thinking.is_some() {
            assert!(!blocks[0]["thinking"].as_str().unwrap().is_empty(), "{message}");
            body["thinking"]["display"] = "omitted".into();
            let omitted = send(&server, &body).await.json();
            let block = json!({"type": "thinking", "thinking": "", "signature": ""});
            assert_eq!(omitted["content"][0], block);
            assert_eq!(comparable(&omitted)["content"][1], comparable(&message)["content"][1]);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_sequences_end_the_text_and_are_named() {
    let server = Server::start("").await;
    let mut stopped = 0;
    for seed in 0..10 {
        // A frequent letter, which no marker of the format has.
        let body = ask(&json!({"seed": seed, "stop_sequences": ["\u{1}never", "e"]}));
        let message = send(&server, &body).await.json();
        let text = message["content"][0]["text"].as_str().unwrap_or_default();
        assert!(!text.contains('e'), "{message}");
        let is_stopped = message["stop_reason"] == "stop_sequence";
        assert_eq!(message["stop_sequence"] == "e", is_stopped, "{message}");
        stopped += usize::from(is_stopped);
    }
    assert!(stopped >= 8, "{stopped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_are_counted() {
    let server = Server::start("").await;
    let count =
        async |body: &Value| server.post("/v1/messages/count_tokens", body.to_string()).await;
    let schema = json!({"type": "object"});
    let tool = json!([{"name": "f", "input_schema": schema}]);
    for more in [json!({}), json!({"system": "Be brief."}), json!({"tools": tool})] {
        let mut body = ask(&more);
        let created = send(&server, &body).await.json();
        for name in ["max_tokens", "seed", "louver"] {
            body.as_object_mut().unwrap().remove(name);
        }
        let counted = count(&body).await;
        assert_eq!(counted.status, 200, "{}", counted.text);
        assert_eq!(counted.json(), json!({"input_tokens": created["usage"]["input_tokens"]}));
    }
    let answer = count(&json!({"messages": [{"role": "user", "content": "x"}], "tools": [
        {"name": "f", "strict": true, "input_schema": {"type": "frog"}}]}))
    .await;
    assert_eq!(answer.error().2.as_deref(), Some("/tools/0/input_schema/type"));
    assert_eq!(
        count(&json!({"model": "nope", "messages": [{"role": "user", "content": "x"}]}))
            .await
            .status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_can_be_checked() {
    let server = Server::start("").await;
    let url = format!("{}/v1/louver/check", server.base);
    let check = async |body: Value| {
        let request = server.client.post(&url).header("content-type", "application/json");
        let request = request.header("anthropic-version", "2023-06-01");
        server.send(request.body(body.to_string())).await.json()
    };
    let answer = check(json!({"tools": messages_tools(), "tool_choice": {"type": "any"}})).await;
    assert_eq!((&answer["ok"], &answer["prompt_tokens"]), (&json!(true), &Value::Null), "{answer}");
    let tool = json!({"name": "f", "strict": true, "input_schema": {"type": "frog"}});
    let answer = check(json!({"tools": [tool]})).await;
    assert_eq!(answer["errors"][0]["pointer"], "/tools/0/input_schema/type", "{answer}");
}

/// Its budget is that of several turns, so that it may exceed the length of one.
#[tokio::test(flavor = "multi_thread")]
async fn budgets_of_interleaved_thinking_may_exceed_the_length() {
    let server = Server::start("").await;
    let body =
        ask(&json!({"max_tokens": 20, "thinking": {"type": "enabled", "budget_tokens": 2000}}));
    for path in ["/v1/messages", "/v1/messages/count_tokens", "/v1/louver/check"] {
        for (beta, is_accepted) in [
            ("context-1m-2025-08-07", false),
            ("context-1m-2025-08-07,interleaved-thinking-2025-05-14", true),
        ] {
            let request = server.client.post(format!("{}{path}", server.base));
            let request = request.header("content-type", "application/json");
            let request = request.header("anthropic-version", "2023-06-01");
            let request = request.header("anthropic-beta", beta).body(body.to_string());
            let answer = server.send(request).await;
            let is_named = answer.text.contains("/thinking/budget_tokens");
            assert_eq!(is_named, !is_accepted, "{path} {beta}: {}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_anthropics_format_on_these_routes_and_for_its_clients() {
    let server = Server::start("api_keys = [\"secret\"]").await;
    let request = |path: &str, header: &str, key: &str| {
        let request = server.client.post(format!("{}{path}", server.base));
        let request = request.header("content-type", "application/json").header(header, key);
        request.header("anthropic-version", "2023-06-01").body(ask(&json!({})).to_string())
    };
    for (header, key, status) in [
        ("x-api-key", "secret", 200),
        ("authorization", "Bearer secret", 200),
        ("x-api-key", "other", 401),
        ("x-other", "secret", 401),
    ] {
        let answer = server.send(request("/v1/messages", header, key)).await;
        assert_eq!(answer.status, status, "{header} {key}: {}", answer.text);
        assert!(answer.headers.contains_key("request-id"));
        if status == 401 {
            assert_eq!(answer.json()["error"]["type"], "authentication_error");
            assert_eq!(answer.json()["type"], "error");
        }
    }
    let answer = server.send(request("/v1/messages/nothing", "x-api-key", "secret")).await;
    assert_eq!((answer.status, &answer.json()["type"]), (404, &json!("error")));
    let answer = server.send(request("/v1/chat/nothing", "x-api-key", "secret")).await;
    assert_eq!((answer.status, &answer.json()["type"]), (404, &json!("error")));
    let other = server.client.get(format!("{}/v1/nothing", server.base));
    let answer = server.send(other.header("x-api-key", "secret")).await;
    assert_eq!((answer.status, answer.json().get("type")), (404, None));
    assert!(!answer.headers.contains_key("request-id"));
    let get = server.client.get(format!("{}/v1/messages", server.base));
    let answer = server.send(get.header("x-api-key", "secret")).await;
    assert_eq!((answer.status, &answer.json()["type"]), (405, &json!("error")));
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_routes_name_the_way_out() {
    let server = Server::start("").await;
    for (path, part) in [
        ("/v1/embeddings", "embedding models"),
        ("/v1/images/generations", "image models"),
        ("/v1/messages/batches/b/cancel", "/v1/messages"),
        ("/v1/conversations/c/items", "previous_response_id"),
        ("/v1/chat/completions/c", "/v1/responses"),
        ("/v1/audio/speech", "speech models"),
        ("/v1/audio/transcriptions", "speech models"),
        ("/v1/conversations", "previous_response_id"),
        ("/v1/responses/input_tokens", "/v1/louver/check"),
        ("/v1/responses/compact", "a shorter `input`"),
        ("/v1/messages/batches", "/v1/messages"),
        ("/v1/complete", "/v1/messages"),
        ("/api/chat", "use /v1/chat/completions"),
        ("/api/generate", "/v1/completions"),
        ("/api/tags", "use /v1/models"),
        ("/completion", "use /v1/completions"),
        ("/generate", "use /v1/completions"),
        ("/infill", "infilling is not supported"),
        ("/tokenize", "/v1/louver/check"),
        ("/v1/rerank", "ranking is not supported"),
    ] {
        let answer = server.post(path, "{}").await;
        let (status, code, _) = answer.error();
        assert_eq!((status, &*code), (404, "unsupported_route"), "{path}: {}", answer.text);
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains(part), "{path}");
    }
}

/// Anthropic's clients list models on the route of OpenAI's.
#[tokio::test(flavor = "multi_thread")]
async fn models_have_anthropics_format_for_its_clients() {
    let server = Server::start("").await;
    let get = async |path: &str| {
        let request = server.client.get(format!("{}{path}", server.base));
        server.send(request.header("anthropic-version", "2023-06-01")).await
    };
    let list = get("/v1/models").await.json();
    let model = &list["data"][0];
    let created = model["created_at"].as_str().unwrap();
    assert!(created.starts_with("20") && created.len() == 20 && created.ends_with('Z'));
    let context = model["max_input_tokens"].as_u64().unwrap();
    assert!(context > 1_000 && model["max_tokens"].as_u64().unwrap() <= context, "{model}");
    let expected = json!({
        "type": "model",
        "id": "tiny",
        "display_name": "tiny",
        "created_at": created,
        "lifecycle": "active",
        "max_input_tokens": context,
        "max_tokens": model["max_tokens"],
    });
    assert_eq!(
        list,
        json!({"data": [expected], "has_more": false, "first_id": "tiny", "last_id": "tiny"})
    );
    assert_eq!(get("/v1/models/tiny").await.json(), expected);
    assert_eq!(get("/v1/models/small").await.json(), expected);
    let missing = get("/v1/models/other").await;
    let body = missing.json();
    assert_eq!((missing.status, &body["type"]), (404, &json!("error")));
    assert_eq!(body["error"]["type"], "not_found_error");
    assert_eq!(missing.headers["request-id"], body["request_id"].as_str().unwrap());
    let other = server.get("/v1/models/other").await;
    assert_eq!(other.json().get("type"), None);
    assert_eq!(server.get("/v1/models").await.json()["object"], "list");
}

/// A request that generates thousands of tokens.
fn long_request() -> Value {
    let schema = json!({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3000});
    ask(&json!({"max_tokens": 7000, "stream": true,
        "output_config": {"format": {"type": "json_schema", "schema": schema}}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn timed_out_streams_end_with_an_error() {
    let server = Server::start("[limits.requests]\ntimeout_s = 1.0\nmax_tokens = 7000").await;
    let answer = send(&server, &long_request()).await;
    let events = typed_events(&answer);
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!("timeout_error")));
    assert_eq!(answer.headers["request-id"], last["request_id"].as_str().unwrap());
    assert!(events.iter().all(|event| event["type"] != "message_stop"));
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnecting_clients_end_their_messages() {
    let server = Server::start("[limits.requests]\nmax_tokens = 7000").await;
    let request = server.client.post(format!("{}/v1/messages", server.base));
    let request = request.header("content-type", "application/json");
    let mut answer = request.body(long_request().to_string()).send().await.unwrap();
    assert!(answer.chunk().await.unwrap().unwrap().starts_with(b"event: message_start\n"));
    assert_eq!(server.metric("louver_running_generations").await, 1.0);
    drop(answer);
    server.wait_for("louver_running_generations", 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_traced() {
    let server = Server::start("").await;
    let body = ask(&json!({"max_tokens": 20, "louver": {"trace": true}}));
    let message = send(&server, &body).await.json();
    assert_eq!(message["id"], message["louver"]["trace"]);
    let path = format!("/v1/louver/traces/{}", message["id"].as_str().unwrap());
    let trace = server.get(&path).await.json();
    assert_eq!(
        (&trace["request"]["body"], &trace["request"]["route"]),
        (&body, &json!("/v1/messages"))
    );
}
