//! Walks of a token trie with the parser: which of its tokens a configuration accepts.
//!
//! A walk visits nodes in depth-first order and steps the parser once a node. It skips subtrees
//! whose first byte is rejected, and takes whole subtrees where every text is accepted.

use std::ops::Range;
use std::sync::Arc;

use super::token_set::{bit, build_row, clear_bit, set_bit};
use crate::fuel::{self, OutOfFuel};
use crate::ids::{TokenId, id};
use crate::matcher::{
    ConfigId, Exit, MIN_SKIP_NODES, Parser, ParserLimit, QueryAllowance, may_be_self_loop,
};
use crate::vocab::{NodeId, Trie};

id! {
    /// An interned set of trie nodes, of the walks of rules.
    pub(super) NodeSetId
}

/// Nodes for which fuel is spent at once.
const FUEL_BATCH: usize = 64;

/// Why a walk was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkError {
    /// It exceeded the nodes or configurations that the caller allows.
    Budget,
    /// The parser ran into a limit.
    Parser(ParserLimit),
}

impl From<OutOfFuel> for WalkError {
    fn from(out: OutOfFuel) -> Self {
        WalkError::Parser(out.into())
    }
}

impl From<ParserLimit> for WalkError {
    fn from(limit: ParserLimit) -> Self {
        WalkError::Parser(limit)
    }
}

impl From<WalkError> for ParserLimit {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::Parser(limit) => limit,
            WalkError::Budget => ParserLimit::Memory,
        }
    }
}

/// The number of tokens and rows that a walk had found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkCheckpoint {
    pub(super) tokens: usize,
    pub(super) rows: usize,
}

/// Counts the nodes that walks visit one by one, and spends fuel for them in batches.
#[derive(Debug, Default)]
struct NodeMeter {
    /// Nodes that were visited, in all.
    visited: usize,
    /// Those for which fuel was spent.
    charged: usize,
}

impl NodeMeter {
    /// Counts one node.
    #[inline]
    fn visit(&mut self) -> Result<(), OutOfFuel> {
        self.visited += 1;
        self.spend_fuel(FUEL_BATCH)
    }

    /// Spends fuel for visited nodes, once this many are due.
    #[inline]
    fn spend_fuel(&mut self, least: usize) -> Result<(), OutOfFuel> {
        let due = self.visited - self.charged;
        if due < least {
            return Ok(());
        }
        self.charged = self.visited;
        fuel::spend(due)
    }
}

/// Walks over the token trie: what they have found so far, their budgets and buffers.
#[derive(Debug, Default)]
pub(crate) struct TrieWalk {
    /// Accepted tokens (each once per walk).
    pub(crate) tokens: Vec<TokenId>,
    /// Further accepted tokens, as whole bitmap rows.
    pub(crate) rows: Vec<Arc<[u32]>>,
    /// Nodes at which the isolated item's rule ended, and by which exit: tokens below them are
    /// context-dependent.
    pub(crate) exits: Vec<(Exit, NodeId)>,
    /// Walk with the isolated item's rule only, and record calls instead of following them.
    pub(crate) rule_only: bool,
    /// Configurations with items of called rules, and the nodes at which they were left.
    pub(crate) called: Vec<(ConfigId, NodeId)>,
    /// Node sets, by id, and what follows the items that were walked up to there; see
    /// [`super::rule_walks`].
    pub(crate) pending_follow: Vec<(NodeSetId, ConfigId)>,
    meter: NodeMeter,
    /// When queries about any text are worth their cost.
    pub(super) allowance: QueryAllowance,
    /// Nodes that the walk may still visit or take.
    pub(super) nodes_left: usize,
    /// A scratch row; all zeros between uses.
    scratch_row: Vec<u32>,
    /// Open nodes of the depth-first walk: the end of each and its configuration.
    stack: Vec<(NodeId, ConfigId)>,
    /// Most configurations that the parser may hold before a walk gives up.
    pub(crate) max_configs: Option<usize>,
}

