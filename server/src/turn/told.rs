//! A request's generations told as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::http::count_error;
use crate::state::App;
use crate::turn::{Progress, Running};

/// A comment is sent after such a time of silence, so that nobody between takes the connection for dead.
const SILENCE: Duration = Duration::from_secs(15);

/// How a route tells what happens, each time as the bytes of any number of events.
pub(crate) trait Teller: Send + 'static {
    /// A choice said something, or is over.
    fn progress(&mut self, running: &Running, progress: Progress, out: &mut VecDeque<Bytes>);

    /// All choices are over.
    fn end(&mut self, out: &mut VecDeque<Bytes>);

    /// The request failed. Nothing is said behind it, so that nobody takes the answer for whole.
    fn fail(&mut self, error: &ApiError, out: &mut VecDeque<Bytes>);
}

struct Told<T> {
    app: App,
    /// None once all has been said.
    running: Option<Running>,
    teller: T,
    ready: VecDeque<Bytes>,
}

/// The answer of a route that streams: what is `ready`, and then what happens. Dropping its body cancels the generations.
pub(crate) fn told(app: App, running: Running, teller: impl Teller, ready: VecDeque<Bytes>) -> Response {
    let told = Told { app, running: Some(running), teller, ready };
    let events = futures::stream::unfold(told, |mut told| async move {
        let piece = told.next().await?;
        Some((Ok::<_, Infallible>(piece), told))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(events)).into_response()
}

impl<T: Teller> Told<T> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            let running = self.running.as_mut()?;
            match tokio::time::timeout(SILENCE, running.next()).await {
                Err(_) => return Some(Bytes::from_static(b": still there\n\n")),
                Ok(Some(Ok(progress))) => self.teller.progress(running, progress, &mut self.ready),
                Ok(Some(Err(error))) => {
                    count_error(&self.app, &error);
                    self.teller.fail(&error, &mut self.ready);
                    self.running = None;
                }
                Ok(None) => {
                    self.teller.end(&mut self.ready);
                    self.running = None;
                }
            }
        }
    }
}
