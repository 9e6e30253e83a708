//! Translation of `instructions` and `input` items to messages.

use std::sync::Arc;

use louver::spec::json::Json;
use louver_formats::CallKind;

use crate::request::foreign_members::MEDIA;
use crate::request::member_table::{refuse_members, refuse_structure};
use crate::request::members::{Faults, Members};
use crate::request::messages::call_members;
use crate::request::pointers::PointerMap;
use crate::request::{object, replace_member, text};
use crate::responses::call_order::{string, with_results_in_turn};
use crate::responses::tools::{OfferedTool, ToolTranslator};

/// Translates the conversation of a request.
pub(crate) struct InputTranslator<'s> {
    pub(crate) messages: Vec<Json>,
    /// The calls of the last message, which is the assistant's, until it is complete.
    calls: Vec<Json>,
    /// The reasoning in front of these calls.
    call_reasoning: Vec<String>,
    /// Reasoning that belongs to the assistant's next message or call.
    reasoning: Vec<String>,
    pub(crate) pointers: PointerMap,
    /// Maps the JSON pointers of calls and of the ids of results.
    pub(crate) call_pointers: Vec<(String, String)>,
    pub(crate) tools: ToolTranslator<'s>,
    pub(crate) faults: Faults,
}

/// Items that are calls of tools of OpenAI's, which conversations begun elsewhere have, and the
/// member that is shown as their argument.
const OPENAI_CALLS: [(&str, &str); 7] = [
    ("web_search_call", "action"),
    ("file_search_call", "queries"),
    ("code_interpreter_call", "code"),
    ("image_generation_call", "revised_prompt"),
    ("local_shell_call", "action"),
    ("shell_call", "action"),
    ("apply_patch_call", "operation"),
];

/// Members that messages of Chat Completions have, and the items that stand for them here.
const CHAT_MEMBERS: [(&str, &str); 3] = [
    ("tool_calls", "calls are items of type \"function_call\""),
    ("function_call", "calls are items of type \"function_call\""),
    ("tool_call_id", "results are items of type \"function_call_output\""),
];

/// The pointer of the items of a stored conversation.
const STORED: &str = "/previous_response_id";

/// The member of a message that has the reasoning in front of it.
const REASONING: &str = "reasoning_content";

const NOT_STORED: &str = "it was not stored, or newer ones replaced it; send the item itself";

impl<'s> InputTranslator<'s> {
    pub(crate) fn new(pointers: PointerMap, tools: ToolTranslator<'s>, faults: Faults) -> Self {
        InputTranslator {
            messages: Vec::new(),
            calls: Vec::new(),
            call_reasoning: Vec::new(),
            reasoning: Vec::new(),
            pointers,
            call_pointers: Vec::new(),
            tools,
            faults,
        }
    }

    /// Reads the instructions, the items of the previous response's conversation, and the input.
    pub(crate) fn read(&mut self, body: &Members<'_>, earlier: &[Arc<Json>]) {
        self.pointers.insert("/messages", "/input");
        let instructions = body.string(&mut self.faults, "instructions");
        if let Some(instructions) = instructions.filter(|text| !text.is_empty()) {
            let members = [("role", text("system")), ("content", text(instructions))];
            self.message("/instructions", members);
        }
        let sent = body.get("input").and_then(Json::as_array).unwrap_or_default();
        let sent = sent.iter().enumerate().map(|(j, item)| (item, format!("/input/{j}")));
        let stored = earlier.iter().map(|item| (&**item, STORED.to_owned()));
        for (item, pointer) in with_results_in_turn(stored.chain(sent)) {
            self.item(item, pointer);
        }
        match body.get("input") {
            // The conversation goes on as it is.
            None if !earlier.is_empty() => {}
            None => drop(body.require(&mut self.faults, "input")),
            Some(Json::String(input)) => {
                let members = [("role", text("user")), ("content", text(input))];
                self.message("/input", members);
                let content = format!("/messages/{}/content", self.messages.len() - 1);
                self.pointers.insert(content, "/input");
            }
            Some(Json::Array(items)) if items.is_empty() && earlier.is_empty() => {
                body.fail(&mut self.faults, "input", "out_of_range", "must not be empty");
            }
            Some(Json::Array(_)) => {}
            Some(_) => {
                let message = "must be a string or a list of items";
                body.fail(&mut self.faults, "input", "invalid_type", message);
            }
        }
        self.complete_message();
    }

