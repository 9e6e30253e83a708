//! Admission control: bounds the running generations and the waiting requests; rejects the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{ApiError, ErrorKind};
use crate::limits::RequestLimits;

/// An admission gate: a fair semaphore with a bounded queue.
#[derive(Debug)]
pub(crate) struct AdmissionGate {
    slots: Arc<Semaphore>,
    /// Number of waiting requests. Several gates may share it.
    waiting_requests: Arc<AtomicUsize>,
    limits: RequestLimits,
}

/// A place in the queue, released on drop.
struct QueuePlace<'g> {
    gate: &'g AdmissionGate,
    /// The metric of waiting requests.
    waiting: &'g Gauge,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.gate.waiting_requests.fetch_sub(1, Ordering::Relaxed);
        self.waiting.dec();
    }
}

impl AdmissionGate {
    pub(crate) fn new(limits: RequestLimits) -> AdmissionGate {
        AdmissionGate {
            slots: Arc::new(Semaphore::new(limits.concurrent)),
            waiting_requests: Arc::default(),
            limits,
        }
    }

    /// A second gate with `concurrent` slots that shares this gate's queue limit.
    pub(crate) fn with_shared_queue(&self, concurrent: usize) -> AdmissionGate {
        let limits = RequestLimits { concurrent, ..self.limits };
        AdmissionGate {
            waiting_requests: self.waiting_requests.clone(),
            ..AdmissionGate::new(limits)
        }
    }

    /// Acquires one slot per choice; dropping the permit releases them. `waiting` is the metric of
    /// waiting requests. Errors: 429 if the queue is full or the wait exceeds `queue_timeout_s`.
    pub(crate) async fn acquire(
        &self,
        choices: usize,
        waiting: &Gauge,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        // The limits guarantee that there are no more choices than slots.
        let slots = u32::try_from(choices.min(self.limits.concurrent)).unwrap_or(u32::MAX);
        if let Ok(permit) = self.slots.clone().try_acquire_many_owned(slots) {
            return Ok(permit);
        }
        if self.waiting_requests.fetch_add(1, Ordering::Relaxed) >= self.limits.queue {
            self.waiting_requests.fetch_sub(1, Ordering::Relaxed);
            return Err(ApiError::general(
                ErrorKind::Busy,
                "queue_full",
                "too many requests are waiting: try again later",
            ));
        }
        waiting.inc();
        let place = QueuePlace { gate: self, waiting };
        let permit =
            timeout(self.limits.queue_timeout_s.0, self.slots.clone().acquire_many_owned(slots))
                .await;
        drop(place);
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(ApiError::general(
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
    async fn full_queue_and_long_waits_are_rejected() {
        let limits = RequestLimits {
            concurrent: 2,
            queue: 1,
            queue_timeout_s: Seconds(Duration::from_millis(30)),
            ..RequestLimits::default()
        };
        let (gate, waiting) = (AdmissionGate::new(limits), Gauge::default());
        let both = gate.acquire(2, &waiting).await.unwrap();
        let (slow, full) = tokio::join!(gate.acquire(1, &waiting), async {
            tokio::task::yield_now().await;
            gate.acquire(1, &waiting).await
        });
        assert_eq!(slow.unwrap_err().first().code, "queue_timeout");
        assert_eq!(full.unwrap_err().first().code, "queue_full");
        drop(both);
        let one = gate.acquire(1, &waiting).await.unwrap();
        let (second, ()) = tokio::join!(gate.acquire(2, &waiting), async {
            tokio::task::yield_now().await;
            drop(one);
        });
        assert!(second.is_ok());
        assert_eq!((waiting.get(), gate.waiting_requests.load(Ordering::Relaxed)), (0, 0));
    }
}
