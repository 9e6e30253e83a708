//! Output items of the Responses API, and the stream events that build them.

use louver_formats::{CallKind, Event};
use serde_json::{Value, json};

use crate::responses::tools::{OfferedTool, ToolNames};
use crate::turn::ToolResult;

/// The growing output of one response. Items are the same whether or not the events are streamed.
#[derive(Debug)]
pub(crate) struct OutputItems {
    /// Suffix of all item ids.
    suffix: String,
    /// What the names of the tools stand for.
    names: ToolNames,
    items: Vec<Value>,
    open: Option<OpenItem>,
    /// Ids of the calls that the server runs, and the indices of their items.
    running: Vec<(String, usize)>,
    /// Items that list tools of MCP servers, before their ids.
    lists: Vec<Value>,
    /// The next sequence number.
    next_sequence: u64,
    events: Vec<Value>,
}

/// The item in progress.
#[derive(Debug)]
enum OpenItem {
    Reasoning { text: String },
    Message { text: String },
    Call { id: String, name: String, arguments: String, kind: CallKind },
}

impl OutputItems {
    /// Empty output.
    pub(crate) fn new(suffix: impl Into<String>, names: ToolNames) -> OutputItems {
        OutputItems {
            suffix: suffix.into(),
            names,
            items: Vec::new(),
            open: None,
            running: Vec::new(),
            lists: Vec::new(),
            next_sequence: 0,
            events: Vec::new(),
        }
    }

    /// Sets the items that list the tools of MCP servers.
    pub(crate) fn with_lists(mut self, lists: Vec<Value>) -> Self {
        self.lists = lists;
        self
    }

    /// Adds the items that list the tools of MCP servers. They precede all others.
    pub(crate) fn begin_lists(&mut self) {
        for mut item in std::mem::take(&mut self.lists) {
            let index = self.index();
            item["id"] = format!("mcpl_{}{index:02}", self.suffix).into();
            let at = json!({"output_index": index, "item_id": item["id"]});
            let mut empty = item.clone();
            empty["tools"] = json!([]);
            self.event("response.output_item.added", json!({"output_index": index, "item": empty}));
            self.event("response.mcp_list_tools.in_progress", at.clone());
            self.event("response.mcp_list_tools.completed", at);
            self.event("response.output_item.done", json!({"output_index": index, "item": item}));
            self.items.push(item);
        }
    }

    /// Adds the results of calls that the server ran.
    pub(crate) fn tool_results(&mut self, results: &[ToolResult]) {
        for result in results {
            let Some(k) = self.running.iter().position(|(id, _)| *id == result.id) else {
                continue;
            };
            let (_, index) = self.running.remove(k);
            let item = &mut self.items[index];
            let word = match &result.output {
                Ok(output) => {
                    item["output"] = output.as_str().into();
                    "completed"
                }
                Err(error) => {
                    let content = json!([{"type": "text", "text": error}]);
                    item["error"] = json!({"type": "mcp_tool_execution_error", "content": content});
                    "failed"
                }
            };
            item["status"] = word.into();
            let item = item.clone();
            let at = json!({"output_index": index, "item_id": item["id"]});
            self.event(&format!("response.mcp_call.{word}"), at);
            self.event("response.output_item.done", json!({"output_index": index, "item": item}));
        }
    }

