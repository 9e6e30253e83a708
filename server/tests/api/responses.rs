//! The route `/v1/responses`: requests from a table, complete and streamed.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cases::check_arguments;
use crate::support::{Answer, Server, TableRequest, data, seed, tools};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    body: String,
    status: u16,
    param: Option<String>,
    params: Option<Vec<String>>,
    /// The allowed statuses.
    words: Option<Vec<String>>,
    /// The allowed item types.
    items: Option<Vec<String>>,
    /// A pattern for the text, as a regular expression of JSON Schema.
    text: Option<String>,
    /// A pattern for a custom tool's input.
    input: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// The functions in this API's format.
fn flat_tools() -> Value {
    let flat = |tool: &Value| {
        let mut flat = tool["function"].clone();
        flat["type"] = "function".into();
        flat
    };
    tools().as_array().unwrap().iter().map(flat).collect()
}

impl Case {
    fn request(&self) -> Value {
        let mut request = json!({
            "model": "tiny",
            "input": "hello",
            "max_output_tokens": 60,
            "seed": seed(),
            "reasoning": {"effort": "none"},
            "louver": {"whitespace": "python_like"},
        });
        let more: Value = serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        for (name, value) in more.as_object().unwrap() {
            match (name.as_str(), value) {
                ("louver", Value::Object(members)) => {
                    request[name].as_object_mut().unwrap().extend(members.clone())
                }
                _ => request[name] = value.clone(),
            }
        }
        if request["tools"] == "TOOLS" {
            request["tools"] = flat_tools();
        }
        request
            .as_object_mut()
            .unwrap()
            .retain(|name, value| !value.is_null() || name == "previous_response_id");
        request
    }

    fn check_error(&self, answer: &Answer) {
        let (name, body) = (&self.name, answer.json());
        if let Some(param) = &self.param {
            assert_eq!(body["error"]["param"], **param, "{name}: {body}");
        }
        if let Some(params) = &self.params {
            let mut pointers: Vec<&str> = body["errors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|e| e["param"].as_str().unwrap())
                .collect();
            let mut expected: Vec<&str> = params.iter().map(String::as_str).collect();
            pointers.sort_unstable();
            expected.sort_unstable();
            assert_eq!(pointers, expected, "{name}: {body}");
        }
    }

    fn check(&self, request: &Value, answer: &Answer) {
        let name = &self.name;
        assert_eq!(answer.status, self.status, "{name}: {}", answer.text);
        if self.status != 200 {
            return self.check_error(answer);
        }
        let response = answer.json();
        assert_eq!(
            (&response["object"], &response["store"], &response["error"]),
            (&json!("response"), &json!(true), &Value::Null)
        );
        assert!(response["id"].as_str().unwrap().starts_with("resp_"), "{name}");
        let word = response["status"].as_str().unwrap();
        assert!(
            self.words.as_ref().is_none_or(|words| words.iter().any(|w| w == word)),
            "{name}: {response}"
        );
        let reason =
            if word == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
        assert_eq!(response["incomplete_details"], reason, "{name}");
        assert!(response["louver"]["report"]["level"].is_string(), "{name}");
        let usage = &response["usage"];
        let count =
            |member: &str| usage[member].as_u64().unwrap_or_else(|| panic!("{name}: {usage}"));
        assert_eq!(count("total_tokens"), count("input_tokens") + count("output_tokens"));
        let details = json!({"cached_tokens": 0, "cache_write_tokens": 0});
        assert_eq!(usage["input_tokens_details"], details, "{name}");
        let items = response["output"].as_array().unwrap();
        for item in items {
            let kind = item["type"].as_str().unwrap();
            assert!(
                self.items.as_ref().is_none_or(|kinds| kinds.iter().any(|k| k == kind)),
                "{name}: {item}"
            );
            self.check_item(kind, item, &request["tools"]);
        }
        assert!(
            self.items.as_ref().is_none_or(|kinds| kinds.is_empty() == items.is_empty()),
            "{name}: {response}"
        );
    }

    fn check_item(&self, kind: &str, item: &Value, tools: &Value) {
        let name = &self.name;
        match kind {
            "function_call" => {
                let of_name = |tool: &&Value| tool["name"] == item["name"];
                let tool = tools.as_array().unwrap().iter().find(of_name);
                let tool = tool.unwrap_or_else(|| panic!("{name}: {item}"));
                let arguments = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
                check_arguments(name, tool, &tool["parameters"], &arguments);
                assert_eq!(item["status"], "completed");
            }
            "custom_tool_call" => {
                let schema =
                    json!({"type": "string", "pattern": self.input.as_ref().expect("a pattern")});
                assert!(jsonschema::is_valid(&schema, &item["input"]), "{name}: {item}");
            }
            "message" => {
                let text = &item["content"][0]["text"];
                let schema =
                    json!({"type": "string", "pattern": self.text.as_deref().unwrap_or("")});
                assert!(jsonschema::is_valid(&schema, text), "{name}: {item}");
            }
            other => assert_eq!(other, "reasoning", "{name}"),
        }
    }
}

/// The typed events of a stream.
fn typed_events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let events: Vec<Value> =
        data(&answer.text).iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let names: Vec<&str> =
        answer.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names, types);
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], n, "{event}");
    }
    events
}

