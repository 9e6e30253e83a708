//! Shared leaf: hash maps and hashes with a random seed.
//!
//! Keys come from requests: names and bytes as they are, and sets of states or pairs of numbers by choice of the grammar.
//! Whoever knows a hash function can choose keys that collide, and n of those cost n² steps. So nothing in this crate
//! hashes with a fixed seed; the seed is drawn once a process from the operating system's random numbers.
//!
//! The order of a map's entries differs from run to run: whatever goes over one sorts what it finds, or does not depend on
//! the order.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

/// A hash map with the process's seed.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, Seeded>;
/// A hash set with the process's seed.
pub(crate) type HashSet<K> = std::collections::HashSet<K, Seeded>;

/// A hasher with the process's seed.
pub(crate) type Hasher = FoldHasher<'static>;

/// The hash function of this process: the same for all maps, so that a hash can be kept beside its key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seeded;

impl BuildHasher for Seeded {
    type Hasher = Hasher;

    #[inline]
    fn build_hasher(&self) -> Hasher {
        hasher()
    }
}

/// A new hasher, which has read nothing.
#[inline]
pub(crate) fn hasher() -> Hasher {
    static SEEDS: LazyLock<(u64, SharedSeed)> = LazyLock::new(|| {
        let random = RandomState::new();
        (random.hash_one(0), SharedSeed::from_u64(random.hash_one(1)))
    });
    let (own, shared) = &*SEEDS;
    FoldHasher::with_seed(*own, shared)
}
