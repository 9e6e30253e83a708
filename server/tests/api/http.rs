//! Routes, methods, API keys, request ids, bodies and connections.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Server, TIMEOUT, ask};

#[tokio::test(flavor = "multi_thread")]
async fn routes_and_methods_are_checked() {
    let server = Server::start("").await;
    for path in ["/healthz", "/health"] {
        assert_eq!(server.get(path).await.json(), json!({"status": "ok"}));
    }
    for path in ["/models", "/v1/v1/models", "/v1/models/", "//v1/models"] {
        let other = server.get(path).await.json();
        assert_eq!(other["error"]["message"], "there is no such route: use /v1/models", "{path}");
    }
    for (path, route) in
        [("/v1/chat/completion", "/v1/chat/completions"), ("/v1/response", "/v1/responses")]
    {
        let message = format!("there is no such route: is {route} meant?");
        assert_eq!(server.get(path).await.json()["error"]["message"], message);
    }
    let doubled = server.get("/v1/chat/completions/chat/completions").await.json();
    let message = "this route is not served here: use /v1/chat/completions";
    assert_eq!(doubled["error"]["message"], message);
    let models = server.get("/v1/models").await.json();
    assert_eq!((&models["object"], &models["data"][0]["id"]), (&json!("list"), &json!("tiny")));
    assert_eq!(server.get("/v1/models/tiny").await.json()["object"], "model");
    assert_eq!(server.get("/v1/models/small").await.json()["id"], "small");
    assert_eq!(server.get("/v1/models/no/such").await.error().0, 404);
    let answer = server.get("/v2/chat").await;
    assert_eq!(answer.error(), (404, "unknown_route".to_owned(), None));
    let answer = server.get("/v1/chat/completions").await;
    assert_eq!(answer.error(), (405, "method_not_allowed".to_owned(), None));
    assert_eq!(answer.headers["allow"], "POST");
    let metrics = server.get("/metrics").await;
    assert!(metrics.text.ends_with("# EOF\n"), "{}", metrics.text);
    let before = server.metric("louver_requests_total").await;
    assert_eq!(server.get("/v2/chat").await.status, 404);
    // The first reading is a request, too.
    assert_eq!(server.metric("louver_requests_total").await, before + 2.0);
}

