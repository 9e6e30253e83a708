//! Interned masks (hash-consing): equal masks are stored once, whichever configurations and
//! grammars they belong to.
//!
//! Most masks are equal to earlier ones: wherever a string or a number continues, the same tokens
//! may follow. A mask that occurs again, in its grammar or in another one of the pool, is stored as
//! a whole bitmap row. Such a row needs no copying; its address is enough.
//!
//! Masks are equal here if they are put together in the same way. Equal sets with different
//! representations are not detected.

use std::collections::hash_map::Entry;
use std::hash::Hasher;
use std::sync::Arc;

use parking_lot::Mutex;

use super::token_set::TokenSet;
use crate::cache::{Cache, CacheStats};
use crate::hash::{HashMap, hasher};
use crate::ids::TokenId;

/// Most tokens of a list that is not turned into a row.
const SHORT_LIST: usize = 64;
/// Memory of a mask that is accounted for elsewhere.
pub(super) const SHARED_MASK_BYTES: usize = size_of::<Arc<TokenSet>>();

/// Interned masks of one grammar, by hash.
#[derive(Debug, Default)]
pub(super) struct GrammarMaskInterner(HashMap<u64, InternedMask>);

/// Interned masks that grammars of one pool share, within a budget.
#[derive(Debug)]
pub(super) struct PoolMaskInterner(Mutex<Cache<u64, InternedMask>>);

/// An interned mask.
#[derive(Clone, Debug)]
struct InternedMask {
    /// As it was first found.
    first: Arc<TokenSet>,
    /// The same as a row, once it has occurred again.
    row: Option<Arc<TokenSet>>,
}

impl InternedMask {
    /// The representation to use.
    fn current(&self) -> &Arc<TokenSet> {
        self.row.as_ref().unwrap_or(&self.first)
    }

    /// Memory in use, in bytes, approximately.
    fn bytes(&self) -> usize {
        self.first.bytes()
            + self.row.as_ref().map_or(0, |row| row.bytes())
            + size_of::<InternedMask>()
    }
}

