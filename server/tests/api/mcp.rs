//! Tools of MCP servers in the Responses API, against an MCP server of this test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use louver_mistralrs::{McpError, McpTools};
use mistralrs::{McpClientConfig, McpServerConfig, McpServerSource};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::support::{Answer, Server, TIMEOUT, ask, config, data, long_request};

fn schema() -> Value {
    json!({"type": "object", "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 500}},
        "required": ["number"], "additionalProperties": false})
}

/// The calls of `hold`: those that run, and those that may end.
#[derive(Clone, Debug)]
struct Holds {
    running: Arc<Semaphore>,
    released: Arc<Semaphore>,
    /// What is before the text of the results of `double`.
    padding: String,
    /// Of all tools.
    schema: Value,
}

impl Holds {
    fn new() -> Holds {
        let none = || Arc::new(Semaphore::new(0));
        Holds { running: none(), released: none(), padding: String::new(), schema: schema() }
    }

    /// Waits until another call of `hold` runs.
    async fn wait(&self) {
        let running = tokio::time::timeout(TIMEOUT, self.running.acquire()).await;
        running.expect("a call of `hold` runs").unwrap().forget();
    }
}

/// Answers one message of the protocol. `double` works, `fail` reports an error, `refuse` is
/// refused, `hold` works when the test lets it.
async fn answer(State(holds): State<Holds>, message: String) -> impl IntoResponse {
    let message: Value = serde_json::from_str(&message).unwrap();
    let tool =
        |name: &str| json!({"name": name, "description": "Counts.", "inputSchema": holds.schema});
    let params = &message["params"];
    let number = &params["arguments"]["number"];
    let result = match (message["method"].as_str(), params["name"].as_str()) {
        (Some("initialize"), _) => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "numbers", "version": "1"},
        }),
        (Some("tools/list"), _) => {
            let tools = ["refuse", "fail", "double", "hold"].map(tool);
            json!({"tools": tools})
        }
        (Some("tools/call"), Some(name @ ("double" | "hold"))) => {
            if name == "hold" {
                holds.running.add_permits(1);
                holds.released.acquire().await.unwrap().forget();
            }
            let padding = if name == "double" { &*holds.padding } else { "" };
            let text = format!("{padding}{}", 2 * number.as_i64().expect("an integer"));
            json!({"content": [{"type": "text", "text": text}], "isError": false})
        }
        (Some("tools/call"), Some("fail")) => {
            json!({"content": [{"type": "text", "text": "no luck"}], "isError": true})
        }
        _ => json!({}),
    };
    let mut text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    if params["name"] == "refuse" {
        let error = json!({"code": -32000, "message": "no luck"});
        text = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
    }
    let text = text.to_string();
    ([(header::CONTENT_TYPE, "application/json")], text)
}

/// A server with the MCP server `numbers`.
async fn start() -> Server {
    start_with(Holds::new(), "").await
}

async fn start_with(holds: Holds, toml: &str) -> Server {
    Server::start(&configuration(holds, toml).await).await
}

/// Starts the MCP server `numbers`. Returns the configuration with it.
async fn configuration(holds: Holds, toml: &str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/", post(answer)).with_state(holds);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("{toml}\n[[mcp]]\nlabel = \"numbers\"\nurl = \"http://{address}/\"")
}

/// Each request that offers it would be refused.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_cannot_be_enforced_are_errors_at_the_start() {
    for (schema, toml, problem) in [
        (json!({"type": "integr"}), "", Some("/inputSchema/type")),
        (json!({"properties": {"a": {"$ref": "#/nowhere"}}}), "", Some("nowhere")),
        (json!({"type": "integr"}), "strict_tools = \"off\"", None),
        (schema(), "", None),
    ] {
        let name = schema.to_string();
        let toml = configuration(Holds { schema, ..Holds::new() }, toml).await;
        let loaded = louver_server::load(config(&toml)).await;
        let Some(problem) = problem else {
            assert!(loaded.is_ok(), "{name}");
            continue;
        };
        let error = loaded.expect_err(&name).to_string();
        for part in ["\"numbers\"", "\"double\"", "\"tiny\"", problem] {
            assert!(error.contains(part), "{error}");
        }
    }
}

