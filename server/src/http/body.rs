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
/// Approximate memory in bytes of a JSON value beside its text.
const VALUE_BYTES: usize = 64;
/// Longest time that a body waits for the shared budget. Then it is rejected and releases what it
/// holds, so that bodies that wait for one another do not deadlock.
const BUDGET_TIMEOUT: Duration = Duration::from_secs(1);
/// An oversized body is read and discarded up to this multiple of the limit, so that the client can
/// read the response.
const DRAIN_FACTOR: usize = 8;

/// A share of the budget of bodies, which pays for the memory of one body: its bytes, and then its
/// values. Released when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyShare(Option<Arc<OwnedSemaphorePermit>>);

impl BodyShare {
    /// Charges what the body refers to, which has so many bytes of memory. Does not wait. Error:
    /// 503 if the budget is exhausted.
    pub(crate) fn charge(&mut self, bytes: usize, app: &App) -> Result<(), ApiError> {
        self.acquire(bytes.saturating_sub(UNCHARGED_BYTES), app)
    }

    /// Charges what is missing to pay for so many bytes in all. Does not wait. Error: as of
    /// [`BodyShare::charge`].
    pub(crate) fn grow_to(&mut self, bytes: usize, app: &App) -> Result<(), ApiError> {
        let charged = bytes.saturating_sub(UNCHARGED_BYTES);
        self.acquire(charged.saturating_sub(self.held()), app)
    }

    fn held(&self) -> usize {
        self.0.as_ref().map_or(0, |permits| permits.num_permits())
    }

    /// Acquires more permits, at most up to the whole budget.
    fn acquire(&mut self, more: usize, app: &App) -> Result<(), ApiError> {
        let rest = app.config().limits.http.bodies_bytes.saturating_sub(self.held());
        let more = u32::try_from(more.min(rest)).unwrap_or(u32::MAX);
        let permit = app.body_budget().clone().try_acquire_many_owned(more);
        let permit = permit.map_err(|_| bodies_full())?;
        match self.0.as_mut().and_then(Arc::get_mut) {
            Some(permits) => permits.merge(permit),
            None => self.0 = Some(Arc::new(permit)),
        }
        Ok(())
    }

    /// Splits off a share for so many bytes, or for as many as are charged. A share that has clones
    /// cannot be split.
    pub(crate) fn split_off(&mut self, bytes: usize) -> BodyShare {
        let permits = self.0.as_mut().and_then(Arc::get_mut);
        let split = permits.and_then(|permits| permits.split(bytes.min(permits.num_permits())));
        BodyShare(split.map(Arc::new))
    }
}

/// A body and its permits of the shared budget.
struct CollectedBody {
    bytes: Vec<u8>,
    /// Upper bound on the number of JSON values.
    values: usize,
    permits: Option<OwnedSemaphorePermit>,
}

