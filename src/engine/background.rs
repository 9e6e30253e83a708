//! The background threads of an engine and their queue of jobs.
//!
//! Jobs run in slices. After each slice the most useful waiting job is next:
//!
//! ```text
//! prefetches of running sequences   latest first
//! preparations of new requests      likeliest next result first, then latest first
//! ```
//!
//! So a prefetch waits for one slice and not for a whole preparation, and a request that has just
//! arrived gets its first masks before an earlier one gets unlikely ones. Each kind has a bound;
//! past it the least useful job is dropped.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Most waiting jobs of each priority.
const MAX_WAITING: usize = 64;

/// A job, called once for each slice. Returns the likelihood that the result of its next slice will
/// be needed, or `None` after the last slice.
type Job = Box<dyn FnMut(&SliceSignal) -> Option<f64> + Send>;

/// The kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// Served when no prefetch waits.
    Preparation,
    /// Served first.
    Prefetch,
}

/// When a job should end its slice.
#[derive(Default)]
pub(super) struct SliceSignal {
    /// The engine was dropped: results are no longer needed.
    closed: AtomicBool,
    /// Number of waiting prefetches.
    prefetches: AtomicUsize,
}

impl SliceSignal {
    /// A signal as if so many prefetches waited.
    #[cfg(test)]
    pub(super) fn with_prefetches(prefetches: usize) -> SliceSignal {
        SliceSignal { prefetches: AtomicUsize::new(prefetches), ..SliceSignal::default() }
    }

    /// Whether the engine was dropped.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Whether a preparation should let others go first.
    pub(super) fn should_yield(&self) -> bool {
        self.is_closed() || self.prefetches.load(Relaxed) > 0
    }
}

/// A job that waits for its next slice.
struct WaitingJob {
    priority: Priority,
    /// Likelihood that the result of the next slice will be needed, from 0 to 1.
    likelihood: f64,
    /// Number of the job; later jobs have larger ones.
    sequence: u64,
    job: Job,
}

impl WaitingJob {
    /// The order of service: the greatest is next.
    fn rank(&self, other: &WaitingJob) -> Ordering {
        (self.priority.cmp(&other.priority))
            .then(self.likelihood.total_cmp(&other.likelihood))
            .then(self.sequence.cmp(&other.sequence))
    }
}

/// Jobs that wait, and the number of those that run.
#[derive(Default)]
struct PendingJobs {
    waiting: Vec<WaitingJob>,
    next_sequence: u64,
    running: usize,
    threads: usize,
}

impl PendingJobs {
    /// Adds a job. Past the bound, removes and returns the least useful one of its priority.
    fn push(&mut self, job: WaitingJob) -> Option<WaitingJob> {
        let priority = job.priority;
        self.waiting.push(job);
        if self.number_of(priority) <= MAX_WAITING {
            return None;
        }
        let same = self.waiting.iter().enumerate().filter(|(_, job)| job.priority == priority);
        let least = same.min_by(|(_, a), (_, b)| a.rank(b)).map(|(index, _)| index);
        least.map(|index| self.waiting.swap_remove(index))
    }

    /// Removes the job to serve next.
    fn pop(&mut self) -> Option<WaitingJob> {
        let ranked = self.waiting.iter().enumerate();
        let next = ranked.max_by(|(_, a), (_, b)| a.rank(b)).map(|(index, _)| index)?;
        Some(self.waiting.swap_remove(next))
    }

    /// Number of waiting jobs of a priority.
    fn number_of(&self, priority: Priority) -> usize {
        self.waiting.iter().filter(|job| job.priority == priority).count()
    }
}

/// The state that threads share.
#[derive(Default)]
struct Queue {
    pending: Mutex<PendingJobs>,
    wake: Condvar,
    signal: SliceSignal,
    panics: AtomicU64,
    dropped: AtomicU64,
}

impl Queue {
    /// Adds a job and releases the lock. A job that is dropped for it may own the last handle of a
    /// constraint, so it is dropped without the lock.
    fn push(&self, mut pending: MutexGuard<'_, PendingJobs>, job: WaitingJob) {
        let dropped = pending.push(job);
        self.signal.prefetches.store(pending.number_of(Priority::Prefetch), Relaxed);
        drop(pending);
        self.dropped.fetch_add(u64::from(dropped.is_some()), Relaxed);
        self.wake.notify_one();
    }