fn request(tool: &str, more: Value) -> Value {
    let mut body = json!({
        "input": "Count.",
        "tools": [{"type": "mcp", "server_label": "numbers", "require_approval": "never"}],
        "tool_choice": {"type": "mcp", "server_label": "numbers", "name": tool},
        "seed": 5,
        "max_output_tokens": 120,
        "reasoning": {"effort": "none"},
        "louver": {"whitespace": "compact"},
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    data(&answer.text).iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_mcp_tools_run_on_their_server() {
    let server = start().await;
    let post = async |body: &Value| server.post("/v1/responses", body.to_string()).await;
    let answer = post(&request("double", json!({}))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let response = answer.json();
    let items = response["output"].as_array().unwrap();
    let list = &items[0];
    assert_eq!(
        (&list["type"], &list["server_label"]),
        (&json!("mcp_list_tools"), &json!("numbers"))
    );
    let names: Vec<&Value> =
        list["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["double", "fail", "hold", "refuse"]);
    let call = &items[1];
    assert_eq!((&call["type"], &call["name"]), (&json!("mcp_call"), &json!("double")), "{call}");
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert!(jsonschema::is_valid(&schema(), &arguments), "{call}");
    let doubled = (2 * arguments["number"].as_i64().unwrap()).to_string();
    assert_eq!(
        (&call["output"], &call["status"]),
        (&json!(doubled), &json!("completed")),
        "{call}"
    );
    // The report of the turn with the call, and at the end that of the last turn.
    let louver = &response["louver"];
    let rounds = louver["rounds"].as_array().unwrap_or_else(|| panic!("{response}"));
    assert_eq!(rounds[0]["report"]["tools"][0]["rule"], "required", "{louver}");
    assert_eq!(rounds[0]["report"]["completion"], "complete", "{louver}");
    assert!(louver["report"]["completion"].is_string(), "{louver}");
    // The turn after it saw the result: all tokens are counted.
    assert!(items.len() > 2, "{response}");
    let usage = &response["usage"];
    // The metric, too, counts the prompts of all rounds.
    assert_eq!(
        server.metric("louver_prompt_tokens_total").await,
        usage["input_tokens"].as_f64().unwrap()
    );
    let tokens = usage["output_tokens"].as_u64().unwrap();
    // The rounds share the limit.
    assert!((21..=120).contains(&tokens), "{usage}");
    // The first round alone has one prompt, and every round after it a longer one.
    let first = post(&request("double", json!({"max_output_tokens": 1}))).await.json();
    let input = |response: &Value| response["usage"]["input_tokens"].as_u64().unwrap();
    assert!(input(&response) > 2 * input(&first), "{response} {first}");
    for limit in [30, 45, 60] {
        let limited = post(&request("double", json!({"max_output_tokens": limit}))).await.json();
        let tokens = limited["usage"]["output_tokens"].as_u64().unwrap();
        assert!(tokens <= limit, "{limited}");
        let is_open = |item: &Value| item["status"] == "in_progress" || item["status"] == "calling";
        assert!(!limited["output"].as_array().unwrap().iter().any(is_open), "{limited}");
    }

    let events = events(&post(&request("double", json!({"stream": true}))).await);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "response.mcp_list_tools.completed",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
    ];
    let mut at = 0;
    for kind in expected {
        at += kinds[at..]
            .iter()
            .position(|k| *k == kind)
            .unwrap_or_else(|| panic!("{kind}: {kinds:?}"));
    }
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["louver"]["rounds"].as_array().unwrap().len(), rounds.len(), "{last}");
    let streamed = &last["output"];
    let comparable = |item: &Value| {
        let mut item = item.clone();
        item.as_object_mut().unwrap().remove("id");
        item
    };
    let streamed: Vec<Value> = streamed.as_array().unwrap().iter().map(comparable).collect();
    assert_eq!(streamed, items.iter().map(comparable).collect::<Vec<_>>());

    // The next response does not list the tools again.
    let more = json!({"previous_response_id": response["id"], "tool_choice": "none"});
    let next = post(&request("double", more)).await.json();
    let listed = next["output"].as_array().unwrap().iter().any(|i| i["type"] == "mcp_list_tools");
    assert!(!listed, "{next}");
}

/// A choice of a server is one of all its tools.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_mcp_server_is_chosen() {
    let server = start().await;
    let whole = json!({"type": "mcp", "server_label": "numbers"});
    let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [whole]});
    for choice in [whole, allowed] {
        let body = request("double", json!({"tool_choice": choice, "max_output_tokens": 60}));
        let answer = server.post("/v1/responses", body.to_string()).await;
        let response = answer.json();
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(response["output"][1]["type"], "mcp_call", "{response}");
        assert_eq!(response["tool_choice"], body["tool_choice"]);
    }
    let choice = json!({"type": "mcp", "server_label": "letters"});
    let unknown = request("double", json!({"tool_choice": choice}));
    let answer = server.post("/v1/responses", unknown.to_string()).await;
    assert_eq!(answer.error().0, 400, "{}", answer.text);
    assert!(answer.text.contains("letters"), "{}", answer.text);
}

