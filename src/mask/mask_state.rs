//! The mutable state of one constraint: the parser, memoised masks, and caches of their parts.
//!
//! All matchers of a constraint share it, behind the lock of its
//! [`GrammarMasks`](super::grammar_masks::GrammarMasks). Caches are keyed by ids that mean
//! something only until the parser is cleared; [`MaskState::epoch`] counts how often that happened.

use std::sync::Arc;

use super::entry::MaskEntry;
use super::mask_memo::MaskMemo;
use super::pool_counters::{PoolCounters, count};
use super::pool_key::{CountedState, RuleIdentities};
use super::resolved_tokens::ResolvedTokens;
use super::rule_walks::RuleWalks;
use super::suffix_key::SuffixKey;
use super::suffixes::SuffixWalk;
use super::token_set::TokenSet;
use super::trie_walk::{TrieWalk, WalkCheckpoint, WalkError};
use crate::cache::Cache;
use crate::capacity::IdTable;
use crate::compile::{Compiled, StateId};
use crate::hash::HashMap;
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::matcher::{ConfigId, Exit, Item, KeyStatus, Parser, ParserLimit, ShortestPaths};
use crate::switches::Switches;
use crate::vocab::Vocabulary;

/// Memory for pooled entries that one constraint keeps, although the pool may have dropped them.
const ENTRIES_BYTES: usize = 32 << 20;
/// Memory for resolved suffixes of one constraint.
const MAX_RESOLVED_SUFFIX_BYTES: usize = 4 << 20;

/// Initial value of [`ConfigBudgets::suffixes`].
const SUFFIX_CONFIG_BUDGET: usize = 1024;
/// Initial value of [`ConfigBudgets::direct`].
const DIRECT_CONFIG_BUDGET: usize = 256;
/// A budget below this is not worth an attempt.
const MIN_CONFIG_BUDGET: usize = 32;

/// New configurations between two checks of the memory in use.
const CHECK_INTERVAL: usize = 16;

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

/// Most new configurations that walks with whole configurations may create. A grammar that needed
/// many will need many again, so a failure halves a budget: each costs less than the last.
#[derive(Debug)]
struct ConfigBudgets {
    /// Of resolving suffixes.
    suffixes: usize,
    /// Of a direct walk of the trie.
    direct: usize,
}

impl ConfigBudgets {
    /// The budgets of a grammar in which nothing has been walked.
    fn new(compiled: &Compiled, options: &MaskOptions) -> ConfigBudgets {
        let mutually_recursive =
            compiled.largest_component() >= options.mutual_rules && compiled.scopes.is_empty();
        let whole_suffixes = !mutually_recursive && options.direct_walk > 0;
        ConfigBudgets {
            suffixes: if whole_suffixes { SUFFIX_CONFIG_BUDGET } else { 0 },
            direct: if mutually_recursive { 0 } else { DIRECT_CONFIG_BUDGET },
        }
    }
}

/// Tokens to test one by one where values or keys are compared; memoised.
#[derive(Debug, Default)]
pub(super) struct ComparisonCandidates {
    /// Where values are compared, by the configuration that allows everything else.
    pub(super) values: HashMap<ConfigId, Arc<[TokenId]>>,
    /// Where keys are compared, by the configuration that knows no keys.
    pub(super) keys: HashMap<(ConfigId, KeyStatus), Arc<[TokenId]>>,
}

/// The mask entries that one grammar has used, held although the pool may have dropped them.
#[derive(Debug)]
pub(super) struct GrammarEntries {
    /// Automaton states that are too wide for a direct walk: their entries come from the pool.
    pub(super) wide_states: IdTable<StateId, bool>,
    /// Structural ids of this grammar's rules, for pool keys.
    pub(super) rules: RuleIdentities,
    pub(super) used: Cache<UsedEntry, Arc<MaskEntry>>,
}

/// Which mask entry of a grammar it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct UsedEntry {
    pub(super) state: CountedState,
    /// Tail-called items are included.
    pub(super) has_tail_calls: bool,
}

impl Default for GrammarEntries {
    fn default() -> Self {
        GrammarEntries {
            wide_states: IdTable::default(),
            rules: RuleIdentities::default(),
            used: Cache::new(ENTRIES_BYTES),
        }
    }
}

/// When the caches were last looked at, and what one sequence needs of them.
#[derive(Debug, Default)]
struct MemoryCheck {
    /// Memory that one sequence needed after the last clear. Tells a full cache from a sequence
    /// that needs all of it.
    replay_bytes: Option<usize>,
    /// Number of configurations at the last check of the memory in use.
    configs_at_check: usize,
}

impl MemoryCheck {
    /// Whether the parser exceeds its budget, unless the current sequence itself needs most of it.
    /// Checks only after some new configurations.
    fn is_clear_due(&mut self, parser: &Parser) -> bool {
        let configs = parser.store().configs();
        if configs < self.configs_at_check + CHECK_INTERVAL {
            return false;
        }
        self.configs_at_check = configs;
        parser.is_full() && self.replay_bytes.unwrap_or(0) * 2 < parser.bytes()
    }
}

