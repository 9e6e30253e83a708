//! Scopes of mask pools: entries are shared by all engines of one vocabulary in the process, by the
//! grammars of one engine, or not at all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::pool::MaskPool;
use super::pool_counters::PoolCounters;
use super::token_set::set_bit;
use crate::vocab::{NodeId, Vocabulary};

/// Who shares mask entries. Changes no mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolScope {
    /// All engines of the process with this scope and equal vocabularies share one pool. Its budget
    /// is the largest that any of the living engines asked for. It is freed with the last of them
    /// and their constraints.
    #[default]
    Process,
    /// The grammars of the engine share a pool of its own.
    Engine,
    /// Every constraint has a pool of its own, with the whole budget: grammars share nothing.
    Constraint,
}

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

/// The pools of scope [`PoolScope::Process`].
static PROCESS_POOLS: Mutex<Vec<Weak<ProcessPool>>> = Mutex::new(Vec::new());

/// A pool of several engines.
#[derive(Debug)]
struct ProcessPool {
    vocab: Arc<Vocabulary>,
    pool: Arc<MaskPool>,
    /// What each engine asked for.
    budgets: Mutex<Vec<usize>>,
}

impl ProcessPool {
    /// The pool of all engines with this vocabulary. Cost: a fingerprint comparison for each pool,
    /// and a comparison of all tokens with the one that matches.
    fn join(vocab: &Arc<Vocabulary>, max_bytes: usize) -> Arc<ProcessPool> {
        let mut pools = PROCESS_POOLS.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        let process_pool = pools
            .iter()
            .filter_map(Weak::upgrade)
            .find(|process_pool| process_pool.vocab == *vocab)
            .unwrap_or_else(|| {
                let pool = Arc::new(MaskPool::new(row_of_all_tokens(vocab), 0));
                let process_pool =
                    Arc::new(ProcessPool { vocab: vocab.clone(), pool, budgets: Mutex::default() });
                pools.push(Arc::downgrade(&process_pool));
                process_pool
            });
        process_pool.update_budgets(|budgets| budgets.push(max_bytes));
        process_pool
    }

    /// Changes the list of budgets, and sets the pool's budget to their maximum.
    fn update_budgets(&self, update: impl FnOnce(&mut Vec<usize>)) {
        let mut budgets = self.budgets.lock();
        update(&mut budgets);
        self.pool.set_max_bytes(budgets.iter().copied().max().unwrap_or(0));
    }
}

/// Where an engine's pool is.
#[derive(Debug)]
enum PoolLocation {
    Process(Arc<ProcessPool>),
    Engine(Arc<MaskPool>),
    Constraint { row: Arc<[u32]> },
}

/// One engine's access to a mask pool, and its counters; held by the engine and its constraints.
#[derive(Debug)]
pub(crate) struct EnginePool {
    /// Where the pool is.
    location: PoolLocation,
    /// The budget that the engine asked for.
    max_bytes: usize,
    pub(super) counters: PoolCounters,
}

impl EnginePool {
    /// Joins or makes the pool of this scope.
    pub(crate) fn new(vocab: &Arc<Vocabulary>, scope: PoolScope, max_bytes: usize) -> EnginePool {
        let location = match scope {
            PoolScope::Process => PoolLocation::Process(ProcessPool::join(vocab, max_bytes)),
            PoolScope::Engine => {
                PoolLocation::Engine(Arc::new(MaskPool::new(row_of_all_tokens(vocab), max_bytes)))
            }
            PoolScope::Constraint => PoolLocation::Constraint { row: row_of_all_tokens(vocab) },
        };
        EnginePool { location, max_bytes, counters: PoolCounters::default() }
    }

    /// The pool of a new constraint.
    pub(super) fn pool(&self) -> Arc<MaskPool> {
        match &self.location {
            PoolLocation::Process(process_pool) => process_pool.pool.clone(),
            PoolLocation::Engine(pool) => pool.clone(),
            PoolLocation::Constraint { row } => {
                Arc::new(MaskPool::new(row.clone(), self.max_bytes))
            }
        }
    }

    /// What was counted, and what is held now.
    pub(crate) fn stats(&self) -> PoolStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let c = &self.counters;
        let (cache_stats, max_bytes, engines) = match &self.location {
            PoolLocation::Process(process_pool) => {
                let budgets = process_pool.budgets.lock();
                (
                    process_pool.pool.stats(),
                    budgets.iter().copied().max().unwrap_or(0),
                    budgets.len(),
                )
            }
            PoolLocation::Engine(pool) => (pool.stats(), self.max_bytes, 1),
            PoolLocation::Constraint { .. } => (Default::default(), self.max_bytes, 1),
        };
        PoolStats {
            hits: read(&c.hits),
            misses: read(&c.misses),
            derived: read(&c.derived),
            resolved_hits: read(&c.resolved_hits),
            resolved_misses: read(&c.resolved_misses),
            mask_hits: read(&c.mask_hits),
            representatives_used: read(&c.representatives_used),
            mask_misses: read(&c.mask_misses),
            equal_masks: read(&c.equal_masks),
            background_masks_used: read(&c.background_masks_used),
            entries: cache_stats[0].entries,
            bytes: cache_stats.iter().map(|cache| cache.bytes).sum(),
            max_bytes,
            evicted: cache_stats.iter().map(|cache| cache.evicted).sum(),
            engines,
        }
    }
}

impl Drop for EnginePool {
    fn drop(&mut self) {
        if let PoolLocation::Process(process_pool) = &self.location {
            process_pool.update_budgets(|budgets| {
                if let Some(at) = budgets.iter().position(|&bytes| bytes == self.max_bytes) {
                    budgets.swap_remove(at);
                }
            });
        }
    }
}

/// The row of all tokens with text.
fn row_of_all_tokens(vocab: &Vocabulary) -> Arc<[u32]> {
    let mut row = vec![0u32; vocab.mask_words()];
    vocab.trie().tokens_below(NodeId::ROOT).iter().for_each(|&id| set_bit(&mut row, id));
    row.into()
}
