//! Work that belongs to a request and does not wait for its connection.

use std::future::{Future, pending};
use std::panic::resume_unwind;

use tokio::task::JoinSet;
use tracing::Instrument;

/// Does work in a task of its own. It goes on whether or not anyone polls for its result, so that
/// its deadlines hold, and it is aborted when this future is dropped. A panic is passed on.
pub(crate) async fn owned<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    // A set aborts its tasks when it is dropped.
    let mut task = JoinSet::new();
    task.spawn(work.in_current_span());
    match task.join_next().await {
        Some(Ok(result)) => result,
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime is shutting down.
        Some(Err(_)) | None => pending().await,
    }
}
