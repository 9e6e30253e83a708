//! Streamed Chat Completions responses: `chat.completion.chunk` events.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use louver::vocab::Vocabulary;
use louver_formats::{CallKind, Event};
use louver_mistralrs::Step;
use serde_json::{Value, json};

use crate::chat::chunks::Chunks;
use crate::chat::response::{ResponseMeta, finish_reason, logprobs};
use crate::request::messages::call_members;
use crate::request::options::StreamOptions;
use crate::served_model::ServedModel;
use crate::state::App;
use crate::turn::{EventWriter, Progress, RunningTurn, stream_events};

/// Serialises a turn's events as chunks.
struct ChatEventWriter {
    chunks: Chunks,
    served: Arc<ServedModel>,
    /// Per choice: whether the chunk with its role was sent.
    has_role: Vec<bool>,
    /// Per choice: the kind of the tool that is being called.
    call_kinds: Vec<CallKind>,
    /// Per choice: steps whose log probabilities go with the next text chunk.
    pending_steps: Vec<Vec<Step>>,
}

/// The streamed response.
pub(super) fn response(
    app: App,
    running: RunningTurn,
    meta: ResponseMeta,
    options: StreamOptions,
) -> Response {
    let writer = ChatEventWriter {
        chunks: Chunks::new(meta, "chat.completion.chunk", options, &running),
        served: running.served().clone(),
        has_role: Vec::new(),
        call_kinds: Vec::new(),
        pending_steps: Vec::new(),
    };
    stream_events(app, running, writer, VecDeque::new())
}

/// A choice of a chunk.
fn choice_json(choice: usize, delta: Value, logprobs: Value, finish: Option<&str>) -> Value {
    json!({"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish})
}

impl ChatEventWriter {
    fn push_delta(&mut self, choice: usize, delta: Value, out: &mut VecDeque<Bytes>) {
        self.chunks.push(choice_json(choice, delta, Value::Null, None), out);
    }

    /// Sends the first chunk of a choice, which carries its role, if it was not sent.
    fn begin_choice(&mut self, choice: usize, out: &mut VecDeque<Bytes>) {
        if self.has_role.len() <= choice {
            self.has_role.resize(choice + 1, false);
            self.call_kinds.resize(choice + 1, CallKind::default());
            self.pending_steps.resize_with(choice + 1, Vec::new);
        }
        if !std::mem::replace(&mut self.has_role[choice], true) {
            self.push_delta(choice, json!({"role": "assistant", "content": null}), out);
        }
    }

    fn event(
        &mut self,
        choice: usize,
        event: Event,
        vocab: &Vocabulary,
        out: &mut VecDeque<Bytes>,
    ) {
        match event {
            Event::TextDelta { delta } => {
                let probabilities = self.probabilities(choice, vocab);
                let delta = json!({"content": delta});
                self.chunks.push(choice_json(choice, delta, probabilities, None), out);
            }
            Event::ReasoningDelta { delta } => {
                self.push_delta(choice, json!({"reasoning_content": delta}), out)
            }
            Event::CallStart { index, id, name, kind } => {
                let (holder, content) = call_members(kind);
                let call = json!({"name": name, content: ""});
                let call = json!({"index": index, "id": id, "type": holder, holder: call});
                self.push_delta(choice, json!({"tool_calls": [call]}), out);
                self.call_kinds[choice] = kind;
            }
            Event::ArgumentsDelta { index, delta } => {
                let (holder, content) = call_members(self.call_kinds[choice]);
                let call = json!({"index": index, holder: {content: delta}});
                self.push_delta(choice, json!({"tool_calls": [call]}), out);
            }
            // The last chunk's finish reason and report cover the remaining events.
            _ => {}
        }
    }

    /// The log probabilities that were not sent yet.
    fn probabilities(&mut self, choice: usize, vocab: &Vocabulary) -> Value {
        let Some(top) = self.chunks.meta.logprobs else { return Value::Null };
        logprobs(&std::mem::take(&mut self.pending_steps[choice]), top, vocab)
    }
}

impl EventWriter for ChatEventWriter {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        let served = self.served.clone();
        let vocab = served.louver.engine().vocab();
        match progress {
            Progress::Event { choice, event, steps } => {
                self.begin_choice(choice, out);
                self.pending_steps[choice].extend(steps);
                self.event(choice, event, vocab, out);
            }
            // Only Responses requests have tools that the server runs.
            Progress::ToolResults { .. } => {}
            Progress::End { choice, generation, steps, trace } => {
                self.begin_choice(choice, out);
                self.pending_steps[choice].extend(steps);
                let probabilities = self.probabilities(choice, vocab);
                let finish = Some(finish_reason(&generation));
                let json = choice_json(choice, json!({}), probabilities, finish);
                self.chunks.push_last(json, (&generation, trace), out);
            }
        }
    }

    fn end(&mut self, out: &mut VecDeque<Bytes>) {
        self.chunks.end(out);
    }
}
