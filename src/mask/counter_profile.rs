//! Counter profiles: the mask entries of a counted block's state for all counters at once.
//!
//! One walk with a counter that has no bounds records how many completed runs each token needs. The
//! entry of any real counter is a selection by that number. `maxLength: 50` costs one walk instead
//! of fifty.
//!
//! A profile exists only where the text alone determines the number of runs.

use std::ops::Range;
use std::sync::Arc;

use super::token_set::{TokenSet, set_bit};
use super::trie_walk::{TrieWalk, WalkError};
use crate::capacity::IdTable;
use crate::compile::BlockId;
use crate::fsm::{ByteSet, shape_bytes};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, CounterDistance, Item, Parser, UNBOUNDED_COUNT};
use crate::vocab::{NodeId, TokensByCount, Tree, Trie, Vocabulary, descend, descend_from};

/// How many runs a token needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TokenRuns {
    token: TokenId,
    /// Runs of the block.
    runs: u32,
}

/// What a state of a counted block accepts, by runs.
#[derive(Debug)]
pub(crate) struct CounterProfile {
    /// Tokens that end inside the block, by how many runs they need room for.
    inside: TokensByCount,
    /// All of those as a row.
    row: Arc<[u32]>,
    /// Tokens accepted after leaving the block with exactly this many runs.
    outside: Vec<TokenRuns>,
    /// Suffixes of context-dependent tokens after the rule's end; a token of this trie is an index
    /// into `suffix_runs`.
    suffixes: Trie,
    /// The token of each suffix, and its runs.
    suffix_runs: Vec<TokenRuns>,
}

/// A position relative to the block, during the walk.
#[derive(Clone, Copy)]
enum BlockPosition {
    /// In the block, after so many completed runs.
    Inside(u32),
    /// After the block, which was left after so many runs.
    Outside(u32),
}

impl CounterProfile {
    /// Walks the vocabulary once. None where the text does not determine the number of runs: a run
    /// may end in several ways, or what follows the block may begin like a run.
    pub(crate) fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        item: Item,
    ) -> Result<Option<CounterProfile>, WalkError> {
        let block = parser.program().state(item.state).block;
        if block == BlockId::NONE || parser.program_mut().block_calls(block) {
            return Ok(None);
        }
        let start = parser.isolated(Item { count: UNBOUNDED_COUNT, ..item });
        let Some(builder) = ProfileBuilder::walk(parser, vocab, start)? else { return Ok(None) };
        // A block that may be the whole rest of its rule ends after every run: too many tokens are
        // context-dependent for lists to pay.
        let context_dependent: usize = builder
            .exits
            .iter()
            .map(|&(node, _)| node.tree(vocab).range_below(node.node).len())
            .sum();
        Ok((context_dependent <= vocab.trie().tokens_below(NodeId::ROOT).len() / 2)
            .then(|| builder.finish(vocab)))
    }

    /// The tokens accepted with a counter at this distance from its bounds. Cost: the smaller of
    /// the tokens that the bounds reject and those that they accept.
    pub(crate) fn accepted(&self, distance: CounterDistance) -> TokenSet {
        let (excluded, fitting) = self.inside.split(distance.to_max);
        let is_in_bounds = |n: &&TokenRuns| distance.to_min <= n.runs && n.runs <= distance.to_max;
        let after_block: Vec<TokenId> =
            self.outside.iter().filter(is_in_bounds).map(|n| n.token).collect();
        if fitting.len() < excluded.len() {
            let ids = fitting.iter().copied().chain(after_block);
            if fitting.len() <= self.row.len() / 4 {
                TokenSet::List(ids.collect())
            } else {
                TokenSet::from_row_fn(self.row.len(), |bits| ids.for_each(|id| set_bit(bits, id)))
            }
        } else {
            let row = TokenSet::row(self.row.clone());
            row.with_changes(excluded, &after_block, self.row.len())
        }
    }

    /// Adds the context-dependent tokens that `next` completes and the counter allows.
    pub(crate) fn resolve(
        &self,
        parser: &mut Parser,
        distance: CounterDistance,
        next: ConfigId,
        walk: &mut TrieWalk,
    ) -> Result<(), WalkError> {
        let from = walk.tokens.len();
        walk.run(parser, &self.suffixes, next, usize::MAX)?;
        let mut to = from;
        for index in from..walk.tokens.len() {
            let suffix = self.suffix_runs[walk.tokens[index].index()];
            if distance.to_min <= suffix.runs && suffix.runs <= distance.to_max {
                walk.tokens[to] = suffix.token;
                to += 1;
            }
        }
        walk.tokens.truncate(to);
        Ok(())
    }

    /// Memory in use, in bytes, approximately.
    pub(crate) fn bytes(&self) -> usize {
        (self.outside.len() + self.suffix_runs.len()) * size_of::<TokenRuns>()
            + (self.inside.all().len() + self.row.len()) * 4
            + self.suffixes.len() * 16
            + 1024
    }
}

