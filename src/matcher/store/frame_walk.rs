//! Walks over the items that a configuration returns to.

use smallvec::SmallVec;

use super::{FrameId, Item, Store};
use crate::fuel;
use crate::hash::HashSet;

/// Entered frames that are searched linearly.
const FEW_FRAMES: usize = 8;

/// Walk along frames. The caller decides which frames it enters; each is entered once, as frames of
/// left-recursive groups refer to each other.
#[derive(Debug)]
pub(in crate::matcher) struct FrameWalk<'s> {
    store: &'s Store,
    /// The first frames that were entered: most walks enter few.
    entered: SmallVec<[FrameId; FEW_FRAMES]>,
    /// All further ones.
    entered_later: HashSet<FrameId>,
    /// Items that were found and not visited yet.
    queue: SmallVec<[Item; 8]>,
}

impl Store {
    /// A walk that begins with these items.
    pub(in crate::matcher) fn walk(&self, items: &[Item]) -> FrameWalk<'_> {
        FrameWalk {
            store: self,
            entered: SmallVec::new(),
            entered_later: HashSet::default(),
            queue: items.into(),
        }
    }
}

impl FrameWalk<'_> {
    /// The next item: one of the first, or one that an entered frame returns to.
    pub(in crate::matcher) fn next_item(&mut self) -> Option<Item> {
        self.queue.pop()
    }

    /// Enters a frame: the items that it returns to follow.
    pub(in crate::matcher) fn enter(&mut self, frame: FrameId) {
        if self.note_entered(frame) {
            let returns = self.store.returns(frame);
            fuel::charge(1 + returns.len() / 2);
            self.queue.extend_from_slice(returns);
        }
    }

    /// Adds an item that the walk visits.
    pub(in crate::matcher) fn visit_later(&mut self, item: Item) {
        self.queue.push(item);
    }

    /// Whether a frame was entered.
    pub(in crate::matcher) fn has_entered(&self, frame: FrameId) -> bool {
        self.entered.contains(&frame) || self.entered_later.contains(&frame)
    }

    /// Notes a frame; whether it was not entered before.
    fn note_entered(&mut self, frame: FrameId) -> bool {
        if self.entered.contains(&frame) {
            return false;
        }
        if self.entered.len() == FEW_FRAMES {
            return self.entered_later.insert(frame);
        }
        self.entered.push(frame);
        true
    }
}
