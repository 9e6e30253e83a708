//! Common mistakes of users and their error messages, from a table.

use std::path::Path;

use louver_server::ConfigFile;
use serde::Deserialize;

use crate::support::{Server, ask};

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

#[tokio::test(flavor = "multi_thread")]
async fn common_mistakes_have_their_messages() {
    let mistakes: Mistakes = toml::from_str(include_str!("mistakes.toml")).unwrap();
    let server = Server::start("").await;
    let mut failures = Vec::new();
    for Request { body, message } in &mistakes.request {
        let mut request = ask(serde_json::from_str(body).unwrap());
        request.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let answer = server.chat(&request).await;
        let message_found =
            answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        if (answer.status == 200) != message.is_empty() || !message_found.contains(message.as_str())
        {
            failures.push(format!(
                "{body}\n  wanted {message:?}\n  found {} {message_found:?}",
                answer.status
            ));
        }
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