    /// Adds the calls, and the reasoning in front of them, to the last message.
    fn complete_message(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let reasoning = std::mem::take(&mut self.call_reasoning);
        if calls.is_empty() {
            return;
        }
        let Some(Json::Object(members)) = self.messages.pop() else { return };
        let message = replace_member(&members, "tool_calls", Json::Array(calls));
        self.messages.push(with_reasoning(message, reasoning));
    }

    /// Adds a message. The assistant's has the reasoning in front of it.
    fn message<'n>(&mut self, pointer: &str, members: impl IntoIterator<Item = (&'n str, Json)>) {
        self.complete_message();
        self.pointers.insert(format!("/messages/{}", self.messages.len()), pointer);
        let message = object(members);
        let reasoning = std::mem::take(&mut self.reasoning);
        self.messages.push(match is_assistant(&message) {
            true => with_reasoning(message, reasoning),
            false => message,
        });
    }

    fn item(&mut self, item: &Json, pointer: String) {
        let Some(members) = Members::from_json(item, &*pointer, &mut self.faults) else { return };
        let kind = members.string(&mut self.faults, "type");
        // Items of OpenAI's tools have the output of those in members of many names.
        if !kind.is_some_and(|kind| OPENAI_CALLS.iter().any(|(call, _)| *call == kind)) {
            refuse_structure(&members, &mut self.faults);
        }
        if members.get("text").is_some_and(|text| text.as_object().is_some()) {
            let message = "there is no such member: `text` belongs in the body itself";
            members.fail(&mut self.faults, "text", "unknown_member", message);
        }
        // `type` may be left out of messages and of references.
        let implied = || match members.get("role") {
            Some(_) => Some("message"),
            None => is_reference(item).then_some("item_reference"),
        };
        match kind.or_else(implied) {
            Some("message") => self.message_item(&members, &pointer),
            Some("function_call") => self.call(&members, &pointer, CallKind::Function),
            Some("custom_tool_call") => self.call(&members, &pointer, CallKind::Custom),
            Some("function_call_output" | "custom_tool_call_output") => {
                self.call_output(&members, &pointer);
            }
            Some("tool_search_call") => self.search_call(&members, &pointer),
            Some("tool_search_output") => self.search_output(&members, &pointer),
            Some("mcp_list_tools") => {
                let label = members.required_string(&mut self.faults, "server_label");
                self.tools.note_listed(label);
            }
            Some("mcp_call") => self.mcp_call(&members, &pointer),
            Some("additional_tools") => {
                self.added_tools(&members);
            }
            Some("reasoning") => self.reasoning_item(&members),
            // Codex's notes of commits.
            Some("ghost_snapshot") => {}
            Some("item_reference") => {
                let id = members.required_string(&mut self.faults, "id");
                let message = format!("there is no item {id:?}: {NOT_STORED}");
                members.fail(&mut self.faults, "id", "item_not_found", message);
            }
            Some("local_shell_call_output" | "shell_call_output" | "apply_patch_call_output") => {
                let name = if members.get("call_id").is_none() { "id" } else { "call_id" };
                let id = members.required_string(&mut self.faults, name);
                self.result(&members, &pointer, id, text(&outcome(&members)));
            }
            Some(kind) => match OPENAI_CALLS.iter().find(|(call, _)| *call == kind) {
                Some((_, argument)) => self.openai_call(&members, kind, argument, &pointer),
                None => {
                    let message = match kind {
                        _ if kind.contains("compaction") => {
                            "only OpenAI reads it: send what it replaces".to_owned()
                        }
                        _ => format!("items of type {kind:?} are not supported"),
                    };
                    members.fail(&mut self.faults, "type", "unsupported", message);
                }
            },
            None => drop(members.require(&mut self.faults, "type")),
        }
    }

    fn message_item(&mut self, members: &Members<'_>, pointer: &str) {
        refuse_members(members, &CHAT_MEMBERS, &mut self.faults);
        refuse_members(members, &MEDIA, &mut self.faults);
        if members.get("role").and_then(Json::as_str) == Some("tool") {
            let message =
                "there is no such role: results are items of type \"function_call_output\"";
            return members.fail(&mut self.faults, "role", "unsupported", message);
        }
        let copied = members.iter().filter(|(name, _)| ["role", "content"].contains(name));
        self.message(pointer, copied.map(|(name, value)| (name, value.clone())));
    }

    /// Reasoning of an earlier turn. Summaries and encrypted content are not what the model wrote.
    fn reasoning_item(&mut self, members: &Members<'_>) {
        let parts = members.array(&mut self.faults, "content").unwrap_or_default();
        for (j, part) in parts.iter().enumerate() {
            let pointer = format!("{}/{j}", members.pointer("content"));
            let Some(part) = Members::from_json(part, pointer, &mut self.faults) else { continue };
            let written = part.required_string(&mut self.faults, "text");
            self.reasoning.extend((!written.is_empty()).then(|| written.to_owned()));
        }
    }

    /// The message of a tool's result, which is the member `output`.
    fn call_output(&mut self, members: &Members<'_>, pointer: &str) {
        let id = members.required_string(&mut self.faults, "call_id");
        let content = members.require(&mut self.faults, "output").cloned().unwrap_or(Json::Null);
        self.result(members, pointer, id, content);
        let content = format!("/messages/{}/content", self.messages.len() - 1);
        self.pointers.insert(content, format!("{pointer}/output"));
    }

    /// The message with the result of an item.
    fn result(&mut self, item: &Members<'_>, pointer: &str, id: &str, content: Json) {
        let members = [("role", text("tool")), ("tool_call_id", text(id)), ("content", content)];
        self.message(pointer, members);
        let from = format!("/messages/{}/tool_call_id", self.messages.len() - 1);
        self.call_pointers.push((from, id_pointer(item, pointer)));
    }

    fn call(&mut self, members: &Members<'_>, pointer: &str, kind: CallKind) {
        let id = members.required_string(&mut self.faults, "call_id");
        let own_name = members.required_string(&mut self.faults, "name");
        let namespace = members.string(&mut self.faults, "namespace");
        let name = match namespace {
            Some(_) => self.tools.names().offered(namespace, own_name),
            None => own_name.to_owned(),
        };
        let content = members.required_string(&mut self.faults, call_members(kind).1);
        let call = call_json(id, &name, kind, content);
        self.add_call(members, pointer, call);
    }

    /// A call that the server ran, and its result.
    fn mcp_call(&mut self, members: &Members<'_>, pointer: &str) {
        let id = members.required_string(&mut self.faults, "id");
        let name = members.required_string(&mut self.faults, "name");
        let label = members.required_string(&mut self.faults, "server_label");
        let arguments = members.required_string(&mut self.faults, "arguments");
        let name = self.tools.names().offered(Some(label), name);
        let call = call_json(id, &name, CallKind::Function, arguments);
        self.add_call(members, pointer, call);
        let output = match (members.get("output"), members.get("error")) {
            (Some(Json::String(output)), _) => output.clone(),
            (_, Some(error)) => {
                let mut texts = ["/content/0/text", "/message"].iter();
                let text = texts.find_map(|text| error.pointer(text)).and_then(Json::as_str);
                format!("error: {}", text.map_or_else(|| shown(error), str::to_owned))
            }
            _ => String::new(),
        };
        self.result(members, pointer, id, text(&output));
    }

    /// A call of a tool of OpenAI's, which the model sees as a call of a function.
    fn openai_call(&mut self, members: &Members<'_>, kind: &str, argument: &str, pointer: &str) {
        let name = kind.trim_end_matches("_call");
        let arguments = object(members.get(argument).map(|value| (argument, value.clone())));
        if ["local_shell", "shell", "apply_patch"].contains(&name) {
            // The client ran it: the result is an item of its own.
            let id = members.required_string(&mut self.faults, "call_id");
            let call = call_json(id, name, CallKind::Function, &arguments.to_string());
            return self.add_call(members, pointer, call);
        }
        // Some clients leave out the ids of these items.
        let id = format!("{name}_{}", self.messages.len());
        let call = call_json(&id, name, CallKind::Function, &arguments.to_string());
        self.add_call(members, pointer, call);
        self.result(members, pointer, &id, text(&outcome(members)));
    }

    /// A search that the server executed had no call.
    fn search_call(&mut self, members: &Members<'_>, pointer: &str) {
        if !self.is_search_of_client(members) {
            return;
        }
        let id = members.required_string(&mut self.faults, "call_id");
        if let Some(arguments) = members.require(&mut self.faults, "arguments") {
            let (name, kind) = (OfferedTool::SEARCH, CallKind::Function);
            self.add_call(members, pointer, call_json(id, name, kind, &shown(arguments)));
        }
    }

    /// The result of a search: its tools are offered from here on, and the model sees their names.
    fn search_output(&mut self, members: &Members<'_>, pointer: &str) {
        let tools = self.added_tools(members);
        if !self.is_search_of_client(members) {
            return;
        }
        let id = members.required_string(&mut self.faults, "call_id");
        let content = text(&format!("Found: {}", tools.join(", ")));
        self.result(members, pointer, id, content);
    }

    fn is_search_of_client(&mut self, members: &Members<'_>) -> bool {
        let execution = members.one_of(&mut self.faults, "execution", &["server", "client"]);
        execution == Some("client") || (execution.is_none() && members.get("call_id").is_some())
    }

    /// Offers the tools of an item. Returns their offered names.
    fn added_tools(&mut self, members: &Members<'_>) -> Vec<String> {
        let Some(tools) = members.required(&mut self.faults, "tools", Members::array) else {
            return Vec::new();
        };
        self.tools.added_tools(tools, &members.pointer("tools"), &mut self.faults)
    }

    /// Adds the call of an item to the preceding assistant message, or to a new one.
    fn add_call(&mut self, item: &Members<'_>, pointer: &str, call: Json) {
        if !self.messages.last().is_some_and(is_assistant) {
            self.messages.push(object([("role", text("assistant"))]));
        }
        self.call_reasoning.append(&mut self.reasoning);
        let from = format!("/messages/{}/tool_calls/{}", self.messages.len() - 1, self.calls.len());
        self.call_pointers.push((format!("{from}/id"), id_pointer(item, pointer)));
        self.call_pointers.push((from, pointer.to_owned()));
        self.calls.push(call);
    }
}

