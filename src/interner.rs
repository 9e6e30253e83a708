//! Intern indexes: hash tables from the content of interned values to their ids.
//!
//! The values live elsewhere. Each slot keeps the value's hash beside its id, so that growing a
//! table does not read the values; with large grammars that would be the slowest mask of all.

use hashbrown::HashTable;

use crate::capacity::growth;

/// A hash table from the content of interned values to their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct InternIndex {
    table: HashTable<HashedId>,
}

/// An id and the hash of the value that it names.
#[derive(Clone, Copy, Debug)]
struct HashedId {
    hash: u32,
    id: u32,
}

impl InternIndex {
    /// An empty index with capacity for `entries`.
    pub(crate) fn with_capacity(entries: usize) -> InternIndex {
        InternIndex { table: HashTable::with_capacity(entries) }
    }

    /// Returns the id of an interned value with this hash for which `equal` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, equal: impl Fn(u32) -> bool) -> Option<u32> {
        let short = shorten(hash);
        let found = self.table.find(spread(short), |slot| slot.hash == short && equal(slot.id));
        found.map(|slot| slot.id)
    }

    /// Reserves capacity for more entries: see [`crate::capacity`].
    pub(crate) fn reserve_more(&mut self) {
        self.table.reserve(growth(self.table.len()), |slot| spread(slot.hash));
    }

    /// Adds the id of a value that is not in the index.
    pub(crate) fn insert(&mut self, hash: u64, id: u32) {
        let hash = shorten(hash);
        self.table.insert_unique(spread(hash), HashedId { hash, id }, |slot| spread(slot.hash));
    }
}

fn shorten(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

/// Repeats the hash in both halves: a table reads a hash's lowest and highest bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
