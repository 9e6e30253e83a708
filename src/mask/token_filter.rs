//! Restriction of a trie walk to some of the tokens.

use std::ops::Range;
use std::sync::Arc;

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
