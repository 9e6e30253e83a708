//! Streamed Chat Completions responses: `chat.completion.chunk` events.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use louver_formats::{CallKind, Event};
use louver_mistralrs::Step;
use serde_json::{Value, json};

use crate::chat::chunks::Chunks;
use crate::chat::logprobs::{ChatLogprobs, is_text};
use crate::chat::response::{ChoiceBody, ChoiceLogprobs, ResponseMeta};
use crate::generation::{EventWriter, Progress, RunningRequest, finish_reason, stream_events};
use crate::request::messages::call_members;
use crate::request::options::StreamOptions;
use crate::served_model::ServedModel;
use crate::state::App;

/// Serialises the events of a request as chunks.
struct ChatEventWriter {
    chunks: Chunks,
    served: Arc<ServedModel>,
    /// The choices that have begun, by index.
    choices: Vec<StreamedChoice>,
}

/// The state of a choice that is streamed.
#[derive(Default)]
struct StreamedChoice {
    /// Whether the chunk with its role was sent.
    has_role: bool,
    /// Whether text was sent.
    has_text: bool,
    /// The kind of the tool that is being called.
    call_kind: CallKind,
    /// Steps whose log probabilities go with the next text chunk.
    pending_steps: Vec<Step>,
}

/// The streamed response.
pub(super) fn response(
    app: App,
    running: RunningRequest,
    meta: ResponseMeta,
    options: StreamOptions,
) -> Response {
    let writer = ChatEventWriter {
        chunks: Chunks::new(meta, "chat.completion.chunk", options, &running),
        served: running.served().clone(),
        choices: Vec::new(),
    };
    stream_events(app, running, writer, VecDeque::new())
}

impl ChatEventWriter {
    fn push_delta(&mut self, choice: usize, delta: Value, out: &mut VecDeque<Bytes>) {
        self.chunks.push(ChoiceBody::new(choice, "delta", delta, None, None), out);
    }

    /// Adds steps to a choice. Sends its first chunk, which carries its role, if it was not sent.
    fn add_steps(&mut self, choice: usize, steps: Vec<Step>, out: &mut VecDeque<Bytes>) {
        if self.choices.len() <= choice {
            self.choices.resize_with(choice + 1, StreamedChoice::default);
        }
        let state = &mut self.choices[choice];
        state.pending_steps.extend(steps.into_iter().filter(is_text));
        if !std::mem::replace(&mut state.has_role, true) {
            self.push_delta(choice, json!({"role": "assistant", "content": null}), out);
        }
    }

    fn event(&mut self, choice: usize, event: Event, out: &mut VecDeque<Bytes>) {
        match event {
            Event::TextDelta { delta } => {
                let state = &mut self.choices[choice];
                state.has_text = true;
                let steps = std::mem::take(&mut state.pending_steps);
                let delta = json!({"content": delta});
                let logprobs = self.logprobs(&steps);
                self.chunks.push(ChoiceBody::new(choice, "delta", delta, logprobs, None), out);
            }
            Event::ReasoningDelta { delta } => {
                self.push_delta(choice, json!({"reasoning_content": delta}), out)
            }
            Event::CallStart { index, id, name, kind } => {
                let (holder, content) = call_members(kind);
                let call = json!({"name": name, content: ""});
                let call = json!({"index": index, "id": id, "type": holder, holder: call});
                self.push_delta(choice, json!({"tool_calls": [call]}), out);
                self.choices[choice].call_kind = kind;
            }
            Event::ArgumentsDelta { index, delta } => {
                let (holder, content) = call_members(self.choices[choice].call_kind);
                let call = json!({"index": index, holder: {content: delta}});
                self.push_delta(choice, json!({"tool_calls": [call]}), out);
            }
            // The last chunk's finish reason and report cover the remaining events.
            _ => {}
        }
    }

    /// The log probabilities of these steps, if the response includes them.
    fn logprobs<'a>(&'a self, steps: &'a [Step]) -> Option<ChoiceLogprobs<'a>> {
        let (top, vocab) = (self.chunks.meta.logprobs?, self.served.louver.engine().vocab());
        Some(ChoiceLogprobs::Chat(ChatLogprobs::new(steps, top, vocab)))
    }
}

impl EventWriter for ChatEventWriter {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        match progress {
            Progress::Event { choice, event, steps } => {
                self.add_steps(choice, steps, out);
                self.event(choice, event, out);
            }
            // Only Responses requests have tools that the server runs.
            Progress::ToolResults { .. } => {}
            Progress::End { finished, steps } => {
                let choice = finished.index;
                self.chunks.add_usage(&finished);
                self.add_steps(choice, steps, out);
                let has_text = self.choices[choice].has_text;
                if !has_text && finished.generation.turn.calls.is_empty() {
                    // As in the complete response.
                    self.push_delta(choice, json!({"content": ""}), out);
                }
                let steps = std::mem::take(&mut self.choices[choice].pending_steps);
                let finish = Some(finish_reason(&finished.generation));
                let last =
                    ChoiceBody::new(choice, "delta", json!({}), self.logprobs(&steps), finish);
                self.chunks.push_last(last, &finished, out);
            }
        }
    }

    fn end(&mut self, out: &mut VecDeque<Bytes>) {
        self.chunks.end(out);
    }
}
