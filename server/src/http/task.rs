//! Runs a request's future in its own task, independent of the polling of its connection.

use std::future::{Future, pending};
use std::panic::resume_unwind;

use tokio::task::JoinSet;
use tracing::Instrument;

/// Runs `work` in its own task and waits for the result. The task progresses even if this future is
/// not polled, so its deadlines hold. It is aborted when this future is dropped. Panics propagate.
pub(crate) async fn spawn_owned<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    // A `JoinSet` aborts its tasks when it is dropped.
    let mut task = JoinSet::new();
    task.spawn(work.in_current_span());
    match task.join_next().await {
        Some(Ok(result)) => result,
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime is shutting down.
        Some(Err(_)) | None => pending().await,
    }
}
