//! Content blocks of a message, and the stream events that build them.

use louver_formats::Event;
use serde_json::{Value, json};

use crate::generation::{FinishedChoice, Progress};
use crate::messages::call_id;

/// The growing content of one message. Blocks are the same whether or not the events are streamed.
#[derive(Debug)]
pub(crate) struct ContentBlocks {
    /// Whether the text of reasoning is left out.
    omits_thinking: bool,
    /// The JSON texts of the complete blocks.
    complete: Vec<String>,
    /// Number of begun blocks.
    begun: usize,
    open: Option<OpenBlock>,
    events: Vec<Value>,
}

/// The block in progress.
#[derive(Debug)]
enum OpenBlock {
    Thinking { text: String },
    Text { text: String },
    ToolUse { id: String, name: String, input: String },
}

impl OpenBlock {
    /// The block without content, as a stream announces it.
    fn empty(&self) -> Value {
        match self {
            OpenBlock::Thinking { .. } => {
                json!({"type": "thinking", "thinking": "", "signature": ""})
            }
            OpenBlock::Text { .. } => json!({"type": "text", "text": ""}),
            OpenBlock::ToolUse { id, name, .. } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": {}})
            }
        }
    }

    /// The JSON text of the complete block. A call's input is the text that the model has written,
    /// so that its numbers keep all digits.
    fn into_json(self) -> String {
        match self {
            OpenBlock::Thinking { text } => {
                json!({"type": "thinking", "thinking": text, "signature": ""}).to_string()
            }
            OpenBlock::Text { text } => json!({"type": "text", "text": text}).to_string(),
            OpenBlock::ToolUse { id, name, input } => {
                let input = if input.trim().is_empty() { "{}" } else { &input };
                let (id, name) = (Value::from(id), Value::from(name));
                format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
            }
        }
    }
}

impl ContentBlocks {
    /// Empty content. `omits_thinking`: thinking blocks have no text.
    pub(crate) fn new(omits_thinking: bool) -> ContentBlocks {
        ContentBlocks {
            omits_thinking,
            complete: Vec::new(),
            begun: 0,
            open: None,
            events: Vec::new(),
        }
    }

    /// Appends an event.
    pub(crate) fn event(&mut self, event: Value) {
        self.events.push(event);
    }

    /// The events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// The JSON texts of the complete blocks. A truncated call is left out.
    pub(crate) fn complete(&self) -> &[String] {
        &self.complete
    }

    /// Processes the progress of the request. Returns the choice when it has ended.
    pub(crate) fn process(&mut self, progress: Progress) -> Option<FinishedChoice> {
        match progress {
            Progress::Event { event, .. } => self.push(&event),
            // Only Responses requests have tools that the server runs.
            Progress::ToolResults { .. } => {}
            Progress::End { finished, .. } => {
                self.finish();
                return Some(finished);
            }
        }
        None
    }

    /// Processes the next output event.
    fn push(&mut self, event: &Event) {
        match event {
            Event::TextDelta { delta } => {
                if !matches!(self.open, Some(OpenBlock::Text { .. })) {
                    self.begin(OpenBlock::Text { text: String::new() });
                }
                self.delta(delta, json!({"type": "text_delta", "text": delta}));
            }
            Event::ReasoningDelta { delta } => {
                if !matches!(self.open, Some(OpenBlock::Thinking { .. })) {
                    self.begin(OpenBlock::Thinking { text: String::new() });
                }
                if !self.omits_thinking {
                    self.delta(delta, json!({"type": "thinking_delta", "thinking": delta}));
                }
            }
            Event::CallStart { id, name, .. } => {
                let (id, name) = (call_id::to_client(id), name.clone());
                self.begin(OpenBlock::ToolUse { id, name, input: String::new() });
            }
            Event::ArgumentsDelta { delta, .. } => {
                self.delta(delta, json!({"type": "input_json_delta", "partial_json": delta}));
            }
            Event::CallEnd { .. } => self.close(true),
            Event::Incomplete { .. } => self.close(false),
            _ => {}
        }
    }

    /// Ends the content. A call without its end is dropped.
    fn finish(&mut self) {
        self.close(false);
    }

    fn begin(&mut self, block: OpenBlock) {
        self.close(false);
        let event = json!({
            "type": "content_block_start",
            "index": self.begun,
            "content_block": block.empty(),
        });
        self.event(event);
        self.begun += 1;
        self.open = Some(block);
    }

    fn delta(&mut self, added: &str, delta: Value) {
        let Some(
            OpenBlock::Thinking { text }
            | OpenBlock::Text { text }
            | OpenBlock::ToolUse { input: text, .. },
        ) = &mut self.open
        else {
            return;
        };
        text.push_str(added);
        self.block_delta(delta);
    }

    fn block_delta(&mut self, delta: Value) {
        let index = self.begun.saturating_sub(1);
        self.event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }

    /// Closes the block in progress. Only the end of a call (`is_call_end`) completes a call.
    fn close(&mut self, is_call_end: bool) {
        let Some(open) = self.open.take() else { return };
        if matches!(open, OpenBlock::Thinking { .. }) {
            // Clients attach the signature when it arrives. Here it is empty: nothing verifies it.
            self.block_delta(json!({"type": "signature_delta", "signature": ""}));
        }
        let index = self.begun.saturating_sub(1);
        self.event(json!({"type": "content_block_stop", "index": index}));
        if is_call_end || !matches!(open, OpenBlock::ToolUse { .. }) {
            self.complete.push(open.into_json());
        }
    }
}

