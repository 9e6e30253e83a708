//! The pool of mask entries of one vocabulary, shared by all grammars of an engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::entry::Entry;
use super::key::{GrammarKeys, RuleKeys};
use super::profile::Profile;
use super::set::set_bit;
use super::walk::Stopped;
use crate::matcher::{FREE, Item, Parser};
use crate::vocab::Vocabulary;

/// How often the pool had what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Entries found.
    pub hits: u64,
    /// Entries built.
    pub misses: u64,
    /// Of those, derived from another entry by walking only where the two differ.
    pub derived: u64,
    /// Entries held now.
    pub entries: usize,
    /// Memory of those, in bytes, roughly.
    pub bytes: usize,
    /// Times the pool was emptied because it was full.
    pub evictions: u64,
}

/// Mask entries by the structure of the automaton behind a state.
#[derive(Debug)]
pub(crate) struct MaskPool {
    /// The row of all tokens with text.
    all: Arc<[u32]>,
    max_bytes: usize,
    inner: Mutex<Inner>,
    /// Finished masks made ahead that were then asked for.
    ahead_used: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    rules: RuleKeys,
    entries: hashbrown::HashMap<Box<[u32]>, Arc<Entry>, rustc_hash::FxBuildHasher>,
    /// Profiles of counted blocks; none where counting does not decide.
    profiles: hashbrown::HashMap<Box<[u32]>, Option<Arc<Profile>>, rustc_hash::FxBuildHasher>,
    stats: PoolStats,
}

impl MaskPool {
    pub(crate) fn new(vocab: &Vocabulary, max_bytes: usize) -> MaskPool {
        let mut all = vec![0u32; vocab.mask_words()];
        let words = vocab.trie().words_below(0);
        for &id in words {
            set_bit(&mut all, id);
        }
        MaskPool { all: all.into(), max_bytes, inner: Mutex::default(), ahead_used: AtomicU64::new(0) }
    }

    /// Finished masks made ahead that were then asked for.
    pub(crate) fn ahead_used(&self) -> u64 {
        self.ahead_used.load(Ordering::Relaxed)
    }

    /// Counts one.
    pub(super) fn use_ahead(&self) {
        self.ahead_used.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.inner.lock().stats
    }

    fn build(
        &self,
        parser: &mut Parser,
        keys: &mut GrammarKeys,
        vocab: &Vocabulary,
        item: Item,
    ) -> Result<Entry, Stopped> {
        if let Some(room) = parser.room(&item)
            && let Some(profile) = self.profile(parser, keys, vocab, item)?
        {
            return Ok(profile.entry(room));
        }
        let isolated = parser.isolated(item);
        if let Some(like) = parser.loops_like(isolated)? {
            let base = self.entry(parser, keys, vocab, like)?;
            let other = parser.isolated(like);
            let entry = Entry::build_like(parser, vocab, &base, isolated, other)?;
            self.inner.lock().stats.derived += 1;
            return Ok(entry);
        }
        Entry::build(parser, vocab, &self.all, isolated)
    }

    /// The profile of a state in a counted block.
    fn profile(
        &self,
        parser: &mut Parser,
        keys: &mut GrammarKeys,
        vocab: &Vocabulary,
        item: Item,
    ) -> Result<Option<Arc<Profile>>, Stopped> {
        let key = {
            let mut inner = self.inner.lock();
            let key = keys.state_key(parser.program_mut(), &mut inner.rules, (item.state, FREE, vocab.reach() as u32));
            if let Some(profile) = inner.profiles.get(&key) {
                return Ok(profile.clone());
            }
            key
        };
        let profile = Profile::build(parser, vocab, item)?.map(Arc::new);
        let mut inner = self.inner.lock();
        inner.charge(profile.as_ref().map_or(0, |p| p.bytes()) + key.len() * 4, self.max_bytes);
        inner.profiles.insert(key, profile.clone());
        Ok(profile)
    }

    /// The entry of an item's state and counter, built if no grammar has needed it before. The item's counter must be
    /// normalised. The pool is not locked while an entry is built; two grammars may then build the same one, and either serves.
    pub(crate) fn entry(
        &self,
        parser: &mut Parser,
        keys: &mut GrammarKeys,
        vocab: &Vocabulary,
        item: Item,
    ) -> Result<Arc<Entry>, Stopped> {
        let reach = vocab.reach() as u32;
        let key = {
            let mut inner = self.inner.lock();
            let key = keys.state_key(parser.program_mut(), &mut inner.rules, (item.state, item.count, reach));
            if let Some(entry) = inner.entries.get(&key).cloned() {
                inner.stats.hits += 1;
                return Ok(entry);
            }
            inner.stats.misses += 1;
            key
        };
        let entry = Arc::new(self.build(parser, keys, vocab, item)?);
        let mut inner = self.inner.lock();
        inner.charge(entry.bytes() + key.len() * 4, self.max_bytes);
        inner.entries.insert(key, entry.clone());
        inner.stats.entries = inner.entries.len();
        Ok(entry)
    }
}

impl Inner {
    /// Makes room for so many bytes, by emptying the pool if need be.
    fn charge(&mut self, bytes: usize, max_bytes: usize) {
        if self.stats.bytes + bytes > max_bytes {
            self.entries.clear();
            self.profiles.clear();
            self.stats.bytes = 0;
            self.stats.evictions += 1;
        }
        self.stats.bytes += bytes;
    }
}
