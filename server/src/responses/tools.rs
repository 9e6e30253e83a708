//! Tools of the Responses API: namespaces, deferred tools and tool search, as the flat list of
//! functions and custom tools that the model sees.
//!
//! A tool `t` of the namespace `n` is offered as `n__t`. A tool search that the client executes is
//! offered as the function `tool_search`; the tools of its results are offered from then on.

use std::collections::HashMap;
use std::sync::Arc;

use louver::spec::json::{Json, Object};
use serde_json::Value;

use crate::error::ApiFault;
use crate::generation::ServerTools;
use crate::mcp::McpServers;
use crate::request::members::{Faults, Members};
use crate::request::pointers::PointerMap;
use crate::request::{object, replace_member, text};
use crate::responses::mcp::McpSelection;

/// Tool types that are services hosted by OpenAI, or by its clients for its models. Clients such as
/// Codex offer them to every server.
const HOSTED_TOOLS: [&str; 11] = [
    "web_search",
    "web_search_preview",
    "file_search",
    "computer",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "local_shell",
    "shell",
    "apply_patch",
    "programmatic_tool_calling",
];

/// Members of functions that do not affect the model's output.
const NEUTRAL_MEMBERS: [&str; 2] = ["defer_loading", "output_schema"];

/// Maximum bytes of the names and descriptions that a namespace adds to its tools.
const MAX_NAMESPACE_BYTES: usize = 4 << 20;

/// What an offered name stands for, if it is not the tool's own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OfferedTool {
    /// A tool of a namespace.
    Namespaced { namespace: String, name: String },
    /// The tool search.
    Search,
    /// A tool of an MCP server, which the server runs.
    Mcp { label: String, name: String },
}

impl OfferedTool {
    /// The function that stands for a tool search that the client executes.
    pub(crate) const SEARCH: &str = "tool_search";

    /// Its name in its namespace or on its server.
    fn own_name(&self) -> Option<&str> {
        match self {
            OfferedTool::Namespaced { name, .. } | OfferedTool::Mcp { name, .. } => Some(name),
            OfferedTool::Search => None,
        }
    }
}

/// The meaning of the offered names that are not the tools' own names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolNames {
    /// By offered name.
    meanings: HashMap<String, OfferedTool>,
    /// The offered name of each tool of a namespace or a server, by its own name; `None` if several
    /// have the name.
    by_own_name: HashMap<String, Option<String>>,
}

impl ToolNames {
    /// What an offered name stands for; `None` for a tool's own name.
    pub(crate) fn meaning(&self, offered: &str) -> Option<&OfferedTool> {
        self.meanings.get(offered)
    }

    /// Sets what an offered name stands for; `None` for a tool's own name.
    fn set(&mut self, offered: &str, meaning: Option<OfferedTool>) {
        let earlier = self.meanings.remove(offered);
        if let Some(own) = earlier.as_ref().and_then(OfferedTool::own_name)
            && self.by_own_name.get(own).and_then(Option::as_deref) == Some(offered)
        {
            self.by_own_name.remove(own);
        }
        let Some(meaning) = meaning else { return };
        if let Some(own) = meaning.own_name() {
            let known = self.by_own_name.entry(own.to_owned());
            let known = known.or_insert_with(|| Some(offered.to_owned()));
            if known.as_deref() != Some(offered) {
                *known = None;
            }
        }
        self.meanings.insert(offered.to_owned(), meaning);
    }

    /// The tools that the server runs, if any.
    pub(crate) fn server_tools(&self) -> Option<Arc<ServerTools>> {
        let owned = |(offered, tool): (&String, &OfferedTool)| match tool {
            OfferedTool::Mcp { label, name } => {
                Some((offered.clone(), (label.clone(), name.clone())))
            }
            _ => None,
        };
        let tools: ServerTools = self.meanings.iter().filter_map(owned).collect();
        (!tools.is_empty()).then(|| Arc::new(tools))
    }

    /// The offered names of the tools of an MCP server, sorted.
    fn of_server(&self, server: &str) -> Vec<&str> {
        let is_of_server =
            |tool: &OfferedTool| matches!(tool, OfferedTool::Mcp { label, .. } if label == server);
        let tools = self.meanings.iter().filter(|(_, tool)| is_of_server(tool));
        let mut offered: Vec<&str> = tools.map(|(offered, _)| offered.as_str()).collect();
        offered.sort_unstable();
        offered
    }

