//! What surrounds every route: an id, a log line, counters, keys, and a net below panics.

use std::panic::AssertUnwindSafe;
use std::task::{Poll, ready};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::{FutureExt, StreamExt};
use tracing::Instrument;

use crate::error::{ApiError, ErrorKind};
use crate::http::connection::{Answering, Peer};
use crate::metrics::RequestLabels;
use crate::state::{App, fnv1a};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id a client may give.
const MAX_ID: usize = 128;
/// Routes that show nothing of anyone's and need no key.
const OPEN: [&str; 2] = ["/healthz", "/inspect"];

/// A request's id: the client's `x-request-id`, or one that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(pub(crate) String);

impl RequestId {
    fn of(headers: &HeaderMap) -> RequestId {
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let good = |id: &&str| {
            !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(|b| b.is_ascii_graphic())
        };
        RequestId(given.filter(good).map_or_else(|| fresh_id("req_"), str::to_owned))
    }
}

/// An id that is not given twice.
pub(crate) fn fresh_id(prefix: &str) -> String {
    use std::hash::{BuildHasher, RandomState};
    // Each state has keys of its own, begun from the system's randomness.
    let state = RandomState::new();
    format!("{prefix}{:016x}{:08x}", state.hash_one(0), state.hash_one(1) >> 32)
}

/// Gives every request its id, counts and logs it, and turns a panic into an answer.
pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let peer = request.extensions().get::<ConnectInfo<Peer>>();
    let (answering, client) =
        (peer.map(|peer| peer.0.answering()), peer.map(|peer| peer.0.address.to_string()));
    let route = route_label(request.uri().path());
    let span = tracing::info_span!("request", id = id.0, method = %request.method(), route, client);
    app.metrics().active.inc();
    let mut guard = Guard {
        app: app.clone(),
        route,
        status: 499,
        begun,
        span: span.clone(),
        _answering: answering,
    };
    let answer = AssertUnwindSafe(next.run(request).instrument(span)).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| {
        tracing::error!(id = id.0, "a handler panicked");
        ApiError::whole(ErrorKind::Internal, "internal", "internal error").into_response()
    });
    guard.status = response.status().as_u16();
    if let Some(error) = response.extensions().get::<ApiError>() {
        guard.span.in_scope(|| count_error(&app, error));
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response.map(|body| watched(body, guard))
}

/// Counts and logs an error.
pub(crate) fn count_error(app: &App, error: &ApiError) {
    let fault = error.first();
    app.metrics().count(error);
    if error.kind.status().is_server_error() {
        tracing::error!(code = fault.code, "{}", fault.message);
    } else {
        tracing::info!(code = fault.code, param = fault.param, "refused: {}", fault.message);
    }
}

/// A route as metrics name it: few, whatever clients ask for.
fn route_label(path: &str) -> &'static str {
    const ROUTES: [&str; 8] = [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/louver/check",
        "/v1/louver/traces",
        "/v1/models",
        "/healthz",
        "/metrics",
        "/inspect",
    ];
    ROUTES.into_iter().find(|route| lies_within(path, route)).unwrap_or("other")
}

/// Whether a path is this route or below it.
fn lies_within(path: &str, route: &str) -> bool {
    path.strip_prefix(route).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Lives as long as a request is being answered; counts and logs it at the end, also where the client has left.
struct Guard {
    app: App,
    route: &'static str,
    /// 499 until there is an answer: the client left before.
    status: u16,
    begun: Instant,
    span: tracing::Span,
    _answering: Option<Answering>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.app.metrics().active.dec();
        let labels = RequestLabels { route: self.route, code: self.status };
        self.app.metrics().requests.get_or_create(&labels).inc();
        let milliseconds = self.begun.elapsed().as_secs_f64() * 1e3;
        self.span.in_scope(|| match self.route {
            // Asked for every few seconds by machines.
            "/healthz" | "/metrics" => tracing::debug!(status = self.status, milliseconds, "done"),
            _ => tracing::info!(status = self.status, milliseconds, "done"),
        });
    }
}

/// A body that ends its request's guard when it has ended or was dropped, and is made within its span. One that is there
/// already is left as it is.
fn watched(body: Body, guard: Guard) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    let span = guard.span.clone();
    let (mut pieces, mut guard) = (body.into_data_stream(), Some(guard));
    Body::from_stream(futures::stream::poll_fn(move |context| {
        let _within = span.enter();
        let piece = ready!(pieces.poll_next_unpin(context));
        if piece.is_none() {
            drop(guard.take());
        }
        Poll::Ready(piece)
    }))
}

/// Lets pass who has one of the keys.
pub(crate) async fn authorize(State(app): State<App>, request: Request, next: Next) -> Response {
    let keys = &app.config().api_keys;
    if keys.is_empty() || OPEN.iter().any(|route| lies_within(request.uri().path(), route)) {
        return next.run(request).await;
    }
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    // All keys are compared, each in full.
    let known = token
        .is_some_and(|token| keys.iter().fold(false, |known, key| known | same_key(token, key)));
    if known {
        return next.run(request).await;
    }
    let (code, message) = match token {
        None => ("missing_api_key", "an API key is needed: Authorization: Bearer KEY"),
        Some(_) => ("invalid_api_key", "the API key is not one of this server's"),
    };
    ApiError::whole(ErrorKind::Unauthorized, code, message).into_response()
}

/// Whether two keys are equal, in a time that does not depend on where they differ: hashes are compared first, and the
/// bytes all at once.
fn same_key(given: &str, key: &str) -> bool {
    let (given, key) = (given.as_bytes(), key.as_bytes());
    let mut difference = u8::from(given.len() != key.len()) | u8::from(fnv1a(given) != fnv1a(key));
    for (i, byte) in given.iter().enumerate() {
        difference |= byte ^ key[i % key.len().max(1)];
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for (given, key, same) in [
            ("secret", "secret", true),
            ("secret", "secreT", false),
            ("secre", "secret", false),
            ("secretsecret", "secret", false),
            ("", "secret", false),
        ] {
            assert_eq!(same_key(given, key), same, "{given} {key}");
        }
    }

    #[test]
    fn ids() {
        let of = |value: &str| {
            let headers = [(REQUEST_ID, HeaderValue::from_str(value).unwrap())];
            RequestId::of(&HeaderMap::from_iter(headers)).0
        };
        assert_eq!(of("abc-1"), "abc-1");
        assert!(of("").starts_with("req_"));
        assert!(of("a b").starts_with("req_"));
        assert!(of(&"x".repeat(200)).starts_with("req_"));
        assert_ne!(fresh_id(""), fresh_id(""));
        assert_eq!(fresh_id("").len(), 24);
    }

    #[test]
    fn routes() {
        assert_eq!(route_label("/v1/models/org/name"), "/v1/models");
        assert_eq!(route_label("/v1/modelsx"), "other");
        assert_eq!(route_label("/"), "other");
    }
}