/// What a configuration says about the counter.
#[derive(Clone, Copy)]
struct CounterReading {
    /// Completed runs, if it is in the block.
    inside: Option<u32>,
    /// It is also, or only, after the block.
    outside: bool,
    /// What follows the block does not begin like a run.
    disjoint_begins: bool,
    /// The rule may end.
    rule_ended: bool,
}

impl CounterReading {
    /// None where the number of runs is ambiguous.
    fn read(parser: &mut Parser, config: ConfigId) -> Option<CounterReading> {
        parser.expand(config);
        let (store, program) = (parser.store(), parser.program());
        let rule_ended = store.flags(config).item_completed;
        let (mut inside, mut outside) = (None, rule_ended);
        let (mut run_bytes, mut exit_bytes) = (ByteSet::EMPTY, ByteSet::EMPTY);
        for item in store.items(config) {
            let bytes = if item.count & UNBOUNDED_COUNT != 0 {
                let runs = item.count & !UNBOUNDED_COUNT;
                if inside.is_some_and(|other| other != runs) {
                    return None;
                }
                inside = Some(runs);
                &mut run_bytes
            } else {
                outside = true;
                &mut exit_bytes
            };
            for e in program.byte_edges(item.state) {
                bytes.insert_range(e.lo, e.hi);
            }
        }
        Some(CounterReading {
            inside,
            outside,
            disjoint_begins: run_bytes.intersect(&exit_bytes).is_empty(),
            rule_ended,
        })
    }
}

/// The results of the walk so far.
#[derive(Default)]
struct ProfileBuilder {
    /// By configuration, once computed.
    readings: IdTable<ConfigId, Option<Option<CounterReading>>>,
    inside: Vec<RunRange>,
    outside: Vec<TokenRuns>,
    /// Nodes at which the rule ended, and after how many runs.
    exits: Vec<(TreeNode, u32)>,
    /// Whether the number of runs turned out to be ambiguous: nothing more is walked.
    is_ambiguous: bool,
}

/// A node of the vocabulary's trie, or of the tree of shapes.
#[derive(Clone, Copy)]
struct TreeNode {
    node: NodeId,
    /// Of the tree of shapes.
    in_shapes: bool,
}

impl TreeNode {
    /// The tree that the node is of.
    fn tree(self, vocab: &Vocabulary) -> &Tree {
        if self.in_shapes { vocab.shape_tree().tree() } else { vocab.trie() }
    }
}

impl ProfileBuilder {
    /// Walks the tree of shapes, and the trie from where a configuration tells bytes of one shape
    /// apart. None where the number of runs is ambiguous.
    fn walk(
        parser: &mut Parser,
        vocab: &Vocabulary,
        start: ConfigId,
    ) -> Result<Option<ProfileBuilder>, WalkError> {
        let (shapes, trie) = (vocab.shape_tree(), vocab.trie());
        let mut builder = ProfileBuilder::default();
        descend(
            shapes.tree(),
            (start, BlockPosition::Inside(0)),
            |node, shape, (config, position)| -> Result<_, WalkError> {
                if builder.is_ambiguous {
                    return Ok(None);
                }
                if parser.is_uniform_shape(config, shape)? {
                    let node = TreeNode { node, in_shapes: true };
                    let byte = shape_bytes(shape).0;
                    return builder.step(parser, vocab, node, byte, config, position);
                }
                for &node in shapes.sources(node) {
                    let mut step = |node: NodeId, byte: u8, (config, position)| {
                        let node = TreeNode { node, in_shapes: false };
                        builder.step(parser, vocab, node, byte, config, position)
                    };
                    if let Some(after) = step(node, trie.node(node).byte, (config, position))? {
                        descend_from(trie, node, after, step)?;
                    }
                }
                Ok(None)
            },
        )?;
        Ok((!builder.is_ambiguous).then_some(builder))
    }