    /// The loop of one thread.
    fn run(&self) {
        let mut pending = self.pending.lock();
        loop {
            if self.signal.is_closed() {
                return;
            }
            let Some(mut next) = pending.pop() else {
                self.wake.wait(&mut pending);
                continue;
            };
            self.signal.prefetches.store(pending.number_of(Priority::Prefetch), Relaxed);
            pending.running += 1;
            drop(pending);
            match catch_unwind(AssertUnwindSafe(|| (next.job)(&self.signal))) {
                Ok(Some(likelihood)) => {
                    self.push(self.pending.lock(), WaitingJob { likelihood, ..next });
                }
                Ok(None) => drop(next),
                Err(_) => drop(self.panics.fetch_add(1, Relaxed)),
            }
            pending = self.pending.lock();
            pending.running -= 1;
        }
    }
}

/// Threads and their queue. Threads start with the first job and end when this is dropped; jobs
/// that have not begun are dropped with it.
pub(super) struct Background {
    threads: usize,
    queue: Arc<Queue>,
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Background {
    /// A queue for this number of threads; with 0 every job is refused.
    pub(super) fn new(threads: usize) -> Background {
        Background { threads, queue: Arc::default() }
    }

    /// Number of jobs that panicked.
    pub(super) fn panics(&self) -> u64 {
        self.queue.panics.load(Relaxed)
    }

    /// Number of jobs of either priority that were dropped for later ones.
    pub(super) fn dropped(&self) -> u64 {
        self.queue.dropped.load(Relaxed)
    }

    /// Queues a job and returns at once; `false` if there is no thread to run it. A job must not
    /// own anything that owns this `Background`: its threads would never end.
    pub(super) fn submit(&self, priority: Priority, job: Job) -> bool {
        let mut pending = self.queue.pending.lock();
        self.start_threads(&mut pending);
        if pending.threads == 0 {
            return false;
        }
        let sequence = pending.next_sequence;
        pending.next_sequence += 1;
        self.queue.push(pending, WaitingJob { priority, likelihood: 1.0, sequence, job });
        true
    }

    /// Starts the threads, if they have not been.
    fn start_threads(&self, pending: &mut PendingJobs) {
        while pending.threads < self.threads {
            let queue = self.queue.clone();
            let name = format!("louver-background-{}", pending.threads);
            if std::thread::Builder::new().name(name).spawn(move || queue.run()).is_err() {
                break;
            }
            pending.threads += 1;
        }
    }

    /// Waits until no job waits or runs.
    #[cfg(test)]
    pub(super) fn settle(&self) {
        let mut pending = self.queue.pending.lock();
        while pending.running > 0 || !pending.waiting.is_empty() {
            drop(pending);
            std::thread::yield_now();
            pending = self.queue.pending.lock();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.queue.signal.closed.store(true, Relaxed);
        let jobs = std::mem::take(&mut self.queue.pending.lock().waiting);
        self.queue.wake.notify_all();
        // A job may own the last handle of a constraint, so it is dropped after the lock is
        // released.
        drop(jobs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(priority: Priority, likelihood: f64, sequence: u64) -> WaitingJob {
        WaitingJob { priority, likelihood, sequence, job: Box::new(|_| None) }
    }

    #[test]
    fn excess_jobs_replace_the_least_useful_of_their_kind() {
        let mut pending = PendingJobs::default();
        // The least likely job is neither the oldest nor the latest.
        for sequence in 0..MAX_WAITING as u64 {
            let likelihood = if sequence == 7 { 0.1 } else { 0.5 };
            assert!(pending.push(job(Priority::Preparation, likelihood, sequence)).is_none());
        }
        assert!(pending.push(job(Priority::Prefetch, 0.0, 64)).is_none());
        let mut dropped = |likelihood, sequence| {
            pending.push(job(Priority::Preparation, likelihood, sequence)).map(|job| job.sequence)
        };
        assert_eq!(dropped(1.0, 65), Some(7));
        assert_eq!(dropped(0.5, 66), Some(0), "the oldest of equal ones");
        assert_eq!(dropped(0.2, 67), Some(67), "the new job itself");
        assert_eq!(pending.pop().map(|job| job.sequence), Some(64), "the prefetch is next");
        assert_eq!(pending.pop().map(|job| job.sequence), Some(65));
    }
}
