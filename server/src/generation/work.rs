//! Blocking work of a request (compilation, rendering, tokenization), cancelled with the request.

use louver::fuel::CancelToken;
use tokio::time::timeout;

use crate::admission::Admission;
use crate::error::{ApiError, DEADLINE, ErrorKind};
use crate::http::body::run_blocking;
use crate::http::spawn_owned;
use crate::state::App;

/// Cancellation handle for the blocking work of a request. The request's future holds it; dropping
/// it cancels the work, including preparation on background threads.
#[derive(Debug, Default)]
pub(crate) struct BlockingWork(CancelToken);

impl BlockingWork {
    /// Runs `work` on a blocking thread. The permits are released when the work has ended. Dropping
    /// the future does not end the work early, so abandoned requests count until their work has
    /// ended.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        permits: impl Send + 'static,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let token = self.0.clone();
        run_blocking(move || {
            let _permits = permits;
            if token.is_cancelled() {
                return Err(cancelled());
            }
            token.run(work)
        })
        .await
    }

    /// A check that fails once the work was cancelled, for code that spends no fuel.
    pub(crate) fn checkpoint(&self) -> impl Fn() -> Result<(), ApiError> + Send + 'static {
        let token = self.0.clone();
        move || if token.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }
}

/// The error of cancelled work. No client sees it, because the request was dropped.
fn cancelled() -> ApiError {
    ApiError::general(ErrorKind::Timeout, "cancelled", "the request was cancelled")
}

/// Waits for a slot of checks, then does the work of a check on a blocking thread, within the time
/// of checks. It is cancelled when the future is dropped.
pub(crate) async fn run_check<T: Send + 'static>(
    app: App,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let limit = app.config().limits.requests.check_timeout_s;
    let checked = async move {
        let waiting = &app.metrics().waiting_requests;
        let permit = app.check_gate().acquire(1, waiting, &mut Admission::first()).await?;
        BlockingWork::default().run(permit, work).await
    };
    let timed_out = |_| ApiError::timeout(DEADLINE, "requests.check_timeout_s", limit);
    spawn_owned(timeout(limit.0, checked)).await.map_err(timed_out)?
}

impl Drop for BlockingWork {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    use futures::FutureExt;
    use louver::engine::{Engine, EngineOptions};
    use louver::front::json_schema::SchemaOptions;
    use louver::vocab::Vocabulary;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;
    use crate::admission::AdmissionGate;
    use crate::limits::{RequestLimits, Seconds};

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread")]
    async fn dropped_requests_hold_their_slots_until_their_work_ends() {
        let queue_timeout_s = Seconds(Duration::from_millis(50));
        let limits = RequestLimits { concurrent: 2, queue_timeout_s, ..RequestLimits::default() };
        let (gate, waiting) = (AdmissionGate::new(limits), Gauge::default());
        let acquire =
            async |choices| gate.acquire(choices, &waiting, &mut Admission::first()).await;
        let mut releases = Vec::new();
        for _ in 0..2 {
            let permit = acquire(1).await.unwrap();
            let (started_sender, started) = mpsc::channel();
            let (release_sender, release_receiver) = mpsc::channel::<()>();
            let work = BlockingWork::default();
            let mut request = Box::pin(work.run(permit, move || {
                started_sender.send(()).unwrap();
                release_receiver.recv().unwrap();
                Ok(())
            }));
            assert!(request.as_mut().now_or_never().is_none());
            started.recv_timeout(TIMEOUT).unwrap();
            // The request is dropped, but its work still runs.
            drop(request);
            drop(work);
            releases.push(release_sender);
        }
        assert_eq!(acquire(1).await.unwrap_err().first().code, "queue_timeout");
        releases.pop().unwrap().send(()).unwrap();
        tokio::time::timeout(TIMEOUT, async { while acquire(1).await.is_err() {} }).await.unwrap();
        releases.pop().unwrap().send(()).unwrap();
        tokio::time::timeout(TIMEOUT, async { while acquire(2).await.is_err() {} }).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn dropping_a_request_cancels_its_work() {
        let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
        let (started_sender, started) = mpsc::channel();
        let (result_sender, result) = mpsc::channel();
        let work = BlockingWork::default();
        let mut request = Box::pin(work.run((), move || {
            started_sender.send(()).unwrap();
            // A different schema each time, so that the grammar cache does not help.
            let compiled = (0..).find_map(|n| {
                let schema = format!("{{\"type\": \"array\", \"minItems\": {n}}}");
                engine.compile_json_schema(&schema, &SchemaOptions::default()).err()
            });
            result_sender.send(compiled.unwrap().to_string()).unwrap();
            Ok(())
        }));
        assert!(request.as_mut().now_or_never().is_none());
        started.recv_timeout(TIMEOUT).unwrap();
        assert!(result.recv_timeout(Duration::from_millis(100)).is_err(), "it ends by itself");
        drop(request);
        drop(work);
        let error = result.recv_timeout(TIMEOUT).expect("the work goes on");
        assert!(error.contains("cancelled"), "{error}");
    }
}
