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

use indexmap::IndexMap;

use super::node_sets::{NodeSetId, sort_by_group, sort_nodes, sorted_by_bytes};
use super::token_set::{bit, set_bit};
use super::trie_walk::{TrieWalk, WalkError};
use crate::compile::NO_BLOCK;
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::{HashMap, HashSet, Seeded};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Item, Parser};
use crate::vocab::{Trie, Vocabulary};

/// Memory for rule walks, of one constraint.
const MAX_BYTES: usize = 32 << 20;
/// Nesting of rule walks; deeper, a walk follows calls together with their callers.
const MAX_DEPTH: usize = 48;
/// A subtree of more than this part of the vocabulary's trie is a node set of its own.
const LARGE_SUBTREE_FRACTION: usize = 16;
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

/// A saved set of tokens: single ones, and shared rows. A token may be in several of those.
#[derive(Debug, Default)]
pub(crate) struct ResolvedTokens {
    /// Single tokens.
    single: Box<[TokenId]>,
    /// Rows of tokens.
    rows: Box<[Arc<[u32]>]>,
}

impl ResolvedTokens {
    /// The single tokens that a walk has found from these lengths on, which are distinct.
    pub(crate) fn single(walk: &TrieWalk, from: (usize, usize)) -> ResolvedTokens {
        ResolvedTokens { single: walk.tokens[from.0..].into(), rows: Box::default() }
    }

    /// The tokens that a walk has found from these lengths on.
    pub(crate) fn from_walk(
        walk: &mut TrieWalk,
        from: (usize, usize),
        width: usize,
    ) -> ResolvedTokens {
        walk.dedup(from.0, width);
        if walk.tokens.len() - from.0 > width {
            walk.tokens_to_row(from.0, width);
        }
        let single = walk.tokens[from.0..].into();
        let rows = &mut walk.rows[from.1..];
        rows.sort_unstable_by_key(|row| row.as_ptr());
        let mut rows = rows.to_vec();
        rows.dedup_by_key(|row| row.as_ptr());
        ResolvedTokens { single, rows: rows.into() }
    }

    /// Adds them to the results of a walk.
    pub(crate) fn add_to(&self, walk: &mut TrieWalk) {
        walk.tokens.extend_from_slice(&self.single);
        walk.rows.extend_from_slice(&self.rows);
    }

    /// Memory in use, in bytes. Rows that are shared are not counted.
    pub(crate) fn bytes(&self) -> usize {
        let unshared = self.rows.iter().filter(|row| Arc::strong_count(row) == 1);
        self.single.len() * 4
            + unshared.map(|row| row.len() * 4).sum::<usize>()
            + self.rows.len() * 16
            + 64
    }
}

/// A set of trie nodes, indexed by the byte that leads to each.
#[derive(Debug, Default)]
struct NodeSet {
    /// The bytes that lead to a node.
    first_bytes: ByteSet,
    /// Sorted by byte.
    nodes: Box<[(u8, u32)]>,
}

impl NodeSet {
    /// The nodes must be in ascending order.
    fn new(trie: &Trie, nodes: &[u32]) -> NodeSet {
        let mut first = ByteSet::EMPTY;
        let nodes: Vec<(u8, u32)> =
            nodes.iter().map(|&node| (trie.node(node).byte, node)).collect();
        nodes.iter().for_each(|&(byte, _)| first.insert(byte));
        NodeSet { first_bytes: first, nodes: sorted_by_bytes(nodes).into() }
    }
}

/// The rule walks of one trie.
#[derive(Debug)]
struct TrieRuleWalks {
    /// The trie, so that its address stays unique. None for the vocabulary's trie, which outlives
    /// this.
    _owned: Option<Arc<Trie>>,
    /// Interned node sets.
    node_sets: IndexMap<Box<[u32]>, Arc<NodeSet>, Seeded>,
    /// Rule walks by node set and canonical state.
    rule_walks: HashMap<(NodeSetId, CanonicalState), Arc<RuleWalk>>,
    /// The node set of the whole trie.
    all: Option<NodeSetId>,
}