/// Everything that grows while matchers run; behind the lock of the grammar's masks.
#[derive(Debug)]
pub(crate) struct MaskState {
    pub(crate) parser: Parser,
    /// How often the parser was cleared; ids of an earlier epoch are invalid.
    pub(crate) epoch: u64,
    memory_check: MemoryCheck,
    /// Memoised masks.
    pub(super) masks: MaskMemo,
    pub(super) candidates: ComparisonCandidates,
    pub(super) entries: GrammarEntries,
    resolved_suffixes: Cache<SuffixKey, Arc<ResolvedTokens>>,
    /// Memoised walks of single rules.
    pub(super) rule_walks: RuleWalks,
    budgets: ConfigBudgets,
    /// Results and buffers of trie walks.
    pub(super) walk: TrieWalk,
    /// Which optimisations are on.
    switches: Switches,
    /// Lengths of shortest completions; made on demand.
    pub(crate) shortest_paths: Option<Box<ShortestPaths>>,
}

impl AsMut<Parser> for MaskState {
    fn as_mut(&mut self) -> &mut Parser {
        &mut self.parser
    }
}

impl MaskState {
    /// The state of a constraint that has read nothing.
    pub(super) fn new(
        compiled: &Arc<Compiled>,
        vocab: &Arc<Vocabulary>,
        limits: &Limits,
        options: MaskOptions,
    ) -> MaskState {
        let mut parser = Parser::new(compiled.clone(), Some(vocab.clone()), limits);
        parser.switch_transition_cache(options.switches.transitions);
        MaskState {
            parser,
            epoch: 0,
            memory_check: MemoryCheck::default(),
            masks: MaskMemo::new(limits.mask_bytes),
            candidates: ComparisonCandidates::default(),
            entries: GrammarEntries::default(),
            resolved_suffixes: Cache::new(MAX_RESOLVED_SUFFIX_BYTES),
            rule_walks: RuleWalks::new(vocab),
            budgets: ConfigBudgets::new(compiled, &options),
            walk: TrieWalk::default(),
            switches: options.switches,
            shortest_paths: None,
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
            if reached == ConfigId::DEAD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a direct walk with a whole configuration is worth an attempt.
    pub(super) fn walks_whole_configs(&self) -> bool {
        self.budgets.direct >= MIN_CONFIG_BUDGET
    }

    /// Walks the trie with a configuration within a budget of nodes. Past the budget, it adds
    /// nothing and returns false.
    pub(super) fn walk_directly(
        &mut self,
        vocab: &Vocabulary,
        config: ConfigId,
        nodes: usize,
    ) -> Result<bool, ParserLimit> {
        let before = self.walk.checkpoint();
        let most = self.parser.store().configs() + self.budgets.direct;
        self.walk.max_configs = (nodes < usize::MAX).then_some(most);
        let walked = self.walk.run(&mut self.parser, vocab.trie(), config, nodes);
        self.walk.max_configs = None;
        if walked == Err(WalkError::Budget) && self.parser.store().configs() > most {
            self.budgets.direct /= 2;
        }
        self.finish_walk(walked, before)
    }

    /// Whether a walk stayed within its budget. Past the budget, drops what it has added to the
    /// results since the checkpoint.
    fn finish_walk(
        &mut self,
        walked: Result<(), WalkError>,
        before: WalkCheckpoint,
    ) -> Result<bool, ParserLimit> {
        match walked {
            Ok(()) => Ok(true),
            Err(WalkError::Budget) => {
                self.walk.rollback_to(before);
                Ok(false)
            }
            Err(WalkError::Parser(limit)) => Err(limit),
        }
    }

    /// As [`MaskState::walk_directly`] for one item; by rules, where whole configurations are too
    /// many.
    pub(super) fn walk_item_directly(
        &mut self,
        vocab: &Vocabulary,
        item: Item,
        nodes: usize,
    ) -> Result<bool, ParserLimit> {
        // Scopes stay open across rules, so the item is not independent of its frame.
        if self.walks_whole_configs() || !self.parser.compiled().scopes.is_empty() {
            let single_item = self.parser.intern_single(item);
            return self.walk_directly(vocab, single_item, nodes);
        }
        let before = self.walk.checkpoint();
        let (parser, trie, walk) = (&mut self.parser, vocab.shared_trie(), &mut self.walk);
        let walked = self.rule_walks.walk_item(parser, trie, item, nodes, walk);
        self.finish_walk(walked, before)
    }

    /// Adds the context-dependent tokens of an entry that `next`, which follows the exit,
    /// completes. Results are memoised.
    pub(super) fn resolve_suffixes(
        &mut self,
        vocab: &Vocabulary,
        counters: &PoolCounters,
        entry: &Arc<MaskEntry>,
        exit: Exit,
        next: ConfigId,
    ) -> Result<(), WalkError> {
        if let Some((base, excluded)) = entry.base() {
            let from = self.walk.checkpoint();
            self.resolve_suffixes(vocab, counters, base, exit, next)?;
            excluded.remove_from(&mut self.walk, from);
        }
        let key = SuffixKey::new(entry, exit, next);
        if let Some(tokens) = self.resolved_suffixes.get(&key) {
            count(&counters.resolved_hits);
            tokens.add_to(&mut self.walk);
            return Ok(());
        }
        count(&counters.resolved_misses);
        let from = self.walk.checkpoint();
        // Most suffixes create few new configurations. Where they would create many, they are
        // resolved rule by rule.
        let has_scopes = !self.parser.compiled().scopes.is_empty();
        self.walk.max_configs =
            (!has_scopes).then(|| self.parser.store().configs() + self.budgets.suffixes);
        let mut whole = SuffixWalk { out: &mut self.walk, rule_walks: None };
        let walked = entry.resolve(&mut self.parser, vocab, exit, next, &mut whole);
        self.walk.max_configs = None;
        let walked_whole = self.finish_walk(walked, from)?;
        if !walked_whole {
            self.budgets.suffixes /= 2;
            let rule_walks = Some(&mut self.rule_walks);
            let mut by_rules = SuffixWalk { out: &mut self.walk, rule_walks };
            entry.resolve(&mut self.parser, vocab, exit, next, &mut by_rules)?;
        }
        if !self.switches.resolved_suffixes.is_on() {
            return Ok(());
        }
        let tokens = match walked_whole {
            true => ResolvedTokens::single(&self.walk, from),
            false => ResolvedTokens::from_walk(&mut self.walk, from, vocab.mask_words()),
        };
        let bytes = tokens.bytes();
        self.resolved_suffixes.insert(key, tokens.into(), bytes);
        Ok(())
    }

    /// The configuration without keys that has the same mask, where it is known that keys make no
    /// difference.
    fn memo_config_without_keys(&mut self, config: ConfigId) -> Option<ConfigId> {
        let parser = &mut self.parser;
        let base = parser.store().base(config);
        let memo_config = parser.mask_representative(base);
        let key_status = parser.key_status(config);
        let has_no_candidates = self
            .candidates
            .keys
            .get(&(memo_config, key_status))
            .is_some_and(|tokens| tokens.is_empty());
        (has_no_candidates
            && !parser.compares_values(base)
            && parser.bytes_matching_earlier_keys(config, true).is_empty())
        .then_some(memo_config)
    }

    /// The canonical configuration under which a configuration's mask is memoised.
    pub(super) fn memo_config(&mut self, config: ConfigId) -> ConfigId {
        if !self.switches.representatives.is_on() {
            return config;
        }
        if self.parser.tracks_keys(config)
            && let Some(base) = self.memo_config_without_keys(config)
        {
            return base;
        }
        match self.parser.compares_values(config) {
            true => self.parser.canonical_keeping_frames(config),
            false => self.parser.mask_representative(config),
        }
    }

    /// As [`MaskMemo::insert`], unless that is switched off.
    pub(super) fn insert_mask(&mut self, config: ConfigId, mask: &Arc<TokenSet>, bytes: usize) {
        if self.switches.masks.is_on() {
            self.masks.insert(config, mask, bytes);
        }
    }

    /// Whether half of the memory for parser or masks is used.
    pub(crate) fn is_half_full(&self) -> bool {
        self.parser.is_half_full() || self.masks.is_half_full()
    }

    /// Memory in use, in bytes, approximately. What the pool also holds is not counted.
    pub(crate) fn bytes(&self) -> usize {
        self.parser.bytes()
            + self.masks.bytes()
            + self.resolved_suffixes.stats().bytes
            + self.rule_walks.bytes()
            + self.shortest_paths.as_ref().map_or(0, |paths| paths.bytes())
    }

    /// Reserves capacity for further text: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.parser.reserve_more();
        self.masks.reserve_more();
    }

    /// Clears the caches if they exceed their budget, unless the current sequence itself needs most
    /// of it. Checks only after some new configurations.
    pub(crate) fn clear_if_full(&mut self) {
        if self.memory_check.is_clear_due(&self.parser) {
            self.clear();
        }
    }

    /// Clears the caches, and begins a new epoch.
    pub(crate) fn clear(&mut self) {
        self.parser.clear();
        self.epoch += 1;
        self.memory_check = MemoryCheck::default();
        self.masks.clear();
        self.candidates = ComparisonCandidates::default();
        self.entries = GrammarEntries::default();
        self.resolved_suffixes = Cache::new(MAX_RESOLVED_SUFFIX_BYTES);
        self.rule_walks.clear();
        self.shortest_paths = None;
    }

    /// Makes the state consistent after a panic while it was locked, by clearing it.
    pub(crate) fn reset_after_panic(&mut self) {
        self.walk = TrieWalk::default();
        self.clear();
    }

    /// Records how much memory the first matcher needed that was replayed after a clear.
    pub(crate) fn record_replay_bytes(&mut self) {
        let bytes = self.parser.bytes();
        self.memory_check.replay_bytes.get_or_insert(bytes);
    }
}
