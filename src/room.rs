//! Room left in lists and tables whose entries come one by one, so that no token waits until the allocator has moved what is there: where much
//! has been dropped shortly before, that is many times what the token costs.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::ops::{Index, IndexMut, RangeInclusive};

/// Least entries there is to be room for.
const LEAST: usize = 64;

/// What room can be left in.
pub(crate) trait LeaveRoom {
    /// Makes room for a quarter more, and for some where there are few. Cost: nothing where there is that room, else as much as copying what is there.
    fn leave_room(&mut self);
}

/// So many entries more for what has so many.
pub(crate) fn more(len: usize) -> usize {
    (len / 4).max(LEAST)
}

impl<T> LeaveRoom for Vec<T> {
    fn leave_room(&mut self) {
        self.reserve(more(self.len()));
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> LeaveRoom for HashMap<K, V, S> {
    fn leave_room(&mut self) {
        self.reserve(more(self.len()));
    }
}

/// A list whose entries stay where they are once there are more than a page of them: what comes then comes on a page of its own. A list of
/// megabytes that doubles is moved at once, and one token waits for all of it. Cost on the first page: as a [`Vec`].
#[derive(Clone, Debug)]
pub(crate) struct Pages<T, const PAGE: usize> {
    first: Vec<T>,
    others: Vec<Vec<T>>,
}

impl<T, const PAGE: usize> Default for Pages<T, PAGE> {
    fn default() -> Self {
        Pages::with_room(0)
    }
}

impl<T, const PAGE: usize> Pages<T, PAGE> {
    /// Nothing yet, and room for so many, at most a page.
    pub(crate) fn with_room(entries: usize) -> Self {
        Pages { first: Vec::with_capacity(entries.min(PAGE)), others: Vec::new() }
    }

    /// Entries, and those that are left out where a run would not have fitted on a page.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.others.last().map_or(self.first.len(), |page| self.others.len() * PAGE + page.len())
    }

    fn last(&mut self) -> &mut Vec<T> {
        self.others.last_mut().unwrap_or(&mut self.first)
    }

    #[cold]
    fn other(&self, at: usize) -> &T {
        &self.others[at / PAGE - 1][at % PAGE]
    }

    /// A run that was pushed, or a part of it.
    pub(crate) fn run_mut(&mut self, range: RangeInclusive<usize>) -> &mut [T] {
        let (from, to) = range.into_inner();
        match from / PAGE {
            0 => &mut self.first[from..=to],
            page => &mut self.others[page - 1][from % PAGE..=to % PAGE],
        }
    }

    pub(crate) fn clear(&mut self) {
        self.others.clear();
        self.first.clear();
    }
}

impl<T: Clone, const PAGE: usize> Pages<T, PAGE> {
    /// The page where there is place for some.
    fn open(&mut self, entries: usize) -> &mut Vec<T> {
        let last = self.last();
        let rest = PAGE - last.len();
        if rest < entries {
            let left_out = last[last.len() - 1].clone();
            last.resize(PAGE, left_out);
            self.others.push(Vec::with_capacity(PAGE));
        }
        self.last()
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        self.open(1).push(entry);
    }

    /// Adds an entry so many times, one beside the other; at most a page of them. Returns where they begin.
    pub(crate) fn push_run(&mut self, entry: T, count: usize) -> usize {
        debug_assert!(count <= PAGE);
        let page = self.open(count);
        page.resize(page.len() + count, entry);
        self.len() - count
    }
}

impl<T, const PAGE: usize> Index<usize> for Pages<T, PAGE> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        match self.first.get(at) {
            Some(entry) => entry,
            None => self.other(at),
        }
    }
}

impl<T, const PAGE: usize> IndexMut<usize> for Pages<T, PAGE> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.run_mut(at..=at)[0]
    }
}

impl<T, const PAGE: usize> LeaveRoom for Pages<T, PAGE> {
    fn leave_room(&mut self) {
        let more = more(self.len());
        let page = self.last();
        page.reserve(more.min(PAGE - page.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_beside_each_other_and_nothing_is_lost_between_pages() {
        let mut pages = Pages::<u32, 8>::with_room(2);
        let mut expected = Vec::new();
        for (entry, count) in (0..).zip([3, 4, 2, 8, 1, 5, 8, 7]) {
            let at = pages.push_run(entry, count);
            assert!(at / 8 == (at + count - 1) / 8, "{at} {count}");
            expected.extend((at..at + count).map(|at| (at, entry)));
        }
        let at = pages.len();
        pages.push(99);
        expected.push((at, 99));
        assert!(expected.iter().all(|&(at, entry)| pages[at] == entry));
        pages.run_mut(8..=9).fill(7);
        assert_eq!((pages[7], pages[8], pages[9], pages[16]), (1, 7, 7, 3));
        pages.clear();
        assert_eq!(pages.len(), 0);
        assert_eq!(pages.push_run(1, 8), 0);
        pages.leave_room();
        pages.push(2);
        assert_eq!((pages.len(), pages[8]), (9, 2));
    }
}
