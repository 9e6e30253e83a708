//! Leaf: a map with a memory budget and generational eviction.
//!
//! A value belongs to the younger of two generations when it is new or used. Once that generation
//! has half of the budget, the older one is evicted and the younger one becomes the older. So
//! everything used since the last change of generations is there, and eviction never searches for
//! victims. An evicted generation is dropped in small steps, a few values for each new one:
//! dropping many values at once takes milliseconds.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;

use crate::fuel;
use crate::hash::Seeded;
use hashbrown::{HashTable, hash_table};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

/// Counters and size of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Look-ups that found a value.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Values held now.
    pub entries: usize,
    /// Estimated memory of those, in bytes.
    pub bytes: usize,
    /// Values dropped for the budget.
    pub evicted: u64,
}

/// A map of values that can be recomputed, within a memory budget.
///
/// Invariants: each generation holds at most half of the budget; both and the dying one together
/// hold at most the budget; no key is in two generations.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    max_bytes: usize,
    young: Generation<K, V>,
    old: Generation<K, V>,
    /// The rest of an evicted generation. Look-ups do not find it.
    dying: hash_table::IntoIter<CacheSlot<K, V>>,
    dying_bytes: usize,
    hits: u64,
    misses: u64,
    evicted: u64,
}

/// Least number of values of an evicted generation that are dropped for each new value.
const DROPS_PER_INSERT: usize = 4;

/// A value with its key, the key's hash, and its memory in bytes.
#[derive(Debug)]
struct CacheSlot<K, V> {
    hash: u64,
    key: K,
    value: V,
    bytes: usize,
}

/// Values that were new or used in one period.
#[derive(Debug)]
struct Generation<K, V> {
    values: HashTable<CacheSlot<K, V>>,
    bytes: usize,
}

impl<K, V> Default for Generation<K, V> {
    fn default() -> Self {
        Generation { values: HashTable::new(), bytes: 0 }
    }
}

impl<K: Eq, V> Generation<K, V> {
    /// Removes a value.
    fn take<Q: Eq + ?Sized>(&mut self, hash: u64, key: &Q) -> Option<CacheSlot<K, V>>
    where
        K: Borrow<Q>,
    {
        let (slot, _) =
            self.values.find_entry(hash, |slot| slot.key.borrow() == key).ok()?.remove();
        self.bytes -= slot.bytes;
        Some(slot)
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// An empty cache with a budget of `max_bytes` bytes; with 0 nothing is cached.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Cache {
            max_bytes,
            young: Generation::default(),
            old: Generation::default(),
            dying: HashTable::new().into_iter(),
            dying_bytes: 0,
            hits: 0,
            misses: 0,
            evicted: 0,
        }
    }

    /// Changes the budget and evicts at once what no longer fits.
    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        if self.old.bytes > max_bytes / 2 {
            self.drop_old();
        }
        if self.young.bytes > max_bytes / 2 {
            self.change_generations();
            self.drop_old();
        }
        self.drop_dying(0);
    }

    /// A value, which becomes part of the younger generation.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let hash = Seeded.hash_one(key);
        if let Some(slot) = self.young.values.find(hash, |slot| slot.key.borrow() == key) {
            self.hits += 1;
            return Some(slot.value.clone());
        }
        let Some(slot) = self.old.take(hash, key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        let found = slot.value.clone();
        self.add(slot);
        Some(found)
    }

    /// Inserts a value of `bytes` bytes. One that takes more than half of the budget is not cached.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        let hash = Seeded.hash_one(&key);
        for generation in [&mut self.young, &mut self.old] {
            generation.take(hash, &key);
        }
        if bytes <= self.max_bytes / 2 && self.max_bytes > 0 {
            self.add(CacheSlot { hash, key, value, bytes });
        }
    }

    /// Adds a value to the younger generation.
    fn add(&mut self, slot: CacheSlot<K, V>) {
        if self.young.bytes + slot.bytes > self.max_bytes / 2 {
            self.change_generations();
        }
        self.young.bytes += slot.bytes;
        self.young.values.insert_unique(slot.hash, slot, |slot| slot.hash);
        self.drop_dying(DROPS_PER_INSERT);
    }

    /// The older generation starts to die, and the younger one becomes the older.
    fn change_generations(&mut self) {
        self.drop_dying(usize::MAX);
        let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        (self.dying, self.dying_bytes) = (old.values.into_iter(), old.bytes);
    }

    /// Drops at least `least` values of the dying generation, and more where the budget is
    /// exceeded.
    fn drop_dying(&mut self, mut least: usize) {
        while least > 0 || self.bytes() > self.max_bytes {
            let Some(slot) = self.dying.next() else { break };
            self.dying_bytes -= slot.bytes;
            self.evicted += 1;
            least = least.saturating_sub(1);
        }
    }

    /// Drops the older generation at once.
    fn drop_old(&mut self) {
        self.evicted += self.old.values.len() as u64;
        self.old = Generation::default();
    }

    /// Memory of all generations, in bytes.
    fn bytes(&self) -> usize {
        self.young.bytes + self.old.bytes + self.dying_bytes
    }

    /// Counters and current size.
    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits,
            misses: self.misses,
            entries: self.young.values.len() + self.old.values.len() + self.dying.len(),
            bytes: self.bytes(),
            evicted: self.evicted,
        }
    }
}