/// The concatenated deltas of each item.
fn joined_deltas(events: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for event in events {
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => texts.push(String::new()),
            kind if kind.ends_with(".delta") => {
                let at = event["output_index"].as_u64().unwrap() as usize;
                texts[at].push_str(event["delta"].as_str().unwrap());
            }
            _ => {}
        }
    }
    texts
}

/// The same text of complete items.
fn written(item: &Value) -> &str {
    let texts = [&item["arguments"], &item["input"], &item["content"][0]["text"]];
    texts.into_iter().find_map(Value::as_str).expect("a text")
}

/// Removes what differs between responses.
fn comparable(response: &Value) -> Value {
    let mut response = response.clone();
    for name in ["id", "created_at", "louver"] {
        response.as_object_mut().unwrap().remove(name);
    }
    for item in response["output"].as_array_mut().unwrap() {
        item.as_object_mut().unwrap().retain(|name, _| name != "id" && name != "call_id");
    }
    response
}

/// Hosted tools, which the model need not have, are left out, and the report says so.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_are_left_out_are_warned_of() {
    let server = Server::start("").await;
    let function = json!({"type": "function", "name": "f", "parameters": {"type": "object"}});
    let body = json!({"input": "hi", "max_output_tokens": 30, "tool_choice": "auto",
        "tools": [{"type": "web_search"}, function, {"type": "local_shell"}]});
    let pointers = |report: &Value| -> Vec<Value> {
        let warnings = report["warnings"].as_array().unwrap().iter();
        warnings.map(|warning| warning["pointer"].clone()).collect()
    };
    let response = server.post("/v1/responses", body.to_string()).await.json();
    let report = &response["louver"]["report"];
    assert_eq!(pointers(report), ["/tools/0", "/tools/2"], "{response}");
    assert_eq!(report["tools"], json!([{"name": "f", "enforced": true, "rule": "strict"}]));
    let checked = server.post("/v1/louver/check", body.to_string()).await.json();
    assert_eq!(pointers(&checked), ["/tools/0", "/tools/2"], "{checked}");
    assert_eq!(checked["tools"].as_array().unwrap().len(), 1);
}

