//! The route `/v1/louver/check`: enforceable and rejected requests, and their cost.

use serde_json::{Value, json};

use crate::support::{NO_FUEL_LIMIT, Server, ask, expensive_format, tools};

async fn check(server: &Server, body: &Value) -> Value {
    let answer = server.post("/v1/louver/check", body.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

fn pointers(answer: &Value) -> Vec<&str> {
    answer["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn enforceable_requests_are_accepted() {
    let server = Server::start("").await;
    let messages = json!([{"role": "user", "content": "hello"}]);
    let chat = json!({"model": "tiny", "messages": messages, "tools": tools(), "tool_choice": {"type": "function", "function": {"name": "book"}}});
    let answer = check(&server, &chat).await;
    assert_eq!(
        (&answer["ok"], &answer["errors"], &answer["relaxed"]),
        (&json!(true), &json!([]), &json!([])),
        "{answer}"
    );
    assert!(
        answer["format"].is_string() && answer["compile_us"].as_f64().unwrap() > 0.0,
        "{answer}"
    );
    assert!(answer["grammar"]["rules"].as_u64().unwrap() > 5, "{answer}");
    let expected = json!([
        {"name": "weather", "type": "function", "callable": false},
        {"name": "book", "type": "function", "callable": true},
    ]);
    assert_eq!(answer["tools"], expected);
    // The prompt equals that of a completion.
    let sent = server
        .chat(&json!({"messages": messages, "tools": tools(), "tool_choice": chat["tool_choice"], "max_tokens": 300}))
        .await;
    assert_eq!(answer["prompt_tokens"], sent.json()["usage"]["prompt_tokens"]);
    // Without a conversation there is no prompt.
    let answer = check(&server, &json!({"tools": tools()})).await;
    assert_eq!((&answer["ok"], &answer["prompt_tokens"]), (&json!(true), &Value::Null), "{answer}");
    // A request to /v1/responses, with a custom tool.
    let custom = json!({"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}});
    let answer = check(&server, &json!({"input": "hello", "tools": [custom]})).await;
    assert_eq!(
        (&answer["ok"], &answer["tools"][0]["type"]),
        (&json!(true), &json!("custom")),
        "{answer}"
    );
    assert!(answer["prompt_tokens"].as_u64().unwrap() > 3);
    // Relaxed keywords are reported.
    let loose = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["x"]}}}]);
    let answer = check(&server, &json!({"tools": loose})).await;
    let relaxed = &answer["relaxed"][0];
    assert_eq!(relaxed["pointer"], "/tools/0/function/parameters", "{answer}");
    assert!(relaxed["reason"].as_str().unwrap().starts_with("not enforced: set `strict: true`"));
}

/// Prompts are checked, too, each with its pointer. Tokens of one that is too long are counted.
#[tokio::test(flavor = "multi_thread")]
async fn prompts_that_do_not_fit_are_refused() {
    let server = Server::start("").await;
    let long = "word ".repeat(10_000);
    let messages = json!([{"role": "user", "content": long}]);
    for (route, body, pointer) in [
        ("chat/completions", json!({"messages": messages}), "/messages"),
        ("responses", json!({"input": long}), "/input"),
        ("completions", json!({"prompt": long}), "/prompt"),
        ("completions", json!({"prompt": ["Once", long]}), "/prompt/1"),
        ("completions", json!({"prompt": [[5], [6], [9_999_999]]}), "/prompt/2"),
        ("completions", json!({"prompt": ["Once", []]}), "/prompt/1"),
    ] {
        assert_eq!(pointers(&check(&server, &body).await), [pointer]);
        let answer = server.post(&format!("/v1/{route}"), body.to_string()).await;
        let (status, _, param) = answer.error();
        assert_eq!((status, param.as_deref()), (400, Some(pointer)), "{}", answer.text);
    }
    let body = json!({"messages": messages}).to_string();
    let counted = server.post("/v1/messages/count_tokens", body).await;
    assert!(counted.json()["input_tokens"].as_u64() > Some(10_000), "{}", counted.text);
}

