//! Saved sets of tokens that walks have found.

use std::sync::Arc;

use super::trie_walk::{TrieWalk, WalkCheckpoint};
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
    /// The single tokens that a walk has found since a checkpoint, which are distinct.
    pub(crate) fn single(walk: &TrieWalk, from: WalkCheckpoint) -> ResolvedTokens {
        ResolvedTokens { single: walk.tokens[from.tokens..].into(), rows: Box::default() }
    }

    /// The tokens that a walk has found since a checkpoint.
    pub(crate) fn from_walk(
        walk: &mut TrieWalk,
        from: WalkCheckpoint,
        mask_words: usize,
    ) -> ResolvedTokens {
        walk.dedup(from.tokens, mask_words);
        if walk.tokens.len() - from.tokens > mask_words {
            walk.tokens_to_row(from.tokens, mask_words);
        }
        let single = walk.tokens[from.tokens..].into();
        let rows = &mut walk.rows[from.rows..];
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
