//! Leaf: a map with a memory budget and eviction by the clock algorithm.
//!
//! A hand goes around the values. One that was used since the hand last passed stays, unless it
//! alone takes more than half of the budget; another one is evicted. A new value evicts about as
//! much as it brings: dropping many values at once takes milliseconds.
//!
//! Source: Corbató, "A Paging Experiment with the Multics System", 1968.

use std::hash::Hash;
use std::sync::OnceLock;

use indexmap::Equivalent;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::fuel;
use crate::hash::IndexMap;

/// Most values that one eviction spares because they were used.
const MAX_SPARED: usize = 64;
/// Least number of values that [`Cache::remeasure`] measures.
const MEASURED_PER_CALL: usize = 8;
/// After so many calls of [`Cache::remeasure`] all values have been measured, however many there
/// are.
const CALLS_PER_ROUND: usize = 64;

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
/// Invariant: after each call, the values as last measured take at most the budget.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    max_bytes: usize,
    /// In the order in which the hand passes.
    slots: IndexMap<K, CacheSlot<V>>,
    /// Memory of all values, in bytes.
    bytes: usize,
    /// Index of the value that the hand passes next.
    hand: usize,
    /// Index of the value that is measured next.
    next_measured: usize,
    hits: u64,
    misses: u64,
    evicted: u64,
}

/// A value, and its memory in bytes.
#[derive(Debug)]
struct CacheSlot<V> {
    value: V,
    bytes: usize,
    /// Whether it was used since the hand last passed.
    recently_used: bool,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// An empty cache with a budget of `max_bytes` bytes; with 0 nothing is cached.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Cache {
            max_bytes,
            slots: IndexMap::default(),
            bytes: 0,
            hand: 0,
            next_measured: 0,
            hits: 0,
            misses: 0,
            evicted: 0,
        }
    }

    /// The budget, in bytes.
    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Changes the budget and evicts at once what no longer fits.
    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        self.make_room(0);
    }

    /// A value, which counts as used.
    #[inline]
    pub(crate) fn get<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        let Some(slot) = self.slots.get_mut(key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        slot.recently_used = true;
        Some(slot.value.clone())
    }

    /// A value, without a trace in the statistics or in the order of eviction.
    pub(crate) fn peek<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.slots.get(key).map(|slot| &slot.value)
    }

    /// Inserts a value of `bytes` bytes. One that takes more than half of the budget is not cached.
    /// Returns the values that were evicted for it.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) -> Vec<V> {
        self.bytes -= self.slots.swap_remove(&key).map_or(0, |slot| slot.bytes);
        if bytes > self.max_bytes / 2 || self.max_bytes == 0 {
            return Vec::new();
        }
        let evicted = self.make_room(bytes);
        self.slots.insert(key, CacheSlot { value, bytes, recently_used: false });
        self.bytes += bytes;
        evicted
    }

    /// Measures some values again, other ones in each call, so that the growth of a value is seen
    /// after at most [`CALLS_PER_ROUND`] calls. `bytes` is `None` where it cannot tell
    /// now. Returns the values that were evicted, as the others have grown.
    pub(crate) fn remeasure(&mut self, bytes: impl Fn(&V) -> Option<usize>) -> Vec<V> {
        let measured = MEASURED_PER_CALL.max(self.slots.len().div_ceil(CALLS_PER_ROUND));
        for _ in 0..measured.min(self.slots.len()) {
            self.next_measured = (self.next_measured + 1) % self.slots.len();
            let slot = &mut self.slots[self.next_measured];
            let now = bytes(&slot.value).unwrap_or(slot.bytes);
            self.bytes = self.bytes - slot.bytes + now;
            slot.bytes = now;
        }
        self.make_room(0)
    }

    /// Evicts values until so many bytes more fit, and returns them.
    fn make_room(&mut self, bytes: usize) -> Vec<V> {
        let (mut evicted, mut spared) = (Vec::new(), 0);
        while self.bytes + bytes > self.max_bytes && !self.slots.is_empty() {
            self.hand %= self.slots.len();
            let slot = &mut self.slots[self.hand];
            let used = std::mem::take(&mut slot.recently_used) && slot.bytes <= self.max_bytes / 2;
            if used && spared < MAX_SPARED {
                spared += 1;
            } else if let Some((_, slot)) = self.slots.swap_remove_index(self.hand) {
                self.bytes -= slot.bytes;
                self.evicted += 1;
                evicted.push(slot.value);
            }
            self.hand += 1;
        }
        evicted
    }

    /// Counters and current size.
    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits,
            misses: self.misses,
            entries: self.slots.len(),
            bytes: self.bytes,
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
            // A value that is used while others are not is never evicted.
            assert_eq!(cache.get(&0), Some(0), "after {i}");
            assert_eq!(cache.peek(&i), Some(&(i * 2)));
        }
        assert_eq!(cache.get(&1), None);
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses), (1_000, 1));
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
    fn a_new_value_evicts_about_as_much_as_it_brings() {
        let values: Vec<std::sync::Arc<()>> = (0..4_000).map(|_| Default::default()).collect();
        let mut cache: Cache<usize, std::sync::Arc<()>> = Cache::new(2_000);
        let held = || values.iter().filter(|value| std::sync::Arc::strong_count(value) > 1).count();
        for (i, value) in values.iter().enumerate() {
            assert_eq!(cache.insert(i, value.clone(), 1).len(), usize::from(i >= 2_000));
            // All were used: the hand spares some of them only.
            (0..=i).for_each(|i| drop(cache.get(&i)));
            assert_eq!((cache.stats().bytes, cache.stats().entries), (held(), held()));
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
        assert_eq!(cache.stats().entries, 1);
        cache.set_max_bytes(0);
        assert_eq!(cache.stats().bytes, 0);
        cache.insert(3, 3, 0);
        assert_eq!(cache.get(&3), None, "nothing is cached without a budget");
    }

    #[test]
    fn grown_values_are_measured_and_evicted() {
        let mut cache: Cache<u32, u32> = Cache::new(100);
        (0..20).for_each(|i| drop(cache.insert(i, i, 1)));
        let mut evicted = Vec::new();
        for _ in 0..4 {
            evicted.extend(cache.remeasure(|&value| (value != 7).then_some(10)));
            assert!(cache.stats().bytes <= 100);
        }
        assert_eq!(evicted.len() + cache.stats().entries, 20);
        assert!((9..=11).contains(&cache.stats().entries), "{:?}", cache.stats());
    }

    #[test]
    fn growth_among_many_small_values_is_seen_soon() {
        let mut cache: Cache<u32, u32> = Cache::new(20_000);
        (0..10_000).for_each(|i| drop(cache.insert(i, i, 1)));
        let grown = 200;
        for _ in 0..CALLS_PER_ROUND {
            cache.remeasure(|&value| Some(if value % 50 == 7 { 100 } else { 1 }));
        }
        let stats = cache.stats();
        assert!(stats.bytes <= 20_000 && stats.evicted >= grown / 2, "{stats:?}");
    }
}
