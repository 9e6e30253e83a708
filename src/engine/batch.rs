//! Batches: the masks of many sequences at once.
//!
//! Rows are sorted by constraint, so that each constraint is locked once. Cached masks are looked
//! up on the calling thread; only masks that have to be made are handed to the batch threads. Equal
//! configurations share one mask. Large batches are written by several threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::runtime::{EngineCounters, EngineThreads, count};
use super::termination::{Termination, write_stop_tokens};
use super::{Engine, Matcher};
use crate::hash::{HashMap, HashSet};
use crate::mask::{MaskState, TokenSet};
use crate::vocab::Vocabulary;

/// Least number of rows for which writing them is worth waking other threads. A row of a vocabulary
/// of 128k tokens has 16 KB.
const PARALLEL_ROWS: usize = 16;

/// What a row of a batch allows.
///
/// ```
/// # use std::sync::Arc;
/// # use louver::{Engine, EngineOptions, Matcher, RowStatus, Vocabulary};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let vocab = Arc::new(Vocabulary::toy(&[]));
/// let engine = Engine::new(vocab.clone(), EngineOptions::default());
/// // A sequence without a constraint.
/// let rows: [Option<&mut Matcher>; 1] = [None];
/// let mut masks = vec![0; vocab.mask_words()];
/// assert_eq!(engine.fill_masks(rows, &mut masks)?, [RowStatus::Free]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RowStatus {
    /// Every id of the logits is allowed, because the row has no matcher or the grammar allows
    /// everything. The row need not be applied.
    Free,
    /// The row is the mask of the tokens that may follow.
    Constrained,
    /// A stop token has been taken. Only stop tokens are allowed; the sequence can leave the batch.
    Finished,
    /// The parser reached a limit, which [`Matcher::limit`] names. Only stop tokens are allowed.
    Limit,
    /// The engine panicked while it made this mask, which is a bug. Only stop tokens are allowed.
    /// Other rows are unaffected, and the matcher stays usable.
    Failed,
}

/// Why a batch was not filled. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The buffer does not have one row for each matcher.
    #[error("the mask buffer has {got} words instead of {rows} rows of {words} words")]
    Length {
        /// Number of matchers.
        rows: usize,
        /// Words of one row.
        words: usize,
        /// Words of the buffer.
        got: usize,
    },
    /// A matcher belongs to another vocabulary.
    #[error("the matcher of row {row} uses a different vocabulary from the engine's")]
    OtherVocabulary {
        /// Index of the matcher.
        row: usize,
    },
}

/// Which distinct mask each row of a batch has, so that a caller uploads each mask once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UniqueRows {
    /// For each row: its status and the index of its mask. The index is `None` where the status is
    /// [`RowStatus::Free`]: then no mask has to be applied.
    pub rows: Vec<(RowStatus, Option<u32>)>,
    /// Number of distinct masks that were written.
    pub masks: usize,
}

/// The mask of a row, as far as it is known.
#[derive(Clone, Debug)]
enum RowMask {
    /// Not known yet.
    Pending,
    /// Every id of the logits: the row has no matcher.
    Everything,
    /// A mask of the grammar.
    Set(Arc<TokenSet>),
    /// Stop tokens only, for the reason given.
    StopsOnly(RowStatus),
}

impl From<Termination> for RowMask {
    fn from(termination: Termination) -> RowMask {
        RowMask::StopsOnly(match termination {
            Termination::Stopped => RowStatus::Finished,
            Termination::Limit(_) => RowStatus::Limit,
        })
    }
}

impl RowMask {
    /// The identity of a shared mask.
    fn shared(&self) -> Option<*const TokenSet> {
        match self {
            RowMask::Set(set) => Some(Arc::as_ptr(set)),
            RowMask::Everything | RowMask::StopsOnly(_) | RowMask::Pending => None,
        }
    }
}

/// A row while its batch is filled.
struct BatchRow<'m> {
    /// `None` for a row that is not constrained.
    matcher: Option<&'m mut Matcher>,
    /// Index of the row in the batch.
    position: usize,
    row_mask: RowMask,
}

impl BatchRow<'_> {
    /// Identifies the lock of the row's constraint; 0 for rows without a matcher, which sort first.
    fn lock_group(&self) -> usize {
        self.matcher.as_ref().map_or(0, |m| Arc::as_ptr(&m.masks).addr())
    }
}

