//! Masks of highly ambiguous configurations that read free text.
//!
//! An object of one of many types is an example: inside a key, dozens of items read the same text.
//! Most of the vocabulary is text that one of these items accepts by itself. Its entry gives those
//! tokens, and a walk with the whole configuration tests only the others.

use std::ops::Range;
use std::sync::Arc;

use super::index::Index;
use super::index_state::IndexState;
use super::token_set::TokenSet;
use crate::matcher::{ConfigId, Item, ParserLimit};

/// A filter for a trie walk: the tokens to test, by position in the trie's list of tokens, in
/// ascending order.
#[derive(Clone, Debug)]
pub(super) struct TokenFilter {
    positions: Arc<[u32]>,
    /// Cursor of the walk, which visits nodes in order, apart from some jumps.
    cursor: usize,
}

impl TokenFilter {
    /// `positions` must be in ascending order.
    pub(super) fn new(positions: Arc<[u32]>) -> TokenFilter {
        TokenFilter { positions, cursor: 0 }
    }

    /// Whether the range of positions contains a token to test.
    #[inline]
    pub(super) fn meets(&mut self, range: Range<usize>) -> bool {
        let (begin, end) = (range.start as u32, range.end as u32);
        if self.cursor > 0 && self.positions[self.cursor - 1] >= begin {
            self.cursor = self.positions.partition_point(|&position| position < begin);
        }
        while self.positions.get(self.cursor).is_some_and(|&position| position < begin) {
            self.cursor += 1;
        }
        self.positions.get(self.cursor).is_some_and(|&position| position < end)
    }
}

impl Index {
    /// The mask of a configuration of many items: the tokens that one text-reading item accepts,
    /// and a walk with the whole configuration for the others. Without such an item, the walk tests
    /// all tokens.
    pub(super) fn build_ambiguous(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        items: &[Item],
    ) -> Result<TokenSet, ParserLimit> {
        let text_item = items.iter().find(|item| {
            let alone = state.parser.isolated(**item);
            self.reads_text(state, alone)
        });
        let Some(text_item) = text_item else { return self.build_by_walk(state, config) };
        let item_group =
            [&[*text_item], &state.parser.tail_called_items(text_item, items)[..]].concat();
        let entry = self.entry(state, &item_group)?;
        state.walk.filter = Some(TokenFilter::new(entry.not_accepted(&self.vocab)));
        let mask = self.build_by_walk_with(state, config, Some(entry.accepted.clone()));
        state.walk.filter = None;
        mask
    }
}
