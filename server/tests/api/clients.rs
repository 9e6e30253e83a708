//! What clients of the APIs rely on beside the members of bodies: headers, texts of errors, forms
//! of tools that other routes have.

use serde_json::{Value, json};

use tokio::io::AsyncWriteExt;

use crate::support::{Answer, Server, TIMEOUT, ask, long_request};

async fn respond(server: &Server, more: Value) -> Answer {
    let mut body =
        json!({"input": "hi", "max_output_tokens": 40, "seed": 1, "reasoning": {"effort": "none"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    server.post("/v1/responses", body.to_string()).await
}

/// Tools and choices in the form of Chat Completions mean the same on `/v1/responses`, and come
/// back in the form of this API.
#[tokio::test(flavor = "multi_thread")]
async fn tools_of_chat_completions_are_strict_on_responses() {
    let server = Server::start("").await;
    let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
        "additionalProperties": false});
    let function = |strict: Value| {
        let mut function = json!({"name": "f", "parameters": parameters, "strict": strict});
        function.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        function
    };
    for (strict, is_strict) in [(Value::Null, true), (json!(true), true), (json!(false), false)] {
        let nested = json!({"type": "function", "function": function(strict.clone())});
        let untyped = json!({"function": function(strict.clone())});
        for tool in [nested, untyped, function(strict.clone())] {
            let answer = respond(&server, json!({"tools": [tool], "tool_choice": "auto"})).await;
            let response = answer.json();
            assert_eq!(answer.status, 200, "{}", answer.text);
            let report = &response["louver"]["report"]["tools"][0];
            assert_eq!(report["enforced"], is_strict, "{tool}: {report}");
            let expected = json!({"type": "function", "name": "f", "parameters": parameters, "strict": is_strict});
            assert_eq!(response["tools"], json!([expected]), "{tool}");
        }
    }
    let custom = json!({"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}});
    let choice = json!({"type": "custom", "custom": {"name": "c"}});
    let response = respond(&server, json!({"tools": [custom], "tool_choice": choice})).await.json();
    assert_eq!(response["tools"][0]["name"], "c", "{response}");
    assert_eq!(response["tool_choice"], json!({"type": "custom", "name": "c"}));
}

/// The place of the first tool of a name is one in the request.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_names_of_tools_have_both_places() {
    let server = Server::start("").await;
    let function = |name: &str| json!({"type": "function", "name": name});
    let namespace = |names: &[&str]| {
        let tools: Vec<Value> = names.iter().map(|name| function(name)).collect();
        json!({"type": "namespace", "name": "a", "description": "", "tools": tools})
    };
    let search = json!({"type": "web_search"});
    for (tools, at, first) in [
        (
            json!([namespace(&["x", "y", "b"]), namespace(&["b"])]),
            "/tools/1/tools/0",
            "/tools/0/tools/2",
        ),
        (json!([search, search, function("f"), function("f")]), "/tools/3", "/tools/2"),
    ] {
        let answer = respond(&server, json!({"tools": tools})).await;
        assert_eq!(answer.error().2.as_deref(), Some(at), "{}", answer.text);
        let message = format!("is already the name of {first}");
        let found = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(found.ends_with(&message), "{found}");
    }
}

/// A conversation that was cut off goes on without new input.
#[tokio::test(flavor = "multi_thread")]
async fn responses_are_continued_without_input() {
    let server = Server::start("").await;
    let first = respond(&server, json!({"max_output_tokens": 3})).await.json();
    for input in [Value::Null, json!([])] {
        let more = json!({"previous_response_id": first["id"], "input": input});
        let answer = respond(&server, more).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let missing = respond(&server, json!({"input": input})).await;
        assert_eq!(missing.error().2.as_deref(), Some("/input"), "{}", missing.text);
    }
    // A reference may leave out its type.
    let message = first["output"][0]["id"].clone();
    let input = json!([{"role": "user", "content": "hi"}, {"id": message}, {"role": "user", "content": "go on"}]);
    let answer = respond(&server, json!({"input": input})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

/// Empty instructions are none.
#[tokio::test(flavor = "multi_thread")]
async fn empty_instructions_add_nothing_to_the_prompt() {
    let server = Server::start("").await;
    let used = |answer: Answer| answer.json()["usage"]["input_tokens"].as_u64().expect("tokens");
    let without = used(respond(&server, json!({})).await);
    assert_eq!(used(respond(&server, json!({"instructions": ""})).await), without);
    assert!(used(respond(&server, json!({"instructions": "Be brief."})).await) > without);
    let ask = async |system: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "system": system});
        body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        used(server.post("/v1/messages", body.to_string()).await)
    };
    let without = ask(Value::Null).await;
    for empty in [json!(""), json!([]), json!([{"type": "text", "text": ""}])] {
        assert_eq!(ask(empty).await, without);
    }
}

/// What comes back in a response has the type that clients read.
#[tokio::test(flavor = "multi_thread")]
async fn members_that_come_back_have_their_types() {
    let server = Server::start("").await;
    for (more, at) in [
        (json!({"metadata": "x"}), "/metadata"),
        (json!({"metadata": {"a": 1}}), "/metadata/a"),
        (json!({"user": 7}), "/user"),
        (json!({"text": {"verbosity": "loud"}}), "/text/verbosity"),
    ] {
        let answer = respond(&server, more).await;
        assert_eq!(answer.error().2.as_deref(), Some(at), "{}", answer.text);
    }
    let more = json!({"metadata": {"a": "1"}, "user": "u", "text": {"verbosity": "low"}});
    let response = respond(&server, more).await.json();
    assert_eq!(response["metadata"], json!({"a": "1"}));
    assert_eq!(response["text"], json!({"format": {"type": "text"}, "verbosity": "low"}));
}

/// Official clients repeat a 408 unless a header tells them not to.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_took_too_long_are_not_repeated() {
    let server = Server::start("[limits.requests]\ntimeout_s = 0.2").await;
    let answer = server.chat(&long_request()).await;
    assert_eq!(answer.error().0, 408, "{}", answer.text);
    assert_eq!(answer.headers["x-should-retry"], "false");
    let invalid = server.chat(&ask(json!({"n": 0}))).await;
    assert!(!invalid.headers.contains_key("x-should-retry"));
}

