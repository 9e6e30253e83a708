//! What is left of undecided tokens behind one exit, sorted out when it is asked for: of all that may be left, what follows reads a few
//! bytes' worth.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::entry::Entry;
use super::rule_walks::Sections;
use super::token_set::bit;
use super::trie_walk::{Stopped, Walk};
use crate::fsm::{ByteSet, shape, shape_bytes};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Parser};
use crate::vocab::{Tree, Trie, Vocabulary};

/// Where few nodes have everything undecided below them, the subtrees are walked in place; otherwise remainders are grouped.
const SUBTREES: usize = 4;
/// Few remainders are sorted out at once.
const FEW: usize = 256;
/// So many words to a node, they are walked there as well.
const MANY_WORDS: usize = 2;
/// It takes long to sort more than so many.
const SLOW: usize = 1024;

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
    left: Left,
}

/// Where remainders are found.
#[derive(Debug)]
enum Left {
    /// At and below these nodes of the vocabulary's trie, all of whose words are undecided: there are many to a node.
    Nodes(Box<[u32]>),
    /// Tokens, and how many of their bytes there have been. Equal remainders share a node.
    Words(Box<[(TokenId, u16)]>, OnceLock<Trie>),
    /// The same, and nodes as above: the first to ask reads them there, as sorting them takes longer than that.
    Late {
        words: Box<[(TokenId, u16)]>,
        trie: OnceLock<Trie>,
        nodes: Box<[u32]>,
        asked: AtomicBool,
    },
}

/// Remainders whose first bytes are of one shape.
struct Alike {
    words: Vec<(TokenId, u16)>,
    /// Nodes of the vocabulary's trie that have all words found there, if all were found at such.
    nodes: Option<Vec<u32>>,
}

/// Remainders by the shapes of their first bytes.
struct Sorted(Vec<Alike>);

impl Sorted {
    /// `nodes`: they may be at nodes of the vocabulary's trie.
    fn new(nodes: bool) -> Sorted {
        Sorted((0..256).map(|_| Alike { words: Vec::new(), nodes: nodes.then(Vec::new) }).collect())
    }

    fn add(&mut self, vocab: &Vocabulary, words: impl Iterator<Item = (TokenId, u16)>) {
        for (id, from) in words {
            if let Some(&byte) = vocab.bytes(id).and_then(|bytes| bytes.get(usize::from(from))) {
                self.0[usize::from(shape(byte))].words.push((id, from));
            }
        }
    }

    fn finish(self) -> Rest {
        let words = |begins, words: Vec<_>| Remainders {
            begins,
            left: Left::Words(words.into(), OnceLock::new()),
        };
        if self.0.iter().map(|alike| alike.words.len()).sum::<usize>() <= FEW {
            let all = self.0.into_iter().flat_map(|alike| alike.words).collect();
            return Rest::Remainders(Box::new([words(ByteSet::ALL, all)]));
        }
        let all = self.0.into_iter().zip(0..=u8::MAX).filter(|(alike, _)| !alike.words.is_empty());
        let of_shape = |(alike, shape): (Alike, u8)| {
            let (lo, hi) = shape_bytes(shape);
            let begins = ByteSet::range(lo, hi);
            match alike.nodes {
                Some(nodes)
                    if alike.words.len() > FEW && nodes.len() * MANY_WORDS <= alike.words.len() =>
                {
                    Remainders { begins, left: Left::Nodes(nodes.into()) }
                }
                Some(nodes) if alike.words.len() > SLOW => {
                    let (words, nodes, asked) =
                        (alike.words.into(), nodes.into(), AtomicBool::new(false));
                    Remainders {
                        begins,
                        left: Left::Late { words, trie: OnceLock::new(), nodes, asked },
                    }
                }
                _ => words(begins, alike.words),
            }
        };
        Rest::Remainders(all.map(of_shape).collect())
    }
}

impl Rest {
    /// What is open below some nodes (that is, not in the row `accepted`), if anything. The nodes are in ascending order.
    pub(super) fn of(
        (vocab, tree): (&Vocabulary, &Tree),
        accepted: &[u32],
        exits: &[(Exit, u32)],
    ) -> Option<Rest> {
        let is_trie = std::ptr::eq(tree, &**vocab.trie());
        let is_shapes = std::ptr::eq(tree, vocab.shapes().tree());
        let (mut sorted, mut nodes) = (Sorted::new(is_trie), Vec::new());
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
                let range = tree.range_at(child).start..tree.range_below(child).end;
                let words = left(range.clone());
                let alike = &mut sorted.0[usize::from(if is_trie { shape(byte) } else { byte })];
                alike.words.extend(words.iter().map(|&id| (id, depth)));
                match &mut alike.nodes {
                    Some(nodes) if words.len() == range.len() => nodes.push(child),
                    nodes if !words.is_empty() => *nodes = None,
                    _ => {}
                }
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
        let mut sorted = Sorted::new(false);
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
            Rest::Subtrees(nodes) => nodes
                .iter()
                .try_for_each(|&node| walk.run(parser, vocab.trie(), node, next, usize::MAX)),
            Rest::Remainders(all) => {
                let begins = parser.allowed(next);
                beginning(all, begins).try_for_each(|some| match &some.left {
                    Left::Nodes(nodes) => walk.run_into(parser, vocab.trie(), nodes, next),
                    Left::Late { nodes, asked, .. } if !asked.swap(true, Ordering::Relaxed) => {
                        walk.run_into(parser, vocab.trie(), nodes, next)
                    }
                    Left::Words(words, trie) | Left::Late { words, trie, .. } => {
                        walk.run(parser, sorted_out(vocab, words, trie), 0, next, usize::MAX)
                    }
                })
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
            Rest::Subtrees(nodes) => {
                sections.resolve(parser, (vocab.trie(), entry), (nodes, next), walk)
            }
            Rest::Remainders(all) => {
                let begins = parser.allowed(next);
                beginning(all, begins).try_for_each(|some| match &some.left {
                    Left::Nodes(nodes) => {
                        sections.resolve_at(parser, (vocab.trie(), entry), (nodes, next), walk)
                    }
                    Left::Words(words, trie) | Left::Late { words, trie, .. } => {
                        let trie = sorted_out(vocab, words, trie);
                        sections.resolve(parser, (trie, entry), (&[0], next), walk)
                    }
                })
            }
        }
    }

    /// Memory held, in bytes, roughly, all of it asked for.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Rest::Subtrees(nodes) => nodes.len() * 4,
            Rest::Remainders(all) => {
                let bytes = |some: &Remainders| match &some.left {
                    Left::Nodes(nodes) => nodes.len() * 4 + 64,
                    Left::Words(words, _) => words.len() * 32 + 256,
                    Left::Late { words, nodes, .. } => words.len() * 32 + nodes.len() * 4 + 256,
                };
                all.iter().map(bytes).sum()
            }
        }
    }
}

/// What is left of these words, as a trie.
fn sorted_out<'t>(
    vocab: &Vocabulary,
    words: &[(TokenId, u16)],
    trie: &'t OnceLock<Trie>,
) -> &'t Trie {
    trie.get_or_init(|| {
        let left = words
            .iter()
            .filter_map(|&(id, from)| Some((vocab.bytes(id)?.get(usize::from(from)..)?, id)));
        Trie::build(left.collect())
    })
}

/// Those that may begin with one of these bytes.
fn beginning(all: &[Remainders], begins: ByteSet) -> impl Iterator<Item = &Remainders> {
    all.iter().filter(move |some| begins.meets(&some.begins))
}
