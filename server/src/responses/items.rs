//! What the model says -> output items, and the events that build them up.

use louver_formats::{CallKind, Event};
use serde_json::{Value, json};

/// The output of one response, as it grows. Whether anybody listens to the events makes no difference to the items.
#[derive(Debug)]
pub(crate) struct Output {
    /// Ends the ids of all items.
    suffix: String,
    items: Vec<Value>,
    open: Option<Open>,
    /// Numbers given so far.
    sequence: u64,
    events: Vec<Value>,
}

/// The item that is growing.
#[derive(Debug)]
enum Open {
    Reasoning { text: String },
    Message { text: String },
    Call { id: String, name: String, written: String, kind: CallKind },
}

impl Output {
    /// Nothing said yet.
    pub(crate) fn new(suffix: impl Into<String>) -> Output {
        Output {
            suffix: suffix.into(),
            items: Vec::new(),
            open: None,
            sequence: 0,
            events: Vec::new(),
        }
    }

    /// An event of this type, numbered, with these members.
    pub(crate) fn event(&mut self, kind: &str, members: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.sequence});
        self.sequence += 1;
        if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
            event.extend(members);
        }
        self.events.push(event);
    }

    /// The events since the last time.
    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// The items that are whole, or cut off and still worth something.
    pub(crate) fn items(&self) -> &[Value] {
        &self.items
    }

    /// Takes what the model said next.
    pub(crate) fn push(&mut self, event: &Event) {
        match event {
            Event::TextDelta { delta } => {
                if !matches!(self.open, Some(Open::Message { .. })) {
                    self.close("completed");
                    self.begin(Open::Message { text: String::new() });
                }
                self.delta("response.output_text.delta", delta);
            }
            Event::ReasoningDelta { delta } => {
                if !matches!(self.open, Some(Open::Reasoning { .. })) {
                    self.close("completed");
                    self.begin(Open::Reasoning { text: String::new() });
                }
                self.delta("response.reasoning_text.delta", delta);
            }
            Event::CallStart { id, name, kind, .. } => {
                self.close("completed");
                let (id, name) = (id.clone(), name.clone());
                self.begin(Open::Call { id, name, written: String::new(), kind: *kind });
            }
            Event::ArgumentsDelta { delta, .. } => match self.open {
                Some(Open::Call { kind: CallKind::Custom, .. }) => {
                    self.delta("response.custom_tool_call_input.delta", delta);
                }
                _ => self.delta("response.function_call_arguments.delta", delta),
            },
            Event::CallEnd { .. } => self.close("completed"),
            Event::Incomplete { .. } => self.close("incomplete"),
            _ => {}
        }
    }

    /// Nothing follows; `cut`: because the generation was cut off.
    pub(crate) fn finish(&mut self, cut: bool) {
        self.close(if cut { "incomplete" } else { "completed" });
    }

    fn index(&self) -> usize {
        self.items.len()
    }

    fn begin(&mut self, open: Open) {
        let item = self.item(&open, "in_progress");
        let index = self.index();
        self.open = Some(open);
        self.event("response.output_item.added", json!({"output_index": index, "item": item}));
        if let Some(part) = self.part() {
            let place = self.place();
            self.event("response.content_part.added", with(place, "part", part));
        }
    }

    fn delta(&mut self, kind: &str, delta: &str) {
        let Some(
            Open::Reasoning { text } | Open::Message { text } | Open::Call { written: text, .. },
        ) = &mut self.open
        else {
            return;
        };
        text.push_str(delta);
        let mut members = with(self.place(), "delta", delta.into());
        if kind == "response.output_text.delta" {
            members["logprobs"] = json!([]);
        }
        self.event(kind, members);
    }

    /// Ends the item that is growing. A call that was cut off is no call: it is left out.
    fn close(&mut self, status: &str) {
        let Some(open) = self.open.take() else { return };
        if status != "completed" && matches!(open, Open::Call { .. }) {
            return;
        }
        let item = self.item(&open, status);
        self.open = Some(open);
        let (place, index) = (self.place(), self.index());
        match &self.open {
            Some(Open::Message { text }) => {
                let members =
                    with(with(place.clone(), "text", text.as_str().into()), "logprobs", json!([]));
                self.event("response.output_text.done", members);
            }
            Some(Open::Reasoning { text }) => {
                let members = with(place.clone(), "text", text.as_str().into());
                self.event("response.reasoning_text.done", members);
            }
            Some(Open::Call { kind: CallKind::Custom, written, .. }) => {
                let members = with(place.clone(), "input", written.as_str().into());
                self.event("response.custom_tool_call_input.done", members);
            }
            Some(Open::Call { written, name, .. }) => {
                let members = with(
                    with(place.clone(), "arguments", written.as_str().into()),
                    "name",
                    name.as_str().into(),
                );
                self.event("response.function_call_arguments.done", members);
            }
            None => {}
        }
        if let Some(part) = self.part() {
            self.event("response.content_part.done", with(place, "part", part));
        }
        self.event("response.output_item.done", json!({"output_index": index, "item": item}));
        self.items.push(item);
        self.open = None;
    }

    /// What events about the growing item begin with.
    fn place(&self) -> Value {
        let index = self.index();
        match &self.open {
            Some(open @ (Open::Reasoning { .. } | Open::Message { .. })) => {
                json!({"item_id": self.item_id(open), "output_index": index, "content_index": 0})
            }
            Some(open) => json!({"item_id": self.item_id(open), "output_index": index}),
            None => json!({"output_index": index}),
        }
    }

    fn item_id(&self, open: &Open) -> String {
        let prefix = match open {
            Open::Reasoning { .. } => "rs",
            Open::Message { .. } => "msg",
            Open::Call { kind: CallKind::Custom, .. } => "ctc",
            Open::Call { .. } => "fc",
        };
        format!("{prefix}_{}{:02}", self.suffix, self.index())
    }

    /// The part of content that the growing item has.
    fn part(&self) -> Option<Value> {
        match &self.open {
            Some(Open::Reasoning { text }) => Some(json!({"type": "reasoning_text", "text": text})),
            Some(Open::Message { text }) => Some(output_text(text)),
            _ => None,
        }
    }

    fn item(&self, open: &Open, status: &str) -> Value {
        let id = self.item_id(open);
        // An item that has just begun has no content yet.
        let has_content = status != "in_progress";
        match open {
            Open::Reasoning { text } => {
                let content = if has_content {
                    json!([{"type": "reasoning_text", "text": text}])
                } else {
                    json!([])
                };
                json!({"id": id, "type": "reasoning", "summary": [], "content": content, "status": status})
            }
            Open::Message { text } => {
                let content = if has_content { json!([output_text(text)]) } else { json!([]) };
                json!({"id": id, "type": "message", "role": "assistant", "content": content, "status": status})
            }
            Open::Call { id: call, name, written, kind: CallKind::Custom } => {
                json!({"id": id, "type": "custom_tool_call", "call_id": call, "name": name, "input": written, "status": status})
            }
            Open::Call { id: call, name, written, .. } => {
                json!({"id": id, "type": "function_call", "call_id": call, "name": name, "arguments": written, "status": status})
            }
        }
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

#[cfg(test)]
mod tests {
    use louver_formats::Cut;

    use super::*;

    fn run(events: &[Event]) -> (Vec<Value>, Vec<Value>) {
        let mut output = Output::new("x");
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

    /// The events alone say what the items are.
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
    fn events_build_the_items() {
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
        for cut in 0..whole.len() {
            let stopped = Event::Incomplete { why: Cut::Turn, call: None, partial: String::new() };
            let (items, events) = run(&[&whole[..cut], &[stopped, Event::End]].concat());
            assert_eq!(rebuilt(&events), items);
            let calls = items.iter().filter(|item| item.get("call_id").is_some());
            assert!(calls.clone().all(|call| call["status"] == "completed"));
            let ended =
                whole[..cut].iter().filter(|event| matches!(event, Event::CallEnd { .. })).count();
            assert_eq!(calls.count(), ended);
        }
    }
}
