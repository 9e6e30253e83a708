//! Complete and streamed responses: their contents and their equivalence.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::cases::check_call;
use crate::support::{Server, ask, long_request, tools};

/// Assembles the chunks of one choice: message, finish reason, logprobs.
fn assemble(chunks: &[Value], choice: usize) -> Value {
    let (mut content, mut reasoning) = (None, String::new());
    let mut calls: Vec<Map<String, Value>> = Vec::new();
    let mut finish = Value::Null;
    let mut logprobs: Vec<Value> = Vec::new();
    let mut begun = false;
    for chunk in chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        let of_choice = |c: &&Value| c["index"] == choice;
        let Some(part) = chunk["choices"].as_array().unwrap().iter().find(of_choice) else {
            continue;
        };
        assert!(finish.is_null(), "something follows the finish reason: {chunk}");
        assert_eq!(
            part["delta"]["role"] == "assistant",
            !begun,
            "the role comes first, and once: {chunk}"
        );
        begun = true;
        let delta = &part["delta"];
        if let Some(text) = delta["content"].as_str() {
            content.get_or_insert_with(String::new).push_str(text);
        }
        reasoning.push_str(delta["reasoning_content"].as_str().unwrap_or(""));
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap() as usize;
            if index == calls.len() {
                assert!(
                    call["id"].is_string()
                        && call["type"] == "function"
                        && call["function"]["arguments"] == ""
                );
                let mut call = call.as_object().unwrap().clone();
                call.remove("index");
                calls.push(call);
            } else {
                assert!(index + 1 == calls.len() && call.get("id").is_none(), "{chunk}");
                let piece = call["function"]["arguments"].as_str().unwrap();
                let arguments = &mut calls[index]["function"]["arguments"];
                *arguments = format!("{}{piece}", arguments.as_str().unwrap()).into();
            }
        }
        finish = part["finish_reason"].clone();
        logprobs.extend(part["logprobs"]["content"].as_array().cloned().unwrap_or_default());
    }
    json!({"content": content, "reasoning": reasoning, "calls": calls, "finish": finish, "logprobs": logprobs})
}

/// The same parts of a complete response.
fn complete_response(answer: &Value, choice: usize) -> Value {
    let part = &answer["choices"][choice];
    let message = &part["message"];
    let or = |value: &Value, other: Value| if value.is_null() { other } else { value.clone() };
    json!({
        "content": message["content"],
        "reasoning": or(&message["reasoning_content"], "".into()),
        "calls": or(&message["tool_calls"], json!([])),
        "finish": part["finish_reason"],
        "logprobs": or(&part["logprobs"]["content"], json!([])),
    })
}

/// The response without the ids of its calls, which no other response has.
fn without_ids(response: &Value) -> Value {
    let mut response = response.clone();
    for call in response["calls"].as_array_mut().unwrap() {
        assert!(call.as_object_mut().unwrap().remove("id").is_some_and(|id| id.is_string()));
    }
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_equal_complete_responses() {
    let server = Server::start("").await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}, "b": {"type": "integer",
        "minimum": 0, "maximum": 99}}, "required": ["a", "b"], "additionalProperties": false});
    let response_format = json!({"type": "json_schema", "json_schema": {"name": "r", "strict": true, "schema": schema}});
    let requests = [
        json!({}),
        json!({"reasoning_effort": "low", "max_tokens": 120}),
        json!({"stop": "e", "logprobs": true, "top_logprobs": 2}),
        json!({"tools": tools(), "max_tokens": 200}),
        json!({"tools": tools(), "tool_choice": "required", "max_tokens": 500}),
        json!({"tools": tools(), "tool_choice": {"type": "function", "function": {"name": "weather"}}, "max_tokens": 400}),
        json!({"response_format": response_format.clone(), "max_tokens": 300, "logprobs": true}),
        json!({"n": 3, "temperature": 0.8, "top_k": 20}),
        json!({"reasoning_effort": "low", "max_tokens": 3}),
        json!({"tools": tools(), "tool_choice": "required", "n": 2, "max_tokens": 30, "louver": {"truncation": "off"}}),
    ];
    for more in requests {
        let mut body = ask(more);
        let answer = server.chat(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let answer = answer.json();
        body["stream_options"] = json!({"include_usage": true});
        let chunks = server.stream(&body).await;
        let choices = body["n"].as_u64().unwrap_or(1) as usize;
        for choice in 0..choices {
            let (streamed, mut at_once) =
                (assemble(&chunks, choice), complete_response(&answer, choice));
            if at_once["finish"] == "length" {
                // A truncated call is streamed up to its last token.
                let calls = at_once["calls"].as_array().unwrap().len();
                at_once["calls"] = streamed["calls"].clone();
                assert!(streamed["calls"].as_array().unwrap().len() - calls <= 1);
            }
            assert_eq!(without_ids(&streamed), without_ids(&at_once), "{body}");
            at_once["calls"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|_| streamed["finish"] == "tool_calls")
                .for_each(|call| {
                    check_call("stream", call);
                });
            let wants_logprobs = body["logprobs"] == true && streamed["content"] != "";
            assert_eq!(streamed["logprobs"] != json!([]), wants_logprobs, "{body}: {streamed}");
        }
        assert_eq!(chunks.last().unwrap()["usage"], answer["usage"], "{body}");
        assert_eq!(chunks.last().unwrap()["choices"], json!([]));
        assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk["usage"].is_null()));
        let last = chunks.iter().rev().find(|chunk| chunk.get("louver").is_some()).unwrap();
        assert!(last["louver"]["report"]["level"].is_string());
    }
}