impl TrieWalk {
    /// Clears the results.
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.rows.clear();
        self.exits.clear();
        self.called.clear();
        self.pending_follow.clear();
        self.stack.clear();
    }

    /// Nodes that were visited one by one, in all.
    #[inline]
    pub(crate) fn visited(&self) -> usize {
        self.meter.visited
    }

    /// A row of `mask_words` words, all zeros. The caller leaves it so.
    pub(crate) fn zero_row(&mut self, mask_words: usize) -> &mut [u32] {
        self.scratch_row.resize(mask_words, 0);
        &mut self.scratch_row
    }

    /// What was found so far.
    pub(crate) fn checkpoint(&self) -> WalkCheckpoint {
        WalkCheckpoint { tokens: self.tokens.len(), rows: self.rows.len() }
    }

    /// Drops the tokens and rows that were found after a checkpoint.
    pub(crate) fn rollback_to(&mut self, checkpoint: WalkCheckpoint) {
        self.tokens.truncate(checkpoint.tokens);
        self.rows.truncate(checkpoint.rows);
    }

    /// Removes duplicates among the tokens from index `from` on. A row has `mask_words` words.
    pub(crate) fn dedup(&mut self, from: usize, mask_words: usize) {
        self.scratch_row.resize(mask_words, 0);
        let mut to = from;
        for at in from..self.tokens.len() {
            let token = self.tokens[at];
            if !bit(&self.scratch_row, token) {
                set_bit(&mut self.scratch_row, token);
                self.tokens[to] = token;
                to += 1;
            }
        }
        self.tokens.truncate(to);
        self.tokens[from..].iter().for_each(|&token| clear_bit(&mut self.scratch_row, token));
    }

    /// Moves the tokens from index `from` on into a new row of `mask_words` words.
    pub(crate) fn tokens_to_row(&mut self, from: usize, mask_words: usize) {
        self.rows.push(build_row(mask_words, |row| {
            self.tokens.drain(from..).for_each(|id| set_bit(row, id))
        }));
    }

    /// Whether the parser holds more configurations than the caller allows.
    fn exceeds_configs(&self, parser: &Parser) -> bool {
        self.max_configs.is_some_and(|most| parser.store().configs() > most)
    }

    /// Begins a walk that gives up after `budget` nodes.
    pub(crate) fn begin(&mut self, parser: &Parser, budget: usize) {
        self.nodes_left = budget;
        self.stack.clear();
        self.allowance = QueryAllowance::new(parser, self.visited());
    }

    /// Adds every token of a trie that `config` accepts. Gives up after `budget` nodes. Cost: one
    /// transition a visited node; subtrees whose first byte fails are skipped.
    pub(crate) fn run(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        config: ConfigId,
        budget: usize,
    ) -> Result<(), WalkError> {
        self.begin(parser, budget);
        // Only the root has a table of its children.
        for byte in parser.allowed(config).iter() {
            if let Some(child) = trie.root_child(byte) {
                let next = parser.step(config, byte)?;
                self.enter(parser, trie, child, config, next)?;
            }
        }
        Ok(self.meter.spend_fuel(0)?)
    }

    /// Adds every token at or below these nodes that `config` accepts, where `config` is the
    /// configuration before the nodes' bytes.
    pub(crate) fn run_from(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        nodes: &[NodeId],
        config: ConfigId,
    ) -> Result<(), WalkError> {
        self.begin(parser, usize::MAX);
        let allowed = parser.allowed(config);
        for &node in nodes {
            let byte = trie.node(node).byte;
            if allowed.contains(byte) {
                let next = parser.step(config, byte)?;
                self.enter(parser, trie, node, config, next)?;
            }
        }
        Ok(self.meter.spend_fuel(0)?)
    }

    /// Visits one node that was reached with `config` from `before`, and its subtree.
    pub(crate) fn enter(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        node: NodeId,
        before: ConfigId,
        config: ConfigId,
    ) -> Result<(), WalkError> {
        self.spend_node(parser)?;
        let may_loop = may_be_self_loop(before, config, trie.node(node).byte);
        if self.visit(parser, trie, node, config, may_loop)? {
            self.below(parser, trie, node, config)?;
        }
        Ok(())
    }

    /// Spends what the visit of a node costs.
    #[inline]
    fn spend_node(&mut self, parser: &Parser) -> Result<(), WalkError> {
        self.meter.visit()?;
        if self.nodes_left == 0 || self.exceeds_configs(parser) {
            return Err(WalkError::Budget);
        }
        self.nodes_left -= 1;
        Ok(())
    }

    /// Visits a node that was reached with `config`; see [`TrieWalk::take_subtree`] for `may_loop`.
    /// Returns whether the walk goes on below it.
    #[inline]
    fn visit(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        node: NodeId,
        config: ConfigId,
        may_loop: bool,
    ) -> Result<bool, WalkError> {
        Ok(config != ConfigId::DEAD
            && !self.take_subtree(parser, trie, node, config, may_loop)?
            && self.add_node(parser, trie, node, config))
    }

    /// Adds the tokens, exits and calls at a node that was reached with `config`. Returns whether
    /// the walk goes on below it.
    #[inline]
    fn add_node(&mut self, parser: &Parser, trie: &Trie, node: NodeId, config: ConfigId) -> bool {
        self.add_tokens(trie, trie.range_at(node));
        if trie.is_leaf(node) {
            return false;
        }
        if parser.store().flags(config).isolated_rule_ended() {
            self.exits.extend(parser.exits(config).map(|exit| (exit, node)));
            if !parser.reads(config) {
                return false;
            }
        }
        if self.rule_only && !parser.is_isolated(config) {
            self.called.push((config, node));
            return false;
        }
        true
    }

    /// Takes a whole subtree if every byte in it leads the configuration back to itself, or if any
    /// such text is accepted. `may_loop` says whether the former is possible. Free text reads most
    /// tokens this way.
    fn take_subtree(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        node: NodeId,
        config: ConfigId,
        may_loop: bool,
    ) -> Result<bool, WalkError> {
        let nodes = trie.subtree_len(node);
        if nodes < MIN_SKIP_NODES {
            return Ok(false);
        }
        let kinds = trie.byte_kinds_below(node);
        let (length, visited) = (trie.longest_below(node), self.visited());
        let is_taken = may_loop && parser.loops_on(config, kinds)?
            || !self.rule_only
                && parser.reads_all_texts(config, kinds, length, &self.allowance, visited)?;
        if !is_taken {
            return Ok(false);
        }
        // A mask of this many tokens is better built from a pooled entry.
        self.nodes_left = self.nodes_left.checked_sub(nodes as usize).ok_or(WalkError::Budget)?;
        self.add_tokens(trie, trie.range_at(node).start..trie.range_below(node).end);
        Ok(true)
    }

    /// Adds a range of tokens.
    #[inline]
    fn add_tokens(&mut self, trie: &Trie, tokens: Range<usize>) {
        self.tokens.extend_from_slice(trie.tokens(tokens));
    }

    /// Visits the nodes strictly below one that was reached with `config`.
    fn below(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        node: NodeId,
        config: ConfigId,
    ) -> Result<(), WalkError> {
        let base = self.stack.len();
        let mut at = node.next();
        let mut top = (trie.node(node).end, config);
        let end = top.0;
        while at < end {
            self.spend_node(parser)?;
            while at >= top.0 {
                top = self.stack.pop().unwrap_or((end, config));
            }
            let node = *trie.node(at);
            let next = parser.step(top.1, node.byte)?;
            let may_loop = may_be_self_loop(top.1, next, node.byte);
            if self.visit(parser, trie, at, next, may_loop)? {
                self.stack.push(top);
                top = (node.end, next);
                at = at.next();
            } else {
                at = node.end;
            }
        }
        self.stack.truncate(base);
        Ok(())
    }
}
