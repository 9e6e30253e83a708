//! Translation of `system` and `messages` to the messages of Chat Completions.
//!
//! ```text
//! user       text blocks             ──► user message
//!            tool_result blocks      ──► tool messages, before the text
//! assistant  text, tool_use blocks   ──► assistant message with calls
//!            thinking blocks         ──► its `reasoning_content`
//! ```
//!
//! Consecutive messages of one role become one, as in the Messages API.

use louver::spec::json::Json;

use crate::messages::call_id;
use crate::request::foreign_members::MEDIA;
use crate::request::member_table::{refuse_members, refuse_structure};
use crate::request::members::{Faults, Members};
use crate::request::messages::is_null;
use crate::request::pointers::PointerMap;
use crate::request::{object, text};

/// Members that messages of Chat Completions have, and the blocks that stand for them here.
const CHAT_MEMBERS: [(&str, &str); 3] = [
    ("tool_calls", "calls are blocks of type \"tool_use\" in `content`"),
    ("function_call", "calls are blocks of type \"tool_use\" in `content`"),
    ("tool_call_id", "results are blocks of type \"tool_result\" in `content`"),
];

/// The first line of a tool result with `is_error`, for which chat templates have no place.
const ERROR_LINE: &str = "Error:";

/// A message of the translated conversation.
#[derive(Debug, Default)]
struct TranslatedMessage {
    role: &'static str,
    /// Text parts.
    parts: Vec<Json>,
    reasoning: Vec<String>,
    calls: Vec<Json>,
    /// The call that a tool message answers.
    call_id: Option<String>,
}

impl TranslatedMessage {
    fn into_json(self) -> Json {
        let mut members = vec![("role", text(self.role)), ("content", Json::Array(self.parts))];
        if let Some(id) = self.call_id {
            members.push(("tool_call_id", text(&id)));
        }
        if !self.reasoning.is_empty() {
            members.push(("reasoning_content", text(&self.reasoning.join("\n"))));
        }
        if !self.calls.is_empty() {
            members.push(("tool_calls", Json::Array(self.calls)));
        }
        object(members)
    }
}

pub(super) struct ConversationTranslator<'f> {
    messages: Vec<TranslatedMessage>,
    pointers: &'f mut PointerMap,
    /// Maps the JSON pointers of calls and of the ids of results.
    call_pointers: Vec<(String, String)>,
    faults: &'f mut Faults,
}

impl<'f> ConversationTranslator<'f> {
    pub(super) fn new(pointers: &'f mut PointerMap, faults: &'f mut Faults) -> Self {
        ConversationTranslator { messages: Vec::new(), pointers, call_pointers: Vec::new(), faults }
    }

    /// The messages, and the map of the JSON pointers of calls and of the ids of results.
    pub(super) fn finish(self) -> (Json, Vec<(String, String)>) {
        let messages = self.messages.into_iter().map(TranslatedMessage::into_json).collect();
        (Json::Array(messages), self.call_pointers)
    }

    /// Reads `system` and `messages`.
    pub(super) fn read(&mut self, body: &Members<'_>) {
        if body.get("system").is_some() {
            let parts = self.texts(body, "system");
            if parts.iter().any(|part| part.get("text").and_then(Json::as_str) != Some("")) {
                self.message("/system", "system").parts.extend(parts);
            }
        }
        let Some(entries) = body.required(self.faults, "messages", Members::array) else { return };
        if entries.is_empty() {
            body.fail(self.faults, "messages", "out_of_range", "must not be empty");
        }
        let base = body.pointer("messages");
        for (i, entry) in entries.iter().enumerate() {
            let pointer = format!("{base}/{i}");
            let Some(entry) = Members::from_json(entry, &*pointer, self.faults) else { continue };
            self.entry(&entry, &pointer);
            if i + 1 == entries.len()
                && entry.get("role").and_then(Json::as_str) == Some("assistant")
            {
                let message = "messages are not continued: the last one must be the user's";
                entry.fail(self.faults, "role", "unsupported", message);
            }
        }
    }

