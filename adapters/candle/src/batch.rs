//! The masks of a batch: each distinct mask once, and an index from rows to masks.

use louver::engine::{Engine, Matcher, RowStatus, UniqueRows};
use louver::vocab::Vocabulary;

use crate::error::MaskError;
use crate::store::MaskStore;

/// Index entry of an unconstrained row.
pub(crate) const FREE_ROW: u32 = u32::MAX;
/// Index entry of a row that allows every id below the mask's width.
pub(crate) const ALL_IDS: u32 = u32::MAX - 1;

/// The mask of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMask<'a> {
    /// Everything is allowed; the row is not modified, whatever its width.
    Free,
    /// Every id below the batch's width is allowed. Only wider logits have ids to mask.
    All,
    /// The ids whose bits are set, least significant bit of the first word first.
    Words(&'a [u32]),
}

/// The masks of a batch, reused from step to step: its buffers only grow.
///
/// Rows with equal masks share one through an index, so that a batch with one schema has one mask
/// whatever its number of sequences. With the feature `cuda` the batch also keeps a copy on the
/// device and tracks which masks have changed; [`MaskBatch::upload`] sends those.
///
/// ```
/// use louver_candle::{MaskBatch, RowMask};
///
/// let mut masks = MaskBatch::new(40);
/// masks.resize(3);
/// masks.set(0, &[0b101, 0])?;
/// masks.share(2, 0)?;
/// assert_eq!(masks.row(1), Some(RowMask::Free));
/// assert_eq!(masks.row(2), Some(RowMask::Words(&[0b101, 0])));
/// assert_eq!(masks.masks(), 1);
/// # Ok::<(), louver_candle::MaskError>(())
/// ```
#[derive(Debug)]
pub struct MaskBatch {
    width: usize,
    row_words: usize,
    /// The masks. None has a bit at or beyond `width`.
    store: MaskStore,
    /// Per row: the number of its mask, or [`FREE_ROW`] or [`ALL_IDS`].
    index: Vec<u32>,
    /// The version at which the index was last written.
    index_version: u64,
    version: u64,
    status: Vec<RowStatus>,
    scratch: Vec<u32>,
    #[cfg(feature = "cuda")]
    pub(crate) device: std::sync::Mutex<Option<crate::cuda::Upload>>,
}

impl MaskBatch {
    /// Creates an empty batch for masks of `width` ids, usually [`Vocabulary::width`].
    pub fn new(width: usize) -> Self {
        Self {
            width,
            row_words: width.div_ceil(32),
            store: MaskStore::new(width.div_ceil(32)),
            index: Vec::new(),
            index_version: 0,
            version: 0,
            status: Vec::new(),
            scratch: Vec::new(),
            #[cfg(feature = "cuda")]
            device: std::sync::Mutex::new(None),
        }
    }

    /// Creates an empty batch for masks of this vocabulary.
    pub fn for_vocabulary(vocab: &Vocabulary) -> Self {
        Self::new(vocab.width())
    }

    /// Keeps masks that no row uses any more, up to `bytes` of masks; the one that was left first
    /// makes room. A mask that comes back is then an index into what the device has and is not
    /// sent again. Makes all rows free. 0 keeps none: the default, and right for the CPU.
    ///
    /// Costs: `bytes` of memory, and on CUDA up to half as much again on the device and in pinned
    /// memory, which grow with the masks; a hash and a comparison for each mask that is filled.
    pub fn keep_masks(&mut self, bytes: usize) {
        let rows = self.len();
        self.index.clear();
        self.store.keep(bytes / (4 * self.row_words).max(1));
        self.resize(rows);
    }

    /// Width of the masks in ids. Ids beyond it are not allowed in constrained rows.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of words per mask.
    pub fn row_words(&self) -> usize {
        self.row_words
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Number of stored masks, including those that no row uses any more.
    pub fn masks(&self) -> usize {
        self.store.len()
    }

    /// The mask of a row; `None` if there is no such row.
    pub fn row(&self, row: usize) -> Option<RowMask<'_>> {
        self.index.get(row).map(|&mask| self.mask_by_number(mask))
    }

    /// The status of each row from the last fill by an engine. Rows set by hand are
    /// [`RowStatus::Constrained`] or [`RowStatus::Free`].
    pub fn status(&self) -> &[RowStatus] {
        &self.status
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

    /// Fills the batch in parallel with the masks of these matchers, one per row
    /// ([`Engine::fill_masks_unique`]). Accepts iterators over `&mut Matcher` or `Option<&mut
    /// Matcher>`; a row without a matcher becomes [`RowMask::Free`]. The batch then has one row per
    /// matcher. Cost for cached masks: one look-up per row and one copy per distinct mask.
    pub fn fill<'m, M>(&mut self, engine: &Engine, matchers: M) -> Result<&[RowStatus], MaskError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        self.check_width(engine)?;
        let matchers: Vec<Option<&'m mut Matcher>> = matchers.into_iter().map(Into::into).collect();
        let constrained: Vec<bool> = matchers.iter().map(Option::is_some).collect();
        let buffer = if self.store.keeps() { &mut self.scratch } else { self.store.words_mut() };
        let unique = engine.fill_masks_unique(matchers, buffer)?;
        self.resize(0);
        self.resize(constrained.len());
        if self.store.keeps() {
            let rows: Vec<usize> = (0..constrained.len()).collect();
            self.assign_masks(&rows, &constrained, &unique);
        } else {
            // The buffer is the store.
            self.store.replaced(unique.masks, self.version);
            for (row, &(status, mask)) in unique.rows.iter().enumerate() {
                self.status[row] = status;
                self.assign(row, mask_number(mask, constrained[row]));
            }
        }
        Ok(&self.status)
    }

