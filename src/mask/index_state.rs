//! What grows while the matchers of one constraint run: the parser, and what has been found with it.

use std::sync::Arc;

use super::byte_class_trie::Folds;
use super::entry::Entry;
use super::index::{Index, Ways};
use super::interned_masks::Same;
use super::item_walks::Joint;
use super::pool_key::GrammarKeys;
use super::pool_scope::{Counters, count};
use super::rule_walks::{Sections, Words};
use super::token_set::TokenSet;
use super::trie_walk::{Stopped, Walk};
use crate::cache::Cache;
use crate::capacity::ReserveMore;
use crate::compile::{CompileError, Compiled};
use crate::fuel::OutOfFuel;
use crate::hash::HashMap;
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::matcher::{ConfigId, DEAD, Exit, Item, Lengths, Naming, Parser, ParserLimit};
use crate::switches::Switches;
use crate::vocab::Vocabulary;

/// Memory for resolved tokens of one constraint.
const RESOLVED_BYTES: usize = 4 << 20;

/// Memory of pooled entries that one constraint keeps at hand, which the pool may have dropped.
const ENTRIES_BYTES: usize = 32 << 20;

/// See [`IndexState::new_configs`].
const NEW_CONFIGS: usize = 1024;
const NEW_NARROW: usize = 256;
/// So few that it is not worth a try.
pub(super) const FEW_CONFIGS: usize = 32;

type Resolved = HashMap<(usize, Exit, ConfigId), (Arc<Entry>, Words)>;

/// So many configurations are made before the memory that is held is looked at again.
const LOOK_EVERY: usize = 16;

/// Where bytes lead, and how many are fine.
pub(crate) type AdvanceOver =
    fn(&mut Parser, ConfigId, &[u8]) -> Result<(ConfigId, usize), ParserLimit>;

/// What grows while matchers run; behind the index's lock.
#[derive(Debug)]
pub(crate) struct IndexState {
    pub(crate) parser: Parser,
    /// How often the parser's configurations were dropped; ids of an earlier epoch mean nothing.
    pub(crate) epoch: u64,
    masks: Vec<Option<Arc<TokenSet>>>,
    pub(super) masks_held: usize,
    pub(super) same: Same,
    /// Masks made ahead that nobody has asked for yet, a bit each.
    ahead: Vec<u64>,
    /// Tokens to be looked at one by one where values are compared, by the configuration in which nothing but others can follow.
    pub(super) candidates: HashMap<ConfigId, Arc<[TokenId]>>,
    /// Tokens to be looked at one by one where names are told apart, by the configuration that knows of none.
    pub(super) naming: HashMap<(ConfigId, Naming), Arc<[TokenId]>>,
    /// States whose entries come from the pool.
    pub(super) wide: Vec<bool>,
    pub(super) keys: GrammarKeys,
    pub(super) folds: Folds,
    /// Entries this grammar has used, by state and counter, and whether with what the state calls last.
    pub(super) entries: Cache<(u32, u32, bool), Arc<Entry>>,
    /// What [`Entry::resolve`] found, by the entry's address (it is held here, so the address stays its own), exit and what follows.
    resolved: Resolved,
    resolved_bytes: usize,
    pub(super) sections: Sections,
    joint: Joint,
    /// Room for a row; all of it is 0 between uses.
    pub(super) row: Vec<u32>,
    /// Most new configurations with which undecided tokens are read as a whole.
    new_configs: usize,
    /// The same for a walk of the whole vocabulary with few nodes.
    pub(super) new_narrow: usize,
    pub(super) walk: Walk,
    /// Rules call each other in long chains.
    pub(super) chained: bool,
    /// By rule: walks with whole configurations in place of its entries.
    pub(super) whole: HashMap<u32, u32>,
    pub(super) switches: Switches,
    /// Lengths of shortest completions, once asked for.
    pub(crate) lengths: Option<Box<Lengths>>,
    /// Memory one sequence needed after the last clear, to tell a full cache from a sequence that needs all of it.
    floor: Option<usize>,
    /// Configurations there were when the memory that is held was looked at.
    relieved: usize,
}