    /// The message of this role that goes on: the last one, or a new one. Messages of the user and
    /// of the model alternate.
    fn message(&mut self, pointer: &str, role: &'static str) -> &mut TranslatedMessage {
        let goes_on = ["user", "assistant"].contains(&role)
            && self.messages.last().is_some_and(|last| last.role == role);
        if !goes_on {
            self.pointers.insert(format!("/messages/{}", self.messages.len()), pointer);
            self.messages.push(TranslatedMessage { role, ..TranslatedMessage::default() });
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }

    fn entry(&mut self, entry: &Members<'_>, pointer: &str) {
        refuse_structure(entry, self.faults);
        refuse_members(entry, &CHAT_MEMBERS, self.faults);
        refuse_members(entry, &MEDIA, self.faults);
        entry.require(self.faults, "role");
        let role = match entry.one_of(self.faults, "role", &["user", "assistant", "system"]) {
            Some("user") => "user",
            Some("assistant") => "assistant",
            Some(_) => "system",
            None => return,
        };
        match entry.get("content") {
            Some(Json::Array(blocks)) => {
                let base = entry.pointer("content");
                if blocks.is_empty() {
                    self.message(pointer, role);
                }
                for (j, block) in blocks.iter().enumerate() {
                    let block = Members::from_json(block, format!("{base}/{j}"), self.faults);
                    if let Some(block) = block {
                        self.block(&block, role, pointer, j);
                    }
                }
            }
            _ => {
                let parts = self.texts(entry, "content");
                self.message(pointer, role).parts.extend(parts);
            }
        }
    }

    /// Reads block `j` of a message.
    fn block(&mut self, block: &Members<'_>, role: &'static str, pointer: &str, j: usize) {
        refuse_structure(block, self.faults);
        let Some(kind) = block.required(self.faults, "type", Members::string) else { return };
        match (kind, role) {
            ("text", _) => {
                let part = text_part(block.required_string(self.faults, "text"));
                self.message(pointer, role).parts.push(part);
            }
            ("tool_result", "user") => {
                // Results become messages of the role `tool`, so that a last message of the user
                // holds text of this message.
                if j > 0 && self.messages.last().is_some_and(|last| last.role == "user") {
                    let message = "tool results must come before the text of their message";
                    block.fail(self.faults, "type", "order", message);
                }
                self.tool_result(block, pointer);
            }
            ("tool_use", "assistant") => {
                let call = self.call(block);
                let calls = &mut self.message(pointer, role).calls;
                let k = calls.len();
                calls.extend(call);
                let from = format!("/messages/{}/tool_calls/{k}", self.messages.len() - 1);
                self.call_pointers.push((from, format!("{pointer}/content/{j}")));
            }
            ("thinking", "assistant") => {
                let thinking = block.required_string(self.faults, "thinking");
                let message = self.message(pointer, role);
                if !thinking.is_empty() {
                    message.reasoning.push(thinking.to_owned());
                }
            }
            // Nobody can read it.
            ("redacted_thinking", "assistant") => drop(self.message(pointer, role)),
            ("tool_result" | "tool_use" | "thinking" | "redacted_thinking", _) => {
                let message = format!("the role {role:?} has no blocks of type {kind:?}");
                block.fail(self.faults, "type", "unsupported_content", message);
            }
            (kind, _) => self.unsupported(block, kind),
        }
    }

    fn unsupported(&mut self, block: &Members<'_>, kind: &str) {
        let message = format!("blocks of type {kind:?} are not supported: send text");
        block.fail(self.faults, "type", "unsupported_content", message);
    }

    fn tool_result(&mut self, block: &Members<'_>, pointer: &str) {
        let id = block.required_string(self.faults, "tool_use_id");
        let is_error = block.boolean(self.faults, "is_error").unwrap_or(false);
        let mut parts: Vec<Json> = Vec::new();
        if is_error {
            parts.push(text_part(ERROR_LINE));
        }
        if block.get("content").is_some() {
            parts.extend(self.texts(block, "content"));
        }
        let message = self.message(pointer, "tool");
        message.parts = parts;
        message.call_id = Some(call_id::from_client(id));
        let from = format!("/messages/{}/tool_call_id", self.messages.len() - 1);
        self.call_pointers.push((from, block.pointer("tool_use_id")));
    }

    fn call(&mut self, block: &Members<'_>) -> Option<Json> {
        let (id, name) =
            (block.required_string(self.faults, "id"), block.required_string(self.faults, "name"));
        block.required(self.faults, "input", Members::object)?;
        let arguments = block.get("input")?.to_string();
        let function = object([("name", text(name)), ("arguments", text(&arguments))]);
        let id = ("id", text(&call_id::from_client(id)));
        Some(object([id, ("type", text("function")), ("function", function)]))
    }

    /// The text parts of a member that is a text or a list of text blocks.
    fn texts(&mut self, holder: &Members<'_>, name: &str) -> Vec<Json> {
        match holder.get(name) {
            None if is_null(holder, name) => {
                let message = "must be a string or an array of text blocks, and is null";
                holder.fail(self.faults, name, "invalid_type", message);
                Vec::new()
            }
            None => {
                holder.require(self.faults, name);
                Vec::new()
            }
            Some(Json::String(content)) => vec![text_part(content)],
            Some(Json::Array(blocks)) => {
                let base = holder.pointer(name);
                let blocks = blocks.iter().enumerate();
                blocks
                    .filter_map(|(j, block)| self.text_block(block, format!("{base}/{j}")))
                    .collect()
            }
            Some(_) => {
                let message = "must be a string or an array of text blocks";
                holder.fail(self.faults, name, "invalid_type", message);
                Vec::new()
            }
        }
    }

    fn text_block(&mut self, block: &Json, base: String) -> Option<Json> {
        let block = Members::from_json(block, base, self.faults)?;
        refuse_structure(&block, self.faults);
        let kind = block.required(self.faults, "type", Members::string)?;
        if kind != "text" {
            self.unsupported(&block, kind);
            return None;
        }
        Some(text_part(block.required_string(self.faults, "text")))
    }
}

fn text_part(content: &str) -> Json {
    object([("type", text("text")), ("text", text(content))])
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use serde_json::{Value, json};

    use super::*;
    use crate::request::to_value;

    fn read(messages: &Value) -> (Value, Vec<String>, PointerMap) {
        let body = Json::parse(&json!({"messages": messages}).to_string(), &Limits::default());
        let body = body.unwrap();
        let (mut pointers, mut faults) = (PointerMap::default(), Faults::new());
        let members = Members::from_json(&body, "", &mut faults).unwrap();
        let mut translator = ConversationTranslator::new(&mut pointers, &mut faults);
        translator.read(&members);
        let messages = to_value(&translator.finish().0);
        (messages, faults.into_iter().filter_map(|fault| fault.param).collect(), pointers)
    }

    fn part(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn conversations_are_translated() {
        let (messages, faults, pointers) = read(&json!([
            {"role": "user", "content": "a"},
            {"role": "user", "content": [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}, part("c"),
                {"type": "tool_use", "id": "toolu_0123456789abcdef", "name": "f", "input": {"n": 1.50}},
                {"type": "tool_use", "id": "mine", "name": "g", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_0123456789abcdef", "content": "r"},
                {"type": "tool_result", "tool_use_id": "mine", "is_error": true, "content": [part("s"), part("t")]},
                part("d")]},
            {"role": "system", "content": "e"},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "mine"}]},
        ]));
        assert_eq!(faults, [""; 0]);
        let expected = json!([
            {"role": "user", "content": [part("a"), part("b")]},
            {"role": "assistant", "content": [part("c")], "reasoning_content": "hm", "tool_calls": [
                {"id": "call_0123456789abcdef", "type": "function", "function": {"name": "f", "arguments": "{\"n\":1.5}"}},
                {"id": "mine", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
            {"role": "tool", "content": [part("r")], "tool_call_id": "call_0123456789abcdef"},
            {"role": "tool", "content": [part("Error:"), part("s"), part("t")], "tool_call_id": "mine"},
            {"role": "user", "content": [part("d")]},
            {"role": "system", "content": [part("e")]},
            {"role": "tool", "content": [], "tool_call_id": "mine"},
        ]);
        assert_eq!(messages, expected);
        assert_eq!(pointers.original("/messages/4/content"), "/messages/3/content");
    }

    #[test]
    fn all_faults_are_reported_with_pointers() {
        let (_, faults, _) = read(&json!([
            5,
            {"content": "x"},
            {"role": "tool", "content": "x"},
            {"role": "user"},
            {"role": "user", "content": 5},
            {"role": "user", "content": [7, {}, {"type": "text"}, {"type": "image", "source": {}}, {"type": "tool_use", "id": "a", "name": "b", "input": {}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "input": []}, {"type": "tool_result", "tool_use_id": "x"}, {"type": "thinking"}]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "document"}]}, part("x"), {"type": "tool_result", "tool_use_id": "x"}]},
            {"role": "assistant", "content": "{"},
        ]));
        let expected = [
            "/messages/0",
            "/messages/1/role",
            "/messages/2/role",
            "/messages/3/content",
            "/messages/4/content",
            "/messages/5/content/0",
            "/messages/5/content/1/type",
            "/messages/5/content/2/text",
            "/messages/5/content/3/type",
            "/messages/5/content/4/type",
            "/messages/6/content/0/id",
            "/messages/6/content/0/name",
            "/messages/6/content/0/input",
            "/messages/6/content/1/type",
            "/messages/6/content/2/thinking",
            "/messages/7/content/0/tool_use_id",
            "/messages/7/content/0/content/0/type",
            "/messages/7/content/2/type",
            "/messages/8/role",
        ];
        assert_eq!(faults, expected);
        assert_eq!(read(&json!([])).1, ["/messages"]);
        assert_eq!(read(&json!("x")).1, ["/messages"]);
    }
}