    /// Appends a numbered event of this type with these members.
    pub(crate) fn event(&mut self, kind: &str, members: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.next_sequence});
        self.next_sequence += 1;
        if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
            event.extend(members);
        }
        self.events.push(event);
    }

    /// The events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// The completed items, and incomplete ones that are worth keeping.
    pub(crate) fn items(&self) -> &[Value] {
        &self.items
    }

    /// Processes the next output event.
    pub(crate) fn push(&mut self, event: &Event) {
        match event {
            Event::TextDelta { delta } => {
                if !matches!(self.open, Some(OpenItem::Message { .. })) {
                    self.close("completed");
                    self.begin(OpenItem::Message { text: String::new() });
                }
                self.delta("response.output_text.delta", delta);
            }
            Event::ReasoningDelta { delta } => {
                if !matches!(self.open, Some(OpenItem::Reasoning { .. })) {
                    self.close("completed");
                    self.begin(OpenItem::Reasoning { text: String::new() });
                }
                self.delta("response.reasoning_text.delta", delta);
            }
            Event::CallStart { id, name, kind, .. } => {
                self.close("completed");
                let (id, name) = (id.clone(), name.clone());
                self.begin(OpenItem::Call { id, name, arguments: String::new(), kind: *kind });
            }
            Event::ArgumentsDelta { delta, .. } => match &mut self.open {
                Some(OpenItem::Call { kind: CallKind::Custom, .. }) => {
                    self.delta("response.custom_tool_call_input.delta", delta);
                }
                // The arguments of searches have no events.
                Some(OpenItem::Call { name, arguments, .. }) if self.names.is_search(name) => {
                    arguments.push_str(delta);
                }
                Some(OpenItem::Call { name, .. }) if self.names.mcp(name).is_some() => {
                    self.delta("response.mcp_call_arguments.delta", delta);
                }
                _ => self.delta("response.function_call_arguments.delta", delta),
            },
            Event::CallEnd { .. } => self.close("completed"),
            Event::Incomplete { .. } => self.close("incomplete"),
            _ => {}
        }
    }

    /// Ends the output; `is_truncated` if the generation was cut off.
    pub(crate) fn finish(&mut self, is_truncated: bool) {
        self.close(if is_truncated { "incomplete" } else { "completed" });
        // Calls that the server has not run, as the turn was cut off after them.
        for (_, index) in std::mem::take(&mut self.running) {
            self.items[index]["status"] = "incomplete".into();
            let item = self.items[index].clone();
            self.event("response.output_item.done", json!({"output_index": index, "item": item}));
        }
    }

    fn is_mcp_call(&self) -> bool {
        matches!(&self.open, Some(OpenItem::Call { name, .. }) if self.names.mcp(name).is_some())
    }

    fn index(&self) -> usize {
        self.items.len()
    }

    fn begin(&mut self, open: OpenItem) {
        let item = self.item(&open, "in_progress");
        let index = self.index();
        self.open = Some(open);
        self.event("response.output_item.added", json!({"output_index": index, "item": item}));
        if self.is_mcp_call() {
            self.event("response.mcp_call.in_progress", self.event_location());
        }
        if let Some(part) = self.part() {
            let event_location = self.event_location();
            self.event("response.content_part.added", with_member(event_location, "part", part));
        }
    }

    fn delta(&mut self, kind: &str, delta: &str) {
        let Some(
            OpenItem::Reasoning { text }
            | OpenItem::Message { text }
            | OpenItem::Call { arguments: text, .. },
        ) = &mut self.open
        else {
            return;
        };
        text.push_str(delta);
        let mut members = with_member(self.event_location(), "delta", delta.into());
        if kind == "response.output_text.delta" {
            members["logprobs"] = json!([]);
        }
        self.event(kind, members);
    }

    /// Closes the item in progress. A truncated call is dropped.
    fn close(&mut self, status: &str) {
        let Some(open) = self.open.take() else { return };
        if status != "completed" && matches!(open, OpenItem::Call { .. }) {
            return;
        }
        let item = self.item(&open, status);
        self.open = Some(open);
        let (event_location, index) = (self.event_location(), self.index());
        match &self.open {
            Some(OpenItem::Message { text }) => {
                let members = with_member(
                    with_member(event_location.clone(), "text", text.as_str().into()),
                    "logprobs",
                    json!([]),
                );
                self.event("response.output_text.done", members);
            }
            Some(OpenItem::Reasoning { text }) => {
                let members = with_member(event_location.clone(), "text", text.as_str().into());
                self.event("response.reasoning_text.done", members);
            }
            Some(OpenItem::Call { kind: CallKind::Custom, arguments, .. }) => {
                let members =
                    with_member(event_location.clone(), "input", arguments.as_str().into());
                self.event("response.custom_tool_call_input.done", members);
            }
            Some(OpenItem::Call { name, .. }) if self.names.is_search(name) => {}
            Some(OpenItem::Call { id, name, arguments, .. }) if self.names.mcp(name).is_some() => {
                // The item is done when the server has run the call.
                self.running.push((id.clone(), index));
                let members = with_member(event_location, "arguments", arguments.as_str().into());
                self.event("response.mcp_call_arguments.done", members);
                self.items.push(item);
                self.open = None;
                return;
            }
            Some(OpenItem::Call { arguments, .. }) => {
                let members = with_member(
                    with_member(event_location.clone(), "arguments", arguments.as_str().into()),
                    "name",
                    item["name"].clone(),
                );
                self.event("response.function_call_arguments.done", members);
            }
            None => {}
        }
        if let Some(part) = self.part() {
            self.event("response.content_part.done", with_member(event_location, "part", part));
        }
        self.event("response.output_item.done", json!({"output_index": index, "item": item}));
        self.items.push(item);
        self.open = None;
    }

    /// The members that identify the item in progress in events.
    fn event_location(&self) -> Value {
        let index = self.index();
        match &self.open {
            Some(open @ (OpenItem::Reasoning { .. } | OpenItem::Message { .. })) => {
                json!({"item_id": self.item_id(open), "output_index": index, "content_index": 0})
            }
            Some(open) => json!({"item_id": self.item_id(open), "output_index": index}),
            None => json!({"output_index": index}),
        }
    }

    fn item_id(&self, open: &OpenItem) -> String {
        let prefix = match open {
            OpenItem::Reasoning { .. } => "rs",
            OpenItem::Message { .. } => "msg",
            OpenItem::Call { kind: CallKind::Custom, .. } => "ctc",
            OpenItem::Call { name, .. } if self.names.is_search(name) => "tsc",
            OpenItem::Call { name, .. } if self.names.mcp(name).is_some() => "mcp",
            OpenItem::Call { .. } => "fc",
        };
        format!("{prefix}_{}{:02}", self.suffix, self.index())
    }

    /// The content part of the item in progress, if it has one.
    fn part(&self) -> Option<Value> {
        match &self.open {
            Some(OpenItem::Reasoning { text }) => {
                Some(json!({"type": "reasoning_text", "text": text}))
            }
            Some(OpenItem::Message { text }) => Some(output_text(text)),
            _ => None,
        }
    }

    fn item(&self, open: &OpenItem, status: &str) -> Value {
        let id = self.item_id(open);
        // A new item has no content yet.
        let has_content = status != "in_progress";
        match open {
            OpenItem::Reasoning { text } => {
                let content = if has_content {
                    json!([{"type": "reasoning_text", "text": text}])
                } else {
                    json!([])
                };
                json!({"id": id, "type": "reasoning", "summary": [], "content": content, "status": status})
            }
            OpenItem::Message { text } => {
                let content = if has_content { json!([output_text(text)]) } else { json!([]) };
                json!({"id": id, "type": "message", "role": "assistant", "content": content, "status": status})
            }
            OpenItem::Call { id: call, name, arguments, kind } => {
                let (name, namespace) = match self.names.meaning(name) {
                    Some(OfferedTool::Search) => {
                        // An object; not yet one in a new item.
                        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                        return json!({"id": id, "type": "tool_search_call", "call_id": call, "execution": "client", "arguments": arguments, "status": status});
                    }
                    Some(OfferedTool::Mcp { label, name }) => {
                        let status = if has_content { "calling" } else { status };
                        return json!({"id": id, "type": "mcp_call", "server_label": label, "name": name, "arguments": arguments, "output": null, "error": null, "approval_request_id": null, "status": status});
                    }
                    Some(OfferedTool::Namespaced { namespace, name }) => (name, Some(namespace)),
                    None => (name, None),
                };
                let mut item = match kind {
                    CallKind::Custom => {
                        json!({"id": id, "type": "custom_tool_call", "call_id": call, "name": name, "input": arguments, "status": status})
                    }
                    CallKind::Function => {
                        json!({"id": id, "type": "function_call", "call_id": call, "name": name, "arguments": arguments, "status": status})
                    }
                };
                if let Some(namespace) = namespace {
                    item["namespace"] = namespace.as_str().into();
                }
                item
            }
        }
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn with_member(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

#[cfg(test)]
mod tests {
    use louver_formats::Cut;

    use super::*;

    fn run(events: &[Event]) -> (Vec<Value>, Vec<Value>) {
        let mut output = OutputItems::new("x", ToolNames::default());
        events.iter().for_each(|event| output.push(event));
        output.finish(false);
        let events = output.take_events();
        (output.items, events)
    }

    fn text(delta: &str) -> Event {
        Event::TextDelta { delta: delta.to_owned() }
    }

    fn start(index: usize, name: &str, kind: CallKind) -> Event {
        Event::CallStart { index, id: format!("call_{index}"), name: name.to_owned(), kind }
    }

    fn arguments(index: usize, delta: &str) -> Event {
        Event::ArgumentsDelta { index, delta: delta.to_owned() }
    }

    /// Rebuilds the items from the events alone.
    fn rebuilt(events: &[Value]) -> Vec<Value> {
        let mut items: Vec<Value> = Vec::new();
        for (n, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], n);
            let at = event["output_index"].as_u64().expect("an index") as usize;
            let append = |to: &mut Value, what: &str| {
                *to = format!("{}{}", to.as_str().unwrap(), event[what].as_str().unwrap()).into()
            };
            match event["type"].as_str().expect("a type") {
                "response.output_item.added" => {
                    assert_eq!(at, items.len());
                    items.push(event["item"].clone());
                }
                "response.content_part.added" => {
                    items[at]["content"].as_array_mut().unwrap().push(event["part"].clone())
                }
                "response.output_text.delta" | "response.reasoning_text.delta" => {
                    assert_eq!(event["item_id"], items[at]["id"]);
                    append(&mut items[at]["content"][0]["text"], "delta");
                }
                "response.function_call_arguments.delta" => {
                    append(&mut items[at]["arguments"], "delta")
                }
                "response.custom_tool_call_input.delta" => append(&mut items[at]["input"], "delta"),
                "response.output_text.done" | "response.reasoning_text.done" => {
                    assert_eq!(event["text"], items[at]["content"][0]["text"])
                }
                "response.function_call_arguments.done" => {
                    assert_eq!(event["arguments"], items[at]["arguments"])
                }
                "response.custom_tool_call_input.done" => {
                    assert_eq!(event["input"], items[at]["input"])
                }
                "response.content_part.done" => assert_eq!(event["part"], items[at]["content"][0]),
                "response.output_item.done" => {
                    let status = event["item"]["status"].clone();
                    assert_ne!(status, "in_progress");
                    items[at]["status"] = status;
                    assert_eq!(event["item"], items[at]);
                }
                other => panic!("{other}"),
            }
        }
        items.retain(|item| item["status"] != "in_progress");
        items
    }

    #[test]
    fn stream_events_rebuild_the_items() {
        let whole = [
            Event::ReasoningDelta { delta: "Hm".into() },
            Event::ReasoningDelta { delta: ".".into() },
            text("a"),
            text("b"),
            start(0, "f", CallKind::Function),
            arguments(0, "{\"x\""),
            arguments(0, ": 1}"),
            Event::CallEnd { index: 0 },
            start(1, "c", CallKind::Custom),
            arguments(1, "1+1"),
            Event::CallEnd { index: 1 },
            text("done"),
            Event::End,
        ];
        let (items, events) = run(&whole);
        assert_eq!(rebuilt(&events), items);
        let kinds: Vec<&str> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["reasoning", "message", "function_call", "custom_tool_call", "message"]);
        assert_eq!(
            (&items[2]["arguments"], &items[2]["call_id"]),
            (&json!("{\"x\": 1}"), &json!("call_0"))
        );
        assert_eq!((&items[3]["input"], &items[3]["name"]), (&json!("1+1"), &json!("c")));
        assert!(items.iter().all(|item| item["status"] == "completed"));
        let mut ids: Vec<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
        ids.dedup();
        assert_eq!(ids, ["rs_x00", "msg_x01", "fc_x02", "ctc_x03", "msg_x04"]);
        // Cut off anywhere.
        for end in 0..whole.len() {
            let stopped = Event::Incomplete { why: Cut::Turn, call: None, partial: String::new() };
            let (items, events) = run(&[&whole[..end], &[stopped, Event::End]].concat());
            assert_eq!(rebuilt(&events), items);
            let calls = items.iter().filter(|item| item.get("call_id").is_some());
            assert!(calls.clone().all(|call| call["status"] == "completed"));
            let ended =
                whole[..end].iter().filter(|event| matches!(event, Event::CallEnd { .. })).count();
            assert_eq!(calls.count(), ended);
        }
    }
}
