//! A response as typed server-sent events while it is made.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::body::Bytes;
use futures::Stream;
use louver_mistralrs::Finish;
use serde_json::{Value, json};

use crate::chat::SILENCE;
use crate::error::ApiError;
use crate::http::count_error;
use crate::responses::items::Output;
use crate::responses::object::{Frame, Status};
use crate::state::App;
use crate::turn::{Progress, Running};

/// What is sent next.
struct Sender {
    app: App,
    /// None once all has been said.
    running: Option<Running>,
    frame: Frame,
    output: Output,
    ready: VecDeque<Bytes>,
}

/// The events. Dropping the stream cancels the generation.
pub(super) fn events(
    app: App,
    running: Running,
    frame: Frame,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let mut output = Output::new(&*frame.suffix);
    for kind in ["response.created", "response.in_progress"] {
        output.event(kind, json!({"response": frame.response(Status::InProgress, &[])}));
    }
    let mut sender = Sender { app, running: Some(running), frame, output, ready: VecDeque::new() };
    sender.flush();
    futures::stream::unfold(sender, |mut sender| async move {
        let piece = sender.next().await?;
        Some((Ok(piece), sender))
    })
}

fn sse(event: &Value) -> Bytes {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()).into()
}

impl Sender {
    fn flush(&mut self) {
        let events = self.output.take_events();
        self.ready.extend(events.iter().map(sse));
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            let running = self.running.as_mut()?;
            match tokio::time::timeout(SILENCE, running.next()).await {
                Err(_) => return Some(Bytes::from_static(b": still there\n\n")),
                Ok(None) => self.running = None,
                Ok(Some(Err(error))) => self.fail(&error),
                Ok(Some(Ok(Progress::Event { event, .. }))) => self.output.push(&event),
                Ok(Some(Ok(Progress::End { generation, trace, .. }))) => {
                    self.output.finish(generation.finish != Finish::Stop);
                    let response =
                        self.frame.response(Status::Ended { generation: &generation, trace }, self.output.items());
                    let kind = match self.frame.word(&generation) {
                        "completed" => "response.completed",
                        _ => "response.incomplete",
                    };
                    self.output.event(kind, json!({"response": response}));
                }
            }
            self.flush();
        }
    }

    fn fail(&mut self, error: &ApiError) {
        self.running = None;
        count_error(&self.app, error);
        let response = self.frame.response(Status::Failed(error), self.output.items());
        self.output.event("response.failed", json!({"response": response}));
    }
}
