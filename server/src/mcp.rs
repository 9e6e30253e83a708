//! MCP servers of the configuration. The server connects to them when it starts, offers their tools
//! to requests that name them, with their schemas enforced, and runs the calls.

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::http::{HeaderName, HeaderValue, Uri};
use louver_mistralrs::{McpError, McpTools};
use mistralrs::{McpClientConfig, McpServerConfig, McpServerSource};
use serde::Deserialize;
use serde_json::Value;

use crate::limits::Seconds;

/// How to reach an MCP server: a command that speaks over its standard input and output, or a URL.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// The name in requests: `server_label`.
    pub label: String,
    /// The program to start.
    pub command: Option<PathBuf>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables added to its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The address of a running server, over HTTP.
    pub url: Option<String>,
    /// Headers of requests to it.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Time limit of one call.
    #[serde(default = "default_timeout")]
    pub timeout_s: Seconds,
}

fn default_timeout() -> Seconds {
    Seconds(std::time::Duration::from_secs(30))
}

impl McpServer {
    /// What is wrong with the description, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let is_word = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        if !is_word(&self.label) {
            return Some(format!("{:?} is no label: use letters, digits, `_` and `-`", self.label));
        }
        if let Some(url) = &self.url
            && !url.parse::<Uri>().is_ok_and(|url| {
                matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some()
            })
        {
            return Some(format!(
                "{url:?} is no URL of HTTP, such as \"http://127.0.0.1:9000/mcp\""
            ));
        }
        let is_header = |name: &str, value: &str| {
            name.parse::<HeaderName>().is_ok() && value.parse::<HeaderValue>().is_ok()
        };
        if let Some((name, _)) = self.headers.iter().find(|(name, value)| !is_header(name, value)) {
            return Some(format!(
                "the header {name:?} has a name or value that HTTP does not allow"
            ));
        }
        match (&self.command, &self.url) {
            (Some(_), None) if self.headers.is_empty() => None,
            (None, Some(_)) if self.args.is_empty() && self.env.is_empty() => None,
            _ => Some(format!(
                "{:?} must have a command (with args and env) or a url (with headers)",
                self.label
            )),
        }
    }

    /// What is wrong with the command, if it is no program of this machine.
    pub(crate) fn command_fault(&self) -> Option<String> {
        let command = self.command.as_ref()?;
        // On Windows the name of a program may lack its extension.
        let is_found = if cfg!(windows) {
            true
        } else if command.components().count() > 1 {
            command.is_file()
        } else {
            let paths = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&paths).any(|folder| folder.join(command).is_file())
        };
        (!is_found).then(|| format!("there is no program {:?}", command.display().to_string()))
    }

    async fn connect(&self) -> Result<McpTools, McpError> {
        let text = |map: &BTreeMap<String, String>| {
            Some(map.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        let seconds = self.timeout_s.rounded_up();
        let source = match (&self.command, &self.url) {
            (Some(command), _) => McpServerSource::Process {
                command: command.display().to_string(),
                args: self.args.clone(),
                work_dir: None,
                env: text(&self.env),
            },
            (None, url) => McpServerSource::Http {
                url: url.clone().unwrap_or_default(),
                timeout_secs: Some(seconds),
                headers: text(&self.headers),
            },
        };
        let server = McpServerConfig { name: self.label.clone(), source, ..Default::default() };
        McpTools::connect(McpClientConfig {
            servers: vec![server],
            tool_timeout_secs: Some(seconds),
            max_concurrent_calls: Some(MAX_CONCURRENT_CALLS),
            ..Default::default()
        })
        .await
    }
}

/// Maximum number of calls that run on one server at a time.
const MAX_CONCURRENT_CALLS: usize = 8;

/// The connected servers, by label.
#[derive(Debug, Default)]
pub(crate) struct McpServers(BTreeMap<String, McpTools>);

impl McpServers {
    /// Connects to all servers. The error has the label of the server that cannot be used.
    pub(crate) async fn connect(servers: &[McpServer]) -> Result<McpServers, (String, McpError)> {
        let mut connected = BTreeMap::new();
        for server in servers {
            let tools = server.connect().await.map_err(|error| (server.label.clone(), error))?;
            tracing::info!(label = server.label, tools = tools.names().len(), "MCP server");
            connected.insert(server.label.clone(), tools);
        }
        Ok(McpServers(connected))
    }

    /// The tools of a server.
    pub(crate) fn get(&self, label: &str) -> Option<&McpTools> {
        self.0.get(label)
    }

    /// The functions of a server in OpenAI's format, without their wrappers.
    pub(crate) fn functions(&self, label: &str) -> Vec<Value> {
        let definitions = self.get(label).map(McpTools::definitions).unwrap_or_default();
        let definitions = definitions.as_array().cloned().unwrap_or_default();
        definitions.into_iter().map(|mut definition| definition["function"].take()).collect()
    }

    /// The labels of all servers.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_command_or_a_url() {
        for (toml, is_right) in [
            ("label = 'a'\ncommand = '/bin/x'\nargs = ['-v']\nenv = { A = 'b' }", true),
            ("label = 'a-b_1'\nurl = 'http://127.0.0.1:1/mcp'\nheaders = { A = 'b' }", true),
            ("label = 'a'", false),
            ("label = 'a'\ncommand = 'x'\nurl = 'http://127.0.0.1:1'", false),
            ("label = 'a'\nurl = 'http://127.0.0.1:1'\nargs = ['x']", false),
            ("label = 'a'\ncommand = 'x'\nheaders = { A = 'b' }", false),
            ("label = 'a b'\ncommand = 'x'", false),
            ("label = ''\ncommand = 'x'", false),
            ("label = 'a'\nurl = 'foo'", false),
            ("label = 'a'\nurl = '/mcp'", false),
            ("label = 'a'\nurl = 'ftp://x'", false),
            ("label = 'a'\nurl = 'http://x'\nheaders = { 'A B' = 'b' }", false),
            ("label = 'a'\nurl = 'http://x'\nheaders = { A = \"b\\n\" }", false),
        ] {
            let server: McpServer = toml::from_str(toml).unwrap();
            assert_eq!(server.fault().is_none(), is_right, "{toml}");
        }
        assert!(toml::from_str::<McpServer>("label = 'a'\nurls = 'x'").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn commands_are_programs() {
        for (command, is_right) in
            [("sh", true), ("/bin/sh", true), ("nosuchcmd", false), ("/nope/sh", false)]
        {
            let server = format!("label = 'a'\ncommand = '{command}'");
            let server: McpServer = toml::from_str(&server).unwrap();
            assert_eq!(server.command_fault().is_none(), is_right, "{command}");
        }
    }
}
