//! The server's end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Server, ask, data, endless, rest};

#[tokio::test(flavor = "multi_thread")]
async fn running_requests_are_finished() {
    let mut server = Server::start("grace_s = 60").await;
    let schema =
        json!({"type": "array", "items": {"enum": [1, 2]}, "minItems": 150, "maxItems": 150});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let body = ask(json!({"max_tokens": 4000, "response_format": format}));
    let (answer, first) = server.begin(&body).await;
    server.tell_to_stop();
    // Nothing new is taken.
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
async fn after_the_grace_they_are_cancelled() {
    let mut server = Server::start("grace_s = 0.3").await;
    let (answer, first) = server.begin(&endless()).await;
    let begun = Instant::now();
    server.tell_to_stop();
    let text = first + &rest(answer).await;
    let last: Value = serde_json::from_str(data(&text).last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "stopping", "{last}");
    server.stopped().await;
    assert!(begun.elapsed() < Duration::from_secs(10));
}
