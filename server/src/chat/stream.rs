//! What a turn says, as server-sent events while it says it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Bytes;
use futures::Stream;
use louver_formats::{CallKind, Event};
use louver_mistralrs::Step;
use serde_json::{Value, json};

use crate::chat::answer::{Frame, Usage, finish_reason, logprobs, report};
use crate::chat::request::StreamOptions;
use crate::error::ApiError;
use crate::http::count_error;
use crate::state::App;
use crate::turn::{Progress, Running};

/// A comment is sent after such a time of silence, so that nobody between takes the connection for dead.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);

/// One server-sent event.
pub(crate) fn sse(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

/// The end of every stream that did not fail.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// What is sent next.
struct Sender {
    app: App,
    /// None once all has been said.
    running: Option<Running>,
    frame: Frame,
    options: StreamOptions,
    usage: Usage,
    /// Choices whose role was sent.
    begun: Vec<bool>,
    /// What kind of tool each choice calls.
    kinds: Vec<CallKind>,
    /// Probabilities that wait for a chunk of text.
    held: Vec<Vec<Step>>,
    ready: VecDeque<Bytes>,
}

/// The answer's chunks. Dropping the stream cancels the generations.
pub(crate) fn events(
    app: App,
    running: Running,
    frame: Frame,
    options: StreamOptions,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let sender = Sender {
        app,
        running: Some(running),
        frame,
        options,
        usage,
        begun: Vec::new(),
        kinds: Vec::new(),
        held: Vec::new(),
        ready: VecDeque::new(),
    };
    futures::stream::unfold(sender, |mut sender| async move {
        let piece = sender.next().await?;
        Some((Ok(piece), sender))
    })
}

impl Sender {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            let running = self.running.as_mut()?;
            match tokio::time::timeout(SILENCE, running.next()).await {
                Err(_) => return Some(Bytes::from_static(b": still there\n\n")),
                Ok(None) => self.end(),
                Ok(Some(Err(error))) => self.fail(&error),
                Ok(Some(Ok(progress))) => self.progress(progress),
            }
        }
    }

    /// A choice's chunk.
    fn chunk(&mut self, choice: usize, delta: Value, logprobs: Value, finish: Option<&str>) -> Value {
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

    fn say(&mut self, choice: usize, delta: Value) {
        self.begin(choice);
        let chunk = self.chunk(choice, delta, Value::Null, None);
        self.ready.push_back(sse(&chunk));
    }

    /// The first chunk of a choice has its role.
    fn begin(&mut self, choice: usize) {
        if self.begun.len() <= choice {
            self.begun.resize(choice + 1, false);
            self.kinds.resize(choice + 1, CallKind::default());
            self.held.resize_with(choice + 1, Vec::new);
        }
        if !std::mem::replace(&mut self.begun[choice], true) {
            let chunk = self.chunk(choice, json!({"role": "assistant", "content": null}), Value::Null, None);
            self.ready.push_back(sse(&chunk));
        }
    }

    fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Event { choice, event, steps } => {
                self.begin(choice);
                self.held[choice].extend(steps);
                self.event(choice, event);
            }
            Progress::End { choice, generation, steps, trace } => {
                self.begin(choice);
                self.held[choice].extend(steps);
                self.usage.add(&generation);
                let probabilities = self.probabilities(choice);
                let mut chunk = self.chunk(choice, json!({}), probabilities, Some(finish_reason(&generation)));
                let compiled_in = self.running.as_ref().map(|running| running.compiled_in).unwrap_or_default();
                if let Some(report) = report(&generation, trace, self.frame.report, compiled_in) {
                    chunk["louver"] = report;
                }
                self.ready.push_back(sse(&chunk));
            }
        }
    }

    fn event(&mut self, choice: usize, event: Event) {
        match event {
            Event::TextDelta { delta } => {
                let probabilities = self.probabilities(choice);
                let chunk = self.chunk(choice, json!({"content": delta}), probabilities, None);
                self.ready.push_back(sse(&chunk));
            }
            Event::ReasoningDelta { delta } => self.say(choice, json!({"reasoning_content": delta})),
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
                self.say(choice, json!({"tool_calls": [call]}));
                self.kinds[choice] = kind;
            }
            Event::ArgumentsDelta { index, delta } => {
                let call = match self.kinds[choice] {
                    CallKind::Function => json!({"index": index, "function": {"arguments": delta}}),
                    CallKind::Custom => json!({"index": index, "custom": {"input": delta}}),
                };
                self.say(choice, json!({"tool_calls": [call]}));
            }
            // The finish reason and the report tell how it ended.
            _ => {}
        }
    }

    /// The probabilities that were not sent yet.
    fn probabilities(&mut self, choice: usize) -> Value {
        if !self.frame.logprobs {
            return Value::Null;
        }
        let steps = std::mem::take(&mut self.held[choice]);
        let served = self.running.as_ref().map(|running| running.served.clone());
        served.map_or(Value::Null, |served| logprobs(&steps, served.louver.engine().vocab()))
    }

    fn end(&mut self) {
        self.running = None;
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
            self.ready.push_back(sse(&usage));
        }
        self.ready.push_back(Bytes::from_static(DONE));
    }

    /// Says what went wrong; nothing follows, so that nobody takes the answer for whole.
    fn fail(&mut self, error: &ApiError) {
        self.running = None;
        count_error(&self.app, error);
        self.ready.push_back(sse(&error.body()));
    }
}