#[cfg(test)]
mod tests {
    use louver_formats::{CallKind, Cut};

    use super::*;

    fn text(delta: &str) -> Event {
        Event::TextDelta { delta: delta.to_owned() }
    }

    fn reasoning(delta: &str) -> Event {
        Event::ReasoningDelta { delta: delta.to_owned() }
    }

    fn call(index: usize) -> [Event; 4] {
        let (id, name) = (format!("call_{index}"), "f".to_owned());
        let piece = |delta: &str| Event::ArgumentsDelta { index, delta: delta.to_owned() };
        [
            Event::CallStart { index, id, name, kind: CallKind::Function },
            piece("{\"n\": 12345678901234567890"),
            piece("12}"),
            Event::CallEnd { index },
        ]
    }

    fn run(events: &[Event], omits_thinking: bool) -> (Vec<String>, Vec<Value>) {
        let mut blocks = ContentBlocks::new(omits_thinking);
        events.iter().for_each(|event| blocks.push(event));
        blocks.finish();
        let events = blocks.take_events();
        (blocks.complete, events)
    }

    /// Rebuilds the contents of the blocks from the events alone.
    fn rebuilt(events: &[Value]) -> Vec<(Value, String)> {
        let mut blocks: Vec<(Value, String)> = Vec::new();
        let mut open = None;
        for event in events {
            let index = event["index"].as_u64().unwrap() as usize;
            match event["type"].as_str().unwrap() {
                "content_block_start" => {
                    assert_eq!((open, index), (None, blocks.len()), "{event}");
                    open = Some(index);
                    blocks.push((event["content_block"].clone(), String::new()));
                }
                "content_block_delta" => {
                    assert_eq!(open, Some(index), "{event}");
                    let delta = &event["delta"];
                    let pieces = [&delta["text"], &delta["thinking"], &delta["partial_json"]];
                    let piece = pieces.into_iter().find_map(Value::as_str).unwrap_or_default();
                    blocks[index].1.push_str(piece);
                }
                _ => assert_eq!(
                    (event["type"].as_str(), open.take()),
                    (Some("content_block_stop"), Some(index))
                ),
            }
        }
        assert_eq!(open, None);
        blocks
    }

    #[test]
    fn blocks_are_what_their_events_say() {
        let events = [
            vec![reasoning("h"), reasoning("m"), text("a"), text("b")],
            call(0).to_vec(),
            call(1).to_vec(),
            vec![text("done"), Event::End],
        ]
        .concat();
        let (blocks, streamed) = run(&events, false);
        let input = r#"{"n": 1234567890123456789012}"#;
        let expected = [
            r#"{"type":"thinking","thinking":"hm","signature":""}"#.to_owned(),
            r#"{"type":"text","text":"ab"}"#.to_owned(),
            format!(r#"{{"type":"tool_use","id":"toolu_call_0","name":"f","input":{input}}}"#),
            format!(r#"{{"type":"tool_use","id":"toolu_call_1","name":"f","input":{input}}}"#),
            r#"{"type":"text","text":"done"}"#.to_owned(),
        ];
        assert_eq!(blocks, expected);
        let contents: Vec<String> = rebuilt(&streamed).into_iter().map(|block| block.1).collect();
        assert_eq!(contents, ["hm", "ab", input, input, "done"]);
        // Cut off anywhere: only complete calls are blocks.
        for length in 0..events.len() {
            let cut = Event::Incomplete { why: Cut::Turn, call: None, partial: String::new() };
            let (blocks, streamed) = run(&[&events[..length], &[cut, Event::End]].concat(), false);
            let mut streamed = rebuilt(&streamed);
            // Starts and ends of calls alternate.
            let is_mark = |e: &&Event| matches!(e, Event::CallStart { .. } | Event::CallEnd { .. });
            if events[..length].iter().filter(is_mark).count() % 2 == 1 {
                assert_eq!(streamed.pop().unwrap().0["type"], "tool_use");
            }
            assert_eq!(blocks.len(), streamed.len());
            for (block, (begun, content)) in blocks.iter().zip(streamed) {
                let content = match begun["type"].as_str().unwrap() {
                    "tool_use" => content,
                    _ => Value::from(content).to_string(),
                };
                assert!(block.contains(&format!(":{content}")), "{block} is not {content}");
                let block: Value = serde_json::from_str(block).unwrap();
                assert_eq!(block["type"], begun["type"]);
            }
        }
    }

    #[test]
    fn omitted_thinking_has_no_text_and_empty_input_is_an_object() {
        let start = call(0)[0].clone();
        let events = [reasoning("secret"), start, Event::CallEnd { index: 0 }];
        let (blocks, streamed) = run(&events, true);
        assert_eq!(blocks[0], r#"{"type":"thinking","thinking":"","signature":""}"#);
        assert!(blocks[1].ends_with(r#""input":{}}"#), "{}", blocks[1]);
        assert!(!Value::from(streamed).to_string().contains("secret"));
    }
}
