//! The background threads of an engine and their queue of jobs.
//!
//! Prefetches of running sequences go before preparations, and later requests before earlier ones.
//! Each queue is bounded; a request past the bound replaces the oldest one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// Most waiting prefetches; past that the oldest is dropped.
const MAX_PREFETCHES: usize = 64;
/// Most waiting preparations; past that the oldest is dropped.
const MAX_PREPARATIONS: usize = 64;

/// A job. Its argument is set when the engine is dropped: then the result is no longer needed.
type Job = Box<dyn FnOnce(&AtomicBool) + Send>;

/// Jobs that wait, and the number of those that run.
#[derive(Default)]
struct PendingJobs {
    /// Preparations, served latest first: the sequence of an earlier one has probably begun.
    preparations: VecDeque<Job>,
    /// Prefetches, served latest first: an older one is about a token that has probably been
    /// sampled.
    prefetches: VecDeque<Job>,
    running: usize,
    threads: usize,
}

/// The state that threads share.
#[derive(Default)]
struct Queue {
    pending: Mutex<PendingJobs>,
    wake: Condvar,
    closed: AtomicBool,
    panics: AtomicU64,
    dropped: AtomicU64,
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

/// Which queue a job waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Served when no prefetch waits.
    Preparation,
    /// Served first.
    Prefetch,
}

impl Background {
    /// A queue for so many threads; with 0 every job is refused.
    pub(super) fn new(threads: usize) -> Background {
        Background { threads, queue: Arc::default() }
    }

    /// Number of jobs that panicked.
    pub(super) fn panics(&self) -> u64 {
        self.queue.panics.load(Ordering::Relaxed)
    }

    /// Number of jobs of either priority that were dropped for later ones.
    pub(super) fn dropped(&self) -> u64 {
        self.queue.dropped.load(Ordering::Relaxed)
    }

    /// Queues a job and returns at once; `false` if there is no thread to run it. A job must not
    /// own anything that owns this `Background`: its threads would never end.
    pub(super) fn submit(&self, priority: Priority, job: Job) -> bool {
        let mut pending = self.queue.pending.lock();
        while pending.threads < self.threads {
            let queue = self.queue.clone();
            let name = format!("louver-ahead-{}", pending.threads);
            if std::thread::Builder::new().name(name).spawn(move || run(&queue)).is_err() {
                break;
            }
            pending.threads += 1;
        }
        if pending.threads == 0 {
            return false;
        }
        let dropped = match priority {
            Priority::Preparation => {
                pending.preparations.push_back(job);
                if pending.preparations.len() > MAX_PREPARATIONS {
                    pending.preparations.pop_front()
                } else {
                    None
                }
            }
            Priority::Prefetch => {
                pending.prefetches.push_back(job);
                if pending.prefetches.len() > MAX_PREFETCHES {
                    pending.prefetches.pop_front()
                } else {
                    None
                }
            }
        };
        drop(pending);
        self.queue.dropped.fetch_add(u64::from(dropped.is_some()), Ordering::Relaxed);
        self.queue.wake.notify_one();
        true
    }

    /// Waits until no job waits or runs.
    #[cfg(test)]
    pub(super) fn settle(&self) {
        let mut pending = self.queue.pending.lock();
        while pending.running > 0
            || !pending.preparations.is_empty()
            || !pending.prefetches.is_empty()
        {
            drop(pending);
            std::thread::yield_now();
            pending = self.queue.pending.lock();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.queue.closed.store(true, Ordering::Relaxed);
        let jobs = {
            let mut pending = self.queue.pending.lock();
            (std::mem::take(&mut pending.preparations), std::mem::take(&mut pending.prefetches))
        };
        self.queue.wake.notify_all();
        // A job may own the last handle of a constraint, so it is dropped after the lock is
        // released.
        drop(jobs);
    }
}

/// The loop of one thread.
fn run(queue: &Queue) {
    let mut pending = queue.pending.lock();
    loop {
        if queue.closed.load(Ordering::Relaxed) {
            return;
        }
        let Some(job) = pending.prefetches.pop_back().or_else(|| pending.preparations.pop_back())
        else {
            queue.wake.wait(&mut pending);
            continue;
        };
        pending.running += 1;
        drop(pending);
        if catch_unwind(AssertUnwindSafe(|| job(&queue.closed))).is_err() {
            queue.panics.fetch_add(1, Ordering::Relaxed);
        }
        pending = queue.pending.lock();
        pending.running -= 1;
    }
}
