//! The blocking work of a request: compiling, rendering, tokenizing.

use louver::fuel::CancelToken;

use crate::error::{ApiError, ErrorKind};
use crate::http::body::blocking;

/// The blocking work of a request. Dropping it cancels the work, preparations on background threads
/// included; so it is held by the request's future while there is any.
#[derive(Debug, Default)]
pub(crate) struct Work(CancelToken);

impl Work {
    /// Does work on a thread for blocking work. The permits are given back when the work has ended,
    /// which a dropped future cannot hurry: requests that were given up still count until then.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        permits: impl Send + 'static,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let token = self.0.clone();
        blocking(move || {
            let _permits = permits;
            if token.is_cancelled() {
                return Err(cancelled());
            }
            token.run(work)
        })
        .await
    }

    /// An error once the work was cancelled, for what spends no fuel.
    pub(crate) fn checkpoint(&self) -> impl Fn() -> Result<(), ApiError> + Send + 'static {
        let token = self.0.clone();
        move || if token.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }
}

/// Nobody reads it: the request is gone.
fn cancelled() -> ApiError {
    ApiError::whole(ErrorKind::Timeout, "cancelled", "the request was cancelled")
}

impl Drop for Work {
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

    use super::*;
    use crate::limits::{RequestLimits, Seconds};
    use crate::metrics::Metrics;
    use crate::turn::Gate;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread")]
    async fn dropped_requests_count_until_their_work_has_ended() {
        let queue_timeout_s = Seconds(Duration::from_millis(50));
        let limits = RequestLimits { concurrent: 2, queue_timeout_s, ..RequestLimits::default() };
        let (gate, metrics) = (Gate::new(limits), Metrics::new(&[]));
        let mut releases = Vec::new();
        for _ in 0..2 {
            let permit = gate.enter(1, &metrics).await.unwrap();
            let (begun_in, begun) = mpsc::channel();
            let (release, released) = mpsc::channel::<()>();
            let work = Work::default();
            let mut request = Box::pin(work.run(permit, move || {
                begun_in.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            }));
            assert!(request.as_mut().now_or_never().is_none());
            begun.recv_timeout(PATIENCE).unwrap();
            // The request is gone, its work is not.
            drop(request);
            drop(work);
            releases.push(release);
        }
        assert_eq!(gate.enter(1, &metrics).await.unwrap_err().first().code, "queue_timeout");
        releases.pop().unwrap().send(()).unwrap();
        tokio::time::timeout(PATIENCE, async { while gate.enter(1, &metrics).await.is_err() {} })
            .await
            .unwrap();
        releases.pop().unwrap().send(()).unwrap();
        tokio::time::timeout(PATIENCE, async { while gate.enter(2, &metrics).await.is_err() {} })
            .await
            .unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_ends_with_its_request() {
        let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
        let (begun_in, begun) = mpsc::channel();
        let (ended_in, ended) = mpsc::channel();
        let work = Work::default();
        let mut request = Box::pin(work.run((), move || {
            begun_in.send(()).unwrap();
            // Another schema each time: none is known already.
            let compiled = (0..).find_map(|n| {
                let schema = format!("{{\"type\": \"array\", \"minItems\": {n}}}");
                engine.compile_json_schema(&schema, &SchemaOptions::default()).err()
            });
            ended_in.send(compiled.unwrap().to_string()).unwrap();
            Ok(())
        }));
        assert!(request.as_mut().now_or_never().is_none());
        begun.recv_timeout(PATIENCE).unwrap();
        assert!(ended.recv_timeout(Duration::from_millis(100)).is_err(), "it ends by itself");
        drop(request);
        drop(work);
        let error = ended.recv_timeout(PATIENCE).expect("the work goes on");
        assert!(error.contains("cancelled"), "{error}");
    }
}
