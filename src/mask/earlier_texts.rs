//! The walk along earlier texts: finds the tokens that make a value or a key equal to an earlier
//! one of the same array or object.
//!
//! Two configurations are stepped side by side along the token trie: the real one, and the *plain*
//! one, in which nothing is compared. The walk follows the bytes that lead towards an earlier text.
//! Where the real configuration rejects a byte that the plain one reads, the tokens below are
//! rejected.

use smallvec::SmallVec;

use crate::fsm::ByteSet;
use crate::ids::TokenId;
use crate::matcher::{ConfigId, DEAD, Parser, ParserLimit};
use crate::vocab::Trie;

/// Trie nodes, usually few.
pub(super) type TrieNodes = SmallVec<[u32; 16]>;

/// What is compared with the earlier texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// Elements of an array.
    Values,
    /// Keys of an object.
    Keys,
}

/// A position of the walk.
pub(super) struct EarlierPosition {
    /// Nodes of the trie that stand for the same text, white space in front of it apart.
    pub(super) nodes: TrieNodes,
    /// The configuration there.
    pub(super) config: ConfigId,
    /// The configuration if nothing were compared.
    pub(super) plain: ConfigId,
    /// Whether the value or key may begin here. One that begins within a token, after other text,
    /// is found by the candidates.
    pub(super) begin: bool,
}

impl Compared {
    /// The bytes that lead towards an earlier text.
    fn bytes_towards(self, parser: &mut Parser, config: ConfigId, begin: bool) -> ByteSet {
        match self {
            Compared::Values => parser.bytes_towards_rivals(config, begin),
            Compared::Keys => parser.bytes_towards_duplicates(config, begin),
        }
    }

    /// The configuration if nothing is compared from here on.
    fn plain(self, parser: &mut Parser, config: ConfigId) -> ConfigId {
        match self {
            Compared::Values => parser.canonical(config),
            Compared::Keys => parser.store().plain(config),
        }
    }

    /// Whether the value or key may begin after this byte.
    fn is_in_front(self, byte: u8) -> bool {
        self == Compared::Keys && ByteSet::WHITE_SPACE.contains(byte)
    }

    /// Adds tokens that are rejected along earlier texts.
    pub(super) fn walk(
        self,
        parser: &mut Parser,
        trie: &Trie,
        start: EarlierPosition,
        rejected: &mut Vec<TokenId>,
    ) -> Result<(), ParserLimit> {
        let mut pending = vec![start];
        while let Some(EarlierPosition { nodes, config, plain, begin }) = pending.pop() {
            let towards = self.bytes_towards(parser, config, begin);
            // Where a text was not allowed to end, what would have followed it is rejected too.
            let diverged = self.plain(parser, config) != plain;
            if towards.is_empty() && !diverged {
                continue;
            }
            // A configuration that tracks keys has the items of the plain one.
            let readable = match self {
                Compared::Values => parser.allowed(config),
                Compared::Keys => ByteSet::ALL,
            };
            let mut bytes = parser.allowed(plain);
            if !diverged {
                bytes = bytes.intersect(&towards.union(&readable.complement()));
            }
            for byte in bytes.iter() {
                let mut nodes: TrieNodes =
                    nodes.iter().filter_map(|&node| trie.child(node, byte)).collect();
                if nodes.is_empty() {
                    continue;
                }
                let next = if readable.contains(byte) { parser.step(config, byte)? } else { DEAD };
                if next == DEAD {
                    nodes.iter().for_each(|&n| rejected.extend_from_slice(trie.words_below(n)));
                    continue;
                }
                nodes.retain(|node| trie.node(*node).end > *node + 1);
                if !nodes.is_empty() {
                    let plain = parser.step(plain, byte)?;
                    let begin = begin && self.is_in_front(byte);
                    pending.push(EarlierPosition { nodes, config: next, plain, begin });
                }
            }
        }
        Ok(())
    }
}
