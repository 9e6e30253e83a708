//! Masks of many sequences at once: matchers of one constraint share one lock, equal situations share one mask, and rows
//! are written by several threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::shared::{Counters, Shared, count};
use super::{Engine, Matcher, stops_only};
use crate::hash::{HashMap, HashSet};
use crate::mask::{Index, IndexState, TokenSet};
use crate::vocab::Vocabulary;

/// Rows from which on writing them is worth waking other threads (a row of a 128k vocabulary has 16 KB).
const PARALLEL_ROWS: usize = 16;

/// What a row of a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RowStatus {
    /// Every id of the logits is allowed (there is no matcher for this row, or the grammar allows everything): the row need
    /// not be applied.
    Free,
    /// The row says which tokens may follow.
    Constrained,
    /// A stop token has been taken: only stop tokens are allowed, and the sequence can leave the batch.
    Finished,
    /// The parser ran into a limit ([`Matcher::limit`] says which): only stop tokens are allowed.
    Limit,
    /// The engine panicked while it made this mask, which is a bug. Only stop tokens are allowed; other rows are not
    /// affected, and the matcher stays usable.
    Failed,
}

/// Why a batch cannot be filled. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The buffer does not have one row a matcher.
    #[error("{got} words of masks for {rows} rows of {words} words")]
    Length {
        /// Matchers given.
        rows: usize,
        /// Words of a row.
        words: usize,
        /// Words given.
        got: usize,
    },
    /// A matcher belongs to an engine with another vocabulary.
    #[error("the matcher of row {row} has another vocabulary than this engine")]
    OtherVocabulary {
        /// Its row.
        row: usize,
    },
}

/// Which mask each row of a batch has, for callers that hand each distinct mask to the device once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueRows {
    /// Per row of the batch: what it is, and which of the distinct masks it has (none where it is
    /// [`RowStatus::Free`]: then none has to be applied).
    pub rows: Vec<(RowStatus, Option<u32>)>,
    /// How many distinct masks were written.
    pub masks: usize,
}

/// What a row allows.
#[derive(Clone, Debug)]
enum Allows {
    /// Not known yet.
    Open,
    Everything,
    Set(Arc<TokenSet>),
    Stops(RowStatus),
}

struct Row<'m> {
    matcher: Option<&'m mut Matcher>,
    at: usize,
    allows: Allows,
}

impl Row<'_> {
    /// Rows with equal groups share a lock; free rows come first and are a group without one.
    fn group(&self) -> usize {
        self.matcher.as_ref().map_or(0, |m| Arc::as_ptr(&m.index).addr())
    }
}

