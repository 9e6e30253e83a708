//! The masks of a batch: which mask each row has, and each distinct mask once.

use louver::engine::{Engine, Matcher, RowStatus, UniqueRows};
use louver::vocab::Vocabulary;

use crate::error::MaskError;

/// In place of a mask's number: the row is not constrained.
pub(crate) const FREE: u32 = u32::MAX;
/// In place of a mask's number: every id of the mask's width is allowed.
pub(crate) const ALL: u32 = u32::MAX - 1;

/// What a row of a batch allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMask<'a> {
    /// Everything; the row is not touched, however wide the logits are.
    Free,
    /// Every id below the batch's width. Only logits that are wider have something to mask.
    All,
    /// The ids whose bits are set, the lowest bit of the first word first.
    Words(&'a [u32]),
}

/// The masks of a batch, kept from step to step: its buffers are not made anew unless they have to grow.
///
/// Rows that allow the same share one mask through an index, so that a batch on one schema has one row of words however
/// many sequences it has. With the feature `cuda`, the batch also keeps a copy on the device and knows which masks have
/// changed since: [`MaskBatch::upload`] sends those.
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
    /// The masks, one after the other. No mask has a bit at or beyond `width`.
    words: Vec<u32>,
    /// Per row: the number of its mask, [`FREE`] or [`ALL`].
    index: Vec<u32>,
    /// Per mask: when it was last written. Times are counted, and never go back.
    written: Vec<u64>,
    /// When the index was last written.
    indexed: u64,
    now: u64,
    status: Vec<RowStatus>,
    scratch: Vec<u32>,
    #[cfg(feature = "cuda")]
    pub(crate) device: std::sync::Mutex<Option<crate::cuda::Upload>>,
}

impl MaskBatch {
    /// An empty batch for masks of this many ids, usually [`Vocabulary::width`].
    pub fn new(width: usize) -> Self {
        Self {
            width,
            row_words: width.div_ceil(32),
            words: Vec::new(),
            index: Vec::new(),
            written: Vec::new(),
            indexed: 0,
            now: 0,
            status: Vec::new(),
            scratch: Vec::new(),
            #[cfg(feature = "cuda")]
            device: std::sync::Mutex::new(None),
        }
    }

    /// An empty batch for masks of this vocabulary.
    pub fn for_vocabulary(vocab: &Vocabulary) -> Self {
        Self::new(vocab.width())
    }

    /// Ids that a mask says something of. Ids beyond it are not allowed in rows that are constrained.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Words of a mask.
    pub fn row_words(&self) -> usize {
        self.row_words
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Masks that are kept, those that no row has any more included.
    pub fn masks(&self) -> usize {
        self.written.len()
    }

    /// What a row allows; none where there is no such row.
    pub fn row(&self, row: usize) -> Option<RowMask<'_>> {
        self.index.get(row).map(|&mask| self.slot(mask))
    }

    /// What became of the rows when they were last filled by an engine ([`RowStatus::Constrained`] or [`RowStatus::Free`] for
    /// rows set by hand).
    pub fn status(&self) -> &[RowStatus] {
        &self.status
    }