    /// The offered name of a tool. Without a namespace, a tool's own name is found in a namespace
    /// if it is in exactly one.
    pub(crate) fn offered(&self, namespace: Option<&str>, name: &str) -> String {
        if let Some(namespace) = namespace {
            return offered_name(namespace, name);
        }
        let meant = self.by_own_name.get(name).and_then(Option::as_deref);
        meant.unwrap_or(name).to_owned()
    }
}

/// The name under which a tool of a namespace is offered to the model.
pub(crate) fn offered_name(namespace: &str, name: &str) -> String {
    format!("{namespace}__{name}")
}

/// Collects the tools of a request.
pub(crate) struct ToolTranslator<'s> {
    servers: &'s McpServers,
    /// Maximum number of offered tools.
    max_tools: usize,
    /// The selected tools of MCP servers.
    selections: Vec<McpSelection>,
    /// The labels of the MCP servers whose tools an input item lists.
    listed_servers: Vec<String>,
    offered: Vec<Json>,
    /// The index of each offered tool, by its name.
    by_name: HashMap<String, usize>,
    /// The pointers of the offered tools in the request as sent.
    sources: Vec<String>,
    /// The types and pointers of hosted tools, which are not offered.
    hosted: Vec<(String, String)>,
    names: ToolNames,
    /// Whether deferred tools wait for a tool search of the client.
    has_client_search: bool,
    /// Whether the tools that are being read are of an input item.
    is_of_input: bool,
}

/// The namespace of the tools that are being read.
#[derive(Clone, Copy)]
struct Namespace<'a> {
    name: &'a str,
    description: &'a str,
}

impl<'s> ToolTranslator<'s> {
    /// No tools yet. `servers` are those that tools of type `mcp` may name.
    pub(crate) fn new(servers: &'s McpServers, max_tools: usize) -> Self {
        ToolTranslator {
            servers,
            max_tools,
            by_name: HashMap::new(),
            selections: Vec::new(),
            listed_servers: Vec::new(),
            offered: Vec::new(),
            sources: Vec::new(),
            hosted: Vec::new(),
            names: ToolNames::default(),
            has_client_search: false,
            is_of_input: false,
        }
    }

    /// Notes that an input item lists the tools of an MCP server.
    pub(crate) fn note_listed(&mut self, label: &str) {
        self.listed_servers.push(label.to_owned());
    }

    /// Reads the request's `tools`. Deferred tools are offered at once, unless the client executes
    /// the tool search: its results will offer them.
    pub(crate) fn request_tools(&mut self, members: &Members<'_>, faults: &mut Faults) {
        let Some(tools) = members.array(faults, "tools") else { return };
        let is_search = |tool: &Json| {
            let of = |name: &str| tool.get(name).and_then(Json::as_str);
            of("type") == Some("tool_search") && of("execution") == Some("client")
        };
        self.has_client_search = tools.iter().any(is_search);
        self.list(tools, &members.pointer("tools"), faults);
    }

    /// Reads tools that an input item adds. `pointer` is that of their list. Returns the names by
    /// which they are offered.
    pub(crate) fn added_tools(
        &mut self,
        tools: &[Json],
        pointer: &str,
        faults: &mut Faults,
    ) -> Vec<String> {
        self.is_of_input = true;
        self.list(tools, pointer, faults)
    }

    /// The offered tools, their names, and the output items that list tools of MCP servers. Maps
    /// the pointers of the list, and notes what is left out.
    pub(crate) fn finish(self, pointers: &mut PointerMap) -> (Vec<Json>, ToolNames, Vec<Value>) {
        for (k, source) in self.sources.iter().enumerate() {
            pointers.insert(format!("/tools/{k}"), source);
        }
        for (kind, pointer) in self.hosted {
            let message = format!("left out: tools of type {kind:?} run at OpenAI only");
            pointers.warn(pointer, message);
        }
        let new = self.selections.iter().filter(|mcp| !self.listed_servers.contains(&mcp.label));
        (self.offered, self.names, new.map(McpSelection::list_item).collect())
    }

