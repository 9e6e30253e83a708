//! Streamed completions: chunks with the form of the complete response.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use louver_formats::Event;
use louver_mistralrs::Step;
use serde_json::Value;

use crate::chat::{ResponseMeta, Usage, louver_member};
use crate::completions::response::{Logprobs, body, choice_json, finish_reason};
use crate::error::ApiError;
use crate::request::options::StreamOptions;
use crate::state::App;
use crate::turn::{DONE, EventWriter, Progress, RunningTurn, data_event, stream_events};

/// Serialises a turn's events as chunks.
struct CompletionEventWriter {
    meta: ResponseMeta,
    compiled_in: Duration,
    options: StreamOptions,
    usage: Usage,
    /// Per choice: steps whose log probabilities go with the next chunk, and their writer.
    pending: Vec<(Vec<Step>, Logprobs)>,
}

/// The streamed response.
pub(super) fn response(
    app: App,
    running: RunningTurn,
    meta: ResponseMeta,
    options: StreamOptions,
) -> Response {
    let usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let compiled_in = running.compiled_in();
    let writer = CompletionEventWriter { meta, compiled_in, options, usage, pending: Vec::new() };
    stream_events(app, running, writer, VecDeque::new())
}

impl CompletionEventWriter {
    fn chunk(&self, choices: Vec<Value>) -> Value {
        let mut chunk = body(&self.meta, choices);
        if self.options.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn add_steps(&mut self, choice: usize, steps: Vec<Step>) {
        let top = self.meta.logprobs.unwrap_or(0);
        if self.pending.len() <= choice {
            self.pending.resize_with(choice + 1, || (Vec::new(), Logprobs::new(top)));
        }
        self.pending[choice].0.extend(steps);
    }

    /// The log probabilities that were not sent yet.
    fn take_logprobs(&mut self, choice: usize) -> Option<Value> {
        self.meta.logprobs?;
        let (steps, logprobs) = &mut self.pending[choice];
        Some(logprobs.json(&std::mem::take(steps)))
    }
}

impl EventWriter for CompletionEventWriter {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        match progress {
            Progress::Event { choice, event, steps } => {
                self.add_steps(choice, steps);
                if let Event::TextDelta { delta } = event {
                    let logprobs = self.take_logprobs(choice);
                    let chunk = self.chunk(vec![choice_json(choice, &delta, logprobs, None)]);
                    out.push_back(data_event(&chunk));
                }
            }
            // A completion calls no tools.
            Progress::ToolResults { .. } => {}
            Progress::End { choice, generation, steps, trace } => {
                self.add_steps(choice, steps);
                self.usage.add(&generation);
                let logprobs = self.take_logprobs(choice);
                let finish = Some(finish_reason(&generation));
                let mut chunk = self.chunk(vec![choice_json(choice, "", logprobs, finish)]);
                let louver =
                    louver_member(&generation, trace, self.meta.has_report, self.compiled_in);
                if let Some(louver) = louver {
                    chunk["louver"] = louver;
                }
                out.push_back(data_event(&chunk));
            }
        }
    }

    fn end(&mut self, out: &mut VecDeque<Bytes>) {
        if self.options.include_usage {
            let mut chunk = body(&self.meta, Vec::new());
            chunk["usage"] = self.usage.json();
            out.push_back(data_event(&chunk));
        }
        out.push_back(Bytes::from_static(DONE));
    }

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        out.push_back(data_event(&error.body()));
    }
}
