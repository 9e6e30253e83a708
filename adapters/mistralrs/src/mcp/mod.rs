//! Tools of MCP servers (Model Context Protocol): their schemas for plans, and their calls. The
//! configuration is mistral.rs's. Its client is not used, as of 0.8.1: over standard input and
//! output it takes the next line as the reply, whichever request that is of, and it does not read
//! `isError`.

mod connection;
mod http;
mod process;
mod rpc;

use std::fmt;
use std::time::Duration;

use louver::Limits;
use louver::spec::json::Json;
use louver_formats::{Call, exact_value};
use mistralrs::{McpClientConfig, McpServerConfig};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use self::connection::McpConnection;
use self::rpc::McpFailure;

/// Time limit of a call whose configuration has none.
const DEFAULT_TIMEOUT_S: u64 = 30;

/// Number of calls that run at a time, if the configuration has none.
const DEFAULT_CONCURRENT_CALLS: usize = 10;

/// Why an MCP server or a call of its tools failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// A server cannot be reached, or does not list its tools.
    #[error("the MCP servers cannot be used: {0}")]
    Connect(String),
    /// No server has the tool.
    #[error("no MCP server has the tool {0:?}")]
    UnknownTool(String),
    /// The arguments are no JSON object: the call was cut off.
    #[error("the arguments of {tool:?} are no JSON object: {message}")]
    Arguments {
        /// The tool.
        tool: String,
        /// The message of the parser.
        message: String,
    },
    /// The tool ran and failed: a result with `isError`.
    #[error("the tool {tool:?} failed: {message}")]
    Tool {
        /// The tool.
        tool: String,
        /// The text of the result, which is meant for the model.
        message: String,
    },
    /// The server refused the call, with an error of the protocol.
    #[error("the call of {tool:?} was refused: {message} (code {code})")]
    Refused {
        /// The tool.
        tool: String,
        /// The code of JSON-RPC.
        code: i64,
        /// The server's message.
        message: String,
    },
    /// The server answered with an HTTP status that is an error.
    #[error("the call of {tool:?} failed with the HTTP status {status}")]
    Status {
        /// The tool.
        tool: String,
        /// The status.
        status: u16,
    },
    /// The server did not reply in time, or the connection is lost: then the next call connects
    /// again. The tool may have run.
    #[error("the call of {tool:?} has no result: {message}")]
    Call {
        /// The tool.
        tool: String,
        /// What happened.
        message: String,
    },
}

/// The tools of connected MCP servers. Servers with a command are processes of this one: what they
/// write to standard error appears on its own. A connection that was lost is made again by the next
/// call. A process that answers neither a call in time nor a ping is ended, and so replaced.
///
/// ```no_run
/// # async fn example(louver: louver_mistralrs::Louver) -> Result<(), Box<dyn std::error::Error>> {
/// use louver_mistralrs::McpTools;
/// use mistralrs::{McpClientConfig, McpServerConfig, McpServerSource};
///
/// let source = McpServerSource::Process {
///     command: "weather-server".to_owned(),
///     args: Vec::new(),
///     work_dir: None,
///     env: None,
/// };
/// let server = McpServerConfig { name: "weather".to_owned(), source, ..Default::default() };
/// let config = McpClientConfig { servers: vec![server], ..Default::default() };
/// let mcp = McpTools::connect(config).await?;
/// // Every call matches the schema that the server gave.
/// let plan = louver.tools(mcp.definitions()).build()?;
/// # let calls: Vec<louver_mistralrs::Call> = Vec::new();
/// for call in &calls {
///     println!("{}", mcp.call(call).await?);
/// }
/// # drop(plan);
/// # Ok(())
/// # }
/// ```
pub struct McpTools {
    servers: Vec<McpConnection>,
    /// By offered name: the order of prompts must not change.
    tools: Vec<McpTool>,
    calls: Semaphore,
}

/// A tool of a server.
struct McpTool {
    /// The name that the model sees.
    name: String,
    /// The name on the server.
    server_name: String,
    /// The index of the server.
    server: usize,
    /// The tool in OpenAI's format.
    definition: Value,
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTools").field("tools", &self.names()).finish_non_exhaustive()
    }
}