/// The requests of the table.
pub(crate) fn requests() -> Vec<TableRequest> {
    let cases: Cases = toml::from_str(include_str!("responses.toml")).unwrap();
    let request = |case: Case| {
        let body = case.request();
        TableRequest {
            name: case.name.clone(),
            path: "/v1/responses",
            body: body.to_string(),
            check: Box::new(move |answer| case.check(&body, answer)),
        }
    };
    cases.case.into_iter().map(request).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_requests_of_the_table_have_their_responses() {
    let cases: Cases = toml::from_str(include_str!("responses.toml")).unwrap();
    let server = Server::start("").await;
    for case in &cases.case {
        let mut request = case.request();
        let answer = server.post("/v1/responses", request.to_string()).await;
        case.check(&request, &answer);
        if case.status != 200 {
            continue;
        }
        let whole = answer.json();
        request["stream"] = true.into();
        let answer = server.post("/v1/responses", request.to_string()).await;
        let events = typed_events(&answer);
        assert_eq!(
            (&events[0]["type"], &events[1]["type"]),
            (&json!("response.created"), &json!("response.in_progress"))
        );
        assert_eq!(
            (&events[0]["response"]["status"], &events[0]["response"]["output"]),
            (&json!("in_progress"), &json!([]))
        );
        let last = events.last().unwrap();
        assert_eq!(
            last["type"],
            format!("response.{}", whole["status"].as_str().unwrap()),
            "{}",
            case.name
        );
        assert_eq!(comparable(&last["response"]), comparable(&whole), "{}", case.name);
        let texts = joined_deltas(&events);
        let items = last["response"]["output"].as_array().unwrap();
        assert!(
            texts.len() - items.len() <= usize::from(whole["status"] == "incomplete"),
            "{}: {texts:?}",
            case.name
        );
        assert!(
            items.iter().zip(&texts).all(|(item, text)| written(item) == text),
            "{}: {texts:?}",
            case.name
        );
        let done: Vec<&Value> = events
            .iter()
            .filter(|e| e["type"] == "response.output_item.done")
            .map(|e| &e["item"])
            .collect();
        // A truncated call is closed, too, but no part of the output.
        let (complete, truncated) = done.split_at(items.len());
        assert_eq!(complete, items.iter().collect::<Vec<_>>(), "{}", case.name);
        assert_eq!(done.len(), texts.len(), "{}", case.name);
        assert!(truncated.iter().all(|item| item["status"] == "incomplete"), "{}", case.name);
    }
    println!("{} requests", cases.case.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_is_an_output_item() {
    let server = Server::start("").await;
    let mut seen = 0;
    for seed in 0..6 {
        let body = json!({"input": "hello", "max_output_tokens": 300, "seed": seed, "reasoning": {"effort": "high"},
            "louver": {"reasoning_budget": 30}});
        let response = server.post("/v1/responses", body.to_string()).await.json();
        let items = response["output"].as_array().unwrap();
        let tokens =
            response["usage"]["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap();
        let thought = items.iter().find(|item| item["type"] == "reasoning");
        assert_eq!(tokens > 0, thought.is_some(), "{response}");
        if let Some(item) = thought {
            assert_eq!((&items[0], &item["content"][0]["type"]), (item, &json!("reasoning_text")));
            seen += 1;
        }
    }
    println!("{seen} of 6 with reasoning");
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_responses_are_continued_and_deleted() {
    let server = Server::start("").await;
    let post = async |body: Value| server.post("/v1/responses", body.to_string()).await;
    let weather = json!({"tools": flat_tools(), "tool_choice": {"type": "function", "name": "weather"},
        "max_output_tokens": 400, "reasoning": {"effort": "none"}});
    let with = |more: Value| {
        let mut body = weather.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let first = post(with(json!({"input": "What is the weather?"}))).await.json();
    let (id, call) = (first["id"].as_str().unwrap(), &first["output"][0]);
    assert_eq!(server.get(&format!("/v1/responses/{id}")).await.json(), first);
    let result =
        json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}]);
    let continued =
        post(with(json!({"previous_response_id": id, "input": result, "stream": true}))).await;
    let events = typed_events(&continued);
    let second = &events.last().unwrap()["response"];
    assert_eq!(
        (&second["previous_response_id"], &second["status"]),
        (&json!(id), &json!("completed"))
    );
    // The same prompt as the whole conversation.
    let mut input = vec![json!({"role": "user", "content": "What is the weather?"})];
    input.extend(first["output"].as_array().unwrap().clone());
    input.extend(result.as_array().unwrap().clone());
    let whole = post(with(json!({"input": input.clone(), "store": false}))).await.json();
    assert_eq!(second["usage"]["input_tokens"], whole["usage"]["input_tokens"]);
    assert_eq!(whole["store"], false);
    assert_ne!(second["output"][0]["call_id"], call["call_id"], "ids are unique in a conversation");
    let path = |id: &Value| format!("/v1/responses/{}", id.as_str().unwrap());
    assert_eq!(server.get(&path(&whole["id"])).await.error().0, 404);
    let unknown = post(with(json!({"previous_response_id": whole["id"], "input": "x"}))).await;
    let (code, param) = ("previous_response_not_found", "/previous_response_id");
    assert_eq!(unknown.error(), (400, code.to_owned(), Some(param.to_owned())));
    // References to items of stored responses are the items.
    let reference = json!({"type": "item_reference", "id": call["id"]});
    let mut referring = input.clone();
    referring[1] = reference;
    let referred = post(with(json!({"input": referring}))).await.json();
    assert_eq!(referred["usage"]["input_tokens"], whole["usage"]["input_tokens"], "{referred}");
    let unknown = json!({"type": "item_reference", "id": "fc_000"});
    let unknown = post(with(json!({"input": [unknown]}))).await;
    assert_eq!(unknown.error().2.as_deref(), Some("/input/0/id"), "{}", unknown.text);
    let (called, mut next) = (&second["output"][0]["call_id"], result.clone());
    next[0]["call_id"] = called.clone();
    let third =
        post(json!({"previous_response_id": second["id"], "input": next, "max_output_tokens": 5}))
            .await;
    assert_eq!(third.status, 200, "{}", third.text);
    let delete =
        || server.send(server.client.delete(format!("{}{}", server.base, path(&first["id"]))));
    assert_eq!(delete().await.json()["deleted"], true);
    assert_eq!(delete().await.error().0, 404);
    let unsupported = server.get("/v1/responses/resp_0/input_items").await.error();
    assert_eq!((unsupported.0, &*unsupported.1), (404, "unsupported_route"));
    assert_eq!(server.get("/v1/responses").await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_do_not_share_stored_responses() {
    let server = Server::start("api_keys = [\"one-long-key\", \"other-long-key\"]").await;
    let send = async |key: &str, body: Value| {
        let request = server.client.post(format!("{}/v1/responses", server.base)).bearer_auth(key);
        server.send(request.json(&body)).await
    };
    let first = send("one-long-key", json!({"input": "x", "max_output_tokens": 5})).await.json();
    let next = json!({"previous_response_id": first["id"], "input": "y", "max_output_tokens": 5});
    assert_eq!(send("other-long-key", next.clone()).await.status, 400);
    assert_eq!(send("one-long-key", next).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_not_stored_without_room() {
    let server = Server::start("[limits.responses]\nresponses = 0").await;
    let body = json!({"input": "x", "max_output_tokens": 5});
    let made = server.post("/v1/responses", body.to_string()).await.json();
    assert_eq!(made["store"], false);
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.error().0, 404);
}

/// A stored response is whole: the query parameters that ask for something else are refused.
#[tokio::test(flavor = "multi_thread")]
async fn query_parameters_of_stored_responses_are_checked() {
    let server = Server::start("").await;
    let body = json!({"input": "x", "max_output_tokens": 5});
    let made = server.post("/v1/responses", body.to_string()).await.json();
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    for (query, param) in [
        ("stream=false&include=reasoning.encrypted_content&include_obfuscation=true", None),
        ("include%5B%5D=file_search_call.results&include[]=x", None),
        ("", None),
        ("stream=true", Some("stream")),
        ("starting_after=3", Some("starting_after")),
        ("include=message.output_text.logprobs", Some("include")),
        ("stream=false&fields=output", Some("fields")),
    ] {
        let answer = server.get(&format!("{path}?{query}")).await;
        match param {
            None => assert_eq!(answer.json(), made, "{query}"),
            Some(_) => {
                let (status, _, found) = answer.error();
                assert_eq!((status, found.as_deref()), (400, param), "{query}: {}", answer.text);
            }
        }
    }
}

/// Members that the request left out are echoed as they were applied.
#[tokio::test(flavor = "multi_thread")]
async fn the_echo_shows_what_was_applied() {
    let server = Server::start("").await;
    let function = |strict: Value| json!({"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": strict});
    let mut body = json!({"input": "x", "max_output_tokens": 5, "tools": [
        {"type": "function", "name": "e"}, {"type": "custom", "name": "c"},
        {"type": "namespace", "name": "n", "description": "d", "tools": [function(Value::Null)]}],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}, "tool_choice": "none"});
    let response = server.post("/v1/responses", body.to_string()).await.json();
    let tools = &response["tools"];
    assert_eq!(
        (&tools[0]["strict"], &tools[2]["tools"][0]["strict"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(tools[1].get("strict"), None, "{response}");
    assert_eq!(response["text"]["format"]["strict"], true, "{response}");
    body["tools"] = json!([function(json!(false))]);
    body["text"]["format"]["strict"] = false.into();
    let response = server.post("/v1/responses", body.to_string()).await.json();
    assert_eq!((&response["tools"], &response["text"]), (&body["tools"], &body["text"]));
    body["text"] = json!({"format": null});
    let response = server.post("/v1/responses", body.to_string()).await.json();
    assert_eq!(response["text"], json!({"format": {"type": "text"}}), "{response}");
}

/// Calls of namespaced tools and of the tool search have their own forms, streamed and not.
#[tokio::test(flavor = "multi_thread")]
async fn namespaces_and_tool_search() {
    let server = Server::start("").await;
    let ids = json!({"type": "object", "properties": {"id": {"enum": [1, 2]}}, "required": ["id"], "additionalProperties": false});
    let query = json!({"type": "object", "properties": {"query": {"enum": ["a", "b"]}}, "required": ["query"], "additionalProperties": false});
    let tools = json!([
        {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [
            {"type": "function", "name": "read", "parameters": ids},
            {"type": "function", "name": "remove", "defer_loading": true, "parameters": ids}]},
        {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": query}]);
    for (choice, kind) in [
        (json!({"type": "function", "name": "read"}), "function_call"),
        (json!({"type": "tool_search"}), "tool_search_call"),
    ] {
        let mut body = json!({"input": "x", "tools": tools, "tool_choice": choice, "seed": 3,
            "max_output_tokens": 200, "reasoning": {"effort": "none"}});
        let answer = server.post("/v1/responses", body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let item = answer.json()["output"][0].clone();
        assert_eq!(item["type"], kind, "{item}");
        if kind == "function_call" {
            assert_eq!((&item["name"], &item["namespace"]), (&json!("read"), &json!("crm")));
            let arguments = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
            assert!(jsonschema::is_valid(&ids, &arguments), "{item}");
        } else {
            assert_eq!(item["execution"], "client");
            assert!(jsonschema::is_valid(&query, &item["arguments"]), "{item}");
        }
        body["stream"] = true.into();
        let events = typed_events(&server.post("/v1/responses", body.to_string()).await);
        let done =
            events.iter().find(|event| event["type"] == "response.output_item.done").unwrap();
        for member in ["type", "name", "namespace", "arguments", "execution"] {
            assert_eq!(done["item"][member], item[member]);
        }
    }
    // A tool that was found can be called.
    let found = json!([
        {"role": "user", "content": "x"},
        {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {"query": "a"}},
        {"type": "tool_search_output", "call_id": "s", "execution": "client", "tools": [tools[0]]}]);
    let body = json!({"input": found, "tools": tools, "tool_choice": {"type": "function", "name": "remove"},
        "max_output_tokens": 200, "reasoning": {"effort": "none"}});
    let answer = server.post("/v1/responses", body.to_string()).await;
    assert_eq!(answer.json()["output"][0]["name"], "remove", "{}", answer.text);
}

/// The same custom tool through Chat Completions, complete and streamed.
#[tokio::test(flavor = "multi_thread")]
async fn custom_tools_work_in_chat_completions() {
    let server = Server::start("").await;
    let format =
        json!({"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-c]{2,5}\\n"}});
    let body = crate::support::ask(json!({
        "tools": [{"type": "custom", "custom": {"name": "say", "description": "Says.", "format": format}}],
        "tool_choice": {"type": "custom", "custom": {"name": "say"}}, "max_tokens": 100,
    }));
    let answer = server.chat(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let call = answer.json()["choices"][0]["message"]["tool_calls"][0].clone();
    assert_eq!((&call["type"], &call["custom"]["name"]), (&json!("custom"), &json!("say")));
    let input = call["custom"]["input"].as_str().unwrap();
    assert!(
        jsonschema::is_valid(&json!({"pattern": "^[a-c]{2,5}\n$"}), &json!(input)),
        "{input:?}"
    );
    let chunks = server.stream(&body).await;
    let deltas = chunks.iter().flat_map(|chunk| {
        chunk["choices"][0]["delta"]["tool_calls"].as_array().cloned().unwrap_or_default()
    });
    let deltas: Vec<Value> = deltas.collect();
    assert_eq!(
        (&deltas[0]["type"], &deltas[0]["custom"]),
        (&json!("custom"), &json!({"name": "say", "input": ""}))
    );
    let streamed: String =
        deltas.iter().map(|delta| delta["custom"]["input"].as_str().unwrap()).collect();
    assert_eq!(streamed, input);
}

/// A request that generates thousands of tokens.
fn long_request() -> Value {
    let schema = json!({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3000});
    json!({"input": "hello", "max_output_tokens": 7000, "seed": seed(), "reasoning": {"effort": "none"},
        "louver": {"whitespace": "python_like"},
        "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn timed_out_responses_contain_their_partial_output() {
    let server = Server::start("[limits.requests]\ntimeout_s = 1.0\nmax_tokens = 7000").await;
    let mut body = long_request();
    let answer = server.post("/v1/responses", body.to_string()).await;
    assert_eq!(answer.error().0, 408);
    body["stream"] = true.into();
    let events = typed_events(&server.post("/v1/responses", body.to_string()).await);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.failed"), &json!("failed"))
    );
    assert!(
        last["response"]["error"]["message"].is_string() && last["response"]["usage"].is_null()
    );
    assert!(joined_deltas(&events)[0].starts_with('['));
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnecting_clients_end_their_responses() {
    let server = Server::start("[limits.requests]\nmax_tokens = 7000").await;
    let mut body = long_request();
    body["stream"] = true.into();
    let request = server
        .client
        .post(format!("{}/v1/responses", server.base))
        .header("content-type", "application/json");
    let mut answer = request.body(body.to_string()).send().await.unwrap();
    let first = answer.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: response.created\n"));
    assert_eq!(server.metric("louver_running_generations").await, 1.0);
    drop(answer);
    server.wait_for("louver_running_generations", 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_traced() {
    let server = Server::start("").await;
    let body = json!({"input": "hello", "max_output_tokens": 20, "reasoning": {"effort": "none"}, "louver": {"trace": true}});
    let response = server.post("/v1/responses", body.to_string()).await.json();
    let id = response["louver"]["trace"].as_str().unwrap();
    assert_eq!(response["id"], id);
    let trace = server.get(&format!("/v1/louver/traces/{id}")).await.json();
    assert_eq!(
        (&trace["request"]["body"], &trace["request"]["route"]),
        (&body, &json!("/v1/responses"))
    );
}
