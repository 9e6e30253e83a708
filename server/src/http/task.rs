//! Runs a request's futures in tasks of their own, independent of the polling of its connection.

use std::future::{Future, pending};
use std::panic::resume_unwind;

use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

/// Runs `work` in its own task and waits for the result. The task progresses even if this future is
/// not polled, so its deadlines hold. It is aborted when this future is dropped. Panics propagate.
pub(crate) async fn spawn_owned<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    // A `JoinSet` aborts its tasks when it is dropped.
    let mut task = JoinSet::new();
    task.spawn(work.in_current_span());
    result_of(task.join_next().await).await
}

/// Runs `work` in its own task and waits for the result. The task goes on when this future is
/// dropped. Panics propagate.
pub(crate) async fn spawn_detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    result_of(Some(tokio::spawn(work.in_current_span()).await)).await
}

async fn result_of<T>(joined: Option<Result<T, JoinError>>) -> T {
    match joined {
        Some(Ok(result)) => result,
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime is shutting down.
        Some(Err(_)) | None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    /// What a request counts at its end is counted also if it is dropped just before.
    #[tokio::test]
    async fn owned_tasks_end_with_their_future_and_detached_ones_go_on() {
        for is_owned in [true, false] {
            let (release, released) = oneshot::channel::<()>();
            let (done, ended) = oneshot::channel();
            let work = async {
                drop(released.await);
                done.send(()).unwrap_or_default();
            };
            let mut waiting: futures::future::BoxFuture<'_, ()> =
                if is_owned { spawn_owned(work).boxed() } else { spawn_detached(work).boxed() };
            assert!((&mut waiting).now_or_never().is_none());
            drop(waiting);
            drop(release);
            assert_eq!(ended.await.is_err(), is_owned);
        }
    }
}
