//! Streamed responses: typed server-sent events.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::response::Response;
use serde_json::json;

use crate::error::ApiError;
use crate::responses::items::OutputItems;
use crate::responses::object::{ResponseStatus, ResponseTemplate};
use crate::state::App;
use crate::turn::{EventWriter, Progress, RunningTurn, stream_events, typed_event};

/// Serialises a turn's events in the Responses format.
struct ResponseEventWriter {
    template: ResponseTemplate,
    output: OutputItems,
}

/// The streamed response.
pub(super) fn response(
    app: App,
    running: RunningTurn,
    mut output: OutputItems,
    template: ResponseTemplate,
) -> Response {
    for kind in ["response.created", "response.in_progress"] {
        output.event(kind, json!({"response": template.response(ResponseStatus::InProgress, &[])}));
    }
    output.begin_lists();
    let (mut writer, mut ready) = (ResponseEventWriter { template, output }, VecDeque::new());
    writer.flush(&mut ready);
    stream_events(app, running, writer, ready)
}

impl ResponseEventWriter {
    fn flush(&mut self, out: &mut VecDeque<Bytes>) {
        out.extend(self.output.take_events().iter().map(typed_event));
    }
}

impl EventWriter for ResponseEventWriter {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        match progress {
            Progress::Event { event, .. } => self.output.push(&event),
            Progress::ToolResults { results, usage } => {
                self.output.tool_results(&results);
                self.template.add_usage(usage);
            }
            Progress::End { generation, trace, .. } => {
                self.output.finish(self.template.status_name(&generation) != "completed");
                let response = self.template.response(
                    ResponseStatus::Ended { generation: &generation, trace },
                    self.output.items(),
                );
                self.template.store(&response);
                let kind = match self.template.status_name(&generation) {
                    "completed" => "response.completed",
                    _ => "response.incomplete",
                };
                self.output.event(kind, json!({"response": response}));
            }
        }
        self.flush(out);
    }

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        let response = self.template.response(ResponseStatus::Failed(error), self.output.items());
        self.output.event("response.failed", json!({"response": response}));
        self.flush(out);
    }
}
