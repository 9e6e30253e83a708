//! Room left in lists and tables whose entries come one by one, so that no token waits until the allocator has moved what is there: where much
//! has been dropped shortly before, that is many times what the token costs.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Least entries there is to be room for.
const LEAST: usize = 64;

/// What room can be left in.
pub(crate) trait LeaveRoom {
    /// Makes room for a quarter more, and for some where there are few. Cost: nothing where there is that room, else as much as copying what is there.
    fn leave_room(&mut self);
}

/// So many entries more for what has so many.
pub(crate) fn more(len: usize) -> usize {
    (len / 4).max(LEAST)
}

impl<T> LeaveRoom for Vec<T> {
    fn leave_room(&mut self) {
        self.reserve(more(self.len()));
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> LeaveRoom for HashMap<K, V, S> {
    fn leave_room(&mut self) {
        self.reserve(more(self.len()));
    }
}
