//! Streamed responses: typed server-sent events.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::response::Response;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::generation::{EventWriter, Progress, RunningRequest, stream_events, typed_event};
use crate::responses::items::OutputItems;
use crate::responses::object::{ResponseBuilder, ResponseStatus, status_name};
use crate::state::App;

/// Writes the output in the Responses format: the response, and the events that build it.
pub(super) struct ResponseWriter {
    pub(super) builder: ResponseBuilder,
    pub(super) output: OutputItems,
}

/// The streamed response. Its output begins with the items in `lists`.
pub(super) fn response(
    app: App,
    running: RunningRequest,
    mut writer: ResponseWriter,
    lists: Vec<Value>,
) -> Response {
    for kind in ["response.created", "response.in_progress"] {
        let response = writer.builder.response(ResponseStatus::InProgress, &[]);
        writer.output.event(kind, json!({"response": response}));
    }
    writer.output.add_lists(lists);
    let mut ready = VecDeque::new();
    writer.flush(&mut ready);
    stream_events(app, running, writer, ready)
}

impl ResponseWriter {
    /// Processes the progress of the request. Returns the response when it has ended, and stores
    /// it.
    pub(super) fn process(&mut self, progress: Progress) -> Option<Value> {
        match progress {
            Progress::Event { event, .. } => self.output.push(&event),
            Progress::ToolResults { results, usage, louver } => {
                self.output.tool_results(&results);
                self.builder.add_round(usage, louver);
            }
            Progress::End { finished, .. } => {
                self.output.finish(status_name(&finished.generation) != "completed");
                let status = ResponseStatus::Ended(&finished);
                let response = self.builder.response(status, self.output.items());
                self.builder.store(&response);
                return Some(response);
            }
        }
        None
    }

    fn flush(&mut self, out: &mut VecDeque<Bytes>) {
        out.extend(self.output.take_events().iter().map(typed_event));
    }
}

impl EventWriter for ResponseWriter {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        if let Some(response) = self.process(progress) {
            let is_complete = response["status"] == "completed";
            let kind = if is_complete { "response.completed" } else { "response.incomplete" };
            self.output.event(kind, json!({"response": response}));
        }
        self.flush(out);
    }

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        let response = self.builder.response(ResponseStatus::Failed(error), self.output.items());
        self.output.event("response.failed", json!({"response": response}));
        self.flush(out);
    }
}