/// A tool that an input item defines again is the client's: the server does not run its calls.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_replace_those_of_mcp_servers_are_run_by_the_client() {
    let server = start().await;
    let function = |name: &str| json!({"type": "function", "name": name, "parameters": schema()});
    let namespace = json!({"type": "namespace", "name": "numbers", "tools": [function("double")]});
    for (tool, namespace) in [(function("numbers__double"), None), (namespace, Some("numbers"))] {
        let input = json!([
            {"role": "user", "content": "Count."},
            {"type": "additional_tools", "tools": [tool]},
        ]);
        let name = if namespace.is_some() { "double" } else { "numbers__double" };
        let mut choice = json!({"type": "function", "name": name});
        if let Some(namespace) = namespace {
            choice["namespace"] = namespace.into();
        }
        let body = request("double", json!({"input": input, "tool_choice": choice}));
        let answer = server.post("/v1/responses", body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let response = answer.json();
        let calls = response["output"].as_array().unwrap();
        let calls: Vec<&Value> =
            calls.iter().filter(|item| item["type"] != "mcp_list_tools").collect();
        assert!(!calls.is_empty(), "{response}");
        for call in calls {
            assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!(name)));
            assert_eq!(call["namespace"].as_str(), namespace, "{response}");
        }
    }
}

/// The only slot is free while a call runs. The next round waits for it, though nothing else may.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_mcp_tools_hold_no_slot() {
    let holds = Holds::new();
    let server = start_with(holds.clone(), "[limits.requests]\nqueue = 0").await;
    let held = async {
        let body = request("hold", json!({}));
        server.post("/v1/responses", body.to_string()).await
    };
    let meanwhile = async {
        holds.wait().await;
        assert_eq!(server.chat(&ask(json!({}))).await.status, 200);
        let (stream, _) = server.begin(&long_request()).await;
        holds.released.add_permits(1);
        server.wait_for("louver_waiting_requests", 1.0).await;
        drop(stream);
    };
    let (answer, ()) = tokio::join!(held, meanwhile);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["output"][1]["status"], "completed", "{}", answer.text);
}

/// The body's share of the memory for bodies ends when the generation begins.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_mcp_tools_hold_no_memory_of_bodies() {
    let holds = Holds::new();
    let limits = "[limits.http]\nbody_bytes = 200000\nbodies_bytes = 200000";
    let server = start_with(holds.clone(), limits).await;
    let long = |body: Value| format!("{}{body}", " ".repeat(180_000));
    let held = async { server.post("/v1/responses", long(request("hold", json!({})))).await };
    let meanwhile = async {
        holds.wait().await;
        let answer = server.post("/v1/chat/completions", long(ask(json!({})))).await;
        holds.released.add_permits(1);
        answer
    };
    let (answer, other) = tokio::join!(held, meanwhile);
    assert_eq!((answer.status, other.status), (200, 200), "{} {}", answer.text, other.text);
}

/// What the response repeats of the body is paid for until the response ends.
#[tokio::test(flavor = "multi_thread")]
async fn responses_hold_the_memory_of_what_they_repeat() {
    let holds = Holds::new();
    let limits = "[limits.http]\nbody_bytes = 200000\nbodies_bytes = 200000";
    let server = start_with(holds.clone(), limits).await;
    let long = "x".repeat(180_000);
    let held = async {
        let body = request("hold", json!({"user": long}));
        server.post("/v1/responses", body.to_string()).await
    };
    let meanwhile = async {
        holds.wait().await;
        let answer = server.chat(&ask(json!({"user": long}))).await;
        holds.released.add_permits(1);
        answer
    };
    let (answer, other) = tokio::join!(held, meanwhile);
    assert_eq!((answer.status, other.status), (200, 503), "{}", other.text);
    assert_eq!(server.chat(&ask(json!({"user": long}))).await.status, 200);
}

