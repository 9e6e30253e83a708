//! A preparation, run in slices: it explores candidates in descending likelihood and makes their
//! masks.
//!
//! Between two slices others may use the background thread and the background parser. If that
//! clears the caches of one of the two parsers, the configurations of the search are gone and the
//! preparation ends.

use std::sync::Arc;

use super::likely_paths::PathSearch;
use super::{
    BackgroundParser, BackgroundParserState, MaskOutcome, PreparationJob, PrepareBudget,
    ReportOnDrop,
};
use crate::engine::Constraint;
use crate::engine::background::SliceSignal;
use crate::engine::runtime::{EngineCounters, count};
use crate::fuel::{self, CancelToken};
use crate::mask::{GrammarMasks, MaskState};
use crate::matcher::ParserLimit;

/// Most candidates of one slice: about 0.3 ms.
const CANDIDATES_PER_SLICE: usize = 8;

/// A preparation under way.
pub(super) struct Preparation {
    masks: Arc<GrammarMasks>,
    background_parser: Arc<BackgroundParser>,
    counters: Arc<EngineCounters>,
    cancel_tokens: Vec<CancelToken>,
    /// Units of [`Limits::prepare_fuel`](crate::limits::Limits::prepare_fuel) that are left.
    fuel: u64,
    progress: PreparationProgress,
}

/// What a preparation has explored, and what it may.
struct PreparationProgress {
    budget: PrepareBudget,
    report: ReportOnDrop,
    /// The search; `None` before the first slice.
    search: Option<SearchInEpochs>,
}

/// A search, and the epochs of the caches in which its configurations are valid.
struct SearchInEpochs {
    paths: PathSearch,
    constraint_epoch: u64,
    background_epoch: u64,
}

impl Preparation {
    /// A preparation that has not begun. It ends with the cancel tokens of the caller's work.
    pub(super) fn new(
        constraint: &Constraint,
        budget: PrepareBudget,
        report: ReportOnDrop,
    ) -> Preparation {
        Preparation {
            masks: constraint.masks.clone(),
            background_parser: constraint.background_parser.clone(),
            counters: constraint.runtime.counters.clone(),
            cancel_tokens: fuel::cancel_tokens(),
            fuel: constraint.masks.limits().prepare_fuel,
            progress: PreparationProgress { budget, report, search: None },
        }
    }

    /// Runs one slice. Returns the likelihood of the next candidate; `None` at the end.
    pub(super) fn run_slice(&mut self, signal: &SliceSignal) -> Option<f64> {
        let job = PreparationJob { masks: &self.masks, counters: &self.counters, signal };
        let progress = &mut self.progress;
        let explore = |inner: &mut BackgroundParserState| progress.slice(&job, inner);
        let (next, units) = fuel::measure(|| {
            fuel::run_under(&self.cancel_tokens, || {
                fuel::with_budget(self.fuel, || self.background_parser.run_guarded(explore))
            })
        });
        self.fuel = self.fuel.saturating_sub(units);
        // Without fuel this slice was the last one.
        count(&self.counters.preparations_exhausted, usize::from(self.fuel == 0));
        next.flatten()
    }
}

impl PreparationProgress {
    /// Explores the likeliest candidates, until the slice is over.
    fn slice(
        &mut self,
        job: &PreparationJob<'_>,
        inner: &mut BackgroundParserState,
    ) -> Result<Option<f64>, ParserLimit> {
        let epoch = job.with_constraint(|constraint| constraint.epoch);
        let search = self.search.take();
        let Some(mut search) = search.or_else(|| self.begin(job, inner, epoch)) else {
            return Ok(None);
        };
        let Some(background) = &mut inner.background else { return Ok(None) };
        if (search.constraint_epoch, search.background_epoch) != (epoch, background.epoch) {
            return Ok(None);
        }
        let mut goes_on = true;
        for _ in 0..CANDIDATES_PER_SLICE {
            goes_on = job.is_needed() && self.explore_next(job, background, &mut search.paths)?;
            if !goes_on || job.signal.should_yield() {
                break;
            }
        }
        let next = search.paths.next_likelihood().filter(|_| goes_on && job.is_needed());
        if next.is_some() {
            self.search = Some(search);
        } else if job.is_needed() {
            job.with_constraint(MaskState::reserve_more);
            inner.last_preparation = Some((epoch, self.budget, self.report.report.candidates));
        }
        Ok(next)
    }

    /// Begins the search; `None` if the last preparation did the same.
    fn begin(
        &mut self,
        job: &PreparationJob<'_>,
        inner: &mut BackgroundParserState,
        epoch: u64,
    ) -> Option<SearchInEpochs> {
        let last = inner.last_preparation.as_ref();
        if let Some((_, _, candidates)) =
            last.filter(|last| last.0 == epoch && last.1 == self.budget)
        {
            (self.report.report.candidates, self.report.report.cached) = (*candidates, *candidates);
            return None;
        }
        let (background, _) = inner.parser_and_counterparts(job.masks);
        let paths =
            PathSearch::new(&mut background.parser, self.budget.candidates, self.budget.steps);
        Some(SearchInEpochs { paths, constraint_epoch: epoch, background_epoch: background.epoch })
    }

    /// Makes the mask of the likeliest candidate and expands it. `false` at the end of the search
    /// or of its budget, or where the constraint's caches were emptied or are half full.
    fn explore_next(
        &mut self,
        job: &PreparationJob<'_>,
        background: &mut MaskState,
        paths: &mut PathSearch,
    ) -> Result<bool, ParserLimit> {
        let report = &mut self.report.report;
        if report.built >= self.budget.masks || paths.continuations.is_spent() {
            return Ok(false);
        }
        let Some(candidate) = paths.frontier.pop() else { return Ok(false) };
        let Some(target) = job.step_to_candidate(&candidate) else { return Ok(false) };
        report.candidates += 1;
        count(&job.counters.candidates_explored, 1);
        match job.make_mask(background, candidate.config, target)? {
            MaskOutcome::Built => report.built += 1,
            MaskOutcome::Cached => report.cached += 1,
            MaskOutcome::OutOfFuel => return Ok(true),
            MaskOutcome::Discarded => return Ok(false),
        }
        let trie = job.masks.vocab.trie();
        let explored = paths.expand(&mut background.parser, trie, &candidate, target)?;
        for path in explored {
            if job.step_path(target, &path).is_none() {
                break;
            }
        }
        Ok(true)
    }
}
