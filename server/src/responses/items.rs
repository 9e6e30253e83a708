//! Output items of the Responses API, and the stream events that build them.

use louver::limits::Limits;
use louver::spec::json::Json;
use louver_formats::{CallKind, Event, exact_value};
use louver_mistralrs::McpError;
use serde_json::{Value, json};

use crate::generation::ToolResult;
use crate::responses::tools::{OfferedTool, ToolNames};

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
    /// The next sequence number.
    next_sequence: u64,
    events: Vec<Value>,
}

/// The item in progress.
#[derive(Debug)]
struct OpenItem {
    kind: ItemKind,
    /// The content so far.
    text: String,
    /// The id of a call.
    call_id: String,
    /// The offered name of the called tool.
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Reasoning,
    Message,
    FunctionCall,
    CustomCall,
    SearchCall,
    McpCall,
}

impl ItemKind {
    fn id_prefix(self) -> &'static str {
        match self {
            ItemKind::Reasoning => "rs",
            ItemKind::Message => "msg",
            ItemKind::FunctionCall => "fc",
            ItemKind::CustomCall => "ctc",
            ItemKind::SearchCall => "tsc",
            ItemKind::McpCall => "mcp",
        }
    }

    fn is_call(self) -> bool {
        !matches!(self, ItemKind::Reasoning | ItemKind::Message)
    }

    /// The stem of the types of its content events, and the member with the whole content. The
    /// arguments of searches have no events.
    fn content_event(self) -> Option<(&'static str, &'static str)> {
        match self {
            ItemKind::Reasoning => Some(("reasoning_text", "text")),
            ItemKind::Message => Some(("output_text", "text")),
            ItemKind::FunctionCall => Some(("function_call_arguments", "arguments")),
            ItemKind::CustomCall => Some(("custom_tool_call_input", "input")),
            ItemKind::SearchCall => None,
            ItemKind::McpCall => Some(("mcp_call_arguments", "arguments")),
        }
    }
}

