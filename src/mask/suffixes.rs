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

/// Below so few nodes of the vocabulary's trie, suffixes are one group and read there.
const MAX_SUBTREES: usize = 4;
/// So few suffixes are one group.
const MAX_SINGLE_GROUP: usize = 256;
/// With so many tokens a node, a group is walked in the vocabulary's trie as well.
const TOKENS_PER_NODE: usize = 2;

/// The suffixes after one exit, in groups by first byte where there are many.
#[derive(Debug)]
pub(super) struct Suffixes(Box<[SuffixGroup]>);

/// Suffixes with similar first bytes.
#[derive(Debug)]
struct SuffixGroup {
    /// The first bytes: those of one shape, or all.
    first_bytes: ByteSet,
    /// How the suffixes are stored.
    store: SuffixStore,
}

/// How the suffixes of a group are stored.
#[derive(Debug)]
enum SuffixStore {
    /// The tokens at and below these nodes of the vocabulary's trie. Some may be accepted already.
    Nodes(Box<[NodeId]>),
    /// Tokens, and the number of their bytes in front of the suffix; and the trie of suffixes, made
    /// on demand.
    List(Box<[(TokenId, u16)]>, OnceLock<Arc<Trie>>),
}

/// How suffixes are resolved, and where the accepted tokens go.
pub(super) struct SuffixWalk<'w> {
    pub(super) out: &'w mut TrieWalk,
    /// Resolves rule by rule; `None` walks with whole configurations.
    pub(super) rule_walks: Option<&'w mut RuleWalks>,
}

impl SuffixWalk<'_> {
    /// Adds the tokens at and below these nodes that `next` accepts, where `next` is the
    /// configuration before the nodes' bytes.
    fn run(
        &mut self,
        parser: &mut Parser,
        trie: &Arc<Trie>,
        nodes: &[NodeId],
        next: ConfigId,
    ) -> Result<(), WalkError> {
        match &mut self.rule_walks {
            Some(walks) => walks.resolve(parser, trie, nodes, next, self.out),
            None => self.out.run_from(parser, trie, nodes, next),
        }
    }
}

/// Suffixes whose first bytes have one shape.
struct ShapeBucket {
    tokens: Vec<(TokenId, u16)>,
    /// Nodes of the vocabulary's trie with exactly these tokens, if there are such nodes.
    nodes: Option<Vec<NodeId>>,
}

/// Suffixes by the shapes of their first bytes.
struct ShapeBuckets(Vec<ShapeBucket>);

impl ShapeBuckets {
    /// `nodes`: they may be at nodes of the vocabulary's trie.
    fn new(nodes: bool) -> ShapeBuckets {
        ShapeBuckets(
            (0..256)
                .map(|_| ShapeBucket { tokens: Vec::new(), nodes: nodes.then(Vec::new) })
                .collect(),
        )
    }

    /// Chooses how each group is stored.
    fn finish(self) -> Suffixes {
        let list_group = |first_bytes, tokens: Vec<_>| SuffixGroup {
            first_bytes,
            store: SuffixStore::List(tokens.into(), OnceLock::new()),
        };
        if self.0.iter().map(|bucket| bucket.tokens.len()).sum::<usize>() <= MAX_SINGLE_GROUP {
            let all_tokens = self.0.into_iter().flat_map(|bucket| bucket.tokens).collect();
            return Suffixes(Box::new([list_group(ByteSet::ALL, all_tokens)]));
        }
        let buckets =
            self.0.into_iter().zip(0..=u8::MAX).filter(|(bucket, _)| !bucket.tokens.is_empty());
        let of_shape = |(bucket, shape): (ShapeBucket, u8)| {
            let (lo, hi) = shape_bytes(shape);
            let first_bytes = ByteSet::range(lo, hi);
            match bucket.nodes {
                Some(nodes)
                    if bucket.tokens.len() > MAX_SINGLE_GROUP
                        && nodes.len() * TOKENS_PER_NODE <= bucket.tokens.len() =>
                {
                    SuffixGroup { first_bytes, store: SuffixStore::Nodes(nodes.into()) }
                }
                _ => list_group(first_bytes, bucket.tokens),
            }
        };
        Suffixes(buckets.map(of_shape).collect())
    }
}

