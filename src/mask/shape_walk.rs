//! Walking the whole vocabulary with a state by the shapes of its words: a tenth of the nodes, as most states that read text do not tell most
//! letters apart. From where one does, the trie is walked.

use std::ops::Range;
use std::sync::Arc;

use super::token_set::{TokenSet, set_bit};
use super::trie_walk::{Stopped, Walk};
use crate::fsm::{shape_bytes, shape_kinds};
use crate::matcher::{Asking, ConfigId, DEAD, Exit, Parser, SWALLOW, may_be_again};
use crate::vocab::{Vocabulary, descend};

/// What a walk by shapes found.
pub(super) struct Shaped {
    /// Where words that can follow are in the list of words by shapes, in ascending order.
    runs: Vec<Range<usize>>,
    /// Nodes of the tree of shapes at which the rule ended, and how.
    pub(super) exits: Vec<(Exit, u32)>,
    /// What was found on the trie: words, and nodes of the trie at which the rule ended.
    pub(super) fine: Walk,
    /// How many nodes of the tree of shapes were looked at.
    looked: usize,
}

impl Shaped {
    /// Walks the vocabulary with an isolated item.
    pub(super) fn walk(
        parser: &mut Parser,
        vocab: &Vocabulary,
        isolated: ConfigId,
    ) -> Result<Shaped, Stopped> {
        let (trie, shapes) = (vocab.trie(), vocab.shapes());
        let mut found =
            Shaped { runs: Vec::new(), exits: Vec::new(), fine: Walk::default(), looked: 0 };
        let mut left = usize::MAX;
        let asking = Asking::new(parser, 0);
        found.fine.asking = asking;
        descend(shapes.tree(), isolated, |at, shape, config| -> Result<_, Stopped> {
            found.looked += 1;
            let (nodes, length) =
                (shapes.tree().node(at).end - at, shapes.tree().longest_below(at));
            let (large, asked) = (nodes >= SWALLOW, (&asking, found.looked()));
            let kinds = shapes.kinds_below(at);
            if large
                && parser.reads_any(
                    config,
                    (kinds | shape_kinds(shape), length.saturating_add(1)),
                    asked,
                )?
            {
                found.take(shapes.range_from(at));
                return Ok(None);
            }
            if !parser.is_uniform(config, shape)? {
                for &node in shapes.sources(at) {
                    let next = parser.step(config, trie.node(node).byte)?;
                    found.fine.enter(parser, trie, node, (config, next), &mut left)?;
                }
                return Ok(None);
            }
            let byte = shape_bytes(shape).0;
            let next = parser.step(config, byte)?;
            if next == DEAD {
                return Ok(None);
            }
            let again = large && may_be_again(config, next, byte);
            if again && parser.loops(next, kinds)?
                || large && parser.reads_any(next, (kinds, length), asked)?
            {
                found.take(shapes.range_from(at));
                return Ok(None);
            }
            found.take(shapes.tree().range_at(at));
            if nodes > 1 && parser.store().done(next).open() {
                match shapes.sources(at) {
                    // What is behind one node is read where it is.
                    &[own] => found.fine.exits.extend(parser.exits(next).map(|exit| (exit, own))),
                    _ => found.exits.extend(parser.exits(next).map(|exit| (exit, at))),
                }
            }
            Ok(Some(next))
        })?;
        Ok(found)
    }

    /// How many nodes were looked at, in all.
    pub(super) fn looked(&self) -> usize {
        self.looked + self.fine.looked
    }

    fn take(&mut self, words: Range<usize>) {
        match self.runs.last_mut() {
            _ if words.is_empty() => {}
            Some(last) if last.end == words.start => last.end = words.end,
            _ => self.runs.push(words),
        }
    }

    /// All words that can follow. `all` is the row of every token with text.
    pub(super) fn accepted(&self, vocab: &Vocabulary, all: &Arc<[u32]>) -> TokenSet {
        let words = vocab.shapes().words();
        if self.fine.words.is_empty() {
            return TokenSet::new(&self.runs, all, words);
        }
        if self.runs.is_empty() && self.fine.words.len() <= all.len() {
            return TokenSet::List(self.fine.words[..].into());
        }
        TokenSet::built(all.len(), |row| {
            self.runs.iter().flat_map(|run| &words[run.clone()]).for_each(|&id| set_bit(row, id));
            self.fine.words.iter().for_each(|&id| set_bit(row, id));
        })
    }
}
