//! Graceful shutdown.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Server, ask, data, long_request, rest};

#[tokio::test(flavor = "multi_thread")]
async fn running_requests_finish_within_the_grace_period() {
    let mut server = Server::start("grace_s = 60").await;
    let schema =
        json!({"type": "array", "items": {"enum": [1, 2]}, "minItems": 150, "maxItems": 150});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let body = ask(json!({"max_tokens": 4000, "response_format": format}));
    let (answer, first) = server.begin(&body).await;
    server.signal_stop();
    // New requests are rejected.
    let begun = Instant::now();
    while server
        .client
        .get(format!("{}/healthz", server.base))
        .send()
        .await
        .is_ok_and(|a| a.status() == 200)
    {
        assert!(begun.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let text = first + &rest(answer).await;
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(text.contains("\"finish_reason\":\"stop\""));
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_requests_are_cancelled_after_the_grace_period() {
    let mut server = Server::start("grace_s = 0.3").await;
    let (answer, first) = server.begin(&long_request()).await;
    let begun = Instant::now();
    server.signal_stop();
    let text = first + &rest(answer).await;
    let last: Value = serde_json::from_str(data(&text).last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "stopping", "{last}");
    server.stopped().await;
    assert!(begun.elapsed() < Duration::from_secs(10));
}