/// The log probabilities of a chunk are those of its text.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_have_the_log_probabilities_of_their_text() {
    let server = Server::start("").await;
    let schema = json!({"type": "string", "pattern": "^[a-z]{40}$"});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let body = json!({"logprobs": true, "n": 4, "response_format": format, "max_tokens": 80});
    let chunks = server.stream(&ask(body)).await;
    let choices = chunks.iter().filter_map(|chunk| chunk["choices"].get(0));
    let mut texts = 0;
    for choice in choices.filter(|choice| choice["delta"]["content"].is_string()) {
        let tokens = choice["logprobs"]["content"].as_array().unwrap().iter();
        let text: String = tokens.map(|token| token["token"].as_str().unwrap()).collect();
        assert_eq!(choice["delta"]["content"], text, "{choice}");
        texts += 1;
    }
    assert!(texts > 4, "{texts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_match_their_constraints_and_report_them() {
    let server = Server::start("").await;
    for seed in 0..6 {
        let body = ask(
            json!({"tools": tools(), "tool_choice": "required", "max_tokens": 600, "seed": seed}),
        );
        let answer = server.chat(&body).await.json();
        let calls = answer["choices"][0]["message"]["tool_calls"].as_array().unwrap().clone();
        assert!(!calls.is_empty());
        calls.iter().for_each(|call| check_call("required", call));
        assert_eq!(answer["louver"]["report"]["level"], "full");
    }
    let loose = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["x"]}}}]);
    // The arguments of a required call match their schema; otherwise only those of strict tools do.
    let forced = ask(json!({"tools": loose.clone(), "tool_choice": "required", "max_tokens": 400}));
    let answer = server.chat(&forced).await.json();
    assert_eq!(answer["louver"]["report"]["level"], "full", "{answer}");
    let answer = server.chat(&ask(json!({"tools": loose, "max_tokens": 400}))).await.json();
    assert_eq!(answer["louver"]["report"]["level"], "partial", "{answer}");
    assert_eq!(answer["louver"]["report"]["relaxed"][0]["pointer"], "/tools/0/function/parameters");
    let calls =
        answer["choices"][0]["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    let is_object = |call: &Value| {
        serde_json::from_str::<Value>(call["function"]["arguments"].as_str().unwrap())
            .unwrap()
            .is_object()
    };
    assert!(calls.iter().all(is_object), "{answer}");
    assert!(server.metric("louver_calls_started_total").await >= 6.0);
    assert!(server.metric("louver_mask_seconds_count").await > 100.0);
}

