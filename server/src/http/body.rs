//! Bodies of requests: bounded in length, time and memory, and read as JSON with exact numbers.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::http::{HeaderMap, header};
use futures::StreamExt;
use louver::spec::json::Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{ApiError, ErrorKind};
use crate::limits::HttpLimits;
use crate::state::App;

/// The first bytes of each body, which are not charged to the budget of all bodies: small ones pass
/// whatever others do. Longer ones are parsed where they keep nobody waiting.
const SMALL: usize = 64 << 10;
/// Longest time a body waits for room in the budget. Then it is refused and gives back what it holds,
/// so that bodies that wait for one another do not wait for long.
const ROOM: Duration = Duration::from_secs(1);
/// Of a body that is too long, so many times the limit is read and thrown away, so that its client sees the answer.
const DRAIN: usize = 8;

/// A body, and what it holds of the budget of all bodies.
struct Collected {
    bytes: Vec<u8>,
    held: Option<OwnedSemaphorePermit>,
}

/// Reads a body as JSON, and what it asks for. Long bodies are parsed and read on a thread for
/// blocking work. Errors: those of `read`; 415 for another content type, 413 beyond the limit, 408
/// if it does not arrive in time, 503 where there is no room for it beside others, 400 where it is
/// not JSON.
pub(crate) async fn read_json<T: Send + 'static>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    read: impl FnOnce(Json, &App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    check_type(headers)?;
    let limits = app.config().limits.http;
    let slow =
        |_| ApiError::whole(ErrorKind::Timeout, "body_timeout", "the body did not arrive in time");
    let announced = body.size_hint().upper().and_then(|n| usize::try_from(n).ok());
    if announced.is_some_and(|length| length > limits.body_bytes) {
        drain(&mut body.into_data_stream(), limits.body_bytes * DRAIN, limits.read_timeout_s.0)
            .await;
        return Err(too_long(limits.body_bytes));
    }
    let collecting = collect(body, &limits, app.bodies());
    let Collected { bytes, held } =
        timeout(limits.read_timeout_s.0, collecting).await.map_err(slow)??;
    let (is_small, app) = (bytes.len() <= SMALL, app.clone());
    let parse = move || {
        let _held = held;
        let invalid =
            |_| ApiError::whole(ErrorKind::Invalid, "invalid_json", "the body is not UTF-8");
        let text = std::str::from_utf8(&bytes).map_err(invalid)?;
        read(Json::parse(text, &app.config().limits.engine())?, &app)
    };
    if is_small {
        return parse();
    }
    blocking(parse).await
}

/// Runs work that takes a while where it keeps nobody waiting. A panic is an error.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let panicked = |_| ApiError::whole(ErrorKind::Internal, "internal", "internal error");
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}

/// Reads a body. Its bytes are charged to the budget as they arrive.
async fn collect(
    body: Body,
    limits: &HttpLimits,
    budget: &Arc<Semaphore>,
) -> Result<Collected, ApiError> {
    let limit = limits.body_bytes;
    let mut collected = Collected { bytes: Vec::new(), held: None };
    let mut stream = body.into_data_stream();
    while let Some(piece) = stream.next().await {
        let broken = |_| ApiError::whole(ErrorKind::Invalid, "broken_body", "the body broke off");
        let piece = piece.map_err(broken)?;
        if collected.bytes.len() + piece.len() > limit {
            drop(collected);
            drain(&mut stream, limit * DRAIN, limits.read_timeout_s.0).await;
            return Err(too_long(limit));
        }
        collected.charge(piece.len(), budget).await?;
        collected.bytes.extend_from_slice(&piece);
    }
    Ok(collected)
}

impl Collected {
    /// Charges further bytes to the budget. Errors: there is no room for them.
    async fn charge(&mut self, more: usize, budget: &Arc<Semaphore>) -> Result<(), ApiError> {
        let length = self.bytes.len();
        let charged = (length + more).max(SMALL) - length.max(SMALL);
        if charged == 0 {
            return Ok(());
        }
        // No more than the budget: a body is within its own limit, and that one within the budget.
        let permits = u32::try_from(charged).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let Ok(Ok(permit)) = timeout(ROOM, budget.clone().acquire_many_owned(permits)).await else {
            let message = "too many long bodies are arriving: try again later";
            return Err(ApiError::whole(ErrorKind::Unavailable, "bodies_full", message));
        };
        match &mut self.held {
            Some(held) => held.merge(permit),
            held => *held = Some(permit),
        }
        Ok(())
    }
}

async fn drain(stream: &mut BodyDataStream, most: usize, time: Duration) {
    let mut seen = 0;
    let reading = async {
        while let Some(Ok(piece)) = stream.next().await {
            seen += piece.len();
            if seen > most {
                break;
            }
        }
    };
    // What is left is the connection's affair.
    let _ = timeout(time, reading).await;
}

fn too_long(limit: usize) -> ApiError {
    let message = format!("the body is longer than {limit} bytes");
    ApiError::whole(ErrorKind::TooLarge, "body_too_long", message)
}

/// JSON by its content type. One has to be said: a web page may send a body of no type anywhere.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let refused = |message: String| {
        Err(ApiError::whole(ErrorKind::MediaType, "unsupported_media_type", message))
    };
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return refused("a header is needed: Content-Type: application/json".to_owned());
    };
    let kind =
        value.to_str().unwrap_or("").split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    refused(format!("the body must be application/json, not {kind:?}"))
}
