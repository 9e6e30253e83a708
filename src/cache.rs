//! Shared leaf: maps with a budget in bytes.

use std::borrow::Borrow;
use std::hash::Hash;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use rustc_hash::FxHashMap;

/// How a cache is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Values that were asked for and there.
    pub hits: u64,
    /// Values that were asked for and not there.
    pub misses: u64,
    /// Values held now.
    pub entries: usize,
    /// Memory of those, in bytes, roughly.
    pub bytes: usize,
    /// Values dropped to make room.
    pub evicted: u64,
}

/// A map of values that can be made again, within a budget. What has not been asked for lately makes room: a value belongs to the younger of two
/// generations when it is new or asked for; once that generation has half of the budget, the older one is dropped and the younger one becomes the
/// older. So what was used since the last change of generations always stays, and nothing is ever searched for victims.
///
/// Invariant: each generation holds at most half of the budget, and no key is in both.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    max_bytes: usize,
    young: Generation<K, V>,
    old: Generation<K, V>,
    hits: u64,
    misses: u64,
    evicted: u64,
}

#[derive(Debug)]
struct Generation<K, V> {
    /// With the bytes of each.
    values: FxHashMap<K, (V, usize)>,
    bytes: usize,
}

impl<K, V> Default for Generation<K, V> {
    fn default() -> Self {
        Generation { values: FxHashMap::default(), bytes: 0 }
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// An empty cache for so many bytes; with 0 nothing is kept.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Cache { max_bytes, young: Generation::default(), old: Generation::default(), hits: 0, misses: 0, evicted: 0 }
    }

    /// Changes the budget. What no longer fits goes.
    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        if self.old.bytes > max_bytes / 2 {
            self.drop_old();
        }
        if self.young.bytes > max_bytes / 2 {
            self.age();
            self.drop_old();
        }
    }

    /// A value, which counts as used.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some((value, _)) = self.young.values.get(key) {
            self.hits += 1;
            return Some(value.clone());
        }
        let Some((key, (value, bytes))) = self.old.values.remove_entry(key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        self.old.bytes -= bytes;
        let found = value.clone();
        self.add(key, value, bytes);
        Some(found)
    }

    /// Keeps a value of so many bytes. One that would take more than half of the budget is not kept.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        for generation in [&mut self.young, &mut self.old] {
            if let Some((_, before)) = generation.values.remove(&key) {
                generation.bytes -= before;
            }
        }
        if bytes <= self.max_bytes / 2 && self.max_bytes > 0 {
            self.add(key, value, bytes);
        }
    }

    fn add(&mut self, key: K, value: V, bytes: usize) {
        if self.young.bytes + bytes > self.max_bytes / 2 {
            self.age();
        }
        self.young.bytes += bytes;
        self.young.values.insert(key, (value, bytes));
    }

    /// A change of generations.
    fn age(&mut self) {
        self.drop_old();
        self.old = std::mem::take(&mut self.young);
    }

    fn drop_old(&mut self) {
        self.evicted += self.old.values.len() as u64;
        self.old = Generation::default();
    }

    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits,
            misses: self.misses,
            entries: self.young.values.len() + self.old.values.len(),
            bytes: self.young.bytes + self.old.bytes,
            evicted: self.evicted,
        }
    }
}

/// A cache that all of the process share: a static, made when it is first used.
pub(crate) struct Shared<K, V> {
    max_bytes: usize,
    cache: Mutex<Option<Cache<K, V>>>,
}

impl<K: Eq + Hash, V: Clone> Shared<K, V> {
    pub(crate) const fn new(max_bytes: usize) -> Self {
        Shared { max_bytes, cache: Mutex::new(None) }
    }

    pub(crate) fn lock(&self) -> MappedMutexGuard<'_, Cache<K, V>> {
        MutexGuard::map(self.cache.lock(), |cache| cache.get_or_insert_with(|| Cache::new(self.max_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_budget_holds() {
        let mut cache: Cache<u32, u32> = Cache::new(100);
        for i in 0..1_000 {
            cache.insert(i, i * 2, 10);
            assert!(cache.stats().bytes <= 100);
            // Asked for often enough, it is there for ever.
            assert_eq!(cache.get(&0), Some(0), "after {i}");
            assert_eq!(cache.get(&i), Some(i * 2));
        }
        assert_eq!(cache.get(&1), None);
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses), (2_000, 1));
        assert_eq!(stats.entries as u64 + stats.evicted, 1_000);
        assert_eq!(stats.bytes, stats.entries * 10);
    }

    #[test]
    fn values_are_replaced_and_counted_once() {
        let mut cache: Cache<u32, u32> = Cache::new(100);
        for i in 0..50 {
            cache.insert(7, i, 20);
            assert_eq!((cache.get(&7), cache.stats().bytes, cache.stats().entries), (Some(i), 20, 1));
        }
        for i in 0..4 {
            cache.insert(100 + i, i, 20);
        }
        cache.insert(7, 9, 20);
        assert_eq!((cache.get(&7), cache.stats().entries * 20), (Some(9), cache.stats().bytes));
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let mut cache: Cache<u32, u32> = Cache::new(100);
        cache.insert(1, 1, 51);
        assert_eq!(cache.get(&1), None);
        cache.insert(1, 1, 50);
        cache.insert(2, 2, 50);
        assert_eq!((cache.get(&1), cache.get(&2)), (Some(1), Some(2)));
        cache.set_max_bytes(60);
        assert_eq!(cache.stats().entries, 0);
        cache.insert(3, 3, 30);
        cache.set_max_bytes(0);
        assert_eq!(cache.stats().bytes, 0);
        cache.insert(3, 3, 0);
        assert_eq!(cache.get(&3), None, "nothing is kept without a budget");
    }
}
