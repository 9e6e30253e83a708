//! Structured-output parameters of other servers: each is enforced or rejected.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, Server, TableRequest, ask};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    route: Route,
    body: String,
    /// The allowed responses; `{` means a JSON object.
    content: Option<Vec<String>>,
    param: Option<String>,
    code: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Route {
    #[default]
    Chat,
    Responses,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

impl Case {
    fn request(&self) -> Value {
        let members = serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let mut request = match self.route {
            Route::Chat => ask(json!({"reasoning_effort": "none"})),
            Route::Responses => {
                json!({"model": "tiny", "input": "hi", "reasoning": {"effort": "none"}})
            }
        };
        for (name, value) in Value::as_object(&members).unwrap() {
            request[name] = value.clone();
        }
        request
    }

    fn check(&self, answer: &Answer) {
        let (name, body) = (&self.name, answer.json());
        let Some(texts) = &self.content else {
            assert_eq!(answer.status, 400, "{name}: {body}");
            assert_eq!(body["error"]["param"].as_str(), self.param.as_deref(), "{name}: {body}");
            assert!(
                self.code.as_ref().is_none_or(|code| body["error"]["code"] == **code),
                "{name}: {body}"
            );
            return;
        };
        assert_eq!(answer.status, 200, "{name}: {body}");
        assert_eq!(body["louver"]["report"]["level"], "full", "{name}: {body}");
        let content = match self.route {
            Route::Chat => &body["choices"][0]["message"]["content"],
            Route::Responses => &body["output"][0]["content"][0]["text"],
        };
        let content = content.as_str().unwrap_or_else(|| panic!("{name}: {body}"));
        let is_object =
            || serde_json::from_str::<Value>(content).is_ok_and(|value| value.is_object());
        let is_allowed =
            texts.iter().any(|text| text == content) || (texts == &["{"] && is_object());
        assert!(is_allowed, "{name}: {content:?}");
    }
}

/// The requests of the table.
pub(crate) fn requests() -> Vec<TableRequest> {
    let cases: Cases = toml::from_str(include_str!("structure.toml")).unwrap();
    let request = |case: Case| TableRequest {
        name: case.name.clone(),
        path: match case.route {
            Route::Chat => "/v1/chat/completions",
            Route::Responses => "/v1/responses",
        },
        body: case.request().to_string(),
        check: Box::new(move |answer| case.check(answer)),
    };
    cases.case.into_iter().map(request).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn structure_parameters_are_enforced_or_rejected() {
    let server = Server::start("").await;
    let requests = requests();
    for request in &requests {
        (request.check)(&server.post(request.path, request.body.clone()).await);
    }
    println!("{} spellings", requests.len());
}

/// A format that is refused has one error.
#[tokio::test(flavor = "multi_thread")]
async fn a_format_without_its_value_has_one_error() {
    let server = Server::start("").await;
    for kind in ["regex", "json", "gbnf", "choice"] {
        let answer = server.chat(&ask(json!({"response_format": {"type": kind}}))).await;
        let errors = answer.json()["errors"].clone();
        let params: Vec<&Value> =
            errors.as_array().into_iter().flatten().map(|error| &error["param"]).collect();
        assert!(params.len() <= 1, "{errors}");
        assert_eq!(answer.error().2.as_deref(), Some("/response_format/value"), "{kind}");
    }
}

/// Members whose names resemble one that asks for structure are refused, unless their value asks
/// for nothing: then a warning is in the report.
#[tokio::test(flavor = "multi_thread")]
async fn misspelled_members_are_refused() {
    let server = Server::start("").await;
    let messages = json!([{"role": "user", "content": "hi"}]);
    let bodies = [
        ("chat/completions", "response_fromat", ask(json!({"response_fromat": {"type": "text"}}))),
        ("responses", "tolls", json!({"input": "hi", "max_output_tokens": 5, "tolls": [{}]})),
        ("completions", "grammer", json!({"prompt": "hi", "max_tokens": 5, "grammer": "x"})),
        ("messages", "grammer", json!({"max_tokens": 5, "messages": messages, "grammer": "x"})),
    ];
    for (route, name, mut body) in bodies {
        let refused = server.post(&format!("/v1/{route}"), body.to_string()).await;
        assert_eq!(refused.status, 400, "{route}: {}", refused.text);
        assert!(refused.text.contains("is `"), "{route}: {}", refused.text);
        body[name] = json!(false);
        let taken = server.post(&format!("/v1/{route}"), body.to_string()).await;
        assert_eq!(taken.status, 200, "{route}: {}", taken.text);
        let taken = taken.json();
        let warning = &taken["louver"]["report"]["warnings"][0];
        assert_eq!(warning["pointer"], format!("/{name}"), "{route}: {taken}");
    }
}

/// Reports of relaxed keywords and warnings have pointers into the request as sent.
#[tokio::test(flavor = "multi_thread")]
async fn reports_have_pointers_into_the_request() {
    let server = Server::start("policy = \"best_effort\"").await;
    let schema = json!({"properties": {
        "a": {"type": "string", "pattern": "^(x|y)\\1$"}, "b": {"format": "datetime"}}, "required": ["a"]});
    let chat = ask(json!({"guided_json": schema, "reasoning_effort": "none", "max_tokens": 30}));
    let responses = json!({"input": "hi", "max_output_tokens": 30,
        "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}});
    for (route, body, place) in [
        ("/v1/chat/completions", chat, "/guided_json/"),
        ("/v1/responses", responses, "/text/format/schema/"),
    ] {
        let answer = server.post(route, body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let answer = answer.json();
        for kind in ["relaxed", "warnings"] {
            let list = answer["louver"]["report"][kind].as_array();
            let list = list.unwrap_or_else(|| panic!("{kind}: {answer}"));
            let pointers: Vec<&str> =
                list.iter().map(|entry| entry["pointer"].as_str().unwrap()).collect();
            assert!(
                !pointers.is_empty() && pointers.iter().all(|pointer| pointer.starts_with(place)),
                "{route}: {kind}: {pointers:?}"
            );
        }
    }
}
