//! Leaf: hash maps and hashes with a random seed.
//!
//! Keys come from requests: names and byte strings directly, sets of states and pairs of numbers by
//! choice of the grammar. An attacker who knows a hash function can choose n keys that collide,
//! which cost n² steps. So no map has a fixed seed: the seed is drawn once a process from the
//! operating system's random numbers. Two hashes of sets are sums with fixed factors, as order must
//! not matter: those of `fsm::alphabet` and `mask::interned_masks`. Both compare what has equal
//! hashes, so a collision costs compression or sharing, and no more.
//!
//! The order of a map's entries therefore differs from run to run. Code that iterates over a map
//! either sorts or does not depend on the order.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock};

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

/// A hash map with the seed of the process.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, Seeded>;
/// A hash set with the seed of the process.
pub(crate) type HashSet<K> = std::collections::HashSet<K, Seeded>;

/// A hash map with the seed of the process, in the order of insertion.
pub(crate) type IndexMap<K, V> = indexmap::IndexMap<K, V, Seeded>;
/// A hash set with the seed of the process, in the order of insertion.
pub(crate) type IndexSet<K> = indexmap::IndexSet<K, Seeded>;

/// A hasher with the seed of the process.
pub(crate) type Hasher = FoldHasher<'static>;

/// The hash function of this process. It is the same for all maps, so a hash can be stored with its
/// key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seeded;

impl BuildHasher for Seeded {
    type Hasher = Hasher;

    #[inline]
    fn build_hasher(&self) -> Hasher {
        hasher()
    }
}

/// A new hasher with empty state.
#[inline]
pub(crate) fn hasher() -> Hasher {
    static SEEDS: LazyLock<(u64, SharedSeed)> = LazyLock::new(|| {
        let random = RandomState::new();
        (random.hash_one(0), SharedSeed::from_u64(random.hash_one(1)))
    });
    let (own, shared) = &*SEEDS;
    FoldHasher::with_seed(*own, shared)
}

/// A shared value that is compared and hashed by its address: values in different places differ
/// even if their contents are equal. It holds the value, so that the address stays unique.
#[derive(Debug)]
pub(crate) struct ByAddress<T: ?Sized>(pub(crate) Arc<T>);

impl<T: ?Sized> Clone for ByAddress<T> {
    fn clone(&self) -> Self {
        ByAddress(self.0.clone())
    }
}

impl<T: ?Sized> PartialEq for ByAddress<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Eq for ByAddress<T> {}

impl<T: ?Sized> Hash for ByAddress<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet as StdSet;
    use std::hash::{BuildHasherDefault, Hasher};

    use super::*;

    /// The algorithm of rustc-hash 2 for more than 16 bytes, with its fixed seed, which an attacker
    /// knows.
    #[derive(Default)]
    struct FixedSeedHasher(u64);

    const SEEDS: [u64; 3] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0];

    fn mix(a: u64, b: u64) -> u64 {
        let full = u128::from(a) * u128::from(b);
        full as u64 ^ (full >> 64) as u64
    }

    fn word(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes.try_into().unwrap())
    }

    impl Hasher for FixedSeedHasher {
        fn write(&mut self, bytes: &[u8]) {
            let (mut a, mut b) = (SEEDS[0], SEEDS[1]);
            let mut rest = &bytes[..bytes.len().saturating_sub(1)];
            while let Some((chunk, more)) = rest.split_at_checked(16) {
                (a, b) = (b, mix(a ^ word(&chunk[..8]), SEEDS[2] ^ word(&chunk[8..])));
                rest = more;
            }
            if let Some((_, end)) = bytes.split_last_chunk::<16>() {
                (a, b) = (a ^ word(&end[..8]), b ^ word(&end[8..]));
            }
            self.0 = self
                .0
                .wrapping_add(mix(a, b) ^ bytes.len() as u64)
                .wrapping_mul(0xf135_7aea_2e62_a9c5);
        }

        fn finish(&self) -> u64 {
            self.0.rotate_left(26)
        }
    }

    /// Names of 64 letters that all have the same hash under [`FixedSeedHasher`]. The state after
    /// 16 letters is chosen so that it can be written in letters; where it is written again, the
    /// product with everything beside it is zero.
    fn colliding(count: usize) -> Vec<String> {
        let letters = |word: u64| {
            word.to_le_bytes().iter().all(|b| b.is_ascii_graphic() && !b"\"\\".contains(b))
        };
        let head = |k: u64| format!("{k:016}");
        let first = (0..).map(head).find(|head| letters(state(head))).unwrap();
        let again = String::from_utf8(state(&first).to_le_bytes().to_vec()).unwrap();
        (0..count).map(|k| format!("{first}{:016}{again}{k:08}{:016}", 0, 0)).collect()
    }

    fn state(head: &str) -> u64 {
        mix(SEEDS[0] ^ word(&head.as_bytes()[..8]), SEEDS[2] ^ word(&head.as_bytes()[8..]))
    }

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    struct Counted<'a>(&'a str);

    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    /// Comparisons made while distinct names are inserted into a set.
    fn comparisons_of_inserting<S: BuildHasher + Default>(names: &[String]) -> usize {
        COMPARISONS.set(0);
        let set: StdSet<Counted<'_>, S> = names.iter().map(|name| Counted(name)).collect();
        assert_eq!(set.len(), names.len());
        COMPARISONS.get()
    }

    #[test]
    fn keys_that_collide_under_a_fixed_seed_do_not_collide_here() {
        let names = colliding(2_000);
        let known = comparisons_of_inserting::<BuildHasherDefault<FixedSeedHasher>>(&names);
        assert!(known > 1_000_000, "the names collide: {known} comparisons");
        let here = comparisons_of_inserting::<Seeded>(&names);
        assert!(here < 200, "{here} comparisons");
    }

    #[test]
    fn equal_values_in_different_places_are_different_keys() {
        let [a, b] = [1, 1].map(Arc::new);
        let keys = HashSet::from_iter([&a, &b, &a].map(|value| ByAddress(value.clone())));
        assert_eq!(keys.len(), 2);
        assert!(keys.contains(&ByAddress(b)));
    }

    #[test]
    fn equal_values_have_equal_hashes() {
        let owned = ["a", "name"].join(" ");
        assert_eq!(Seeded.hash_one("a name"), Seeded.hash_one(&owned));
        assert_ne!(Seeded.hash_one("a name"), Seeded.hash_one("a nam"));
    }
}
