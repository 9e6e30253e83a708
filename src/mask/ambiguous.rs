//! Masks of highly ambiguous configurations that read free text.
//!
//! An object of one of many types is an example: inside a key, dozens of items read the same text.
//! Most of the vocabulary is text that one of these items accepts by itself. Its entry gives those
//! tokens, and a walk with the whole configuration tests only the others.

use super::index::Index;
use super::index_state::IndexState;
use super::token_filter::TokenFilter;
use super::token_set::TokenSet;
use crate::matcher::{ConfigId, Item, ParserLimit};

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
