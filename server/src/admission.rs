//! Admission control: bounds the running generations and the waiting requests; rejects the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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

/// The wait of a request for its slots, at one gate after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// Whether a full queue refuses it: until it has been let in.
    is_new: bool,
    /// Whether it waits for no longer than `queue_timeout_s`, at all gates together.
    is_timed: bool,
    /// How long it has waited.
    waited: Duration,
}

impl Admission {
    /// A request without slots: its queue and its wait are bounded.
    pub(crate) fn first() -> Admission {
        Admission { is_new: true, is_timed: true, waited: Duration::ZERO }
    }

    /// A request that had slots before and released them while it did not generate.
    pub(crate) fn again() -> Admission {
        Admission { is_new: false, is_timed: false, waited: Duration::ZERO }
    }

    /// Sets that the queue has let the request in.
    pub(crate) fn admit(&mut self) {
        self.is_new = false;
    }

    /// Whether the queue refuses the request while so many others wait.
    fn is_refused(&self, others: usize, limits: &RequestLimits) -> bool {
        self.is_new && others >= limits.queue
    }
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

    /// Refuses a new request that would have to wait at this gate later, if the queue is full.
    pub(crate) fn check_queue(&self, admission: Admission) -> Result<(), ApiError> {
        let is_free = self.slots.available_permits() > 0;
        let waiting = self.waiting_requests.load(Ordering::Relaxed);
        if is_free || !admission.is_refused(waiting, &self.limits) {
            Ok(())
        } else {
            Err(queue_full())
        }
    }

    /// Acquires one slot per choice; dropping the permit releases them. `waiting` is the metric of
    /// waiting requests. Errors: 429 if the queue is full or the wait exceeds `queue_timeout_s`, as
    /// far as they bound the request.
    pub(crate) async fn acquire(
        &self,
        choices: usize,
        waiting: &Gauge,
        admission: &mut Admission,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        // The limits guarantee that there are no more choices than slots.
        let slots = u32::try_from(choices.min(self.limits.concurrent)).unwrap_or(u32::MAX);
        if let Ok(permit) = self.slots.clone().try_acquire_many_owned(slots) {
            return Ok(permit);
        }
        let others = self.waiting_requests.fetch_add(1, Ordering::Relaxed);
        waiting.inc();
        let _place = QueuePlace { gate: self, waiting };
        if admission.is_refused(others, &self.limits) {
            return Err(queue_full());
        }
        admission.admit();
        let started = Instant::now();
        let permit = self.slots.clone().acquire_many_owned(slots);
        let permit = match admission.is_timed {
            true => {
                let left = self.limits.queue_timeout_s.0.saturating_sub(admission.waited);
                timeout(left, permit).await
            }
            false => Ok(permit.await),
        };
        admission.waited += started.elapsed();
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => {
                let message = "the server is busy: try again later";
                Err(ApiError::general(ErrorKind::Busy, "queue_timeout", message))
            }
        }
    }
}

fn queue_full() -> ApiError {
    let message = "too many requests are waiting: try again later";
    ApiError::general(ErrorKind::Busy, "queue_full", message)
}

#[cfg(test)]
mod tests {
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
        let acquire =
            async |choices| gate.acquire(choices, &waiting, &mut Admission::first()).await;
        let both = acquire(2).await.unwrap();
        let (slow, full) = tokio::join!(acquire(1), async {
            tokio::task::yield_now().await;
            acquire(1).await
        });
        assert_eq!(slow.unwrap_err().first().code, "queue_timeout");
        assert_eq!(full.unwrap_err().first().code, "queue_full");
        // A request that was admitted before waits, though the queue is full and for longer.
        let mut admitted = Admission::again();
        let again = gate.acquire(1, &waiting, &mut admitted);
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

    /// A request that has waited at one gate is not refused at the next because newer ones wait,
    /// and does not wait there as long again.
    #[tokio::test]
    async fn gates_of_a_request_share_its_place_and_its_time() {
        let hour = Duration::from_secs(3_600);
        let limits = RequestLimits {
            concurrent: 1,
            queue: 1,
            queue_timeout_s: Seconds(hour),
            ..RequestLimits::default()
        };
        let (first, waiting) = (AdmissionGate::new(limits), Gauge::default());
        let second = first.with_shared_queue(1);
        let acquire = async |gate: &AdmissionGate, admission: &mut Admission| {
            gate.acquire(1, &waiting, admission).await
        };
        let held = acquire(&first, &mut Admission::first()).await.unwrap();
        let _other = acquire(&second, &mut Admission::first()).await.unwrap();
        let mut admission = Admission::first();
        let (permit, ()) = tokio::join!(acquire(&first, &mut admission), async {
            tokio::task::yield_now().await;
            drop(held);
        });
        let _planning = permit.unwrap();
        assert!(admission.waited > Duration::ZERO);
        assert!(second.check_queue(Admission::first()).is_ok());
        // Its time is up: it waits no hour, although a newer request fills the queue.
        admission.waited = hour;
        let mut newer = Admission::first();
        let newer = acquire(&first, &mut newer);
        let older = async {
            tokio::task::yield_now().await;
            let full = second.check_queue(Admission::first());
            assert_eq!(full.unwrap_err().first().code, "queue_full");
            acquire(&second, &mut admission).await
        };
        tokio::select! {
            biased;
            _ = newer => panic!("the newer request waits for the gate"),
            older = older => assert_eq!(older.unwrap_err().first().code, "queue_timeout"),
        }
    }
}
