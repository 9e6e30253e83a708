//! A request's generations told as server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::state::App;
use crate::turn::queue::{self, BrokenOff, Receiver};
use crate::turn::{Progress, Running};

/// A comment is sent after such a time of silence, so that nobody between takes the connection for dead.
const SILENCE: Duration = Duration::from_secs(15);

/// How a route tells what happens, each time as the bytes of any number of events.
pub(crate) trait Teller: Send + 'static {
    /// A choice said something, or is over.
    fn progress(&mut self, progress: Progress, out: &mut VecDeque<Bytes>);

    /// All choices are over.
    fn end(&mut self, out: &mut VecDeque<Bytes>);

    /// The request failed. Nothing is said behind it, so that nobody takes the answer for whole.
    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>);
}

struct Told<T> {
    /// None once all has been said.
    receiver: Option<Receiver>,
    teller: T,
    ready: VecDeque<Bytes>,
}

/// The answer of a route that streams: what is `ready`, and then what happens. The generations run
/// whether or not the body is polled. Dropping it cancels them.
pub(crate) fn told(
    app: App,
    running: Running,
    teller: impl Teller,
    ready: VecDeque<Bytes>,
) -> Response {
    let told = Told { receiver: Some(queue::spawn(app, running)), teller, ready };
    let events = futures::stream::unfold(told, |mut told| async move {
        let piece = told.next().await.transpose()?;
        Some((piece, told))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(events)).into_response()
}

impl<T: Teller> Told<T> {
    async fn next(&mut self) -> Result<Option<Bytes>, BrokenOff> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            let Some(receiver) = &mut self.receiver else { return Ok(None) };
            let Ok(received) = tokio::time::timeout(SILENCE, receiver.next()).await else {
                return Ok(Some(Bytes::from_static(b": still there\n\n")));
            };
            match received {
                Ok(Some(Ok(progress))) => self.teller.progress(progress, &mut self.ready),
                Ok(Some(Err(error))) => {
                    self.teller.fail(&error, &mut self.ready);
                    self.receiver = None;
                }
                Ok(None) => {
                    self.teller.end(&mut self.ready);
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
