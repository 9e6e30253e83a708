//! Tools of MCP servers in the Responses API, against an MCP server of this test.

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Answer, Server, data};

fn schema() -> Value {
    json!({"type": "object", "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 500}},
        "required": ["number"], "additionalProperties": false})
}

/// Answers one message of the protocol. `double` works, `fail` reports an error.
async fn answer(message: String) -> impl IntoResponse {
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
        (Some("tools/list"), _) => json!({"tools": [tool("fail"), tool("double")]}),
        (Some("tools/call"), Some("double")) => {
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
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Server::start(&format!("[[mcp]]\nlabel = \"numbers\"\nurl = \"http://{address}/\"")).await
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
    assert_eq!(names, ["double", "fail"]);
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
    // The turn after it saw the result: all tokens are counted.
    assert!(items.len() > 2, "{response}");
    let usage = &response["usage"];
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
    let streamed = &events.last().unwrap()["response"]["output"];
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
