//! Lists as sets: the keywords of schemas list names and values, most of them few.
//!
//! Each operation charges what it does: a third of a unit for a comparison, two units for an item
//! of a hash set.

use std::hash::Hash;
use std::rc::Rc;

use crate::fuel;
use crate::hash::HashSet;

/// Comparisons of two items for one unit of fuel.
const COMPARISONS_PER_UNIT: usize = 3;
/// Comparisons of two addresses for one unit of fuel.
const ADDRESSES_PER_UNIT: usize = 16;
/// Fuel for an item of a hash set, from adding it to dropping the set.
const FUEL_PER_HASHED: usize = 2;
/// Up to so many comparisons cost less than building a hash set.
const LINEAR_SEARCH_LIMIT: usize = 256;
/// Up to so many items are searched for one by one, however long the list is.
const FEW: usize = 4;

/// Adds the items that a list does not have yet.
pub(super) fn extend_distinct<T: PartialEq + Clone>(list: &mut Vec<T>, more: &[T]) {
    fuel::charge(list.len().saturating_mul(more.len()) / COMPARISONS_PER_UNIT);
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// As [`extend_distinct`], for items that are shared; those at one address are equal.
pub(super) fn extend_shared<T>(list: &mut Vec<Rc<T>>, more: &[Rc<T>]) {
    fuel::charge(list.len().saturating_mul(more.len()) / ADDRESSES_PER_UNIT);
    for item in more {
        if !list.iter().any(|other| Rc::ptr_eq(other, item)) {
            list.push(item.clone());
        }
    }
}

/// As [`extend_distinct`], for lists that may be long.
pub(super) fn extend_hashed<T: Eq + Hash + Clone>(list: &mut Vec<T>, more: &[T]) {
    let present = MembershipTest::new(list, more.len());
    let more: Vec<T> = more.iter().filter(|item| !present.contains(item)).cloned().collect();
    list.extend(more);
}

/// Membership test on a list, by a hash set if the number of queries makes that worthwhile.
pub(crate) struct MembershipTest<'l, T> {
    list: &'l [T],
    set: Option<HashSet<&'l T>>,
}

impl<'l, T: Eq + Hash> MembershipTest<'l, T> {
    /// Prepares a list for this number of queries.
    pub(crate) fn new(list: &'l [T], queries: usize) -> Self {
        let is_hashed = queries.min(list.len()) > FEW
            && list.len().saturating_mul(queries) > LINEAR_SEARCH_LIMIT;
        let set = is_hashed.then(|| {
            fuel::charge(FUEL_PER_HASHED * list.len());
            list.iter().collect()
        });
        MembershipTest { list, set }
    }

    /// Whether the list has an item.
    pub(crate) fn contains(&self, item: &T) -> bool {
        if let Some(set) = &self.set {
            fuel::charge(1);
            return set.contains(item);
        }
        fuel::charge(self.list.len().div_ceil(COMPARISONS_PER_UNIT));
        self.list.contains(item)
    }
}

/// An item of a list that another list contains, too: the first such one of the longer list.
pub(crate) fn common_item<'l, T: Eq + Hash>(list: &'l [T], other: &'l [T]) -> Option<&'l T> {
    let (short, long) = if list.len() < other.len() { (list, other) } else { (other, list) };
    if short.is_empty() {
        return None;
    }
    let present = MembershipTest::new(short, long.len());
    long.iter().find(|item| present.contains(item))
}

/// Whether `list` is certainly a subset of `other`; `false` without fuel. Neither has an item
/// twice.
pub(crate) fn is_subset<T: Eq + Hash>(list: &[T], other: &[T]) -> bool {
    if list.len() > other.len() {
        return false;
    }
    // Lists that come from the same schemas have their items in the same order.
    let (mut next, mut compared) = (0, 0);
    for (i, item) in list.iter().enumerate() {
        if compared > LINEAR_SEARCH_LIMIT + 2 * other.len() {
            let present = MembershipTest::new(other, list.len() - i);
            return list[i..].iter().all(|item| present.contains(item));
        }
        let (before, after) = other.split_at(next);
        let found = after.iter().chain(before).position(|known| known == item);
        let steps = found.map_or(other.len(), |found| found + 1);
        let spent = fuel::spend(steps.div_ceil(COMPARISONS_PER_UNIT));
        if found.is_none() || spent.is_err() {
            return false;
        }
        compared += steps;
        next = (next + steps) % other.len();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of names: in order, reversed, with gaps, with a foreign item at either end, long.
    fn lists() -> Vec<Vec<String>> {
        let name = |i: usize| format!("name{i}");
        let mut out = vec![Vec::new(), vec![name(3)], (0..9).map(name).collect()];
        for n in [40, 400] {
            out.push((0..n).map(name).collect());
            out.push((0..n).rev().map(name).collect());
            out.push((0..n).step_by(3).map(name).collect());
            out.push((0..n).rev().step_by(2).map(name).chain(["x".into()]).collect());
            out.push(["x".to_owned(), "y".into()].into_iter().chain((0..n).map(name)).collect());
            out.push((1_000..1_000 + n).map(name).collect());
        }
        out
    }

    #[test]
    fn lists_are_compared_as_sets() {
        for (a, b) in lists().iter().flat_map(|a| lists().into_iter().map(move |b| (a, b))) {
            let subset = a.iter().all(|item| b.contains(item));
            assert_eq!(is_subset(a, &b), subset, "{a:?} in {b:?}");
            let common = common_item(a, &b);
            assert_eq!(common.is_some(), a.iter().any(|item| b.contains(item)), "{a:?} and {b:?}");
            assert!(common.is_none_or(|item| a.contains(item) && b.contains(item)));
            let mut union = a.clone();
            extend_hashed(&mut union, &b);
            let mut expected = a.clone();
            extend_distinct(&mut expected, &b);
            assert_eq!(union, expected);
        }
    }

    /// What is compared or hashed is charged, and no list is hashed to look for a few items.
    #[test]
    fn comparisons_are_charged() {
        let names = |n: usize| (0..n).map(|i| format!("name{i}")).collect::<Vec<_>>();
        let (many, few, other) = (names(600), names(2), vec!["x".to_owned(), "y".into()]);
        let reversed: Vec<String> = many.iter().rev().cloned().collect();
        let fuel = |work: &dyn Fn() -> bool| fuel::measure(|| assert!(work())).1;
        assert!(fuel(&|| !is_subset(&many, &few)) == 0, "a longer list is no subset");
        assert!((200..1_000).contains(&fuel(&|| is_subset(&many, &many))));
        assert!((200..600).contains(&fuel(&|| !is_subset(&other, &many))));
        assert!((1_200..4_000).contains(&fuel(&|| is_subset(&reversed, &many))));
        assert!((200..1_000).contains(&fuel(&|| common_item(&many, &other).is_none())));
        assert!(
            (900..2_000).contains(&fuel(&|| common_item(&many[..300], &many[300..]).is_none()))
        );
    }
}