/// A cache that all engines of the process share: a static, made when it is first used.
pub(crate) struct ProcessCache<K, V> {
    max_bytes: usize,
    cache: Mutex<Option<Cache<K, V>>>,
}

impl<K: Eq + Hash, V: Clone> ProcessCache<K, V> {
    /// A cache with a budget of `max_bytes` bytes.
    pub(crate) const fn new(max_bytes: usize) -> Self {
        ProcessCache { max_bytes, cache: Mutex::new(None) }
    }

    /// Locks the cache.
    pub(crate) fn lock(&self) -> MappedMutexGuard<'_, Cache<K, V>> {
        MutexGuard::map(self.cache.lock(), |cache| {
            cache.get_or_insert_with(|| Cache::new(self.max_bytes))
        })
    }

    /// Keeps a value, unless the request that has made it is out of fuel: then an automaton may not
    /// be minimal, and other requests would have it for good.
    pub(crate) fn insert(&self, key: K, value: V, bytes: usize) {
        if !fuel::is_exhausted() {
            self.lock().insert(key, value, bytes);
        }
    }
}

/// A value that is made once per process, whichever request needs it first. Neither the fuel of
/// that request nor its cancellation counts, so it must be small.
pub(crate) struct ProcessCell<T>(OnceLock<T>);

impl<T> ProcessCell<T> {
    /// A cell without a value.
    pub(crate) const fn new() -> Self {
        ProcessCell(OnceLock::new())
    }

    /// The value, made on first use.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| fuel::with_separate_budget(u64::MAX, make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_values_stay_and_the_budget_holds() {
        let mut cache: Cache<u32, u32> = Cache::new(100);
        for i in 0..1_000 {
            cache.insert(i, i * 2, 10);
            assert!(cache.stats().bytes <= 100);
            // A value that is used often enough is never evicted.
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
            assert_eq!(
                (cache.get(&7), cache.stats().bytes, cache.stats().entries),
                (Some(i), 20, 1)
            );
        }
        for i in 0..4 {
            cache.insert(100 + i, i, 20);
        }
        cache.insert(7, 9, 20);
        assert_eq!((cache.get(&7), cache.stats().entries * 20), (Some(9), cache.stats().bytes));
    }

    #[test]
    fn an_evicted_generation_is_dropped_in_small_steps() {
        let values: Vec<std::sync::Arc<()>> = (0..4_000).map(|_| Default::default()).collect();
        let mut cache: Cache<usize, std::sync::Arc<()>> = Cache::new(2_000);
        let held = || values.iter().filter(|value| std::sync::Arc::strong_count(value) > 1).count();
        for (i, value) in values.iter().enumerate() {
            let before = held();
            cache.insert(i, value.clone(), 1);
            assert!(held() + DROPS_PER_INSERT > before, "after {i}");
            assert_eq!((cache.stats().bytes, cache.stats().entries), (held(), held()));
            assert!(held() <= 2_000);
        }
        assert_eq!(cache.stats().evicted as usize + held(), values.len());
        cache.set_max_bytes(0);
        assert_eq!((held(), cache.stats().entries, cache.stats().bytes), (0, 0, 0));
    }

    #[test]
    fn a_value_over_half_the_budget_is_not_cached() {
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
        assert_eq!(cache.get(&3), None, "nothing is cached without a budget");
    }
}
