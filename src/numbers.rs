//! Numbers of interned values, found by content. The values live elsewhere; their hashes are kept beside the numbers, so that a table
//! that grows does not look at them: with large grammars, that would be the slowest mask there is.

use hashbrown::HashTable;

use crate::room::more;

/// The numbers of values, by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    table: HashTable<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    number: u32,
}

impl Numbers {
    /// None yet, and room for some.
    pub(crate) fn with_room(some: usize) -> Numbers {
        Numbers { table: HashTable::with_capacity(some) }
    }

    /// The number of the value with this hash that is the same.
    #[inline]
    pub(crate) fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let short = shorten(hash);
        let found = self.table.find(spread(short), |slot| slot.hash == short && same(slot.number));
        found.map(|slot| slot.number)
    }

    /// Makes room for more: see [`crate::room`].
    pub(crate) fn leave_room(&mut self) {
        self.table.reserve(more(self.table.len()), |slot| spread(slot.hash));
    }

    /// Adds the number of a value that has none.
    pub(crate) fn insert(&mut self, hash: u64, number: u32) {
        let hash = shorten(hash);
        self.table.insert_unique(spread(hash), Slot { hash, number }, |slot| spread(slot.hash));
    }
}

fn shorten(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

/// A table looks at a hash's lowest and highest bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