impl Engine {
    /// Writes the masks of many matchers: row `i` of `masks` ([`Vocabulary::mask_words`] words) is what
    /// [`Matcher::fill_mask`] of matcher `i` would write. Takes anything that iterates over `&mut Matcher`, or over
    /// `Option<&mut Matcher>` for batches in which some sequences are not constrained; their rows allow every id.
    ///
    /// Matchers may be of any constraints of this engine's vocabulary. Cost: for known masks, one look-up and one copy a row;
    /// each constraint is locked once, and equal situations of one constraint are computed once.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::engine::{Engine, EngineOptions, RowStatus};
    /// # use louver::front::json_schema::SchemaOptions;
    /// # use louver::vocab::Vocabulary;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"true", b"null"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let yes = engine.compile_json_schema(r#"{"const": true}"#, &SchemaOptions::default())?;
    /// let no = engine.compile_json_schema(r#"{"const": null}"#, &SchemaOptions::default())?;
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
        let mut rows = self.rows(matchers)?;
        let words = self.vocab.mask_words();
        if masks.len() != rows.len() * words {
            return Err(BatchError::Length { rows: rows.len(), words, got: masks.len() });
        }
        self.resolve(&mut rows);
        let mut status = vec![RowStatus::Constrained; rows.len()];
        rows.sort_unstable_by_key(|row| row.at);
        let work: Vec<_> = masks.chunks_mut(words.max(1)).zip(&rows).zip(&mut status).collect();
        self.shared.for_each(work, PARALLEL_ROWS, |((mask, row), status)| {
            *status = write(&self.vocab, &row.allows, mask)
        });
        Ok(status)
    }

    /// As [`Engine::fill_masks`], but writes each distinct mask once, one after the other: `masks` is emptied and then
    /// holds [`UniqueRows::masks`] rows. Keep the buffer between calls: it is not made anew where it is large enough.
    pub fn fill_masks_unique<'m, M>(
        &self,
        matchers: M,
        masks: &mut Vec<u32>,
    ) -> Result<UniqueRows, BatchError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        let mut rows = self.rows(matchers)?;
        self.resolve(&mut rows);
        let words = self.vocab.mask_words();
        let mut numbers: HashMap<usize, u32> = HashMap::default();
        let mut distinct: Vec<&Allows> = Vec::new();
        let mut out = vec![(RowStatus::Free, None); rows.len()];
        for row in &rows {
            let key = match &row.allows {
                Allows::Everything => continue,
                Allows::Set(set) => Arc::as_ptr(set).addr(),
                Allows::Stops(_) | Allows::Open => 0,
            };
            let number = *numbers.entry(key).or_insert(distinct.len() as u32);
            if number as usize == distinct.len() {
                distinct.push(&row.allows);
            }
            let status = if let Allows::Stops(status) = row.allows {
                status
            } else {
                RowStatus::Constrained
            };
            out[row.at] = (status, Some(number));
        }
        masks.resize(distinct.len() * words, 0);
        let mut written = vec![RowStatus::Constrained; distinct.len()];
        let work: Vec<_> =
            masks.chunks_mut(words.max(1)).zip(&distinct).zip(&mut written).collect();
        self.shared.for_each(work, PARALLEL_ROWS, |((mask, allows), status)| {
            *status = write(&self.vocab, allows, mask)
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

    fn rows<'m, M>(&self, matchers: M) -> Result<Vec<Row<'m>>, BatchError>
    where
        M: IntoIterator,
        M::Item: Into<Option<&'m mut Matcher>>,
    {
        // Matchers of equal vocabularies have the same one, nearly always: its content is compared once.
        let mut known = Arc::as_ptr(&self.vocab);
        let row = |(at, matcher): (usize, M::Item)| {
            let matcher = matcher.into();
            if let Some(m) =
                matcher.as_deref().filter(|m: &&Matcher| Arc::as_ptr(&m.index.vocab) != known)
            {
                if m.index.vocab != self.vocab {
                    return Err(BatchError::OtherVocabulary { row: at });
                }
                known = Arc::as_ptr(&m.index.vocab);
            }
            Ok(Row {
                allows: if matcher.is_some() { Allows::Open } else { Allows::Everything },
                matcher,
                at,
            })
        };
        matchers.into_iter().enumerate().map(row).collect()
    }

    /// Finds what every row allows, and leaves the rows sorted by constraint.
    fn resolve(&self, rows: &mut [Row<'_>]) {
        let shared = &self.shared;
        rows.sort_unstable_by_key(|row| (row.group(), row.at));
        let groups = rows
            .chunk_by_mut(|a, b| a.group() == b.group())
            .filter(|group| group[0].matcher.is_some());
        // What is memoised is taken here; only what has to be made is worth waking other threads.
        let open: Vec<&mut [Row<'_>]> =
            groups.filter_map(|group| (!look_up(group)).then_some(group)).collect();
        shared.for_each(open, 2, |group| make(shared, group));
        count(&shared.counters.batches, 1);
        count(&shared.counters.batch_rows, rows.len());
        let sets = rows.iter().filter_map(|row| match &row.allows {
            Allows::Set(set) => Some(Arc::as_ptr(set).addr()),
            _ => None,
        });
        let mut seen = HashSet::default();
        count(&shared.counters.batch_rows_repeated, sets.filter(|&set| !seen.insert(set)).count());
    }
}

/// Takes the memoised masks of the matchers of one constraint; whether that was all of them.
fn look_up(group: &mut [Row<'_>]) -> bool {
    let Some(index) = group[0].matcher.as_ref().map(|m| m.index.clone()) else { return true };
    // Whoever holds the lock may be making a mask: other constraints need not wait for it.
    let Some(mut state) = index.try_lock() else { return false };
    let mut complete = true;
    for row in group {
        let Some(matcher) = &mut row.matcher else { continue };
        row.allows = match over(matcher) {
            Some(stops) => stops,
            None if matcher.epoch == state.epoch => {
                match index.known_mask(&mut state, matcher.config()) {
                    Some(set) => Allows::Set(set),
                    None => Allows::Open,
                }
            }
            None => Allows::Open,
        };
        complete &= !matches!(row.allows, Allows::Open);
    }
    complete
}

fn over(matcher: &Matcher) -> Option<Allows> {
    match (matcher.terminated, matcher.limit) {
        (true, _) => Some(Allows::Stops(RowStatus::Finished)),
        (false, Some(_)) => Some(Allows::Stops(RowStatus::Limit)),
        (false, None) => None,
    }
}

/// Makes the masks of a constraint's matchers that are still open, under one lock.
fn make(shared: &Shared, group: &mut [Row<'_>]) {
    let Some(index) = group[0].matcher.as_ref().map(|m| m.index.clone()) else { return };
    let mut state = index.lock();
    for row in group.iter_mut().filter(|row| matches!(row.allows, Allows::Open)) {
        let Some(matcher) = &mut row.matcher else { continue };
        let made = catch_unwind(AssertUnwindSafe(|| {
            make_one(&shared.counters, &index, &mut state, matcher)
        }));
        row.allows = made.unwrap_or_else(|_| {
            count(&shared.counters.batch_rows_failed, 1);
            // Half-made tables are dropped; should even that fail, the next to take the lock tries again.
            let _ = catch_unwind(AssertUnwindSafe(|| state.recover()));
            Allows::Stops(RowStatus::Failed)
        });
    }
}

fn make_one(
    counters: &Counters,
    index: &Index,
    state: &mut IndexState,
    matcher: &mut Matcher,
) -> Allows {
    #[cfg(test)]
    counters.maybe_panic(0);
    count(&counters.batch_rows_built, 1);
    if let Some(stops) = over(matcher) {
        return stops;
    }
    match matcher.mask_locked(index, state) {
        Some(set) => Allows::Set(set),
        None => Allows::Stops(RowStatus::Limit),
    }
}

/// Writes a row and says what it is.
fn write(vocab: &Vocabulary, allows: &Allows, mask: &mut [u32]) -> RowStatus {
    let everything = |word: usize| {
        let ids = vocab.width() - word * 32;
        if ids >= 32 { u32::MAX } else { (1 << ids) - 1 }
    };
    match allows {
        Allows::Set(set) => {
            set.write(mask);
            let free = mask.iter().enumerate().all(|(i, &word)| word == everything(i));
            if free { RowStatus::Free } else { RowStatus::Constrained }
        }
        Allows::Everything => {
            mask.iter_mut().enumerate().for_each(|(i, word)| *word = everything(i));
            RowStatus::Free
        }
        Allows::Stops(status) => {
            stops_only(vocab, mask);
            *status
        }
        Allows::Open => {
            stops_only(vocab, mask);
            RowStatus::Failed
        }
    }
}

#[cfg(test)]
mod tests;
