//! Streamed completions: chunks with the form of the complete response.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use louver_formats::Event;
use louver_mistralrs::Step;

use crate::chat::{ChoiceBody, Chunks, ResponseMeta};
use crate::completions::response::{Logprobs, OBJECT};
use crate::generation::{EventWriter, Progress, RunningRequest, finish_reason, stream_events};
use crate::request::options::StreamOptions;
use crate::served_model::ServedModel;
use crate::state::App;

/// Serialises the events of a request as chunks.
struct CompletionEventWriter {
    chunks: Chunks,
    served: Arc<ServedModel>,
    /// The writer of each choice's log probabilities.
    logprobs: Vec<Logprobs>,
}

/// The streamed response.
pub(super) fn response(
    app: App,
    running: RunningRequest,
    meta: ResponseMeta,
    options: StreamOptions,
) -> Response {
    let chunks = Chunks::new(meta, OBJECT, options, &running);
    let served = running.served().clone();
    let writer = CompletionEventWriter { chunks, served, logprobs: Vec::new() };
    stream_events(app, running, writer, VecDeque::new())
}

impl CompletionEventWriter {
    fn add_steps(&mut self, choice: usize, steps: Vec<Step>) {
        let top = self.chunks.meta.logprobs.unwrap_or(0);
        if self.logprobs.len() <= choice {
            self.logprobs.resize_with(choice + 1, || Logprobs::new(top));
        }
        self.logprobs[choice].add_steps(steps);
    }

    /// A choice of a chunk, with the log probabilities of its text.
    fn chunk(
        &mut self,
        choice: usize,
        text: &str,
        finish: Option<&'static str>,
    ) -> ChoiceBody<'static> {
        let vocab = self.served.louver.engine().vocab();
        let logprobs = self.chunks.meta.logprobs;
        let logprobs = logprobs.map(|_| self.logprobs[choice].take(text, vocab));
        ChoiceBody::new(choice, "text", text.into(), logprobs, finish)
    }
}

impl EventWriter for CompletionEventWriter {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        match progress {
            Progress::Event { choice, event, steps } => {
                self.add_steps(choice, steps);
                if let Event::TextDelta { delta } = event {
                    let chunk = self.chunk(choice, &delta, None);
                    self.chunks.push(chunk, out);
                }
            }
            // A completion calls no tools.
            Progress::ToolResults { .. } => {}
            Progress::End { finished, steps } => {
                let choice = finished.index;
                self.chunks.add_usage(&finished);
                self.add_steps(choice, steps);
                let finish = finish_reason(&finished.generation);
                let chunk = self.chunk(choice, "", Some(finish));
                self.chunks.push_last(chunk, &finished, out);
            }
        }
    }

    fn end(&mut self, out: &mut VecDeque<Bytes>) {
        self.chunks.end(out);
    }
}