impl Engine {
    /// Writes the masks of many matchers: row `i` of `masks`, of [`Vocabulary::mask_words`] words,
    /// is what [`Matcher::fill_mask`] of matcher `i` would write.
    ///
    /// Takes anything that iterates over `&mut Matcher`, or over `Option<&mut Matcher>` where some
    /// sequences are not constrained; the rows of those allow every id. The matchers may belong to
    /// any constraints of this engine's vocabulary.
    ///
    /// Errors: [`BatchError`], with nothing written. Cost: for cached masks, one look-up and one
    /// copy a row; each constraint is locked once, and equal configurations of a constraint cost
    /// one mask.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, RowStatus, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"true", b"null"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let compile = |schema| engine.compile_json_schema(schema, &SchemaOptions::default());
    /// let (yes, no) = (compile(r#"{"const": true}"#)?, compile(r#"{"const": null}"#)?);
    /// let mut matchers = vec![yes.matcher(), no.matcher()];
    /// let mut masks = vec![0; matchers.len() * vocab.mask_words()];
    /// let rows = engine.fill_masks(&mut matchers, &mut masks)?;
    /// assert_eq!(rows, [RowStatus::Constrained; 2]);
    /// let mut alone = vec![0; vocab.mask_words()];
    /// matchers[1].fill_mask(&mut alone);
    /// assert_eq!(&masks[vocab.mask_words()..], alone);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_masks<'m, M>(
        &self,
        matchers: M,
        masks: &mut [u32],
    ) -> Result<Vec<RowStatus>, BatchError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        let mut rows = self.collect_rows(matchers)?;
        let words = self.vocab.mask_words();
        if masks.len() != rows.len() * words {
            return Err(BatchError::Length { rows: rows.len(), words, got: masks.len() });
        }
        self.resolve_masks(&mut rows);
        let mut status = vec![RowStatus::Constrained; rows.len()];
        rows.sort_unstable_by_key(|row| row.position);
        let work: Vec<_> = masks.chunks_mut(words.max(1)).zip(&rows).zip(&mut status).collect();
        self.runtime.for_each(work, PARALLEL_ROWS, |((mask, row), status)| {
            *status = write_row(&self.vocab, &row.row_mask, mask)
        });
        Ok(status)
    }

    /// As [`Engine::fill_masks`], but writes each distinct mask once, one after the other. `masks`
    /// is resized to [`UniqueRows::masks`] rows. Keep the buffer between calls, so that it is
    /// allocated once.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let constraint = engine.compile_json_schema("true", &SchemaOptions::default())?;
    /// let mut matchers = vec![constraint.matcher(); 3];
    /// let mut masks = Vec::new();
    /// let unique = engine.fill_masks_unique(&mut matchers, &mut masks)?;
    /// assert_eq!((unique.rows.len(), unique.masks, masks.len()), (3, 1, vocab.mask_words()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_masks_unique<'m, M>(
        &self,
        matchers: M,
        masks: &mut Vec<u32>,
    ) -> Result<UniqueRows, BatchError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        let mut rows = self.collect_rows(matchers)?;
        self.resolve_masks(&mut rows);
        let words = self.vocab.mask_words();
        let mut numbers: HashMap<Option<*const TokenSet>, u32> = HashMap::default();
        let mut distinct: Vec<&RowMask> = Vec::new();
        let mut out = vec![(RowStatus::Free, None); rows.len()];
        for row in &rows {
            if let RowMask::Everything = row.row_mask {
                continue;
            }
            let number = *numbers.entry(row.row_mask.shared()).or_insert(distinct.len() as u32);
            if number as usize == distinct.len() {
                distinct.push(&row.row_mask);
            }
            let status = if let RowMask::StopsOnly(status) = row.row_mask {
                status
            } else {
                RowStatus::Constrained
            };
            out[row.position] = (status, Some(number));
        }
        masks.resize(distinct.len() * words, 0);
        let mut written = vec![RowStatus::Constrained; distinct.len()];
        let work: Vec<_> =
            masks.chunks_mut(words.max(1)).zip(&distinct).zip(&mut written).collect();
        self.runtime.for_each(work, PARALLEL_ROWS, |((mask, row_mask), status)| {
            *status = write_row(&self.vocab, row_mask, mask)
        });
        for (status, number) in &mut out {
            if *status == RowStatus::Constrained
                && number.is_some_and(|n| written[n as usize] == RowStatus::Free)
            {
                (*status, *number) = (RowStatus::Free, None);
            }
        }
        Ok(UniqueRows { rows: out, masks: distinct.len() })
    }

    /// The rows of a batch. Fails where a matcher has another vocabulary.
    fn collect_rows<'m, M>(&self, matchers: M) -> Result<Vec<BatchRow<'m>>, BatchError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        // Matchers of a batch nearly always share one vocabulary: contents are compared once a
        // change.
        let mut equal_vocab = Arc::as_ptr(&self.vocab);
        let row = |(position, matcher): (usize, M::Item)| {
            let matcher = matcher.into();
            if let Some(m) =
                matcher.as_deref().filter(|m: &&Matcher| Arc::as_ptr(&m.masks.vocab) != equal_vocab)
            {
                if m.masks.vocab != self.vocab {
                    return Err(BatchError::OtherVocabulary { row: position });
                }
                equal_vocab = Arc::as_ptr(&m.masks.vocab);
            }
            Ok(BatchRow {
                row_mask: if matcher.is_some() { RowMask::Pending } else { RowMask::Everything },
                matcher,
                position,
            })
        };
        matchers.into_iter().enumerate().map(row).collect()
    }

    /// Finds the mask of every row, and leaves the rows sorted by constraint.
    fn resolve_masks(&self, rows: &mut [BatchRow<'_>]) {
        let runtime = &self.runtime;
        rows.sort_unstable_by_key(|row| (row.lock_group(), row.position));
        let groups = rows
            .chunk_by_mut(|a, b| a.lock_group() == b.lock_group())
            .filter(|group| group[0].matcher.is_some());
        // Cached masks are taken here; only masks that have to be made are worth waking other
        // threads.
        let pending: Vec<&mut [BatchRow<'_>]> =
            groups.filter_map(|group| (!take_cached_masks(group)).then_some(group)).collect();
        runtime.for_each(pending, 2, |group| make_pending_masks(runtime, group));
        count(&runtime.counters.batch.batches, 1);
        count(&runtime.counters.batch.rows, rows.len());
        let sets = rows.iter().filter_map(|row| row.row_mask.shared());
        let mut seen = HashSet::default();
        count(&runtime.counters.batch.rows_repeated, sets.filter(|&set| !seen.insert(set)).count());
    }
}

/// Takes the cached masks of the matchers of one constraint. `true` if no row is left pending.
fn take_cached_masks(group: &mut [BatchRow<'_>]) -> bool {
    let Some(masks) = group[0].matcher.as_ref().map(|m| m.masks.clone()) else { return true };
    // The owner of the lock may be making a mask; other constraints need not wait for it.
    let Some(mut state) = masks.try_lock() else { return false };
    let mut complete = true;
    for row in group {
        let Some(matcher) = &mut row.matcher else { continue };
        row.row_mask = match matcher.termination() {
            Some(termination) => RowMask::from(termination),
            None if matcher.epoch == state.epoch => {
                let cached = masks.find_mask(&mut state, matcher.config());
                cached.map_or(RowMask::Pending, RowMask::Set)
            }
            None => RowMask::Pending,
        };
        complete &= !matches!(row.row_mask, RowMask::Pending);
    }
    complete
}

/// Makes the masks of a constraint's matchers that are still pending, under one lock.
fn make_pending_masks(runtime: &EngineThreads, group: &mut [BatchRow<'_>]) {
    let Some(masks) = group[0].matcher.as_ref().map(|m| m.masks.clone()) else { return };
    let mut state = masks.lock();
    for row in group.iter_mut().filter(|row| matches!(row.row_mask, RowMask::Pending)) {
        let Some(matcher) = &mut row.matcher else { continue };
        let made =
            catch_unwind(AssertUnwindSafe(|| make_mask(&runtime.counters, &mut state, matcher)));
        row.row_mask = made.unwrap_or_else(|_| {
            count(&runtime.counters.batch.rows_failed, 1);
            // Repair the caches. If that panics as well, the next owner of the lock tries again.
            let _ = catch_unwind(AssertUnwindSafe(|| state.reset_after_panic()));
            RowMask::StopsOnly(RowStatus::Failed)
        });
    }
}

/// Makes the mask of one matcher.
fn make_mask(counters: &EngineCounters, state: &mut MaskState, matcher: &mut Matcher) -> RowMask {
    #[cfg(any(test, feature = "fault-injection"))]
    counters.maybe_panic(0);
    count(&counters.batch.rows_built, 1);
    match matcher.mask_locked(state) {
        Ok(set) => RowMask::Set(set),
        Err(termination) => RowMask::from(termination),
    }
}

/// Writes a row and returns its status.
fn write_row(vocab: &Vocabulary, row_mask: &RowMask, mask: &mut [u32]) -> RowStatus {
    let everything = |word: usize| {
        let ids = vocab.width() - word * 32;
        if ids >= 32 { u32::MAX } else { (1 << ids) - 1 }
    };
    match row_mask {
        RowMask::Set(set) => {
            set.write(mask);
            let free = mask.iter().enumerate().all(|(i, &word)| word == everything(i));
            if free { RowStatus::Free } else { RowStatus::Constrained }
        }
        RowMask::Everything => {
            mask.iter_mut().enumerate().for_each(|(i, word)| *word = everything(i));
            RowStatus::Free
        }
        RowMask::StopsOnly(status) => {
            write_stop_tokens(vocab, mask);
            *status
        }
        RowMask::Pending => {
            write_stop_tokens(vocab, mask);
            RowStatus::Failed
        }
    }
}

#[cfg(test)]
mod tests;
