//! `louver serve --otlp-endpoint`: spans arrive at a collector, which is a few lines of this file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(120);
/// The trace and the span of a client.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Reads one HTTP message with a length: its first line, and its body.
fn read_message(stream: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut first = String::new();
    stream.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((first.trim_end().to_owned(), body))
}

/// A collector on a free port. It sends each export's request line and body.
fn collector() -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut writer, mut reader) =
                (stream.try_clone().expect("a handle"), BufReader::new(stream));
            while let Some((line, body)) = read_message(&mut reader) {
                let body = serde_json::from_slice(&body).expect("OTLP as JSON");
                if sender.send((line, body)).is_err() {
                    return;
                }
                let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                              content-length: 2\r\n\r\n{}";
                writer.write_all(answer.as_bytes()).expect("sent");
            }
        }
    });
    (address, receiver)
}

/// `louver serve --tiny` on a free port, and its address.
fn serve(collector: &str) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_louver"));
    command.args(["serve", "--tiny", "--port", "0", "--otlp-endpoint", collector]);
    command.env_remove("LOUVER_API_KEY").env("RUST_LOG", "error");
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json").env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.trim().rsplit("http://").next().unwrap_or_default().to_owned();
    (process, address)
}

/// Status and body of a request that continues the client's trace.
fn post(address: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ntraceparent: 00-{TRACE}-{PARENT}-01\r\n\
         x-request-id: my-request\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()))
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), serde_json::from_str(body).expect("JSON"))
}

/// An attribute of a span or a resource.
fn attribute<'a>(of: &'a Value, name: &str) -> &'a Value {
    let found = of["attributes"].as_array().expect("attributes").iter().find(|a| a["key"] == name);
    found.map(|found| &found["value"]).unwrap_or_else(|| panic!("no {name} in {of:#}"))
}

/// An attribute that is a whole number, which JSON has as a text or a number.
fn count(of: &Value, name: &str) -> i64 {
    let value = &attribute(of, name)["intValue"];
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or(value.as_i64()).unwrap_or_else(|| panic!("{name}: {value}"))
}

