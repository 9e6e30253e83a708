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

/// Whether a request waits for its first slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It does: the queue is bounded.
    First,
    /// It had slots before and released them while it did not generate.
    Again,
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
    /// waiting requests. Errors: 429 if the queue is full or the wait exceeds `queue_timeout_s`; a
    /// request that was admitted before waits until its deadline.
    pub(crate) async fn acquire(
        &self,
        choices: usize,
        waiting: &Gauge,
        admission: Admission,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        // The limits guarantee that there are no more choices than slots.
        let slots = u32::try_from(choices.min(self.limits.concurrent)).unwrap_or(u32::MAX);
        if let Ok(permit) = self.slots.clone().try_acquire_many_owned(slots) {
            return Ok(permit);
        }
        let others = self.waiting_requests.fetch_add(1, Ordering::Relaxed);
        waiting.inc();
        let _place = QueuePlace { gate: self, waiting };
        let busy = |code, message| Err(ApiError::general(ErrorKind::Busy, code, message));
        if admission == Admission::First && others >= self.limits.queue {
            return busy("queue_full", "too many requests are waiting: try again later");
        }
        let permit = self.slots.clone().acquire_many_owned(slots);
        let permit = match admission {
            Admission::First => timeout(self.limits.queue_timeout_s.0, permit).await,
            Admission::Again => Ok(permit.await),
        };
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => busy("queue_timeout", "the server is busy: try again later"),
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
        let acquire = |choices| gate.acquire(choices, &waiting, Admission::First);
        let both = acquire(2).await.unwrap();
        let (slow, full) = tokio::join!(acquire(1), async {
            tokio::task::yield_now().await;
            acquire(1).await
        });
        assert_eq!(slow.unwrap_err().first().code, "queue_timeout");
        assert_eq!(full.unwrap_err().first().code, "queue_full");
        // A request that was admitted before waits, though the queue is full and for longer.
        let again = gate.acquire(1, &waiting, Admission::Again);
        let (again, other, ()) = tokio::join!(again, acquire(1), async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            drop(both);
        });
        assert_eq!(other.unwrap_err().first().code, "queue_full");
        drop(again.unwrap());
        let one = acquire(1).await.unwrap();
        let (second, ()) = tokio::join!(acquire(2), async {
            tokio::task::yield_now().await;
            drop(one);
        });
        assert!(second.is_ok());
        assert_eq!((waiting.get(), gate.waiting_requests.load(Ordering::Relaxed)), (0, 0));
    }
}
