//! Tools of MCP servers over standard input and output. The server is this test program again, with
//! the test `server` alone.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Duration;

use louver_mistralrs::{McpError, McpTools};
use mistralrs::{McpClientConfig, McpServerConfig, McpServerSource};
use serde_json::{Value, json};

/// Variable without which the server ends at once.
const IS_SERVER: &str = "LOUVER_TESTS_MCP_SERVER";

/// Not a test, but the server. Its tools:
///
/// * `echo` repeats its line, `pid` has the process's id, `fail` and `refuse` fail;
/// * `late` is answered when the next call comes, before that, and `hold` after it;
/// * `noise` comes after notifications, other requests and other text;
/// * `answers` has the answers to those requests;
/// * `exit` ends the process.
#[test]
#[ignore = "the MCP server of the other tests"]
fn server() {
    if std::env::var_os(IS_SERVER).is_none() {
        return;
    }
    // The test harness has begun a line.
    println!();
    let (mut late, mut held, mut answers) = (None, None, Vec::new());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"].is_null() {
            answers.push(message);
            continue;
        }
        let (id, name) = (&message["id"], message["params"]["name"].as_str());
        let result = match (message["method"].as_str().unwrap(), name) {
            ("initialize", _) => json!({"protocolVersion": "2025-06-18", "capabilities": {},
                "serverInfo": {"name": "tests", "version": "1"}}),
            ("ping", _) => {
                say(&reply(id, json!({})));
                continue;
            }
            ("tools/list", _) => tools(&message["params"]["cursor"]),
            ("tools/call", Some("late")) => {
                late = Some(reply(id, text("late")));
                continue;
            }
            ("tools/call", Some("hold")) => {
                held = Some(reply(id, text("held")));
                continue;
            }
            ("tools/call", Some("exit")) => return,
            ("tools/call", Some("noise")) => {
                noise();
                text("quiet")
            }
            ("tools/call", Some("answers")) => {
                text(&Value::from(std::mem::take(&mut answers)).to_string())
            }
            ("tools/call", Some("pid")) => text(&std::process::id().to_string()),
            ("tools/call", Some("fail")) => {
                json!({"content": [{"type": "text", "text": "no luck"}], "isError": true})
            }
            ("tools/call", Some("refuse")) => {
                let error = json!({"code": -32602, "message": "no such city"});
                say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                continue;
            }
            ("tools/call", _) => text(&line),
            _ => continue,
        };
        if let Some(late) = late.take() {
            say(&late);
        }
        say(&reply(id, result));
        if let Some(held) = held.take() {
            say(&held);
        }
    }
}

/// Two pages.
fn tools(cursor: &Value) -> Value {
    let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
    let (first, second) =
        (["echo", "hold", "late", "exit", "fail"], ["refuse", "noise", "pid", "answers"]);
    match cursor.as_str() {
        None => json!({"tools": first.iter().map(tool).collect::<Value>(), "nextCursor": "2"}),
        Some(_) => json!({"tools": second.iter().map(tool).collect::<Value>()}),
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn reply(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}

fn noise() {
    say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}));
    say(&json!({"jsonrpc": "2.0", "method": "ping", "id": "p"}));
    say(&json!({"jsonrpc": "2.0", "method": "roots/list", "id": 1}));
    say(&json!("no message"));
    // The reply of nobody, and one to a request that was answered.
    say(&reply(&json!(4_000_000_000_u64), text("late")));
    say(&reply(&json!(1), text("late")));
    println!("starting up ...");
}

fn config(seconds: u64) -> McpClientConfig {
    let source = McpServerSource::Process {
        command: std::env::current_exe().unwrap().display().to_string(),
        args: ["mcp::server", "--exact", "--ignored", "--nocapture"].map(str::to_owned).to_vec(),
        work_dir: None,
        env: Some(HashMap::from([(IS_SERVER.to_owned(), "yes".to_owned())])),
    };
    let server = McpServerConfig { name: "tests".to_owned(), source, ..Default::default() };
    McpClientConfig {
        servers: vec![server],
        tool_timeout_secs: Some(seconds),
        // The default is 1.
        max_concurrent_calls: Some(8),
        ..Default::default()
    }
}

async fn connect(seconds: u64) -> McpTools {
    McpTools::connect(config(seconds)).await.unwrap()
}