    /// The names so far.
    pub(crate) fn names(&self) -> &ToolNames {
        &self.names
    }

    /// Reads a list of tools. Returns the names by which they are offered.
    fn list(&mut self, tools: &[Json], pointer: &str, faults: &mut Faults) -> Vec<String> {
        let mut offered = Vec::new();
        if tools.len() > self.max_tools {
            faults.push(ApiFault::too_many(pointer, self.max_tools, "tools"));
            return offered;
        }
        for (k, tool) in tools.iter().enumerate() {
            let pointer = format!("{pointer}/{k}");
            let kind = tool.get("type").and_then(Json::as_str).unwrap_or_default();
            match kind {
                "namespace" => offered.extend(self.namespace(tool, &pointer, faults)),
                "tool_search" => self.search(tool, &pointer, faults),
                "mcp" => offered.extend(self.mcp(tool, &pointer, faults)),
                // The model need not call them. A choice that names one is refused.
                _ if is_hosted(kind) => self.hosted.push((kind.to_owned(), pointer)),
                _ => offered.extend(self.tool(tool, pointer, None, faults)),
            }
        }
        offered
    }

    fn namespace(&mut self, tool: &Json, pointer: &str, faults: &mut Faults) -> Vec<String> {
        let mut offered = Vec::new();
        let Some(members) = Members::from_json(tool, pointer, faults) else { return offered };
        members.refuse_unknown(faults, &["type", "name", "description", "tools"]);
        members.require(faults, "tools");
        let name = non_empty_name(&members, faults);
        let description = members.string(faults, "description").unwrap_or_default();
        let namespace = Namespace { name, description };
        let tools = members.array(faults, "tools").unwrap_or_default();
        if tools.len() > self.max_tools {
            faults.push(ApiFault::too_many(members.pointer("tools"), self.max_tools, "tools"));
            return offered;
        }
        if (name.len() + description.len()) * tools.len() > MAX_NAMESPACE_BYTES {
            let message = format!(
                "too long: the name and the description stand in each of the {} tools",
                tools.len()
            );
            members.fail(faults, "description", "too_long", message);
            return offered;
        }
        for (k, tool) in tools.iter().enumerate() {
            let pointer = format!("{pointer}/tools/{k}");
            match tool.get("type").and_then(Json::as_str) {
                Some("function" | "custom") => {
                    offered.extend(self.tool(tool, pointer, Some(namespace), faults));
                }
                _ => {
                    let message = "must be \"function\" or \"custom\" in a namespace";
                    let pointer = format!("{pointer}/type");
                    faults.push(ApiFault::at(pointer, "unsupported_tool", message));
                }
            }
        }
        offered
    }

    /// The tools of an MCP server are offered as those of a namespace.
    fn mcp(&mut self, tool: &Json, pointer: &str, faults: &mut Faults) -> Vec<String> {
        let selection = McpSelection::read(tool, pointer, self.servers, faults);
        let Some(selection) = selection else { return Vec::new() };
        let mut offered = Vec::new();
        for function in &selection.tools {
            let name = function["name"].as_str().unwrap_or_default().to_owned();
            let offered_name = offered_name(&selection.label, &name);
            let mut function = function.clone();
            function["type"] = "function".into();
            function["name"] = offered_name.as_str().into();
            let meaning = Some(OfferedTool::Mcp { label: selection.label.clone(), name });
            let function = Json::from(&function);
            self.offer(function, pointer.to_owned(), &offered_name, meaning, faults);
            offered.push(offered_name);
        }
        self.selections.push(selection);
        offered
    }

    /// A tool search by the client is a function; the results of one by the server are offered from
    /// the beginning.
    fn search(&mut self, tool: &Json, pointer: &str, faults: &mut Faults) {
        let Some(members) = Members::from_json(tool, pointer, faults) else { return };
        let known = ["type", "execution", "description", "parameters"];
        members.refuse_unknown(faults, &known);
        if members.one_of(faults, "execution", &["server", "client"]) != Some("client") {
            return;
        }
        let copied = ["description", "parameters"].into_iter();
        let copied = copied.filter_map(|name| Some((name, members.get(name)?.clone())));
        let fixed = [
            ("type", text("function")),
            ("name", text(OfferedTool::SEARCH)),
            ("strict", Json::Bool(true)),
        ];
        let (tool, meaning) = (object(fixed.into_iter().chain(copied)), Some(OfferedTool::Search));
        self.offer(tool, pointer.to_owned(), OfferedTool::SEARCH, meaning, faults);
    }

