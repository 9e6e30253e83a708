//! The tool type `mcp`: the tools of a configured MCP server that a request may use.

use louver::spec::json::Json;
use serde_json::{Value, json};

use crate::mcp::McpServers;
use crate::request::members::{Faults, Members};

const KNOWN: [&str; 7] = [
    "type",
    "server_label",
    "server_description",
    "allowed_tools",
    "require_approval",
    "defer_loading",
    "allowed_callers",
];

/// Members that would make the server connect to an address of the request's choice.
const ADDRESSES: [&str; 5] =
    ["server_url", "connector_id", "tunnel_id", "authorization", "headers"];

/// The tools of one MCP server that a request may use.
pub(crate) struct McpSelection {
    pub(crate) label: String,
    /// Their definitions in OpenAI's format, as functions.
    pub(crate) tools: Vec<Value>,
}

impl McpSelection {
    /// Reads a tool of type `mcp`.
    pub(crate) fn read(
        tool: &Json,
        pointer: &str,
        servers: &McpServers,
        faults: &mut Faults,
    ) -> Option<McpSelection> {
        let members = Members::from_json(tool, pointer, faults)?;
        for name in ADDRESSES.into_iter().filter(|name| members.get(name).is_some()) {
            let message = "the server connects to the MCP servers of its configuration only: name \
                           one by `server_label`";
            members.fail(faults, name, "unsupported", message);
        }
        let known = [&KNOWN[..], &ADDRESSES[..]].concat();
        members.refuse_unknown(faults, &known);
        if members.get("require_approval").and_then(Json::as_str) != Some("never") {
            let message = "must be \"never\": the server does not ask for approval";
            members.fail(faults, "require_approval", "unsupported", message);
        }
        let allowed = read_allowed(&members, faults);
        let label = members.string(faults, "server_label").unwrap_or_default();
        let Some(server) = servers.get(label) else {
            let known: Vec<&str> = servers.labels().collect();
            let message = match known.is_empty() {
                true => "the configuration has no MCP servers".to_owned(),
                false => format!("there is no MCP server {label:?}; known: {}", known.join(", ")),
            };
            members.fail(faults, "server_label", "unknown_value", message);
            return None;
        };
        let unknown = allowed.iter().flatten().find(|name| !server.names().contains(name));
        if let Some(name) = unknown {
            let message = format!("{label:?} has no tool {name:?}");
            members.fail(faults, "allowed_tools", "unknown_value", message);
        }
        let tools = servers.functions(label).into_iter().filter(|function| {
            let name = function["name"].as_str().unwrap_or_default();
            allowed.as_ref().is_none_or(|allowed| allowed.contains(&name))
        });
        Some(McpSelection { label: label.to_owned(), tools: tools.collect() })
    }

    /// The output item that lists the tools.
    pub(crate) fn list_item(&self) -> Value {
        let tool = |function: &Value| {
            json!({
                "name": function["name"],
                "description": function["description"],
                "input_schema": function["parameters"],
                "annotations": null,
            })
        };
        json!({
            "type": "mcp_list_tools",
            "server_label": self.label,
            "tools": self.tools.iter().map(tool).collect::<Vec<_>>(),
            "error": null,
        })
    }
}

/// The names in `allowed_tools`, a list or an object with one. `None`: all tools.
fn read_allowed<'j>(members: &Members<'j>, faults: &mut Faults) -> Option<Vec<&'j str>> {
    let allowed = members.get("allowed_tools")?;
    let names = allowed.get("tool_names").unwrap_or(allowed).as_array();
    let names = names.and_then(|names| names.iter().map(Json::as_str).collect());
    if names.is_none() {
        let message = "must be a list of names, or an object with `tool_names`";
        members.fail(faults, "allowed_tools", "invalid_type", message);
    }
    names
}