    /// Steps over a byte to a node.
    fn step(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        node: TreeNode,
        byte: u8,
        config: ConfigId,
        position: BlockPosition,
    ) -> Result<Option<(ConfigId, BlockPosition)>, WalkError> {
        let next = if self.is_ambiguous { ConfigId::DEAD } else { parser.step(config, byte)? };
        if next == ConfigId::DEAD {
            return Ok(None);
        }
        let position = self.visit(parser, vocab, node, next, position);
        self.is_ambiguous = position.is_none();
        Ok(position.map(|position| (next, position)))
    }

    /// Records what a node's tokens need; None where that is not a matter of counting.
    fn visit(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        node: TreeNode,
        config: ConfigId,
        parent: BlockPosition,
    ) -> Option<BlockPosition> {
        let reading = *self
            .readings
            .entry(config)
            .get_or_insert_with(|| CounterReading::read(parser, config));
        let CounterReading { inside, outside, disjoint_begins, rule_ended } = reading?;
        let (position, runs_needed) = match (parent, inside) {
            (BlockPosition::Inside(before), Some(runs)) if runs == before && !outside => {
                (BlockPosition::Inside(runs), runs + 1)
            }
            // A run has just ended. What follows the block must not begin like a run.
            (BlockPosition::Inside(before), Some(runs))
                if runs == before + 1 && disjoint_begins =>
            {
                (BlockPosition::Inside(runs), runs)
            }
            (BlockPosition::Inside(runs), None) | (BlockPosition::Outside(runs), None) => {
                (BlockPosition::Outside(runs), runs)
            }
            _ => return None,
        };
        match position {
            BlockPosition::Inside(_) => {
                self.add_inside(node, node.tree(vocab).range_at(node.node), runs_needed)
            }
            BlockPosition::Outside(_) => {
                let tokens = node.tree(vocab).tokens_at(node.node).iter();
                self.outside.extend(tokens.map(|&token| TokenRuns { token, runs: runs_needed }));
            }
        }
        if rule_ended {
            let runs = match position {
                BlockPosition::Inside(runs) | BlockPosition::Outside(runs) => runs,
            };
            self.exits.push((node, runs));
        }
        Some(position)
    }

    /// Records tokens that end inside the block.
    fn add_inside(&mut self, node: TreeNode, tokens: Range<usize>, runs: u32) {
        match self.inside.last_mut() {
            _ if tokens.is_empty() => {}
            Some(last)
                if (last.runs, last.in_shapes, last.tokens.end)
                    == (runs, node.in_shapes, tokens.start) =>
            {
                last.tokens.end = tokens.end;
            }
            _ => self.inside.push(RunRange { tokens, in_shapes: node.in_shapes, runs }),
        }
    }

    /// Sorts the results into a profile.
    fn finish(self, vocab: &Vocabulary) -> CounterProfile {
        let tokens = |range: &RunRange| {
            let tree = TreeNode { node: NodeId::ROOT, in_shapes: range.in_shapes }.tree(vocab);
            tree.tokens(range.tokens.clone())
        };
        let inside =
            TokensByCount::new(self.inside.iter().map(|range| (range.runs, tokens(range))));
        let mut row = vec![0; vocab.mask_words()];
        inside.all().iter().for_each(|&id| set_bit(&mut row, id));
        let (mut suffix_runs, mut suffixes) = (Vec::new(), Vec::new());
        for &(node, runs) in &self.exits {
            let tree = node.tree(vocab);
            let depth = usize::from(tree.node(node.node).depth);
            for &token in tree.tokens_strictly_below(node.node) {
                if let Some(bytes) = vocab.bytes(token) {
                    suffixes.push((&bytes[depth..], TokenId::new(suffix_runs.len())));
                    suffix_runs.push(TokenRuns { token, runs });
                }
            }
        }
        CounterProfile {
            inside,
            row: row.into(),
            outside: self.outside,
            suffixes: Trie::build(suffixes),
            suffix_runs,
        }
    }
}

/// A range of a tree's list of tokens that need room for equally many runs.
struct RunRange {
    tokens: Range<usize>,
    /// Of the tree of shapes.
    in_shapes: bool,
    runs: u32,
}
