//! The masks of a batch, filled by an engine or by hand.

use louver::engine::{Engine, Matcher, RowStatus, UniqueRows};
use louver::vocab::Vocabulary;

use crate::error::MaskError;
use crate::table::{ALL_IDS, FREE_ROW, MaskTable, RowMask};

/// The masks of a batch, reused from step to step: its buffers only grow.
///
/// Rows with equal masks share one through an index, so that a batch with one schema has one mask
/// regardless of its number of sequences. With the feature `cuda` the batch also keeps a copy on
/// the device and tracks which masks have changed; [`MaskBatch::upload`] sends those.
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
    table: MaskTable,
    status: Vec<RowStatus>,
    scratch: Vec<u32>,
    #[cfg(feature = "cuda")]
    pub(crate) device: std::sync::Mutex<Option<crate::cuda::upload::Upload>>,
}

impl MaskBatch {
    /// Creates an empty batch for masks of `width` ids, usually [`Vocabulary::width`].
    pub fn new(width: usize) -> Self {
        Self {
            table: MaskTable::new(width),
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
        self.table.keep(bytes / (4 * self.row_words()).max(1));
        self.status.fill(RowStatus::Free);
    }

    /// Width of the masks in ids. Ids beyond it are not allowed in constrained rows.
    pub fn width(&self) -> usize {
        self.table.width()
    }

    /// Number of words per mask.
    pub fn row_words(&self) -> usize {
        self.table.row_words()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of stored masks, including those that no row uses any more.
    pub fn masks(&self) -> usize {
        self.table.store.len()
    }

    /// The mask of a row; `None` if there is no such row.
    pub fn row(&self, row: usize) -> Option<RowMask<'_>> {
        self.table.row(row)
    }

    /// The status of each row from the last fill by an engine. Rows set by hand are
    /// [`RowStatus::Constrained`] or [`RowStatus::Free`].
    pub fn status(&self) -> &[RowStatus] {
        &self.status
    }

    pub(crate) fn table(&self) -> &MaskTable {
        &self.table
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
        let store = &mut self.table.store;
        let buffer = if store.keeps() { &mut self.scratch } else { store.words_mut() };
        let unique = engine.fill_masks_unique(matchers, buffer)?;
        self.resize(0);
        self.resize(constrained.len());
        if self.table.store.keeps() {
            let rows: Vec<usize> = (0..constrained.len()).collect();
            self.assign_masks(&rows, &constrained, &unique);
        } else {
            // The buffer is the store.
            self.table.replaced(unique.masks);
            for (row, &(status, mask)) in unique.rows.iter().enumerate() {
                self.status[row] = status;
                self.table.assign(row, mask_number(mask, constrained[row]));
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
                is_named.get_mut(row).ok_or(MaskError::Row { row, rows: self.table.len() })?;
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
        rows.iter().for_each(|&row| self.table.assign(row, FREE_ROW));
        let (scratch, row_words) = (std::mem::take(&mut self.scratch), self.row_words());
        let mut numbers: Vec<Option<u32>> = vec![None; unique.masks];
        for ((&row, &has_matcher), &(status, mask)) in
            rows.iter().zip(constrained).zip(&unique.rows)
        {
            let number = mask.map(|mask| {
                let words = &scratch[mask as usize * row_words..][..row_words];
                *numbers[mask as usize].get_or_insert_with(|| self.table.insert(words))
            });
            self.status[row] = status;
            self.table.assign(row, mask_number(number, has_matcher));
        }
        self.scratch = scratch;
    }

    fn check_width(&self, engine: &Engine) -> Result<(), MaskError> {
        let width = engine.vocab().width();
        if width == self.width() {
            Ok(())
        } else {
            Err(MaskError::Width { engine: width, batch: self.width() })
        }
    }

    fn check_row(&self, row: usize) -> Result<(), MaskError> {
        if row < self.len() { Ok(()) } else { Err(MaskError::Row { row, rows: self.len() }) }
    }

    /// Sets the number of rows; new ones are [`RowMask::Free`].
    pub fn resize(&mut self, rows: usize) {
        self.table.resize(rows);
        self.status.resize(rows, RowStatus::Free);
    }

    /// Sets the mask of a row by hand. Bits at or beyond the width are ignored; a mask that allows
    /// every id becomes [`RowMask::All`]. Other rows keep their masks, including those that shared
    /// this row's mask. Cost: a pass over the masks and a copy.
    pub fn set(&mut self, row: usize, words: &[u32]) -> Result<(), MaskError> {
        self.check_row(row)?;
        if words.len() != self.row_words() {
            return Err(MaskError::Words { words: self.row_words(), got: words.len() });
        }
        let valid_bits = |at: usize| match self.width() - at * 32 {
            ids @ 0..32 => (1 << ids) - 1,
            _ => u32::MAX,
        };
        let words: Vec<u32> =
            words.iter().enumerate().map(|(at, word)| word & valid_bits(at)).collect();
        let all = words.iter().enumerate().all(|(at, &word)| word == valid_bits(at));
        self.table.assign(row, FREE_ROW);
        let mask = if all { ALL_IDS } else { self.table.insert(&words) };
        self.table.assign(row, mask);
        self.status[row] = if all { RowStatus::Free } else { RowStatus::Constrained };
        Ok(())
    }

    /// Makes a row unconstrained.
    pub fn set_free(&mut self, row: usize) -> Result<(), MaskError> {
        self.check_row(row)?;
        self.table.assign(row, FREE_ROW);
        self.status[row] = RowStatus::Free;
        Ok(())
    }

    /// Assigns another row's mask to a row, without a copy.
    pub fn share(&mut self, row: usize, with: usize) -> Result<(), MaskError> {
        self.check_row(row)?;
        self.check_row(with)?;
        self.table.share(row, with);
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
