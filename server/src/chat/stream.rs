//! Streamed Chat Completions responses: `chat.completion.chunk` events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use louver::vocab::Vocabulary;
use louver_formats::{CallKind, Event};
use louver_mistralrs::Step;
use serde_json::{Value, json};

use crate::chat::response::{ResponseMeta, Usage, finish_reason, logprobs, louver_member};
use crate::error::ApiError;
use crate::request::options::StreamOptions;
use crate::served_model::ServedModel;
use crate::state::App;
use crate::turn::{DONE, EventWriter, Progress, RunningTurn, data_event, stream_events};

/// Serialises a turn's events as chunks.
struct ChatEventWriter {
    meta: ResponseMeta,
    served: Arc<ServedModel>,
    /// Time to lower and compile the grammar.
    compiled_in: Duration,
    options: StreamOptions,
    usage: Usage,
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
    let usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let (served, compiled_in) = (running.served().clone(), running.compiled_in());
    let (has_role, call_kinds, pending_steps) = (Vec::new(), Vec::new(), Vec::new());
    let writer = ChatEventWriter {
        meta,
        served,
        compiled_in,
        options,
        usage,
        has_role,
        call_kinds,
        pending_steps,
    };
    stream_events(app, running, writer, VecDeque::new())
}

impl ChatEventWriter {
    /// A chunk of a choice.
    fn chunk(
        &mut self,
        choice: usize,
        delta: Value,
        logprobs: Value,
        finish: Option<&str>,
    ) -> Value {
        let mut chunk = json!({
            "id": self.meta.id,
            "object": "chat.completion.chunk",
            "created": self.meta.created,
            "model": self.meta.model,
            "system_fingerprint": self.meta.fingerprint,
            "choices": [{
                "index": choice,
                "delta": delta,
                "logprobs": logprobs,
                "finish_reason": finish,
            }],
        });
        if self.options.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn push_delta(&mut self, choice: usize, delta: Value, out: &mut VecDeque<Bytes>) {
        let chunk = self.chunk(choice, delta, Value::Null, None);
        out.push_back(data_event(&chunk));
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
                let chunk = self.chunk(choice, json!({"content": delta}), probabilities, None);
                out.push_back(data_event(&chunk));
            }
            Event::ReasoningDelta { delta } => {
                self.push_delta(choice, json!({"reasoning_content": delta}), out)
            }
            Event::CallStart { index, id, name, kind } => {
                let call = match kind {
                    CallKind::Function => {
                        let function = json!({"name": name, "arguments": ""});
                        json!({"index": index, "id": id, "type": "function", "function": function})
                    }
                    CallKind::Custom => {
                        let custom = json!({"name": name, "input": ""});
                        json!({"index": index, "id": id, "type": "custom", "custom": custom})
                    }
                };
                self.push_delta(choice, json!({"tool_calls": [call]}), out);
                self.call_kinds[choice] = kind;
            }
            Event::ArgumentsDelta { index, delta } => {
                let call = match self.call_kinds[choice] {
                    CallKind::Function => json!({"index": index, "function": {"arguments": delta}}),
                    CallKind::Custom => json!({"index": index, "custom": {"input": delta}}),
                };
                self.push_delta(choice, json!({"tool_calls": [call]}), out);
            }
            // The last chunk's finish reason and report cover the remaining events.
            _ => {}
        }
    }

    /// The log probabilities that were not sent yet.
    fn probabilities(&mut self, choice: usize, vocab: &Vocabulary) -> Value {
        let Some(top) = self.meta.logprobs else { return Value::Null };
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
                self.usage.add(&generation);
                let probabilities = self.probabilities(choice, vocab);
                let mut chunk =
                    self.chunk(choice, json!({}), probabilities, Some(finish_reason(&generation)));
                if let Some(louver_member) =
                    louver_member(&generation, trace, self.meta.has_report, self.compiled_in)
                {
                    chunk["louver"] = louver_member;
                }
                out.push_back(data_event(&chunk));
            }
        }
    }

    fn end(&mut self, out: &mut VecDeque<Bytes>) {
        if self.options.include_usage {
            let usage = json!({
                "id": self.meta.id,
                "object": "chat.completion.chunk",
                "created": self.meta.created,
                "model": self.meta.model,
                "system_fingerprint": self.meta.fingerprint,
                "choices": [],
                "usage": self.usage.json(),
            });
            out.push_back(data_event(&usage));
        }
        out.push_back(Bytes::from_static(DONE));
    }

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        out.push_back(data_event(&error.body()));
    }
}
