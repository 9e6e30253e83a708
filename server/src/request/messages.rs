//! Conversion of messages from OpenAI's format to the format that chat templates take.

use louver::limits::Limits;
use louver::spec::json::Json;
use louver_formats::{CUSTOM_INPUT, CallKind, exact_value};
use louver_mistralrs::join_text_parts;
use serde_json::{Map, Value, json};

use crate::limits::RequestLimits;
use crate::request::call_history::{CallHistory, ResultOrder};
use crate::request::foreign_members::MEDIA;
use crate::request::member_table::{refuse_members, refuse_structure};
use crate::request::members::{Faults, Members};

/// The member of a call that has its name and content, which is also its `type`, and the member of
/// the content.
pub(crate) fn call_members(kind: CallKind) -> (&'static str, &'static str) {
    match kind {
        CallKind::Function => ("function", "arguments"),
        CallKind::Custom => ("custom", "input"),
    }
}

/// A call as chat templates take it, with the text of its arguments or of its input.
pub(crate) fn template_call(id: &str, kind: CallKind, name: &str, text: &str) -> Value {
    let arguments = match kind {
        CallKind::Custom => json!({CUSTOM_INPUT: text}),
        CallKind::Function if text.trim().is_empty() => json!({}),
        // Templates expect objects. Anything else, such as an earlier truncated call, is shown as
        // text. An object with numbers that would be rounded remains text for templates that want
        // one.
        CallKind::Function => {
            let limits = Limits::default().with_source_bytes(usize::MAX);
            let object = Json::parse(text, &limits).ok().filter(|json| json.as_object().is_some());
            let exact = object.and_then(|object| exact_value(&object).ok());
            exact.unwrap_or_else(|| text.into())
        }
    };
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Parses `messages`. Text parts are joined by line feeds. A tool result gets the name of the tool
/// whose call it answers, because some templates need it.
pub(crate) fn read(
    body: &Members<'_>,
    limits: &RequestLimits,
    order: ResultOrder,
    faults: &mut Faults,
) -> Vec<Value> {
    let Some(entries) = body.required(faults, "messages", Members::array) else {
        return Vec::new();
    };
    let calls: usize = entries.iter().map(call_count).sum();
    if entries.is_empty() || entries.len() + calls > limits.messages {
        let max = limits.messages;
        let message = format!("must have from 1 to {max} messages, with the calls in them");
        body.fail(faults, "messages", "out_of_range", message);
        return Vec::new();
    }
    let mut reader = MessageReader { history: CallHistory::new(order), faults };
    let base = body.pointer("messages");
    let entries = entries.iter().enumerate();
    let messages =
        entries.filter_map(|(i, entry)| reader.message(entry, format!("{base}/{i}"))).collect();
    reader.history.end(reader.faults);
    messages
}

/// The texts of reasoning in parts, as gateways send it. Encrypted parts have none.
fn reasoning_blocks(members: &Members<'_>) -> Option<String> {
    let parts = [("reasoning_details", "text"), ("thinking_blocks", "thinking")];
    parts.iter().find_map(|(name, text)| {
        let blocks = members.get(name).and_then(Json::as_array)?.iter();
        let texts = blocks.filter_map(|block| block.get(text).and_then(Json::as_str));
        Some(texts.collect::<String>()).filter(|text| !text.is_empty())
    })
}

/// The number of calls of a message.
fn call_count(message: &Json) -> usize {
    message.get("tool_calls").and_then(Json::as_array).map_or(0, <[Json]>::len)
}

/// Whether a member is `null`, not absent.
pub(crate) fn is_null(members: &Members<'_>, name: &str) -> bool {
    members.iter().any(|(other, value)| other == name && *value == Json::Null)
}

struct MessageReader<'f> {
    history: CallHistory,
    faults: &'f mut Faults,
}

