//! What an engine's constraints and matchers share besides masks: threads and counters.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::EngineOptions;

/// How often an engine's batch, draft and background work was asked for, and what it came to. Counted from the engine's
/// creation; each number is exact, but numbers read while other threads work may be of slightly different moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Batches filled.
    pub batches: u64,
    /// Rows of those.
    pub batch_rows: u64,
    /// Rows whose mask was not known and had to be made.
    pub batch_rows_built: u64,
    /// Rows of which another of the same batch had the same mask.
    pub batch_rows_repeated: u64,
    /// Rows lost to a panic of the engine (see [`RowStatus::Failed`](super::RowStatus::Failed)).
    pub batch_rows_failed: u64,
    /// Nodes of draft trees looked at.
    pub draft_nodes: u64,
}

/// The counters behind [`EngineStats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) batches: AtomicU64,
    pub(super) batch_rows: AtomicU64,
    pub(super) batch_rows_built: AtomicU64,
    pub(super) batch_rows_repeated: AtomicU64,
    pub(super) batch_rows_failed: AtomicU64,
    pub(super) draft_nodes: AtomicU64,
}

/// Adds to a counter.
pub(super) fn count(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}

/// Threads and counters of one engine.
#[derive(Debug)]
pub(super) struct Shared {
    threads: usize,
    /// Started when first needed; none where one thread is all there is, or no thread could be started.
    pool: OnceLock<Option<rayon::ThreadPool>>,
    pub(super) counters: Counters,
    /// Batch rows to go until one panics.
    #[cfg(test)]
    pub(super) fault: AtomicU64,
}

impl Shared {
    pub(super) fn new(options: &EngineOptions) -> Shared {
        Shared {
            threads: options.batch_threads,
            pool: OnceLock::new(),
            counters: Counters::default(),
            #[cfg(test)]
            fault: AtomicU64::new(0),
        }
    }

    pub(super) fn stats(&self) -> EngineStats {
        let c = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EngineStats {
            batches: read(&c.batches),
            batch_rows: read(&c.batch_rows),
            batch_rows_built: read(&c.batch_rows_built),
            batch_rows_repeated: read(&c.batch_rows_repeated),
            batch_rows_failed: read(&c.batch_rows_failed),
            draft_nodes: read(&c.draft_nodes),
        }
    }

    /// Does `work` for every item: on the pool's threads if there are at least `parallel` items, else here.
    pub(super) fn for_each<T: Send>(&self, items: Vec<T>, parallel: usize, work: impl Fn(T) + Send + Sync) {
        match self.pool().filter(|_| items.len() >= parallel) {
            Some(pool) => pool.install(|| items.into_par_iter().for_each(work)),
            None => items.into_iter().for_each(work),
        }
    }

    /// Panics where a test has asked for it.
    #[cfg(test)]
    pub(super) fn maybe_panic(&self) {
        let due = self.fault.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        assert_ne!(due, Ok(1), "asked for by a test");
    }

    fn pool(&self) -> Option<&rayon::ThreadPool> {
        let start = || {
            let name = |i| format!("louver-batch-{i}");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).thread_name(name);
            (self.threads > 1).then(|| pool.build().ok()).flatten()
        };
        self.pool.get_or_init(start).as_ref()
    }
}
