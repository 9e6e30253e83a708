//! Shared leaf: maps with a budget in bytes.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use crate::hash::Seeded;
use hashbrown::{HashTable, hash_table};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

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
/// generations when it is new or asked for; once that generation has half of the budget, the older one goes and the younger one becomes the
/// older. So what was used since the last change of generations always stays, and nothing is ever searched for victims. A generation goes little by
/// little, as there are new values: to drop all of it at once takes milliseconds where there are many.
///
/// Invariant: each generation holds at most half of the budget, all together with those that go hold at most the budget, and no key is in two.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    max_bytes: usize,
    young: Generation<K, V>,
    old: Generation<K, V>,
    /// What is left of a generation that goes: nobody finds it.
    going: hash_table::IntoIter<Slot<K, V>>,
    going_bytes: usize,
    hits: u64,
    misses: u64,
    evicted: u64,
}

/// Values that go for each new one, at least.
const GO_AT_ONCE: usize = 4;

/// A value with its key, what that hashes to, and its bytes.
#[derive(Debug)]
struct Slot<K, V> {
    hash: u64,
    key: K,
    value: V,
    bytes: usize,
}

#[derive(Debug)]
struct Generation<K, V> {
    values: HashTable<Slot<K, V>>,
    bytes: usize,
}

impl<K, V> Default for Generation<K, V> {
    fn default() -> Self {
        Generation { values: HashTable::new(), bytes: 0 }
    }
}

impl<K: Eq, V> Generation<K, V> {
    fn take<Q: Eq + ?Sized>(&mut self, hash: u64, key: &Q) -> Option<Slot<K, V>>
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
    /// An empty cache for so many bytes; with 0 nothing is kept.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Cache {
            max_bytes,
            young: Generation::default(),
            old: Generation::default(),
            going: HashTable::new().into_iter(),
            going_bytes: 0,
            hits: 0,
            misses: 0,
            evicted: 0,
        }
    }

    /// Changes the budget. What no longer fits goes at once.
    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        if self.old.bytes > max_bytes / 2 {
            self.drop_old();
        }
        if self.young.bytes > max_bytes / 2 {
            self.age();
            self.drop_old();
        }
        self.let_go(0);
    }

    /// A value, which counts as used.
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

    /// Keeps a value of so many bytes. One that would take more than half of the budget is not kept.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        let hash = Seeded.hash_one(&key);
        for generation in [&mut self.young, &mut self.old] {
            generation.take(hash, &key);
        }
        if bytes <= self.max_bytes / 2 && self.max_bytes > 0 {
            self.add(Slot { hash, key, value, bytes });
        }
    }

    fn add(&mut self, slot: Slot<K, V>) {
        if self.young.bytes + slot.bytes > self.max_bytes / 2 {
            self.age();
        }
        self.young.bytes += slot.bytes;
        self.young.values.insert_unique(slot.hash, slot, |slot| slot.hash);
        self.let_go(GO_AT_ONCE);
    }

    /// A change of generations.
    fn age(&mut self) {
        self.let_go(usize::MAX);
        let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        (self.going, self.going_bytes) = (old.values.into_iter(), old.bytes);
    }

    /// Drops so many of the values that go, and more where all together would hold more than the budget.
    fn let_go(&mut self, mut least: usize) {
        while least > 0 || self.bytes() > self.max_bytes {
            let Some(slot) = self.going.next() else { break };
            self.going_bytes -= slot.bytes;
            self.evicted += 1;
            least = least.saturating_sub(1);
        }
    }

    fn drop_old(&mut self) {
        self.evicted += self.old.values.len() as u64;
        self.old = Generation::default();
    }

    /// Memory of what is held and of what goes.
    fn bytes(&self) -> usize {
        self.young.bytes + self.old.bytes + self.going_bytes
    }

    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits,
            misses: self.misses,
            entries: self.young.values.len() + self.old.values.len() + self.going.len(),
            bytes: self.bytes(),
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
        MutexGuard::map(self.cache.lock(), |cache| {
            cache.get_or_insert_with(|| Cache::new(self.max_bytes))
        })
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
    fn values_go_little_by_little() {
        let values: Vec<std::sync::Arc<()>> = (0..4_000).map(|_| Default::default()).collect();
        let mut cache: Cache<usize, std::sync::Arc<()>> = Cache::new(2_000);
        let held = || values.iter().filter(|value| std::sync::Arc::strong_count(value) > 1).count();
        for (i, value) in values.iter().enumerate() {
            let before = held();
            cache.insert(i, value.clone(), 1);
            assert!(held() + GO_AT_ONCE > before, "after {i}");
            assert_eq!((cache.stats().bytes, cache.stats().entries), (held(), held()));
            assert!(held() <= 2_000);
        }
        assert_eq!(cache.stats().evicted as usize + held(), values.len());
        cache.set_max_bytes(0);
        assert_eq!((held(), cache.stats().entries, cache.stats().bytes), (0, 0, 0));
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