impl Suffixes {
    /// As [`Suffixes::below`] for exits of several kinds, in any order.
    pub(super) fn by_exit(
        vocab: &Vocabulary,
        tree: &Tree,
        accepted: &[u32],
        mut exits: Vec<(Exit, NodeId)>,
    ) -> Vec<(Exit, Suffixes)> {
        exits.sort_unstable();
        exits.dedup();
        let after_exit = |exits: &[(Exit, NodeId)]| {
            Some((exits[0].0, Suffixes::below(vocab, tree, accepted, exits)?))
        };
        exits.chunk_by(|a, b| a.0 == b.0).filter_map(after_exit).collect()
    }

    /// The suffixes below some nodes of tokens that are not in the row `accepted`; None if there
    /// are none. The nodes are in ascending order.
    fn below(
        vocab: &Vocabulary,
        tree: &Tree,
        accepted: &[u32],
        exits: &[(Exit, NodeId)],
    ) -> Option<Suffixes> {
        let is_trie = std::ptr::eq(tree, &**vocab.trie());
        let (mut buckets, mut nodes) = (ShapeBuckets::new(is_trie), Vec::new());
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
                let byte = tree.node(child).byte;
                let range = tree.range_at(child).start..tree.range_below(child).end;
                let tokens = dependent_in(range.clone());
                let bucket = &mut buckets.0[usize::from(if is_trie { shape(byte) } else { byte })];
                bucket.tokens.extend(tokens.iter().map(|&id| (id, depth)));
                match &mut bucket.nodes {
                    Some(nodes) if tokens.len() == range.len() => nodes.push(child),
                    nodes if !tokens.is_empty() => *nodes = None,
                    _ => {}
                }
            }
        }
        match nodes.len() {
            0 => None,
            n if n <= MAX_SUBTREES && is_trie => {
                let children = nodes.iter().flat_map(|&node| tree.children(node)).collect();
                let store = SuffixStore::Nodes(children);
                Some(Suffixes(Box::new([SuffixGroup { first_bytes: ByteSet::ALL, store }])))
            }
            _ => Some(buckets.finish()),
        }
    }

    /// The suffixes of these tokens after so many of their bytes.
    pub(super) fn listed(vocab: &Vocabulary, tokens: &[(TokenId, u16)]) -> Option<Suffixes> {
        let mut buckets = ShapeBuckets::new(false);
        for &(id, from) in tokens {
            if let Some(&byte) = vocab.bytes(id).and_then(|bytes| bytes.get(usize::from(from))) {
                buckets.0[usize::from(shape(byte))].tokens.push((id, from));
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
        let first_bytes = parser.allowed(next);
        for group in self.0.iter().filter(|group| first_bytes.meets(&group.first_bytes)) {
            match &group.store {
                SuffixStore::Nodes(nodes) => walk.run(parser, vocab.shared_trie(), nodes, next)?,
                SuffixStore::List(tokens, trie) => {
                    let trie = suffix_trie(vocab, tokens, trie);
                    let nodes: Vec<NodeId> = trie.children(NodeId::ROOT).collect();
                    walk.run(parser, trie, &nodes, next)?;
                }
            }
        }
        Ok(())
    }

    /// Memory in use, in bytes, approximately, with all tries built.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |group: &SuffixGroup| match &group.store {
            SuffixStore::Nodes(nodes) => nodes.len() * 4 + 64,
            SuffixStore::List(tokens, _) => tokens.len() * 32 + 256,
        };
        self.0.iter().map(bytes).sum()
    }
}

/// The trie of these suffixes.
fn suffix_trie<'t>(
    vocab: &Vocabulary,
    tokens: &[(TokenId, u16)],
    trie: &'t OnceLock<Arc<Trie>>,
) -> &'t Arc<Trie> {
    trie.get_or_init(|| {
        let suffixes = tokens
            .iter()
            .filter_map(|&(id, from)| Some((vocab.bytes(id)?.get(usize::from(from)..)?, id)));
        Arc::new(Trie::build(suffixes.collect()))
    })
}