impl MessageReader<'_> {
    fn message(&mut self, entry: &Json, base: String) -> Option<Value> {
        let members = Members::from_json(entry, base, self.faults)?;
        refuse_structure(&members, self.faults);
        refuse_members(&members, &MEDIA, self.faults);
        let role = members.require(self.faults, "role")?;
        let mut out = Map::new();
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
        self.history.begin_message(role, self.faults);
        out.insert("role".to_owned(), role.into());
        out.insert("content".to_owned(), self.content(&members, role).into());
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

    fn content(&mut self, members: &Members<'_>, role: &str) -> String {
        match members.get("content") {
            // Some models refuse in a member of its own.
            None if role == "assistant" && members.get("refusal").is_some() => {
                members.string(self.faults, "refusal").unwrap_or_default().to_owned()
            }
            // Clients send answers that had calls or reasoning only without content.
            None if role == "assistant" && has_other_output(members) => String::new(),
            None => {
                let is_null = is_null(members, "content");
                let (code, message) = match (role, is_null) {
                    ("assistant", true) => {
                        ("missing", "is null: an assistant message has text, calls or reasoning")
                    }
                    ("assistant", false) => {
                        ("missing", "is missing: an assistant message has text, calls or reasoning")
                    }
                    (_, true) => {
                        ("invalid_type", "must be a string or an array of text parts, and is null")
                    }
                    (_, false) => ("missing", "is missing"),
                };
                members.fail(self.faults, "content", code, message);
                String::new()
            }
            Some(Json::String(text)) => text.clone(),
            Some(Json::Array(parts)) => {
                let base = members.pointer("content");
                let texts = parts
                    .iter()
                    .enumerate()
                    .filter_map(|(i, part)| self.part(part, format!("{base}/{i}")));
                join_text_parts(&texts.collect::<Vec<_>>())
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

    fn part<'p>(&mut self, part: &'p Json, base: String) -> Option<&'p str> {
        let members = Members::from_json(part, base, self.faults)?;
        refuse_structure(&members, self.faults);
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
        members.required(self.faults, text, Members::string)
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
        // The second is the name in vLLM and OpenRouter, the third in Ollama.
        let mut texts = ["reasoning_content", "reasoning", "thinking"].into_iter();
        let text = texts.find_map(|name| members.string(self.faults, name)).map(str::to_owned);
        if let Some(text) = text.or_else(|| reasoning_blocks(members)) {
            out.insert("reasoning_content".to_owned(), text.into());
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
        let members = Members::from_json(call, &*base, self.faults)?;
        let id = members.required(self.faults, "id", Members::string);
        let is_custom = members.get("type").and_then(Json::as_str) == Some("custom");
        let kind = if is_custom { CallKind::Custom } else { CallKind::Function };
        let (holder, text) = call_members(kind);
        let function = members.required(self.faults, holder, Members::object);
        let name = function
            .as_ref()
            .and_then(|function| function.required(self.faults, "name", Members::string));
        self.history.call(&members, &base, id, name.unwrap_or_default(), self.faults);
        let (id, function, name) = (id?, function?, name?);
        let argument_text = function.string(self.faults, text).unwrap_or_default();
        Some(template_call(id, kind, name, argument_text))
    }

    fn tool(&mut self, members: &Members<'_>, out: &mut Map<String, Value>) {
        let id = members.required(self.faults, "tool_call_id", Members::string);
        let tool = self.history.result(members, id, self.faults);
        let Some(id) = id else { return };
        out.insert("tool_call_id".to_owned(), id.into());
        if let (None, Some(tool)) = (out.get("name"), tool) {
            out.insert("name".to_owned(), tool.into());
        }
    }
}

/// Whether an assistant message has anything besides text, be it supported or not.
fn has_other_output(members: &Members<'_>) -> bool {
    let has_calls = match members.get("tool_calls") {
        Some(Json::Array(calls)) => !calls.is_empty(),
        other => other.is_some(),
    };
    let others = [
        "reasoning_content",
        "reasoning",
        "thinking",
        "reasoning_details",
        "thinking_blocks",
        "refusal",
        "function_call",
        "audio",
    ];
    has_calls || others.iter().any(|name| members.get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> (Vec<Value>, Vec<String>) {
        let json = Json::parse(text, &Limits::default()).unwrap();
        let mut faults = Faults::new();
        let members = Members::from_json(&json, "", &mut faults).unwrap();
        let order = ResultOrder::AfterMessage;
        let messages = read(&members, &RequestLimits::default(), order, &mut faults);
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
                {"role": "tool", "tool_call_id": "3", "content": "s"},
                {"role": "tool", "tool_call_id": "2", "name": "own", "content": "t"},
                {"role": "assistant", "content": "done", "reasoning_content": "hm"},
                {"role": "assistant", "reasoning": "so"},
                {"role": "assistant", "content": null, "refusal": "no"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "4", "type": "function", "function": {"name": "f", "arguments": "{\"n\": 12345678901234567890123}"}}]},
                {"role": "tool", "tool_call_id": "4", "content": "u"},
                {"role": "assistant", "reasoning": "b", "reasoning_content": "a"},
                {"role": "assistant", "content": "e", "thinking": "ollama"},
                {"role": "assistant", "content": "e", "reasoning_details": [
                    {"type": "reasoning.text", "text": "in "}, {"type": "reasoning.encrypted", "data": "x"},
                    {"type": "reasoning.text", "text": "parts"}]},
                {"role": "assistant", "content": "e", "thinking_blocks": [{"type": "redacted_thinking"}]}
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
            {"role": "tool", "content": "s", "tool_call_id": "3", "name": "c"},
            {"role": "tool", "content": "t", "tool_call_id": "2", "name": "own"},
            {"role": "assistant", "content": "done", "reasoning_content": "hm"},
            {"role": "assistant", "content": "", "reasoning_content": "so"},
            {"role": "assistant", "content": "no"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "4", "type": "function", "function": {"name": "f", "arguments": "{\"n\": 12345678901234567890123}"}}]},
            {"role": "tool", "content": "u", "tool_call_id": "4", "name": "f"},
            {"role": "assistant", "content": "", "reasoning_content": "a"},
            {"role": "assistant", "content": "e", "reasoning_content": "ollama"},
            {"role": "assistant", "content": "e", "reasoning_content": "in parts"},
            {"role": "assistant", "content": "e"},
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
            "/messages/7/tool_calls/0/id",
            "/messages/7/tool_calls/0/function",
            "/messages/7/tool_calls/1/id",
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