/// Calls `echo` and checks that the reply is to this call.
async fn echo(tools: &McpTools, n: u64) {
    let arguments = format!(r#"{{"n":{n}}}"#);
    let line = tools.call_tool("echo", &arguments).await.unwrap();
    assert!(line.contains(&arguments), "{line}");
}

#[tokio::test]
async fn all_pages_of_tools_are_offered() {
    let tools = connect(60).await;
    assert_eq!(
        tools.names(),
        ["answers", "echo", "exit", "fail", "hold", "late", "noise", "pid", "refuse"]
    );
    assert_eq!(tools.definitions()[1]["function"]["parameters"], json!({"type": "object"}));
    let unknown = tools.call_tool("other", "{}").await;
    assert_eq!(unknown, Err(McpError::UnknownTool("other".to_owned())));
}

/// The late reply to a call that took too long, or was dropped, reaches no other call.
#[tokio::test]
async fn replies_of_given_up_calls_reach_no_other_call() {
    let tools = connect(2).await;
    for n in 0..3 {
        let error = tools.call_tool("late", "{}").await.unwrap_err();
        assert!(matches!(&error, McpError::Call { message, .. } if message.contains("2 s")));
        echo(&tools, 2 * n).await;
        let dropped =
            tokio::time::timeout(Duration::from_millis(50), tools.call_tool("late", "{}"));
        assert!(dropped.await.is_err());
        echo(&tools, 2 * n + 1).await;
    }
}

#[tokio::test]
async fn replies_may_come_in_any_order() {
    let tools = connect(60).await;
    let held = tools.call_tool("hold", "{}");
    let (held, ()) = tokio::join!(biased; held, echo(&tools, 1));
    assert_eq!(held.unwrap(), "held");
    tokio::join!(echo(&tools, 2), echo(&tools, 3), echo(&tools, 4), echo(&tools, 5));
}

#[tokio::test]
async fn notifications_and_other_output_are_skipped() {
    let tools = connect(60).await;
    for n in 0..2 {
        assert_eq!(tools.call_tool("noise", "{}").await.unwrap(), "quiet");
        echo(&tools, n).await;
        let answers = tools.call_tool("answers", "{}").await.unwrap();
        let answers: Vec<Value> = serde_json::from_str(&answers).unwrap();
        assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!(1), &json!(-32601)));
    }
}

#[tokio::test]
async fn lost_processes_are_started_again() {
    let tools = connect(60).await;
    let pid = async || tools.call_tool("pid", "{}").await.unwrap();
    let first = pid().await;
    assert_eq!(pid().await, first);
    let held = tools.call_tool("hold", "{}");
    let (held, exit) = tokio::join!(biased; held, tools.call_tool("exit", "{}"));
    for lost in [held, exit] {
        assert!(matches!(lost, Err(McpError::Call { .. })), "{lost:?}");
    }
    let second = pid().await;
    assert_ne!(second, first);
    assert_eq!(pid().await, second);
}

#[tokio::test]
async fn failures_of_tools_differ_from_those_of_the_protocol() {
    let tools = connect(60).await;
    let tool = "fail".to_owned();
    let failed = Err(McpError::Tool { tool, message: "no luck".to_owned() });
    assert_eq!(tools.call_tool("fail", "{}").await, failed);
    let (tool, message) = ("refuse".to_owned(), "no such city".to_owned());
    let refused = Err(McpError::Refused { tool, code: -32602, message });
    assert_eq!(tools.call_tool("refuse", "{}").await, refused);
}

/// A server gets the digits that were enforced, on one line.
#[tokio::test]
async fn numbers_of_arguments_are_not_rounded() {
    let tools = connect(60).await;
    let numbers = "[123456789012345678901234567890,0.1000000000000000000001,1.0,-0]";
    let line = tools.call_tool("echo", &format!("{{\"n\":\n\t{numbers}}}")).await.unwrap();
    assert!(line.contains(&format!(r#""arguments":{{"n":{numbers}}}"#)), "{line}");
    for arguments in ["", "[1]", r#"{"n": 1"#, r#"{"n": 1, "n": 2}"#, r#"{"n": "a"#] {
        let error = tools.call_tool("echo", arguments).await.unwrap_err();
        assert!(matches!(error, McpError::Arguments { .. }), "{arguments}: {error}");
    }
}

#[tokio::test]
async fn servers_that_do_not_begin_are_errors() {
    let mut missing = config(60);
    missing.servers[0].source = McpServerSource::Process {
        command: "/no/such/program".to_owned(),
        args: Vec::new(),
        work_dir: None,
        env: None,
    };
    let error = McpTools::connect(missing).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    // It exits at once.
    let mut short = config(60);
    if let McpServerSource::Process { env, .. } = &mut short.servers[0].source {
        *env = None;
    }
    let error = McpTools::connect(short).await.unwrap_err();
    assert!(matches!(error, McpError::Connect(_)), "{error}");
}
