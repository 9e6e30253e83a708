//! Masks that are the same, whichever configurations they are of, and of which grammars. Most are: wherever a string goes on, or a number, the same
//! tokens may follow. Each is held once, and one that comes again, in its grammar or in another one, as a whole row, which needs no more to be written
//! than its place in memory.

use std::collections::hash_map::Entry;
use std::hash::Hasher;
use std::sync::Arc;

use parking_lot::Mutex;

use super::token_set::TokenSet;
use crate::cache::{Cache, CacheStats};
use crate::hash::{HashMap, hasher};
use crate::ids::TokenId;

/// Lists of so many tokens are as good as rows.
const SHORT: usize = 64;
/// Memory of a mask that is held elsewhere.
pub(super) const HELD: usize = size_of::<Arc<TokenSet>>();

/// Masks of one grammar, by what they are.
#[derive(Debug, Default)]
pub(super) struct Same(HashMap<u64, Known>);

/// Masks that grammars share, within a budget.
#[derive(Debug)]
pub(super) struct Alike(Mutex<Cache<u64, Known>>);

#[derive(Clone, Debug)]
struct Known {
    first: Arc<TokenSet>,
    /// The same as a row, once it has come again.
    row: Option<Arc<TokenSet>>,
}

impl Known {
    fn held(&self) -> &Arc<TokenSet> {
        self.row.as_ref().unwrap_or(&self.first)
    }

    fn bytes(&self) -> usize {
        self.first.bytes() + self.row.as_ref().map_or(0, |row| row.bytes()) + size_of::<Known>()
    }
}

impl Same {
    /// The mask that is held for all that are like this one, which has `words` words, and how much more memory that takes than before.
    pub(super) fn of(
        &mut self,
        mask: Arc<TokenSet>,
        words: usize,
        alike: &Alike,
    ) -> (Arc<TokenSet>, usize) {
        let hash = hash(&mask);
        let known = match self.0.entry(hash) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                // What others hold counts here, too: they may let it go.
                let known =
                    alike.of(hash, &mask, words).unwrap_or(Known { first: mask, row: None });
                let known = new.insert(known);
                return (known.held().clone(), known.bytes());
            }
        };
        if !is_same(&known.first, &mask) {
            let bytes = mask.bytes();
            return (mask, bytes);
        }
        if known.row.is_some() || is_short(&mask) {
            return (known.held().clone(), HELD);
        }
        let row = alike
            .of(hash, &mask, words)
            .and_then(|known| known.row)
            .unwrap_or_else(|| as_row(&mask, words));
        known.row = Some(row.clone());
        let bytes = row.bytes();
        (row, bytes)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Alike {
    pub(super) fn new(max_bytes: usize) -> Alike {
        Alike(Mutex::new(Cache::new(max_bytes)))
    }

    /// Changes the budget.
    pub(super) fn set_max_bytes(&self, max_bytes: usize) {
        self.0.lock().set_max_bytes(max_bytes);
    }

    pub(super) fn stats(&self) -> CacheStats {
        self.0.lock().stats()
    }

    /// What is held of a mask that was asked for before, as a row unless it is short; a new one is noted.
    fn of(&self, hash: u64, mask: &Arc<TokenSet>, words: usize) -> Option<Known> {
        let known = self.0.lock().get(&hash);
        let known = match known {
            Some(known) if !is_same(&known.first, mask) => return None,
            Some(known) if known.row.is_some() || is_short(mask) => return Some(known),
            Some(known) => Known { row: Some(as_row(mask, words)), ..known },
            None => Known { first: mask.clone(), row: None },
        };
        self.0.lock().insert(hash, known.clone(), known.bytes());
        known.row.is_some().then_some(known)
    }
}

/// The mask as a row of its own.
fn as_row(mask: &TokenSet, words: usize) -> Arc<TokenSet> {
    Arc::new(TokenSet::row(mask.written(words)))
}

/// Whether nothing is gained by a row.
fn is_short(mask: &TokenSet) -> bool {
    match mask {
        TokenSet::List(ids) => ids.len() <= SHORT,
        TokenSet::Row { remove, add, .. } => remove.is_empty() && add.is_empty(),
    }
}

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
    fn what_comes_again_is_held_once() {
        let (mut same, alike) = (Same::default(), Alike::new(0));
        let mut of = |mask: Arc<TokenSet>| same.of(mask, 10, &alike);
        let (short, bytes) = of(list(0..9));
        assert!(bytes > 9 * 4);
        let (again, bytes) = of(list(0..9));
        assert!(Arc::ptr_eq(&short, &again) && bytes == HELD);
        let (long, _) = of(list(0..99));
        let (row, bytes) = of(list(0..99));
        assert!(!Arc::ptr_eq(&long, &row) && bytes > 40 && bits(&row) == bits(&long));
        let (again, bytes) = of(list(0..99));
        assert!(Arc::ptr_eq(&row, &again) && bytes == HELD);
        let (other, _) = of(list(1..99));
        assert_ne!(bits(&other), bits(&row));
        // What is made of one row in two ways, and of two rows in one.
        let TokenSet::Row { base, .. } = &*row else { panic!("a row") };
        let made = |base: &Arc<[u32]>, remove: u32, add: u32| {
            let ids = |id: u32| [TokenId::from_raw(id)].into_iter().collect();
            Arc::new(TokenSet::Row { base: base.clone(), remove: ids(remove), add: ids(add) })
        };
        let others = [made(base, 3, 200), made(base, 200, 3), made(&bits(&short).into(), 3, 200)];
        let all: Vec<_> = others.iter().map(|mask| of(mask.clone()).0).collect();
        for (mask, held) in others.iter().zip(&all) {
            assert_eq!(bits(mask), bits(held));
            assert_eq!(bits(mask), bits(&of(mask.clone()).0));
        }
        same.clear();
        assert!(!Arc::ptr_eq(&same.of(list(0..9), 10, &alike).0, &short));
    }

    #[test]
    fn what_comes_again_in_another_grammar_is_a_row() {
        let alike = Alike::new(100_000);
        let of = |mask: Arc<TokenSet>| Same::default().of(mask, 10, &alike).0;
        let first = of(list(0..99));
        let rows = [of(list(0..99)), of(list(0..99))];
        assert!(Arc::ptr_eq(&rows[0], &rows[1]) && bits(&rows[0]) == bits(&first));
        assert!(matches!((&*first, &*rows[0]), (TokenSet::List(_), TokenSet::Row { .. })));
        let short = of(list(0..9));
        assert!(Arc::ptr_eq(&of(list(0..9)), &short));
        assert_eq!(alike.stats().entries, 2);
        alike.set_max_bytes(0);
        assert!(alike.stats().bytes == 0 && !Arc::ptr_eq(&of(list(0..9)), &short));
    }
}