    fn tool(
        &mut self,
        tool: &Json,
        pointer: String,
        namespace: Option<Namespace<'_>>,
        faults: &mut Faults,
    ) -> Option<String> {
        let Json::Object(members) = tool else {
            // Refused when the tools are parsed.
            self.offer(tool.clone(), pointer, "", None, faults);
            return None;
        };
        let reader = Members::from_json(tool, &*pointer, faults)?;
        let is_deferred = reader.boolean(faults, "defer_loading") == Some(true);
        if is_deferred && self.has_client_search && !self.is_of_input {
            return None;
        }
        check_callers(&reader, faults);
        // Other names are checked when the tools are parsed.
        let own_name = match namespace {
            Some(_) => non_empty_name(&reader, faults),
            None => members.get("name").and_then(Json::as_str).unwrap_or_default(),
        };
        let (own_name, has_name) = (own_name.to_owned(), !own_name.is_empty());
        let (offered, meaning) = match namespace {
            Some(namespace) => {
                let offered = offered_name(namespace.name, &own_name);
                let (namespace, name) = (namespace.name.to_owned(), own_name);
                (offered, Some(OfferedTool::Namespaced { namespace, name }))
            }
            None => (own_name, None),
        };
        let tool = offered_tool(members, namespace, &offered);
        // A name that is missing is a fault already, and not that of another tool.
        let name = if has_name { &*offered } else { "" };
        self.offer(tool, pointer, name, meaning, faults);
        Some(offered)
    }

    /// Adds a tool, and what its name stands for. One that an input item adds again, or that a
    /// search found, is offered once: the last definition holds.
    fn offer(
        &mut self,
        tool: Json,
        pointer: String,
        name: &str,
        meaning: Option<OfferedTool>,
        faults: &mut Faults,
    ) {
        let known = self.by_name.get(name).filter(|_| self.is_of_input);
        if let Some(&k) = known {
            (self.offered[k], self.sources[k]) = (tool, pointer);
            return self.names.set(name, meaning);
        }
        if let Some(&first) = self.by_name.get(name).filter(|_| !name.is_empty()) {
            let message = format!("{name:?} is already the name of {}", self.sources[first]);
            return faults.push(ApiFault::at(pointer, "invalid_tool", message));
        }
        if self.offered.len() == self.max_tools {
            return faults.push(ApiFault::too_many(pointer, self.max_tools, "tools"));
        }
        self.names.set(name, meaning);
        self.by_name.entry(name.to_owned()).or_insert(self.offered.len());
        self.offered.push(tool);
        self.sources.push(pointer);
    }
}

/// A tool as it is offered: strict by default, as the Responses API is, under its offered name.
fn offered_tool(members: &Object, namespace: Option<Namespace<'_>>, offered: &str) -> Json {
    let kind = members.get("type").and_then(Json::as_str);
    let is_function = kind.is_none_or(|kind| kind == "function");
    let is_set = |name: &str| members.get_non_null(name).is_some();
    // As Chat Completions has it.
    let nested = members.get("function").and_then(Json::as_object).filter(|_| is_function);
    let is_changed = |name: &str| {
        NEUTRAL_MEMBERS.contains(&name)
            || ["allowed_callers", "async"].contains(&name)
            || (namespace.is_some() && ["name", "description"].contains(&name))
            || (name == "strict" && !is_set("strict"))
            || (name == "function" && nested.is_some())
    };
    let kept = members.iter().filter(|(name, _)| !is_changed(name));
    let mut out: Vec<(&str, Json)> = kept.map(|(name, value)| (name, value.clone())).collect();
    if let Some(namespace) = namespace {
        out.push(("name", text(offered)));
        let own = members.get("description").and_then(Json::as_str).unwrap_or_default();
        let lines = [own, namespace.description].map(str::trim);
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            out.push(("description", text(&lines.join("\n"))));
        }
    }
    match nested {
        Some(function) => {
            let is_strict = function.get_non_null("strict").cloned().unwrap_or(Json::Bool(true));
            out.push(("function", replace_member(function, "strict", is_strict)));
        }
        None if is_function && !is_set("strict") && !is_set("function") => {
            out.push(("strict", Json::Bool(true)));
        }
        None => {}
    }
    object(out)
}