impl OpenItem {
    /// The content part, if items of this kind have one.
    fn part(&self) -> Option<Value> {
        let text = &self.text;
        match self.kind {
            ItemKind::Reasoning => Some(json!({"type": "reasoning_text", "text": text})),
            ItemKind::Message => Some(
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
            ),
            _ => None,
        }
    }
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
            next_sequence: 0,
            events: Vec::new(),
        }
    }

    /// Adds the items that list the tools of MCP servers. They precede all others.
    pub(crate) fn add_lists(&mut self, lists: Vec<Value>) {
        for mut item in lists {
            let index = self.index();
            item["id"] = format!("mcpl_{}{index:02}", self.suffix).into();
            let at = json!({"output_index": index, "item_id": item["id"]});
            let mut empty = item.clone();
            empty["tools"] = json!([]);
            self.item_event("added", index, &empty);
            self.event("response.mcp_list_tools.in_progress", at.clone());
            self.event("response.mcp_list_tools.completed", at);
            self.item_event("done", index, &item);
            self.items.push(item);
        }
    }

    /// Adds the results of calls that the server ran. They end a round, so that the text of the
    /// next one is another item.
    pub(crate) fn tool_results(&mut self, results: &[ToolResult]) {
        self.close("completed");
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
                    item["error"] = mcp_error(error);
                    "failed"
                }
            };
            item["status"] = word.into();
            let item = item.clone();
            let at = json!({"output_index": index, "item_id": item["id"]});
            self.event(&format!("response.mcp_call.{word}"), at);
            self.item_event("done", index, &item);
        }
    }

    /// Appends the event that an item was `added` or is `done`.
    fn item_event(&mut self, stage: &str, index: usize, item: &Value) {
        let members = json!({"output_index": index, "item": item});
        self.event(&format!("response.output_item.{stage}"), members);
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
            Event::TextDelta { delta } => self.text(ItemKind::Message, delta),
            Event::ReasoningDelta { delta } => self.text(ItemKind::Reasoning, delta),
            Event::CallStart { id, name, kind, .. } => {
                self.close("completed");
                let kind = match (self.names.meaning(name), kind) {
                    (Some(OfferedTool::Search), _) => ItemKind::SearchCall,
                    (Some(OfferedTool::Mcp { .. }), _) => ItemKind::McpCall,
                    (_, CallKind::Function) => ItemKind::FunctionCall,
                    (_, CallKind::Custom) => ItemKind::CustomCall,
                };
                self.begin(kind, id, name);
            }
            Event::ArgumentsDelta { delta, .. } => self.delta(delta),
            Event::CallEnd { .. } => self.close("completed"),
            Event::Incomplete { .. } => self.close("incomplete"),
            _ => {}
        }
    }

    /// Ends the output; `is_truncated` if the generation was cut off.
    pub(crate) fn finish(&mut self, is_truncated: bool) {
        self.close(if is_truncated { "incomplete" } else { "completed" });
        // Calls that the server has not run, as the round was cut off after them.
        for (_, index) in std::mem::take(&mut self.running) {
            self.items[index]["status"] = "incomplete".into();
            let item = self.items[index].clone();
            self.item_event("done", index, &item);
        }
    }

    fn index(&self) -> usize {
        self.items.len()
    }

    /// Appends to the reasoning or message in progress, or to a new one.
    fn text(&mut self, kind: ItemKind, delta: &str) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.close("completed");
            self.begin(kind, "", "");
        }
        self.delta(delta);
    }

    fn begin(&mut self, kind: ItemKind, call_id: &str, name: &str) {
        let (call_id, name) = (call_id.to_owned(), name.to_owned());
        let open = OpenItem { kind, text: String::new(), call_id, name };
        let (index, item) = (self.index(), self.item(&open, "in_progress"));
        let at = self.event_location(kind);
        self.item_event("added", index, &item);
        if kind == ItemKind::McpCall {
            self.event("response.mcp_call.in_progress", at.clone());
        }
        if let Some(part) = open.part() {
            self.event("response.content_part.added", with_member(at, "part", part));
        }
        self.open = Some(open);
    }

    fn delta(&mut self, delta: &str) {
        let Some(open) = &mut self.open else { return };
        open.text.push_str(delta);
        let kind = open.kind;
        let Some((stem, _)) = kind.content_event() else { return };
        let mut members = with_member(self.event_location(kind), "delta", delta.into());
        if kind == ItemKind::Message {
            members["logprobs"] = json!([]);
        }
        self.event(&format!("response.{stem}.delta"), members);
    }

    /// Closes the item in progress. The output leaves a truncated call out: nothing follows it, so
    /// that no other item has its index.
    fn close(&mut self, status: &str) {
        let Some(open) = self.open.take() else { return };
        let item = self.item(&open, status);
        let (at, index) = (self.event_location(open.kind), self.index());
        if status != "completed" && open.kind.is_call() {
            return self.item_event("done", index, &item);
        }
        if let Some((stem, member)) = open.kind.content_event() {
            let mut members = with_member(at.clone(), member, open.text.as_str().into());
            match open.kind {
                ItemKind::Message => members["logprobs"] = json!([]),
                ItemKind::FunctionCall => members["name"] = item["name"].clone(),
                _ => {}
            }
            self.event(&format!("response.{stem}.done"), members);
        }
        if let Some(part) = open.part() {
            self.event("response.content_part.done", with_member(at, "part", part));
        }
        if open.kind == ItemKind::McpCall {
            // The item is done when the server has run the call.
            self.running.push((open.call_id, index));
        } else {
            self.item_event("done", index, &item);
        }
        self.items.push(item);
    }

    /// The members that identify the item in progress in events.
    fn event_location(&self, kind: ItemKind) -> Value {
        let at = json!({"item_id": self.item_id(kind), "output_index": self.index()});
        if kind.is_call() { at } else { with_member(at, "content_index", 0.into()) }
    }

    fn item_id(&self, kind: ItemKind) -> String {
        format!("{}_{}{:02}", kind.id_prefix(), self.suffix, self.index())
    }

    fn item(&self, open: &OpenItem, status: &str) -> Value {
        let OpenItem { kind, text, call_id, name } = open;
        let id = self.item_id(*kind);
        // A new item has no content yet.
        let is_new = status == "in_progress";
        let content: Vec<Value> = open.part().into_iter().filter(|_| !is_new).collect();
        let (name, namespace) = match self.names.meaning(name) {
            Some(OfferedTool::Namespaced { namespace, name }) => (name, Some(namespace)),
            Some(OfferedTool::Mcp { label, name }) => (name, Some(label)),
            _ => (name, None),
        };
        let mut item = match kind {
            ItemKind::Reasoning => {
                json!({"id": id, "type": "reasoning", "summary": [], "content": content, "status": status})
            }
            ItemKind::Message => {
                json!({"id": id, "type": "message", "role": "assistant", "content": content, "status": status})
            }
            ItemKind::FunctionCall => {
                json!({"id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": text, "status": status})
            }
            ItemKind::CustomCall => {
                json!({"id": id, "type": "custom_tool_call", "call_id": call_id, "name": name, "input": text, "status": status})
            }
            ItemKind::SearchCall => {
                let arguments = search_arguments(text);
                return json!({"id": id, "type": "tool_search_call", "call_id": call_id, "execution": "client", "arguments": arguments, "status": status});
            }
            ItemKind::McpCall => {
                let status = if status == "completed" { "calling" } else { status };
                return json!({"id": id, "type": "mcp_call", "server_label": namespace, "name": name, "arguments": text, "output": null, "error": null, "approval_request_id": null, "status": status});
            }
        };
        if let Some(namespace) = namespace {
            item["namespace"] = namespace.as_str().into();
        }
        item
    }
}