    /// Fills the given rows and keeps the others, so that the next upload only sends new masks.
    /// Cost: that of [`MaskBatch::fill`] for these rows, and a pass over the index.
    pub fn refill<'m, M>(
        &mut self,
        engine: &Engine,
        rows: &[usize],
        matchers: M,
    ) -> Result<&[RowStatus], MaskError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        self.check_width(engine)?;
        let matchers: Vec<Option<&'m mut Matcher>> = matchers.into_iter().map(Into::into).collect();
        if matchers.len() != rows.len() {
            return Err(MaskError::Matchers { rows: rows.len(), matchers: matchers.len() });
        }
        let mut is_named = vec![false; self.len()];
        for &row in rows {
            let seen =
                is_named.get_mut(row).ok_or(MaskError::Row { row, rows: self.index.len() })?;
            if std::mem::replace(seen, true) {
                return Err(MaskError::Repeated { row });
            }
        }
        let constrained: Vec<bool> = matchers.iter().map(Option::is_some).collect();
        let mut scratch = std::mem::take(&mut self.scratch);
        let unique = engine.fill_masks_unique(matchers, &mut scratch);
        self.scratch = scratch;
        self.assign_masks(rows, &constrained, &unique?);
        Ok(&self.status)
    }

    /// Stores the masks of `scratch` in unused places and assigns them to the rows.
    fn assign_masks(&mut self, rows: &[usize], constrained: &[bool], unique: &UniqueRows) {
        rows.iter().for_each(|&row| self.assign(row, FREE_ROW));
        let scratch = std::mem::take(&mut self.scratch);
        let mut numbers: Vec<Option<u32>> = vec![None; unique.masks];
        for ((&row, &has_matcher), &(status, mask)) in
            rows.iter().zip(constrained).zip(&unique.rows)
        {
            let number = mask.map(|mask| {
                let words = &scratch[mask as usize * self.row_words..][..self.row_words];
                *numbers[mask as usize].get_or_insert_with(|| self.insert(words))
            });
            self.status[row] = status;
            self.assign(row, mask_number(number, has_matcher));
        }
        self.scratch = scratch;
    }

    /// Stores a mask at a new version and returns its number.
    fn insert(&mut self, words: &[u32]) -> u32 {
        self.version += 1;
        self.store.insert(words, self.version)
    }

    /// Gives a row another mask, or none.
    fn assign(&mut self, row: usize, mask: u32) {
        self.version += 1;
        self.store.acquire(mask);
        self.store.release(self.index[row], self.version);
        self.index[row] = mask;
        self.index_version = self.version;
    }

    fn check_width(&self, engine: &Engine) -> Result<(), MaskError> {
        let width = engine.vocab().width();
        if width == self.width {
            Ok(())
        } else {
            Err(MaskError::Width { engine: width, batch: self.width })
        }
    }

    fn check_row(&self, row: usize) -> Result<(), MaskError> {
        if row < self.len() { Ok(()) } else { Err(MaskError::Row { row, rows: self.len() }) }
    }

    /// Sets the number of rows; new ones are [`RowMask::Free`].
    pub fn resize(&mut self, rows: usize) {
        self.version += 1;
        self.index_version = self.version;
        for &mask in self.index.get(rows..).unwrap_or_default() {
            self.store.release(mask, self.version);
        }
        self.index.resize(rows, FREE_ROW);
        self.status.resize(rows, RowStatus::Free);
    }

    /// Sets the mask of a row by hand. Bits at or beyond the width are ignored; a mask that allows
    /// every id becomes [`RowMask::All`]. Other rows keep their masks, including those that shared
    /// this row's mask. Cost: a pass over the masks and a copy.
    pub fn set(&mut self, row: usize, words: &[u32]) -> Result<(), MaskError> {
        self.check_row(row)?;
        if words.len() != self.row_words {
            return Err(MaskError::Words { words: self.row_words, got: words.len() });
        }
        let valid_bits = |at: usize| match self.width - at * 32 {
            ids @ 0..32 => (1 << ids) - 1,
            _ => u32::MAX,
        };
        let words: Vec<u32> =
            words.iter().enumerate().map(|(at, word)| word & valid_bits(at)).collect();
        let all = words.iter().enumerate().all(|(at, &word)| word == valid_bits(at));
        self.assign(row, FREE_ROW);
        let mask = if all { ALL_IDS } else { self.insert(&words) };
        self.assign(row, mask);
        self.status[row] = if all { RowStatus::Free } else { RowStatus::Constrained };
        Ok(())
    }

    /// Makes a row unconstrained.
    pub fn set_free(&mut self, row: usize) -> Result<(), MaskError> {
        self.check_row(row)?;
        self.assign(row, FREE_ROW);
        self.status[row] = RowStatus::Free;
        Ok(())
    }

    /// Assigns another row's mask to a row, without a copy.
    pub fn share(&mut self, row: usize, with: usize) -> Result<(), MaskError> {
        self.check_row(row)?;
        self.check_row(with)?;
        self.assign(row, self.index[with]);
        self.status[row] = self.status[with];
        Ok(())
    }
}

/// The index entry of a row filled by an engine. A row without a matcher is free; a row whose
/// grammar allows everything is still limited to the width.
fn mask_number(mask: Option<u32>, has_matcher: bool) -> u32 {
    match (mask, has_matcher) {
        (Some(mask), _) => mask,
        (None, true) => ALL_IDS,
        (None, false) => FREE_ROW,
    }
}

#[cfg(test)]
mod tests;