/// `strict_tools` decides whose schemas are enforced, and the report names the rule of each tool.
#[tokio::test(flavor = "multi_thread")]
async fn the_report_names_the_rule_of_each_tool() {
    let tool = |name: &str, strict: bool| {
        let parameters =
            json!({"type": "object", "required": ["x"], "properties": {"x": {"const": 1}}});
        json!({"type": "function", "function": {"name": name, "strict": strict, "parameters": parameters}})
    };
    let tools = json!([tool("f", true), tool("g", false)]);
    let forced = [("f", true, "required"), ("g", true, "required")];
    let named = json!({"type": "function", "function": {"name": "g"}});
    for (setting, auto) in [
        ("", [("f", true, "strict"), ("g", false, "not_strict")]),
        ("strict_tools = \"auto\"", [("f", true, "strict"), ("g", false, "not_strict")]),
        ("strict_tools = \"auto\"", [("f", true, "strict"), ("g", false, "not_strict")]),
        ("strict_tools = \"all\"", [("f", true, "all"), ("g", true, "all")]),
        ("strict_tools = \"off\"", [("f", false, "off"), ("g", false, "off")]),
    ] {
        let server = Server::start(setting).await;
        for (choice, rules) in [
            (json!("auto"), &auto[..]),
            (json!("required"), &forced),
            (named.clone(), &forced[1..]),
        ] {
            let body = json!({"tools": tools.clone(), "tool_choice": choice, "max_tokens": 200});
            let answer = server.chat(&ask(body)).await.json();
            let report = &answer["louver"]["report"];
            let rule = |r: &(&str, bool, &str)| json!({"name": r.0, "enforced": r.1, "rule": r.2});
            assert_eq!(report["tools"], rules.iter().map(rule).collect::<Value>(), "{setting}");
            let relaxed: Vec<Value> = rules
                .iter()
                .filter(|rule| !rule.1)
                .map(|rule| {
                    let k = usize::from(rule.0 == "g");
                    format!("/tools/{k}/function/parameters").into()
                })
                .collect();
            let found = report["relaxed"].as_array().cloned().unwrap_or_default();
            let found: Vec<Value> = found.iter().map(|entry| entry["pointer"].clone()).collect();
            assert_eq!(found, relaxed, "{setting}: {answer}");
            assert_eq!(report["level"], if relaxed.is_empty() { "full" } else { "partial" });
        }
    }
}

