//! Walks of the whole vocabulary by shapes of tokens.
//!
//! Shapes are classes of bytes that most states do not tell apart, such as letters of one case. The
//! tree of shapes has about a tenth of the trie's nodes. Where a configuration tells bytes of one
//! shape apart, the walk goes on in the trie.

use std::ops::Range;
use std::sync::Arc;

use super::token_set::{TokenSet, set_bit};
use super::trie_walk::{TrieWalk, WalkError};
use crate::fsm::{shape_bytes, shape_kinds};
use crate::matcher::{
    ConfigId, DEAD, Exit, MIN_SKIP_NODES, Parser, QueryAllowance, may_be_self_loop,
};
use crate::vocab::{Vocabulary, descend};

/// The results of a walk by shapes.
pub(super) struct ShapeWalk {
    /// Ranges of accepted tokens in the list of tokens by shapes, in ascending order.
    runs: Vec<Range<usize>>,
    /// Nodes of the tree of shapes at which the rule ends, and how.
    pub(super) exits: Vec<(Exit, u32)>,
    /// What was found on the trie: tokens, and nodes of the trie at which the rule ends.
    pub(super) on_trie: TrieWalk,
    /// Visited nodes of the tree of shapes.
    visited: usize,
}

impl ShapeWalk {
    /// Walks the vocabulary with an isolated item.
    pub(super) fn walk(
        parser: &mut Parser,
        vocab: &Vocabulary,
        isolated: ConfigId,
    ) -> Result<ShapeWalk, WalkError> {
        let (trie, shapes) = (vocab.trie(), vocab.shape_tree());
        let mut result = ShapeWalk {
            runs: Vec::new(),
            exits: Vec::new(),
            on_trie: TrieWalk::default(),
            visited: 0,
        };
        let mut budget_left = usize::MAX;
        let query_budget = QueryAllowance::new(parser, 0);
        result.on_trie.asking = query_budget;
        descend(shapes.tree(), isolated, |node, shape, config| -> Result<_, WalkError> {
            result.visited += 1;
            let (nodes, length) =
                (shapes.tree().node(node).end - node, shapes.tree().longest_below(node));
            let (large, query) = (nodes >= MIN_SKIP_NODES, (&query_budget, result.visited()));
            let kinds = shapes.byte_kinds_below(node);
            if large
                && parser.reads_all_texts(
                    config,
                    (kinds | shape_kinds(shape), length.saturating_add(1)),
                    query,
                )?
            {
                result.add_range(shapes.range_of_subtree(node));
                return Ok(None);
            }
            if !parser.is_uniform_shape(config, shape)? {
                for &source in shapes.sources(node) {
                    let next = parser.step(config, trie.node(source).byte)?;
                    result.on_trie.enter(parser, trie, source, (config, next), &mut budget_left)?;
                }
                return Ok(None);
            }
            let byte = shape_bytes(shape).0;
            let next = parser.step(config, byte)?;
            if next == DEAD {
                return Ok(None);
            }
            let again = large && may_be_self_loop(config, next, byte);
            if again && parser.loops_on(next, kinds)?
                || large && parser.reads_all_texts(next, (kinds, length), query)?
            {
                result.add_range(shapes.range_of_subtree(node));
                return Ok(None);
            }
            result.add_range(shapes.tree().range_at(node));
            if nodes > 1 && parser.store().done(next).open() {
                match shapes.sources(node) {
                    // A single trie node: its suffixes are read there.
                    &[source] => {
                        result.on_trie.exits.extend(parser.exits(next).map(|exit| (exit, source)))
                    }
                    _ => result.exits.extend(parser.exits(next).map(|exit| (exit, node))),
                }
            }
            Ok(Some(next))
        })?;
        Ok(result)
    }

    /// Nodes that were visited, in all.
    pub(super) fn visited(&self) -> usize {
        self.visited + self.on_trie.visited
    }

    /// Adds a range of accepted tokens.
    fn add_range(&mut self, tokens: Range<usize>) {
        match self.runs.last_mut() {
            _ if tokens.is_empty() => {}
            Some(last) if last.end == tokens.start => last.end = tokens.end,
            _ => self.runs.push(tokens),
        }
    }

    /// All accepted tokens. `all` is the row of every token with text.
    pub(super) fn accepted(&self, vocab: &Vocabulary, all: &Arc<[u32]>) -> TokenSet {
        let tokens = vocab.shape_tree().words();
        if self.on_trie.tokens.is_empty() {
            return TokenSet::new(&self.runs, all, tokens);
        }
        if self.runs.is_empty() && self.on_trie.tokens.len() <= all.len() {
            return TokenSet::List(self.on_trie.tokens[..].into());
        }
        TokenSet::built(all.len(), |row| {
            self.runs.iter().flat_map(|run| &tokens[run.clone()]).for_each(|&id| set_bit(row, id));
            self.on_trie.tokens.iter().for_each(|&id| set_bit(row, id));
        })
    }
}
