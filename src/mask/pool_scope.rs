//! Scopes of mask pools: entries are shared by all engines of one vocabulary in the process, by the
//! grammars of one engine, or not at all.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::pool::MaskPool;
use super::pool_counters::{PoolCounters, PoolStats};
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
            entries: cache_stats[0].entries,
            bytes: cache_stats.iter().map(|cache| cache.bytes).sum(),
            max_bytes,
            evicted: cache_stats.iter().map(|cache| cache.evicted).sum(),
            engines,
            ..self.counters.read()
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
