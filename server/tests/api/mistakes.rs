//! Common mistakes of users and their error messages, from a table.

use std::path::Path;

use louver_server::ConfigFile;
use serde::Deserialize;

use crate::support::{Answer, Server, TableRequest, ask};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistakes {
    request: Vec<Request>,
    config: Vec<Configuration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    body: String,
    /// A part of the message; empty if the request is valid.
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    toml: String,
    /// The whole message: all faults, one a line.
    message: String,
}

impl Request {
    fn body(&self) -> String {
        let mut body = ask(serde_json::from_str(&self.body).unwrap());
        body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        body.to_string()
    }

    /// How the answer differs from what the table says.
    fn difference(&self, answer: &Answer) -> Option<String> {
        let Request { body, message } = self;
        let json = answer.json();
        let found = json["error"]["message"].as_str().unwrap_or_default();
        let is_expected =
            (answer.status == 200) == message.is_empty() && found.contains(message.as_str());
        let status = answer.status;
        (!is_expected).then(|| format!("{body}\n  wanted {message:?}\n  found {status} {found:?}"))
    }
}

/// The requests of the table.
pub(crate) fn requests() -> Vec<TableRequest> {
    let mistakes: Mistakes = toml::from_str(include_str!("mistakes.toml")).unwrap();
    let request = |request: Request| TableRequest {
        path: "/v1/chat/completions",
        body: request.body(),
        name: request.body.clone(),
        check: Box::new(move |answer| assert_eq!(request.difference(answer), None)),
    };
    mistakes.request.into_iter().map(request).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn common_mistakes_have_their_messages() {
    let mistakes: Mistakes = toml::from_str(include_str!("mistakes.toml")).unwrap();
    let server = Server::start("").await;
    let mut failures = Vec::new();
    for request in &mistakes.request {
        let answer = server.post("/v1/chat/completions", request.body()).await;
        failures.extend(request.difference(&answer));
    }
    for Configuration { toml, message } in &mistakes.config {
        let file = ConfigFile::new(Path::new("louver.toml"), toml);
        let checked = file.config().and_then(|config| match config.faults() {
            faults if faults.is_empty() => Ok(()),
            faults => Err(file.error(faults)),
        });
        let error = checked.err().map(|error| error.to_string());
        if error.as_ref() != Some(message) {
            failures.push(format!("{toml}\n  wanted {message:?}\n  found {error:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
