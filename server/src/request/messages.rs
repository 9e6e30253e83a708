//! Conversion of messages from OpenAI's format to the format that chat templates take.

use std::collections::HashMap;

use louver::spec::json::Json;
use louver_formats::CallKind;
use serde_json::{Map, Value, json};

use crate::limits::RequestLimits;
use crate::request::members::{Faults, Members};

/// The argument name for a custom tool's input, in wire formats whose arguments are JSON.
pub(crate) const CUSTOM_INPUT: &str = "input";

/// The member of a call that has its name and content, which is also its `type`, and the member of
/// the content.
pub(crate) fn call_members(kind: CallKind) -> (&'static str, &'static str) {
    match kind {
        CallKind::Function => ("function", "arguments"),
        CallKind::Custom => ("custom", "input"),
    }
}

/// Parses `messages`. Text parts are joined by line feeds. A tool result gets the name of the tool
/// whose call it answers, because some templates need it.
pub(crate) fn read(body: &Members<'_>, limits: &RequestLimits, faults: &mut Faults) -> Vec<Value> {
    let Some(entries) = body.required(faults, "messages", Members::array) else {
        return Vec::new();
    };
    if entries.is_empty() || entries.len() > limits.messages {
        let message = format!("must have from 1 to {} messages", limits.messages);
        body.fail(faults, "messages", "out_of_range", message);
        return Vec::new();
    }
    let mut reader = MessageReader { tool_names: HashMap::new(), faults };
    let base = body.pointer("messages");
    entries
        .iter()
        .enumerate()
        .filter_map(|(i, entry)| reader.message(entry, format!("{base}/{i}")))
        .collect()
}

struct MessageReader<'f> {
    /// Names of the called tools, by call id.
    tool_names: HashMap<String, String>,
    faults: &'f mut Faults,
}

