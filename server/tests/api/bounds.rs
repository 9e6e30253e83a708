//! Answers to hostile bodies are short, what a body repeats is bounded before it is copied, and
//! work ends with its fuel, which metrics count.

use serde_json::{Map, Value, json};

use crate::support::{Answer, Server, TIMEOUT, ask, data};

/// Longest answer to a request with faults, in bytes.
const MAX_ANSWER: usize = 500_000;

fn zeros(n: usize) -> Value {
    vec![0; n].into()
}

fn members(n: usize, name: impl Fn(usize) -> String, value: &Value) -> Map<String, Value> {
    (0..n).map(|k| (name(k), value.clone())).collect()
}

fn check_refused(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 400, "{what}: {}", &answer.text[..answer.text.len().min(500)]);
    assert!(answer.text.len() < MAX_ANSWER, "{what}: {} bytes", answer.text.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_many_faults_are_short() {
    let server = Server::start("").await;
    let long = "n".repeat(100_000);
    let faulty = members(2_000, |k| format!("a{k}"), &json!({"type": 5}));
    let schema = json!({"type": "object", "properties": {&long: {"properties": faulty}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let mut unknown = ask(json!({}));
    let names = members(20_000, |k| format!("json{k}"), &json!(1));
    unknown.as_object_mut().unwrap().extend(names);
    let options = members(5_000, |k| format!("o{k}"), &json!(1));
    for (what, members) in [
        ("stop", json!({"stop": zeros(100_000)})),
        ("parts", json!({"messages": [{"role": "user", "content": zeros(100_000)}]})),
        ("tools", json!({"tools": zeros(100_000)})),
        ("pointers", json!({"response_format": format})),
        ("options", json!({"louver": {"schema_options": options}})),
        (
            "choice",
            json!({"tools": [], "tool_choice": {"type": "function", "function": {"name": &long}}}),
        ),
    ] {
        check_refused(&server.chat(&ask(members)).await, what);
    }
    check_refused(&server.chat(&unknown).await, "members");
    let answer =
        server.post("/v1/louver/check", ask(json!({"response_format": format})).to_string());
    assert!(answer.await.text.len() < MAX_ANSWER);
    let answer = server.chat(&ask(json!({"model": "\u{7f}".repeat(100_000)}))).await;
    assert_eq!((answer.status, answer.text.len() < 20_000), (404, true));
    let body = json!({"model": "tiny", "input": zeros(100_000)}).to_string();
    check_refused(&server.post("/v1/responses", body).await, "items");
    let messages = json!([{"role": "user", "content": zeros(100_000)}]);
    let body = json!({"model": "tiny", "max_tokens": 9, "messages": messages}).to_string();
    check_refused(&server.post("/v1/messages", body).await, "blocks");
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_what_responses_bodies_repeat_are_bounded() {
    let server = Server::start("").await;
    let functions = |n: usize| -> Vec<Value> {
        (0..n).map(|k| json!({"type": "function", "name": format!("f{k}")})).collect()
    };
    let namespace = |name: &str, description: &str, n: usize| json!([{"type": "namespace", "name": name, "description": description, "tools": functions(n)}]);
    let long = "d".repeat(1_000_000);
    for (tools, pointer) in [
        (namespace("n", &long, 1_000), "/tools/0/description"),
        (namespace(&long, "", 1_000), "/tools/0/description"),
        (namespace("n", "", 5_000), "/tools/0/tools"),
        (functions(5_000).into(), "/tools"),
    ] {
        let body = json!({"model": "tiny", "input": "x", "tools": tools});
        let answer = server.post("/v1/responses", body.to_string()).await;
        check_refused(&answer, pointer);
        assert_eq!(answer.error().2.as_deref(), Some(pointer));
    }
    // A stored item may be referred to, but not copied without a bound.
    let item = json!({"role": "user", "content": "x", "unknown": vec![json!([[]]); 20_000]});
    // Without reasoning, which is skipped where it is referred to.
    let body = json!({"model": "tiny", "max_output_tokens": 3, "input": [item], "reasoning": {"effort": "none"}});
    let stored = server.post("/v1/responses", body.to_string()).await.json();
    let output = &stored["output"][0]["id"];
    let reference = json!({"type": "item_reference", "id": output});
    let referring = |n: usize| {
        let input = vec![reference.clone(); n];
        json!({"model": "tiny", "max_output_tokens": 3, "input": input}).to_string()
    };
    assert_eq!(server.post("/v1/responses", referring(2)).await.status, 200);
    let answer = server.post("/v1/responses", referring(60_000)).await;
    check_refused(&answer, "references");
    // Calls of one message take time in proportion to their number.
    let call = json!({"type": "function_call", "call_id": "1", "name": "f", "arguments": ""});
    let mut input = vec![call; 40_000];
    input.push(json!({"type": "unknown"}));
    let body = json!({"model": "tiny", "max_output_tokens": 3, "input": input}).to_string();
    check_refused(&server.post("/v1/responses", body).await, "calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn encoded_bodies_are_refused() {
    let server = Server::start("").await;
    let url = format!("{}/v1/chat/completions", server.base);
    let body = ask(json!({"max_tokens": 1})).to_string();
    for (name, value, status) in [
        ("content-encoding", "gzip", 415),
        ("content-encoding", "identity", 200),
        ("content-type", "application/json; charset=utf-16", 415),
        ("content-type", "application/json; charset=\"UTF-8\"", 200),
    ] {
        let mut request = server.client.post(&url).body(body.clone());
        if name != "content-type" {
            request = request.header("content-type", "application/json");
        }
        let answer = server.send(request.header(name, value)).await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
    let twice = server.client.post(&url).header("content-type", "application/json");
    let twice = twice.header("content-type", "text/plain").body(body);
    assert_eq!(server.send(twice).await.status, 415);
}

/// Expensive masks follow a cheap first one, so the request is planned and its generation begins.
#[tokio::test(flavor = "multi_thread")]
async fn generations_past_their_fuel_end_and_are_counted() {
    let limits = "[limits.schema]\nmask_fuel = 20000\nprepare_fuel = 1";
    let server = Server::start(limits).await;
    let good = ask(json!({"guided_json": {"enum": ["yes", "no"]}}));
    let before = server.chat(&good).await.json()["choices"].clone();
    assert_eq!(server.metric("louver_limits_reached_total").await, 0.0);
    assert_eq!(server.metric("louver_compile_fuel_units_count").await, 1.0);
    let units = server.metric("louver_compile_fuel_units_sum").await;

    let grammar = "root ::= \"0123456789: \" x{40,} \".\"\nx ::= [a-z] | x x";
    let body = ask(json!({"guided_grammar": grammar, "max_tokens": 300}));
    let (answer, beside) = tokio::join!(server.chat(&body), server.chat(&good));
    assert_eq!(answer.error(), (400, "schema_limit".to_owned(), None));
    assert_eq!(beside.json()["choices"], before);
    assert_eq!(server.metric("louver_limits_reached_total").await, 1.0);
    assert_eq!(server.metric("louver_compile_fuel_units_count").await, 3.0);
    assert!(server.metric("louver_compile_fuel_units_sum").await > units);

    let mut streamed = body;
    streamed["stream"] = true.into();
    let answer = server.chat(&streamed).await;
    let last: Value = serde_json::from_str(data(&answer.text).last().unwrap()).unwrap();
    assert_eq!((answer.status, &last["error"]["code"]), (200, &json!("schema_limit")));
    assert_eq!(server.metric("louver_limits_reached_total").await, 2.0);
    assert_eq!(server.chat(&good).await.json()["choices"], before);

    // A preparation that has not begun before the end of its request is cancelled.
    let exhausted = async {
        while server.metric("louver_preparations_exhausted_total").await == 0.0 {
            server.chat(&good).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, exhausted).await.is_ok(), "no preparation is counted");
}
