//! Lists as sets: the keywords of schemas list names and values, most of them few.

use std::hash::Hash;

use crate::fuel;
use crate::hash::HashSet;

/// Adds the items that a list does not have yet.
pub(super) fn extend_distinct<T: PartialEq + Clone>(list: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

/// As [`extend_distinct`], for lists that may be long.
pub(super) fn extend_hashed<T: Eq + Hash + Clone>(list: &mut Vec<T>, more: &[T]) {
    if list.len().saturating_mul(more.len()) <= LINEAR_SEARCH_LIMIT {
        return extend_distinct(list, more);
    }
    let present: HashSet<&T> = list.iter().collect();
    let more: Vec<T> = more.iter().filter(|item| !present.contains(item)).cloned().collect();
    list.extend(more);
}

/// Up to so many comparisons cost less than building a hash set.
const LINEAR_SEARCH_LIMIT: usize = 256;

/// Membership test on a list, by a hash set if the number of queries makes that worthwhile.
pub(crate) struct MembershipTest<'l, T> {
    list: &'l [T],
    set: Option<HashSet<&'l T>>,
}

impl<'l, T: Eq + Hash> MembershipTest<'l, T> {
    /// Prepares a list for this number of queries.
    pub(crate) fn new(list: &'l [T], queries: usize) -> Self {
        let set = (list.len().saturating_mul(queries) > LINEAR_SEARCH_LIMIT)
            .then(|| list.iter().collect());
        MembershipTest { list, set }
    }

    /// Whether the list has an item.
    pub(crate) fn contains(&self, item: &T) -> bool {
        match &self.set {
            Some(set) => set.contains(item),
            None => self.list.contains(item),
        }
    }
}

/// The first item of a list that another list contains, too.
pub(crate) fn first_common<'l, T: Eq + Hash>(list: &'l [T], other: &'l [T]) -> Option<&'l T> {
    fuel::charge(1 + (list.len() + other.len()) / 8);
    let other = MembershipTest::new(other, list.len());
    list.iter().find(|item| other.contains(item))
}

/// Whether `list` is a subset of `other`.
pub(crate) fn is_subset<T: Eq + Hash>(list: &[T], other: &[T]) -> bool {
    fuel::charge(1 + (list.len() + other.len()) / 8);
    let other = MembershipTest::new(other, list.len());
    list.iter().all(|item| other.contains(item))
}
