//! Tools of MCP servers in the Responses API, against an MCP server of this test.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::support::{Answer, Server, TIMEOUT, ask, data, long_request};

fn schema() -> Value {
    json!({"type": "object", "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 500}},
        "required": ["number"], "additionalProperties": false})
}

/// The calls of `hold`: those that run, and those that may end.
#[derive(Clone, Debug)]
struct Holds {
    running: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

impl Holds {
    fn new() -> Holds {
        Holds { running: Arc::new(Semaphore::new(0)), released: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until another call of `hold` runs.
    async fn wait(&self) {
        let running = tokio::time::timeout(TIMEOUT, self.running.acquire()).await;
        running.expect("a call of `hold` runs").unwrap().forget();
    }
}

/// Answers one message of the protocol. `double` works, `fail` reports an error, `hold` works when
/// the test lets it.
async fn answer(State(holds): State<Holds>, message: String) -> impl IntoResponse {
    let message: Value = serde_json::from_str(&message).unwrap();
    let tool =
        |name: &str| json!({"name": name, "description": "Counts.", "inputSchema": schema()});
    let params = &message["params"];
    let number = &params["arguments"]["number"];
    let result = match (message["method"].as_str(), params["name"].as_str()) {
        (Some("initialize"), _) => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "numbers", "version": "1"},
        }),
        (Some("tools/list"), _) => json!({"tools": [tool("fail"), tool("double"), tool("hold")]}),
        (Some("tools/call"), Some(name @ ("double" | "hold"))) => {
            if name == "hold" {
                holds.running.add_permits(1);
                holds.released.acquire().await.unwrap().forget();
            }
            let text = format!("{}", 2 * number.as_i64().expect("an integer"));
            json!({"content": [{"type": "text", "text": text}], "isError": false})
        }
        _ => json!({}),
    };
    let mut text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    if params["name"] == "fail" {
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
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/", post(answer)).with_state(holds);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Server::start(&format!("{toml}\n[[mcp]]\nlabel = \"numbers\"\nurl = \"http://{address}/\""))
        .await
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
    assert_eq!(names, ["double", "fail", "hold"]);
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

#[tokio::test(flavor = "multi_thread")]
async fn failed_calls_of_mcp_tools_are_reported() {
    let server = start().await;
    let body = request("fail", json!({"max_output_tokens": 60}));
    let response = server.post("/v1/responses", body.to_string()).await.json();
    let call = &response["output"][1];
    assert_eq!((&call["status"], &call["output"]), (&json!("failed"), &Value::Null), "{response}");
    assert_eq!(call["error"]["type"], "mcp_tool_execution_error", "{call}");
    assert!(call["error"]["content"][0]["text"].as_str().unwrap().contains("no luck"), "{call}");
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
