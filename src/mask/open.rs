//! Masks of documents that may be many things at once, and in which text goes on, such as a name of one of many kinds of objects. Most of the vocabulary is
//! text, which one kind reads as well as all others: what that one accepts need not be looked at with the others.

use std::ops::Range;
use std::sync::Arc;

use super::index::Index;
use super::set::TokenSet;
use super::state::IndexState;
use crate::matcher::{ConfigId, Item, ParserLimit};

/// Words of a trie that are to be looked at, by their places in the list of all words, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Only {
    places: Arc<[u32]>,
    /// Where a walk, which goes through nodes in their order but for some jumps, has come to.
    at: usize,
}

impl Only {
    pub(super) fn new(places: Arc<[u32]>) -> Only {
        Only { places, at: 0 }
    }

    /// Whether one is among some neighbours.
    #[inline]
    pub(super) fn has(&mut self, words: Range<usize>) -> bool {
        let (begin, end) = (words.start as u32, words.end as u32);
        if self.at > 0 && self.places[self.at - 1] >= begin {
            self.at = self.places.partition_point(|&place| place < begin);
        }
        while self.places.get(self.at).is_some_and(|&place| place < begin) {
            self.at += 1;
        }
        self.places.get(self.at).is_some_and(|&place| place < end)
    }
}

impl Index {
    /// The mask of a configuration of which one item reads text: what that one accepts, and what a walk with all of it finds of the rest. None where
    /// no item is known to read text.
    pub(super) fn build_behind_text(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        items: &[Item],
    ) -> Result<Option<TokenSet>, ParserLimit> {
        let mut text = None;
        for item in items {
            let alone = state.parser.isolated(*item);
            if self.reads_text(state, alone) {
                text = Some(item);
                break;
            }
        }
        let Some(text) = text else { return Ok(None) };
        let group = [&[*text], &state.parser.called_last(text, items)[..]].concat();
        let entry = self.text_entry(state, &group)?;
        state.walk.clear();
        state.walk.only = Some(Only::new(entry.left_open(&self.vocab)));
        let walked = state.try_narrow(&self.vocab, config, usize::MAX);
        state.walk.only = None;
        walked?;
        let mut sets = self.whole_tokens(state, config);
        sets.push(entry.accepted.clone());
        Ok(Some(self.assemble(&mut state.walk, sets)))
    }
}
