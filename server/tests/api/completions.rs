//! The route `/v1/completions`: requests from a table, streams, log probabilities.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, Server, TableRequest, data, seed};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    body: String,
    status: u16,
    param: Option<String>,
    params: Option<Vec<String>>,
    text: Option<String>,
    /// The level of enforcement, if it is not `full`.
    level: Option<String>,
    schema: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

fn complete(more: &Value) -> Value {
    let mut request = json!({"model": "tiny", "prompt": "Once", "max_tokens": 24, "seed": seed()});
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    if request["prompt"] == "LONG" {
        request["prompt"] = "word ".repeat(200_000).into();
    }
    request
}

/// The chunks of a stream without `[DONE]`, which must be present.
async fn chunks(server: &Server, mut request: Value) -> Vec<Value> {
    request["stream"] = true.into();
    let answer = server.post("/v1/completions", request.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut chunks = data(&answer.text);
    assert_eq!(chunks.pop(), Some("[DONE]"));
    chunks.into_iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect()
}

fn joined(chunks: &[Value], choice: u64) -> String {
    let choices = chunks.iter().filter_map(|chunk| chunk["choices"].get(0));
    let choices = choices.filter(|of| of["index"] == choice);
    choices.map(|choice| choice["text"].as_str().unwrap()).collect()
}

impl Case {
    fn request(&self) -> Value {
        let mut request = complete(&serde_json::from_str(&self.body).unwrap());
        request.as_object_mut().unwrap().retain(|name, value| name != "prompt" || !value.is_null());
        request
    }

    fn check(&self, answer: &Answer) {
        let name = &self.name;
        assert_eq!(answer.status, self.status, "{name}: {}", answer.text);
        let body = answer.json();
        if let Some(param) = &self.param {
            assert_eq!(body["error"]["param"], **param, "{name}: {body}");
        }
        if let Some(params) = &self.params {
            let faults = body["errors"].as_array().unwrap().iter();
            let mut found: Vec<&str> = faults.map(|f| f["param"].as_str().unwrap()).collect();
            let mut expected: Vec<&str> = params.iter().map(String::as_str).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name}: {body}");
        }
        if self.status == 200 {
            self.check_completion(&body);
        }
    }

    fn check_completion(&self, body: &Value) {
        let (name, choice) = (&self.name, &body["choices"][0]);
        assert_eq!((&body["object"], &choice["index"]), (&json!("text_completion"), &json!(0)));
        assert!(body["id"].as_str().unwrap().starts_with("cmpl-"), "{name}");
        let level = self.level.as_deref().unwrap_or("full");
        assert_eq!(body["louver"]["report"]["level"], level, "{name}: {body}");
        let text = choice["text"].as_str().unwrap();
        if let Some(pattern) = &self.text {
            let schema = json!({"type": "string", "pattern": pattern});
            assert!(jsonschema::is_valid(&schema, &choice["text"]), "{name}: {text:?}");
            assert_eq!(choice["finish_reason"], "stop", "{name}");
        }
        if let Some(schema) = &self.schema {
            let schema: Value = serde_json::from_str(schema).unwrap();
            let value: Value = serde_json::from_str(text)
                .unwrap_or_else(|error| panic!("{name}: {error} in {text:?}"));
            assert!(jsonschema::is_valid(&schema, &value), "{name}: {text:?}");
        }
    }
}