/// A seed decides tokens and not ids: the same request gives the same calls with other ids, also in
/// a format in which the model writes them.
#[tokio::test(flavor = "multi_thread")]
async fn call_ids_are_unique_whatever_the_seed() {
    for format in ["hermes", "mistral_v3", "apriel"] {
        let model = format!("[[model]]\nmodel = \"\"\nname = \"one\"\nformat = \"{format}\"");
        let server = Server::start(&model).await;
        let (mut ids, mut answers) = (HashSet::new(), HashSet::new());
        for _ in 0..3 {
            let body = json!({"model": "one", "tools": tools(), "tool_choice": "required", "max_tokens": 400, "seed": 1});
            let answer = server.chat(&ask(body)).await.json();
            let response = complete_response(&answer, 0);
            let calls = response["calls"].as_array().unwrap();
            assert!(!calls.is_empty(), "{answer}");
            for call in calls {
                let id = call["id"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{format}: {answer}");
            }
            answers.insert(without_ids(&response).to_string());
        }
        assert_eq!(answers.len(), 1, "{format}: {answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn relaxed_schemas_are_validated() {
    let server = Server::start("policy = \"validate\"").await;
    // `uniqueItems` is not enforced for this many booleans after other elements, because a position
    // may have at most as many values as there are earlier elements.
    let list = |booleans: usize| {
        let mut items = vec![json!({"type": "string", "maxLength": 4})];
        items.resize(booleans + 1, json!({"type": "boolean"}));
        json!({"type": "array", "prefixItems": items, "minItems": booleans + 1, "maxItems": booleans + 1, "uniqueItems": true})
    };
    let object = |list: Value| json!({"type": "object", "properties": {"list": list}, "required": ["list"], "additionalProperties": false});
    let (mut valid, mut invalid) = (0, 0);
    for (seed, booleans) in (0..8).zip([2, 4].into_iter().cycle()) {
        let schema = object(list(booleans));
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
        let more = json!({"response_format": format, "max_tokens": 400, "seed": seed, "reasoning_effort": "none"});
        let answer = server.chat(&ask(more.clone())).await.json();
        let report = &answer["louver"]["report"];
        assert_eq!(
            (&report["level"], &report["completion"]),
            (&json!("partial"), &json!("complete")),
            "{answer}"
        );
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        if jsonschema::is_valid(&schema, &serde_json::from_str(text).unwrap()) {
            valid += 1;
            assert_eq!(report.get("violations"), None, "{answer}");
        } else {
            invalid += 1;
            let violation = &report["violations"][0];
            assert_eq!(
                (&violation["part"], &violation["kind"]),
                (&json!("response_format"), &json!("violated"))
            );
            assert_eq!(violation["pointer"], "/list", "{answer}");
            let chunks = server.stream(&ask(more)).await;
            let last = chunks.iter().find_map(|chunk| chunk.get("louver")).unwrap();
            assert_eq!(last["report"]["violations"], report["violations"]);
        }
    }
    assert!(valid > 0 && invalid >= 4, "{valid} {invalid}");
    let tool = json!({"type": "function", "function": {"name": "f", "strict": true, "parameters": object(list(4))}});
    let body = ask(
        json!({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 400, "seed": 1}),
    );
    let answer = server.chat(&body).await.json();
    let violation = &answer["louver"]["report"]["violations"][0];
    assert_eq!(
        (&violation["part"], &violation["index"], &violation["tool"]),
        (&json!("call"), &json!(0), &json!("f"))
    );
    assert_eq!(server.metric("louver_violations_total").await, f64::from(2 * invalid + 1));
    assert_eq!(server.metric("louver_unchecked_total").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_is_separate_from_the_response() {
    let server = Server::start("").await;
    let body = ask(
        json!({"reasoning_effort": "high", "max_tokens": 300, "louver": {"reasoning_budget": 40}}),
    );
    let mut seen = 0;
    for seed in 0..8 {
        let mut body = body.clone();
        body["seed"] = seed.into();
        let answer = server.chat(&body).await.json();
        let tokens =
            answer["usage"]["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap();
        let reasoning = answer["choices"][0]["message"]["reasoning_content"].as_str().unwrap_or("");
        assert!(tokens <= 40, "{answer}");
        assert_eq!(tokens > 0, !reasoning.is_empty(), "{answer}");
        seen += usize::from(tokens > 0);
    }
    println!("{seen} of 8 with reasoning");
}

#[tokio::test(flavor = "multi_thread")]
async fn seeds_decide_independently_of_other_requests() {
    let server = Server::start("").await;
    let body = ask(json!({"seed": 77, "temperature": 1.2, "top_p": 0.95, "max_tokens": 80}));
    let first = complete_response(&server.chat(&body).await.json(), 0);
    // Other requests of the same and of other lengths, and one whose client disconnects.
    let others: Vec<Value> =
        (0..6).map(|i| ask(json!({"max_tokens": 20 + 10 * (i % 3)}))).collect();
    let (leaving, _) = server.begin(&long_request()).await;
    let crowd = futures::future::join_all(others.iter().map(|other| server.chat(other)));
    let (crowd, beside, ()) = tokio::join!(crowd, server.chat(&body), async { drop(leaving) });
    assert!(crowd.iter().all(|answer| answer.status == 200));
    assert_eq!(complete_response(&beside.json(), 0), first);
    let unseeded = {
        let mut body = body.clone();
        body.as_object_mut().unwrap().remove("seed");
        body
    };
    let (one, two) = (server.chat(&unseeded).await.json(), server.chat(&unseeded).await.json());
    assert_ne!(complete_response(&one, 0), complete_response(&two, 0));
}

/// Many concurrent requests all get valid responses.
#[tokio::test(flavor = "multi_thread")]
async fn many_concurrent_requests_are_served() {
    let server = Server::start("[limits.requests]\nconcurrent = 8").await;
    let requests: Vec<Value> = (0..12)
        .map(|i| match i % 3 {
            0 => ask(json!({"max_tokens": 20 + i})),
            1 => ask(json!({"tools": tools(), "tool_choice": "required", "max_tokens": 500, "parallel_tool_calls": false})),
            _ => ask(json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["a", 1, null]}}}})),
        })
        .collect();
    let answers =
        futures::future::join_all(requests.iter().map(|request| server.chat(request))).await;
    for (request, answer) in requests.iter().zip(answers) {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let answer = answer.json();
        let message = &answer["choices"][0]["message"];
        if request.get("response_format").is_some() {
            let value: Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
            assert!([json!("a"), json!(1), json!(null)].contains(&value), "{answer}");
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        assert_eq!(calls.len(), usize::from(request.get("tools").is_some()), "{answer}");
        calls.iter().for_each(|call| check_call("crowd", call));
    }
    assert_eq!(server.metric("louver_running_generations").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_are_recorded_on_request() {
    let server = Server::start("").await;
    let mut body =
        ask(json!({"tools": tools(), "tool_choice": "required", "n": 2, "max_tokens": 200}));
    body["louver"]["trace"] = true.into();
    let answer = server.chat(&body).await.json();
    let id = answer["id"].as_str().unwrap();
    assert_eq!(answer["louver"]["choices"][0]["trace"], *id);
    assert_eq!(answer["louver"]["choices"][1]["trace"], format!("{id}-1"));
    let trace = server.get(&format!("/v1/louver/traces/{id}-1")).await.json();
    assert_eq!(trace["request"]["body"], body);
    assert!(trace["steps"].as_array().unwrap().len() > 5);
    let stream = server.stream(&ask(json!({"logprobs": true, "louver": {"trace": true}}))).await;
    let end = stream.iter().find(|chunk| chunk.get("louver").is_some()).unwrap();
    let trace = server
        .get(&format!("/v1/louver/traces/{}", end["louver"]["trace"].as_str().unwrap()))
        .await
        .json();
    let steps = trace["steps"].as_array().unwrap();
    assert!(
        steps.windows(2).all(|pair| pair[0]["position"].as_u64() < pair[1]["position"].as_u64()),
        "{trace}"
    );
    assert_eq!(steps[0]["position"], 0);
    assert_eq!(server.get("/v1/louver/traces/nope").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_are_bounded_while_they_grow() {
    let server = Server::start("[limits.traces]\ntrace_bytes = 20000").await;
    let more =
        json!({"max_tokens": 200, "seed": 3, "temperature": 0.5, "reasoning_effort": "none"});
    let traced_request = |trace: bool, logprobs: bool| {
        let mut body = ask(more.clone());
        (body["louver"]["trace"], body["logprobs"]) = (trace.into(), logprobs.into());
        body
    };
    let plain = server.chat(&traced_request(false, true)).await.json();
    assert!(plain["usage"]["completion_tokens"].as_u64() > Some(60), "{plain}");
    for logprobs in [false, true] {
        let body = traced_request(true, logprobs);
        let complete_response = server.chat(&body).await.json();
        let chunks = server.stream(&body).await;
        let streamed = chunks.iter().find(|chunk| chunk.get("louver").is_some()).unwrap();
        for louver in [&complete_response["louver"], &streamed["louver"]] {
            let trace = server
                .get(&format!("/v1/louver/traces/{}", louver["trace"].as_str().unwrap()))
                .await
                .json();
            let steps = trace["steps"].as_array().unwrap();
            assert_eq!(
                (&trace["cut"], &steps.last().unwrap()["cut"]),
                (&json!(true), &json!(true))
            );
            assert!(
                (2..60).contains(&steps.len()) && trace["steps"].to_string().len() < 40_000,
                "{}",
                steps.len()
            );
        }
        // Other requests are not affected.
        assert_eq!(complete_response["choices"][0]["message"], plain["choices"][0]["message"]);
        if logprobs {
            assert_eq!(
                complete_response["choices"][0]["logprobs"],
                plain["choices"][0]["logprobs"]
            );
        }
    }
    let list = server.get("/v1/louver/traces").await.json();
    assert!(list["data"].as_array().unwrap().iter().all(|entry| entry["cut"] == true), "{list}");
}