/// The results of a response's calls have no more bytes in all than a prompt may have, and are paid
/// for as bodies are.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_mcp_tools_are_bounded() {
    let outcome = |answer: &Answer| {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let call = answer.json()["output"][1].clone();
        assert_eq!(call["type"], "mcp_call", "{call}");
        (call["status"] == "completed", call["error"]["message"].to_string())
    };
    let limits = "[limits.requests]\nprompt_bytes = 20000";
    for (length, is_short) in [(100, true), (20_001, false)] {
        let holds = Holds { padding: "x".repeat(length), ..Holds::new() };
        let server = start_with(holds, limits).await;
        let body = request("double", json!({"parallel_tool_calls": false}));
        let (is_complete, message) = outcome(&server.post("/v1/responses", body.to_string()).await);
        assert_eq!(is_complete, is_short, "{message}");
        assert_eq!(message.contains("all results together may have 20000"), !is_short, "{message}");
    }
    // Another response holds the memory.
    let holds = Holds { padding: "x".repeat(100_000), ..Holds::new() };
    let limits = "[limits.http]\nbody_bytes = 200000\nbodies_bytes = 200000";
    let server = start_with(holds.clone(), limits).await;
    let held = async {
        let body = request("hold", json!({"user": "x".repeat(190_000)}));
        server.post("/v1/responses", body.to_string()).await
    };
    let meanwhile = async {
        holds.wait().await;
        let body = request("double", json!({"parallel_tool_calls": false}));
        let answer = server.post("/v1/responses", body.to_string()).await;
        holds.released.add_permits(1);
        answer
    };
    let (answer, other) = tokio::join!(held, meanwhile);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (is_complete, message) = outcome(&other);
    assert!(!is_complete && message.contains("too much memory is in use"), "{message}");
}

/// The deadline of a request ends its calls, and its wait for a slot after them.
#[tokio::test(flavor = "multi_thread")]
async fn deadlines_hold_during_and_after_calls_of_mcp_tools() {
    let holds = Holds::new();
    // Long enough for the call to begin on a slow machine.
    let server = start_with(holds.clone(), "[limits.requests]\ntimeout_s = 10").await;
    let held = async || {
        let body = request("hold", json!({}));
        server.post("/v1/responses", body.to_string()).await.error()
    };
    let timeout = (408, "timeout".to_owned(), None);
    assert_eq!(held().await, timeout);
    holds.wait().await;
    let after = async {
        holds.wait().await;
        // A later request holds the slot until after the deadline.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut slow = long_request();
        slow["n"] = 8.into();
        let slow = server.begin(&slow).await;
        holds.released.add_permits(2);
        slow
    };
    let (error, _slow) = tokio::join!(held(), after);
    assert_eq!(error, timeout);
    server.wait_for("louver_running_generations", 0.0).await;
}

/// Failures of tools differ from those of the protocol. The model sees what the server said of
/// both, in the next round and from a client that sends the item back.
#[tokio::test(flavor = "multi_thread")]
async fn failed_calls_of_mcp_tools_are_reported() {
    let server = start().await;
    let content = json!([{"type": "text", "text": "no luck"}]);
    let failed = json!({"type": "mcp_tool_execution_error", "content": content});
    let refused = json!({"type": "mcp_protocol_error", "code": -32000, "message": "no luck"});
    for (tool, error) in [("fail", failed), ("refuse", refused)] {
        let body = request(tool, json!({"max_output_tokens": 60}));
        let response = server.post("/v1/responses", body.to_string()).await.json();
        let call = &response["output"][1];
        assert_eq!((&call["status"], &call["output"]), (&json!("failed"), &Value::Null), "{call}");
        assert_eq!(call["error"], error, "{call}");
        let (arguments, name) = (&call["arguments"], format!("numbers__{tool}"));
        let sent_back =
            request(tool, json!({"input": [{"role": "user", "content": "Count."}, call]}));
        let chat = ask(json!({"messages": [
            {"role": "user", "content": "Count."},
            {"role": "assistant", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "error: no luck"},
        ]}));
        let prompt = async |path: &str, body: Value| {
            let mut body = body;
            body.as_object_mut().unwrap().remove("tools");
            body.as_object_mut().unwrap().remove("tool_choice");
            let checked = server.post(path, body.to_string()).await.json();
            assert_eq!(checked["ok"], true, "{checked}");
            checked["prompt_tokens"].clone()
        };
        let path = "/v1/louver/check";
        assert_eq!(prompt(path, sent_back).await, prompt(path, chat).await);
    }
}

/// What an HTTP server with sessions has seen.
#[derive(Debug, Default)]
struct Sessions {
    begun: AtomicUsize,
    versions: Mutex<Vec<Option<String>>>,
}

