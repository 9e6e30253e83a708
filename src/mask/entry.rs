//! The adaptive token-mask entry of one automaton state: tokens accepted whatever follows the rule, and what has to be
//! decided by what follows it, grouped by the remainder.

use std::sync::Arc;

use super::set::TokenSet;
use super::walk::{Stopped, Walk};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Parser};
use crate::vocab::{Trie, Vocabulary};

/// Where few nodes have everything undecided below them, the subtrees are walked in place; otherwise remainders are grouped.
const SUBTREES: usize = 4;

/// What a state's rule leaves undecided.
#[derive(Debug)]
pub(crate) enum Undecided {
    /// The words below these nodes of the vocabulary's trie.
    Subtrees(Box<[u32]>),
    /// What is left of each undecided token once the rule has ended; equal remainders share a node.
    Remainders(Trie),
}

/// Accepted / rejected / uncertain for one state (XGrammar's adaptive token-mask cache). Everything else is rejected.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) accepted: TokenSet,
    pub(crate) undecided: Undecided,
}

impl Entry {
    /// Walks the whole vocabulary with an isolated item.
    pub(crate) fn build(
        parser: &mut Parser,
        vocab: &Vocabulary,
        all: &Arc<[u32]>,
        all_count: usize,
        isolated: ConfigId,
    ) -> Result<Entry, Stopped> {
        let mut walk = Walk::default();
        let trie = vocab.trie();
        walk.run(parser, trie, 0, isolated, usize::MAX)?;
        let accepted = TokenSet::new(walk.words, all, all_count);
        let undecided = if walk.exits.len() <= SUBTREES {
            Undecided::Subtrees(walk.exits.into_boxed_slice())
        } else {
            let mut remainders: Vec<(&[u8], TokenId)> = Vec::new();
            // The length of the text that leads to a node is the length of any word at or below it, less what follows.
            for &node in &walk.exits {
                let depth = usize::from(trie.node(node).depth);
                let at = trie.words_at(node).len();
                for &id in &trie.words_below(node)[at..] {
                    if let Some(bytes) = vocab.bytes(id) {
                        remainders.push((&bytes[depth..], id));
                    }
                }
            }
            Undecided::Remainders(Trie::build(remainders))
        };
        Ok(Entry { accepted, undecided })
    }

    /// Memory held, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.accepted.bytes()
            + match &self.undecided {
                Undecided::Subtrees(nodes) => nodes.len() * 4,
                Undecided::Remainders(trie) => trie.len() * 16 + 1024,
            }
            + 128
    }

    /// Adds to `walk` the undecided tokens that `next` (what follows the rule) can finish.
    pub(crate) fn resolve(
        &self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        next: ConfigId,
        walk: &mut Walk,
    ) -> Result<(), Stopped> {
        match &self.undecided {
            Undecided::Subtrees(nodes) => {
                nodes.iter().try_for_each(|&node| walk.run(parser, vocab.trie(), node, next, usize::MAX))
            }
            Undecided::Remainders(trie) => walk.run(parser, trie, 0, next, usize::MAX),
        }
    }
}