fn call_json(id: &str, name: &str, kind: CallKind, content: &str) -> Json {
    let (kind, member) = call_members(kind);
    let holder = object([("name", text(name)), (member, text(content))]);
    object([("id", text(id)), ("type", text(kind)), (kind, holder)])
}

/// The pointer of the id of an item's call, or of the item if it has none in the body.
fn id_pointer(item: &Members<'_>, pointer: &str) -> String {
    let id = ["call_id", "id"].into_iter().find(|name| item.get(name).is_some());
    let id = id.filter(|_| pointer != STORED);
    id.map_or_else(|| pointer.to_owned(), |name| item.pointer(name))
}

fn is_assistant(message: &Json) -> bool {
    string(message, "role") == Some("assistant")
}

/// The message with more reasoning in front of it.
fn with_reasoning(message: Json, more: Vec<String>) -> Json {
    let Json::Object(members) = &message else { return message };
    if more.is_empty() {
        return message;
    }
    let reasoning: Vec<&str> =
        string(&message, REASONING).into_iter().chain(more.iter().map(String::as_str)).collect();
    replace_member(members, REASONING, text(&reasoning.join("\n")))
}

/// Whether an item stands for one of a stored response, by its id.
pub(crate) fn is_reference(item: &Json) -> bool {
    let Json::Object(members) = item else { return false };
    match members.get_non_null("type") {
        Some(kind) => kind.as_str() == Some("item_reference"),
        None => {
            members.get("id").is_some()
                && members.iter().all(|(name, _)| ["id", "type"].contains(&name))
        }
    }
}

/// What a tool of OpenAI's returned, as far as the item has it. Images are not shown.
fn outcome(item: &Members<'_>) -> String {
    let outcome = ["output", "outputs", "results", "status"].iter().find_map(|name| item.get(name));
    outcome.map_or_else(|| "completed".to_owned(), shown)
}

/// A text itself, and any other value as JSON.
fn shown(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
