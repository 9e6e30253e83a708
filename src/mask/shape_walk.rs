//! Walks of the whole vocabulary by shapes of tokens.
//!
//! Shapes are classes of bytes that most states do not tell apart, such as letters of one case. The
//! tree of shapes has about a tenth of the trie's nodes. Where a configuration tells bytes of one
//! shape apart, the walk goes on in the trie.

use std::ops::Range;
use std::sync::Arc;

use super::token_set::{TokenSet, set_bit};
use super::trie_walk::{TrieWalk, WalkError};
use crate::fsm::shape_bytes;
use crate::matcher::{ConfigId, Exit, MIN_SKIP_NODES, Parser, may_be_self_loop};
use crate::vocab::{NodeId, Vocabulary, descend};

/// The results of a walk by shapes.
pub(super) struct ShapeWalk {
    /// Ranges of accepted tokens in the list of tokens by shapes, in ascending order.
    runs: Vec<Range<usize>>,
    /// Nodes of the tree of shapes at which the rule ends, and how.
    pub(super) exits: Vec<(Exit, NodeId)>,
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
        let mut walk = ShapeWalk {
            runs: Vec::new(),
            exits: Vec::new(),
            on_trie: TrieWalk::default(),
            visited: 0,
        };
        walk.on_trie.begin(parser, usize::MAX);
        descend(vocab.shape_tree().tree(), isolated, |node, shape, config| {
            walk.visit(parser, vocab, node, shape, config)
        })?;
        Ok(walk)
    }

    /// Visits a node whose parent was reached with `config`. Returns the configuration after a
    /// byte of the node's shape if the children are to be visited with it.
    fn visit(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        node: NodeId,
        shape: u8,
        config: ConfigId,
    ) -> Result<Option<ConfigId>, WalkError> {
        self.visited += 1;
        let shapes = vocab.shape_tree();
        let (nodes, length) = (shapes.tree().subtree_len(node), shapes.tree().longest_below(node));
        let (large, allowance) = (nodes >= MIN_SKIP_NODES, self.on_trie.allowance);
        let kinds = shapes.byte_kinds_below(node);
        if !parser.is_uniform_shape(config, shape)? {
            self.walk_sources(parser, vocab, node, config)?;
            return Ok(None);
        }
        let byte = shape_bytes(shape).0;
        let next = parser.step(config, byte)?;
        if next == ConfigId::DEAD {
            return Ok(None);
        }
        let again = large && may_be_self_loop(config, next, byte);
        if again && parser.loops_on(next, kinds)?
            || large && parser.reads_all_texts(next, kinds, length, &allowance, self.visited())?
        {
            self.add_range(shapes.range_of_subtree(node));
            return Ok(None);
        }
        self.add_range(shapes.tree().range_at(node));
        if nodes > 1 && parser.store().flags(next).isolated_rule_ended() {
            match shapes.sources(node) {
                // A single trie node: its suffixes are read there.
                &[source] => {
                    self.on_trie.exits.extend(parser.exits(next).map(|exit| (exit, source)))
                }
                _ => self.exits.extend(parser.exits(next).map(|exit| (exit, node))),
            }
        }
        Ok(Some(next))
    }

    /// Walks the trie from where a configuration tells the bytes of a node's shape apart.
    fn walk_sources(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        node: NodeId,
        config: ConfigId,
    ) -> Result<(), WalkError> {
        let trie = vocab.trie();
        for &source in vocab.shape_tree().sources(node) {
            let next = parser.step(config, trie.node(source).byte)?;
            self.on_trie.enter(parser, trie, source, config, next)?;
        }
        Ok(())
    }

    /// Nodes that were visited, in all.
    pub(super) fn visited(&self) -> usize {
        self.visited + self.on_trie.visited()
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
        let tokens = vocab.shape_tree().tokens();
        if self.on_trie.tokens.is_empty() {
            return TokenSet::new(&self.runs, all, tokens);
        }
        if self.runs.is_empty() && self.on_trie.tokens.len() <= all.len() {
            return TokenSet::List(self.on_trie.tokens[..].into());
        }
        TokenSet::from_row_fn(all.len(), |row| {
            self.runs.iter().flat_map(|run| &tokens[run.clone()]).for_each(|&id| set_bit(row, id));
            self.on_trie.tokens.iter().for_each(|&id| set_bit(row, id));
        })
    }
}
