//! The mask pool: mask entries of one vocabulary, shared by all its grammars.
//!
//! Entries are keyed by the automaton reachable from a state ([`super::pool_key`]), so states of
//! different grammars share one. The pool also holds the counter profiles of counted blocks, the
//! structural ids that keys consist of, and finished masks. See docs/internals/MASK_POOL.md.

use std::sync::Arc;

use parking_lot::Mutex;

use super::counter_profile::CounterProfile;
use super::entry::MaskEntry;
use super::interned_masks::PoolMaskInterner;
use super::pool_counters::{PoolCounters, count};
use super::pool_key::{CountedState, KeyBuilder, PoolKey, RuleIdentities, StructuralIds};
use super::trie_walk::WalkError;
use crate::cache::{Cache, CacheStats};
use crate::matcher::{Item, Parser, UNBOUNDED_COUNT};
use crate::vocab::Vocabulary;

/// The part of a pool's budget for counter profiles.
const PROFILE_SHARE: usize = 8;
/// The part for structural ids of rules.
const STRUCTURAL_ID_SHARE: usize = 16;
/// The part for finished masks.
const FINISHED_MASK_SHARE: usize = 8;

/// Suffix of a key whose entry includes tail-called items. Of the keys of a state alone, only
/// fallback keys can end in it, and these have another length.
const WITH_TAIL_CALLS: u32 = u32::MAX;

/// Mask entries by the automaton that is reachable from a state.
#[derive(Debug)]
pub(super) struct MaskPool {
    /// The row of all tokens with text.
    all_tokens: Arc<[u32]>,
    /// Ids of rules with equal automata.
    structural_ids: Mutex<StructuralIds>,
    caches: Mutex<PoolCaches>,
    /// Interned finished masks.
    pub(super) masks: PoolMaskInterner,
}

/// The caches of a pool.
#[derive(Debug)]
struct PoolCaches {
    /// Mask entries.
    entries: Cache<PoolKey, Arc<MaskEntry>>,
    /// Counter profiles; None where a state has none.
    profiles: Cache<PoolKey, Option<Arc<CounterProfile>>>,
}

/// What a grammar brings to find or build its entries.
pub(super) struct EntryContext<'a> {
    pub(super) parser: &'a mut Parser,
    pub(super) rules: &'a mut RuleIdentities,
    pub(super) vocab: &'a Vocabulary,
    pub(super) counters: &'a PoolCounters,
}

impl EntryContext<'_> {
    /// The pool key of a state.
    fn key(&mut self, ids: &Mutex<StructuralIds>, state: CountedState) -> PoolKey {
        let max_token_bytes = self.vocab.max_token_bytes() as u32;
        let program = self.parser.program_mut();
        KeyBuilder::new(program, self.rules, ids, max_token_bytes).state_key(state)
    }
}

impl MaskPool {
    /// An empty pool. `all_tokens` is the row of all tokens with text.
    pub(super) fn new(all_tokens: Arc<[u32]>, max_bytes: usize) -> MaskPool {
        let pool = MaskPool {
            all_tokens,
            structural_ids: Mutex::new(StructuralIds::new(0)),
            caches: Mutex::new(PoolCaches { entries: Cache::new(0), profiles: Cache::new(0) }),
            masks: PoolMaskInterner::new(0),
        };
        pool.set_max_bytes(max_bytes);
        pool
    }

    /// Changes the budget.
    pub(super) fn set_max_bytes(&self, max_bytes: usize) {
        let PoolCaches { entries, profiles } = &mut *self.caches.lock();
        self.structural_ids.lock().set_max_bytes(max_bytes / STRUCTURAL_ID_SHARE);
        profiles.set_max_bytes(max_bytes / PROFILE_SHARE);
        entries.set_max_bytes(
            max_bytes
                - max_bytes / STRUCTURAL_ID_SHARE
                - max_bytes / PROFILE_SHARE
                - max_bytes / FINISHED_MASK_SHARE,
        );
        self.masks.set_max_bytes(max_bytes / FINISHED_MASK_SHARE);
    }

    /// Statistics of entries, profiles, structural ids and finished masks.
    pub(super) fn stats(&self) -> [CacheStats; 4] {
        let caches = self.caches.lock();
        [
            caches.entries.stats(),
            caches.profiles.stats(),
            self.structural_ids.lock().stats(),
            self.masks.stats(),
        ]
    }

    /// Builds the entry of an item and those that it tail-calls, by the cheapest way: from a
    /// counter profile, from the entry of another state, or by a walk of the vocabulary.
    fn build(
        &self,
        context: &mut EntryContext<'_>,
        items: &[Item],
    ) -> Result<Arc<MaskEntry>, WalkError> {
        let item = items[0];
        if let Some(distance) = context.parser.counter_distance(&item)
            && let Some(profile) = self.profile(context, item)?
        {
            return Ok(Arc::new(MaskEntry::counted(profile, distance)));
        }
        let isolated = context.parser.isolated_group(items);
        if let Some(base_item) = context.parser.similar_item(isolated)? {
            let base = self.entry(context, &[base_item])?;
            let base_config = context.parser.isolated(base_item);
            let (parser, vocab) = (&mut *context.parser, context.vocab);
            let entry = MaskEntry::derive(parser, vocab, &base, isolated, base_config)?;
            count(&context.counters.derived);
            return Ok(Arc::new(entry));
        }
        let (parser, vocab) = (&mut *context.parser, context.vocab);
        Ok(Arc::new(MaskEntry::build(parser, vocab, &self.all_tokens, isolated)?))
    }

    /// The counter profile of a state in a counted block.
    fn profile(
        &self,
        context: &mut EntryContext<'_>,
        item: Item,
    ) -> Result<Option<Arc<CounterProfile>>, WalkError> {
        let unbounded = CountedState { state: item.state, count: UNBOUNDED_COUNT };
        let key = context.key(&self.structural_ids, unbounded);
        if let Some(profile) = self.caches.lock().profiles.get(&key) {
            return Ok(profile);
        }
        let profile = CounterProfile::build(context.parser, context.vocab, item)?.map(Arc::new);
        let bytes = profile.as_ref().map_or(0, |p| p.bytes()) + key.len() * 4;
        self.caches.lock().profiles.insert(key, profile.clone(), bytes);
        Ok(profile)
    }

    /// The entry of an item and of those that it tail-calls, if any (see
    /// [`Parser::tail_called_items`]); built if the pool does not have it. The item's counter must
    /// be canonical. The pool is not locked while an entry is built: two grammars may build the
    /// same one, and either result serves.
    pub(super) fn entry(
        &self,
        context: &mut EntryContext<'_>,
        items: &[Item],
    ) -> Result<Arc<MaskEntry>, WalkError> {
        let mut key = context.key(&self.structural_ids, CountedState::of(&items[0]));
        // The state determines which of its calls are tail calls.
        if items.len() > 1 {
            key = [&key[..], &[WITH_TAIL_CALLS]].concat().into();
        }
        if let Some(entry) = self.caches.lock().entries.get(&key) {
            count(&context.counters.hits);
            return Ok(entry);
        }
        count(&context.counters.misses);
        let entry = self.build(context, items)?;
        let bytes = entry.bytes() + key.len() * 4;
        self.caches.lock().entries.insert(key, entry.clone(), bytes);
        Ok(entry)
    }
}
