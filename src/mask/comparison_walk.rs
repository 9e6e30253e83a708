//! The walk along earlier texts: finds the tokens that make a value or a key equal to an earlier
//! one of the same array or object.
//!
//! Two configurations are stepped side by side along the token trie: the real one, and the *base*
//! one, in which nothing is compared. The walk follows the bytes that lead towards an earlier text.
//! Where the real configuration rejects a byte that the base one reads, the tokens below are
//! rejected.

use smallvec::SmallVec;

use crate::fsm::{ByteSet, kind_bit};
use crate::ids::TokenId;
use crate::matcher::{ConfigId, Parser, ParserLimit, QUOTE};
use crate::vocab::{NodeId, Trie};

/// Trie nodes, usually few.
pub(super) type TrieNodes = SmallVec<[NodeId; 16]>;

/// What is compared with the earlier texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonKind {
    /// Elements of an array.
    Values,
    /// Keys of an object.
    Keys,
}

/// A position of the walk.
pub(super) struct ComparisonWalkState {
    /// Nodes of the trie that stand for the same text, white space in front of it apart.
    pub(super) nodes: TrieNodes,
    /// The configuration there.
    pub(super) config: ConfigId,
    /// The configuration if nothing were compared.
    pub(super) base: ConfigId,
    /// Whether the value or key may begin here. One that begins within a token, after other text,
    /// is found by the candidates.
    pub(super) may_begin: bool,
}

impl ComparisonKind {
    /// The bytes that lead towards an earlier text.
    fn bytes_matching_earlier(
        self,
        parser: &mut Parser,
        config: ConfigId,
        may_begin: bool,
    ) -> ByteSet {
        match self {
            ComparisonKind::Values => parser.bytes_matching_earlier_values(config, may_begin),
            ComparisonKind::Keys => parser.bytes_matching_earlier_keys(config, may_begin),
        }
    }

    /// The configuration if nothing is compared from here on.
    fn base(self, parser: &mut Parser, config: ConfigId) -> ConfigId {
        match self {
            ComparisonKind::Values => parser.canonical(config),
            ComparisonKind::Keys => parser.store().base(config),
        }
    }

    /// Whether the value or key may begin after this byte.
    fn is_in_front(self, byte: u8) -> bool {
        self == ComparisonKind::Keys && ByteSet::WHITE_SPACE.contains(byte)
    }

    /// Whether only a quote can make a text equal to an earlier one: what is compared are strings
    /// that always have infinitely many continuations.
    fn ends_quoted(self, parser: &Parser, config: ConfigId) -> bool {
        self == ComparisonKind::Keys || parser.compares_strings(config)
    }

    /// Adds tokens that are rejected along earlier texts.
    pub(super) fn walk(
        self,
        parser: &mut Parser,
        trie: &Trie,
        start: ComparisonWalkState,
        rejected: &mut Vec<TokenId>,
    ) -> Result<(), ParserLimit> {
        let mut pending = vec![start];
        while let Some(ComparisonWalkState { nodes, config, base, may_begin }) = pending.pop() {
            let matching = self.bytes_matching_earlier(parser, config, may_begin);
            // Where a text was not allowed to end, what would have followed it is rejected too.
            let diverged = self.base(parser, config) != base;
            if matching.is_empty() && !diverged {
                continue;
            }
            // A configuration that tracks keys has the items of the base one.
            let readable = match self {
                ComparisonKind::Values => parser.allowed(config),
                ComparisonKind::Keys => ByteSet::ALL,
            };
            let all_matter = diverged || !self.ends_quoted(parser, config);
            let mut bytes = parser.allowed(base);
            if !diverged {
                bytes = bytes.intersect(&matching.union(&readable.complement()));
            }
            for byte in bytes.iter() {
                let mut nodes: TrieNodes =
                    nodes.iter().filter_map(|&node| trie.child(node, byte)).collect();
                let any = all_matter || byte == QUOTE || !readable.contains(byte);
                nodes.retain(|node| any || trie.byte_kinds_below(*node) & kind_bit(QUOTE) != 0);
                if nodes.is_empty() {
                    continue;
                }
                let next = if readable.contains(byte) {
                    parser.step(config, byte)?
                } else {
                    ConfigId::DEAD
                };
                if next == ConfigId::DEAD {
                    nodes.iter().for_each(|&n| rejected.extend_from_slice(trie.tokens_below(n)));
                    continue;
                }
                nodes.retain(|node| !trie.is_leaf(*node));
                if !nodes.is_empty() {
                    let base = parser.step(base, byte)?;
                    let may_begin = may_begin && self.is_in_front(byte);
                    pending.push(ComparisonWalkState { nodes, config: next, base, may_begin });
                }
            }
        }
        Ok(())
    }
}