impl MessageReader<'_> {
    fn message(&mut self, entry: &Json, base: String) -> Option<Value> {
        let members = Members::from_json(entry, base, self.faults)?;
        let role = members.require(self.faults, "role")?;
        let mut out = Map::new();
        let is_assistant = role.as_str() == Some("assistant");
        let role = match role.as_str() {
            // Templates have one role for both.
            Some("system" | "developer") => "system",
            Some(role @ ("user" | "assistant" | "tool")) => role,
            Some("function") => {
                members.fail(
                    self.faults,
                    "role",
                    "unsupported",
                    "the role `function` was removed: use `tool`",
                );
                return None;
            }
            _ => {
                let message =
                    "must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"";
                members.fail(self.faults, "role", "unknown_value", message);
                return None;
            }
        };
        out.insert("role".to_owned(), role.into());
        // Clients send answers that had calls or reasoning only without content.
        out.insert("content".to_owned(), self.content(&members, is_assistant).into());
        if let Some(name) = members.string(self.faults, "name") {
            out.insert("name".to_owned(), name.into());
        }
        match role {
            "assistant" => self.assistant(&members, &mut out),
            "tool" => self.tool(&members, &mut out),
            _ => {}
        }
        Some(Value::Object(out))
    }

    fn content(&mut self, members: &Members<'_>, may_be_absent: bool) -> String {
        match members.get("content") {
            None if may_be_absent => String::new(),
            None => {
                members.require(self.faults, "content");
                String::new()
            }
            Some(Json::String(text)) => text.clone(),
            Some(Json::Array(parts)) => {
                let base = members.pointer("content");
                let texts = parts
                    .iter()
                    .enumerate()
                    .filter_map(|(i, part)| self.part(part, format!("{base}/{i}")));
                texts.collect::<Vec<_>>().join("\n")
            }
            Some(_) => {
                members.fail(
                    self.faults,
                    "content",
                    "invalid_type",
                    "must be a string or an array of text parts",
                );
                String::new()
            }
        }
    }

    fn part(&mut self, part: &Json, base: String) -> Option<String> {
        let members = Members::from_json(part, base, self.faults)?;
        let kind = members.string(self.faults, "type");
        let text = match kind {
            Some("text" | "input_text" | "output_text") => "text",
            Some("refusal") => "refusal",
            _ => {
                let message = "only parts of type \"text\" are supported";
                members.fail(self.faults, "type", "unsupported_content", message);
                return None;
            }
        };
        members.required(self.faults, text, Members::string).map(str::to_owned)
    }

    fn assistant(&mut self, members: &Members<'_>, out: &mut Map<String, Value>) {
        if members.get("function_call").is_some() {
            members.fail(
                self.faults,
                "function_call",
                "unsupported",
                "`function_call` was removed: use `tool_calls`",
            );
        }
        if members.get("audio").is_some() {
            members.fail(self.faults, "audio", "unsupported", "the server does not support audio");
        }
        for name in ["prefix", "partial"] {
            if members.boolean(self.faults, name) == Some(true) {
                members.fail(self.faults, name, "unsupported", "messages are not continued");
            }
        }
        if let Some(reasoning) = members.string(self.faults, "reasoning_content") {
            out.insert("reasoning_content".to_owned(), reasoning.into());
        }
        let Some(calls) = members.array(self.faults, "tool_calls") else { return };
        let base = members.pointer("tool_calls");
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .filter_map(|(i, call)| self.call(call, format!("{base}/{i}")))
            .collect();
        if !calls.is_empty() {
            out.insert("tool_calls".to_owned(), calls.into());
        }
    }

    fn call(&mut self, call: &Json, base: String) -> Option<Value> {
        let members = Members::from_json(call, base, self.faults)?;
        let id = members.string(self.faults, "id").unwrap_or_default();
        let is_custom = members.get("type").and_then(Json::as_str) == Some("custom");
        let kind = if is_custom { CallKind::Custom } else { CallKind::Function };
        let (holder, text) = call_members(kind);
        let function = members.required(self.faults, holder, Members::object)?;
        let name = function.required(self.faults, "name", Members::string)?;
        let argument_text = function.string(self.faults, text).unwrap_or_default();
        let arguments = if is_custom {
            json!({CUSTOM_INPUT: argument_text})
        } else if argument_text.trim().is_empty() {
            json!({})
        } else {
            // Templates expect objects. Anything else, such as an earlier truncated call, is shown
            // as text.
            let parsed = serde_json::from_str::<Value>(argument_text).ok().filter(Value::is_object);
            parsed.unwrap_or_else(|| argument_text.into())
        };
        self.tool_names.insert(id.to_owned(), name.to_owned());
        Some(
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}),
        )
    }

    fn tool(&mut self, members: &Members<'_>, out: &mut Map<String, Value>) {
        let Some(id) = members.required(self.faults, "tool_call_id", Members::string) else {
            return;
        };
        out.insert("tool_call_id".to_owned(), id.into());
        if let (None, Some(name)) = (out.get("name"), self.tool_names.get(id)) {
            out.insert("name".to_owned(), name.as_str().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    fn messages(text: &str) -> (Vec<Value>, Vec<String>) {
        let json = Json::parse(text, &Limits::default()).unwrap();
        let mut faults = Faults::new();
        let members = Members::from_json(&json, "", &mut faults).unwrap();
        let messages = read(&members, &RequestLimits::default(), &mut faults);
        (messages, faults.into_iter().map(|f| f.param.unwrap()).collect())
    }

    #[test]
    fn messages_are_converted_for_templates() {
        let (messages, faults) = messages(
            r#"{"messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"z\": 1, \"a\": 2}"}},
                    {"id": "2", "type": "function", "function": {"name": "g", "arguments": "{\"cut"}},
                    {"id": "3", "type": "custom", "custom": {"name": "c", "input": "x"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "r"},
                {"role": "assistant", "content": "done", "reasoning_content": "hm"}
            ]}"#,
        );
        assert_eq!(faults, [""; 0]);
        let expected = json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "a\nb"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": 2}}},
                {"id": "2", "type": "function", "function": {"name": "g", "arguments": "{\"cut"}},
                {"id": "3", "type": "function", "function": {"name": "c", "arguments": {"input": "x"}}}]},
            {"role": "tool", "content": "r", "tool_call_id": "1", "name": "f"},
            {"role": "assistant", "content": "done", "reasoning_content": "hm"},
        ]);
        assert_eq!(Value::from(messages), expected);
    }

    #[test]
    fn all_faults_are_reported_with_pointers() {
        let (_, faults) = messages(
            r#"{"messages": [
                7,
                {"content": "x"},
                {"role": "robot", "content": "x"},
                {"role": "user"},
                {"role": "user", "content": 5},
                {"role": "user", "content": [{"type": "image_url", "image_url": {}}, {"type": "text"}, "x"]},
                {"role": "assistant", "content": 1},
                {"role": "assistant", "content": "x", "function_call": {}, "tool_calls": [{}, {"function": {}}]},
                {"role": "tool", "content": "x"},
                {"role": "function", "content": "x"}
            ]}"#,
        );
        let expected = [
            "/messages/0",
            "/messages/1/role",
            "/messages/2/role",
            "/messages/3/content",
            "/messages/4/content",
            "/messages/5/content/0/type",
            "/messages/5/content/1/text",
            "/messages/5/content/2",
            "/messages/6/content",
            "/messages/7/function_call",
            "/messages/7/tool_calls/0/function",
            "/messages/7/tool_calls/1/function/name",
            "/messages/8/tool_call_id",
            "/messages/9/role",
        ];
        assert_eq!(faults, expected);
        assert_eq!(messages(r#"{"messages": []}"#).1, ["/messages"]);
        assert_eq!(messages("{}").1, ["/messages"]);
        assert_eq!(messages(r#"{"messages": "hi"}"#).1, ["/messages"]);
    }
}
