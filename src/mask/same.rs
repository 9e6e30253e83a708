//! Masks that are the same, whichever configurations they are of. Most are: wherever a string goes on, or a number, the same tokens may follow. Each is
//! held once, and one that comes again as a whole row, which needs no more to be written than its place in memory.

use std::collections::hash_map::Entry;
use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use super::set::TokenSet;
use crate::ids::TokenId;

/// Lists of so many tokens are as good as rows.
const SHORT: usize = 64;
/// Memory of a mask that is held elsewhere.
pub(super) const HELD: usize = size_of::<Arc<TokenSet>>();

/// Masks by what they are.
#[derive(Debug, Default)]
pub(super) struct Same(FxHashMap<u64, Known>);

#[derive(Debug)]
struct Known {
    first: Arc<TokenSet>,
    /// The same as a row, once it has come again.
    row: Option<Arc<TokenSet>>,
}

impl Same {
    /// The mask that is held for all that are like this one, which has `words` words, and how much more memory that takes than before.
    pub(super) fn of(&mut self, mask: Arc<TokenSet>, words: usize) -> (Arc<TokenSet>, usize) {
        let known = match self.0.entry(hash(&mask)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(Known { first: mask.clone(), row: None });
                let bytes = mask.bytes() + size_of::<Known>();
                return (mask, bytes);
            }
        };
        if !is_same(&known.first, &mask) {
            let bytes = mask.bytes();
            return (mask, bytes);
        }
        if is_short(&mask) {
            return (known.first.clone(), HELD);
        }
        if let Some(row) = &known.row {
            return (row.clone(), HELD);
        }
        let mut bits = vec![0; words];
        mask.write(&mut bits);
        let row = Arc::new(TokenSet::row(bits));
        known.row = Some(row.clone());
        let bytes = row.bytes();
        (row, bytes)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Whether nothing is gained by a row.
fn is_short(mask: &TokenSet) -> bool {
    match mask {
        TokenSet::List(ids) => ids.len() <= SHORT,
        TokenSet::Row { remove, add, .. } => remove.is_empty() && add.is_empty(),
    }
}

fn hash(mask: &TokenSet) -> u64 {
    let mut hasher = FxHasher::default();
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

/// Something that tells most lists apart, and is soon found.
fn sum(ids: &[TokenId]) -> u64 {
    let (mut plain, mut mixed) = (ids.len() as u32, 0u32);
    for id in ids {
        plain = plain.wrapping_add(id.raw());
        mixed = mixed.wrapping_add(id.raw() << 11 ^ id.raw());
    }
    u64::from(plain) << 32 | u64::from(mixed)
}

/// Whether two are the same, put together in the same way.
fn is_same(a: &TokenSet, b: &TokenSet) -> bool {
    match (a, b) {
        (TokenSet::List(a), TokenSet::List(b)) => a == b,
        (TokenSet::Row { base, remove, add }, TokenSet::Row { base: other, remove: less, add: more }) => {
            Arc::ptr_eq(base, other) && remove == less && add == more
        }
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
    fn what_comes_again_is_held_once() {
        let mut same = Same::default();
        let (short, bytes) = same.of(list(0..9), 10);
        assert!(bytes > 9 * 4);
        let (again, bytes) = same.of(list(0..9), 10);
        assert!(Arc::ptr_eq(&short, &again) && bytes == HELD);
        let (long, _) = same.of(list(0..99), 10);
        let (row, bytes) = same.of(list(0..99), 10);
        assert!(!Arc::ptr_eq(&long, &row) && bytes > 40 && bits(&row) == bits(&long));
        let (again, bytes) = same.of(list(0..99), 10);
        assert!(Arc::ptr_eq(&row, &again) && bytes == HELD);
        let (other, _) = same.of(list(1..99), 10);
        assert_ne!(bits(&other), bits(&row));
        // What is made of one row in two ways, and of two rows in one.
        let TokenSet::Row { base, .. } = &*row else { panic!("a row") };
        let of = |base: &Arc<[u32]>, remove: u32, add: u32| {
            let ids = |id: u32| [TokenId::from_raw(id)].into_iter().collect();
            Arc::new(TokenSet::Row { base: base.clone(), remove: ids(remove), add: ids(add) })
        };
        let others = [of(base, 3, 200), of(base, 200, 3), of(&bits(&short).into(), 3, 200)];
        let all: Vec<_> = others.iter().map(|mask| same.of(mask.clone(), 10).0).collect();
        for (mask, held) in others.iter().zip(&all) {
            assert_eq!(bits(mask), bits(held));
            assert_eq!(bits(mask), bits(&same.of(mask.clone(), 10).0));
        }
        same.clear();
        assert!(!Arc::ptr_eq(&same.of(list(0..9), 10).0, &short));
    }
}
