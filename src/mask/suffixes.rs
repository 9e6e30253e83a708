//! Suffixes of context-dependent tokens: the bytes of each token after one exit of its rule.
//!
//! Tokens with equal suffixes are decided together, by a trie of suffixes. Making that trie costs
//! time, and what follows an exit usually reads few first bytes. The suffixes are therefore grouped
//! by the shape of their first byte, and each group gets its trie when a following configuration
//! first reads such a byte.

use std::sync::{Arc, OnceLock};

use super::rule_walks::RuleWalks;
use super::token_set::bit;
use super::trie_walk::{TrieWalk, WalkError};
use crate::fsm::{ByteSet, shape, shape_bytes};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Exit, Parser};
use crate::vocab::{NodeId, Tree, Trie, Vocabulary};

/// Up to so many nodes, the subtrees are walked in the vocabulary's trie; otherwise suffixes are
/// grouped.
const MAX_SUBTREES: usize = 4;
/// So few suffixes are one group.
const MAX_SINGLE_GROUP: usize = 256;

/// The suffixes after one exit.
#[derive(Debug)]
pub(super) enum Suffixes {
    /// Those of the tokens strictly below these nodes of the vocabulary's trie.
    Subtrees(Box<[NodeId]>),
    /// Grouped by first byte where there are many.
    Groups(Box<[SuffixGroup]>),
}

/// Suffixes with similar first bytes.
#[derive(Debug)]
pub(super) struct SuffixGroup {
    /// The first bytes: those of one shape, or all.
    first_bytes: ByteSet,
    /// Tokens, and the number of their bytes in front of the suffix.
    tokens: Box<[(TokenId, u16)]>,
    /// The trie of suffixes, made on demand.
    trie: OnceLock<Arc<Trie>>,
}

impl SuffixGroup {
    fn new(first_bytes: ByteSet, tokens: Vec<(TokenId, u16)>) -> SuffixGroup {
        SuffixGroup { first_bytes, tokens: tokens.into(), trie: OnceLock::new() }
    }

    /// The trie of the suffixes.
    fn trie(&self, vocab: &Vocabulary) -> &Arc<Trie> {
        self.trie.get_or_init(|| {
            let suffixes = self
                .tokens
                .iter()
                .filter_map(|&(id, from)| Some((vocab.bytes(id)?.get(usize::from(from)..)?, id)));
            Arc::new(Trie::build(suffixes.collect()))
        })
    }
}

/// How suffixes are resolved, and where the accepted tokens go.
pub(super) struct SuffixWalk<'w> {
    pub(super) out: &'w mut TrieWalk,
    /// Resolves rule by rule; `None` walks with whole configurations.
    pub(super) rule_walks: Option<&'w mut RuleWalks>,
}

impl SuffixWalk<'_> {
    /// Adds the tokens strictly below these nodes that `next` accepts.
    fn below(
        &mut self,
        parser: &mut Parser,
        trie: &Arc<Trie>,
        nodes: &[NodeId],
        next: ConfigId,
    ) -> Result<(), WalkError> {
        if let Some(rule_walks) = &mut self.rule_walks {
            return rule_walks.resolve(parser, trie, (nodes, next), self.out);
        }
        nodes.iter().try_for_each(|&node| self.out.run_below(parser, trie, node, next, usize::MAX))
    }
}

/// Suffixes by the shapes of their first bytes: tokens, and the number of bytes in front.
struct ShapeBuckets(Vec<Vec<(TokenId, u16)>>);

impl ShapeBuckets {
    fn new() -> ShapeBuckets {
        ShapeBuckets(vec![Vec::new(); 256])
    }

    /// Groups the suffixes.
    fn finish(self) -> Suffixes {
        if self.0.iter().map(Vec::len).sum::<usize>() <= MAX_SINGLE_GROUP {
            return Suffixes::Groups(Box::new([SuffixGroup::new(ByteSet::ALL, self.0.concat())]));
        }
        let buckets = self.0.into_iter().zip(0..=u8::MAX).filter(|(tokens, _)| !tokens.is_empty());
        let group = |(tokens, shape)| {
            let (lo, hi) = shape_bytes(shape);
            SuffixGroup::new(ByteSet::range(lo, hi), tokens)
        };
        Suffixes::Groups(buckets.map(group).collect())
    }
}