#[test]
fn spans_of_a_request_arrive_at_the_collector() {
    let (endpoint, exports) = collector();
    // With the path of traces, which the flag may have or lack.
    let (mut process, address) = serve(&format!("{endpoint}/v1/traces"));
    let schema = json!({"type": "object", "properties": {"n": {"enum": [1, 2]}},
                        "required": ["n"], "additionalProperties": false});
    let tool = json!({"type": "function",
        "function": {"name": "pick", "parameters": schema, "strict": true}});
    let body = json!({"messages": [{"role": "user", "content": "secret question"}],
        "tools": [tool], "tool_choice": "required", "parallel_tool_calls": false,
        "max_tokens": 200, "temperature": 0.5, "seed": 1});
    let (status, answer) = post(&address, &body);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(post(&address, &json!({"messages": 1})).0, 400);

    let (mut spans, mut resource) = (Vec::new(), Value::Null);
    while spans.len() < 4 {
        let (line, export) = exports.recv_timeout(TIMEOUT).expect("an export");
        assert!(line.starts_with("POST /v1/traces "), "{line}");
        assert!(!export.to_string().contains("secret"), "spans have no text of prompts");
        for of_resource in export["resourceSpans"].as_array().expect("resources") {
            resource = of_resource["resource"].clone();
            for scope in of_resource["scopeSpans"].as_array().expect("scopes") {
                spans.extend(scope["spans"].as_array().expect("spans").iter().cloned());
            }
        }
    }
    let _ = process.kill();
    let _ = process.wait();

    assert_eq!(attribute(&resource, "service.name")["stringValue"], "louver");
    assert_eq!(spans.len(), 4, "{spans:#?}");
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).expect(name);
    let with_status = |status: i64| {
        let requests = spans.iter().filter(|span| span["name"] == "POST /v1/chat/completions");
        let mut requests: Vec<&Value> = requests.collect();
        requests.retain(|span| count(span, "http.response.status_code") == status);
        assert_eq!(requests.len(), 1, "{spans:#?}");
        requests[0]
    };
    let (request, plan, generation) = (with_status(200), named("plan"), named("chat tiny"));
    assert_eq!(request["parentSpanId"], PARENT);
    assert!(spans.iter().all(|span| span["traceId"] == TRACE), "{spans:#?}");
    for child in [plan, generation] {
        assert_eq!(child["parentSpanId"], request["spanId"], "{child:#}");
    }
    assert_eq!(attribute(request, "louver.request.id")["stringValue"], "my-request");
    assert_eq!(attribute(with_status(400), "error.type")["stringValue"], "400");

    let text = |name: &str| attribute(generation, name)["stringValue"].clone();
    assert_eq!(text("gen_ai.operation.name"), "chat");
    assert_eq!(text("gen_ai.request.model"), "tiny");
    let completion = text("louver.completion");
    assert!(completion == "complete" || completion == "limited", "{completion}");
    assert_eq!(
        attribute(generation, "gen_ai.response.finish_reasons")["arrayValue"]["values"],
        json!([{"stringValue": "tool_calls"}])
    );
    assert_eq!(count(generation, "gen_ai.request.max_tokens"), 200);
    assert_eq!(attribute(generation, "gen_ai.request.temperature")["doubleValue"], 0.5);
    let calls = answer["choices"][0]["message"]["tool_calls"].as_array().expect("calls");
    assert_eq!(count(generation, "louver.tool_calls"), calls.len() as i64);
    let (usage, output) = (&answer["usage"], count(generation, "gen_ai.usage.output_tokens"));
    assert_eq!(usage["completion_tokens"], output, "{answer}");
    assert_eq!(usage["prompt_tokens"], count(generation, "gen_ai.usage.input_tokens"));
    assert_eq!(usage["prompt_tokens"], count(plan, "gen_ai.usage.input_tokens"));
    assert!(output > 5 && count(generation, "louver.masks") >= output, "{generation:#}");
    assert!(count(generation, "louver.forced_tokens") <= output);
    for time in ["louver.compile_seconds", "louver.mask_seconds", "louver.work_seconds"] {
        assert!(attribute(generation, time)["doubleValue"].as_f64().is_some_and(|s| s > 0.0));
    }
    assert!(attribute(plan, "louver.compile_seconds")["doubleValue"].is_number());
}

#[test]
fn protocols_that_are_not_spoken_are_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_louver"));
    command.args(["serve", "--tiny", "--otlp-endpoint", "http://127.0.0.1:9"]);
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let output = command.stdin(Stdio::null()).output().expect("the binary runs");
    let log = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && log.contains("http/protobuf or http/json"), "{log}");
}

#[test]
fn the_first_failure_to_send_spans_is_logged() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_louver"));
    command.args(["serve", "--tiny", "--port", "0", "--otlp-endpoint", "http://127.0.0.1:9"]);
    command.env_remove("LOUVER_API_KEY").env("OTEL_BSP_SCHEDULE_DELAY", "50");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary runs");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.trim().rsplit("http://").next().unwrap_or_default();
    assert_eq!(post(address, &json!({"messages": 1})).0, 400);
    let log = BufReader::new(process.stderr.take().expect("piped"));
    let warning = log.lines().map_while(Result::ok).find(|line| line.contains("spans cannot be"));
    let _ = process.kill();
    let _ = process.wait();
    assert!(warning.is_some_and(|line| line.contains(" WARN ")));
}

#[test]
fn an_endpoint_that_is_no_address_is_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_louver"));
    command.args(["serve", "--tiny", "--otlp-endpoint", "not an address"]);
    let output = command.stdin(Stdio::null()).output().expect("the binary runs");
    let log = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && log.contains("--otlp-endpoint"), "{log}");
}
