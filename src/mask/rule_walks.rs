//! Memoised walks of single rules, and the resolution of suffixes rule by rule.
//!
//! In grammars with long chains of rules, such as the expressions of a programming language,
//! resolving suffixes with whole configurations creates hundreds of configurations at every depth
//! of nesting. Here, each item after an exit is walked in isolation instead. A [`RuleWalk`] says
//! which suffixes the item's rule accepts itself, and below which trie nodes the rule has ended. It
//! depends on no frame, so all depths share it. Only what leaves the rule is looked up with what
//! the item's frame returns to.
//!
//! A rule walk is computed in the same way: it walks with its own rule only, and uses the rule
//! walks of called rules.

use std::sync::Arc;

use super::pool_key::CountedState;
use super::resolved_tokens::ResolvedTokens;
use super::token_set::{bit, set_bit};
use super::trie_walk::{NodeSetId, TrieWalk, WalkCheckpoint, WalkError};
use crate::capacity::IdTable;
use crate::compile::{BlockId, StateId};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{ByAddress, HashMap, HashSet, IndexMap};
use crate::matcher::{ConfigId, Exit, Item, Parser};
use crate::vocab::{NodeId, Trie, Vocabulary};

/// Memory for rule walks, of one constraint.
const MAX_BYTES: usize = 32 << 20;
/// Nesting of rule walks; deeper, a walk follows calls together with their callers.
const MAX_DEPTH: usize = 48;
/// Fuel of a rule walk, beside its trie walk.
const RULE_WALK_FUEL: usize = 16;
/// Up to so many accepted tokens, subtrees are not tested for being accepted altogether.
const MIN_TOKENS_FOR_ROW: usize = 32;
/// Tokens beyond the length of a row divided by this become a row, which callers share.
const ROW_FRACTION: usize = 4;

/// The result of walking some trie nodes with one isolated item.
#[derive(Debug)]
struct RuleWalk {
    /// Accepted tokens.
    tokens: ResolvedTokens,
    /// By exit of its rule, the nodes below which what follows decides.
    exits: Box<[(Exit, NodeSetId)]>,
}

/// A set of trie nodes, indexed by the byte that leads to each.
#[derive(Debug, Default)]
struct NodeSet {
    /// The bytes that lead to a node.
    first_bytes: ByteSet,
    /// Sorted by byte.
    nodes: Box<[(u8, NodeId)]>,
}

impl NodeSet {
    fn new(trie: &Trie, nodes: &[NodeId]) -> NodeSet {
        let mut first_bytes = ByteSet::EMPTY;
        let mut nodes: Box<[(u8, NodeId)]> =
            nodes.iter().map(|&node| (trie.node(node).byte, node)).collect();
        nodes.sort_unstable();
        nodes.iter().for_each(|&(byte, _)| first_bytes.insert(byte));
        NodeSet { first_bytes, nodes }
    }
}

/// The rule walks of one trie.
#[derive(Debug, Default)]
struct TrieRuleWalks {
    /// Interned node sets.
    node_sets: IndexMap<Box<[NodeId]>, NodeSet>,
    /// Rule walks by node set and state; its counter is canonical.
    rule_walks: HashMap<(NodeSetId, CountedState), Arc<RuleWalk>>,
    /// The node set of the whole trie.
    all: Option<NodeSetId>,
}

/// Rule walks of all tries.
#[derive(Debug)]
pub(crate) struct RuleWalks {
    tries: HashMap<ByAddress<Trie>, TrieRuleWalks>,
    /// Shared by all tries.
    context: WalkContext,
}

/// What does not depend on the trie, and buffers.
#[derive(Debug, Default)]
struct WalkContext {
    /// Memory in use, in bytes, approximately.
    bytes: usize,
    /// Length of a row.
    mask_words: usize,
    /// Bytes that each state reads; made on demand.
    reads: IdTable<StateId, Option<ByteSet>>,
    /// Nesting of rule walks.
    depth: usize,
    /// Buffers for [`Visited`].
    visited: Vec<Visited>,
    /// Buffers for trie walks.
    walks: Vec<TrieWalk>,
}

/// What has been visited while one question is answered, and what is to be visited.
#[derive(Debug, Default)]
struct Visited {
    /// Node sets and configurations that were followed.
    configs: HashSet<(NodeSetId, ConfigId)>,
    /// Node sets and items that were walked.
    items: HashSet<(NodeSetId, Item)>,
    /// Rule walks whose tokens were added: once is enough, whatever follows.
    rule_walks: HashSet<ByAddress<RuleWalk>>,
    /// Node sets and configurations of the next batch.
    queue: Vec<(NodeSetId, ConfigId)>,
    /// The current batch.
    batch: Vec<(NodeSetId, ConfigId)>,
}

