//! Tokens by the runs of white space in them. Grammars bound white space so that models do not write it for ever; only tokens with long
//! runs of it can tell where the bounds are.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Trie;
use crate::fsm::{ByteSet, LONG_GAP};
use crate::hash::HashMap;
use crate::ids::TokenId;

/// Runs of white space in the tokens of a vocabulary.
#[derive(Debug)]
pub(crate) struct WhiteSpace {
    /// Bytes of white space that each token begins with.
    lead: Vec<u16>,
    /// Tokens that begin with at least two, those with most first.
    leading: Vec<TokenId>,
    /// Tokens with a long run behind other bytes.
    inner: Vec<TokenId>,
    /// Long runs that are tokens of nothing else, each with the bytes in it.
    runs: Vec<(ByteSet, TokenId)>,
    /// All other tokens with a long run.
    mixed: Vec<TokenId>,
    /// Tokens with a long run.
    long: Trie,
    /// The same, sorted.
    all_long: Vec<TokenId>,
    /// Tokens that are at most so much white space and nothing else, as rows: those that have been asked for.
    rows: Mutex<HashMap<u32, Arc<[u32]>>>,
}

/// Most rows that are kept: grammars bound white space by few numbers.
const ROWS: usize = 64;

impl WhiteSpace {
    /// Of tokens with text, in a vocabulary of this width. Cost: one look at all of them.
    pub(super) fn of(tokens: &[(&[u8], TokenId)], width: usize) -> WhiteSpace {
        let is_white = |byte: &u8| ByteSet::WHITE_SPACE.contains(*byte);
        let mut lead = vec![0u16; width];
        let (mut leading, mut inner, mut long) = (Vec::new(), Vec::new(), Vec::new());
        let (mut runs, mut mixed) = (Vec::new(), Vec::new());
        for &(bytes, id) in tokens {
            let first = bytes.iter().take_while(|byte| is_white(byte)).count();
            lead[id.index()] = u16::try_from(first).unwrap_or(u16::MAX);
            if first > 1 {
                leading.push(id);
            }
            let behind =
                bytes[first..].split(|byte| !is_white(byte)).any(|run| run.len() > LONG_GAP);
            if behind {
                inner.push(id);
            }
            if behind || first > LONG_GAP {
                long.push((bytes, id));
                match first == bytes.len() {
                    true => runs.push((ByteSet::of(bytes), id)),
                    false => mixed.push(id),
                }
            }
        }
        leading.sort_unstable_by_key(|id| std::cmp::Reverse(lead[id.index()]));
        let mut all_long: Vec<TokenId> = long.iter().map(|(_, id)| *id).collect();
        all_long.sort_unstable();
        WhiteSpace {
            leading,
            inner,
            runs,
            mixed,
            long: Trie::build(long),
            all_long,
            lead,
            rows: Mutex::default(),
        }
    }

    /// How many bytes of white space a token begins with.
    pub(crate) fn lead(&self, token: TokenId) -> u32 {
        self.lead.get(token.index()).map_or(0, |&lead| u32::from(lead))
    }

    /// Tokens that begin with more than so many bytes of white space, at least one.
    pub(crate) fn beyond(&self, most: u32) -> &[TokenId] {
        &self.leading[..self.leading.partition_point(|&id| self.lead(id) > most.max(1))]
    }

    /// The row, of so many words, of those of the tokens that are white space and nothing else that are at most so much of it.
    pub(super) fn row(&self, only: &[TokenId], most: u32, words: usize) -> Arc<[u32]> {
        let mut rows = self.rows.lock();
        if let Some(row) = rows.get(&most) {
            return row.clone();
        }
        let mut row = vec![0u32; words];
        for id in only.iter().filter(|&&id| self.lead(id) <= most) {
            row[id.index() / 32] |= 1 << (id.raw() % 32);
        }
        let row: Arc<[u32]> = row.into();
        if rows.len() < ROWS {
            rows.insert(most, row.clone());
        }
        row
    }

    /// Tokens with a long run of white space behind other bytes.
    pub(crate) fn inner(&self) -> &[TokenId] {
        &self.inner
    }

    /// Tokens that are a long run of white space in which there are other bytes than these.
    pub(crate) fn runs_beside(&self, bytes: ByteSet) -> impl Iterator<Item = TokenId> + '_ {
        self.runs.iter().filter(move |(own, _)| own.union(&bytes) != bytes).map(|&(_, id)| id)
    }

    /// Tokens with a long run of white space, and something else.
    pub(crate) fn mixed(&self) -> &[TokenId] {
        &self.mixed
    }

    /// Tokens with a long run of white space.
    pub(crate) fn long(&self) -> &Trie {
        &self.long
    }

    /// The same, sorted.
    pub(crate) fn all_long(&self) -> &[TokenId] {
        &self.all_long
    }
}
