//! Disconnecting clients, full servers, failing hosts: other requests are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Answer, NO_FUEL_LIMIT, Processor, Server, TIMEOUT, ask, data, expensive_format, long_request,
    rest,
};

#[tokio::test(flavor = "multi_thread")]
async fn disconnecting_clients_end_their_generations() {
    let server = Server::start("").await;
    let (answer, first) = server.begin(&long_request()).await;
    assert!(first.contains("\"role\":\"assistant\""), "{first}");
    assert_eq!(server.metric("louver_running_generations").await, 1.0);
    drop(answer);
    server.wait_for("louver_running_generations", 0.0).await;
    server.wait_for("louver_active_requests", 1.0).await; // the request for the metrics itself

    // A client that does not wait for a complete response.
    let impatient = reqwest::Client::builder().timeout(Duration::from_millis(400)).build().unwrap();
    let request = impatient.post(format!("{}/v1/chat/completions", server.base));
    let request =
        request.header("content-type", "application/json").body(long_request().to_string());
    assert!(request.send().await.is_err());
    server.wait_for("louver_running_generations", 0.0).await;
    let text = server.get("/metrics").await.text;
    assert!(
        text.contains("louver_generations_total{model=\"tiny\",finish=\"cancelled\"} 2"),
        "{text}"
    );
    assert!(text.contains("code=\"499\"} 1"), "{text}");
    assert_eq!(server.chat(&ask(json!({}))).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_requests_leave_a_trace() {
    let server = Server::start("[limits.requests]\ntimeout_s = 2.0").await;
    for is_patient in [false, true] {
        let mut body = long_request();
        body["louver"] = json!({"trace": true});
        let (answer, first) = server.begin(&body).await;
        let chunk: Value = serde_json::from_str(data(&first)[0]).unwrap();
        if is_patient {
            assert!(rest(answer).await.contains("timeout"));
        } else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            drop(answer);
        }
        let path = format!("/v1/louver/traces/{}", chunk["id"].as_str().unwrap());
        let mut trace = server.get(&path).await;
        for _ in 0..200 {
            if trace.status == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            trace = server.get(&path).await;
        }
        let trace = trace.json();
        assert_eq!(
            (&trace["finish"], &trace["report"]["completion"]),
            (&json!("cancelled"), &json!("cancelled"))
        );
        let steps = trace["steps"].as_array().unwrap();
        assert!(steps.len() > 1 && !trace["events"].as_array().unwrap().is_empty(), "{trace}");
        assert!(steps.iter().zip(0..).all(|(step, n)| step["position"] == n), "{trace}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_servers_reject_requests_and_stay_healthy() {
    let limits = "[limits.requests]\nconcurrent = 1\nn = 1\nqueue = 1\nqueue_timeout_s = 0.4";
    let server = Server::start(limits).await;
    let (running, _) = server.begin(&long_request()).await;
    let (waiting, full) = (ask(json!({})), ask(json!({})));
    let (late, full) = tokio::join!(server.chat(&waiting), async {
        server.wait_for("louver_waiting_requests", 1.0).await;
        assert_eq!(server.get("/healthz").await.status, 200);
        server.chat(&full).await
    });
    assert_eq!(full.error(), (429, "queue_full".to_owned(), None));
    assert_eq!(full.headers["retry-after"], "1");
    assert_eq!(late.error(), (429, "queue_timeout".to_owned(), None));
    drop(running);
    server.wait_for("louver_running_generations", 0.0).await;
    assert_eq!(server.chat(&ask(json!({}))).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_time_out() {
    let server = Server::start("[limits.requests]\ntimeout_s = 2.0").await;
    assert_eq!(server.chat(&long_request()).await.error(), (408, "timeout".to_owned(), None));
    let (answer, first) = server.begin(&long_request()).await;
    let text = first + &rest(answer).await;
    let last: Value = serde_json::from_str(data(&text).last().unwrap()).unwrap();
    assert_eq!(
        (&last["error"]["code"], &last["error"]["type"]),
        (&json!("timeout"), &json!("timeout_error"))
    );
    server.wait_for("louver_running_generations", 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compilations_end_with_their_requests() {
    let limits = "[limits.requests]\nconcurrent = 1\nn = 1\ntimeout_s = 3.0\n";
    let server = Server::start(&format!("{limits}{NO_FUEL_LIMIT}")).await;
    let expensive_format = ask(json!({"response_format": expensive_format()}));
    // The deadline passes, or the client disconnects.
    assert_eq!(server.chat(&expensive_format).await.error(), (408, "timeout".to_owned(), None));
    let impatient = reqwest::Client::builder().timeout(Duration::from_millis(400)).build().unwrap();
    for _ in 0..3 {
        let request = impatient.post(format!("{}/v1/chat/completions", server.base));
        let request =
            request.header("content-type", "application/json").body(expensive_format.to_string());
        assert!(request.send().await.is_err());
    }
    // A slot is released only when its work has ended.
    let answered = async { while server.chat(&ask(json!({}))).await.status != 200 {} };
    assert!(tokio::time::timeout(TIMEOUT, answered).await.is_ok(), "the work goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_are_bounded_before_tokenization() {
    let refused = |answer: Answer| {
        assert_eq!(
            answer.error(),
            (400, "context_length_exceeded".to_owned(), Some("/messages".to_owned()))
        );
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("prompt is too long: "), "{message}");
        message
    };
    let of = |bytes: usize| {
        ask(json!({"messages": [{"role": "user", "content": "a".repeat(bytes)}], "max_tokens": 5}))
    };
    let server = Server::start("[limits.requests]\nprompt_bytes = 2000").await;
    assert!(refused(server.chat(&of(2000)).await).contains(" bytes > 2000 maximum"));
    let body = json!({"messages": of(2000)["messages"]}).to_string();
    let checked = server.post("/v1/louver/check", body).await.json();
    assert_eq!(
        (&checked["ok"], &checked["errors"][0]["pointer"]),
        (&json!(false), &json!("/messages"))
    );
    assert_eq!(server.chat(&of(1000)).await.status, 200);
    // Bounded by the model's context: 8192 tokens of at most the longest token's bytes.
    let server = Server::start("[limits.requests]\nprompt_bytes = 100000000").await;
    let message = refused(server.chat(&of(2_000_000)).await);
    let limit: usize =
        message.split("> ").last().unwrap().split(' ').next().unwrap().parse().unwrap();
    assert_eq!(limit % 8192, 0, "{message}");
    // A prompt that is too long after tokenization has the same error.
    let answer = server.chat(&of(limit - 1000)).await;
    assert_eq!(answer.error().1, "context_length_exceeded");
    assert!(
        answer.json()["error"]["message"].as_str().unwrap().contains(" tokens > "),
        "{}",
        answer.text
    );
}

/// A processor that acts once it is signalled.
fn on_signal(
    act: impl Fn(&mistralrs::Tensor) -> mistralrs::Tensor + Send + Sync + 'static,
) -> (Processor, Arc<AtomicBool>) {
    let signal = Arc::new(AtomicBool::new(false));
    let notify = signal.clone();
    let processor: Processor = Arc::new(move |logits: &mistralrs::Tensor, _: &[u32]| {
        Ok(if notify.load(Ordering::Relaxed) { act(logits) } else { logits.clone() })
    });
    (processor, signal)
}

#[tokio::test(flavor = "multi_thread")]
async fn nan_rows_are_repaired() {
    let (processor, signal) = on_signal(|logits| {
        let width = logits.elem_count();
        mistralrs::Tensor::from_vec(vec![f32::NAN; width], width, &mistralrs::Device::Cpu).unwrap()
    });
    let server = Server::with_processor("", processor).await;
    signal.store(true, Ordering::Relaxed);
    let schema = json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false});
    let body = ask(
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}, "max_tokens": 300}),
    );
    let answer = server.chat(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let content: Value =
        serde_json::from_str(answer.json()["choices"][0]["message"]["content"].as_str().unwrap())
            .unwrap();
    assert!(content["a"].is_boolean());
    assert!(server.metric("louver_repaired_rows_total").await > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_hosts_are_restarted() {
    let (processor, signal) = on_signal(|_| panic!("a processor's own bug, asked for by a test"));
    let server = Server::with_processor("", processor).await;
    assert_eq!(server.chat(&ask(json!({}))).await.status, 200);
    signal.store(true, Ordering::Relaxed);
    let answer = server.chat(&ask(json!({}))).await;
    assert_eq!(answer.error(), (503, "host_gone".to_owned(), None));
    signal.store(false, Ordering::Relaxed);
    // mistral.rs restarts a dead engine once its thread has ended.
    let mut served = false;
    for _ in 0..100 {
        served = server.get("/healthz").await.status == 200
            && server.chat(&ask(json!({}))).await.status == 200;
        if served {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(served);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_schemas_affect_their_own_request_only() {
    let server = Server::start(
        "[limits.schema]\nnodes = 2000\nautomaton_states = 2000\ncompiled_states = 20000",
    )
    .await;
    let nested =
        (0..60).fold(json!({"type": "null"}), |inner, _| json!({"type": "array", "items": inner}));
    let wide: serde_json::Map<String, Value> =
        (0..3000).map(|i| (format!("p{i}"), json!({"type": "string"}))).collect();
    let doubling = (0..30).fold(json!({"a": {"type": "string"}}), |mut defs, i| {
        let inner = if i == 0 { "a".to_owned() } else { format!("d{}", i - 1) };
        let twice = json!({"$ref": format!("#/$defs/{inner}")});
        defs[format!("d{i}")] = json!({"anyOf": [twice, {"type": "array", "items": twice}]});
        defs
    });
    let schemas = [
        nested,
        json!({"type": "object", "properties": wide}),
        json!({"$defs": doubling, "$ref": "#/$defs/d29"}),
        json!({"type": "string", "pattern": "(((a{1,100}){1,100}){1,100}){1,100}"}),
        json!({"type": "string", "pattern": "(a|b)*a(a|b){40}"}),
        json!({"$ref": "#"}),
        json!({"not": {"not": {"not": {"type": "string"}}}}),
    ];
    for schema in schemas {
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        let hostile = ask(json!({"response_format": format, "max_tokens": 20}));
        let (answer, healthy) = tokio::join!(server.chat(&hostile), server.get("/healthz"));
        assert_eq!(healthy.status, 200);
        assert!(answer.status == 200 || answer.status == 400, "{}", answer.text);
    }
    assert_eq!(server.chat(&ask(json!({}))).await.status, 200);
}
