//! What is left of undecided tokens behind one exit, sorted out when it is asked for: of all that may be left, what follows reads a few
//! bytes' worth.

use std::sync::{Arc, OnceLock};

use super::entry::Entry;
use super::section::Sections;
use super::set::bit;
use super::walk::{Stopped, Walk};
use crate::fsm::{ByteSet, shape, shape_bytes};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Parser};
use crate::vocab::{Tree, Trie, Vocabulary};

/// Where few nodes have everything undecided below them, the subtrees are walked in place; otherwise remainders are grouped.
const SUBTREES: usize = 4;
/// Few remainders are sorted out at once.
const FEW: usize = 256;

/// What is left of undecided tokens behind one exit.
#[derive(Debug)]
pub(super) enum Rest {
    /// The words below these nodes of the vocabulary's trie.
    Subtrees(Box<[u32]>),
    /// What is left of each token, by its first byte where there are many.
    Remainders(Box<[Remainders]>),
}

/// Remainders that begin alike.
#[derive(Debug)]
pub(super) struct Remainders {
    /// With one of these bytes: those of one shape, or all.
    begins: ByteSet,
    /// Tokens, and how many of their bytes there have been.
    words: Box<[(TokenId, u16)]>,
    /// Equal remainders share a node.
    trie: OnceLock<Trie>,
}

/// Remainders by the shapes of their first bytes.
struct Sorted(Vec<Vec<(TokenId, u16)>>);

impl Sorted {
    fn new() -> Sorted {
        Sorted(vec![Vec::new(); 256])
    }

    fn add(&mut self, vocab: &Vocabulary, words: impl Iterator<Item = (TokenId, u16)>) {
        for (id, from) in words {
            if let Some(&byte) = vocab.bytes(id).and_then(|bytes| bytes.get(usize::from(from))) {
                self.0[usize::from(shape(byte))].push((id, from));
            }
        }
    }

    fn finish(self) -> Rest {
        let alike = |begins, words: Vec<_>| Remainders { begins, words: words.into(), trie: OnceLock::new() };
        if self.0.iter().map(Vec::len).sum::<usize>() <= FEW {
            return Rest::Remainders(Box::new([alike(ByteSet::ALL, self.0.concat())]));
        }
        let all = self.0.into_iter().zip(0..=u8::MAX).filter(|(words, _)| !words.is_empty());
        let of_shape = |(words, shape)| {
            let (lo, hi) = shape_bytes(shape);
            alike(ByteSet::range(lo, hi), words)
        };
        Rest::Remainders(all.map(of_shape).collect())
    }
}

impl Remainders {
    fn trie(&self, vocab: &Vocabulary) -> &Trie {
        self.trie.get_or_init(|| {
            let left =
                self.words.iter().filter_map(|&(id, from)| Some((vocab.bytes(id)?.get(usize::from(from)..)?, id)));
            Trie::build(left.collect())
        })
    }
}

impl Rest {
    /// What is open below some nodes (that is, not in the row `accepted`), if anything. The nodes are in ascending order.
    pub(super) fn of((vocab, tree): (&Vocabulary, &Tree), accepted: &[u32], exits: &[(Exit, u32)]) -> Option<Rest> {
        let is_trie = std::ptr::eq(tree, &**vocab.trie());
        let is_shapes = std::ptr::eq(tree, vocab.shapes().tree());
        let (mut sorted, mut nodes) = (Sorted::new(), Vec::new());
        // Open words of one subtree, and how many of them are before each of its words.
        let (mut open, mut before): (Vec<TokenId>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut subtree = 0..0;
        let mut end = 0;
        for &(_, node) in exits {
            if node >= end {
                end = tree.node(node).end;
                subtree = tree.range_below(node);
                open.clear();
                before.clear();
                for &word in tree.words(subtree.clone()) {
                    before.push(open.len() as u32);
                    if !bit(accepted, word) {
                        open.push(word);
                    }
                }
                before.push(open.len() as u32);
            }
            let left = |words: std::ops::Range<usize>| {
                let at = |word: usize| before[word - subtree.start] as usize;
                &open[at(words.start)..at(words.end)]
            };
            let all = left(tree.range_below(node));
            if all.is_empty() {
                continue;
            }
            nodes.push(node);
            let depth = tree.node(node).depth;
            if !is_trie && !is_shapes {
                // The bytes of other trees mean what they like.
                sorted.add(vocab, all.iter().map(|&id| (id, depth)));
                continue;
            }
            for child in tree.children(node) {
                let byte = tree.node(child).byte;
                let words = left(tree.range_at(child).start..tree.range_below(child).end);
                let shape = if is_trie { shape(byte) } else { byte };
                sorted.0[usize::from(shape)].extend(words.iter().map(|&id| (id, depth)));
            }
        }
        match nodes.len() {
            0 => None,
            n if n <= SUBTREES && is_trie => Some(Rest::Subtrees(nodes.into_boxed_slice())),
            _ => Some(sorted.finish()),
        }
    }

    /// These tokens, without so many of their bytes.
    pub(super) fn listed(vocab: &Vocabulary, words: &[(TokenId, u16)]) -> Option<Rest> {
        let mut sorted = Sorted::new();
        sorted.add(vocab, words.iter().copied());
        (!words.is_empty()).then(|| sorted.finish())
    }

    /// Adds to a walk the tokens that `next` can finish.
    pub(super) fn resolve(
        &self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        next: ConfigId,
        walk: &mut Walk,
    ) -> Result<(), Stopped> {
        match self {
            Rest::Subtrees(nodes) => {
                nodes.iter().try_for_each(|&node| walk.run(parser, vocab.trie(), node, next, usize::MAX))
            }
            Rest::Remainders(all) => {
                let begins = parser.allowed(next);
                beginning(all, begins).try_for_each(|some| walk.run(parser, some.trie(vocab), 0, next, usize::MAX))
            }
        }
    }

    /// As [`Rest::resolve`], rule by rule; `entry` is whose this is.
    pub(super) fn resolve_in_sections(
        &self,
        (parser, vocab): (&mut Parser, &Vocabulary),
        entry: &Arc<Entry>,
        next: ConfigId,
        (walk, sections): (&mut Walk, &mut Sections),
    ) -> Result<(), Stopped> {
        match self {
            Rest::Subtrees(nodes) => sections.resolve(parser, (vocab.trie(), entry), (nodes, next), walk),
            Rest::Remainders(all) => {
                let begins = parser.allowed(next);
                beginning(all, begins)
                    .try_for_each(|some| sections.resolve(parser, (some.trie(vocab), entry), (&[0], next), walk))
            }
        }
    }

    /// Memory held, in bytes, roughly, all of it asked for.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Rest::Subtrees(nodes) => nodes.len() * 4,
            Rest::Remainders(all) => all.iter().map(|some| some.words.len() * 32 + 256).sum(),
        }
    }
}

/// Those that may begin with one of these bytes.
fn beginning(all: &[Remainders], begins: ByteSet) -> impl Iterator<Item = &Remainders> {
    all.iter().filter(move |some| begins.meets(&some.begins))
}