/// A request of Responses need not have `input`. Members that are null count as absent.
#[tokio::test(flavor = "multi_thread")]
async fn the_route_of_a_body_is_known_by_its_members() {
    let server = Server::start("").await;
    let answer = check(&server, &json!({"previous_response_id": "resp_1"})).await;
    assert_eq!(pointers(&answer)[0], "/previous_response_id", "{answer}");
    for name in ["input", "prompt"] {
        let answer = check(&server, &json!({"messages": null, name: "hello"})).await;
        assert_eq!(answer["ok"], true, "{answer}");
        assert!(answer["prompt_tokens"].as_u64() > Some(0), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_all_parts_are_reported() {
    let server = Server::start("").await;
    let strict = |name: &str, schema: Value| json!({"type": "function", "function": {"name": name, "strict": true, "parameters": schema}});
    let body = json!({
        "messages": [{"role": "user", "content": "x"}],
        "tools": [
            strict("a", json!({"type": "object", "properties": {"x": {"type": "strin"}, "y": {"minLength": -1}}})),
            {"type": "custom", "custom": {"name": "b", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: nowhere\n"}}}},
            strict("c", json!({"$ref": "#/nowhere"})),
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"pattern": "("}}},
    });
    let answer = check(&server, &body).await;
    assert_eq!(answer["ok"], false);
    let mut pointers_found = pointers(&answer);
    pointers_found.sort_unstable();
    let expected = [
        "/response_format/json_schema/schema/pattern",
        "/tools/0/function/parameters/properties/x/type",
        "/tools/0/function/parameters/properties/y/minLength",
        "/tools/1/custom/format/grammar/definition",
        "/tools/2/function/parameters/$ref",
    ];
    assert_eq!(pointers_found, expected, "{answer}");
    let of = |pointer: &str| {
        answer["errors"].as_array().unwrap().iter().find(|e| e["pointer"] == pointer).unwrap()
    };
    assert_eq!(of(expected[1])["keyword"], "type");
    assert!(
        of(expected[3])["message"].as_str().unwrap().starts_with("line 1, column 8: "),
        "{answer}"
    );
    // Member faults are reported before schemas are parsed.
    let answer = check(&server, &json!({"messages": [], "temperature": 9})).await;
    assert_eq!(
        (&answer["ok"], pointers(&answer)),
        (&json!(false), vec!["/temperature", "/messages"])
    );
    // Pointers refer to the body as sent.
    let schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "frog"}});
    let answer = check(&server, &json!({"input": "x", "text": {"format": schema}})).await;
    assert_eq!(pointers(&answer), ["/text/format/schema/type"]);
    let answer = check(&server, &json!({"input": 5, "background": true})).await;
    assert_eq!(pointers(&answer), ["/background", "/input"]);
    // Bodies that are not requests have the usual errors.
    assert_eq!(server.post("/v1/louver/check", "{").await.status, 400);
    assert_eq!(
        server.post("/v1/louver/check", json!({"model": "gpt-5"}).to_string()).await.status,
        404
    );
    assert_eq!(server.post("/v1/louver/check", "[]").await.status, 200);
}

/// Every request in `docs/SERVER.md` can be enforced. Those of Messages are marked `json messages
/// request`.
#[tokio::test(flavor = "multi_thread")]
async fn documented_requests_are_enforceable() {
    let page = include_str!("../../../docs/SERVER.md");
    let server = Server::start("").await;
    for (mark, version, expected) in
        [("```json request\n", None, 3), ("```json messages request\n", Some("2023-06-01"), 1)]
    {
        let rests = page.split(mark).skip(1);
        let requests: Vec<&str> = rests.filter_map(|rest| rest.split("```").next()).collect();
        assert!(requests.len() >= expected);
        for request in requests {
            let body: Value = serde_json::from_str(request)
                .unwrap_or_else(|error| panic!("{error} in {request}"));
            let mut sent = server.client.post(format!("{}/v1/louver/check", server.base));
            sent = sent.header("content-type", "application/json").body(body.to_string());
            if let Some(version) = version {
                sent = sent.header("anthropic-version", version);
            }
            let answer = server.send(sent).await.json();
            assert_eq!(answer["ok"], true, "{request}: {answer}");
            assert!(answer["prompt_tokens"].as_u64().unwrap() > 3);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_do_not_use_completion_slots() {
    let limits =
        "[limits.requests]\nchecks = 1\ncheck_timeout_s = 2.0\nconcurrent = 1\nn = 1\nqueue = 1\n";
    let server = Server::start(&format!("{limits}{NO_FUEL_LIMIT}")).await;
    let body = json!({"response_format": expensive_format()}).to_string();
    // One check runs, eight wait.
    let checks =
        futures::future::join_all((0..20).map(|_| server.post("/v1/louver/check", body.clone())));
    let (checks, completion) = tokio::join!(checks, async {
        server.wait_for("louver_waiting_requests", 8.0).await;
        server.chat(&ask(json!({}))).await
    });
    assert_eq!(completion.status, 200, "{}", completion.text);
    let mut codes: Vec<(u16, String)> =
        checks.iter().map(|answer| (answer.status, answer.error().1)).collect();
    codes.sort();
    let full = codes.iter().filter(|code| **code == (429, "queue_full".to_owned())).count();
    assert_eq!(full, 11, "{codes:?}");
    assert!(codes.iter().any(|code| *code == (408, "timeout".to_owned())), "{codes:?}");
    // The work has ended, and the slot is free.
    assert_eq!(check(&server, &json!({"tools": tools()})).await["ok"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_have_pointers() {
    let server = Server::start("").await;
    let grammar = "root ::= \"a\"\nlost ::= \"b\"";
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "nullable": true}}});
    let format = |format: Value| json!({"response_format": format});
    let tag = |content: Value| format(json!({"type": "structural_tag", "format": content}));
    for (body, pointer, message) in [
        (
            json!({"structured_outputs": {"grammar": grammar}}),
            "/structured_outputs/grammar",
            "lost",
        ),
        (
            tag(json!({"type": "grammar", "grammar": grammar})),
            "/response_format/format/grammar",
            "line 2, column 1: nothing leads to the rule `lost`",
        ),
        (
            tag(json!({"type": "json_schema", "json_schema": schema})),
            "/response_format/format/json_schema/properties/a/nullable",
            "null",
        ),
        (
            format(json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})),
            "/response_format/json_schema/schema/properties/a/nullable",
            "null",
        ),
    ] {
        let answer = check(&server, &body).await;
        assert_eq!(answer["ok"], true, "{answer}");
        let warnings = answer["warnings"].as_array().unwrap();
        assert_eq!((warnings.len(), &warnings[0]["pointer"]), (1, &pointer.into()), "{answer}");
        assert!(warnings[0]["message"].as_str().unwrap().contains(message), "{answer}");
    }
}
