//! Timed runs of token sequences through matchers.

use std::time::Instant;

use louver::engine::{Constraint, Engine, Matcher, PrepareBudget};
use louver::front::json_schema::{Exponents, Integers, SchemaOptions};
use louver::fuel;
use louver::ids::TokenId;
use louver::mask::MaskRow;
use louver::matcher::AdvanceError;

use super::CommonArgs;
use super::record::{CaseRecord, PreparationStats};
use super::stats::nanos;

/// The result of one token sequence.
#[derive(Debug, Default)]
struct SequenceResult {
    /// Time of mask and advance per token.
    masks_ns: Vec<u64>,
    /// Time of the first mask.
    first_mask_ns: Option<u64>,
    /// Whether every token was allowed.
    consumed: bool,
    /// Whether the grammar may end after them.
    accepted: bool,
    /// Maximum fuel of one mask and token.
    fuel: u64,
    /// The limit that was reached, if any.
    limit: Option<&'static str>,
    /// Whether the mask allowed the last token, but the matcher rejected it.
    is_inconsistent: bool,
}

/// Feeds token sequences to matchers, on one thread.
pub(super) struct Feeder<'e> {
    engine: &'e Engine,
    /// The mask row, reused for all matchers like a batch slot.
    mask: MaskRow,
    prepare: bool,
}

impl<'e> Feeder<'e> {
    pub(super) fn new(engine: &'e Engine, common: &CommonArgs) -> Feeder<'e> {
        Feeder { engine, mask: MaskRow::new(engine.vocab()), prepare: common.prepare }
    }

    /// The engine.
    pub(super) fn engine(&self) -> &'e Engine {
        self.engine
    }

    /// Runs all tests of a case: tokens, and whether they should be accepted. `started` is when the
    /// case's compilation began; the first matcher is part of it.
    pub(super) fn feed_all(
        &mut self,
        id: String,
        started: Instant,
        constraint: &Constraint,
        tests: &[(Vec<u32>, bool)],
    ) -> CaseRecord {
        let mut first = Some(constraint.matcher());
        let mut record =
            CaseRecord { id, ttfm_ns: nanos(started.elapsed()), ..CaseRecord::default() };
        let used = self.engine.stats().background_masks_used;
        if self.prepare {
            let started = Instant::now();
            let report = constraint.prepare(PrepareBudget::default()).wait();
            record.prepare_ns = Some(nanos(started.elapsed()));
            record.preparation = Some(PreparationStats {
                candidates: report.candidates,
                built: report.built,
                cached: report.cached,
                used: 0,
            });
        }
        let (mut masks, mut wrong) = (Vec::new(), Vec::new());
        for (i, (tokens, valid)) in tests.iter().enumerate() {
            let result =
                feed(first.take().unwrap_or_else(|| constraint.matcher()), tokens, &mut self.mask);
            record.first_mask_ns = record.first_mask_ns.or(result.first_mask_ns);
            masks.extend(result.masks_ns);
            record.mask_fuel = record.mask_fuel.max(Some(result.fuel));
            record.limit = record.limit.or(result.limit);
            record.inconsistent += usize::from(result.is_inconsistent);
            if result.accepted != *valid {
                wrong.push((i, *valid, result.consumed));
            }
        }
        (record.masks_ns, record.wrong) = (Some(masks), Some(wrong));
        if let Some(preparation) = &mut record.preparation {
            preparation.used = self.engine.stats().background_masks_used - used;
        }
        record
    }

    /// Takes valid instances out of the wrong results if only the options for the spelling of
    /// numbers exclude them, such as `1.0` for an integer. `compile` makes the constraint for other
    /// options.
    pub(super) fn count_other_spellings(
        &mut self,
        record: &mut CaseRecord,
        tests: &[(Vec<u32>, bool)],
        options: &SchemaOptions,
        compile: impl FnOnce(&SchemaOptions) -> Option<Constraint>,
    ) {
        let wrong = record.wrong.take().unwrap_or_default();
        let mut any_number = *options;
        any_number.integers = Integers::ZeroFraction;
        any_number.exponents = Exponents::Allowed;
        any_number.max_digits = None;
        let rejected = wrong.iter().any(|(_, valid, _)| *valid) && any_number != *options;
        let constraint = rejected.then(|| compile(&any_number)).flatten();
        let is_spelling = |&(i, valid, _): &(usize, bool, bool)| {
            let mask = &mut self.mask;
            let other = constraint.as_ref().filter(|_| valid);
            other.is_some_and(|other| feed(other.matcher(), &tests[i].0, mask).accepted)
        };
        let (spelled, wrong): (Vec<_>, Vec<_>) = wrong.into_iter().partition(is_spelling);
        (record.spelled_otherwise, record.wrong) = (spelled.len(), Some(wrong));
    }
}

/// Feeds tokens up to the first rejected one. `mask` is a reusable row.
fn feed(mut matcher: Matcher, tokens: &[u32], mask: &mut MaskRow) -> SequenceResult {
    let mut result = SequenceResult {
        masks_ns: Vec::with_capacity(tokens.len()),
        consumed: true,
        ..SequenceResult::default()
    };
    for (i, &token) in tokens.iter().enumerate() {
        let started = Instant::now();
        let token = TokenId::from_raw(token);
        let (taken, fuel) = fuel::measure(|| {
            matcher.update_mask(mask);
            if i == 0 {
                result.first_mask_ns = Some(nanos(started.elapsed()));
            }
            mask.allows(token).then(|| matcher.advance(token))
        });
        result.masks_ns.push(nanos(started.elapsed()));
        result.fuel = result.fuel.max(fuel);
        if taken != Some(Ok(())) {
            result.consumed = false;
            result.limit = matcher.limit();
            result.is_inconsistent = contradicts_mask(&taken);
            return result;
        }
    }
    result.accepted = matcher.is_complete();
    result
}

/// Whether a matcher rejected a token that its mask allows, without having reached a limit. `taken`
/// is what `advance` returned, if the mask allows the token.
fn contradicts_mask(taken: &Option<Result<(), AdvanceError>>) -> bool {
    matches!(taken, Some(Err(error)) if !matches!(error, AdvanceError::Limit { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_contradict_masks_and_limits_do_not() {
        let rejected = AdvanceError::Rejected { token: TokenId::from_raw(7), offset: 0 };
        assert!(contradicts_mask(&Some(Err(rejected))));
        let harmless = [None, Some(Ok(())), Some(Err(AdvanceError::Limit { what: "fuel" }))];
        assert!(!harmless.iter().any(contradicts_mask));
    }
}
