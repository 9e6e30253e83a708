//! The runtime of an engine: threads and counters that its constraints and matchers share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::EngineOptions;
use super::background::Background;
use crate::cache::CacheStats;
use crate::compile::shared_automata_stats;
use crate::front::regex::pattern_stats;

/// Counters of an engine's batch, draft and background work, from the engine's creation on.
///
/// Each number is exact. Numbers read while other threads work may be of slightly different
/// moments.
///
/// ```
/// # use std::sync::Arc;
/// # use louver::{Engine, EngineOptions, Vocabulary};
/// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
/// assert_eq!((engine.stats().batches, engine.stats().grammars.entries), (0, 0));
/// ```
// Many fields: one reading of all statistics of an engine, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Calls of [`Engine::fill_masks`](super::Engine::fill_masks) and
    /// [`Engine::fill_masks_unique`](super::Engine::fill_masks_unique).
    pub batches: u64,
    /// Rows of those batches.
    pub batch_rows: u64,
    /// Rows whose mask was not cached and had to be made.
    pub batch_rows_built: u64,
    /// Rows with the same mask as an earlier row of their batch.
    pub batch_rows_repeated: u64,
    /// Rows whose mask was lost to a panic of the engine; see
    /// [`RowStatus::Failed`](super::RowStatus::Failed).
    pub batch_rows_failed: u64,
    /// Masks and tokens that reached a limit, such as
    /// [`Limits::mask_fuel`](crate::limits::Limits::mask_fuel). Their sequences have ended.
    pub limits_reached: u64,
    /// Nodes of draft trees whose masks were asked for.
    pub draft_nodes: u64,
    /// Calls of [`Matcher::prefetch`](super::Matcher::prefetch) of sequences that were not over.
    pub prefetches: u64,
    /// Background jobs that were dropped for later ones before they began.
    pub background_jobs_dropped: u64,
    /// Configurations at the ends of tokens that preparations explored.
    pub candidates_explored: u64,
    /// Masks made in the background.
    pub background_masks_built: u64,
    /// Masks that a background job found in the cache.
    pub background_masks_cached: u64,
    /// Masks that a background job could not make or cache: they ran out of fuel, or the
    /// constraint's caches were emptied meanwhile.
    pub background_masks_discarded: u64,
    /// Masks made in the background that were asked for later, each counted once.
    pub background_masks_used: u64,
    /// Calls of [`Constraint::prepare`](super::Constraint::prepare) whose work spent
    /// [`Limits::prepare_fuel`](crate::limits::Limits::prepare_fuel).
    pub preparations_exhausted: u64,
    /// The grammar cache; see [`EngineOptions::grammar_cache_bytes`].
    pub grammars: CacheStats,
    /// Background jobs that panicked. A panic is a bug; it costs the work of its job only.
    pub background_panics: u64,
}

/// Counters of the caches that all engines of the process share, regardless of their vocabularies.
/// Each has a fixed budget of 16 MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessStats {
    /// Minimal automata of rules that are regular languages over bytes, keyed by expression.
    pub automata: CacheStats,
    /// Patterns of JSON Schemas, with the automata of the texts that contain a match.
    pub patterns: CacheStats,
}

/// Counters of the caches that all engines of the process share.
///
/// ```
/// let before = louver::engine::process_stats();
/// assert!(before.automata.bytes <= 16 << 20 && before.patterns.bytes <= 16 << 20);
/// ```
pub fn process_stats() -> ProcessStats {
    ProcessStats { automata: shared_automata_stats(), patterns: pattern_stats() }
}

/// Counters of batches.
#[derive(Debug, Default)]
pub(super) struct BatchCounters {
    pub(super) batches: AtomicU64,
    pub(super) rows: AtomicU64,
    pub(super) rows_built: AtomicU64,
    pub(super) rows_repeated: AtomicU64,
    pub(super) rows_failed: AtomicU64,
}

/// Counters of what preparations did with masks.
#[derive(Debug, Default)]
pub(super) struct BackgroundMaskCounters {
    pub(super) built: AtomicU64,
    pub(super) cached: AtomicU64,
    pub(super) discarded: AtomicU64,
}