/// The requests of the table.
pub(crate) fn requests() -> Vec<TableRequest> {
    let cases: Cases = toml::from_str(include_str!("completions.toml")).unwrap();
    let request = |case: Case| TableRequest {
        name: case.name.clone(),
        path: "/v1/completions",
        body: case.request().to_string(),
        check: Box::new(move |answer| case.check(answer)),
    };
    cases.case.into_iter().map(request).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_from_the_table() {
    let server = Server::start("").await;
    for request in requests() {
        let answer = server.post(request.path, request.body.clone()).await;
        (request.check)(&answer);
        if answer.status == 200 {
            let streamed = chunks(&server, serde_json::from_str(&request.body).unwrap()).await;
            assert_eq!(
                joined(&streamed, 0),
                answer.json()["choices"][0]["text"],
                "{}",
                request.name
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_length_is_sixteen_tokens() {
    let server = Server::start("").await;
    let mut request = complete(&json!({"structured_outputs": {"regex": "[a-z]{400}"}}));
    request.as_object_mut().unwrap().remove("max_tokens");
    let body = server.post("/v1/completions", request.to_string()).await.json();
    assert_eq!(body["choices"][0]["finish_reason"], "length", "{body}");
    assert!(body["usage"]["completion_tokens"].as_u64().unwrap() <= 16, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn choices_log_probabilities_and_usage() {
    let server = Server::start("").await;
    let request = complete(&json!({"n": 2, "logprobs": 2, "stop": ["zzz"]}));
    let body = server.post("/v1/completions", request.to_string()).await.json();
    let choices = body["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 2, "{body}");
    let mut streaming = request.clone();
    streaming["stream_options"] = json!({"include_usage": true});
    let streamed = chunks(&server, streaming).await;
    assert_eq!(streamed.last().unwrap()["usage"], body["usage"]);
    for (k, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], k);
        assert_eq!(joined(&streamed, k as u64), choice["text"].as_str().unwrap());
        let logprobs = &choice["logprobs"];
        let len = |name: &str| logprobs[name].as_array().unwrap().len();
        assert!(len("tokens") > 0, "{choice}");
        for name in ["token_logprobs", "top_logprobs", "text_offset"] {
            assert_eq!(len(name), len("tokens"), "{name}");
        }
        assert!(logprobs["top_logprobs"][0].as_object().unwrap().len() <= 2);
        assert!(logprobs["token_logprobs"][0].as_f64().unwrap() <= 0.0);
        // The streamed log probabilities are the same, in pieces.
        let of_choice = |chunk: &Value| {
            let choice = chunk["choices"].get(0).filter(|of| of["index"] == k)?;
            choice["logprobs"]["text_offset"].as_array().cloned()
        };
        let offsets: Vec<Value> = streamed.iter().filter_map(of_choice).flatten().collect();
        assert_eq!(Value::from(offsets), logprobs["text_offset"]);
    }
}

/// The bytes of a token as it is shown.
fn shown_bytes(token: &str) -> Vec<u8> {
    let hexadecimal = token.strip_prefix("\\x").into_iter().flat_map(|rest| rest.split("\\x"));
    let bytes: Option<Vec<u8>> =
        hexadecimal.map(|digits| u8::from_str_radix(digits, 16).ok()).collect();
    bytes.filter(|bytes| !bytes.is_empty()).unwrap_or_else(|| token.as_bytes().to_vec())
}

/// Log probabilities are those of the tokens that the text consists of, at their places in it.
#[tokio::test(flavor = "multi_thread")]
async fn log_probabilities_are_those_of_the_text() {
    let server = Server::start("").await;
    for seed in 0..12 {
        for more in [json!({"max_tokens": 3}), json!({"max_tokens": 20}), json!({"stop": ["e"]})] {
            let mut request = complete(&json!({"prompt": "x", "logprobs": 1, "seed": seed}));
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let body = server.post("/v1/completions", request.to_string()).await.json();
            let choice = &body["choices"][0];
            let text = choice["text"].as_str().unwrap();
            let tokens = choice["logprobs"]["tokens"].as_array().unwrap();
            let generated = body["usage"]["completion_tokens"].as_u64().unwrap() as usize;
            assert!(tokens.len() <= generated, "{body}");
            let mut bytes = Vec::new();
            for (token, offset) in
                tokens.iter().zip(choice["logprobs"]["text_offset"].as_array().unwrap())
            {
                // Without the character in which the token begins.
                let before = String::from_utf8_lossy(&bytes);
                let is_split = usize::from(!text.starts_with(&*before));
                assert_eq!(*offset, before.chars().count() - is_split, "{body}");
                bytes.extend(shown_bytes(token.as_str().unwrap()));
            }
            // A stop string may end the text within a token.
            let all = String::from_utf8_lossy(&bytes);
            assert!(
                if more["stop"].is_null() { all == text } else { all.starts_with(text) },
                "{body}"
            );
            assert!(tokens.len() == generated || choice["finish_reason"] == "stop", "{body}");
            let streamed = chunks(&server, request).await;
            let names = streamed.iter().filter_map(|chunk| chunk["choices"].get(0));
            let names = names.filter_map(|choice| choice["logprobs"]["tokens"].as_array());
            let names: Vec<Value> = names.flatten().cloned().collect();
            assert_eq!(names, *tokens, "{body}");
        }
    }
}

/// Each prompt has the choices that it has alone, in the order of the prompts.
#[tokio::test(flavor = "multi_thread")]
async fn several_prompts_have_choices_in_order() {
    for batching in ["off", "on"] {
        let model = format!("[[model]]\nmodel = \"\"\nname = \"one\"\nbatching = \"{batching}\"");
        let server = Server::start(&model).await;
        let prompts = [json!("Once"), json!([5, 6, 7]), json!("Twice upon")];
        let request = |prompt: Value| {
            let more = json!({"model": "one", "prompt": prompt, "n": 2, "seed": 5, "logprobs": 1});
            complete(&more)
        };
        let all = request(json!(prompts));
        let body = server.post("/v1/completions", all.to_string()).await.json();
        let choices = body["choices"].as_array().unwrap();
        assert_eq!(choices.len(), 6, "{body}");
        assert_eq!(body["louver"]["choices"].as_array().unwrap().len(), 6);
        let mut tokens = 0;
        for (k, prompt) in prompts.iter().enumerate() {
            let alone = server.post("/v1/completions", request(prompt.clone()).to_string()).await;
            let alone = alone.json();
            tokens += alone["usage"]["prompt_tokens"].as_u64().unwrap();
            for (i, choice) in choices[2 * k..2 * k + 2].iter().enumerate() {
                assert_eq!(choice["index"], 2 * k + i);
                // On the CPU, the host mixes up the sequences of a batch.
                let is_equal = choice["text"] == alone["choices"][i]["text"];
                assert!(is_equal || batching == "on", "{prompt}: {choice}");
            }
        }
        assert_eq!(body["usage"]["prompt_tokens"], tokens);
        let mut streaming = all.clone();
        streaming["stream_options"] = json!({"include_usage": true});
        let streamed = chunks(&server, streaming).await;
        assert_eq!(streamed.last().unwrap()["usage"]["prompt_tokens"], tokens);
        for (k, choice) in choices.iter().enumerate() {
            let is_equal = joined(&streamed, k as u64) == choice["text"].as_str().unwrap();
            assert!(is_equal || batching == "on", "{choice}");
        }
        let checked = server.post("/v1/louver/check", all.to_string()).await.json();
        assert_eq!(checked["prompt_tokens"], tokens, "{checked}");
    }
}

/// The model's wire format does not apply: markers of calls are text here.
#[tokio::test(flavor = "multi_thread")]
async fn markers_of_calls_are_text() {
    let server = Server::start("").await;
    let text = "<tool_call>{\"name\": \"x\"}</tool_call>";
    let request = complete(&json!({"structured_outputs": {"choice": [text]}, "max_tokens": 60}));
    let body = server.post("/v1/completions", request.to_string()).await.json();
    assert_eq!(body["choices"][0]["text"], text, "{body}");
    let checked = server.post("/v1/louver/check", request.to_string()).await.json();
    assert_eq!(checked["ok"], true, "{checked}");
    assert!(checked["prompt_tokens"].as_u64().unwrap() > 0);
}