impl Visited {
    /// Forgets everything, and keeps the buffers.
    fn clear(&mut self) {
        self.configs.clear();
        self.items.clear();
        self.rule_walks.clear();
        self.queue.clear();
        self.batch.clear();
    }
}

impl WalkContext {
    /// Whether the memory for walks is used up.
    fn is_full(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Bytes that a state reads.
    fn reads(&mut self, parser: &mut Parser, state: StateId) -> ByteSet {
        *self.reads.entry(state).get_or_insert_with(|| parser.reads_of(state))
    }
}

impl RuleWalks {
    /// Memory in use, in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.context.bytes
    }

    /// An empty memo.
    pub(crate) fn new(vocab: &Vocabulary) -> RuleWalks {
        let context = WalkContext { mask_words: vocab.mask_words(), ..WalkContext::default() };
        RuleWalks { tries: HashMap::default(), context }
    }

    /// Clears everything, as ids of configurations become invalid.
    pub(crate) fn clear(&mut self) {
        let mask_words = self.context.mask_words;
        self.tries = HashMap::default();
        self.context = WalkContext { mask_words, ..WalkContext::default() };
    }

    /// A walker of a trie.
    fn walker<'w>(&'w mut self, parser: &'w mut Parser, trie: &'w Arc<Trie>) -> RuleWalker<'w> {
        let memo = self.tries.entry(ByAddress(trie.clone())).or_default();
        RuleWalker { parser, trie, memo, context: &mut self.context }
    }

    /// Adds to `out` the tokens of `trie` at and below `nodes` that `next` accepts, some perhaps
    /// twice. `next` is the configuration before the nodes' bytes.
    pub(crate) fn resolve(
        &mut self,
        parser: &mut Parser,
        trie: &Arc<Trie>,
        nodes: &[NodeId],
        next: ConfigId,
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        if self.context.is_full() && out.pending_follow.is_empty() {
            self.clear();
        }
        let mut walker = self.walker(parser, trie);
        let queue = walker.node_set(nodes.iter().copied(), None);
        let queue = queue.map(|node_set| (node_set, next)).into_iter().collect();
        walker.follow(queue, out, &mut Vec::new())
    }

    /// Adds to `out` the tokens of the vocabulary's trie that one item's rule accepts, some perhaps
    /// twice. What follows the rule is left to [`RuleWalks::finish`], for all items of a mask at
    /// once. Fails where the rule visits more than `budget` nodes.
    pub(crate) fn walk_item(
        &mut self,
        parser: &mut Parser,
        trie: &Arc<Trie>,
        item: Item,
        budget: usize,
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        let mut walker = self.walker(parser, trie);
        let all = walker.all();
        let rule_walk = walker.rule_walk(all, item, budget)?;
        rule_walk.tokens.add_to(out);
        for &(exit, below) in &rule_walk.exits {
            let next = parser.follow(&item, exit)?;
            out.pending_follow.push((below, next));
        }
        Ok(())
    }

    /// Adds to `out` what follows the items that were given to [`RuleWalks::walk_item`] before.
    pub(crate) fn finish(
        &mut self,
        parser: &mut Parser,
        trie: &Arc<Trie>,
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        let queue = std::mem::take(&mut out.pending_follow);
        if !queue.is_empty() {
            self.walker(parser, trie).follow(queue, out, &mut Vec::new())?;
        }
        if self.context.is_full() {
            self.clear();
        }
        Ok(())
    }
}

/// Walks one trie rule by rule, and memoises the walks.
struct RuleWalker<'w> {
    parser: &'w mut Parser,
    trie: &'w Trie,
    memo: &'w mut TrieRuleWalks,
    context: &'w mut WalkContext,
}