impl McpTools {
    /// Connects to the servers and lists their tools. A tool is offered under its own name, or
    /// after the server's prefix if the configuration has one. Errors: a server that is not ready
    /// within 60 seconds, two tools with one name, and a schema with numbers that have more digits
    /// than an `f64` and are no 64-bit integer.
    pub async fn connect(config: McpClientConfig) -> Result<McpTools, McpError> {
        let seconds = config.tool_timeout_secs.unwrap_or(DEFAULT_TIMEOUT_S);
        let calls = config.max_concurrent_calls.unwrap_or(DEFAULT_CONCURRENT_CALLS);
        let calls = Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS));
        let (mut servers, mut tools) = (Vec::new(), Vec::<McpTool>::new());
        for server in config.servers.into_iter().filter(|server| server.enabled) {
            let McpServerConfig { name, source, tool_prefix, bearer_token, .. } = server;
            let fault = |message: String| McpError::Connect(format!("{name}: {message}"));
            let timeout = Duration::from_secs(seconds);
            let connection = McpConnection::new(&name, source, bearer_token, timeout);
            let listed = connection.tools().await.map_err(|error| fault(error.to_string()))?;
            // The host has random prefixes by default; names in prompts should be stable.
            let prefix = tool_prefix.filter(|prefix| !is_random(prefix));
            for tool in &listed {
                tools.push(read_tool(tool, prefix.as_deref(), servers.len()).map_err(fault)?);
            }
            servers.push(connection);
        }
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        if let Some(pair) = tools.windows(2).find(|pair| pair[0].name == pair[1].name) {
            let message = format!("two tools are called {:?}", pair[0].name);
            return Err(McpError::Connect(message));
        }
        Ok(McpTools { servers, tools, calls })
    }

    /// The tools in OpenAI's format, for [`Louver::tools`](crate::Louver::tools): with the schemas
    /// of the servers, enforced.
    pub fn definitions(&self) -> Value {
        self.tools.iter().map(|tool| tool.definition.clone()).collect()
    }

    /// The names of the tools, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Runs a call on its server, within the configured time (30 seconds by default), which begins
    /// when fewer calls run than the configuration allows and includes connecting again. The result
    /// is the server's text, for a tool message. May be dropped: a late reply is discarded.
    pub async fn call(&self, call: &Call) -> Result<String, McpError> {
        self.call_tool(&call.name, &call.arguments).await
    }

    /// As [`McpTools::call`], by the tool's offered name and with the arguments as JSON. The server
    /// gets their numbers as they are written.
    pub async fn call_tool(&self, name: &str, arguments: &str) -> Result<String, McpError> {
        let Some(called) = self.tools.iter().find(|tool| tool.name == name) else {
            return Err(McpError::UnknownTool(name.to_owned()));
        };
        let tool = name.to_owned();
        let limits = Limits::default().with_source_bytes(usize::MAX);
        let arguments = match Json::parse(arguments, &limits) {
            Ok(arguments @ Json::Object(_)) => arguments.to_string(),
            Ok(_) => {
                let message = "another value of JSON".to_owned();
                return Err(McpError::Arguments { tool, message });
            }
            Err(error) => return Err(McpError::Arguments { tool, message: error.to_string() }),
        };
        // Never closed.
        let _permit = self.calls.acquire().await;
        let result = self.servers[called.server].call(&called.server_name, &arguments).await;
        let result = result.map_err(|failure| match failure {
            McpFailure::Rejected { code, message } => {
                McpError::Refused { tool: tool.clone(), code, message }
            }
            McpFailure::Status(status) => McpError::Status { tool: tool.clone(), status },
            other => McpError::Call { tool: tool.clone(), message: other.to_string() },
        })?;
        match result.get("isError") {
            Some(Json::Bool(true)) => Err(McpError::Tool { tool, message: result_text(&result) }),
            _ => Ok(result_text(&result)),
        }
    }
}

