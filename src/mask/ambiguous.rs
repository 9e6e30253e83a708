//! Masks of documents that may be many things at once, and in which text goes on, such as a name of one of many kinds of objects. Most of the vocabulary is
//! text, which one kind reads as well as all others: what that one accepts need not be looked at with the others.

use std::ops::Range;
use std::sync::Arc;

use super::index::Index;
use super::index_state::IndexState;
use super::token_set::TokenSet;
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
    /// The mask of a configuration of many items: what one that reads text accepts, and what a walk with all of them finds of the rest. Where none is known to
    /// read text, the walk is over everything.
    pub(super) fn build_behind_text(
        &self,
        state: &mut IndexState,
        config: ConfigId,
        items: &[Item],
    ) -> Result<TokenSet, ParserLimit> {
        let text = items.iter().find(|item| {
            let alone = state.parser.isolated(**item);
            self.reads_text(state, alone)
        });
        let Some(text) = text else { return self.build_whole(state, config) };
        let group = [&[*text], &state.parser.called_last(text, items)[..]].concat();
        let entry = self.entry(state, &group)?;
        state.walk.only = Some(Only::new(entry.left_open(&self.vocab)));
        let built = self.build_beside(state, config, Some(entry.accepted.clone()));
        state.walk.only = None;
        built
    }
}
