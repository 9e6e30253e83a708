//! Saved sets of tokens that walks have found.

use std::sync::Arc;

use super::trie_walk::TrieWalk;
use crate::ids::TokenId;

/// A saved set of tokens: single ones, and shared rows. A token may be in several of those.
#[derive(Debug, Default)]
pub(crate) struct ResolvedTokens {
    /// Single tokens.
    single: Box<[TokenId]>,
    /// Rows of tokens.
    rows: Box<[Arc<[u32]>]>,
}

impl ResolvedTokens {
    /// The single tokens that a walk has found from these lengths on, which are distinct.
    pub(crate) fn single(walk: &TrieWalk, from: (usize, usize)) -> ResolvedTokens {
        ResolvedTokens { single: walk.tokens[from.0..].into(), rows: Box::default() }
    }

    /// The tokens that a walk has found from these lengths on.
    pub(crate) fn from_walk(
        walk: &mut TrieWalk,
        from: (usize, usize),
        width: usize,
    ) -> ResolvedTokens {
        walk.dedup(from.0, width);
        if walk.tokens.len() - from.0 > width {
            walk.tokens_to_row(from.0, width);
        }
        let single = walk.tokens[from.0..].into();
        let rows = &mut walk.rows[from.1..];
        rows.sort_unstable_by_key(|row| row.as_ptr());
        let mut rows = rows.to_vec();
        rows.dedup_by_key(|row| row.as_ptr());
        ResolvedTokens { single, rows: rows.into() }
    }

    /// Adds them to the results of a walk.
    pub(crate) fn add_to(&self, walk: &mut TrieWalk) {
        walk.tokens.extend_from_slice(&self.single);
        walk.rows.extend_from_slice(&self.rows);
    }

    /// Memory in use, in bytes. Rows that are shared are not counted.
    pub(crate) fn bytes(&self) -> usize {
        let unshared = self.rows.iter().filter(|row| Arc::strong_count(row) == 1);
        self.single.len() * 4
            + unshared.map(|row| row.len() * 4).sum::<usize>()
            + self.rows.len() * 16
            + 64
    }
}
