//! The mutable state of one constraint: the parser, memoised masks, and caches of their parts.
//!
//! All matchers of a constraint share it, after the lock of its [`Index`]. Caches are keyed by ids
//! that mean something only until the parser is cleared; [`IndexState::epoch`] counts how often
//! that happened.

use std::sync::Arc;

use super::entry::MaskEntry;
use super::interned_masks::GrammarMaskInterner;
use super::pool_counters::{PoolCounters, count};
use super::pool_key::KeyBuilder;
use super::rule_walks::{ResolvedTokens, RuleWalks};
use super::token_set::TokenSet;
use super::trie_walk::{TrieWalk, WalkError};
use crate::cache::Cache;
use crate::capacity::ReserveMore;
use crate::compile::Compiled;
use crate::hash::HashMap;
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::matcher::{ConfigId, DEAD, Exit, Item, NameStatus, Parser, ParserLimit, ShortestPaths};
use crate::switches::Switches;
use crate::vocab::Vocabulary;

/// Memory for resolved suffixes of one constraint.
const RESOLVED_BYTES: usize = 4 << 20;

/// Memory for pooled entries that one constraint keeps, although the pool may have dropped them.
const ENTRIES_BYTES: usize = 32 << 20;

/// Initial value of [`IndexState::suffix_config_budget`].
const SUFFIX_CONFIG_BUDGET: usize = 1024;
/// Initial value of [`IndexState::direct_config_budget`].
const DIRECT_CONFIG_BUDGET: usize = 256;
/// A budget below this is not worth an attempt.
pub(super) const MIN_CONFIG_BUDGET: usize = 32;

/// Resolved suffixes by entry address, exit and following configuration. The entry is held, so that
/// its address stays unique.
type ResolvedSuffixes = HashMap<(usize, Exit, ConfigId), (Arc<MaskEntry>, ResolvedTokens)>;

/// New configurations between two checks of the memory in use.
const CHECK_INTERVAL: usize = 16;

/// How the parser reads the bytes of a token: returns the configuration reached, and how many bytes
/// were accepted.
pub(crate) type AdvanceBytesFn =
    fn(&mut Parser, ConfigId, &[u8]) -> Result<(ConfigId, usize), ParserLimit>;

/// How masks are built: a part of the engine's options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskOptions {
    /// Most trie nodes that a direct walk may visit.
    pub(crate) direct_walk: usize,
    /// Size of a component of mutually recursive rules from which on suffixes are resolved rule by
    /// rule.
    pub(crate) mutual_rules: usize,
    pub(crate) switches: Switches,
}

/// Everything that grows while matchers run; after the index's lock.
#[derive(Debug)]
pub(crate) struct IndexState {
    pub(crate) parser: Parser,
    /// How often the parser was cleared; ids of an earlier epoch are invalid.
    pub(crate) epoch: u64,
    /// Memoised masks, by configuration.
    masks: Vec<Option<Arc<TokenSet>>>,
    /// Memory of memoised masks, in bytes.
    pub(super) masks_bytes: usize,
    /// Interned masks of this grammar.
    pub(super) interned_masks: GrammarMaskInterner,
    /// Prepared masks that have not been used yet, one bit a configuration.
    prepared: Vec<u64>,
    /// Tokens to test one by one where values are compared, by the configuration that allows
    /// everything else.
    pub(super) distinct_candidates: HashMap<ConfigId, Arc<[TokenId]>>,
    /// Tokens to test one by one where keys are compared, by the configuration that knows no keys.
    pub(super) key_candidates: HashMap<(ConfigId, NameStatus), Arc<[TokenId]>>,
    /// Automaton states that are too wide for a direct walk: their entries come from the pool.
    pub(super) wide_states: Vec<bool>,
    /// Pool keys of this grammar's states.
    pub(super) keys: KeyBuilder,
    /// Entries that this grammar has used, by state, counter, and whether tail-called items are
    /// included.
    pub(super) entries: Cache<(u32, u32, bool), Arc<MaskEntry>>,
    /// Memoised results of resolving suffixes.
    resolved_suffixes: ResolvedSuffixes,
    /// Memory of those, in bytes.
    resolved_bytes: usize,
    /// Memoised walks of single rules.
    pub(super) rule_walks: RuleWalks,
    /// A scratch bitmap row; all zeros between uses.
    pub(super) scratch_row: Vec<u32>,
    /// Most new configurations that resolving suffixes with whole configurations may create. Halved
    /// at each failure.
    suffix_config_budget: usize,
    /// The same for a direct walk of the trie.
    pub(super) direct_config_budget: usize,
    /// Results and buffers of trie walks.
    pub(super) walk: TrieWalk,
    /// Optimisations that are switched off.
    pub(super) switches: Switches,
    /// Lengths of shortest completions; made on demand.
    pub(crate) lengths: Option<Box<ShortestPaths>>,
    /// Memory that one sequence needed after the last clear. Tells a full cache from a sequence
    /// that needs all of it.
    replay_bytes: Option<usize>,
    /// Number of configurations at the last check of the memory in use.
    configs_at_check: usize,
}

