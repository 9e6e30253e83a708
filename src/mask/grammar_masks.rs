//! One compiled grammar bound to one vocabulary: builds token masks and memoises them.
//!
//! [`GrammarMasks`] is immutable and shared. Everything that grows is in its [`MaskState`], after a
//! lock. [`GrammarMasks::mask`] chooses how a mask is built; the module docs of [`super`] list the
//! ways.

use std::sync::Arc;

use parking_lot::Mutex;

use super::entry::MaskEntry;
use super::found_mask::FoundMask;
use super::interned_masks::SHARED_MASK_BYTES;
use super::mask_state::{GrammarEntries, MaskOptions, MaskState, UsedEntry};
use super::pool::{EntryContext, MaskPool};
use super::pool_counters::count;
use super::pool_key::CountedState;
use super::pool_scope::EnginePool;
use super::special_tokens::{SpecialTokenIds, SpecialTokenResolver};
use super::token_set::{TokenSet, set_bit};
use super::trie_walk::TrieWalk;
use crate::compile::{CompileError, Compiled};
use crate::fuel::{self, OutOfFuel};
use crate::hash::HashSet;
use crate::ids::{SpecialId, TokenId};
use crate::limits::Limits;
use crate::matcher::{ConfigId, Item, KeyStatus, Parser, ParserLimit, TokenSymbols, TransitionUse};
use crate::vocab::Vocabulary;

/// A configuration that allows this many first bytes or more is not walked directly.
const MIN_TEXT_BYTES: usize = 48;
/// Ratio of trie nodes to the budget of a direct walk below which [`MIN_TEXT_BYTES`] is ignored.
const TEXT_TRIE_FACTOR: usize = 2;

/// A direct walk visits at most this part of the trie: beyond, building an entry costs no more.
const DIRECT_WALK_FRACTION: usize = 4;
/// Number of nodes of a walk that is short in any vocabulary.
const SHORT_WALK: usize = 1024;

/// Fuel to look for the tail calls of an item.
const FUEL_PER_GROUPED_ITEM: usize = 8;
/// Words of a row that are united for a unit of fuel.
const WORDS_PER_FUEL: usize = 8;

/// Groups of items that share an entry: each item together with those that it tail-calls.
fn group_with_tail_calls(parser: &mut Parser, wide: &[Item]) -> Vec<Vec<Item>> {
    fuel::charge(FUEL_PER_GROUPED_ITEM * wide.len());
    let tail_calls: Vec<Vec<Item>> =
        wide.iter().map(|item| parser.tail_called_items(item, wide)).collect();
    let called: HashSet<Item> = tail_calls.iter().flatten().copied().collect();
    let callers = wide.iter().zip(&tail_calls).filter(|(item, _)| !called.contains(*item));
    let mut groups: Vec<Vec<Item>> =
        callers.map(|(item, called_items)| [&[*item], &called_items[..]].concat()).collect();
    // Items that are tail-called only by items which are tail-called themselves.
    let grouped: HashSet<Item> = groups.iter().flatten().copied().collect();
    let ungrouped = wide.iter().filter(|item| !grouped.contains(*item));
    let ungrouped: Vec<Vec<Item>> = ungrouped.map(|item| vec![*item]).collect();
    groups.extend(ungrouped);
    groups
}

/// One compiled grammar bound to one vocabulary.
#[derive(Debug)]
pub(crate) struct GrammarMasks {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) vocab: Arc<Vocabulary>,
    engine_pool: Arc<EnginePool>,
    pool: Arc<MaskPool>,
    /// The token ids of each special token of the grammar.
    pub(crate) specials: Vec<SpecialTokenIds>,
    limits: Limits,
    /// How masks are built, the budget of direct walks included.
    options: MaskOptions,
    state: Mutex<MaskState>,
}

/// A mask that was built in the background, for [`GrammarMasks::adopt_prepared`].
pub(crate) struct PreparedMask {
    /// The finished mask.
    mask: Arc<TokenSet>,
    /// The tokens to test one by one where earlier keys are known, for each state that keys may be
    /// in.
    key_candidates: Vec<(KeyStatus, Arc<[TokenId]>)>,
}

