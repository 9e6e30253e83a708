//! Tools of MCP servers (Model Context Protocol): their schemas for plans, and their calls. The
//! client is mistral.rs's; here its tools become enforced.

use std::fmt;

use louver_formats::Call;
use mistralrs::{McpClient, McpClientConfig, McpToolInfo};
use serde_json::{Value, json};

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
    /// The arguments are not JSON: the call was cut off.
    #[error("the arguments of {tool:?} are not JSON: {message}")]
    Arguments {
        /// The tool.
        tool: String,
        /// The message of the parser.
        message: String,
    },
    /// The server reported an error, did not answer in time, or is gone.
    #[error("the tool {tool:?} failed: {message}")]
    Call {
        /// The tool.
        tool: String,
        /// The server's message.
        message: String,
    },
}

/// The tools of connected MCP servers.
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
    client: McpClient,
    /// The offered names with their tools, by name: the order of prompts must not change.
    tools: Vec<(String, McpToolInfo)>,
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTools").field("tools", &self.names()).finish_non_exhaustive()
    }
}

impl McpTools {
    /// Connects to the servers and lists their tools. A tool is offered under its own name, or
    /// after the server's prefix if the configuration has one.
    pub async fn connect(config: McpClientConfig) -> Result<McpTools, McpError> {
        // The host has random prefixes by default; names in prompts should be stable.
        let mut config = McpClientConfig { auto_register_tools: true, ..config };
        for server in &mut config.servers {
            server.tool_prefix = server.tool_prefix.take().filter(|prefix| !is_random(prefix));
        }
        let mut client = McpClient::new(config);
        let connected = client.initialize().await;
        connected.map_err(|error| McpError::Connect(format!("{error:#}")))?;
        let tools = client.get_tools().iter();
        let mut tools: Vec<(String, McpToolInfo)> =
            tools.map(|(name, tool)| (name.clone(), tool.clone())).collect();
        tools.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(McpTools { client, tools })
    }

    /// The tools in OpenAI's format, for [`Louver::tools`](crate::Louver::tools): with the schemas
    /// of the servers, enforced.
    pub fn definitions(&self) -> Value {
        self.tools.iter().map(|(name, tool)| definition(name, tool)).collect()
    }

    /// The names of the tools, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Runs a call on its server, within the configured time (30 seconds by default). The result is
    /// the server's text, for a tool message. The client of mistral.rs 0.8.1 does not read
    /// `isError`: the text of a failed tool is then a result, too.
    pub async fn call(&self, call: &Call) -> Result<String, McpError> {
        self.call_tool(&call.name, &call.arguments).await
    }

    /// As [`McpTools::call`], by the tool's offered name and with the arguments as JSON.
    pub async fn call_tool(&self, name: &str, arguments: &str) -> Result<String, McpError> {
        let tool = name.to_owned();
        if !self.names().contains(&name) {
            return Err(McpError::UnknownTool(tool));
        }
        let arguments = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Err(McpError::Arguments { tool, message: error.to_string() }),
        };
        let result = self.client.call_tool(&tool, arguments).await;
        result.map_err(|error| McpError::Call { tool, message: format!("{error:#}") })
    }
}

/// Whether a prefix is one that the host made up.
fn is_random(prefix: &str) -> bool {
    let digits = prefix.strip_prefix("mcp_").unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn definition(name: &str, tool: &McpToolInfo) -> Value {
    let mut function = json!({"name": name, "parameters": tool.input_schema, "strict": true});
    if let Some(description) = &tool.description {
        function["description"] = description.as_str().into();
    }
    json!({"type": "function", "function": function})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_the_host_are_left_out() {
        let config = mistralrs::McpServerConfig::default();
        assert!(config.tool_prefix.is_some_and(|prefix| is_random(&prefix)));
        assert!(!is_random("mcp_weather") && !is_random(""));
    }

    #[test]
    fn tools_have_the_schemas_of_their_servers() {
        let tool = McpToolInfo {
            name: "add".to_owned(),
            description: Some("Adds.".to_owned()),
            input_schema: json!({"type": "object"}),
            server_id: "1".to_owned(),
            server_name: "sums".to_owned(),
        };
        let expected = json!({"type": "function", "function": {"name": "sums_add",
            "description": "Adds.", "parameters": {"type": "object"}, "strict": true}});
        assert_eq!(definition("sums_add", &tool), expected);
    }
}
