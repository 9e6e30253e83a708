//! Who shares mask entries with whom: all engines of one vocabulary in the process, the grammars of one engine, or nobody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::entry::Entry;
use super::pool::{MaskPool, Own};
use super::pool_key::GrammarKeys;
use super::token_set::set_bit;
use super::trie_walk::Stopped;
use crate::matcher::{Item, Parser};
use crate::vocab::Vocabulary;

/// Who shares mask entries. Changes no mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolScope {
    /// All engines of the process that have this scope and equal vocabularies share one pool. Its budget is the largest that any of those
    /// that live asked for; it goes with the last of them and of their constraints.
    #[default]
    Process,
    /// The grammars of the engine share a pool of its own.
    Engine,
    /// Every constraint has a pool of its own, with the whole budget: nothing is shared between grammars.
    Constraint,
}

/// How often mask entries were there when they were asked for, and what is held.
///
/// A mask that is asked for and known is a *perfect* hit. One that is not and is put together from entries that are there is
/// a *partial* hit: only what its entries leave undecided is read again, and less where that was read with the same text behind it before
/// (`resolved_hits`). Else entries have to be built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Entries the engine found in its pool.
    pub hits: u64,
    /// Entries the engine built.
    pub misses: u64,
    /// Of those, derived from another entry by walking only where the two differ.
    pub derived: u64,
    /// Times what an entry leaves undecided was asked for with what follows it and was known.
    pub resolved_hits: u64,
    /// Times it had to be read.
    pub resolved_misses: u64,
    /// Masks the engine was asked for and had.
    pub mask_hits: u64,
    /// Of those, masks that were kept for another configuration, which no token can tell from the one asked for.
    pub stood_in: u64,
    /// Masks it made, ahead or where they were asked for; one that is made of another (where white space has a bound, or a budget comes to its
    /// end) counts that one, too.
    pub mask_misses: u64,
    /// Of those, masks that turned out to be like one that was held, by the grammar or by another one: those are held once.
    pub alike: u64,
    /// Masks made ahead that were then asked for.
    pub ahead_used: u64,
    /// Entries held now by the pool, whichever engine built them. 0 here and below if every constraint has a pool of its own.
    pub entries: usize,
    /// Memory of the pool, in bytes, roughly: entries, profiles of counted blocks, structural ids of rules, and finished masks.
    pub bytes: usize,
    /// Its budget.
    pub max_bytes: usize,
    /// Values dropped to make room.
    pub evicted: u64,
    /// Engines that share the pool, this one included.
    pub engines: usize,
}

/// What one engine counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) derived: AtomicU64,
    pub(super) resolved_hits: AtomicU64,
    pub(super) resolved_misses: AtomicU64,
    pub(super) mask_hits: AtomicU64,
    pub(super) stood_in: AtomicU64,
    pub(super) mask_misses: AtomicU64,
    pub(super) alike: AtomicU64,
    pub(super) ahead_used: AtomicU64,
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The pools that engines share.
static POOLS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// A pool of several engines.
#[derive(Debug)]
struct Shared {
    vocab: Arc<Vocabulary>,
    pool: Arc<MaskPool>,
    /// What each engine asked for.
    budgets: Mutex<Vec<usize>>,
}

impl Shared {
    /// The pool of all engines with this vocabulary. Cost: a look at each pool there is, and a walk over the tokens of the one with
    /// the same fingerprint.
    fn join(vocab: &Arc<Vocabulary>, max_bytes: usize) -> Arc<Shared> {
        let mut pools = POOLS.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        let shared = pools
            .iter()
            .filter_map(Weak::upgrade)
            .find(|shared| shared.vocab == *vocab)
            .unwrap_or_else(|| {
                let pool = Arc::new(MaskPool::new(all_words(vocab), 0));
                let shared =
                    Arc::new(Shared { vocab: vocab.clone(), pool, budgets: Mutex::default() });
                pools.push(Arc::downgrade(&shared));
                shared
            });
        shared.change(|budgets| budgets.push(max_bytes));
        shared
    }

    fn change(&self, change: impl FnOnce(&mut Vec<usize>)) {
        let mut budgets = self.budgets.lock();
        change(&mut budgets);
        self.pool.set_max_bytes(budgets.iter().copied().max().unwrap_or(0));
    }
}