/// Answers with a stream, in which the reply comes last. Only the newest session is known, and a
/// session has one call.
async fn answer_in_session(
    State(sessions): State<Arc<Sessions>>,
    headers: HeaderMap,
    message: String,
) -> axum::response::Response {
    let message: Value = serde_json::from_str(&message).unwrap();
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let Some(method) = message["method"].as_str() else {
        return StatusCode::ACCEPTED.into_response();
    };
    let mut result = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    if method == "initialize" {
        sessions.begun.fetch_add(1, Ordering::Relaxed);
    } else {
        sessions.versions.lock().unwrap().push(text("mcp-protocol-version"));
        assert_eq!(text("x-secret").as_deref(), Some("s"));
        let is_known =
            text("mcp-session-id") == Some(sessions.begun.load(Ordering::Relaxed).to_string());
        match (is_known, method) {
            (false, _) => return StatusCode::NOT_FOUND.into_response(),
            (true, "notifications/initialized") => return StatusCode::ACCEPTED.into_response(),
            (true, "tools/list") => result = json!({"tools": [{"name": "broken"}, {"name": "f"}]}),
            (true, _) if message["params"]["name"] == "broken" => {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            (true, _) => result = json!({"content": [{"type": "text", "text": method}]}),
        }
    }
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let events = format!(
        ": hello\n\ndata: {}\n\nevent: message\ndata: {}\n\ndata: {reply}\n\n",
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "ping", "id": message["id"]}),
    );
    let session = sessions.begun.load(Ordering::Relaxed).to_string();
    ([("content-type", "text/event-stream"), ("mcp-session-id", &session)], events).into_response()
}

/// The headers of a session are sent, a session that has expired begins again, and replies are
/// found in streams of events.
#[tokio::test(flavor = "multi_thread")]
async fn http_sessions_are_kept_and_begun_again() {
    let sessions = Arc::new(Sessions::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let state = Arc::clone(&sessions);
    let router = axum::Router::new().route("/", post(answer_in_session)).with_state(state);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let source = McpServerSource::Http {
        url: format!("http://{address}/"),
        timeout_secs: None,
        headers: Some([("x-secret".to_owned(), "s".to_owned())].into()),
    };
    let server = McpServerConfig { source, ..Default::default() };
    let config = McpClientConfig { servers: vec![server], ..Default::default() };
    let tools = McpTools::connect(config).await.unwrap();
    let begun = || sessions.begun.load(Ordering::Relaxed);
    assert_eq!((tools.names(), begun()), (vec!["broken", "f"], 1));
    assert_eq!(tools.call_tool("f", "{}").await.unwrap(), "tools/call");
    // As if the server had forgotten it.
    sessions.begun.fetch_add(1, Ordering::Relaxed);
    assert_eq!(tools.call_tool("f", "{}").await.unwrap(), "tools/call");
    assert_eq!(begun(), 3);
    let broken = McpError::Status { tool: "broken".to_owned(), status: 500 };
    assert_eq!(tools.call_tool("broken", "{}").await, Err(broken));
    assert_eq!(tools.call_tool("f", "{}").await.unwrap(), "tools/call");
    assert_eq!(begun(), 4);
    let versions = sessions.versions.lock().unwrap().clone();
    assert!(
        versions.iter().all(|version| version.as_deref() == Some("2025-06-18")),
        "{versions:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_tools_of_other_servers_are_refused() {
    let server = start().await;
    let tool = |more: Value| {
        let mut tool =
            json!({"type": "mcp", "server_label": "numbers", "require_approval": "never"});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"tools": [tool], "tool_choice": "auto"})
    };
    for (more, pointer) in [
        (json!({"server_label": "files"}), "/tools/0/server_label"),
        (json!({"server_url": "http://127.0.0.1:1/"}), "/tools/0/server_url"),
        (json!({"require_approval": "always"}), "/tools/0/require_approval"),
        (json!({"require_approval": null}), "/tools/0/require_approval"),
        (json!({"allowed_tools": ["triple"]}), "/tools/0/allowed_tools"),
        (json!({"allowed_tools": {"tool_names": 5}}), "/tools/0/allowed_tools"),
        (json!({"colour": 1}), "/tools/0/colour"),
    ] {
        let answer = server.post("/v1/responses", request("double", tool(more)).to_string()).await;
        let (status, _, param) = answer.error();
        assert_eq!((status, param.as_deref()), (400, Some(pointer)), "{}", answer.text);
    }
    let only = tool(json!({"allowed_tools": {"tool_names": ["double"]}}));
    let checked = request("double", only);
    let checked = server.post("/v1/louver/check", checked.to_string()).await.json();
    let names: Vec<&Value> =
        checked["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["numbers__double"], "{checked}");
}