/// The arguments of a search: an object, and `null` in a new item, which has none yet. The text of
/// the object if it has a number that would be rounded.
fn search_arguments(text: &str) -> Value {
    let limits = Limits::default().with_source_bytes(usize::MAX);
    match Json::parse(text, &limits) {
        Ok(arguments) => exact_value(&arguments).unwrap_or_else(|_| text.into()),
        Err(_) => Value::Null,
    }
}

fn with_member(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

/// The member `error` of a call that failed: in the tool, on the way to it, or before.
fn mcp_error(error: &McpError) -> Value {
    let message = ToolResult::reason(error);
    match error {
        McpError::Tool { .. } => {
            let content = json!([{"type": "text", "text": message}]);
            json!({"type": "mcp_tool_execution_error", "content": content})
        }
        McpError::Status { status, .. } => {
            json!({"type": "http_error", "code": status, "message": message})
        }
        other => {
            let code = match other {
                McpError::Refused { code, .. } => *code,
                McpError::Arguments { .. } | McpError::UnknownTool(_) => INVALID_PARAMS,
                _ => INTERNAL_ERROR,
            };
            json!({"type": "mcp_protocol_error", "code": code, "message": message})
        }
    }
}

/// Codes of JSON-RPC.
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

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
        assert!(items.iter().all(|item| item["status"] != "in_progress"), "{items:?}");
        // The output has no truncated calls.
        items.retain(|item| item["status"] == "completed" || item.get("call_id").is_none());
        items
    }

    #[test]
    fn arguments_of_searches_keep_their_numbers() {
        let long = r#"{"n": 12345678901234567890123, "x": 0.1}"#;
        for (text, want) in [
            ("", Value::Null),
            (r#"{"n": 9007199254740993}"#, json!({"n": 9_007_199_254_740_993_u64})),
            (long, json!(long)),
        ] {
            assert_eq!(search_arguments(text), want);
        }
    }

    #[test]
    fn the_text_of_each_round_is_an_item_of_its_own() {
        let mut output = OutputItems::new("x", ToolNames::default());
        output.push(&text("a"));
        output.push(&Event::End);
        output.tool_results(&[]);
        output.push(&text("b"));
        output.push(&Event::End);
        output.finish(true);
        let items = output.items.iter();
        let found: Vec<(&str, &str)> = items
            .map(|item| (&item["content"][0]["text"], &item["status"]))
            .map(|(text, status)| (text.as_str().unwrap(), status.as_str().unwrap()))
            .collect();
        assert_eq!(found, [("a", "completed"), ("b", "incomplete")]);
        assert_eq!(rebuilt(&output.take_events()), output.items);
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
            // Text that is cut off is kept, and a call is not.
            let is_text =
                |e: &Event| matches!(e, Event::TextDelta { .. } | Event::ReasoningDelta { .. });
            let cut_text = usize::from(whole[..end].last().is_some_and(is_text));
            let statuses = items.iter().map(|item| item["status"].as_str().unwrap());
            let complete = items.len() - cut_text;
            let expected = ["completed"].repeat(complete).into_iter();
            assert!(statuses.eq(expected.chain(["incomplete"].repeat(cut_text))), "{items:?}");
            let calls = items.iter().filter(|item| item.get("call_id").is_some());
            let ended = whole[..end].iter().filter(|e| matches!(e, Event::CallEnd { .. }));
            assert_eq!(calls.count(), ended.count());
            let delta = |e: &Event| match e {
                Event::TextDelta { delta } | Event::ReasoningDelta { delta } => delta.clone(),
                _ => String::new(),
            };
            let texts = items.iter().filter_map(|item| item["content"][0]["text"].as_str());
            let expected: String = whole[..end].iter().map(delta).collect();
            assert_eq!(texts.collect::<String>(), expected);
        }
    }
}
