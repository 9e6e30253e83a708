//! Where two states part ways on the vocabulary: what one's entry has beside the other's.

use super::entry::strictly_below;
use super::node_sets::sort_kinds;
use super::suffixes::Rest;
use super::token_set::{TokenSet, bit};
use super::trie_walk::Stopped;
use crate::ids::TokenId;
use crate::matcher::{Asking, ConfigId, DEAD, Exit, Parser, SWALLOW};
use crate::vocab::{Tree, Trie, Vocabulary, descend};

/// What one state (`this`) accepts and leaves undecided, beside another one. Nodes are visited in depth-first order.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Accepted by the other only.
    pub(super) less: Vec<TokenId>,
    /// Accepted by this one only.
    pub(super) more: Vec<TokenId>,
    /// Undecided by the other in a way that is not this one's.
    pub(super) without: Vec<TokenId>,
    /// Nodes with exits that are this one's only.
    exits: Vec<(Exit, u32)>,
    /// All exits of this one on the way to a node at which the other's say is taken from the words below, with that node.
    taken: Vec<(Exit, u32, u32)>,
    /// Exits of this one on the way to where the walk is.
    way: Vec<(Exit, u32)>,
}

/// What a state has come to at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'e> {
    /// It cannot read so far.
    pub(super) dead: bool,
    /// How it ends, or may end.
    pub(super) exits: &'e [Exit],
}

impl Difference {
    /// Visits the nodes at which the configurations differ; those that are equal or go on alike decide everything below alike, unless the
    /// other one's say has been taken from it further up.
    pub(super) fn walk(
        &mut self,
        parser: &mut Parser,
        trie: &Trie,
        this: ConfigId,
        other: ConfigId,
    ) -> Result<(), Stopped> {
        let (mut own, mut others): (Vec<Exit>, Vec<Exit>) = Default::default();
        let mut looked = 0;
        let asking = Asking::new(parser, 0);
        descend(trie, (this, other, false), |at, byte, (this, other, taken)| {
            let a = parser.step(this, byte)?;
            let b = if this == other { a } else { parser.step(other, byte)? };
            if a == b && (a == DEAD || !taken) {
                return Ok(None);
            }
            if !taken && a != DEAD && b != DEAD && parser.goes_on_alike(a, b)? {
                return Ok(None);
            }
            let nodes = trie.node(at).end - at;
            looked += 1;
            if a != DEAD && b != DEAD && nodes >= SWALLOW {
                // Both accept all that is below, whatever they leave undecided on the way.
                let (texts, asked) =
                    ((trie.kinds_below(at), trie.longest_below(at)), (&asking, looked));
                if parser.reads_any(a, texts, asked)? && parser.reads_any(b, texts, asked)? {
                    return Ok(None);
                }
            }
            own.clear();
            own.extend(parser.exits(a));
            others.clear();
            others.extend(parser.exits(b));
            let (a_is, b_is) =
                (Seen { dead: a == DEAD, exits: &own }, Seen { dead: b == DEAD, exits: &others });
            Ok(self.visit(trie, at, (a_is, b_is), taken).map(|taken| (a, b, taken)))
        })
    }

    /// Notes what the two are at a node. `taken`: the other's say has been taken further up. Returns whether it has been taken by now;
    /// nothing where this one is dead, so that there is nothing to see below.
    pub(super) fn visit(
        &mut self,
        tree: &Tree,
        at: u32,
        (this, other): (Seen, Seen),
        taken: bool,
    ) -> Option<bool> {
        while self.way.last().is_some_and(|&(_, node)| tree.node(node).end <= at) {
            self.way.pop();
        }
        if this.dead {
            // Whatever the other accepts or leaves open from here on, this one rejects.
            self.less.extend_from_slice(tree.words_below(at));
            self.without.extend_from_slice(tree.words_below(at));
            if !taken {
                self.taken.extend(self.way.iter().map(|&(exit, node)| (exit, node, at)));
            }
            return None;
        }
        if other.dead {
            self.more.extend_from_slice(tree.words_at(at));
        }
        if taken {
            self.taken.extend(this.exits.iter().map(|&exit| (exit, at, at)));
            return Some(true);
        }
        self.way.extend(this.exits.iter().map(|&exit| (exit, at)));
        let take = other.exits.iter().any(|exit| !this.exits.contains(exit));
        if take {
            self.without.extend_from_slice(strictly_below(tree, at));
            self.taken.extend(self.way.iter().map(|&(exit, node)| (exit, node, at)));
        } else {
            let own = this.exits.iter().filter(|exit| !other.exits.contains(exit));
            self.exits.extend(own.map(|&exit| (exit, at)));
        }
        Some(take)
    }

    /// What this one leaves undecided by exits of its own. `accepted`: all it accepts.
    pub(super) fn own(
        mut self,
        vocab: &Vocabulary,
        accepted: &TokenSet,
        tree: &Tree,
    ) -> Vec<(Exit, Rest)> {
        let mut own: Vec<(Exit, Rest)> = Vec::new();
        if self.exits.is_empty() && self.taken.is_empty() {
            return own;
        }
        let row = accepted.written(vocab.mask_words());
        sort_kinds(&mut self.exits);
        for exits in self.exits.chunk_by(|a, b| a.0 == b.0) {
            own.extend(Rest::of((vocab, tree), &row, exits).map(|rest| (exits[0].0, rest)));
        }
        self.taken.sort_unstable();
        for ways in self.taken.chunk_by(|a, b| a.0 == b.0) {
            let mut listed: Vec<(TokenId, u16)> = Vec::new();
            for &(_, from, below) in ways {
                let depth = tree.node(from).depth;
                let words = if from == below {
                    strictly_below(tree, from)
                } else {
                    tree.words_below(below)
                };
                listed.extend(
                    words.iter().filter(|&&word| !bit(&row, word)).map(|&word| (word, depth)),
                );
            }
            listed.sort_unstable();
            listed.dedup();
            own.extend(Rest::listed(vocab, &listed).map(|rest| (ways[0].0, rest)));
        }
        own
    }
}