/// Where an engine's pool is.
#[derive(Debug)]
enum Place {
    Process(Arc<Shared>),
    Engine(Arc<MaskPool>),
    Constraint { all: Arc<[u32]> },
}

/// One engine's part in the sharing of mask entries, held by the engine and its constraints.
#[derive(Debug)]
pub(crate) struct Pooling {
    place: Place,
    max_bytes: usize,
    pub(super) counters: Counters,
}

impl Pooling {
    pub(crate) fn new(vocab: &Arc<Vocabulary>, scope: PoolScope, max_bytes: usize) -> Pooling {
        let place = match scope {
            PoolScope::Process => Place::Process(Shared::join(vocab, max_bytes)),
            PoolScope::Engine => {
                Place::Engine(Arc::new(MaskPool::new(all_words(vocab), max_bytes)))
            }
            PoolScope::Constraint => Place::Constraint { all: all_words(vocab) },
        };
        Pooling { place, max_bytes, counters: Counters::default() }
    }

    /// The pool of a new constraint.
    fn pool(&self) -> Arc<MaskPool> {
        match &self.place {
            Place::Process(shared) => shared.pool.clone(),
            Place::Engine(pool) => pool.clone(),
            Place::Constraint { all } => Arc::new(MaskPool::new(all.clone(), self.max_bytes)),
        }
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let c = &self.counters;
        let (held, max_bytes, engines) = match &self.place {
            Place::Process(shared) => {
                let budgets = shared.budgets.lock();
                (shared.pool.stats(), budgets.iter().copied().max().unwrap_or(0), budgets.len())
            }
            Place::Engine(pool) => (pool.stats(), self.max_bytes, 1),
            Place::Constraint { .. } => (Default::default(), self.max_bytes, 1),
        };
        PoolStats {
            hits: read(&c.hits),
            misses: read(&c.misses),
            derived: read(&c.derived),
            resolved_hits: read(&c.resolved_hits),
            resolved_misses: read(&c.resolved_misses),
            mask_hits: read(&c.mask_hits),
            stood_in: read(&c.stood_in),
            mask_misses: read(&c.mask_misses),
            alike: read(&c.alike),
            ahead_used: read(&c.ahead_used),
            entries: held[0].entries,
            bytes: held.iter().map(|cache| cache.bytes).sum(),
            max_bytes,
            evicted: held.iter().map(|cache| cache.evicted).sum(),
            engines,
        }
    }
}

impl Drop for Pooling {
    fn drop(&mut self) {
        if let Place::Process(shared) = &self.place {
            shared.change(|budgets| {
                if let Some(at) = budgets.iter().position(|&bytes| bytes == self.max_bytes) {
                    budgets.swap_remove(at);
                }
            });
        }
    }
}

/// A constraint's way to its pool.
#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) pooling: Arc<Pooling>,
    pub(super) pool: Arc<MaskPool>,
}

impl Pooled {
    pub(super) fn new(pooling: Arc<Pooling>) -> Pooled {
        Pooled { pool: pooling.pool(), pooling }
    }

    /// As [`MaskPool::known`].
    pub(super) fn known(
        &self,
        parser: &mut Parser,
        keys: &mut GrammarKeys,
        vocab: &Vocabulary,
        items: &[Item],
    ) -> Option<Arc<Entry>> {
        self.pool.known(parser, keys, vocab, (items, &self.pooling.counters))
    }

    /// As [`MaskPool::entry`].
    pub(super) fn entry(
        &self,
        parser: &mut Parser,
        own: &mut Own<'_>,
        vocab: &Vocabulary,
        items: &[Item],
    ) -> Result<Arc<Entry>, Stopped> {
        self.pool.entry(parser, own, vocab, (items, &self.pooling.counters))
    }
}

/// The row of all tokens with text.
fn all_words(vocab: &Vocabulary) -> Arc<[u32]> {
    let mut all = vec![0u32; vocab.mask_words()];
    vocab.trie().words_below(0).iter().for_each(|&id| set_bit(&mut all, id));
    all.into()
}