impl Suffixes {
    /// As [`Suffixes::below`] for exits of several kinds, in any order.
    pub(super) fn by_exit(
        (vocab, tree): (&Vocabulary, &Tree),
        accepted: &[u32],
        mut exits: Vec<(Exit, NodeId)>,
    ) -> Vec<(Exit, Suffixes)> {
        exits.sort_unstable();
        exits.dedup();
        let after_exit = |exits: &[(Exit, NodeId)]| {
            Some((exits[0].0, Suffixes::below((vocab, tree), accepted, exits)?))
        };
        exits.chunk_by(|a, b| a.0 == b.0).filter_map(after_exit).collect()
    }

    /// The suffixes below some nodes of tokens that are not in the row `accepted`; None if there
    /// are none. The nodes are in ascending order.
    fn below(
        (vocab, tree): (&Vocabulary, &Tree),
        accepted: &[u32],
        exits: &[(Exit, NodeId)],
    ) -> Option<Suffixes> {
        let is_trie = std::ptr::eq(tree, &**vocab.trie());
        let (mut buckets, mut nodes) = (ShapeBuckets::new(), Vec::new());
        // Context-dependent tokens of one subtree, and for each of its tokens how many of them come
        // before it.
        let (mut dependent, mut dependent_before): (Vec<TokenId>, Vec<u32>) =
            (Vec::new(), Vec::new());
        let mut subtree = 0..0;
        let mut end = NodeId::ROOT;
        for &(_, node) in exits {
            if node >= end {
                end = tree.node(node).end;
                subtree = tree.range_below(node);
                dependent.clear();
                dependent_before.clear();
                for &token in tree.tokens(subtree.clone()) {
                    dependent_before.push(dependent.len() as u32);
                    if !bit(accepted, token) {
                        dependent.push(token);
                    }
                }
                dependent_before.push(dependent.len() as u32);
            }
            let dependent_in = |tokens: std::ops::Range<usize>| {
                let at = |token: usize| dependent_before[token - subtree.start] as usize;
                &dependent[at(tokens.start)..at(tokens.end)]
            };
            if dependent_in(tree.range_below(node)).is_empty() {
                continue;
            }
            nodes.push(node);
            let depth = tree.node(node).depth;
            for child in tree.children(node) {
                let tokens = dependent_in(tree.range_at(child).start..tree.range_below(child).end);
                let byte = tree.node(child).byte;
                let bucket = &mut buckets.0[usize::from(if is_trie { shape(byte) } else { byte })];
                bucket.extend(tokens.iter().map(|&id| (id, depth)));
            }
        }
        match nodes.len() {
            0 => None,
            n if n <= MAX_SUBTREES && is_trie => Some(Suffixes::Subtrees(nodes.into_boxed_slice())),
            _ => Some(buckets.finish()),
        }
    }

    /// The suffixes of these tokens after so many of their bytes.
    pub(super) fn listed(vocab: &Vocabulary, tokens: &[(TokenId, u16)]) -> Option<Suffixes> {
        let mut buckets = ShapeBuckets::new();
        for &(id, from) in tokens {
            if let Some(&byte) = vocab.bytes(id).and_then(|bytes| bytes.get(usize::from(from))) {
                buckets.0[usize::from(shape(byte))].push((id, from));
            }
        }
        (!tokens.is_empty()).then(|| buckets.finish())
    }

    /// Adds the tokens whose suffixes `next` accepts.
    pub(super) fn resolve(
        &self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        next: ConfigId,
        walk: &mut SuffixWalk<'_>,
    ) -> Result<(), WalkError> {
        let groups = match self {
            Suffixes::Subtrees(nodes) => {
                return walk.below(parser, vocab.shared_trie(), nodes, next);
            }
            Suffixes::Groups(groups) => groups,
        };
        let first_bytes = parser.allowed(next);
        for group in groups.iter().filter(|group| first_bytes.meets(&group.first_bytes)) {
            walk.below(parser, group.trie(vocab), &[NodeId::ROOT], next)?;
        }
        Ok(())
    }

    /// Memory in use, in bytes, approximately, with all tries built.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Suffixes::Subtrees(nodes) => nodes.len() * 4,
            Suffixes::Groups(groups) => {
                groups.iter().map(|group| group.tokens.len() * 32 + 256).sum()
            }
        }
    }
}