impl IndexState {
    /// The state of a constraint that has read nothing.
    pub(super) fn new(
        compiled: &Arc<Compiled>,
        vocab: &Arc<Vocabulary>,
        limits: &Limits,
        options: MaskOptions,
    ) -> IndexState {
        let mut parser = Parser::new(compiled.clone(), Some(vocab.clone()), limits);
        parser.switch_transition_cache(options.switches.transitions);
        let mutually_recursive =
            compiled.largest_component() >= options.mutual_rules && compiled.scopes.is_empty();
        IndexState {
            replay_bytes: None,
            configs_at_check: 0,
            parser,
            switches: options.switches,
            epoch: 0,
            masks: Vec::new(),
            masks_bytes: 0,
            interned_masks: GrammarMaskInterner::default(),
            prepared: Vec::new(),
            distinct_candidates: HashMap::default(),
            key_candidates: HashMap::default(),
            wide_states: Vec::new(),
            keys: KeyBuilder::default(),
            entries: Cache::new(ENTRIES_BYTES),
            resolved_suffixes: ResolvedSuffixes::default(),
            resolved_bytes: 0,
            rule_walks: RuleWalks::new(vocab),
            scratch_row: Vec::new(),
            direct_config_budget: if mutually_recursive { 0 } else { DIRECT_CONFIG_BUDGET },
            suffix_config_budget: if mutually_recursive || options.direct_walk == 0 {
                0
            } else {
                SUFFIX_CONFIG_BUDGET
            },
            walk: TrieWalk::default(),
            lengths: None,
        }
    }

