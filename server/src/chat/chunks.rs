//! Chunks of a streamed response of Chat Completions or Completions: what both have in common.

use std::collections::VecDeque;

use axum::body::Bytes;
use serde_json::Value;

use crate::chat::response::{ChoiceBody, CompletionBody, ResponseMeta};
use crate::generation::{DONE, FinishedChoice, RunningRequest, Usage, data_event};
use crate::request::options::StreamOptions;

/// The chunks of one response.
pub(crate) struct Chunks {
    pub(crate) meta: ResponseMeta,
    /// The member `object` of every chunk.
    object: &'static str,
    options: StreamOptions,
    usage: Usage,
}

impl Chunks {
    pub(crate) fn new(
        meta: ResponseMeta,
        object: &'static str,
        options: StreamOptions,
        running: &RunningRequest,
    ) -> Chunks {
        let usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
        Chunks { meta, object, options, usage }
    }

    /// A chunk with one choice.
    fn chunk<'a>(&'a self, choice: ChoiceBody<'a>) -> CompletionBody<'a> {
        let mut chunk = self.meta.body(self.object, vec![choice]);
        chunk.usage = self.options.include_usage.then_some(Value::Null);
        chunk
    }

    /// Sends a chunk with one choice.
    pub(crate) fn push(&self, choice: ChoiceBody<'_>, out: &mut VecDeque<Bytes>) {
        out.push_back(data_event(&self.chunk(choice)));
    }

    /// Adds the token counts of a choice that has ended.
    pub(crate) fn add_usage(&mut self, finished: &FinishedChoice) {
        self.usage.add_choice(&finished.generation);
    }

    /// Sends the last chunk of a choice, with its report.
    pub(crate) fn push_last(
        &self,
        choice: ChoiceBody<'_>,
        finished: &FinishedChoice,
        out: &mut VecDeque<Bytes>,
    ) {
        let mut chunk = self.chunk(choice);
        chunk.louver = finished.louver_member();
        out.push_back(data_event(&chunk));
    }

    /// Ends the stream: with the usage, if that was asked for.
    pub(crate) fn end(&self, out: &mut VecDeque<Bytes>) {
        if self.options.include_usage {
            let mut chunk = self.meta.body(self.object, Vec::new());
            chunk.usage = Some(self.usage.json());
            out.push_back(data_event(&chunk));
        }
        out.push_back(Bytes::from_static(DONE));
    }
}
