//! Chunks of a streamed response of Chat Completions or Completions: what both have in common.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Bytes;
use louver_mistralrs::Generation;
use serde_json::Value;

use crate::chat::response::{ResponseMeta, louver_member};
use crate::request::options::StreamOptions;
use crate::turn::{DONE, RunningTurn, Usage, data_event};

/// The chunks of one response.
pub(crate) struct Chunks {
    pub(crate) meta: ResponseMeta,
    /// The member `object` of every chunk.
    object: &'static str,
    options: StreamOptions,
    usage: Usage,
    /// Time to lower and compile the grammar.
    compiled_in: Duration,
}

impl Chunks {
    pub(crate) fn new(
        meta: ResponseMeta,
        object: &'static str,
        options: StreamOptions,
        running: &RunningTurn,
    ) -> Chunks {
        let usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
        Chunks { meta, object, options, usage, compiled_in: running.compiled_in() }
    }

    /// A chunk with one choice.
    fn chunk(&self, choice: Value) -> Value {
        let mut chunk = self.meta.body(self.object, vec![choice]);
        if self.options.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    /// Sends a chunk with one choice.
    pub(crate) fn push(&self, choice: Value, out: &mut VecDeque<Bytes>) {
        out.push_back(data_event(&self.chunk(choice)));
    }

    /// Sends the last chunk of a choice, with its report.
    pub(crate) fn push_last(
        &mut self,
        choice: Value,
        (generation, trace): (&Generation, Option<String>),
        out: &mut VecDeque<Bytes>,
    ) {
        self.usage.add_choice(generation);
        let mut chunk = self.chunk(choice);
        let report = louver_member(generation, trace, self.meta.has_report, self.compiled_in);
        if let Some(report) = report {
            chunk["louver"] = report;
        }
        out.push_back(data_event(&chunk));
    }

    /// Ends the stream: with the usage, if that was asked for.
    pub(crate) fn end(&self, out: &mut VecDeque<Bytes>) {
        if self.options.include_usage {
            let mut chunk = self.meta.body(self.object, Vec::new());
            chunk["usage"] = self.usage.json();
            out.push_back(data_event(&chunk));
        }
        out.push_back(Bytes::from_static(DONE));
    }
}
