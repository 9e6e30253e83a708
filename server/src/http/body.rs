//! Request bodies: collection bounded in length, time and memory; parsing as JSON with exact
//! numbers.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::http::{HeaderMap, HeaderValue, header};
use futures::StreamExt;
use louver::spec::json::Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{ApiError, ErrorKind};
use crate::limits::HttpLimits;
use crate::state::App;

/// Bytes of each body that are not charged to the shared budget, so that small bodies always pass.
const UNCHARGED_BYTES: usize = 64 << 10;
/// Longest time that a body waits for the shared budget. Then it is rejected and releases what it
/// holds, so that bodies that wait for one another do not deadlock.
const BUDGET_TIMEOUT: Duration = Duration::from_secs(1);
/// An oversized body is read and discarded up to this multiple of the limit, so that the client can
/// read the response.
const DRAIN_FACTOR: usize = 8;

/// A body and its permits of the shared budget.
struct CollectedBody {
    bytes: Vec<u8>,
    permits: Option<OwnedSemaphorePermit>,
}

/// Collects a body, parses it as JSON and passes it to `read`, on a blocking thread: short bodies
/// may refer to long conversations. Errors: those of `read`; 415 for another content type or
/// encoding, 413 beyond the length limit, 408 if the body arrives too slowly, 503 if the shared
/// budget is exhausted, 400 for invalid JSON.
pub(crate) async fn read_json<T: Send + 'static>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    read: impl FnOnce(Json, &App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    check_content_type(headers)?;
    let limits = app.config().limits.http;
    let limit = limits.read_timeout_s;
    let timed_out = |_| ApiError::timeout("body_timeout", "http.read_timeout_s", limit);
    let announced = body.size_hint().upper().and_then(|n| usize::try_from(n).ok());
    if announced.is_some_and(|length| length > limits.body_bytes) {
        // A client that waits for `100 Continue` sends nothing yet, and reading would ask for it.
        if !headers.contains_key(header::EXPECT) {
            let mut stream = body.into_data_stream();
            drain(&mut stream, limits.body_bytes * DRAIN_FACTOR, limits.read_timeout_s.0).await;
        }
        return Err(too_long(limits.body_bytes));
    }
    let collecting = collect(body, &limits, app.body_budget());
    let CollectedBody { bytes, permits } =
        timeout(limits.read_timeout_s.0, collecting).await.map_err(timed_out)??;
    let app = app.clone();
    run_blocking(move || {
        let _permits = permits;
        let invalid =
            |_| ApiError::general(ErrorKind::Invalid, "invalid_json", "the body is not UTF-8");
        let text = std::str::from_utf8(&bytes).map_err(invalid)?;
        read(Json::parse(text, &app.config().limits.engine())?, &app)
    })
    .await
}

/// Runs blocking work on a thread for it. A panic becomes an internal error.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let panicked = |_| ApiError::general(ErrorKind::Internal, "internal", "internal error");
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}

/// Collects a body and charges its bytes to the budget as they arrive.
async fn collect(
    body: Body,
    limits: &HttpLimits,
    budget: &Arc<Semaphore>,
) -> Result<CollectedBody, ApiError> {
    let limit = limits.body_bytes;
    let mut collected = CollectedBody { bytes: Vec::new(), permits: None };
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let interrupted =
            |_| ApiError::general(ErrorKind::Invalid, "broken_body", "the body ended early");
        let chunk = chunk.map_err(interrupted)?;
        if collected.bytes.len() + chunk.len() > limit {
            drop(collected);
            drain(&mut stream, limit * DRAIN_FACTOR, limits.read_timeout_s.0).await;
            return Err(too_long(limit));
        }
        collected.charge(chunk.len(), budget).await?;
        collected.bytes.extend_from_slice(&chunk);
    }
    Ok(collected)
}

impl CollectedBody {
    /// Charges further bytes to the budget. Error: the budget stays exhausted for too long.
    async fn charge(&mut self, more: usize, budget: &Arc<Semaphore>) -> Result<(), ApiError> {
        let length = self.bytes.len();
        let charged = (length + more).max(UNCHARGED_BYTES) - length.max(UNCHARGED_BYTES);
        if charged == 0 {
            return Ok(());
        }
        // At most the whole budget: `body_bytes` is at most `bodies_bytes`.
        let permits = u32::try_from(charged).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let Ok(Ok(permit)) =
            timeout(BUDGET_TIMEOUT, budget.clone().acquire_many_owned(permits)).await
        else {
            let message = "too many long bodies are being received: try again later";
            return Err(ApiError::general(ErrorKind::Unavailable, "bodies_full", message));
        };
        match &mut self.permits {
            Some(permits) => permits.merge(permit),
            permits => *permits = Some(permit),
        }
        Ok(())
    }
}

async fn drain(stream: &mut BodyDataStream, max_bytes: usize, time: Duration) {
    let mut discarded = 0;
    let reading = async {
        while let Some(Ok(chunk)) = stream.next().await {
            discarded += chunk.len();
            if discarded > max_bytes {
                break;
            }
        }
    };
    // The connection deals with the remaining bytes.
    let _ = timeout(time, reading).await;
}

fn too_long(limit: usize) -> ApiError {
    let message = format!("the body is longer than {limit} bytes");
    ApiError::general(ErrorKind::TooLarge, "body_too_long", message)
}

/// Checks for a JSON content type, as it is. It is required, because a web page may send a body
/// without one to any server.
fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let refused = |message: String| {
        Err(ApiError::general(ErrorKind::MediaType, "unsupported_media_type", message))
    };
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let encoding = headers.get(header::CONTENT_ENCODING).map(text);
    if let Some(encoding) = encoding.filter(|encoding| encoding.trim() != "identity") {
        return refused(format!("the body must not be encoded, with {encoding:?} neither"));
    }
    let Some(value) = headers.get(header::CONTENT_TYPE).map(text) else {
        return refused("the header Content-Type: application/json is required".to_owned());
    };
    let mut parts = value.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    if let Some(charset) = charset.filter(|charset| charset.trim_matches('"') != "utf-8") {
        return refused(format!("the body must be UTF-8, not {charset:?}"));
    }
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    refused(format!("the body must be application/json, not {kind:?}"))
}
