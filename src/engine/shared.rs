//! What an engine's constraints and matchers share besides masks: threads and counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::EngineOptions;
use super::background::Background;
use crate::cache::CacheStats;
use crate::compile::leaf_stats;
use crate::front::regex::pattern_stats;

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
    /// Masks and tokens given up at a limit, such as [`Limits::mask_fuel`](crate::limits::Limits::mask_fuel):
    /// their sequences have ended.
    pub limits_reached: u64,
    /// Nodes of draft trees looked at.
    pub draft_nodes: u64,
    /// Calls of [`Matcher::prefetch`](super::Matcher::prefetch) that had something to do.
    pub prefetches: u64,
    /// Of those, the ones that gave way to later ones.
    pub prefetches_dropped: u64,
    /// Places that preparations looked at.
    pub ahead_places: u64,
    /// Masks made ahead in the background.
    pub ahead_built: u64,
    /// Masks that were to be made ahead and were known.
    pub ahead_known: u64,
    /// Masks that could not be made ahead, or came too late: caches were emptied meanwhile.
    pub ahead_lost: u64,
    /// Masks made ahead that were then asked for.
    pub ahead_used: u64,
    /// Constraints kept by what they were made from; see [`EngineOptions::grammar_cache_bytes`].
    pub grammars: CacheStats,
    /// Background jobs that panicked, which is a bug; nothing but their work is lost.
    pub ahead_panics: u64,
}

/// How what all engines of the process share is used, whatever their vocabularies. Budgets are fixed: 16 MiB each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessStats {
    /// Minimal automata of rules that are regular languages over bytes, by expression.
    pub automata: CacheStats,
    /// Patterns of JSON Schemas, with the automata of the texts that contain a match.
    pub patterns: CacheStats,
}

/// How what all engines of the process share is used.
pub fn process_stats() -> ProcessStats {
    ProcessStats { automata: leaf_stats(), patterns: pattern_stats() }
}

/// The counters behind [`EngineStats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) batches: AtomicU64,
    pub(super) batch_rows: AtomicU64,
    pub(super) batch_rows_built: AtomicU64,
    pub(super) batch_rows_repeated: AtomicU64,
    pub(super) batch_rows_failed: AtomicU64,
    pub(super) limits_reached: AtomicU64,
    pub(super) draft_nodes: AtomicU64,
    pub(super) prefetches: AtomicU64,
    pub(super) ahead_places: AtomicU64,
    pub(super) ahead_built: AtomicU64,
    pub(super) ahead_known: AtomicU64,
    pub(super) ahead_lost: AtomicU64,
    /// Batch rows, and masks made ahead, to go until one panics.
    #[cfg(test)]
    pub(super) faults: [AtomicU64; 2],
}

#[cfg(test)]
impl Counters {
    /// Panics where a test has asked for it.
    pub(super) fn maybe_panic(&self, which: usize) {
        let due = self.faults[which]
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        assert_ne!(due, Ok(1), "asked for by a test");
    }
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
    pub(super) counters: Arc<Counters>,
    pub(super) background: Background,
}

impl Shared {
    pub(super) fn new(options: &EngineOptions) -> Shared {
        Shared {
            threads: options.batch_threads,
            pool: OnceLock::new(),
            counters: Arc::default(),
            background: Background::new(if options.switches.ahead.is_on() {
                options.background_threads
            } else {
                0
            }),
        }
    }

    /// All but what the pool of masks and the grammars kept count.
    pub(super) fn stats(&self) -> EngineStats {
        let c = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EngineStats {
            batches: read(&c.batches),
            batch_rows: read(&c.batch_rows),
            batch_rows_built: read(&c.batch_rows_built),
            batch_rows_repeated: read(&c.batch_rows_repeated),
            batch_rows_failed: read(&c.batch_rows_failed),
            limits_reached: read(&c.limits_reached),
            draft_nodes: read(&c.draft_nodes),
            prefetches: read(&c.prefetches),
            prefetches_dropped: self.background.dropped(),
            ahead_places: read(&c.ahead_places),
            ahead_built: read(&c.ahead_built),
            ahead_known: read(&c.ahead_known),
            ahead_lost: read(&c.ahead_lost),
            ahead_used: 0,
            grammars: CacheStats::default(),
            ahead_panics: self.background.panics(),
        }
    }

    /// Does `work` for every item: on the pool's threads if there are at least `parallel` items, else here.
    pub(super) fn for_each<T: Send>(
        &self,
        items: Vec<T>,
        parallel: usize,
        work: impl Fn(T) + Send + Sync,
    ) {
        match self.pool().filter(|_| items.len() >= parallel) {
            Some(pool) => pool.install(|| items.into_par_iter().for_each(work)),
            None => items.into_iter().for_each(work),
        }
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
