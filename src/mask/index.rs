//! One compiled grammar bound to one vocabulary: the parser, the finished masks, and how a new mask is made.

use std::sync::Arc;

use parking_lot::Mutex;

use super::entry::Entry;
use super::index_state::{FEW_CONFIGS, IndexState};
use super::interned_masks::HELD;
use super::pool::Own;
use super::pool_scope::{Pooled, Pooling, count};
use super::special_tokens::Tokens;
use super::token_set::{TokenSet, set_bit};
use super::trie_walk::{Stopped, Walk};
use crate::compile::{CompileError, Compiled};
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::matcher::{ConfigId, Item, Naming, Parser, ParserLimit};
use crate::switches::Switches;
use crate::vocab::Vocabulary;

/// In which ways masks are made: see the options of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    pub(crate) direct_walk: usize,
    pub(crate) mutual_rules: usize,
    pub(crate) switches: Switches,
}

/// First bytes from which on a configuration reads text, in a vocabulary of so many times the budget of a direct walk.
const TEXT_BYTES: usize = 48;
const TEXT_NODES: usize = 2;

/// A direct walk is at most such a part of the vocabulary: one over more of it is no shorter than an entry's.
const DIRECT_PART: usize = 4;
/// Walks of so many nodes are short in any vocabulary.
const SHORT_WALK: usize = 1024;

/// Items of a document from which on they are read together.
const MANY_ITEMS: usize = 48;
/// So many entries that are not known take longer than a walk with the whole configuration.
const SEVERAL: usize = 3;
/// So many walks with whole configurations are fine in place of a rule's entries.
const WHOLE: u32 = 16;

/// Items that are looked at on their own, each with what it calls last.
fn groups_of(parser: &mut Parser, wide: &[Item]) -> Vec<Vec<Item>> {
    let calls: Vec<Vec<Item>> = wide.iter().map(|item| parser.called_last(item, wide)).collect();
    let callers = wide
        .iter()
        .zip(&calls)
        .filter(|(item, _)| !calls.iter().any(|called| called.contains(item)));
    let mut groups: Vec<Vec<Item>> =
        callers.map(|(item, called)| [&[*item], &called[..]].concat()).collect();
    // Those that are called by such as are called themselves.
    let left = wide.iter().filter(|item| !groups.iter().any(|group| group.contains(item)));
    let left: Vec<Vec<Item>> = left.map(|item| vec![*item]).collect();
    groups.extend(left);
    groups
}

/// The limit that ended a walk.
fn limit(stopped: Stopped) -> ParserLimit {
    match stopped {
        Stopped::Parser(limit) => limit,
        Stopped::Budget => ParserLimit::Memory,
    }
}

/// One compiled grammar bound to one vocabulary.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) vocab: Arc<Vocabulary>,
    pool: Pooled,
    /// The tokens of each special token of the grammar.
    pub(crate) specials: Vec<Tokens>,
    limits: Limits,
    pub(super) mask_bytes: usize,
    /// Trie nodes a configuration may cost before its wide states get pooled entries instead.
    ways: Ways,
    state: Mutex<IndexState>,
}

/// A mask, and which tokens are read one by one where names are known.
pub(crate) struct MadeAhead {
    mask: Arc<TokenSet>,
    namings: Vec<(Naming, Arc<[TokenId]>)>,
}

impl Index {
    /// Fails if the vocabulary lacks a special token of the grammar.
    pub(crate) fn new(
        compiled: Arc<Compiled>,
        vocab: Arc<Vocabulary>,
        pooling: Arc<Pooling>,
        limits: &Limits,
        ways: Ways,
    ) -> Result<Index, CompileError> {
        let specials = compiled
            .specials()
            .iter()
            .map(|s| Tokens::resolve(s, &vocab))
            .collect::<Result<_, _>>()?;
        let part = (vocab.trie().len() / DIRECT_PART).max(SHORT_WALK);
        let ways = Ways { direct_walk: ways.direct_walk.min(part), ..ways };
        let state = Mutex::new(IndexState::new(&compiled, &vocab, limits, ways));
        Ok(Index {
            compiled,
            vocab,
            pool: Pooled::new(pooling),
            specials,
            limits: limits.clone(),
            mask_bytes: limits.mask_bytes,
            ways,
            state,
        })
    }

    /// Fuel of one mask or one token.
    pub(crate) fn mask_fuel(&self) -> u64 {
        self.limits.mask_fuel
    }

