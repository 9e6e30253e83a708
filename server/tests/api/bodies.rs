//! Clients that read nothing: connections of another protocol, unread response bodies.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use louver_server::{load, router};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::ServiceExt;

use crate::support::{Server, TIMEOUT, ask, config, long_request};

/// HTTP/2's preface with empty settings and a request for `/healthz` (RFC 9113, 3.4; the header
/// block is HPACK's static table with a literal path and authority).
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x00\x04\x00\x00\x00\x00\x00\
    \x00\x00\x13\x01\x05\x00\x00\x00\x01\x82\x86\x44\x08/healthz\x41\x05local";

#[tokio::test(flavor = "multi_thread")]
async fn http_2_connections_are_closed_immediately() {
    let server = Server::start("").await;
    // With prior knowledge: in one piece, in two, and truncated.
    for sent in [&[HTTP_2][..], &[&HTTP_2[..10], &HTTP_2[10..]], &[&HTTP_2[..18]]] {
        let mut connection = TcpStream::connect(server.address()).await.unwrap();
        connection.set_nodelay(true).unwrap();
        for piece in sent {
            connection.write_all(piece).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut answer = Vec::new();
        let closed =
            tokio::time::timeout(Duration::from_secs(5), connection.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "the connection stays open");
        // Nothing or an HTTP/1 error; no HTTP/2 frame.
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    }
    // HTTP/2 is not negotiated either.
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    let upgrade =
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, http2-settings\r\n\
        upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n";
    connection.write_all(upgrade).await.unwrap();
    let mut answer = [0; 15];
    tokio::time::timeout(TIMEOUT, connection.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
}

/// The router of a server with one generation slot, without a connection.
async fn routes(limits: &str) -> Router {
    let one = "[limits.requests]\nconcurrent = 1\nn = 1\nqueue_timeout_s = 20\n";
    router(load(config(&format!("{one}{limits}"))).await.unwrap())
}

fn post(body: &Value) -> Request<Body> {
    let request = Request::post("/v1/chat/completions").header("host", "localhost");
    request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = true.into();
    body
}

/// Waits until the slot is free and another request is served, within its deadline.
async fn wait_until_free(routes: &Router) {
    let answered = async {
        while routes.clone().oneshot(post(&ask(json!({})))).await.unwrap().status()
            != StatusCode::OK
        {}
    };
    assert!(tokio::time::timeout(TIMEOUT, answered).await.is_ok(), "the place is never free");
}

#[tokio::test(flavor = "multi_thread")]
async fn unpolled_bodies_release_their_slot() {
    // Either timeout is sufficient.
    for limits in ["timeout_s = 1\n", "[limits.http]\nwrite_timeout_s = 0.5\n"] {
        let routes = routes(limits).await;
        let unread = routes.clone().oneshot(post(&streamed(long_request()))).await.unwrap();
        assert_eq!(unread.status(), StatusCode::OK);
        wait_until_free(&routes).await;
        // A truncated response does not look complete.
        match to_bytes(unread.into_body(), usize::MAX).await {
            Err(broken) => assert!(limits.contains("write_timeout_s"), "{broken}"),
            Ok(text) => assert!(String::from_utf8_lossy(&text).contains("\"code\":\"timeout\"")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_requests_release_their_slot() {
    let routes = routes("timeout_s = 1\n").await;
    let mut left = Box::pin(routes.clone().oneshot(post(&long_request())));
    // Polled until it runs, then not any more.
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut left).await.is_err());
    wait_until_free(&routes).await;
    assert_eq!(left.await.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_do_not_hold_slots() {
    let routes = routes("").await;
    let schema =
        json!({"type": "array", "items": {"enum": [1, 2]}, "minItems": 50, "maxItems": 50});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let body = streamed(ask(json!({"max_tokens": 2000, "response_format": format})));
    let unread = routes.clone().oneshot(post(&body)).await.unwrap();
    wait_until_free(&routes).await;
    // The response is still complete.
    let text = to_bytes(unread.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("\"finish_reason\":\"stop\"") && text.ends_with("data: [DONE]\n\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_strings_have_a_total_limit() {
    let server = Server::start("[limits.schema]\ndispatch_bytes = 1000").await;
    let (status, code, param) =
        server.chat(&ask(json!({"stop": ["short", "x".repeat(1000)]}))).await.error();
    assert_eq!((status, &*code), (400, "too_much_text"));
    assert!(param.as_ref().is_some_and(|param| param.contains("stop")), "{param:?}");
    assert_eq!(server.chat(&ask(json!({"stop": ["short", "x".repeat(900)]}))).await.status, 200);
}
