//! Tokens by the runs of white space in them.
//!
//! Grammars bound white space, so that a model does not write it for ever. The bound can only
//! reject tokens with runs longer than the room left; this index finds those tokens. A *long* run
//! has more than [`LONG_WHITE_SPACE_RUN`] bytes.

use super::{TokensByCount, Trie};
use crate::fsm::{ByteSet, LONG_WHITE_SPACE_RUN};
use crate::ids::TokenId;

/// The white space in the tokens of a vocabulary.
#[derive(Debug)]
pub(crate) struct WhiteSpaceIndex {
    /// Tokens with at least two bytes of white space at their start, by the number of these.
    by_leading_count: TokensByCount,
    /// Tokens with a long run after other bytes.
    with_inner_run: Vec<TokenId>,
    /// Tokens that are one long run and nothing else, each with the set of its bytes.
    only_run: Vec<(ByteSet, TokenId)>,
    /// All other tokens with a long run.
    long_run_with_text: Vec<TokenId>,
    /// All tokens with a long run.
    long_trie: Trie,
}

impl WhiteSpaceIndex {
    /// From the tokens with text. Cost: linear in all bytes.
    pub(super) fn new(tokens: &[(&[u8], TokenId)]) -> WhiteSpaceIndex {
        let is_white = |byte: &u8| ByteSet::WHITE_SPACE.contains(*byte);
        let (mut leading_counts, mut with_inner_run, mut long_tokens) =
            (Vec::new(), Vec::new(), Vec::new());
        let (mut only_run, mut long_run_with_text) = (Vec::new(), Vec::new());
        for &(bytes, id) in tokens {
            let first = bytes.iter().take_while(|byte| is_white(byte)).count();
            if first > 1 {
                leading_counts.push((first as u32, id));
            }
            let after = bytes[first..]
                .split(|byte| !is_white(byte))
                .any(|run| run.len() > LONG_WHITE_SPACE_RUN);
            if after {
                with_inner_run.push(id);
            }
            if after || first > LONG_WHITE_SPACE_RUN {
                long_tokens.push((bytes, id));
                match first == bytes.len() {
                    true => only_run.push((ByteSet::from_bytes(bytes), id)),
                    false => long_run_with_text.push(id),
                }
            }
        }
        WhiteSpaceIndex {
            by_leading_count: TokensByCount::from_pairs(&leading_counts),
            with_inner_run,
            only_run,
            long_run_with_text,
            long_trie: Trie::build(long_tokens),
        }
    }

    /// Tokens with more than `max(most, 1)` bytes of white space at their start.
    pub(crate) fn leading_more_than(&self, most: u32) -> &[TokenId] {
        self.by_leading_count.more_than(most)
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
    pub(crate) fn long_run_with_text(&self) -> &[TokenId] {
        &self.long_run_with_text
    }

    /// The trie over all tokens with a long run.
    pub(crate) fn long_trie(&self) -> &Trie {
        &self.long_trie
    }
}