    /// Whether the configuration accepts a token's bytes.
    pub(super) fn accepts_bytes(
        &mut self,
        vocab: &Vocabulary,
        config: ConfigId,
        token: TokenId,
    ) -> Result<bool, ParserLimit> {
        let mut reached = config;
        for &byte in vocab.bytes(token).unwrap_or_default() {
            reached = self.parser.step(reached, byte)?;
            if reached == DEAD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Walks the trie with a configuration within a budget of nodes. Past the budget, it adds
    /// nothing and returns false.
    pub(super) fn walk_directly(
        &mut self,
        vocab: &Vocabulary,
        config: ConfigId,
        nodes: usize,
    ) -> Result<bool, ParserLimit> {
        let before = self.walk.lengths();
        let most = self.parser.store().configs() + self.direct_config_budget;
        self.walk.most_configs = (nodes < usize::MAX).then_some(most);
        self.walk.white_row = vocab.white_space_mask(u32::MAX);
        let walked = self.walk.run(&mut self.parser, vocab.trie(), 0, config, nodes);
        (self.walk.most_configs, self.walk.white_row) = (None, None);
        match walked {
            Ok(()) => Ok(true),
            Err(WalkError::Budget) => {
                if self.parser.store().configs() > most {
                    self.direct_config_budget /= 2;
                }
                self.walk.truncate(before);
                Ok(false)
            }
            Err(WalkError::Parser(limit)) => Err(limit),
        }
    }

    /// As [`IndexState::walk_directly`] for one item; by rules, where whole configurations are too
    /// many.
    pub(super) fn walk_item_directly(
        &mut self,
        vocab: &Vocabulary,
        item: Item,
        nodes: usize,
    ) -> Result<bool, ParserLimit> {
        // Scopes stay open across rules, so the item is not independent of its frame.
        if self.direct_config_budget >= MIN_CONFIG_BUDGET
            || !self.parser.compiled().scopes.is_empty()
        {
            let single_item = self.parser.intern_single(item);
            return self.walk_directly(vocab, single_item, nodes);
        }
        let before = self.walk.lengths();
        let (parser, trie, walk) = (&mut self.parser, vocab.trie(), &mut self.walk);
        match self.rule_walks.walk_item(parser, trie, (item, nodes), walk) {
            Ok(()) => Ok(true),
            Err(WalkError::Budget) => {
                self.walk.truncate(before);
                Ok(false)
            }
            Err(WalkError::Parser(limit)) => Err(limit),
        }
    }

    /// The memoised mask of a canonical configuration.
    pub(super) fn memoised_mask(&self, config: ConfigId) -> Option<Arc<TokenSet>> {
        self.masks.get(config as usize).cloned().flatten()
    }

    /// Adds the context-dependent tokens of an entry that `next`, which follows the exit,
    /// completes. Results are memoised.
    pub(super) fn resolve_suffixes(
        &mut self,
        (vocab, counters): (&Vocabulary, &PoolCounters),
        entry: &Arc<MaskEntry>,
        (exit, next): (Exit, ConfigId),
    ) -> Result<(), WalkError> {
        if let Some((base, excluded)) = entry.base() {
            let from = self.walk.lengths();
            self.resolve_suffixes((vocab, counters), base, (exit, next))?;
            excluded.remove_from(&mut self.walk, from);
        }
        let key = (Arc::as_ptr(entry) as usize, exit, next);
        if let Some((_, tokens)) = self.resolved_suffixes.get(&key) {
            count(&counters.resolved_hits);
            tokens.add_to(&mut self.walk);
            return Ok(());
        }
        count(&counters.resolved_misses);
        let from = self.walk.lengths();
        // Most suffixes create few new configurations. Where they would create many, they are
        // resolved rule by rule.
        let has_scopes = !self.parser.compiled().scopes.is_empty();
        self.walk.most_configs =
            (!has_scopes).then(|| self.parser.store().configs() + self.suffix_config_budget);
        let walked = entry.resolve(&mut self.parser, vocab, (exit, next), &mut self.walk);
        self.walk.most_configs = None;
        let walked_whole = walked.is_ok();
        match walked {
            Err(WalkError::Budget) => {
                self.walk.truncate(from);
                // A grammar that needed many configurations will need many again: each failure
                // costs less than the last.
                self.suffix_config_budget /= 2;
                let walks = (&mut self.walk, &mut self.rule_walks);
                entry.resolve_by_rules(&mut self.parser, vocab, (exit, next), walks)?;
            }
            other => other?,
        }
        if !self.switches.lookahead.is_on() {
            return Ok(());
        }
        let tokens = match walked_whole {
            true => ResolvedTokens::single(&self.walk, from),
            false => ResolvedTokens::from_walk(&mut self.walk, from, vocab.mask_words()),
        };
        self.resolved_bytes += tokens.bytes();
        if self.resolved_bytes > RESOLVED_BYTES {
            self.resolved_suffixes.clear();
            self.resolved_bytes = tokens.bytes();
        }
        self.resolved_suffixes.insert(key, (entry.clone(), tokens));
        Ok(())
    }

    /// Marks a mask as prepared.
    pub(super) fn mark_prepared(&mut self, config: ConfigId) {
        let word = config as usize / 64;
        if self.prepared.len() <= word {
            self.prepared.resize(word + 1, 0);
        }
        self.prepared[word] |= 1 << (config % 64);
    }

    /// Whether a mask was prepared and is used for the first time. Removes the mark.
    pub(super) fn take_prepared_mark(&mut self, config: ConfigId) -> bool {
        let Some(word) = self.prepared.get_mut(config as usize / 64) else { return false };
        let bit = 1 << (config % 64);
        let was_marked = *word & bit != 0;
        *word &= !bit;
        was_marked
    }

    /// The configuration without keys that has the same mask, where it is known that keys make no
    /// difference.
    fn memo_config_without_keys(&mut self, config: ConfigId) -> Option<ConfigId> {
        let parser = &mut self.parser;
        let plain = parser.store().plain(config);
        let memo_config = parser.mask_representative(plain);
        let naming = parser.name_status(config);
        let has_no_candidates =
            self.key_candidates.get(&(memo_config, naming)).is_some_and(|tokens| tokens.is_empty());
        (has_no_candidates
            && !parser.compares_values(plain)
            && parser.bytes_towards_duplicates(config, true).is_empty())
        .then_some(memo_config)
    }

    /// The canonical configuration under which a configuration's mask is memoised.
    pub(super) fn memo_config(&mut self, config: ConfigId) -> ConfigId {
        if !self.switches.representatives.is_on() {
            return config;
        }
        if self.parser.has_names(config)
            && let Some(plain) = self.memo_config_without_keys(config)
        {
            return plain;
        }
        match self.parser.compares_values(config) {
            true => self.parser.canonical_in_frames(config),
            false => self.parser.mask_representative(config),
        }
    }

    /// Memoises a mask that takes `bytes` of memory. Drops all masks first if they would exceed
    /// `max_bytes`.
    pub(super) fn insert_mask(
        &mut self,
        config: ConfigId,
        mask: &Arc<TokenSet>,
        (bytes, max_bytes): (usize, usize),
    ) {
        if !self.switches.masks.is_on() {
            return;
        }
        if self.masks_bytes + bytes > max_bytes {
            self.clear_masks();
        }
        self.masks_bytes += bytes;
        if self.masks.len() <= config as usize {
            self.masks.resize(config as usize + 1, None);
        }
        self.masks[config as usize] = Some(mask.clone());
    }

    /// Drops all memoised masks.
    fn clear_masks(&mut self) {
        self.masks.clear();
        self.interned_masks.clear();
        self.prepared.clear();
        self.masks_bytes = 0;
    }

    /// Memory in use, in bytes, approximately. What the pool also holds is not counted.
    pub(crate) fn bytes(&self) -> usize {
        self.parser.bytes() + self.masks_bytes + self.resolved_bytes + self.rule_walks.bytes()
    }

    /// Reserves capacity for further text: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.parser.reserve_more();
        self.masks.reserve_more();
        self.prepared.reserve_more();
    }

    /// Clears the caches if they exceed their budget, unless the current sequence itself needs most
    /// of it. Checks only after some new configurations.
    pub(crate) fn clear_if_full(&mut self) {
        let configs = self.parser.store().configs();
        if configs < self.configs_at_check + CHECK_INTERVAL {
            return;
        }
        self.configs_at_check = configs;
        if self.parser.is_full() && self.replay_bytes.unwrap_or(0) * 2 < self.parser.bytes() {
            self.clear();
        }
    }

    /// Clears the caches, and begins a new epoch.
    pub(crate) fn clear(&mut self) {
        self.parser.clear();
        self.clear_masks();
        self.distinct_candidates.clear();
        self.key_candidates.clear();
        self.entries = Cache::new(ENTRIES_BYTES);
        self.resolved_suffixes.clear();
        self.resolved_bytes = 0;
        self.rule_walks.clear();
        self.wide_states.clear();
        self.keys = KeyBuilder::default();
        self.lengths = None;
        self.configs_at_check = 0;
        self.epoch += 1;
        self.replay_bytes = None;
    }

    /// Makes the state consistent after a panic while it was locked, by clearing it.
    pub(crate) fn reset_after_panic(&mut self) {
        self.keys = KeyBuilder::default();
        self.walk = TrieWalk::default();
        self.scratch_row = Vec::new();
        self.clear();
    }

    /// Records how much memory the first matcher needed that was replayed after a clear.
    pub(crate) fn record_replay_bytes(&mut self) {
        let bytes = self.parser.bytes();
        self.replay_bytes.get_or_insert(bytes);
    }
}