    pub(crate) fn slot(&self, mask: u32) -> RowMask<'_> {
        match mask {
            FREE => RowMask::Free,
            ALL => RowMask::All,
            mask => RowMask::Words(&self.words[mask as usize * self.row_words..][..self.row_words]),
        }
    }

    pub(crate) fn index(&self) -> &[u32] {
        &self.index
    }

    #[cfg(any(test, feature = "cuda"))]
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    #[cfg(any(test, feature = "cuda"))]
    pub(crate) fn written(&self) -> &[u64] {
        &self.written
    }

    #[cfg(any(test, feature = "cuda"))]
    pub(crate) fn indexed(&self) -> u64 {
        self.indexed
    }

    /// Fills the batch with the masks of these matchers, one a row, in parallel ([`Engine::fill_masks_unique`]). Takes anything
    /// that iterates over `&mut Matcher`, or over `Option<&mut Matcher>`, where a row without a matcher is
    /// [`RowMask::Free`]. The batch then has as many rows as there are matchers. Cost: for known masks, one look-up a row and
    /// one copy a distinct mask.
    pub fn fill<'m, M>(&mut self, engine: &Engine, matchers: M) -> Result<&[RowStatus], MaskError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        self.check_width(engine)?;
        let mut constrained = Vec::new();
        let matchers = matchers.into_iter().map(|matcher| {
            let matcher: Option<&'m mut Matcher> = matcher.into();
            constrained.push(matcher.is_some());
            matcher
        });
        let unique = engine.fill_masks_unique(matchers, &mut self.words)?;
        self.now += 1;
        self.indexed = self.now;
        self.written.clear();
        self.written.resize(unique.masks, self.now);
        self.index.clear();
        self.index.extend(
            unique.rows.iter().zip(&constrained).map(|(&(_, mask), &held)| slot_of(mask, held)),
        );
        self.status.clear();
        self.status.extend(unique.rows.iter().map(|&(status, _)| status));
        Ok(&self.status)
    }

    /// Fills these rows with the masks of these matchers, and leaves the others as they are: what is sent to a device next is
    /// only what is new. Cost as of [`MaskBatch::fill`] for these rows, and a pass over the index.
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
        let mut named = vec![false; self.len()];
        for &row in rows {
            let seen = named.get_mut(row).ok_or(MaskError::Row { row, rows: self.index.len() })?;
            if std::mem::replace(seen, true) {
                return Err(MaskError::Repeated { row });
            }
        }
        let constrained: Vec<bool> = matchers.iter().map(Option::is_some).collect();
        let mut scratch = std::mem::take(&mut self.scratch);
        let unique = engine.fill_masks_unique(matchers, &mut scratch);
        self.scratch = scratch;
        self.place(rows, &constrained, &unique?);
        Ok(&self.status)
    }

    /// Puts the masks of `scratch` where no other row's mask is, and the rows on them.
    fn place(&mut self, rows: &[usize], constrained: &[bool], unique: &UniqueRows) {
        for &row in rows {
            self.index[row] = FREE;
        }
        let mut used = self.used();
        let mut places: Vec<Option<u32>> = vec![None; unique.masks];
        for ((&row, &held), &(status, mask)) in rows.iter().zip(constrained).zip(&unique.rows) {
            self.status[row] = status;
            self.index[row] = match mask {
                None => slot_of(None, held),
                Some(mask) => match places[mask as usize] {
                    Some(place) => place,
                    None => {
                        let scratch = std::mem::take(&mut self.scratch);
                        let place = self.put(
                            &scratch[mask as usize * self.row_words..][..self.row_words],
                            &mut used,
                        );
                        self.scratch = scratch;
                        places[mask as usize] = Some(place);
                        place
                    }
                },
            };
        }
        self.now += 1;
        self.indexed = self.now;
    }

    /// Per mask, whether some row has it.
    fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.masks()];
        for &mask in &self.index {
            if let Some(used) = used.get_mut(mask as usize) {
                *used = true;
            }
        }
        used
    }

    /// Writes a mask where none is in use, and says where.
    fn put(&mut self, words: &[u32], used: &mut Vec<bool>) -> u32 {
        let place = used.iter().position(|used| !used).unwrap_or(used.len());
        if place == used.len() {
            used.push(false);
            self.written.push(0);
            self.words.resize(self.written.len() * self.row_words, 0);
        }
        used[place] = true;
        self.words[place * self.row_words..][..self.row_words].copy_from_slice(words);
        self.now += 1;
        self.written[place] = self.now;
        place as u32
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

    /// Gives the batch this many rows; new ones are [`RowMask::Free`].
    pub fn resize(&mut self, rows: usize) {
        self.index.resize(rows, FREE);
        self.status.resize(rows, RowStatus::Free);
        self.now += 1;
        self.indexed = self.now;
    }

    /// Sets the mask of a row by hand. Bits at or beyond the width are not looked at; a mask that allows every id
    /// becomes [`RowMask::All`]. Other rows keep what they have, also those that shared this row's mask. Cost: a pass
    /// over the index and a copy.
    pub fn set(&mut self, row: usize, words: &[u32]) -> Result<(), MaskError> {
        self.check_row(row)?;
        if words.len() != self.row_words {
            return Err(MaskError::Words { words: self.row_words, got: words.len() });
        }
        self.index[row] = FREE;
        let within = |at: usize| match self.width - at * 32 {
            ids @ 0..32 => (1 << ids) - 1,
            _ => u32::MAX,
        };
        let words: Vec<u32> =
            words.iter().enumerate().map(|(at, word)| word & within(at)).collect();
        let all = words.iter().enumerate().all(|(at, &word)| word == within(at));
        self.index[row] = if all {
            ALL
        } else {
            let mut used = self.used();
            self.put(&words, &mut used)
        };
        self.status[row] = if all { RowStatus::Free } else { RowStatus::Constrained };
        self.now += 1;
        self.indexed = self.now;
        Ok(())
    }

    /// Frees a row: it is not touched.
    pub fn set_free(&mut self, row: usize) -> Result<(), MaskError> {
        self.check_row(row)?;
        self.index[row] = FREE;
        self.status[row] = RowStatus::Free;
        self.now += 1;
        self.indexed = self.now;
        Ok(())
    }

    /// Gives a row the mask of another row, without a copy.
    pub fn share(&mut self, row: usize, with: usize) -> Result<(), MaskError> {
        self.check_row(row)?;
        self.check_row(with)?;
        self.index[row] = self.index[with];
        self.status[row] = self.status[with];
        self.now += 1;
        self.indexed = self.now;
        Ok(())
    }
}

/// The index of a row that an engine has filled: one without a matcher is free, one whose grammar allows everything still
/// ends at the width.
fn slot_of(mask: Option<u32>, held: bool) -> u32 {
    match (mask, held) {
        (Some(mask), _) => mask,
        (None, true) => ALL,
        (None, false) => FREE,
    }
}

#[cfg(test)]
mod tests;
