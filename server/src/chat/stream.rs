//! What a turn says, as server-sent events while it says it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use louver::vocab::Vocabulary;
use louver_formats::{CallKind, Event};
use louver_mistralrs::Step;
use serde_json::{Value, json};

use crate::chat::answer::{Frame, Usage, finish_reason, logprobs, report};
use crate::chat::request::StreamOptions;
use crate::error::ApiError;
use crate::state::{App, Served};
use crate::turn::{Progress, Running, Teller, told};

/// One server-sent event.
fn sse(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

/// The end of every stream that did not fail.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Says what happens.
struct Sender {
    frame: Frame,
    served: Arc<Served>,
    /// Time to lower and compile the grammar.
    compiled_in: Duration,
    options: StreamOptions,
    usage: Usage,
    /// Choices whose role was sent.
    begun: Vec<bool>,
    /// What kind of tool each choice calls.
    kinds: Vec<CallKind>,
    /// Probabilities that wait for a chunk of text.
    held: Vec<Vec<Step>>,
}

/// The streamed answer.
pub(super) fn answer(app: App, running: Running, frame: Frame, options: StreamOptions) -> Response {
    let usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let (served, compiled_in) = (running.served.clone(), running.compiled_in);
    let (begun, kinds, held) = (Vec::new(), Vec::new(), Vec::new());
    let sender = Sender { frame, served, compiled_in, options, usage, begun, kinds, held };
    told(app, running, sender, VecDeque::new())
}

impl Sender {
    /// A choice's chunk.
    fn chunk(
        &mut self,
        choice: usize,
        delta: Value,
        logprobs: Value,
        finish: Option<&str>,
    ) -> Value {
        let mut chunk = json!({
            "id": self.frame.id,
            "object": "chat.completion.chunk",
            "created": self.frame.created,
            "model": self.frame.model,
            "system_fingerprint": self.frame.fingerprint,
            "choices": [{"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish}],
        });
        if self.options.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn say(&mut self, choice: usize, delta: Value, out: &mut VecDeque<Bytes>) {
        let chunk = self.chunk(choice, delta, Value::Null, None);
        out.push_back(sse(&chunk));
    }

    /// The first chunk of a choice has its role.
    fn begin(&mut self, choice: usize, out: &mut VecDeque<Bytes>) {
        if self.begun.len() <= choice {
            self.begun.resize(choice + 1, false);
            self.kinds.resize(choice + 1, CallKind::default());
            self.held.resize_with(choice + 1, Vec::new);
        }
        if !std::mem::replace(&mut self.begun[choice], true) {
            self.say(choice, json!({"role": "assistant", "content": null}), out);
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
                out.push_back(sse(&chunk));
            }
            Event::ReasoningDelta { delta } => {
                self.say(choice, json!({"reasoning_content": delta}), out)
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
                self.say(choice, json!({"tool_calls": [call]}), out);
                self.kinds[choice] = kind;
            }
            Event::ArgumentsDelta { index, delta } => {
                let call = match self.kinds[choice] {
                    CallKind::Function => json!({"index": index, "function": {"arguments": delta}}),
                    CallKind::Custom => json!({"index": index, "custom": {"input": delta}}),
                };
                self.say(choice, json!({"tool_calls": [call]}), out);
            }
            // The finish reason and the report tell how it ended.
            _ => {}
        }
    }

    /// The probabilities that were not sent yet.
    fn probabilities(&mut self, choice: usize, vocab: &Vocabulary) -> Value {
        let Some(top) = self.frame.logprobs else { return Value::Null };
        logprobs(&std::mem::take(&mut self.held[choice]), top, vocab)
    }
}

impl Teller for Sender {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        let served = self.served.clone();
        let vocab = served.louver.engine().vocab();
        match progress {
            Progress::Event { choice, event, steps } => {
                self.begin(choice, out);
                self.held[choice].extend(steps);
                self.event(choice, event, vocab, out);
            }
            Progress::End { choice, generation, steps, trace } => {
                self.begin(choice, out);
                self.held[choice].extend(steps);
                self.usage.add(&generation);
                let probabilities = self.probabilities(choice, vocab);
                let mut chunk =
                    self.chunk(choice, json!({}), probabilities, Some(finish_reason(&generation)));
                if let Some(report) =
                    report(&generation, trace, self.frame.report, self.compiled_in)
                {
                    chunk["louver"] = report;
                }
                out.push_back(sse(&chunk));
            }
        }
    }

    fn end(&mut self, out: &mut VecDeque<Bytes>) {
        if self.options.include_usage {
            let usage = json!({
                "id": self.frame.id,
                "object": "chat.completion.chunk",
                "created": self.frame.created,
                "model": self.frame.model,
                "system_fingerprint": self.frame.fingerprint,
                "choices": [],
                "usage": self.usage.json(),
            });
            out.push_back(sse(&usage));
        }
        out.push_back(Bytes::from_static(DONE));
    }

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        out.push_back(sse(&error.body()));
    }
}
