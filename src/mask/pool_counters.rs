//! Counters of the look-ups of masks and mask entries.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one engine; see [`PoolStats`](super::PoolStats).
#[derive(Debug, Default)]
pub(crate) struct PoolCounters {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) derived: AtomicU64,
    pub(super) resolved_hits: AtomicU64,
    pub(super) resolved_misses: AtomicU64,
    pub(super) mask_hits: AtomicU64,
    pub(super) representatives_used: AtomicU64,
    pub(super) mask_misses: AtomicU64,
    pub(super) equal_masks: AtomicU64,
    pub(super) background_masks_used: AtomicU64,
}

/// Adds one to a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