impl IndexState {
    pub(super) fn new(
        compiled: &Arc<Compiled>,
        vocab: &Arc<Vocabulary>,
        limits: &Limits,
        ways: Ways,
    ) -> IndexState {
        let mut parser = Parser::new(compiled.clone(), Some(vocab.clone()), limits);
        parser.keep_transitions(ways.switches.transitions);
        let chained =
            compiled.largest_component() >= ways.mutual_rules && compiled.scopes.is_empty();
        IndexState {
            floor: None,
            relieved: 0,
            parser,
            switches: ways.switches,
            epoch: 0,
            masks: Vec::new(),
            masks_held: 0,
            same: Same::default(),
            ahead: Vec::new(),
            candidates: HashMap::default(),
            naming: HashMap::default(),
            wide: Vec::new(),
            keys: GrammarKeys::default(),
            folds: Folds::default(),
            entries: Cache::new(ENTRIES_BYTES),
            resolved: Resolved::default(),
            resolved_bytes: 0,
            sections: Sections::new(vocab),
            joint: Joint::default(),
            row: Vec::new(),
            new_narrow: if chained { 0 } else { NEW_NARROW },
            new_configs: if chained || ways.direct_walk == 0 { 0 } else { NEW_CONFIGS },
            walk: Walk::default(),
            chained,
            whole: HashMap::default(),
            lengths: None,
        }
    }