impl GrammarMaskInterner {
    /// Interns a mask of `words` words. Returns the stored equal mask, and the memory that it adds.
    pub(super) fn intern(
        &mut self,
        mask: Arc<TokenSet>,
        words: usize,
        pool: &PoolMaskInterner,
    ) -> (Arc<TokenSet>, usize) {
        let hash = hash(&mask);
        let interned = match self.0.entry(hash) {
            Entry::Occupied(interned) => interned.into_mut(),
            Entry::Vacant(new) => {
                // Masks of the pool are counted here as well, as the pool may drop them.
                let interned = pool
                    .intern(hash, &mask, words)
                    .unwrap_or(InternedMask { first: mask, row: None });
                let interned = new.insert(interned);
                return (interned.current().clone(), interned.bytes());
            }
        };
        if !is_equal(&interned.first, &mask) {
            let bytes = mask.bytes();
            return (mask, bytes);
        }
        if interned.row.is_some() || is_short(&mask) {
            return (interned.current().clone(), SHARED_MASK_BYTES);
        }
        let row = pool
            .intern(hash, &mask, words)
            .and_then(|interned| interned.row)
            .unwrap_or_else(|| as_row(&mask, words));
        interned.row = Some(row.clone());
        let bytes = row.bytes();
        (row, bytes)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl PoolMaskInterner {
    pub(super) fn new(max_bytes: usize) -> PoolMaskInterner {
        PoolMaskInterner(Mutex::new(Cache::new(max_bytes)))
    }

    /// Changes the budget.
    pub(super) fn set_max_bytes(&self, max_bytes: usize) {
        self.0.lock().set_max_bytes(max_bytes);
    }

    pub(super) fn stats(&self) -> CacheStats {
        self.0.lock().stats()
    }

    /// The stored equal mask, if it was asked for before: as a row unless it is short. A new mask
    /// is stored.
    fn intern(&self, hash: u64, mask: &Arc<TokenSet>, words: usize) -> Option<InternedMask> {
        let interned = self.0.lock().get(&hash);
        let interned = match interned {
            Some(interned) if !is_equal(&interned.first, mask) => return None,
            Some(interned) if interned.row.is_some() || is_short(mask) => return Some(interned),
            Some(interned) => InternedMask { row: Some(as_row(mask, words)), ..interned },
            None => InternedMask { first: mask.clone(), row: None },
        };
        self.0.lock().insert(hash, interned.clone(), interned.bytes());
        interned.row.is_some().then_some(interned)
    }
}

/// The mask as a new row.
fn as_row(mask: &TokenSet, words: usize) -> Arc<TokenSet> {
    Arc::new(TokenSet::row(mask.to_row(words)))
}

/// Whether a row would be no better.
fn is_short(mask: &TokenSet) -> bool {
    match mask {
        TokenSet::List(ids) => ids.len() <= SHORT_LIST,
        TokenSet::Row { remove, add, .. } => remove.is_empty() && add.is_empty(),
    }
}

/// A hash of the representation: shared rows count by address.
fn hash(mask: &TokenSet) -> u64 {
    let mut hasher = hasher();
    match mask {
        TokenSet::List(ids) => hasher.write_u64(sum(ids)),
        TokenSet::Row { base, remove, add } => {
            hasher.write_usize(base.as_ptr().addr());
            hasher.write_u64(sum(remove));
            hasher.write_u64(sum(add));
        }
    }
    hasher.finish()
}

/// A cheap checksum that tells most lists apart.
fn sum(ids: &[TokenId]) -> u64 {
    let (mut plain, mut mixed) = (ids.len() as u32, 0u32);
    for id in ids {
        plain = plain.wrapping_add(id.raw());
        mixed = mixed.wrapping_add(id.raw() << 11 ^ id.raw());
    }
    u64::from(plain) << 32 | u64::from(mixed)
}

/// Whether two masks have equal representations.
fn is_equal(a: &TokenSet, b: &TokenSet) -> bool {
    match (a, b) {
        (TokenSet::List(a), TokenSet::List(b)) => a == b,
        (
            TokenSet::Row { base, remove, add },
            TokenSet::Row { base: other, remove: less, add: more },
        ) => Arc::ptr_eq(base, other) && remove == less && add == more,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: std::ops::Range<u32>) -> Arc<TokenSet> {
        Arc::new(TokenSet::List(ids.map(TokenId::from_raw).collect()))
    }

    fn bits(mask: &TokenSet) -> Vec<u32> {
        let mut bits = vec![u32::MAX; 10];
        mask.write(&mut bits);
        bits
    }

    #[test]
    fn equal_masks_are_stored_once() {
        let (mut interner, pool) = (GrammarMaskInterner::default(), PoolMaskInterner::new(0));
        let mut intern = |mask: Arc<TokenSet>| interner.intern(mask, 10, &pool);
        let (short, bytes) = intern(list(0..9));
        assert!(bytes > 9 * 4);
        let (again, bytes) = intern(list(0..9));
        assert!(Arc::ptr_eq(&short, &again) && bytes == SHARED_MASK_BYTES);
        let (long, _) = intern(list(0..99));
        let (row, bytes) = intern(list(0..99));
        assert!(!Arc::ptr_eq(&long, &row) && bytes > 40 && bits(&row) == bits(&long));
        let (again, bytes) = intern(list(0..99));
        assert!(Arc::ptr_eq(&row, &again) && bytes == SHARED_MASK_BYTES);
        let (other, _) = intern(list(1..99));
        assert_ne!(bits(&other), bits(&row));
        // Different masks of one row, and one list of changes on two rows.
        let TokenSet::Row { base, .. } = &*row else { panic!("a row") };
        let row_with = |base: &Arc<[u32]>, remove: u32, add: u32| {
            let ids = |id: u32| [TokenId::from_raw(id)].into_iter().collect();
            Arc::new(TokenSet::Row { base: base.clone(), remove: ids(remove), add: ids(add) })
        };
        let masks = [
            row_with(base, 3, 200),
            row_with(base, 200, 3),
            row_with(&bits(&short).into(), 3, 200),
        ];
        let interned: Vec<_> = masks.iter().map(|mask| intern(mask.clone()).0).collect();
        for (mask, stored) in masks.iter().zip(&interned) {
            assert_eq!(bits(mask), bits(stored));
            assert_eq!(bits(mask), bits(&intern(mask.clone()).0));
        }
        interner.clear();
        assert!(!Arc::ptr_eq(&interner.intern(list(0..9), 10, &pool).0, &short));
    }

    #[test]
    fn equal_masks_of_two_grammars_share_a_row() {
        let pool = PoolMaskInterner::new(100_000);
        let intern = |mask: Arc<TokenSet>| GrammarMaskInterner::default().intern(mask, 10, &pool).0;
        let first = intern(list(0..99));
        let rows = [intern(list(0..99)), intern(list(0..99))];
        assert!(Arc::ptr_eq(&rows[0], &rows[1]) && bits(&rows[0]) == bits(&first));
        assert!(matches!((&*first, &*rows[0]), (TokenSet::List(_), TokenSet::Row { .. })));
        let short = intern(list(0..9));
        assert!(Arc::ptr_eq(&intern(list(0..9)), &short));
        assert_eq!(pool.stats().entries, 2);
        pool.set_max_bytes(0);
        assert!(pool.stats().bytes == 0 && !Arc::ptr_eq(&intern(list(0..9)), &short));
    }
}