/// Clients of both APIs look for these texts, and shorten the conversation.
#[tokio::test(flavor = "multi_thread")]
async fn prompts_that_are_too_long_have_the_texts_of_both_apis() {
    let server = Server::start("").await;
    let messages = json!([{"role": "user", "content": "ab ".repeat(9_000)}]);
    let chat = server.chat(&ask(json!({"messages": messages}))).await;
    assert_eq!(chat.error().1, "context_length_exceeded", "{}", chat.text);
    let body = json!({"messages": messages, "max_tokens": 2});
    let anthropic = server.post("/v1/messages", body.to_string()).await;
    for answer in [chat, anthropic] {
        for part in [
            "prompt is too long: ",
            " tokens > 8192 maximum",
            "maximum context length is 8192 tokens",
        ] {
            assert!(answer.text.contains(part), "{}", answer.text);
        }
    }
}

/// Where nothing is served, clients of Anthropic's API get its errors.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_routes_have_the_format_of_the_client() {
    let server = Server::start("").await;
    for path in ["/v1/files", "/v1/messages/batches/x/cancel", "/v1/nothing"] {
        let get = server.client.get(format!("{}{path}", server.base));
        let answer = server.send(get.header("anthropic-version", "2023-06-01")).await;
        assert_eq!((answer.status, &answer.json()["type"]), (404, &json!("error")), "{path}");
        assert!(answer.headers.contains_key("request-id"), "{path}");
    }
}

/// What was generated for a client that has gone is counted when the slot is free again.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_generations_are_counted() {
    let server = Server::start("").await;
    let (stream, _) = server.begin(&long_request()).await;
    assert_eq!(server.metric("louver_running_generations").await, 1.0);
    drop(stream);
    server.wait_for("louver_running_generations", 0.0).await;
    let text = server.get("/metrics").await.text;
    let ended = r#"louver_generations_total{model="tiny",finish="cancelled"} 1"#;
    assert!(text.contains(ended), "{text}");
    assert!(server.metric("louver_generated_tokens_total").await > 0.0, "{text}");
    assert!(server.metric("louver_mask_seconds_count").await > 0.0, "{text}");
}

/// A stored conversation counts as the body that it stands for: in length, and for the memory of
/// bodies.
#[tokio::test(flavor = "multi_thread")]
async fn stored_conversations_are_bounded_and_charged_as_bodies() {
    let limits = "[limits.http]\nbody_bytes = 300000\nbodies_bytes = 300000\n\
                  [limits.requests]\nprompt_bytes = 100000";
    let server = Server::start(limits).await;
    // Not in the prompt, but in the conversation.
    let item = |n: usize| {
        let summary = json!([{"type": "summary_text", "text": "x".repeat(n)}]);
        json!({"type": "reasoning", "id": "rs_1", "summary": summary})
    };
    let message = json!({"role": "user", "content": "hi"});
    let input = json!([item(200_000), message]);
    let first = respond(&server, json!({"input": input, "max_output_tokens": 5})).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let more = json!({"previous_response_id": first.json()["id"], "input": [message],
        "max_output_tokens": 5});
    assert_eq!(respond(&server, more.clone()).await.status, 200);
    // A body that arrives holds nearly all memory.
    let (head, body) = half_body(280_000);
    let mut half = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    half.write_all(head.as_bytes()).await.unwrap();
    half.write_all(&body).await.unwrap();
    let busy = (503, "bodies_full".to_owned(), None);
    let begun = std::time::Instant::now();
    loop {
        let answer = respond(&server, more.clone()).await;
        if answer.status != 200 {
            assert_eq!(answer.error(), busy);
            break;
        }
        assert!(begun.elapsed() < TIMEOUT, "the body arrives");
    }
    let checked = server.post("/v1/louver/check", more.to_string()).await;
    assert_eq!(checked.error(), busy);
    drop(half);
    let input = json!([item(150_000), message]);
    let longer = json!({"previous_response_id": first.json()["id"], "input": input,
        "max_output_tokens": 5});
    let longer = respond(&server, longer).await;
    assert_eq!(longer.status, 200, "{}", longer.text);
    let too_long = json!({"previous_response_id": longer.json()["id"], "input": [message]});
    let pointer = Some("/previous_response_id".to_owned());
    let error = respond(&server, too_long).await.error();
    assert_eq!(error, (400, "too_long".to_owned(), pointer));
}

/// The head and the beginning of a body that is longer by one byte.
fn half_body(bytes: usize) -> (String, Vec<u8>) {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        bytes + 1
    );
    (head, vec![b' '; bytes])
}
