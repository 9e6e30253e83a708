//! Middleware of every route: request id, log line, metrics, API key check, and panic handling.

use std::panic::AssertUnwindSafe;
use std::task::{Poll, ready};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::{FutureExt, StreamExt};
use tracing::Instrument;

use crate::error::{ApiError, ErrorKind};
use crate::http::api_key::valid_key;
use crate::http::connection::{ActiveRequest, ClientConnection};
use crate::http::error_format::{as_messages_response, is_messages_request};
use crate::http::routes::Route;
use crate::metrics::RequestLabels;
use crate::state::App;
use crate::telemetry;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of a request id that the client supplies, in bytes.
const MAX_ID_BYTES: usize = 128;

/// A request's id: the client's `x-request-id`, or a generated one.
pub(super) fn request_id(headers: &HeaderMap) -> String {
    let supplied = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_valid = |id: &&str| {
        !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|b| b.is_ascii_graphic())
    };
    supplied.filter(is_valid).map_or_else(|| fresh_id("req_"), str::to_owned)
}

/// Generates a unique id.
pub(crate) fn fresh_id(prefix: &str) -> String {
    use std::hash::{BuildHasher, RandomState};
    // Each `RandomState` has its own keys, seeded from the system's randomness.
    let state = RandomState::new();
    format!("{prefix}{:016x}{:08x}", state.hash_one(0), state.hash_one(1) >> 32)
}

/// The id of a request, which requests have as an extension.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) String);

/// Assigns request ids, counts and logs requests, and turns a panic into a 500 response.
pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    let client = request.extensions().get::<ConnectInfo<ClientConnection>>();
    let (counted, client) = (
        client.map(|client| client.0.begin_request()),
        client.map(|client| client.0.address.to_string()),
    );
    let route = Route::of(request.uri().path());
    let (method, headers) = (request.method(), request.headers());
    let is_messages = is_messages_request(route, headers);
    let exported = telemetry::request(method, route, &id, client.as_deref(), headers);
    let method = telemetry::method_name(method);
    let span =
        tracing::info_span!("request", id = id, method = %method, route = route.path, client);
    app.metrics().active_requests.inc();
    let mut guard = RequestGuard {
        app: app.clone(),
        route,
        status: 499,
        started,
        span: span.clone(),
        exported: exported.clone(),
        _active_request: counted,
    };
    // Entered separately: the log level may disable the first span.
    let handled = next.run(request).instrument(span).instrument(exported);
    let answer = AssertUnwindSafe(handled).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| {
        tracing::error!(id = id, "a handler panicked");
        ApiError::general(ErrorKind::Internal, "internal", "internal error").into_response()
    });
    if let Some(error) = response.extensions().get::<ApiError>() {
        guard.exported.in_scope(|| guard.span.in_scope(|| count_error(&app, error)));
    }
    response = with_request_id(response, &id, is_messages);
    guard.status = response.status().as_u16();
    response.map(|body| guard_body(body, guard))
}

/// The response with the id of its request, in the format of Anthropic's API if `is_messages`.
pub(super) fn with_request_id(response: Response, id: &str, is_messages: bool) -> Response {
    let mut response = match is_messages {
        true => as_messages_response(response, id),
        false => response,
    };
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Counts and logs an error response.
pub(crate) fn count_error(app: &App, error: &ApiError) {
    let fault = error.first();
    app.metrics().count_error(error);
    if error.kind.status().is_server_error() {
        tracing::error!(code = fault.code, "{}", fault.message);
    } else {
        tracing::info!(code = fault.code, param = fault.param, "rejected: {}", fault.message);
    }
}

/// Exists while a request is in progress. On drop it counts and logs the request, also when the
/// client has disconnected.
struct RequestGuard {
    app: App,
    route: &'static Route,
    /// The response status; 499 (client closed request) until there is a response.
    status: u16,
    started: Instant,
    span: tracing::Span,
    /// The span for OpenTelemetry.
    exported: tracing::Span,
    _active_request: Option<ActiveRequest>,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.app.metrics().active_requests.dec();
        let labels = RequestLabels { route: self.route.path, code: self.status };
        self.app.metrics().requests.get_or_create(&labels).inc();
        telemetry::end_request(&self.exported, self.status);
        let milliseconds = self.started.elapsed().as_secs_f64() * 1e3;
        self.span.in_scope(|| match self.route.is_polled {
            true => tracing::debug!(status = self.status, milliseconds, "done"),
            false => tracing::info!(status = self.status, milliseconds, "done"),
        });
    }
}

/// Drops the request's guard when the body ends or is dropped, and polls the body within the
/// request's span. Bodies of known length are returned unchanged.
fn guard_body(body: Body, guard: RequestGuard) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    let (span, exported) = (guard.span.clone(), guard.exported.clone());
    let (mut chunks, mut guard) = (body.into_data_stream(), Some(guard));
    Body::from_stream(futures::stream::poll_fn(move |context| {
        let _outer = exported.enter();
        let _inner = span.enter();
        let chunk = ready!(chunks.poll_next_unpin(context));
        if chunk.is_none() {
            drop(guard.take());
        }
        Poll::Ready(chunk)
    }))
}

/// Middleware that requires an API key, if any are configured.
pub(crate) async fn authorize(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let keys = &app.config().api_keys;
    if keys.is_empty() || Route::of(request.uri().path()).is_public {
        return next.run(request).await;
    }
    match valid_key(keys, request.headers()) {
        Ok(key) => {
            request.extensions_mut().insert(key);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_ids_are_checked_and_generated_ids_are_unique() {
        let from_headers = |value: &str| {
            let headers = [(REQUEST_ID, HeaderValue::from_str(value).unwrap())];
            request_id(&HeaderMap::from_iter(headers))
        };
        assert_eq!(from_headers("abc-1"), "abc-1");
        assert!(from_headers("").starts_with("req_"));
        assert!(from_headers("a b").starts_with("req_"));
        assert!(from_headers(&"x".repeat(200)).starts_with("req_"));
        assert_ne!(fresh_id(""), fresh_id(""));
        assert_eq!(fresh_id("").len(), 24);
    }
}