impl GrammarMasks {
    /// Fails if the vocabulary lacks a special token of the grammar.
    pub(crate) fn new(
        compiled: Arc<Compiled>,
        vocab: Arc<Vocabulary>,
        engine_pool: Arc<EnginePool>,
        limits: &Limits,
        options: MaskOptions,
    ) -> Result<GrammarMasks, CompileError> {
        let specials = SpecialTokenResolver::new(&vocab).resolve_all(compiled.specials())?;
        let part = (vocab.trie().len() / DIRECT_WALK_FRACTION).max(SHORT_WALK);
        let options = MaskOptions { direct_walk: options.direct_walk.min(part), ..options };
        let state = Mutex::new(MaskState::new(&compiled, &vocab, limits, options));
        Ok(GrammarMasks {
            compiled,
            vocab,
            pool: engine_pool.pool(),
            engine_pool,
            specials,
            limits: limits.clone(),
            options,
            state,
        })
    }

    /// The limits on the work and memory of one request.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A second state, with a parser of its own, for background work. All requests share it, so
    /// its start does not depend on the fuel of one.
    pub(crate) fn fresh_state(&self) -> MaskState {
        fuel::with_separate_budget(self.compiled.compile_fuel(), || {
            MaskState::new(&self.compiled, &self.vocab, &self.limits, self.options)
        })
    }

    /// The special tokens of the grammar that a token stands for.
    pub(crate) fn specials_of(&self, token: TokenId) -> impl Iterator<Item = SpecialId> {
        let specials = (0..).map(SpecialId::from_raw).zip(&self.specials);
        specials.filter(move |(_, tokens)| tokens.contains(token)).map(|(special, _)| special)
    }