/// A state and its counter, canonical for masks.
type CanonicalState = (u32, u32);

/// Rule walks of all tries, by the tries' addresses.
#[derive(Debug)]
pub(crate) struct RuleWalks {
    tries: HashMap<usize, TrieRuleWalks>,
    /// Shared by all tries.
    context: WalkContext,
}

/// What does not depend on the trie, and buffers.
#[derive(Debug, Default)]
struct WalkContext {
    /// Memory in use, in bytes, approximately.
    bytes: usize,
    /// Length of a row.
    width: usize,
    /// Nodes of a subtree from which on it is a node set of its own, which other walks will meet
    /// too.
    large: u32,
    /// Bytes that each state reads; made on demand.
    reads: Vec<Option<ByteSet>>,
    /// Nesting of rule walks.
    depth: usize,
    /// Buffers for [`Visited`].
    visited: Vec<Visited>,
    /// Buffers for trie walks.
    walks: Vec<TrieWalk>,
}

/// What has been visited while one question is answered.
#[derive(Debug, Default)]
struct Visited {
    /// Node sets and configurations that were followed.
    configs: HashSet<(NodeSetId, ConfigId)>,
    /// Node sets and items that were walked.
    items: HashSet<(NodeSetId, Item)>,
    /// Rule walks, by address: their tokens are added once, whatever follows.
    rule_walks: HashSet<usize>,
    /// The current batch.
    batch: Vec<(NodeSetId, ConfigId)>,
}

impl WalkContext {
    /// Whether the memory for walks is used up.
    fn is_full(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Bytes that a state reads.
    fn reads(&mut self, parser: &mut Parser, state: u32) -> ByteSet {
        if self.reads.len() <= state as usize {
            self.reads.resize(state as usize + 1, None);
        }
        *self.reads[state as usize].get_or_insert_with(|| parser.reads_of(state))
    }
}

impl RuleWalks {
    /// Memory in use, in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.context.bytes
    }

    /// An empty memo.
    pub(crate) fn new(vocab: &Vocabulary) -> RuleWalks {
        let (width, large) =
            (vocab.mask_words(), (vocab.trie().len() / LARGE_SUBTREE_FRACTION) as u32);
        RuleWalks {
            tries: HashMap::default(),
            context: WalkContext { width, large, ..WalkContext::default() },
        }
    }

    /// Clears everything, as ids of configurations become invalid.
    pub(crate) fn clear(&mut self) {
        let WalkContext { width, large, .. } = self.context;
        self.tries = HashMap::default();
        self.context = WalkContext { width, large, ..WalkContext::default() };
    }

    /// Adds to `out` the tokens of `trie` strictly below `nodes` that `next` accepts, some perhaps
    /// twice.
    pub(crate) fn resolve(
        &mut self,
        parser: &mut Parser,
        (trie, owned): (&Trie, Option<&Arc<Trie>>),
        (nodes, next): (&[u32], ConfigId),
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        let children: Vec<u32> = nodes.iter().flat_map(|&node| trie.children(node)).collect();
        self.resolve_from(parser, (trie, owned), (&children, next), out)
    }

    /// As [`RuleWalks::resolve`] for the tokens at and below `nodes`, where `next` is the
    /// configuration before the nodes' bytes.
    pub(crate) fn resolve_from(
        &mut self,
        parser: &mut Parser,
        (trie, owned): (&Trie, Option<&Arc<Trie>>),
        (nodes, next): (&[u32], ConfigId),
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        if self.context.is_full() && out.pending_follow.is_empty() {
            self.clear();
        }
        let trie_walks = TrieRuleWalks::for_trie(&mut self.tries, trie, owned);
        let mut queue = Vec::new();
        trie_walks.add_nodes(trie, (nodes.iter().copied(), None), &mut self.context, |node_set| {
            queue.push((node_set, next))
        });
        trie_walks.follow(parser, trie, queue, &mut self.context, (out, &mut Vec::new()))
    }