/// Every route with an id in its path.
#[tokio::test(flavor = "multi_thread")]
async fn paths_that_cannot_be_decoded_are_errors_in_the_format_of_their_route() {
    let server = Server::start("").await;
    for (method, path) in [
        ("GET", "/v1/models/%ff"),
        ("GET", "/v1/models/a/%c3%28"),
        ("GET", "/v1/responses/%ff"),
        ("DELETE", "/v1/responses/%ff"),
        ("POST", "/v1/responses/%ff/cancel"),
        ("GET", "/v1/responses/%ff/input_items"),
        ("GET", "/v1/louver/traces/%ff"),
    ] {
        let send = |client: &str| {
            let request =
                server.client.request(method.parse().unwrap(), server.base.clone() + path);
            server.send(request.header(client, "2023-06-01"))
        };
        let answer = send("x-other").await;
        assert_eq!(answer.error(), (400, "invalid_path".to_owned(), None), "{method} {path}");
        assert_eq!(answer.headers["content-type"], "application/json", "{method} {path}");
        assert!(answer.headers.contains_key("x-request-id"), "{method} {path}");
        let is_anthropic = send("anthropic-version").await.json()["type"] == "error";
        assert_eq!(is_anthropic, path.starts_with("/v1/models"), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_bodies_are_rejected() {
    let server = Server::start("[limits.http]\nbody_bytes = 2000\nread_timeout_s = 0.5").await;
    let url = format!("{}/v1/chat/completions", server.base);
    let body = ask(json!({"max_tokens": 1}));
    for (kind, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
    ] {
        let request = server.client.post(&url).header("content-type", kind).body(body.to_string());
        assert_eq!(server.send(request).await.status, status, "{kind}");
    }
    let request = server.client.post(&url).body(body.to_string());
    assert_eq!(server.send(request).await.error().1, "unsupported_media_type", "no content type");
    let long = format!("{{\"x\": \"{}\"}}", "y".repeat(10_000));
    let answer = server.post("/v1/chat/completions", long.clone()).await;
    assert_eq!(answer.error(), (413, "body_too_long".to_owned(), None));
    let pieces = futures::stream::iter(
        long.into_bytes()
            .chunks(100)
            .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
            .collect::<Vec<_>>(),
    );
    let answer = server.post("/v1/chat/completions", reqwest::Body::wrap_stream(pieces)).await;
    assert_eq!(answer.error(), (413, "body_too_long".to_owned(), None));
    // One that arrives slowly from then on: not 408, as the length is known.
    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{}\r\n", 3000, "y".repeat(3000));
    slow.write_all(format!("{head}1\r\n \r\n").as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(250)).await;
    slow.write_all(chunk.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1000];
    let read = tokio::time::timeout(TIMEOUT, slow.read(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let deep = format!("{{\"x\": {}1{}}}", "[".repeat(300), "]".repeat(300));
    assert_eq!(server.post("/v1/chat/completions", deep).await.error().1, "invalid_json");
    assert_eq!(
        server.post("/v1/chat/completions", vec![0xff, 0xfe]).await.error().1,
        "invalid_json"
    );
    // A body that does not arrive.
    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\n";
    slow.write_all(format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).await.unwrap();
    let mut answer = vec![0; 1000];
    let read = tokio::time::timeout(TIMEOUT, slow.read(&mut answer)).await.unwrap().unwrap();
    assert!(
        answer[..read].starts_with(b"HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&answer[..read])
    );
}

/// Clients that wait for `100 Continue` are told at once that the body is too long, and only those
/// whose body is read are told to send it.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_long_are_not_asked_for() {
    let server = Server::start("[limits.http]\nbody_bytes = 2000").await;
    let body = ask(json!({"max_tokens": 1})).to_string();
    for (length, kind, first_line) in [
        (body.len(), "application/json", "HTTP/1.1 100 Continue"),
        (2001, "application/json", "HTTP/1.1 413 Payload Too Large"),
        (body.len(), "text/plain", "HTTP/1.1 415 Unsupported Media Type"),
    ] {
        let mut client = TcpStream::connect(server.address()).await.unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n\
             content-length: {length}\r\nexpect: 100-continue\r\n\r\n"
        );
        client.write_all(head.as_bytes()).await.unwrap();
        let mut answer = vec![0; 1000];
        let read = tokio::time::timeout(TIMEOUT, client.read(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert_eq!(answer.lines().next(), Some(first_line), "{answer}");
        // A connection whose body was not asked for is closed, as the client may send it anyway.
        let mut rest = Vec::new();
        if !first_line.contains("Continue") {
            tokio::time::timeout(TIMEOUT, client.read_to_end(&mut rest)).await.unwrap().unwrap();
            assert!(!String::from_utf8_lossy(&rest).contains("HTTP/1.1"), "{rest:?}");
        }
    }
}

/// Opens a connection that sends part of an announced body.
async fn half_body(server: &Server, announced: usize, sent: usize) -> TcpStream {
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {announced}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&vec![b' '; sent]).await.unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_charged_as_they_arrive() {
    let server = Server::start("").await;
    let mut announced = Vec::new();
    for sent in (0..100).map(|n| n % 2) {
        announced.push(half_body(&server, 4 << 20, sent).await);
    }
    server.wait_for("louver_active_requests", 101.0).await;
    let long = format!("{}{}", " ".repeat(3 << 20), ask(json!({})));
    let begun = Instant::now();
    for body in [ask(json!({})).to_string(), long] {
        assert_eq!(server.post("/v1/chat/completions", body).await.status, 200);
    }
    // Sooner than the body timeout of 30 s.
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn small_bodies_pass_with_an_exhausted_budget() {
    let limits = "[limits.http]\nbody_bytes = 200000\nbodies_bytes = 200000\nread_timeout_s = 5";
    let server = Server::start(limits).await;
    let mut halves = Vec::new();
    for _ in 0..4 {
        halves.push(half_body(&server, 190_000, 180_000).await);
    }
    // The budget suffices for one of them: the others are rejected without waiting.
    let mut codes = Vec::new();
    for half in &mut halves {
        let mut answer = [0; 12];
        tokio::time::timeout(TIMEOUT, half.read_exact(&mut answer)).await.unwrap().unwrap();
        codes.push(String::from_utf8_lossy(&answer[9..]).into_owned());
        if codes.last().is_some_and(|code| code == "503") {
            assert_eq!(
                server.post("/v1/chat/completions", ask(json!({})).to_string()).await.status,
                200
            );
        }
    }
    codes.sort();
    assert_eq!(codes, ["408", "503", "503", "503"]);
    // Their share of the budget is released.
    let long = format!("{}{}", " ".repeat(180_000), ask(json!({})));
    assert_eq!(server.post("/v1/chat/completions", long).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn inactive_connections_are_closed() {
    // The timeouts of idle connections and of request heads.
    let limits = ["idle_timeout_s = 0.3", "header_timeout_s = 0.3"];
    for (limits, sent) in
        [(limits[0], ""), (limits[0], "GET /healthz HT"), (limits[1], "GET /healthz HT")]
    {
        let server = Server::start(&format!("[limits.http]\n{limits}")).await;
        let mut connection = TcpStream::connect(server.address()).await.unwrap();
        connection.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // Closed, with or without a response.
        let closed = tokio::time::timeout(TIMEOUT, connection.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "{limits}: {sent:?} stays open");
    }
    // A longer request is not idle.
    let server = Server::start("[limits.http]\nidle_timeout_s = 0.3\nheader_timeout_s = 0.3").await;
    let answer = server
        .chat(&ask(json!({"max_tokens": 600, "response_format": {"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 200, "maxItems": 200}}}})))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    // The head timeout does not run between requests.
    let server = Server::start("[limits.http]\nheader_timeout_s = 0.3").await;
    let mut connection = TcpStream::connect(server.address()).await.unwrap();
    for _ in 0..3 {
        connection.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = [0; 1000];
        let read =
            tokio::time::timeout(TIMEOUT, connection.read(&mut answer)).await.unwrap().unwrap();
        assert!(
            answer[..read].starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer[..read])
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_heads_do_not_block_others() {
    for limits in ["connections_per_peer = 8", "connections = 8"] {
        let server = Server::start(&format!("[limits.http]\n{limits}")).await;
        let mut heads = Vec::new();
        for _ in 0..100 {
            let mut head = TcpStream::connect(server.address()).await.unwrap();
            head.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: loc").await.unwrap();
            heads.push(head);
        }
        let begun = Instant::now();
        assert_eq!(server.get("/healthz").await.status, 200);
        assert_eq!(server.chat(&ask(json!({}))).await.status, 200);
        // Sooner than the head timeout of 10 s.
        assert!(begun.elapsed() < Duration::from_secs(8), "{limits}");
        drop(heads);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_do_not_block_others() {
    for limits in ["connections_per_peer = 8", "connections = 8"] {
        // A body is slow after a second.
        let limits = format!("[limits.http]\nread_timeout_s = 10\n{limits}");
        let server = Server::start(&limits).await;
        let mut halves = Vec::new();
        for _ in 0..8 {
            halves.push(half_body(&server, 1000, 1).await);
        }
        tokio::time::sleep(Duration::from_millis(1500)).await;
        for _ in 0..3 {
            assert_eq!(server.chat(&ask(json!({}))).await.status, 200, "{limits}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn healthz_responds_with_all_connections_in_use() {
    for limits in ["connections_per_peer = 4", "connections = 4"] {
        // No body is slow.
        let limits = format!("[limits.http]\nread_timeout_s = 3600\n{limits}");
        let mut server = Server::start(&limits).await;
        // One connection per request: a kept one may be closed before its next use.
        server.client =
            reqwest::Client::builder().timeout(TIMEOUT).pool_max_idle_per_host(0).build().unwrap();
        // Bodies that do not arrive, until every connection has a request in progress. A connection
        // whose head is not read yet gives its slot to the next one.
        let mut halves = Vec::new();
        let full = async {
            loop {
                halves.push(half_body(&server, 1000, 1).await);
                let answer = server.chat(&ask(json!({"max_tokens": 1}))).await;
                if answer.status != 200 {
                    break answer;
                }
            }
        };
        let refused = tokio::time::timeout(TIMEOUT, full).await.unwrap();
        assert_eq!(refused.error(), (503, "too_many_connections".to_owned(), None), "{limits}");
        assert!(refused.headers.contains_key("x-request-id"), "{limits}");
        assert_eq!(
            (&refused.headers["connection"], &refused.headers["retry-after"]),
            (&"close".parse().unwrap(), &"1".parse().unwrap())
        );
        // Also with many inactive connections.
        let mut heads = Vec::new();
        for _ in 0..200 {
            heads.push(TcpStream::connect(server.address()).await.unwrap());
        }
        for _ in 0..3 {
            assert_eq!(server.get("/healthz").await.json(), json!({"status": "ok"}));
        }
        assert_eq!(server.get("/v1/models").await.status, 503);
        halves.clear();
        let served = async { while server.get("/v1/models").await.status != 200 {} };
        assert!(tokio::time::timeout(TIMEOUT, served).await.is_ok(), "{limits}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn api_keys_are_required() {
    let server = Server::start("api_keys = [\"alpha\", \"beta\"]").await;
    let get = |path: &str, key: Option<&str>| {
        let request = server.client.get(format!("{}{path}", server.base));
        server.send(match key {
            Some(key) => request.header("authorization", key),
            None => request,
        })
    };
    assert_eq!(get("/healthz", None).await.status, 200);
    let answer = get("/v1/models", None).await;
    assert_eq!(answer.error(), (401, "missing_api_key".to_owned(), None));
    assert_eq!(answer.headers["www-authenticate"], "Bearer");
    for (key, status) in [
        ("Bearer alpha", 200),
        ("bearer beta", 200),
        ("Bearer alph", 401),
        ("Bearer alphaa", 401),
        ("Bearer ", 401),
        ("Basic alpha", 401),
        ("alpha", 401),
    ] {
        assert_eq!(get("/v1/models", Some(key)).await.status, status, "{key}");
        assert_eq!(get("/metrics", Some(key)).await.status, status, "{key}");
    }
    assert_eq!(get("/no/such/route", None).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_ids_are_returned() {
    let server = Server::start("").await;
    let get = |id: &str| {
        server.send(
            server.client.get(format!("{}/v1/models", server.base)).header("x-request-id", id),
        )
    };
    assert_eq!(get("abc-1").await.headers["x-request-id"], "abc-1");
    let long = "x".repeat(500);
    for bad in ["a b", long.as_str()] {
        let generated = get(bad).await.headers["x-request-id"].to_str().unwrap().to_owned();
        assert!(generated.starts_with("req_") && generated.len() == 28, "{generated}");
    }
    let (one, two) = (server.get("/nope").await, server.get("/nope").await);
    assert_ne!(one.headers["x-request-id"], two.headers["x-request-id"]);
    tokio::time::sleep(Duration::from_millis(1)).await;
}