/// Whether a prefix is one that the host made up.
fn is_random(prefix: &str) -> bool {
    let digits = prefix.strip_prefix("mcp_").unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Reads the description of a tool. The error says what is wrong with it.
fn read_tool(tool: &Json, prefix: Option<&str>, server: usize) -> Result<McpTool, String> {
    let server_name =
        tool.get("name").and_then(Json::as_str).ok_or("a tool has no name")?.to_owned();
    let schema = match tool.get("inputSchema") {
        Some(schema) => exact_value(schema).map_err(|number| {
            format!("the schema of {server_name:?} has the number {number}, which would be rounded")
        })?,
        None => json!({}),
    };
    let name = match prefix {
        Some(prefix) => format!("{prefix}_{server_name}"),
        None => server_name.clone(),
    };
    let mut function = json!({"name": name, "parameters": schema, "strict": true});
    if let Some(description) = tool.get("description").and_then(Json::as_str) {
        function["description"] = description.into();
    }
    let definition = json!({"type": "function", "function": function});
    Ok(McpTool { name, server_name, server, definition })
}

/// The text of a result: its texts, and what else there is by kind. Without any, the structured
/// content.
fn result_text(result: &Json) -> String {
    let content = result.get("content").and_then(Json::as_array).unwrap_or_default();
    let structured = result.get_non_null("structuredContent").filter(|_| content.is_empty());
    let parts: Vec<String> = content.iter().map(part_text).collect();
    structured.map_or_else(|| parts.join("\n"), Json::to_string)
}

fn part_text(part: &Json) -> String {
    let text = |pointer: &str| part.pointer(pointer).and_then(Json::as_str);
    let kind = text("/type").unwrap_or("content");
    let embedded = text("/text").or_else(|| text("/resource/text"));
    let name = ["/mimeType", "/uri", "/resource/uri"].iter().find_map(|pointer| text(pointer));
    match (embedded, name) {
        (Some(text), _) => text.to_owned(),
        (None, Some(name)) => format!("[{kind}: {name}]"),
        (None, None) => format!("[{kind}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: Value) -> Json {
        Json::from(value)
    }

    #[test]
    fn prefixes_of_the_host_are_left_out() {
        let config = McpServerConfig::default();
        assert!(config.tool_prefix.is_some_and(|prefix| is_random(&prefix)));
        assert!(!is_random("mcp_weather") && !is_random(""));
    }

    #[test]
    fn tools_have_the_schemas_of_their_servers() {
        let tool = parse(json!({"name": "add", "description": "Adds.",
            "inputSchema": {"type": "object"}}));
        let tool = read_tool(&tool, Some("sums"), 0).unwrap();
        let expected = json!({"type": "function", "function": {"name": "sums_add",
            "description": "Adds.", "parameters": {"type": "object"}, "strict": true}});
        assert_eq!((tool.definition, tool.server_name), (expected, "add".to_owned()));
    }

    #[test]
    fn schemas_keep_their_numbers_or_are_refused() {
        let with = |number: &str| {
            let schema = format!(r#"{{"name": "f", "inputSchema": {{"maximum": [{number}]}}}}"#);
            read_tool(&Json::parse(&schema, &Limits::default()).unwrap(), None, 0)
        };
        assert!(with("9007199254740993").is_ok());
        let error = with("9007199254740993.5").err().unwrap();
        assert!(error.contains("9007199254740993.5"), "{error}");
    }

    #[test]
    fn results_have_a_text() {
        let parts = json!([
            {"type": "text", "text": "a"},
            {"type": "image", "data": "", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "u:1", "text": "b"}},
            {"type": "resource", "resource": {"uri": "u:2", "blob": ""}},
            {"type": "resource_link", "uri": "u:3", "name": "n"},
            {},
        ]);
        let expected = "a\n[image: image/png]\nb\n[resource: u:2]\n[resource_link: u:3]\n[content]";
        let result = json!({"content": parts, "structuredContent": {"a": 1}});
        assert_eq!(result_text(&parse(result)), expected);
        let structured = json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(result_text(&parse(structured)), r#"{"a":1}"#);
        assert_eq!(result_text(&parse(json!({}))), "");
    }
}
