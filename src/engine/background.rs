//! Threads that work ahead of the matchers.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// Jobs of each size that wait; beyond, the oldest are dropped.
const MAX_SMALL: usize = 64;
const MAX_LARGE: usize = 64;

/// Work to do ahead. Gets a flag that says when nobody needs the result any more.
type Job = Box<dyn FnOnce(&AtomicBool) + Send>;

/// What waits, and what is under way.
#[derive(Default)]
struct Waiting {
    /// Preparations, the latest first: an earlier request has waited for its first token already.
    large: VecDeque<Job>,
    /// Prefetches of running sequences, which go before all preparations. The latest first: what was
    /// likely a token ago no longer matters.
    small: VecDeque<Job>,
    running: usize,
    threads: usize,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    closed: AtomicBool,
    panics: AtomicU64,
    dropped: AtomicU64,
}

/// A few threads and the jobs for them. Threads start with the first job and end when this is dropped; jobs that have not
/// begun are then dropped too.
pub(super) struct Background {
    threads: usize,
    queue: Arc<Queue>,
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Which jobs go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Large,
    Small,
}

impl Background {
    pub(super) fn new(threads: usize) -> Background {
        Background { threads, queue: Arc::default() }
    }

    /// Jobs that panicked.
    pub(super) fn panics(&self) -> u64 {
        self.queue.panics.load(Ordering::Relaxed)
    }

    /// Small jobs that gave way to later ones.
    pub(super) fn dropped(&self) -> u64 {
        self.queue.dropped.load(Ordering::Relaxed)
    }

    /// Hands a job over; false if there is no thread to do it. A job must own nothing that owns this. Returns at once.
    pub(super) fn submit(&self, size: Size, job: Job) -> bool {
        let mut waiting = self.queue.waiting.lock();
        while waiting.threads < self.threads {
            let queue = self.queue.clone();
            let name = format!("louver-ahead-{}", waiting.threads);
            if std::thread::Builder::new().name(name).spawn(move || run(&queue)).is_err() {
                break;
            }
            waiting.threads += 1;
        }
        if waiting.threads == 0 {
            return false;
        }
        let dropped = match size {
            Size::Large => {
                waiting.large.push_back(job);
                if waiting.large.len() > MAX_LARGE { waiting.large.pop_front() } else { None }
            }
            Size::Small => {
                waiting.small.push_back(job);
                if waiting.small.len() > MAX_SMALL { waiting.small.pop_front() } else { None }
            }
        };
        drop(waiting);
        self.queue.dropped.fetch_add(u64::from(dropped.is_some()), Ordering::Relaxed);
        self.queue.wake.notify_one();
        true
    }

    /// Waits until nothing is left to do.
    #[cfg(test)]
    pub(super) fn settle(&self) {
        let mut waiting = self.queue.waiting.lock();
        while waiting.running > 0 || !waiting.large.is_empty() || !waiting.small.is_empty() {
            drop(waiting);
            std::thread::yield_now();
            waiting = self.queue.waiting.lock();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.queue.closed.store(true, Ordering::Relaxed);
        let jobs = {
            let mut waiting = self.queue.waiting.lock();
            (std::mem::take(&mut waiting.large), std::mem::take(&mut waiting.small))
        };
        self.queue.wake.notify_all();
        // Jobs may own the last handle of something; not under the lock.
        drop(jobs);
    }
}

fn run(queue: &Queue) {
    let mut waiting = queue.waiting.lock();
    loop {
        if queue.closed.load(Ordering::Relaxed) {
            return;
        }
        let Some(job) = waiting.small.pop_back().or_else(|| waiting.large.pop_back()) else {
            queue.wake.wait(&mut waiting);
            continue;
        };
        waiting.running += 1;
        drop(waiting);
        if catch_unwind(AssertUnwindSafe(|| job(&queue.closed))).is_err() {
            queue.panics.fetch_add(1, Ordering::Relaxed);
        }
        waiting = queue.waiting.lock();
        waiting.running -= 1;
    }
}