/// Collects a body, parses it as JSON and passes it to `read`, on a blocking thread: short bodies
/// may refer to long conversations, for which `read` charges the body's share. The result goes with
/// that share, to be held until its values are dropped. Errors: those of `read`; 415 for another
/// content type or encoding, 413 beyond the length limit, 408 if the body arrives too slowly, 503
/// if the shared budget is exhausted, 400 for invalid JSON.
pub(crate) async fn read_json<T: Send + 'static>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    read: impl FnOnce(Json, &App, &mut BodyShare) -> Result<T, ApiError> + Send + 'static,
) -> Result<(T, BodyShare), ApiError> {
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
    let mut stream = body.into_data_stream();
    let collecting = collect(&mut stream, &limits, app.body_budget());
    let collected = timeout(limits.read_timeout_s.0, collecting).await.map_err(timed_out)?;
    let CollectedBody { bytes, permits, .. } = match collected {
        Ok(collected) => collected,
        Err(error) => {
            // A client that is still sending can read the response then.
            let (bytes, time) = match error.kind {
                ErrorKind::TooLarge => (limits.body_bytes * DRAIN_FACTOR, limits.read_timeout_s.0),
                _ => (limits.body_bytes, BUDGET_TIMEOUT),
            };
            drain(&mut stream, bytes, time).await;
            return Err(error);
        }
    };
    let app = app.clone();
    run_blocking(move || {
        let mut share = BodyShare(permits.map(Arc::new));
        let invalid =
            |_| ApiError::general(ErrorKind::Invalid, "invalid_json", "the body is not UTF-8");
        let text = std::str::from_utf8(&bytes).map_err(invalid)?;
        let body = Json::parse(text, &app.config().limits.engine())?;
        drop(bytes);
        let read = read(body, &app, &mut share)?;
        Ok((read, share))
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

/// Collects a body and charges its memory to the budget as it arrives. With an error, the rest of
/// the body is left in the stream.
async fn collect(
    stream: &mut BodyDataStream,
    limits: &HttpLimits,
    budget: &Arc<Semaphore>,
) -> Result<CollectedBody, ApiError> {
    let limit = limits.body_bytes;
    let mut collected = CollectedBody { bytes: Vec::new(), values: 1, permits: None };
    while let Some(chunk) = stream.next().await {
        let interrupted =
            |_| ApiError::general(ErrorKind::Invalid, "broken_body", "the body ended early");
        let chunk = chunk.map_err(interrupted)?;
        if collected.bytes.len() + chunk.len() > limit {
            return Err(too_long(limit));
        }
        collected.add(&chunk, limits.bodies_bytes, budget).await?;
    }
    Ok(collected)
}

impl CollectedBody {
    /// What the body is charged, of a budget of `total` bytes: at most all of it.
    fn charge(&self, total: usize) -> usize {
        match self.bytes.len().checked_sub(UNCHARGED_BYTES) {
            None | Some(0) => 0,
            Some(bytes) => (bytes + self.values * VALUE_BYTES).min(total),
        }
    }

    /// Adds bytes and charges them. Error: the budget stays exhausted for too long.
    async fn add(
        &mut self,
        chunk: &[u8],
        total: usize,
        budget: &Arc<Semaphore>,
    ) -> Result<(), ApiError> {
        let charged = self.charge(total);
        self.bytes.extend_from_slice(chunk);
        // Each value but the first follows one of these. Those in strings count, too.
        self.values +=
            chunk.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
        let more = self.charge(total) - charged;
        if more == 0 {
            return Ok(());
        }
        let permits = u32::try_from(more).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let Ok(Ok(permit)) =
            timeout(BUDGET_TIMEOUT, budget.clone().acquire_many_owned(permits)).await
        else {
            return Err(bodies_full());
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

fn bodies_full() -> ApiError {
    let message = "too many long bodies are being processed: try again later";
    ApiError::general(ErrorKind::Unavailable, "bodies_full", message)
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
    if headers.get_all(header::CONTENT_TYPE).iter().count() > 1 {
        return refused("the header Content-Type must be given once".to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_are_charged_for_their_values() {
        let limits = HttpLimits::default();
        let total = limits.bodies_bytes;
        for (body, charged) in [
            (format!("[{}0]", "0,".repeat(1000)), 0),
            (format!("\"{}\"", "a".repeat(99_998)), 100_000 - UNCHARGED_BYTES + VALUE_BYTES),
            (
                format!("[{}0]", "0,".repeat(50_000)),
                100_003 - UNCHARGED_BYTES + 50_002 * VALUE_BYTES,
            ),
            (format!("[{}0]", "0,".repeat(2_000_000)), total),
        ] {
            let budget = Arc::new(Semaphore::new(total));
            let length = body.len();
            let mut stream = Body::from(body).into_data_stream();
            let collected = collect(&mut stream, &limits, &budget).await.unwrap();
            assert_eq!(total - budget.available_permits(), charged, "{length} bytes");
            drop(collected);
            assert_eq!(budget.available_permits(), total);
        }
    }

    #[tokio::test]
    async fn shares_are_split() {
        let budget = Arc::new(Semaphore::new(100));
        let permits = budget.clone().acquire_many_owned(60).await.unwrap();
        let mut share = BodyShare(Some(Arc::new(permits)));
        let (some, all) = (share.split_off(20), share.split_off(50));
        drop(share);
        assert_eq!(budget.available_permits(), 40);
        drop(some);
        assert_eq!(budget.available_permits(), 60);
        drop(all);
        assert_eq!(budget.available_permits(), 100);
        BodyShare::default().split_off(5);
    }
}
