//! Mask entries of one vocabulary, shared by grammars.

use std::sync::Arc;

use parking_lot::Mutex;

use super::byte_class_trie::Folds;
use super::counter_profile::Profile;
use super::entry::Entry;
use super::interned_masks::Alike;
use super::pool_key::{GrammarKeys, Key, RuleKeys};
use super::pool_scope::{Counters, count};
use super::trie_walk::Stopped;
use crate::cache::{Cache, CacheStats};
use crate::matcher::{FREE, Item, Parser};
use crate::vocab::Vocabulary;

/// Of a pool's budget, what goes to the profiles of counted blocks, what to the ids of rules, and what to masks that grammars share.
const PROFILES: usize = 8;
const RULES: usize = 16;
const ALIKE: usize = 8;

/// Behind the key of a state: its entry is with what it calls last. No key of a state alone ends so.
const WITH_CALLS: u32 = u32::MAX;

/// Mask entries by the structure of the automaton behind a state.
#[derive(Debug)]
pub(super) struct MaskPool {
    /// The row of all tokens with text.
    all: Arc<[u32]>,
    inner: Mutex<Inner>,
    /// Finished masks.
    pub(super) alike: Alike,
}

/// What a grammar has of its own, to look at its states with.
pub(super) struct Own<'s> {
    pub(super) keys: &'s mut GrammarKeys,
    pub(super) folds: &'s mut Folds,
}

#[derive(Debug)]
struct Inner {
    rules: RuleKeys,
    entries: Cache<Key, Arc<Entry>>,
    /// Profiles of counted blocks; none where counting does not decide.
    profiles: Cache<Key, Option<Arc<Profile>>>,
}

impl MaskPool {
    /// An empty pool. `all` is the row of all tokens with text.
    pub(super) fn new(all: Arc<[u32]>, max_bytes: usize) -> MaskPool {
        let inner =
            Inner { rules: RuleKeys::new(0), entries: Cache::new(0), profiles: Cache::new(0) };
        let pool = MaskPool { all, inner: Mutex::new(inner), alike: Alike::new(0) };
        pool.set_max_bytes(max_bytes);
        pool
    }

    /// Changes the budget.
    pub(super) fn set_max_bytes(&self, max_bytes: usize) {
        let Inner { rules, entries, profiles } = &mut *self.inner.lock();
        rules.set_max_bytes(max_bytes / RULES);
        profiles.set_max_bytes(max_bytes / PROFILES);
        entries.set_max_bytes(
            max_bytes - max_bytes / RULES - max_bytes / PROFILES - max_bytes / ALIKE,
        );
        self.alike.set_max_bytes(max_bytes / ALIKE);
    }

    /// Entries, profiles, ids of rules, finished masks.
    pub(super) fn stats(&self) -> [CacheStats; 4] {
        let inner = self.inner.lock();
        [inner.entries.stats(), inner.profiles.stats(), inner.rules.stats(), self.alike.stats()]
    }

    fn build(
        &self,
        parser: &mut Parser,
        own: &mut Own<'_>,
        vocab: &Vocabulary,
        (items, counters): (&[Item], &Counters),
    ) -> Result<Arc<Entry>, Stopped> {
        let item = items[0];
        if let Some(room) = parser.room(&item)
            && let Some(profile) = self.profile(parser, own, vocab, item)?
        {
            return Ok(Arc::new(profile.entry(room)));
        }
        let isolated = parser.isolated_all(items);
        if let Some(like) = parser.loops_like(isolated)? {
            let base = self.entry(parser, own, vocab, (&[like], counters))?;
            let other = parser.isolated(like);
            let entry = Entry::build_like(parser, vocab, &base, isolated, other)?;
            count(&counters.derived);
            return Ok(Arc::new(entry));
        }
        own.folds.entry(parser, vocab, &self.all, (item.state, isolated, counters))
    }

    /// The profile of a state in a counted block.
    fn profile(
        &self,
        parser: &mut Parser,
        own: &mut Own<'_>,
        vocab: &Vocabulary,
        item: Item,
    ) -> Result<Option<Arc<Profile>>, Stopped> {
        let key = {
            let mut inner = self.inner.lock();
            let key = own.keys.state_key(
                parser.program_mut(),
                &mut inner.rules,
                (item.state, FREE, vocab.reach() as u32),
            );
            if let Some(profile) = inner.profiles.get(&key) {
                return Ok(profile);
            }
            key
        };
        let profile = Profile::build(parser, vocab, item)?.map(Arc::new);
        let bytes = profile.as_ref().map_or(0, |p| p.bytes()) + key.len() * 4;
        self.inner.lock().profiles.insert(key, profile.clone(), bytes);
        Ok(profile)
    }

    /// The key of an item's state and counter, and of what the state calls last if that is given, too (see [`Parser::called_last`]).
    fn key(
        rules: &mut RuleKeys,
        parser: &mut Parser,
        keys: &mut GrammarKeys,
        vocab: &Vocabulary,
        items: &[Item],
    ) -> Key {
        let key = keys.state_key(
            parser.program_mut(),
            rules,
            (items[0].state, items[0].count, vocab.reach() as u32),
        );
        // What else there is follows from the state: which of its calls are last ones.
        if items.len() > 1 { [&key[..], &[WITH_CALLS]].concat().into() } else { key }
    }

    /// The entry that [`MaskPool::entry`] would give, if some grammar has needed it before.
    pub(super) fn known(
        &self,
        parser: &mut Parser,
        keys: &mut GrammarKeys,
        vocab: &Vocabulary,
        (items, counters): (&[Item], &Counters),
    ) -> Option<Arc<Entry>> {
        let mut inner = self.inner.lock();
        let key = MaskPool::key(&mut inner.rules, parser, keys, vocab, items);
        inner.entries.get(&key).inspect(|_| count(&counters.hits))
    }

    /// The entry of items as in [`MaskPool::key`]; built if no grammar has needed it before. The item's counter must be normalised. The pool is not
    /// locked while an entry is built; two grammars may then build the same one, and either serves.
    pub(super) fn entry(
        &self,
        parser: &mut Parser,
        own: &mut Own<'_>,
        vocab: &Vocabulary,
        (items, counters): (&[Item], &Counters),
    ) -> Result<Arc<Entry>, Stopped> {
        let key = {
            let mut inner = self.inner.lock();
            let key = MaskPool::key(&mut inner.rules, parser, own.keys, vocab, items);
            if let Some(entry) = inner.entries.get(&key) {
                count(&counters.hits);
                return Ok(entry);
            }
            count(&counters.misses);
            key
        };
        let entry = self.build(parser, own, vocab, (items, counters))?;
        let bytes = entry.bytes() + key.len() * 4;
        self.inner.lock().entries.insert(key, entry.clone(), bytes);
        Ok(entry)
    }
}
