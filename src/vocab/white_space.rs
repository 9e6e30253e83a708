//! Tokens by the runs of white space in them.
//!
//! Grammars bound white space, so that a model does not write it for ever. The bound can only
//! reject tokens with runs longer than the room left; this index finds those tokens. A *long* run
//! has more than [`LONG_GAP`] bytes.

use super::Trie;
use crate::fsm::{ByteSet, LONG_GAP};
use crate::ids::TokenId;

/// The white space in the tokens of a vocabulary.
#[derive(Debug)]
pub(crate) struct WhiteSpaceIndex {
    /// By token id: bytes of white space at its start.
    leading_count: Vec<u16>,
    /// Tokens with at least two such bytes, those with most first.
    by_leading_count: Vec<TokenId>,
    /// Tokens with a long run after other bytes.
    with_inner_run: Vec<TokenId>,
    /// Tokens that are one long run and nothing else, each with the set of its bytes.
    only_run: Vec<(ByteSet, TokenId)>,
    /// All other tokens with a long run.
    run_and_text: Vec<TokenId>,
    /// All tokens with a long run.
    long_trie: Trie,
    /// The same, in ascending order.
    long_sorted: Vec<TokenId>,
}

impl WhiteSpaceIndex {
    /// From the tokens with text, for a vocabulary of this width. Cost: linear in all bytes.
    pub(super) fn new(tokens: &[(&[u8], TokenId)], width: usize) -> WhiteSpaceIndex {
        let is_white = |byte: &u8| ByteSet::WHITE_SPACE.contains(*byte);
        let mut leading_count = vec![0u16; width];
        let (mut by_leading_count, mut with_inner_run, mut long_tokens) =
            (Vec::new(), Vec::new(), Vec::new());
        let (mut only_run, mut run_and_text) = (Vec::new(), Vec::new());
        for &(bytes, id) in tokens {
            let first = bytes.iter().take_while(|byte| is_white(byte)).count();
            leading_count[id.index()] = u16::try_from(first).unwrap_or(u16::MAX);
            if first > 1 {
                by_leading_count.push(id);
            }
            let after =
                bytes[first..].split(|byte| !is_white(byte)).any(|run| run.len() > LONG_GAP);
            if after {
                with_inner_run.push(id);
            }
            if after || first > LONG_GAP {
                long_tokens.push((bytes, id));
                match first == bytes.len() {
                    true => only_run.push((ByteSet::from_bytes(bytes), id)),
                    false => run_and_text.push(id),
                }
            }
        }
        by_leading_count.sort_unstable_by_key(|id| std::cmp::Reverse(leading_count[id.index()]));
        let mut long_sorted: Vec<TokenId> = long_tokens.iter().map(|(_, id)| *id).collect();
        long_sorted.sort_unstable();
        WhiteSpaceIndex {
            by_leading_count,
            with_inner_run,
            only_run,
            run_and_text,
            long_trie: Trie::build(long_tokens),
            long_sorted,
            leading_count,
        }
    }

    /// Bytes of white space at the start of a token.
    pub(crate) fn lead(&self, token: TokenId) -> u32 {
        self.leading_count.get(token.index()).map_or(0, |&leading_count| u32::from(leading_count))
    }

    /// Tokens with more than `max(most, 1)` bytes of white space at their start.
    pub(crate) fn leading_more_than(&self, most: u32) -> &[TokenId] {
        &self.by_leading_count
            [..self.by_leading_count.partition_point(|&id| self.lead(id) > most.max(1))]
    }

    /// Tokens with a long run after other bytes.
    pub(crate) fn with_inner_run(&self) -> &[TokenId] {
        &self.with_inner_run
    }

    /// Tokens that are one long run and contain a byte outside of `bytes`.
    pub(crate) fn long_runs_with_other_bytes(
        &self,
        bytes: ByteSet,
    ) -> impl Iterator<Item = TokenId> + '_ {
        self.only_run.iter().filter(move |(own, _)| own.union(&bytes) != bytes).map(|&(_, id)| id)
    }

    /// Tokens with a long run and other bytes.
    pub(crate) fn run_and_text(&self) -> &[TokenId] {
        &self.run_and_text
    }

    /// The trie over all tokens with a long run.
    pub(crate) fn long_trie(&self) -> &Trie {
        &self.long_trie
    }

    /// The same tokens, in ascending order.
    pub(crate) fn long_tokens(&self) -> &[TokenId] {
        &self.long_sorted
    }
}