    /// Whether a token's bytes can follow.
    pub(super) fn reads(
        &mut self,
        vocab: &Vocabulary,
        config: ConfigId,
        token: TokenId,
    ) -> Result<bool, ParserLimit> {
        let mut at = config;
        for &byte in vocab.bytes(token).unwrap_or_default() {
            at = self.parser.step(at, byte)?;
            if at == DEAD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Walks the vocabulary with a configuration if few nodes suffice; otherwise adds nothing and says so.
    pub(super) fn try_narrow(
        &mut self,
        vocab: &Vocabulary,
        config: ConfigId,
        nodes: usize,
    ) -> Result<bool, ParserLimit> {
        let before = self.walk.found();
        let most = self.parser.store().configs() + self.new_narrow;
        self.walk.most_configs = (nodes < usize::MAX).then_some(most);
        self.walk.white_row = vocab.white_row(u32::MAX);
        let walked = self.walk.run(&mut self.parser, vocab.trie(), 0, config, nodes);
        (self.walk.most_configs, self.walk.white_row) = (None, None);
        match walked {
            Ok(()) => Ok(true),
            Err(Stopped::Budget) => {
                if self.parser.store().configs() > most {
                    self.new_narrow /= 2;
                }
                self.walk.forget(before);
                Ok(false)
            }
            Err(Stopped::Parser(limit)) => Err(limit),
        }
    }

    /// As [`IndexState::try_narrow`] for one item, rule by rule.
    pub(super) fn narrow_alone(
        &mut self,
        vocab: &Vocabulary,
        item: Item,
        nodes: usize,
    ) -> Result<bool, ParserLimit> {
        if !self.parser.compiled().scopes.is_empty() {
            // Scopes that begin on the way are open across rules.
            let alone = self.parser.single(item);
            return self.try_narrow(vocab, alone, nodes);
        }
        let before = self.walk.found();
        let read = match self.new_narrow < FEW_CONFIGS {
            true => {
                self.sections.narrow(&mut self.parser, vocab.trie(), (item, nodes), &mut self.walk)
            }
            false => self.joint.narrow(
                &mut self.parser,
                vocab.trie(),
                (item, nodes),
                &mut self.walk.words,
            ),
        };
        match read {
            Ok(()) => Ok(true),
            Err(Stopped::Budget) => {
                self.walk.forget(before);
                Ok(false)
            }
            Err(Stopped::Parser(limit)) => Err(limit),
        }
    }

    pub(super) fn held(&self, config: ConfigId) -> Option<Arc<TokenSet>> {
        self.masks.get(config as usize).cloned().flatten()
    }

    /// Adds the tokens undecided behind an exit that `next` can finish. States of one text end alike: what was found is kept.
    pub(super) fn resolve(
        &mut self,
        (vocab, counters): (&Vocabulary, &Counters),
        entry: &Arc<Entry>,
        (exit, next): (Exit, ConfigId),
    ) -> Result<(), Stopped> {
        if let Some((base, without)) = entry.base() {
            let from = self.walk.found();
            self.resolve((vocab, counters), base, (exit, next))?;
            without.take_from(&mut self.walk, from);
        }
        let key = (Arc::as_ptr(entry) as usize, exit, next);
        if let Some((_, words)) = self.resolved.get(&key) {
            count(&counters.resolved_hits);
            words.add_to(&mut self.walk);
            return Ok(());
        }
        count(&counters.resolved_misses);
        let from = self.walk.found();
        // Most remainders are read with few configurations that are new; where many would be, rule by rule.
        let scoped = !self.parser.compiled().scopes.is_empty();
        self.walk.most_configs =
            (!scoped).then(|| self.parser.store().configs() + self.new_configs);
        let walked = entry.resolve(&mut self.parser, vocab, (exit, next), &mut self.walk);
        self.walk.most_configs = None;
        let walked_whole = walked.is_ok();
        match walked {
            Err(Stopped::Budget) => {
                self.walk.forget(from);
                // A grammar that once needed many needs many again: each failure costs less than the one before.
                self.new_configs /= 2;
                let both = (&mut self.walk, &mut self.sections);
                Entry::resolve_in_sections(entry, &mut self.parser, vocab, (exit, next), both)?;
            }
            other => other?,
        }
        if !self.switches.lookahead.is_on() {
            return Ok(());
        }
        let words = match walked_whole {
            true => Words::single(&self.walk, from),
            false => Words::of(&mut self.walk, from, vocab.mask_words()),
        };
        self.resolved_bytes += words.bytes();
        if self.resolved_bytes > RESOLVED_BYTES {
            self.resolved.clear();
            self.resolved_bytes = words.bytes();
        }
        self.resolved.insert(key, (entry.clone(), words));
        Ok(())
    }

    /// Notes that a mask was made ahead.
    pub(super) fn note_ahead(&mut self, config: ConfigId) {
        let word = config as usize / 64;
        if self.ahead.len() <= word {
            self.ahead.resize(word + 1, 0);
        }
        self.ahead[word] |= 1 << (config % 64);
    }

    /// Whether a mask was made ahead and nobody has asked for it before.
    pub(super) fn is_first_use(&mut self, config: ConfigId) -> bool {
        let Some(word) = self.ahead.get_mut(config as usize / 64) else { return false };
        let bit = 1 << (config % 64);
        let first = *word & bit != 0;
        *word &= !bit;
        first
    }

    /// The same for a configuration that knows of names, where these are known to make no difference.
    fn place_unnamed(&mut self, config: ConfigId) -> Option<ConfigId> {
        let parser = &mut self.parser;
        let plain = parser.store().plain(config);
        let place = parser.for_masks(plain);
        let naming = parser.naming(config);
        let none = self.naming.get(&(place, naming)).is_some_and(|tokens| tokens.is_empty());
        (none && !parser.compares(plain) && parser.towards_names(config, true).is_empty())
            .then_some(place)
    }

    /// Where the mask of a configuration is memoised.
    pub(super) fn place(&mut self, config: ConfigId) -> ConfigId {
        if !self.switches.stand_ins.is_on() {
            return config;
        }
        if self.parser.is_named(config)
            && let Some(plain) = self.place_unnamed(config)
        {
            return plain;
        }
        match self.parser.compares(config) {
            true => self.parser.normal_in_frames(config),
            false => self.parser.for_masks(config),
        }
    }

    pub(super) fn hold(
        &mut self,
        config: ConfigId,
        mask: &Arc<TokenSet>,
        (bytes, max_bytes): (usize, usize),
    ) {
        if !self.switches.masks.is_on() {
            return;
        }
        if self.masks_held + bytes > max_bytes {
            self.forget_masks();
        }
        self.masks_held += bytes;
        if self.masks.len() <= config as usize {
            self.masks.resize(config as usize + 1, None);
        }
        self.masks[config as usize] = Some(mask.clone());
    }

    fn forget_masks(&mut self) {
        self.masks.clear();
        self.same.clear();
        self.ahead.clear();
        self.masks_held = 0;
    }

    /// Memory held, in bytes, roughly: what the pool has as well is its.
    pub(crate) fn bytes(&self) -> usize {
        self.parser.bytes()
            + self.masks_held
            + self.resolved_bytes
            + self.sections.bytes()
            + self.joint.bytes()
            + self.folds.bytes()
    }

    /// Makes room for what texts still add: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.parser.reserve_more();
        self.masks.reserve_more();
        self.ahead.reserve_more();
    }

    /// Whether half of the memory for parser or masks is used.
    pub(crate) fn is_half_full(&self, index: &Index) -> bool {
        self.parser.is_half_full() || self.masks_held > index.mask_bytes / 2
    }

    /// Empties the caches if they are over their budget, unless what is needed right now is itself most of it. Looks when there are some more
    /// configurations than there were.
    pub(crate) fn relieve(&mut self) {
        let configs = self.parser.store().configs();
        if configs < self.relieved + LOOK_EVERY {
            return;
        }
        self.relieved = configs;
        if self.parser.is_full() && self.floor.unwrap_or(0) * 2 < self.parser.bytes() {
            self.clear();
        }
    }

    /// Empties the caches: a new epoch.
    pub(crate) fn clear(&mut self) {
        self.parser.clear();
        self.forget_masks();
        self.candidates.clear();
        self.naming.clear();
        self.entries = Cache::new(ENTRIES_BYTES);
        self.resolved.clear();
        self.resolved_bytes = 0;
        self.sections.clear();
        self.joint.clear();
        self.wide.clear();
        self.whole.clear();
        self.keys = GrammarKeys::default();
        self.folds = Folds::default();
        self.lengths = None;
        self.relieved = 0;
        self.epoch += 1;
        self.floor = None;
    }

    /// Makes the state good again after a panic while it was locked: nothing that was learnt is kept.
    pub(crate) fn recover(&mut self) {
        self.keys = GrammarKeys::default();
        self.walk = Walk::default();
        self.row = Vec::new();
        self.clear();
    }

    /// Why a text cannot begin: a limit that the first mask has reached.
    pub(crate) fn start_error(&self, limit: ParserLimit, index: &Index) -> CompileError {
        let items = self.parser.store().items(self.parser.start());
        let rule = items
            .first()
            .map_or(index.compiled.start, |item| self.parser.program().rule(item.state));
        let grammar = index.compiled.grammar();
        match limit {
            ParserLimit::Fuel => {
                CompileError::fuel(grammar, rule, OutOfFuel::Spent { limit: index.mask_fuel() })
            }
            ParserLimit::Cancelled => CompileError::fuel(grammar, rule, OutOfFuel::Cancelled),
            other => CompileError::Start { what: other.what() },
        }
    }

    /// Notes how much memory the first matcher replayed after a clear needs.
    pub(crate) fn settle(&mut self) {
        let bytes = self.parser.bytes();
        self.floor.get_or_insert(bytes);
    }

    /// Where a token leads: over its bytes, as a special token of the grammar, or both.
    pub(crate) fn step_token(
        &mut self,
        index: &Index,
        config: ConfigId,
        token: TokenId,
    ) -> Result<(ConfigId, usize), ParserLimit> {
        self.step_token_by(index, (config, token), Parser::advance_over)
    }

    /// The same; `over` says where bytes lead.
    pub(crate) fn step_token_by(
        &mut self,
        index: &Index,
        (config, token): (ConfigId, TokenId),
        over: AdvanceOver,
    ) -> Result<(ConfigId, usize), ParserLimit> {
        let mut at = DEAD;
        let mut good = 0;
        if let Some(bytes) = index.vocab.bytes(token)
            && !index.vocab.is_stop(token)
        {
            (at, good) = over(&mut self.parser, config, bytes)?;
        }
        for (special, tokens) in index.specials.iter().enumerate() {
            if tokens.contains(token) {
                let next = self.parser.step_special(config, special as u32)?;
                at = self.parser.union(at, next);
            }
        }
        Ok((self.parser.token_ended(at)?, good))
    }
}
