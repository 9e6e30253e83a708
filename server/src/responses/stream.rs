//! A response as typed server-sent events while it is made.

use std::collections::VecDeque;

use axum::body::Bytes;
use axum::response::Response;
use louver_mistralrs::Finish;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::responses::items::Output;
use crate::responses::object::{Frame, Status};
use crate::state::App;
use crate::turn::{Progress, Running, Teller, told};

/// Says what happens.
struct Sender {
    frame: Frame,
    output: Output,
}

/// The streamed answer.
pub(super) fn answer(app: App, running: Running, frame: Frame) -> Response {
    let mut output = Output::new(&*frame.suffix);
    for kind in ["response.created", "response.in_progress"] {
        output.event(kind, json!({"response": frame.response(Status::InProgress, &[])}));
    }
    let (mut sender, mut ready) = (Sender { frame, output }, VecDeque::new());
    sender.flush(&mut ready);
    told(app, running, sender, ready)
}

fn sse(event: &Value) -> Bytes {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()).into()
}

impl Sender {
    fn flush(&mut self, out: &mut VecDeque<Bytes>) {
        out.extend(self.output.take_events().iter().map(sse));
    }
}

impl Teller for Sender {
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>) {
        match progress {
            Progress::Event { event, .. } => self.output.push(&event),
            Progress::End { generation, trace, .. } => {
                self.output.finish(generation.finish != Finish::Stop);
                let response = self.frame.response(
                    Status::Ended { generation: &generation, trace },
                    self.output.items(),
                );
                let kind = match self.frame.word(&generation) {
                    "completed" => "response.completed",
                    _ => "response.incomplete",
                };
                self.output.event(kind, json!({"response": response}));
            }
        }
        self.flush(out);
    }

    fn end(&mut self, _: &mut VecDeque<Bytes>) {}

    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        let response = self.frame.response(Status::Failed(error), self.output.items());
        self.output.event("response.failed", json!({"response": response}));
        self.flush(out);
    }
}