    /// What a token stands for. The bytes of a stop token are not text.
    pub(crate) fn symbols_of(
        &self,
        token: TokenId,
    ) -> TokenSymbols<'_, impl Iterator<Item = SpecialId>> {
        let bytes = self.vocab.bytes(token).filter(|_| !self.vocab.is_stop(token));
        TokenSymbols { bytes, specials: self.specials_of(token) }
    }

    /// Locks everything that grows.
    pub(crate) fn lock(&self) -> parking_lot::MutexGuard<'_, MaskState> {
        self.state.lock()
    }

    /// Locks everything that grows, unless another thread holds the lock.
    pub(crate) fn try_lock(&self) -> Option<parking_lot::MutexGuard<'_, MaskState>> {
        self.state.try_lock()
    }

    /// The mask of a configuration. A hit costs a look-up; a miss costs a walk over what can
    /// follow.
    ///
    /// A mask depends on the configuration and on nothing else of a sequence: batches and drafts
    /// take masks from here, past the matcher.
    pub(crate) fn mask(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<Arc<TokenSet>, ParserLimit> {
        if let Some(mask) = self.find_mask(state, config) {
            return Ok(mask);
        }
        count(&self.engine_pool.counters.mask_misses);
        // Counters pass through many configurations once each. Their masks are found by the
        // canonical one.
        let memo_config = state.memo_config(config);
        let found = match state.parser.compares_values(config) {
            true if state.parser.tracks_keys(config) => {
                self.mask_with_earlier_keys(state, config)?
            }
            true => self.mask_with_distinct_values(state, config)?,
            false => self.mask_without_comparisons(state, memo_config)?,
        };
        // A mask of another configuration is accounted for there.
        let (mask, bytes) = match found.is_new {
            true => self.intern_mask(state, found.mask),
            false => (found.mask, SHARED_MASK_BYTES),
        };
        state.insert_mask(memo_config, &mask, bytes);
        Ok(mask)
    }

    /// The mask of a configuration in which neither values nor keys are compared.
    fn mask_without_comparisons(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<FoundMask, ParserLimit> {
        if let Some(near_limit) = self.mask_near_length_limit(state, config)? {
            return Ok(near_limit);
        }
        let found = match self.compiled.has_bounded_white_space {
            true => self.mask_with_white_space_bound(state, config)?,
            false => FoundMask::new(self.build(state, config)?),
        };
        self.without_repeated_keys(state, config, found)
    }

    /// A mask of a configuration, less the tokens that repeat a key of an object.
    pub(super) fn without_repeated_keys(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        FoundMask { mask, is_new }: FoundMask,
    ) -> Result<FoundMask, ParserLimit> {
        let repeating = self.tokens_repeating_a_key(state, config, &mask)?;
        let remaining = self.subtract(state, config, mask, repeating)?;
        Ok(FoundMask { is_new: is_new || remaining.is_new, ..remaining })
    }

    /// Those of some tokens that are in a mask, in their order.
    pub(super) fn filter_by_mask(
        &self,
        state: &mut MaskState,
        mask: &TokenSet,
        tokens: &[TokenId],
    ) -> Vec<TokenId> {
        if tokens.is_empty() {
            return Vec::new();
        }
        mask.among(tokens, state.walk.zero_row(self.vocab.mask_words()))
    }

    /// Interns a mask; returns the stored equal one and the memory that it adds. See
    /// [`GrammarMaskInterner::intern`](super::interned_masks::GrammarMaskInterner::intern).
    pub(super) fn intern_mask(
        &self,
        state: &mut MaskState,
        mask: Arc<TokenSet>,
    ) -> (Arc<TokenSet>, usize) {
        if !(self.options.switches.masks.is_on() && self.options.switches.equal_masks.is_on()) {
            let bytes = mask.bytes();
            return (mask, bytes);
        }
        let (interned, bytes) =
            state.masks.interned.intern(mask.clone(), self.vocab.mask_words(), &self.pool.masks);
        if bytes == SHARED_MASK_BYTES || !Arc::ptr_eq(&interned, &mask) {
            count(&self.engine_pool.counters.equal_masks);
        }
        (interned, bytes)
    }

    /// The mask of a configuration if it is memoised. Never builds one.
    pub(crate) fn find_mask(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Option<Arc<TokenSet>> {
        let mut memo_config = config;
        let mut mask = state.masks.get(memo_config);
        if mask.is_none() {
            memo_config = state.memo_config(config);
            mask = state.masks.get(memo_config);
            if let Some(mask) = mask.as_ref().filter(|_| state.parser.tracks_keys(config)) {
                state.insert_mask(config, mask, SHARED_MASK_BYTES);
            }
        }
        if mask.is_some() {
            let counters = &self.engine_pool.counters;
            count(&counters.mask_hits);
            if memo_config != config {
                count(&counters.representatives_used);
            }
            if state.masks.take_prepared_mark(memo_config) {
                count(&counters.background_masks_used);
            }
        }
        mask
    }

    /// Whether a configuration's mask is memoised.
    pub(crate) fn has_mask(&self, state: &mut MaskState, config: ConfigId) -> bool {
        state.masks.get(config).is_some() || {
            let memo_config = state.memo_config(config);
            state.masks.get(memo_config).is_some()
        }
    }

    /// Builds what [`GrammarMasks::adopt_prepared`] needs of a configuration.
    pub(crate) fn prepare_mask(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<PreparedMask, ParserLimit> {
        let mask = self.mask(state, config)?;
        let base = state.parser.store().base(config);
        Ok(PreparedMask { mask, key_candidates: self.key_candidates_by_status(state, base)? })
    }

    /// Memoises a mask that another parser of the same grammar and vocabulary has built. The dead
    /// configuration, of a start that reached a limit, has no mask.
    pub(crate) fn adopt_prepared(
        &self,
        state: &mut MaskState,
        config: ConfigId,
        prepared: &PreparedMask,
    ) {
        if !self.options.switches.masks.is_on() || config == ConfigId::DEAD {
            return;
        }
        let base = state.parser.store().base(config);
        let base = state.parser.mask_representative(base);
        for (key_status, tokens) in &prepared.key_candidates {
            state.candidates.keys.insert((base, *key_status), tokens.clone());
        }
        let memo_config = state.memo_config(config);
        let (mask, bytes) = self.intern_mask(state, prepared.mask.clone());
        state.insert_mask(memo_config, &mask, bytes);
        state.masks.mark_prepared(memo_config);
    }

    /// Builds the mask of a relaxed configuration without comparisons, by the cheapest way. With
    /// `direct_walk` 0, independent items never take a direct walk: tests force entries so.
    pub(super) fn build(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<TokenSet, ParserLimit> {
        state.walk.clear();
        if let Some(chars) = state.parser.chars_left(config) {
            return self.build_near_code_point_budget(state, config, chars);
        }
        if state.parser.has_interdependent_items(config) {
            return self.build_by_walk(state, config);
        }
        let mut entries: Vec<Arc<MaskEntry>> = Vec::new();
        let items: Vec<Item> = state.parser.store().items(config).to_vec();
        if state.parser.has_scope(config)
            && items.iter().any(|item| state.parser.may_call_outer_element(item))
        {
            // Scopes count elements across rules, so items are not independent.
            return self.build_by_walk(state, config);
        }
        let any_wide = items.iter().any(|item| state.entries.wide_states.get(item.state));
        let by_item =
            any_wide || !state.walks_whole_configs() || self.is_too_wide_to_walk(state, config);
        if by_item || !state.walk_directly(&self.vocab, config, self.options.direct_walk)? {
            let wide = self.walk_or_defer_items(state, &items)?;
            let groups = group_with_tail_calls(&mut state.parser, &wide);
            self.add_entries(state, &groups, &mut entries)?;
            let MaskState { parser, rule_walks, walk, .. } = &mut *state;
            rule_walks.finish(parser, self.vocab.shared_trie(), walk)?;
        }
        let mut sets = self.special_and_stop_tokens(state, config)?;
        sets.extend(entries.iter().map(|entry| entry.accepted.clone()));
        Ok(self.assemble(&mut state.walk, sets))
    }

    /// Walks with each item that reads few tokens. Returns the others, the wide ones.
    fn walk_or_defer_items(
        &self,
        state: &mut MaskState,
        items: &[Item],
    ) -> Result<Vec<Item>, ParserLimit> {
        let mut wide = Vec::new();
        for &item in items {
            let mut is_wide = state.entries.wide_states.get(item.state);
            if !is_wide {
                let isolated = state.parser.isolated(item);
                is_wide = self.is_too_wide_to_walk(state, isolated)
                    || !state.walk_item_directly(&self.vocab, item, self.options.direct_walk)?;
                *state.entries.wide_states.entry(item.state) = is_wide;
            }
            wide.extend(is_wide.then_some(item));
        }
        Ok(wide)
    }

    /// Adds the entries of wide items, and those of their context-dependent tokens that what
    /// follows completes.
    fn add_entries(
        &self,
        state: &mut MaskState,
        groups: &[Vec<Item>],
        entries: &mut Vec<Arc<MaskEntry>>,
    ) -> Result<(), ParserLimit> {
        for group in groups {
            let entry = self.entry(state, group)?;
            for &exit in entry.exits() {
                let next = state.parser.follow(&group[0], exit)?;
                let counters = &self.engine_pool.counters;
                state.resolve_suffixes(&self.vocab, counters, &entry, exit, next)?;
            }
            entries.push(entry);
        }
        Ok(())
    }

    /// Builds a mask by one walk of the whole trie with the whole configuration.
    pub(super) fn build_by_walk(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<TokenSet, ParserLimit> {
        state.walk.clear();
        let walked = state.walk_directly(&self.vocab, config, usize::MAX)?;
        debug_assert!(walked, "a walk without bound ends");
        let sets = self.special_and_stop_tokens(state, config)?;
        Ok(self.assemble(&mut state.walk, sets))
    }

    /// Adds special tokens, and stop tokens where the text may end.
    fn special_and_stop_tokens(
        &self,
        state: &mut MaskState,
        config: ConfigId,
    ) -> Result<Vec<TokenSet>, ParserLimit> {
        let mut sets: Vec<TokenSet> = Vec::new();
        for special in state.parser.specials(config).collect::<Vec<_>>() {
            // An element that would repeat a value has an edge, but leads nowhere.
            if state.parser.step_special(config, special)? == ConfigId::DEAD {
                continue;
            }
            match &self.specials[special.index()] {
                SpecialTokenIds::One(id) => state.walk.tokens.push(*id),
                SpecialTokenIds::Many(row) => {
                    fuel::charge(row.len() / WORDS_PER_FUEL);
                    sets.push(TokenSet::row(row.clone()));
                }
            }
        }
        if state.parser.store().is_complete(config) {
            state.walk.tokens.extend_from_slice(self.vocab.stops());
        }
        Ok(sets)
    }

    /// Whether so many bytes may come next that a direct walk exceeds its budget, without trying.
    fn is_too_wide_to_walk(&self, state: &mut MaskState, config: ConfigId) -> bool {
        self.vocab.trie().len() > TEXT_TRIE_FACTOR * self.options.direct_walk
            && state.parser.allowed(config).len() >= MIN_TEXT_BYTES
    }

    /// The entry of an item, together with those that it tail-calls: from this grammar's cache,
    /// from the pool, or built.
    fn entry(&self, state: &mut MaskState, items: &[Item]) -> Result<Arc<MaskEntry>, ParserLimit> {
        let MaskState { parser, entries: GrammarEntries { rules, used, .. }, .. } = state;
        let key = UsedEntry { state: CountedState::of(&items[0]), has_tail_calls: items.len() > 1 };
        if let Some(entry) = used.get(&key) {
            return Ok(entry);
        }
        let (vocab, counters) = (&self.vocab, &self.engine_pool.counters);
        let mut context = EntryContext { parser, rules, vocab, counters };
        let entry = self.pool.entry(&mut context, items)?;
        used.insert(key, entry.clone(), entry.bytes());
        Ok(entry)
    }

    /// Unites accepted sets and the tokens of a walk. Tokens may repeat: setting a bit twice is
    /// cheaper than sorting.
    fn assemble(&self, walk: &mut TrieWalk, mut sets: Vec<TokenSet>) -> TokenSet {
        walk.rows.sort_unstable_by_key(|row| row.as_ptr());
        walk.rows.dedup_by_key(|row| row.as_ptr());
        sets.extend(walk.rows.drain(..).map(TokenSet::row));
        let (tokens, mask_words) = (&walk.tokens, self.vocab.mask_words());
        match &sets[..] {
            [] if tokens.len() <= mask_words / 2 => TokenSet::List(tokens[..].into()),
            [set] => set.with_changes(&[], tokens, mask_words),
            _ => TokenSet::from_row_fn(mask_words, |bits| {
                sets.iter().for_each(|set| set.add_to(bits));
                tokens.iter().for_each(|&id| set_bit(bits, id));
            }),
        }
    }
}

/// Methods that need the vocabulary and the special tokens of the grammar.
impl MaskState {
    /// The error for a limit that the first mask has reached.
    pub(crate) fn start_error(&self, limit: ParserLimit, masks: &GrammarMasks) -> CompileError {
        let items = self.parser.store().items(self.parser.start());
        let rule = items
            .first()
            .map_or(masks.compiled.start, |item| self.parser.program().rule(item.state));
        let grammar = masks.compiled.grammar();
        match limit {
            ParserLimit::Fuel | ParserLimit::SequenceFuel => {
                let limit = masks.limits.mask_fuel.min(masks.limits.sequence_fuel);
                CompileError::fuel(grammar, rule, OutOfFuel::Spent { limit })
            }
            ParserLimit::Cancelled => CompileError::fuel(grammar, rule, OutOfFuel::Cancelled),
            other => CompileError::Start { what: other.what() },
        }
    }

    /// Steps over a token.
    pub(crate) fn step_token(
        &mut self,
        masks: &GrammarMasks,
        config: ConfigId,
        token: TokenId,
    ) -> Result<ConfigId, ParserLimit> {
        let symbols = masks.symbols_of(token);
        Ok(self.parser.step_token(config, symbols, TransitionUse::Skip)?.config)
    }
}