impl RuleWalker<'_> {
    /// Walks from node sets and configurations until nothing is context-dependent, or only by what
    /// follows an isolated item: those go to `exits`.
    fn follow(
        &mut self,
        mut queue: Vec<(NodeSetId, ConfigId)>,
        out: &mut TrieWalk,
        exits: &mut Vec<(Exit, NodeSetId)>,
    ) -> Result<(), WalkError> {
        let mut visited = self.context.visited.pop().unwrap_or_default();
        visited.queue.append(&mut queue);
        let result = self.follow_queue(&mut visited, out, exits);
        visited.clear();
        self.context.visited.push(visited);
        result
    }

    /// Follows the queue until it is empty.
    fn follow_queue(
        &mut self,
        visited: &mut Visited,
        out: &mut TrieWalk,
        exits: &mut Vec<(Exit, NodeSetId)>,
    ) -> Result<(), WalkError> {
        while !visited.queue.is_empty() {
            let mut batch = std::mem::take(&mut visited.batch);
            batch.clear();
            std::mem::swap(&mut visited.queue, &mut batch);
            batch.sort_unstable_by_key(|&(node_set, next)| (next, node_set));
            batch.dedup();
            for group in batch.chunk_by(|a, b| a.1 == b.1) {
                if self.parser.is_near_bound(group[0].1) {
                    self.walk_whole(group, out)?;
                } else {
                    self.follow_one(group, visited, out, exits)?;
                }
            }
            visited.batch = batch;
        }
        Ok(())
    }

    /// Walks with one whole configuration, at all its node sets: isolated items know no budget.
    fn walk_whole(
        &mut self,
        group: &[(NodeSetId, ConfigId)],
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        out.nodes_left = usize::MAX;
        for &(node_set, next) in group {
            for &(byte, node) in &self.memo.node_sets[node_set.index()].nodes {
                let to = self.parser.step(next, byte)?;
                out.enter(self.parser, self.trie, node, next, to)?;
            }
        }
        Ok(())
    }

    /// Walks from one configuration item by item, at all its node sets.
    fn follow_one(
        &mut self,
        group: &[(NodeSetId, ConfigId)],
        visited: &mut Visited,
        out: &mut TrieWalk,
        exits: &mut Vec<(Exit, NodeSetId)>,
    ) -> Result<(), WalkError> {
        let next = group[0].1;
        let mut first = ByteSet::EMPTY;
        for &(node_set, _) in group {
            first = first.union(&self.memo.node_sets[node_set.index()].first_bytes);
        }
        for i in 0..self.parser.store().items(next).len() {
            fuel::spend(1 + group.len())?;
            let item = self.parser.store().items(next)[i];
            let reads = self.context.reads(self.parser, item.state);
            if !reads.meets(&first) {
                continue;
            }
            for &(node_set, _) in group {
                if !reads.meets(&self.memo.node_sets[node_set.index()].first_bytes)
                    || !visited.items.insert((node_set, item))
                {
                    continue;
                }
                let rule_walk = self.rule_walk(node_set, item, usize::MAX)?;
                if visited.rule_walks.insert(ByAddress(rule_walk.clone())) {
                    rule_walk.tokens.add_to(out);
                }
                self.queue_exits(&item, &rule_walk, visited, exits)?;
            }
        }
        Ok(())
    }

    /// Queues what follows an item at the exits of its rule. Exits of an isolated item go to
    /// `exits`.
    fn queue_exits(
        &mut self,
        item: &Item,
        rule_walk: &RuleWalk,
        visited: &mut Visited,
        exits: &mut Vec<(Exit, NodeSetId)>,
    ) -> Result<(), WalkError> {
        let parser = &mut *self.parser;
        for &(exit, below) in &rule_walk.exits {
            // A dispatch that is tail-called replaces its caller; the caller has none of its
            // triggers.
            if item.leaves_by(exit) {
                exits.push((exit, below));
                continue;
            }
            let following = parser.follow(item, exit)?;
            if visited.configs.insert((below, following)) {
                if parser.store().flags(following).isolated_rule_ended() {
                    exits.extend(parser.exits(following).map(|exit| (exit, below)));
                }
                visited.queue.push((below, following));
            }
        }
        Ok(())
    }

    /// The node set of the whole trie.
    fn all(&mut self) -> NodeSetId {
        if let Some(all) = self.memo.all {
            return all;
        }
        let all = self.intern_node_set(self.trie.children(NodeId::ROOT).collect());
        self.memo.all = Some(all);
        all
    }

    /// The node set of some nodes; `None` if it is empty. Skips nodes all of whose tokens are in
    /// the row `accepted`, as nothing more can be found there.
    fn node_set(
        &mut self,
        nodes: impl Iterator<Item = NodeId>,
        accepted: Option<&[u32]>,
    ) -> Option<NodeSetId> {
        let trie = self.trie;
        let is_open = |node: &NodeId| {
            fuel::charge(1);
            !accepted.is_some_and(|row| trie.tokens_below(*node).iter().all(|&id| bit(row, id)))
        };
        let nodes: Vec<NodeId> = nodes.filter(is_open).collect();
        (!nodes.is_empty()).then(|| self.intern_node_set(nodes))
    }

    /// For each key, the node set of the children of its nodes, as in [`RuleWalker::node_set`].
    /// Nodes with equal keys are neighbours.
    fn node_sets_below<K: Copy + PartialEq, T>(
        &mut self,
        nodes_by_key: &[(K, NodeId)],
        accepted: Option<&[u32]>,
        entry: impl Fn(K, NodeSetId) -> T,
    ) -> Vec<T> {
        let trie = self.trie;
        let groups = nodes_by_key.chunk_by(|a, b| a.0 == b.0);
        let below = groups.filter_map(|group| {
            let children = group.iter().flat_map(|&(_, node)| trie.children(node));
            Some(entry(group[0].0, self.node_set(children, accepted)?))
        });
        below.collect()
    }

    /// Interns a node set.
    fn intern_node_set(&mut self, mut nodes: Vec<NodeId>) -> NodeSetId {
        nodes.sort_unstable();
        nodes.dedup();
        match self.memo.node_sets.get_index_of(&nodes[..]) {
            Some(index) => NodeSetId::new(index),
            None => {
                let children = NodeSet::new(self.trie, &nodes);
                self.context.bytes += nodes.len() * 12 + 128;
                NodeSetId::new(self.memo.node_sets.insert_full(nodes.into(), children).0)
            }
        }
    }

    /// The memoised rule walk of an item at a node set.
    fn rule_walk(
        &mut self,
        node_set: NodeSetId,
        item: Item,
        budget: usize,
    ) -> Result<Arc<RuleWalk>, WalkError> {
        let parser = &mut *self.parser;
        // Without counters, an isolated item is determined by its state.
        let plain = parser.program().state(item.state).block == BlockId::NONE
            && parser.compiled().budgets.is_empty();
        let isolated = (!plain).then(|| {
            let isolated = parser.isolated(item);
            parser.canonical(isolated)
        });
        let state = match isolated {
            Some(isolated) => CountedState::of(&parser.store().items(isolated)[0]),
            None => CountedState { state: item.state, count: 0 },
        };
        if let Some(rule_walk) = self.memo.rule_walks.get(&(node_set, state)) {
            return Ok(rule_walk.clone());
        }
        let isolated = isolated.unwrap_or_else(|| parser.isolated(item));
        let mut walk = self.context.walks.pop().unwrap_or_default();
        self.context.depth += 1;
        let reads = self.context.reads(parser, item.state);
        let result = self.compute(node_set, isolated, reads, budget, &mut walk);
        self.context.depth -= 1;
        walk.clear();
        self.context.walks.push(walk);
        let rule_walk = Arc::new(result?);
        self.context.bytes += rule_walk.tokens.bytes() + rule_walk.exits.len() * 16 + 128;
        self.memo.rule_walks.insert((node_set, state), rule_walk.clone());
        Ok(rule_walk)
    }

    /// Walks the nodes of a node set with an isolated item, which reads the bytes `reads`.
    fn walk_nodes(
        &mut self,
        node_set: NodeSetId,
        isolated: ConfigId,
        reads: ByteSet,
        budget: usize,
        walk: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        let parser = &mut *self.parser;
        walk.rule_only = self.context.depth < MAX_DEPTH && parser.compiled().budgets.is_empty();
        walk.begin(parser, budget);
        let nodes = &self.memo.node_sets[node_set.index()].nodes;
        for group in nodes.chunk_by(|a, b| a.0 == b.0) {
            if !reads.contains(group[0].0) {
                continue;
            }
            let next = parser.step(isolated, group[0].0)?;
            for &(_, child) in group {
                walk.enter(parser, self.trie, child, isolated, next)?;
            }
        }
        Ok(())
    }

    /// Computes a rule walk.
    fn compute(
        &mut self,
        node_set: NodeSetId,
        isolated: ConfigId,
        reads: ByteSet,
        budget: usize,
        walk: &mut TrieWalk,
    ) -> Result<RuleWalk, WalkError> {
        self.walk_nodes(node_set, isolated, reads, budget, walk)?;
        let (nodes, mask_words) =
            (self.memo.node_sets[node_set.index()].nodes.len(), self.context.mask_words);
        fuel::spend(RULE_WALK_FUEL + nodes + walk.exits.len() + walk.called.len())?;
        let (mut exit_nodes, mut calls) =
            (std::mem::take(&mut walk.exits), std::mem::take(&mut walk.called));
        exit_nodes.sort_unstable();
        exit_nodes.dedup();
        calls.sort_unstable();
        calls.dedup();
        // Tokens below accepted subtrees need not be found again.
        let accepted_row = (walk.tokens.len() > MIN_TOKENS_FOR_ROW
            && !(exit_nodes.is_empty() && calls.is_empty()))
        .then(|| {
            let mut row = vec![0; mask_words];
            walk.tokens.iter().for_each(|&token| set_bit(&mut row, token));
            row
        });
        if walk.tokens.len() > mask_words / ROW_FRACTION {
            walk.tokens_to_row(0, mask_words);
        }
        let accepted = accepted_row.as_deref();
        let mut exits =
            self.node_sets_below(&exit_nodes, accepted, |exit, node_set| (exit, node_set));
        let queue = self.node_sets_below(&calls, accepted, |config, node_set| (node_set, config));
        if !queue.is_empty() {
            self.follow(queue, walk, &mut exits)?;
        }
        exits.sort_unstable();
        exits.dedup();
        let tokens = ResolvedTokens::from_walk(walk, WalkCheckpoint::default(), mask_words);
        Ok(RuleWalk { tokens, exits: exits.into() })
    }
}
