//! Streamed completions: chunks with the form of the complete response.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::response::Response;
use louver_formats::Event;
use louver_mistralrs::Step;
use serde_json::Value;

use crate::chat::{Chunks, ResponseMeta};
use crate::completions::response::{Logprobs, OBJECT, choice_json, finish_reason};
use crate::request::options::StreamOptions;
use crate::state::App;
use crate::turn::{EventWriter, Progress, RunningTurn, stream_events};

/// Serialises a turn's events as chunks.
struct CompletionEventWriter {
    chunks: Chunks,
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
    let chunks = Chunks::new(meta, OBJECT, options, &running);
    let writer = CompletionEventWriter { chunks, pending: Vec::new() };
    stream_events(app, running, writer, VecDeque::new())
}

impl CompletionEventWriter {
    fn add_steps(&mut self, choice: usize, steps: Vec<Step>) {
        let top = self.chunks.meta.logprobs.unwrap_or(0);
        if self.pending.len() <= choice {
            self.pending.resize_with(choice + 1, || (Vec::new(), Logprobs::new(top)));
        }
        self.pending[choice].0.extend(steps);
    }

    /// The log probabilities that were not sent yet.
    fn take_logprobs(&mut self, choice: usize) -> Option<Value> {
        self.chunks.meta.logprobs?;
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
                    self.chunks.push(choice_json(choice, &delta, logprobs, None), out);
                }
            }
            // A completion calls no tools.
            Progress::ToolResults { .. } => {}
            Progress::End { finished, steps } => {
                let choice = finished.index;
                self.add_steps(choice, steps);
                let logprobs = self.take_logprobs(choice);
                let finish = Some(finish_reason(&finished.generation));
                let json = choice_json(choice, "", logprobs, finish);
                self.chunks.push_last(json, &finished, out);
            }
        }
    }

    fn end(&mut self, out: &mut VecDeque<Bytes>) {
        self.chunks.end(out);
    }
}