/// The counters from which [`EngineStats`] is read.
#[derive(Debug, Default)]
pub(super) struct EngineCounters {
    pub(super) batch: BatchCounters,
    pub(super) background_masks: BackgroundMaskCounters,
    pub(super) limits_reached: AtomicU64,
    pub(super) draft_nodes: AtomicU64,
    pub(super) prefetches: AtomicU64,
    pub(super) candidates_explored: AtomicU64,
    pub(super) preparations_exhausted: AtomicU64,
    /// Fault injection for tests: how many batch rows (0), background masks (1) and compilations
    /// (3) remain until one panics, and how many masks of matchers (2) until one reaches a limit.
    #[cfg(any(test, feature = "fault-injection"))]
    pub(super) fault_countdowns: [AtomicU64; 4],
}

#[cfg(any(test, feature = "fault-injection"))]
impl EngineCounters {
    /// Whether the countdown that a test has set reaches its end.
    pub(super) fn is_fault_due(&self, which: usize) -> bool {
        let countdown = &self.fault_countdowns[which];
        countdown.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) == Ok(1)
    }

    /// Panics if a fault is due.
    pub(super) fn maybe_panic(&self, which: usize) {
        assert!(!self.is_fault_due(which), "injected by a test");
    }
}

/// Unstable: for the tests of servers, which cannot reach `cfg(test)` of this crate.
#[cfg(feature = "fault-injection")]
impl super::Engine {
    /// Makes the n-th mask from now that a background thread makes panic, once.
    #[doc(hidden)]
    pub fn panic_at_background_mask(&self, n: u64) {
        self.runtime.counters.fault_countdowns[1].store(n, Ordering::Relaxed);
    }

    /// Makes the n-th mask from now that a matcher asks for reach a limit on memory, once.
    #[doc(hidden)]
    pub fn limit_at_mask(&self, n: u64) {
        self.runtime.counters.fault_countdowns[2].store(n, Ordering::Relaxed);
    }

    /// Makes the n-th compilation from now panic once its grammar is built, once.
    #[doc(hidden)]
    pub fn panic_at_compilation(&self, n: u64) {
        self.runtime.counters.fault_countdowns[3].store(n, Ordering::Relaxed);
    }
}

/// Adds to a counter.
pub(super) fn count(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}

/// Threads and counters of one engine.
#[derive(Debug)]
pub(super) struct EngineThreads {
    /// Threads of batches, [`EngineOptions::batch_threads`].
    threads: usize,
    /// Threads of batches, started when first needed. `None` where `threads` is 1, or where
    /// starting them failed.
    pool: OnceLock<Option<rayon::ThreadPool>>,
    pub(super) counters: Arc<EngineCounters>,
    pub(super) background: Background,
}

impl EngineThreads {
    /// Counters at zero, and no thread started yet.
    pub(super) fn new(options: &EngineOptions) -> EngineThreads {
        EngineThreads {
            threads: options.batch_threads,
            pool: OnceLock::new(),
            counters: Arc::default(),
            background: Background::new(if options.switches.background.is_on() {
                options.background_threads
            } else {
                0
            }),
        }
    }

    /// All counters but those of the mask pool and of the grammar cache.
    pub(super) fn stats(&self) -> EngineStats {
        let c = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EngineStats {
            batches: read(&c.batch.batches),
            batch_rows: read(&c.batch.rows),
            batch_rows_built: read(&c.batch.rows_built),
            batch_rows_repeated: read(&c.batch.rows_repeated),
            batch_rows_failed: read(&c.batch.rows_failed),
            limits_reached: read(&c.limits_reached),
            draft_nodes: read(&c.draft_nodes),
            prefetches: read(&c.prefetches),
            background_jobs_dropped: self.background.dropped(),
            candidates_explored: read(&c.candidates_explored),
            background_masks_built: read(&c.background_masks.built),
            background_masks_cached: read(&c.background_masks.cached),
            background_masks_discarded: read(&c.background_masks.discarded),
            background_masks_used: 0,
            preparations_exhausted: read(&c.preparations_exhausted),
            grammars: CacheStats::default(),
            background_panics: self.background.panics(),
        }
    }

    /// Runs `work` for every item: on the batch threads if there are at least `parallel` items,
    /// else on the calling thread.
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

    /// The batch threads, started on the first call.
    fn pool(&self) -> Option<&rayon::ThreadPool> {
        let start = || {
            let name = |i| format!("louver-batch-{i}");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).thread_name(name);
            (self.threads > 1).then(|| pool.build().ok()).flatten()
        };
        self.pool.get_or_init(start).as_ref()
    }
}