/// The name of a namespace or of a tool in one. The offered name joins both, so that the parser of
/// tools would not see that one is empty.
fn non_empty_name<'a>(members: &Members<'a>, faults: &mut Faults) -> &'a str {
    let name = members.required_string(faults, "name");
    if members.get("name").and_then(Json::as_str) == Some("") {
        members.fail(faults, "name", "invalid_tool", "must not be empty");
    }
    name
}

/// Refuses functions that only programs may call, or whose results come later.
fn check_callers(members: &Members<'_>, faults: &mut Faults) {
    members.require_direct_callers(faults);
    if members.boolean(faults, "async") == Some(true) {
        let message = "results must be in the next request";
        members.fail(faults, "async", "unsupported", message);
    }
}

/// Some types end with a date.
fn is_hosted(kind: &str) -> bool {
    HOSTED_TOOLS.iter().any(|hosted| {
        kind == *hosted || kind.strip_prefix(hosted).is_some_and(|rest| rest.starts_with("_20"))
    })
}

/// A tool choice under the offered names.
pub(crate) fn translate_choice(choice: &Json, names: &ToolNames) -> Json {
    let Json::Object(members) = choice else { return choice.clone() };
    if let Some(label) = chosen_server(members) {
        let tools = Json::Array(functions_of_server(label, names));
        return object([
            ("type", text("allowed_tools")),
            ("mode", text("required")),
            ("tools", tools),
        ]);
    }
    let member = |name: &str| members.get(name).and_then(Json::as_str);
    if member("type") == Some(OfferedTool::SEARCH) {
        return chosen_function(OfferedTool::SEARCH);
    }
    // A tool of an MCP server is a function of the namespace with its label.
    let is_mcp = member("type") == Some("mcp") && member("name").is_some();
    let is_tool = is_mcp || matches!(member("type"), Some("function" | "custom"));
    let namespace = member(if is_mcp { "server_label" } else { "namespace" });
    let translate = |name: &str, value: &Json| match (name, value) {
        ("name", Json::String(own)) if is_tool => text(&names.offered(namespace, own)),
        ("type", _) if is_mcp => text("function"),
        ("tools", Json::Array(tools)) => {
            Json::Array(tools.iter().flat_map(|tool| allowed_tools(tool, names)).collect())
        }
        _ => value.clone(),
    };
    let is_dropped =
        |name: &str| (is_tool && name == "namespace") || (is_mcp && name == "server_label");
    let kept = members.iter().filter(|(name, _)| !is_dropped(name));
    object(kept.map(|(name, value)| (name, translate(name, value))))
}

/// An entry of a list of allowed tools under the offered names. One that names an MCP server only
/// stands for all of its tools.
fn allowed_tools(tool: &Json, names: &ToolNames) -> Vec<Json> {
    match tool.as_object().and_then(chosen_server) {
        Some(label) => functions_of_server(label, names),
        None => vec![translate_choice(tool, names)],
    }
}

/// The label of an MCP server, if a choice is one of all its tools.
fn chosen_server(members: &Object) -> Option<&str> {
    let is_mcp = members.get("type").and_then(Json::as_str) == Some("mcp");
    let is_whole = is_mcp && members.get_non_null("name").is_none();
    members.get("server_label").and_then(Json::as_str).filter(|_| is_whole)
}

/// A choice of each tool of a server. Of a server that offers none, its label is returned as the
/// name of a tool, which is then refused.
fn functions_of_server(label: &str, names: &ToolNames) -> Vec<Json> {
    match &names.of_server(label)[..] {
        [] => vec![chosen_function(label)],
        offered => offered.iter().map(|name| chosen_function(name)).collect(),
    }
}

fn chosen_function(name: &str) -> Json {
    object([("type", text("function")), ("name", text(name))])
}
