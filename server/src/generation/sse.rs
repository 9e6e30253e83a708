//! Streaming responses: a request's generations as server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::generation::queue::{self, Receiver, StreamAborted};
use crate::generation::{Progress, RunningRequest};
use crate::http::body::run_blocking;
use crate::http::json_text;
use crate::state::App;

/// After this time without output a comment is sent, so that proxies keep the connection open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The end marker of streams of chunks, if they have no error.
pub(crate) const DONE: &[u8] = b"data: [DONE]\n\n";

/// A server-sent event without a name.
pub(crate) fn data_event(value: &impl Serialize) -> Bytes {
    format!("data: {}\n\n", json_text(value)).into()
}

/// Serialises the events of a request in the format of one route. Each method appends any number of
/// server-sent events to `out`.
pub(crate) trait EventWriter: Send + 'static {
    /// A choice produced output or ended.
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>);

    /// All choices ended. By default nothing follows.
    fn end(&mut self, _out: &mut VecDeque<Bytes>) {}

    /// The request failed; by default the error is an event in OpenAI's format. No end marker may
    /// follow, so that clients do not take the response for complete.
    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>) {
        out.push_back(data_event(&error.body()));
    }
}

/// A server-sent event whose name is the `type` of its data.
pub(crate) fn typed_event(event: &Value) -> Bytes {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()).into()
}

struct SseBody<T> {
    /// `None` after the last event.
    receiver: Option<Receiver>,
    writer: T,
    ready: VecDeque<Bytes>,
}

/// Builds a streaming response: the bytes in `ready`, then the events of `running`. The generations
/// run whether or not the body is polled; dropping the body cancels them.
pub(crate) fn stream_events(
    app: App,
    running: RunningRequest,
    writer: impl EventWriter,
    ready: VecDeque<Bytes>,
) -> Response {
    let body = SseBody { receiver: Some(queue::spawn(app, running)), writer, ready };
    let events = futures::stream::try_unfold(body, SseBody::next);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(events)).into_response()
}

impl<T: EventWriter> SseBody<T> {
    /// The next bytes, and the rest of the body.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StreamAborted> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some((chunk, self)));
            }
            let Some(receiver) = &mut self.receiver else { return Ok(None) };
            let Ok(received) = tokio::time::timeout(KEEP_ALIVE_INTERVAL, receiver.next()).await
            else {
                return Ok(Some((Bytes::from_static(b": still there\n\n"), self)));
            };
            match received {
                // On a blocking thread, because the end of a response may repeat all of it.
                Ok(Some(Ok(end @ Progress::End { .. }))) => {
                    let write = move || {
                        self.writer.progress(end, &mut self.ready);
                        Ok(self)
                    };
                    self = run_blocking(write).await.map_err(|_| StreamAborted)?;
                }
                Ok(Some(Ok(progress))) => self.writer.progress(progress, &mut self.ready),
                Ok(Some(Err(error))) => {
                    self.writer.fail(&error, &mut self.ready);
                    self.receiver = None;
                }
                Ok(None) => {
                    self.writer.end(&mut self.ready);
                    self.receiver = None;
                }
                Err(broken) => {
                    self.receiver = None;
                    return Err(broken);
                }
            }
        }
    }
}
