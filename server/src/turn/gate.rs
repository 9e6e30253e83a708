//! Admission: so many generations run, so many requests wait, and the rest is told to come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{ApiError, ErrorKind};
use crate::limits::RequestLimits;
use crate::metrics::Metrics;

/// The gate. Requests pass in the order in which they came.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: Arc<Semaphore>,
    /// How many wait, perhaps here and at another gate.
    waiting: Arc<AtomicUsize>,
    limits: RequestLimits,
}

/// Someone who waits; leaving the queue, by whatever way, is dropping it.
struct Waiting<'g> {
    gate: &'g Gate,
    metrics: &'g Metrics,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gate.waiting.fetch_sub(1, Ordering::Relaxed);
        self.metrics.waiting.dec();
    }
}

impl Gate {
    pub(crate) fn new(limits: RequestLimits) -> Gate {
        Gate { slots: Arc::new(Semaphore::new(limits.concurrent)), waiting: Arc::default(), limits }
    }

    /// A gate with so many slots behind this one: whoever waits there counts as waiting here.
    pub(crate) fn behind(&self, concurrent: usize) -> Gate {
        let limits = RequestLimits { concurrent, ..self.limits };
        Gate { waiting: self.waiting.clone(), ..Gate::new(limits) }
    }

    /// Waits for so many slots, which are free again when the permit is dropped. Errors: 429 where the queue is full or the
    /// wait too long.
    pub(crate) async fn enter(
        &self,
        choices: usize,
        metrics: &Metrics,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        // No more choices than slots: the limits see to it.
        let slots = u32::try_from(choices.min(self.limits.concurrent)).unwrap_or(u32::MAX);
        if let Ok(permit) = self.slots.clone().try_acquire_many_owned(slots) {
            return Ok(permit);
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.queue {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(ApiError::whole(
                ErrorKind::Busy,
                "queue_full",
                "too many requests are waiting: try again later",
            ));
        }
        metrics.waiting.inc();
        let waiting = Waiting { gate: self, metrics };
        let permit =
            timeout(self.limits.queue_timeout_s.0, self.slots.clone().acquire_many_owned(slots))
                .await;
        drop(waiting);
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(ApiError::whole(
                ErrorKind::Busy,
                "queue_timeout",
                "the server is busy: try again later",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::Seconds;

    #[tokio::test]
    async fn slots_queue_and_refusal() {
        let limits = RequestLimits {
            concurrent: 2,
            queue: 1,
            queue_timeout_s: Seconds(Duration::from_millis(30)),
            ..RequestLimits::default()
        };
        let (gate, metrics) = (Gate::new(limits), Metrics::new(&[]));
        let both = gate.enter(2, &metrics).await.unwrap();
        let (slow, full) = tokio::join!(gate.enter(1, &metrics), async {
            tokio::task::yield_now().await;
            gate.enter(1, &metrics).await
        });
        assert_eq!(slow.unwrap_err().first().code, "queue_timeout");
        assert_eq!(full.unwrap_err().first().code, "queue_full");
        drop(both);
        let one = gate.enter(1, &metrics).await.unwrap();
        let (second, ()) = tokio::join!(gate.enter(2, &metrics), async {
            tokio::task::yield_now().await;
            drop(one);
        });
        assert!(second.is_ok());
        assert_eq!((metrics.waiting.get(), gate.waiting.load(Ordering::Relaxed)), (0, 0));
    }
}
