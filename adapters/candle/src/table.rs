//! The masks of a batch as a device sees them: each distinct mask once, and an index from rows to
//! masks. Versions tell what has changed since a copy was made.

use std::ops::Range;

use crate::store::MaskStore;

/// Index entry of an unconstrained row.
pub(crate) const FREE_ROW: u32 = u32::MAX;
/// Index entry of a row that allows every id below the mask's width.
pub(crate) const ALL_IDS: u32 = u32::MAX - 1;

/// The mask of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMask<'a> {
    /// Everything is allowed; the row is not modified, regardless of its width.
    Free,
    /// Every id below the batch's width is allowed. Only wider logits have ids to mask.
    All,
    /// The ids whose bits are set, least significant bit of the first word first.
    Words(&'a [u32]),
}

/// Rows and their masks.
#[derive(Debug)]
pub(crate) struct MaskTable {
    /// Width of the masks in ids.
    width: usize,
    /// The masks. None has a bit at or beyond `width`.
    pub(crate) store: MaskStore,
    /// Per row: the number of its mask, or [`FREE_ROW`] or [`ALL_IDS`].
    index: Vec<u32>,
    /// The version at which the index was last written.
    index_version: u64,
    /// The version of the last change. Versions only increase.
    version: u64,
}

impl MaskTable {
    pub(crate) fn new(width: usize) -> Self {
        let store = MaskStore::new(width.div_ceil(32));
        Self { width, store, index: Vec::new(), index_version: 0, version: 0 }
    }

    /// Width of the masks in ids.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Number of words per mask.
    pub(crate) fn row_words(&self) -> usize {
        self.width.div_ceil(32)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The mask of a row; `None` if there is no such row.
    pub(crate) fn row(&self, row: usize) -> Option<RowMask<'_>> {
        self.index.get(row).map(|&mask| self.mask_by_number(mask))
    }

    pub(crate) fn mask_by_number(&self, mask: u32) -> RowMask<'_> {
        match mask {
            FREE_ROW => RowMask::Free,
            ALL_IDS => RowMask::All,
            mask => RowMask::Words(self.store.mask(mask)),
        }
    }

    pub(crate) fn index(&self) -> &[u32] {
        &self.index
    }

    pub(crate) fn words(&self) -> &[u32] {
        self.store.words()
    }

    pub(crate) fn mask_versions(&self) -> &[u64] {
        self.store.versions()
    }

    pub(crate) fn index_version(&self) -> u64 {
        self.index_version
    }

    /// Stores at most `places` masks that no row uses. Makes all rows free.
    pub(crate) fn keep(&mut self, places: usize) {
        let rows = self.len();
        self.index.clear();
        self.store.keep(places);
        self.resize(rows);
    }

    /// After the words of the store were overwritten: it has this many masks, which no row uses.
    pub(crate) fn replaced(&mut self, masks: usize) {
        self.store.replaced(masks, self.version);
    }

    /// Stores a mask at a new version and returns its number.
    pub(crate) fn insert(&mut self, words: &[u32]) -> u32 {
        self.version += 1;
        self.store.insert(words, self.version)
    }

    /// Gives a row another mask, or none.
    pub(crate) fn assign(&mut self, row: usize, mask: u32) {
        self.version += 1;
        self.store.acquire(mask);
        self.store.release(self.index[row], self.version);
        self.index[row] = mask;
        self.index_version = self.version;
    }

    /// Assigns another row's mask to a row.
    pub(crate) fn share(&mut self, row: usize, with: usize) {
        self.assign(row, self.index[with]);
    }

    /// Sets the number of rows; new ones are free.
    pub(crate) fn resize(&mut self, rows: usize) {
        self.version += 1;
        self.index_version = self.version;
        for &mask in self.index.get(rows..).unwrap_or_default() {
            self.store.release(mask, self.version);
        }
        self.index.resize(rows, FREE_ROW);
    }

    /// The ranges of a device buffer (the index, then the masks) that differ from the table;
    /// adjacent ranges are merged. `mask_versions` and `index_version` are those on the device.
    pub(crate) fn changed_ranges(
        &self,
        mask_versions: &[u64],
        index_version: u64,
        index_capacity: usize,
    ) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        if index_version != self.index_version() && !self.index.is_empty() {
            let first_mask_changed = mask_versions.first() != self.mask_versions().first();
            // If the first mask changed, the index is copied together with it.
            ranges.push(0..if first_mask_changed { index_capacity } else { self.len() });
        }
        for (mask, at) in self.mask_versions().iter().enumerate() {
            if mask_versions.get(mask) != Some(at) {
                let begin = index_capacity + mask * self.row_words();
                let end = begin + self.row_words();
                match ranges.last_mut() {
                    Some(last) if last.end == begin => last.end = end,
                    _ => ranges.push(begin..end),
                }
            }
        }
        ranges
    }
}