    /// Adds to `out` the tokens of the vocabulary's trie that one item's rule accepts, some perhaps
    /// twice. What follows the rule is left to [`RuleWalks::finish`], for all items of a mask at
    /// once. Fails where the rule visits more than `budget` nodes.
    pub(crate) fn walk_item(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (item, budget): (Item, usize),
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        let trie_walks = TrieRuleWalks::for_trie(&mut self.tries, trie, None);
        let all = trie_walks.all(trie, &mut self.context);
        let rule_walk =
            trie_walks.rule_walk(parser, trie, (all, item, budget), &mut self.context)?;
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
        trie: &Trie,
        out: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        let queue = std::mem::take(&mut out.pending_follow);
        if !queue.is_empty() {
            let trie_walks = TrieRuleWalks::for_trie(&mut self.tries, trie, None);
            trie_walks.follow(parser, trie, queue, &mut self.context, (out, &mut Vec::new()))?;
        }
        if self.context.is_full() {
            self.clear();
        }
        Ok(())
    }
}

impl TrieRuleWalks {
    /// The rule walks of a trie.
    fn for_trie<'k>(
        tries: &'k mut HashMap<usize, TrieRuleWalks>,
        trie: &Trie,
        owned: Option<&Arc<Trie>>,
    ) -> &'k mut TrieRuleWalks {
        tries.entry(std::ptr::from_ref(trie) as usize).or_insert_with(|| TrieRuleWalks {
            _owned: owned.cloned(),
            node_sets: IndexMap::default(),
            rule_walks: HashMap::default(),
            all: None,
        })
    }

    /// Walks from node sets and configurations until nothing is context-dependent, or only by what
    /// follows an isolated item: those go to `exits`.
    fn follow(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        mut queue: Vec<(NodeSetId, ConfigId)>,
        context: &mut WalkContext,
        (out, exits): (&mut TrieWalk, &mut Vec<(Exit, NodeSetId)>),
    ) -> Result<(), WalkError> {
        let mut visited = context.visited.pop().unwrap_or_default();
        let result =
            self.follow_buffered(parser, trie, (&mut queue, &mut visited), context, (out, exits));
        visited.configs.clear();
        visited.items.clear();
        visited.rule_walks.clear();
        visited.batch.clear();
        context.visited.push(visited);
        result
    }

    /// The same, with buffers.
    fn follow_buffered(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (queue, visited): (&mut Vec<(NodeSetId, ConfigId)>, &mut Visited),
        context: &mut WalkContext,
        (out, exits): (&mut TrieWalk, &mut Vec<(Exit, NodeSetId)>),
    ) -> Result<(), WalkError> {
        while !queue.is_empty() {
            let mut batch = std::mem::take(&mut visited.batch);
            batch.clear();
            std::mem::swap(queue, &mut batch);
            batch.sort_unstable_by_key(|&(node_set, next)| (next, node_set));
            batch.dedup();
            for group in batch.chunk_by(|a, b| a.1 == b.1) {
                self.follow_one(parser, trie, (group, queue, visited), context, (out, exits))?;
            }
            visited.batch = batch;
        }
        Ok(())
    }

    /// Walks from one configuration, at all its node sets.
    fn follow_one(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (group, queue, visited): (
            &[(NodeSetId, ConfigId)],
            &mut Vec<(NodeSetId, ConfigId)>,
            &mut Visited,
        ),
        context: &mut WalkContext,
        (out, exits): (&mut TrieWalk, &mut Vec<(Exit, NodeSetId)>),
    ) -> Result<(), WalkError> {
        let next = group[0].1;
        if parser.is_near_bound(next) {
            // Isolated items know no budget.
            let mut budget_left = usize::MAX;
            for &(node_set, _) in group {
                let children = self.node_sets[node_set as usize].clone();
                for &(byte, node) in &children.nodes {
                    let to = parser.step(next, byte)?;
                    out.enter(parser, trie, node, (next, to), &mut budget_left)?;
                }
            }
            return Ok(());
        }
        let mut first = ByteSet::EMPTY;
        for &(node_set, _) in group {
            first = first.union(&self.node_sets[node_set as usize].first_bytes);
        }
        for i in 0..parser.store().items(next).len() {
            fuel::spend(1 + group.len())?;
            let item = parser.store().items(next)[i];
            let reads = context.reads(parser, item.state);
            if !reads.meets(&first) {
                continue;
            }
            for &(node_set, _) in group {
                if !reads.meets(&self.node_sets[node_set as usize].first_bytes)
                    || !visited.items.insert((node_set, item))
                {
                    continue;
                }
                let rule_walk =
                    self.rule_walk(parser, trie, (node_set, item, usize::MAX), context)?;
                if visited.rule_walks.insert(Arc::as_ptr(&rule_walk) as usize) {
                    rule_walk.tokens.add_to(out);
                }
                for &(exit, below) in &rule_walk.exits {
                    // A dispatch that is tail-called replaces its caller: its gates are not the
                    // caller's.
                    if item.leaves_by(exit) {
                        exits.push((exit, below));
                        continue;
                    }
                    let following = parser.follow(&item, exit)?;
                    if visited.configs.insert((below, following)) {
                        if parser.store().done(following).open() {
                            exits.extend(parser.exits(following).map(|exit| (exit, below)));
                        }
                        queue.push((below, following));
                    }
                }
            }
        }
        Ok(())
    }

    /// The node set of the whole trie.
    fn all(&mut self, trie: &Trie, context: &mut WalkContext) -> NodeSetId {
        if let Some(all) = self.all {
            return all;
        }
        let all = self.intern_node_set(trie, trie.children(0).collect(), context);
        self.all = Some(all);
        all
    }

    /// As [`TrieRuleWalks::add_nodes`] for the children of some nodes.
    fn add_children(
        &mut self,
        trie: &Trie,
        (nodes, found): (impl Iterator<Item = u32>, Option<&[u32]>),
        context: &mut WalkContext,
        add: impl FnMut(NodeSetId),
    ) {
        self.add_nodes(trie, (nodes.flat_map(|node| trie.children(node)), found), context, add);
    }

    /// Calls `add` with node sets of some nodes. Skips nodes all of whose tokens are in the row
    /// `accepted`, as nothing more can be found there. Large subtrees are node sets of their own.
    fn add_nodes(
        &mut self,
        trie: &Trie,
        (nodes, accepted): (impl Iterator<Item = u32>, Option<&[u32]>),
        context: &mut WalkContext,
        mut add: impl FnMut(NodeSetId),
    ) {
        let (mut small, mut large): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for node in nodes {
            fuel::charge(1);
            let is_accepted =
                |row: &[u32]| trie.words_below(node).iter().all(|&word| bit(row, word));
            if trie.node(node).end - node > context.large {
                large.push(node);
            } else if !accepted.is_some_and(is_accepted) {
                small.push(node);
            }
        }
        for node in large {
            add(self.intern_node_set(trie, vec![node], context));
        }
        if !small.is_empty() {
            add(self.intern_node_set(trie, small, context));
        }
    }

    /// Interns a node set.
    fn intern_node_set(
        &mut self,
        trie: &Trie,
        mut nodes: Vec<u32>,
        context: &mut WalkContext,
    ) -> NodeSetId {
        sort_nodes(&mut nodes);
        match self.node_sets.get_index_of(&nodes[..]) {
            Some(node_sets) => node_sets as u32,
            None => {
                let children = NodeSet::new(trie, &nodes);
                context.bytes += nodes.len() * 12 + 128;
                self.node_sets.insert_full(nodes.into(), Arc::new(children)).0 as u32
            }
        }
    }

    /// The memoised rule walk of an item at a node set.
    fn rule_walk(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (node_set, item, budget): (NodeSetId, Item, usize),
        context: &mut WalkContext,
    ) -> Result<Arc<RuleWalk>, WalkError> {
        // Without counters, an isolated item is determined by its state.
        let plain = parser.program().state(item.state).block == NO_BLOCK
            && parser.compiled().budgets.is_empty();
        let isolated = if plain {
            None
        } else {
            Some(parser.isolated(item)).map(|isolated| parser.canonical(isolated))
        };
        let key = isolated.map_or((item.state, 0), |isolated| {
            let Item { state, count, .. } = parser.store().items(isolated)[0];
            (state, count)
        });
        if let Some(rule_walk) = self.rule_walks.get(&(node_set, key)) {
            return Ok(rule_walk.clone());
        }
        let isolated = isolated.unwrap_or_else(|| parser.isolated(item));
        let mut walk = context.walks.pop().unwrap_or_default();
        context.depth += 1;
        let reads = context.reads(parser, item.state);
        let result =
            self.compute(parser, trie, (node_set, isolated, reads, budget), context, &mut walk);
        context.depth -= 1;
        walk.clear();
        context.walks.push(walk);
        let rule_walk = Arc::new(result?);
        context.bytes += rule_walk.tokens.bytes() + rule_walk.exits.len() * 16 + 128;
        self.rule_walks.insert((node_set, key), rule_walk.clone());
        Ok(rule_walk)
    }

    /// Walks the nodes of a node set with an isolated item.
    fn walk_nodes(
        &self,
        parser: &mut Parser,
        trie: &Trie,
        (node_set, isolated, reads, budget): (NodeSetId, ConfigId, ByteSet, usize),
        context: &WalkContext,
        walk: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        walk.rule_only = context.depth < MAX_DEPTH && parser.compiled().budgets.is_empty();
        walk.begin_queries(parser);
        let (nodes, mut budget_left) = (&self.node_sets[node_set as usize].nodes, budget);
        for group in nodes.chunk_by(|a, b| a.0 == b.0) {
            if !reads.contains(group[0].0) {
                continue;
            }
            let next = parser.step(isolated, group[0].0)?;
            for &(_, child) in group {
                walk.enter(parser, trie, child, (isolated, next), &mut budget_left)?;
            }
        }
        Ok(())
    }

    /// Computes a rule walk.
    fn compute(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        (node_set, isolated, reads, budget): (NodeSetId, ConfigId, ByteSet, usize),
        context: &mut WalkContext,
        walk: &mut TrieWalk,
    ) -> Result<RuleWalk, WalkError> {
        self.walk_nodes(parser, trie, (node_set, isolated, reads, budget), context, walk)?;
        let nodes = self.node_sets[node_set as usize].nodes.len();
        fuel::spend(RULE_WALK_FUEL + nodes + walk.exits.len() + walk.called.len())?;
        let (mut exit_nodes, mut calls) =
            (std::mem::take(&mut walk.exits), std::mem::take(&mut walk.called));
        sort_by_group(&mut exit_nodes);
        sort_by_group(&mut calls);
        // Tokens below accepted subtrees need not be found again.
        let accepted_row = (walk.tokens.len() > MIN_TOKENS_FOR_ROW
            && !(exit_nodes.is_empty() && calls.is_empty()))
        .then(|| {
            let mut row = vec![0; context.width];
            walk.tokens.iter().for_each(|&word| set_bit(&mut row, word));
            row
        });
        if walk.tokens.len() > context.width / ROW_FRACTION {
            walk.tokens_to_row(0, context.width);
        }
        let (mut exits, mut queue): (Vec<(Exit, NodeSetId)>, Vec<(NodeSetId, ConfigId)>) =
            (Vec::new(), Vec::new());
        for group in exit_nodes.chunk_by(|a, b| a.0 == b.0) {
            let nodes = group.iter().map(|&(_, node)| node);
            self.add_children(trie, (nodes, accepted_row.as_deref()), context, |node_set| {
                exits.push((group[0].0, node_set))
            });
        }
        for group in calls.chunk_by(|a, b| a.0 == b.0) {
            let nodes = group.iter().map(|&(_, node)| node);
            self.add_children(trie, (nodes, accepted_row.as_deref()), context, |node_set| {
                queue.push((node_set, group[0].0))
            });
        }
        if !queue.is_empty() {
            self.follow(parser, trie, queue, context, (walk, &mut exits))?;
        }
        exits.sort_unstable();
        exits.dedup();
        let tokens = ResolvedTokens::from_walk(walk, (0, 0), context.width);
        Ok(RuleWalk { tokens, exits: exits.into() })
    }
}
