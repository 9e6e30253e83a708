//! Pre-reserved capacity of growing lists and tables, so that the decode path seldom reallocates.
//!
//! Lists of configurations and masks grow one entry at a time. Where much memory was freed shortly
//! before, one reallocation costs many times what a token costs. So capacity is reserved between
//! tokens ([`ReserveMore`]), and long lists grow by pages that never move ([`PagedVec`]). Tables by
//! id grow on demand ([`IdTable`]).

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut, RangeInclusive};

use crate::ids::TableId;

/// Fewest entries to reserve.
const LEAST: usize = 64;

/// Containers whose capacity can be reserved ahead of use.
pub(crate) trait ReserveMore {
    /// Reserves capacity for a quarter more entries, and for at least 64.
    ///
    /// Cost: nothing if that capacity is there, else one copy of the content.
    fn reserve_more(&mut self);
}

/// How many entries to reserve for a container of `len` entries.
pub(crate) fn growth(len: usize) -> usize {
    (len / 4).max(LEAST)
}

impl<T> ReserveMore for Vec<T> {
    fn reserve_more(&mut self) {
        self.reserve(growth(self.len()));
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> ReserveMore for HashMap<K, V, S> {
    fn reserve_more(&mut self) {
        self.reserve(growth(self.len()));
    }
}

/// A table by id that grows on demand. Entries that were never written have the default value.
#[derive(Clone, Debug)]
pub(crate) struct IdTable<I, T> {
    entries: Vec<T>,
    ids: PhantomData<I>,
}

impl<I, T> Default for IdTable<I, T> {
    fn default() -> Self {
        IdTable::with_capacity(0)
    }
}

impl<I, T> IdTable<I, T> {
    /// An empty table with capacity for `entries`.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        IdTable { entries: Vec::with_capacity(entries), ids: PhantomData }
    }

    /// The number of entries up to the last one that was written.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

impl<I: TableId, T: Clone + Default> IdTable<I, T> {
    /// The entry of an id.
    #[inline]
    pub(crate) fn get(&self, id: I) -> T {
        self.find(id).cloned().unwrap_or_default()
    }

    /// The entry of an id; `None` if neither it nor one of a greater id was written.
    #[inline]
    pub(crate) fn find(&self, id: I) -> Option<&T> {
        self.entries.get(id.table_index())
    }

    /// The entry of an id, to write.
    #[inline]
    pub(crate) fn entry(&mut self, id: I) -> &mut T {
        let index = id.table_index();
        if self.entries.len() <= index {
            self.entries.resize(index + 1, T::default());
        }
        &mut self.entries[index]
    }
}

impl<I, T> ReserveMore for IdTable<I, T> {
    fn reserve_more(&mut self) {
        self.entries.reserve_more();
    }
}

/// A list of fixed-size pages. Entries beyond the first page never move when the list grows: a list
/// of megabytes that doubled would be copied at once, while one token waits. On the first page it
/// costs as much as a [`Vec`].
#[derive(Clone, Debug)]
pub(crate) struct PagedVec<T, const PAGE: usize> {
    first: Vec<T>,
    others: Vec<Vec<T>>,
}

impl<T, const PAGE: usize> Default for PagedVec<T, PAGE> {
    fn default() -> Self {
        PagedVec::with_capacity(0)
    }
}

impl<T, const PAGE: usize> PagedVec<T, PAGE> {
    /// An empty list with capacity for `entries`, at most for a page.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        PagedVec { first: Vec::with_capacity(entries.min(PAGE)), others: Vec::new() }
    }

    /// The number of entries, padding at the end of pages included.
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

    /// A pushed run, or a part of it.
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

impl<T: Clone, const PAGE: usize> PagedVec<T, PAGE> {
    /// The last page if `entries` fit on it, else a new one.
    fn open(&mut self, entries: usize) -> &mut Vec<T> {
        let last = self.last();
        let rest = PAGE - last.len();
        if rest < entries {
            let padding = last[last.len() - 1].clone();
            last.resize(PAGE, padding);
            self.others.push(Vec::with_capacity(PAGE));
        }
        self.last()
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        self.open(1).push(entry);
    }

    /// Adds `count` copies of an entry on one page and returns the index of the first. `count` is
    /// at most the size of a page.
    pub(crate) fn push_run(&mut self, entry: T, count: usize) -> usize {
        debug_assert!(count <= PAGE);
        let page = self.open(count);
        page.resize(page.len() + count, entry);
        self.len() - count
    }
}

impl<T, const PAGE: usize> Index<usize> for PagedVec<T, PAGE> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        match self.first.get(at) {
            Some(entry) => entry,
            None => self.other(at),
        }
    }
}

impl<T, const PAGE: usize> IndexMut<usize> for PagedVec<T, PAGE> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.run_mut(at..=at)[0]
    }
}

impl<T, const PAGE: usize> ReserveMore for PagedVec<T, PAGE> {
    fn reserve_more(&mut self) {
        let growth = growth(self.len());
        let page = self.last();
        page.reserve(growth.min(PAGE - page.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TokenId;

    #[test]
    fn entries_that_were_never_written_are_default() {
        let mut table = IdTable::<TokenId, u8>::default();
        *table.entry(TokenId::from_raw(3)) += 7;
        let entries = [0, 3, 4].map(|raw| table.get(TokenId::from_raw(raw)));
        assert_eq!((entries, table.len()), ([0, 7, 0], 4));
        table.clear();
        assert_eq!((table.find(TokenId::from_raw(3)), table.len()), (None, 0));
    }

    #[test]
    fn runs_are_contiguous_and_kept_across_pages() {
        let mut pages = PagedVec::<u32, 8>::with_capacity(2);
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
        pages.reserve_more();
        pages.push(2);
        assert_eq!((pages.len(), pages[8]), (9, 2));
    }
}
