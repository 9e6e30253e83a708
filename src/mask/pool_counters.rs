//! Counters of the look-ups of masks and mask entries, and what they report.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often masks and mask entries were found, and what is held.
///
/// A mask that is asked for and memoised is a *perfect* hit. A mask that is put together from
/// entries in the pool is a *partial* hit: only their suffixes are resolved, and less where the
/// same suffixes were resolved with the same following configuration (`resolved_hits`). Otherwise,
/// entries have to be built.
// Many fields: one reading of all statistics of a pool, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Entries that the engine found in its pool.
    pub hits: u64,
    /// Entries that the engine built.
    pub misses: u64,
    /// Of those, entries derived from another one by walking only where the two differ.
    pub derived: u64,
    /// Suffixes that were asked for with a following configuration, and were memoised.
    pub resolved_hits: u64,
    /// Suffixes that had to be resolved.
    pub resolved_misses: u64,
    /// Masks that the engine was asked for and had.
    pub mask_hits: u64,
    /// Of those, masks memoised for another configuration that no token can tell from the one asked
    /// for.
    pub representatives_used: u64,
    /// Masks that the engine built, prepared or on demand. A mask that is built from another one
    /// (where white space has a bound, or near the end of a budget) counts that one too.
    pub mask_misses: u64,
    /// Of those, masks that equalled one already held by the grammar or by another one. Equal masks
    /// are held once.
    pub equal_masks: u64,
    /// Prepared masks that were then asked for.
    pub background_masks_used: u64,
    /// Entries that the pool holds now, whichever engine built them. 0 here and below if every
    /// constraint has a pool of its own.
    pub entries: usize,
    /// Memory of the pool, in bytes, approximately: entries, counter profiles, structural ids of
    /// rules, and finished masks.
    pub bytes: usize,
    /// The pool's budget, in bytes.
    pub max_bytes: usize,
    /// Values evicted from the pool.
    pub evicted: u64,
    /// Engines that share the pool, this one included.
    pub engines: usize,
}

/// Defines [`PoolCounters`]: a counter for each of these members of [`PoolStats`].
macro_rules! pool_counters {
    ($($counter:ident),*) => {
        /// Counters of one engine; see [`PoolStats`].
        #[derive(Debug, Default)]
        pub(crate) struct PoolCounters {
            $(pub(super) $counter: AtomicU64,)*
        }

        impl PoolCounters {
            /// What was counted so far; the other members are 0.
            pub(super) fn read(&self) -> PoolStats {
                PoolStats {
                    $($counter: self.$counter.load(Ordering::Relaxed),)*
                    ..PoolStats::default()
                }
            }
        }
    };
}

pool_counters!(
    hits,
    misses,
    derived,
    resolved_hits,
    resolved_misses,
    mask_hits,
    representatives_used,
    mask_misses,
    equal_masks,
    background_masks_used
);

/// Adds one to a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