    /// Fuel of one preparation.
    pub(crate) fn prepare_fuel(&self) -> u64 {
        self.limits.prepare_fuel
    }

    /// A second state, with a parser of its own.
    pub(crate) fn fresh_state(&self) -> IndexState {
        IndexState::new(&self.compiled, &self.vocab, &self.limits, self.ways)
    }

    /// The lock over everything that grows.
    pub(crate) fn lock(&self) -> parking_lot::MutexGuard<'_, IndexState> {
        self.state.lock()
    }

    /// The lock, unless someone else has it.
    pub(crate) fn try_lock(&self) -> Option<parking_lot::MutexGuard<'_, IndexState>> {
        self.state.try_lock()
    }

    /// The mask of a configuration. A hit is a look-up; a miss costs a walk over what can follow.
    pub(crate) fn mask(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<Arc<TokenSet>, ParserLimit> {
        if let Some(mask) = self.known_mask(state, config) {
            return Ok(mask);
        }
        count(&self.pool.pooling.counters.mask_misses);
        // Counters run through many configurations once each: those find their mask through the normal one.
        let place = state.place(config);
        let (mask, own) = match state.parser.compares(config) {
            true if state.parser.is_named(config) => self.mask_named(state, config)?,
            true => self.mask_compared(state, config)?,
            false => self.mask_plain(state, place)?,
        };
        // What another configuration holds, too, is counted there.
        let (mask, bytes) = if own { self.same(state, mask) } else { (mask, HELD) };
        state.hold(place, &mask, (bytes, self.mask_bytes));
        Ok(mask)
    }

    /// The mask of a configuration in which nothing is compared; whether it is one of its own.
    fn mask_plain(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<(Arc<TokenSet>, bool), ParserLimit> {
        if let Some(made) = self.mask_near_end(state, config)? {
            return Ok(made);
        }
        let (mask, own) = match self.compiled.gaps {
            true => self.mask_loosely(state, config)?,
            false => (Arc::new(self.made(state, config)?), true),
        };
        let less = self.twice_named(state, config, &mask)?;
        if less.is_empty() {
            return Ok((mask, own));
        }
        Ok((Arc::new(mask.changed(&less, &[], self.vocab.mask_words())), true))
    }

    pub(super) fn made(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<TokenSet, ParserLimit> {
        let built = self.build(state, config);
        state.walk.clear();
        built
    }

    /// Those of some tokens that are in a mask, in their order.
    pub(super) fn among(
        &self,
        state: &mut IndexState,
        mask: &TokenSet,
        tokens: &[TokenId],
    ) -> Vec<TokenId> {
        if tokens.is_empty() {
            return Vec::new();
        }
        state.row.resize(self.vocab.mask_words(), 0);
        mask.among(tokens, &mut state.row)
    }

    /// The mask that is held for all that are like one, and what that takes; see [`Same::of`].
    pub(super) fn same(
        &self,
        state: &mut IndexState,
        mask: Arc<TokenSet>,
    ) -> (Arc<TokenSet>, usize) {
        if !(self.ways.switches.masks.is_on() && self.ways.switches.alike.is_on()) {
            let bytes = mask.bytes();
            return (mask, bytes);
        }
        let (held, bytes) =
            state.same.of(mask.clone(), self.vocab.mask_words(), &self.pool.pool.alike);
        if bytes == HELD || !Arc::ptr_eq(&held, &mask) {
            count(&self.pool.pooling.counters.alike);
        }
        (held, bytes)
    }

    /// The mask of a configuration if it is memoised. Never builds one.
    pub(crate) fn known_mask(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Option<Arc<TokenSet>> {
        let mut at = config;
        let mut mask = state.held(at);
        if mask.is_none() {
            at = state.place(config);
            mask = state.held(at);
            if let Some(mask) = mask.as_ref().filter(|_| state.parser.is_named(config)) {
                state.hold(config, mask, (HELD, self.mask_bytes));
            }
        }
        if mask.is_some() {
            let counters = &self.pool.pooling.counters;
            count(&counters.mask_hits);
            if at != config {
                count(&counters.stood_in);
            }
            if state.is_first_use(at) {
                count(&counters.ahead_used);
            }
        }
        mask
    }

    /// Whether a configuration's mask is memoised.
    pub(crate) fn has_mask(&self, state: &mut IndexState, config: ConfigId) -> bool {
        state.held(config).is_some() || {
            let place = state.place(config);
            state.held(place).is_some()
        }
    }

    /// What [`Index::adopt`] needs of a configuration.
    pub(crate) fn made_ahead(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<MadeAhead, ParserLimit> {
        let mask = self.mask(state, config)?;
        let plain = state.parser.store().plain(config);
        Ok(MadeAhead { mask, namings: self.namings(state, plain)? })
    }

    /// Memoises what was made ahead, by another parser of the same grammar and vocabulary.
    pub(crate) fn adopt(&self, state: &mut IndexState, config: ConfigId, made: &MadeAhead) {
        if !self.ways.switches.masks.is_on() {
            return;
        }
        let plain = state.parser.store().plain(config);
        let plain = state.parser.for_masks(plain);
        for (naming, tokens) in &made.namings {
            state.naming.insert((plain, *naming), tokens.clone());
        }
        let place = state.place(config);
        let (mask, bytes) = self.same(state, made.mask.clone());
        state.hold(place, &mask, (bytes, self.mask_bytes));
        state.note_ahead(place);
    }

    fn build(&self, state: &mut IndexState, config: ConfigId) -> Result<TokenSet, ParserLimit> {
        state.walk.clear();
        if let Some(chars) = state.parser.chars_left(config) {
            return self.build_bounded(state, config, chars as usize);
        }
        if self.compiled.is_entangled() {
            return self.build_whole(state, config);
        }
        let mut dense: Vec<Arc<Entry>> = Vec::new();
        let items: Vec<Item> = state.parser.store().items(config).to_vec();
        if state.parser.is_scoped(config) && items.iter().any(|item| state.parser.exposes(item)) {
            // Elements are counted across the rules around them.
            return self.build_whole(state, config);
        }
        if items.len() >= MANY_ITEMS && state.parser.program().has_names() {
            // Documents that may be many things at once: each item has read the same text, and they step together.
            return self.build_behind_text(state, config, &items);
        }
        state.wide.resize(state.parser.program().len(), false);
        let any_wide = items.iter().any(|i| state.wide[i.state as usize]);
        let apart = any_wide || state.new_narrow < FEW_CONFIGS || self.reads_text(state, config);
        if apart || !state.try_narrow(&self.vocab, config, self.ways.direct_walk)? {
            let mut wide: Vec<Item> = Vec::new();
            for &item in &items {
                if !state.wide[item.state as usize] {
                    let alone = state.parser.isolated(item);
                    state.wide[item.state as usize] = self.reads_text(state, alone)
                        || !state.narrow_alone(&self.vocab, item, self.ways.direct_walk)?;
                }
                if state.wide[item.state as usize] {
                    wide.push(item);
                }
            }
            let groups = groups_of(&mut state.parser, &wide);
            if self.is_walked_whole(state, config, &groups)? {
                state.walk.clear();
                return self.build_whole(state, config);
            }
            self.add_entries(state, &groups, &mut dense)?;
            let IndexState { parser, sections, walk, .. } = &mut *state;
            sections.rest(parser, self.vocab.trie(), walk).map_err(limit)?;
        }
        let mut sets = self.whole_tokens(state, config);
        sets.extend(dense.iter().map(|entry| entry.accepted.clone()));
        Ok(self.assemble(&mut state.walk, sets))
    }

    /// Whether one walk with the whole configuration is better than the entries of these groups: of several nothing is known yet, and each would be a
    /// walk of its own. Where that comes again and again for a rule, entries are.
    fn is_walked_whole(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        groups: &[Vec<Item>],
    ) -> Result<bool, ParserLimit> {
        if groups.len() < SEVERAL || state.chained {
            return Ok(false);
        }
        let mut unknown: Vec<u32> = Vec::new();
        for group in groups {
            if !self.has_entry(state, group) {
                unknown.push(state.parser.program().state(group[0].state).rule);
            }
        }
        if unknown.len() < SEVERAL
            || unknown.iter().any(|rule| state.whole.get(rule).is_some_and(|&walks| walks >= WHOLE))
        {
            return Ok(false);
        }
        if self.reads_text(state, config) && !state.parser.reads_any_text(config)? {
            return Ok(false);
        }
        unknown.into_iter().for_each(|rule| *state.whole.entry(rule).or_insert(0) += 1);
        Ok(true)
    }

    /// Adds the entries of wide items, and what they leave undecided that can be finished.
    fn add_entries(
        &self,
        state: &mut IndexState,
        groups: &[Vec<Item>],
        dense: &mut Vec<Arc<Entry>>,
    ) -> Result<(), ParserLimit> {
        for group in groups {
            let entry = self.entry(state, group)?;
            for &exit in entry.exits() {
                let next = state.parser.follow(&group[0], exit)?;
                let counters = &self.pool.pooling.counters;
                state.resolve((&self.vocab, counters), &entry, (exit, next)).map_err(limit)?;
            }
            dense.push(entry);
        }
        Ok(())
    }

    /// One walk over all of the vocabulary with all of the configuration.
    pub(super) fn build_whole(
        &self,
        state: &mut IndexState,
        config: ConfigId,
    ) -> Result<TokenSet, ParserLimit> {
        self.build_beside(state, config, None)
    }

    /// The same, with what is known to be accepted.
    pub(super) fn build_beside(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        known: Option<TokenSet>,
    ) -> Result<TokenSet, ParserLimit> {
        let walked = state.try_narrow(&self.vocab, config, usize::MAX)?;
        debug_assert!(walked, "a walk without bound ends");
        let mut sets = self.whole_tokens(state, config);
        sets.extend(known);
        Ok(self.assemble(&mut state.walk, sets))
    }

    /// Adds what is allowed as a whole: special tokens, and stop tokens where the text may end.
    fn whole_tokens(&self, state: &mut IndexState, config: ConfigId) -> Vec<TokenSet> {
        let mut sets: Vec<TokenSet> = Vec::new();
        for special in state.parser.specials(config).collect::<Vec<_>>() {
            match &self.specials[special as usize] {
                Tokens::One(id) => state.walk.words.push(*id),
                Tokens::Many(row) => sets.push(TokenSet::row(row.clone())),
            }
        }
        if state.parser.store().done(config).root {
            state.walk.words.extend_from_slice(self.vocab.stops());
        }
        sets
    }

    /// Whether so many bytes may come next that a direct walk is certainly too long, without walking.
    pub(super) fn reads_text(&self, state: &mut IndexState, config: ConfigId) -> bool {
        self.vocab.trie().len() > TEXT_NODES * self.ways.direct_walk
            && state.parser.allowed(config).len() >= TEXT_BYTES
    }

    /// Whether the entry of a wide state is there.
    fn has_entry(&self, state: &mut IndexState, items: &[Item]) -> bool {
        let IndexState { parser, keys, entries, .. } = state;
        let key = (items[0].state, items[0].count, items.len() > 1);
        if entries.get(&key).is_some() {
            return true;
        }
        let Some(entry) = self.pool.known(parser, keys, &self.vocab, items) else { return false };
        entries.insert(key, entry.clone(), entry.bytes());
        true
    }

    /// The entry of a wide state, with what it calls last: this grammar's, else the pool's.
    pub(super) fn entry(
        &self,
        state: &mut IndexState,
        items: &[Item],
    ) -> Result<Arc<Entry>, ParserLimit> {
        let IndexState { parser, keys, folds, entries, .. } = state;
        let key = (items[0].state, items[0].count, items.len() > 1);
        if let Some(entry) = entries.get(&key) {
            return Ok(entry);
        }
        let entry =
            self.pool.entry(parser, &mut Own { keys, folds }, &self.vocab, items).map_err(limit)?;
        entries.insert(key, entry.clone(), entry.bytes());
        Ok(entry)
    }

    /// Unites accepted sets and what a walk has found. Words may repeat: a bit set twice is cheaper than sorting.
    fn assemble(&self, walk: &mut Walk, mut sets: Vec<TokenSet>) -> TokenSet {
        walk.rows.sort_unstable_by_key(|row| row.as_ptr());
        walk.rows.dedup_by_key(|row| row.as_ptr());
        sets.extend(walk.rows.drain(..).map(TokenSet::row));
        let (words, row) = (&walk.words, self.vocab.mask_words());
        match &sets[..] {
            [] if words.len() <= row / 2 => TokenSet::List(words[..].into()),
            [set] => set.changed(&[], words, row),
            _ => TokenSet::built(row, |bits| {
                sets.iter().for_each(|set| set.add_to(bits));
                words.iter().for_each(|&id| set_bit(bits, id));
            }),
        }
    }
}
