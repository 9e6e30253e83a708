//! Preparation: masks made on background threads before they are asked for.
//!
//! A mask that a matcher asks for first has to be made while the model waits. Two requests move
//! that work to the engine's background threads: [`Constraint::prepare`] while the prompt is
//! processed, and [`Matcher::prefetch`] while the model computes the next logits.
//!
//! The work uses the background parser of the constraint, so no matcher waits for it. The
//! constraint's lock is taken only to step the constraint's parser to a configuration, and to cache
//! the finished mask there. A mask depends on the text alone, so any parser of the grammar may make
//! it.
//!
//! Invariants: preparation changes no mask; it fills at most half of a constraint's caches; it ends
//! with its budget, its fuel, its cancel token or its engine. See docs/internals/PREPARATION.md.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};

mod byte_groups;
mod continuations;
mod frontier;
mod likely_paths;
mod slices;
mod token_branches;
mod token_walk;
mod word_cuts;

use self::frontier::Candidate;
use self::slices::Preparation;
use super::background::{Priority, SliceSignal};
use super::runtime::{EngineCounters, count};
use super::{Constraint, Matcher};
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::TokenId;
use crate::mask::{GrammarMasks, MaskState};
use crate::matcher::{ConfigId, ParserLimit, Symbol};
use crate::setters::with_methods;

/// Steps of the constraint's parser before its lock is released for others.
const STEPS_PER_LOCK: usize = 16;
/// Most configurations of the constraint whose counterpart in the background parser is stored.
const MAX_COUNTERPARTS: usize = 1 << 16;

/// How much [`Constraint::prepare`] may do. It ends with whichever number is reached first. A
/// configuration costs about 30 microseconds, its mask included.
///
/// ```
/// # use std::sync::Arc;
/// # use louver::{Engine, EngineOptions, PrepareBudget, SchemaOptions, Vocabulary};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
/// let constraint = engine.compile_json_schema("{}", &SchemaOptions::default())?;
/// let budget = PrepareBudget::default().with_masks(3);
/// assert!(constraint.prepare(budget).wait().built <= 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrepareBudget {
    /// Most masks to make. The default is 512.
    pub masks: usize,
    /// Most configurations to explore, inside of tokens and at their ends. The default is 16,384.
    pub steps: usize,
    /// Most configurations at the ends of tokens, each with a mask to make or already cached. The
    /// default is 768.
    pub candidates: usize,
}

impl Default for PrepareBudget {
    fn default() -> Self {
        PrepareBudget { masks: 512, steps: 16_384, candidates: 768 }
    }
}

with_methods!(PrepareBudget {
    with_masks: masks = usize,
    with_steps: steps = usize,
    with_candidates: candidates = usize,
});

/// What a call of [`Constraint::prepare`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrepareReport {
    /// Configurations explored at the ends of tokens.
    pub candidates: usize,
    /// Masks made.
    pub built: usize,
    /// Masks that the constraint had already cached.
    pub cached: usize,
}

/// Handle of a preparation under way. Dropping it neither waits for the work nor ends it.
#[derive(Clone, Debug)]
pub struct Prepared {
    done: Arc<(Mutex<Option<PrepareReport>>, Condvar)>,
}

impl Prepared {
    /// Whether the preparation has ended.
    pub fn is_done(&self) -> bool {
        self.done.0.lock().is_some()
    }

    /// Blocks until the preparation has ended and returns its report. It ends with its budget, when
    /// the engine is dropped, or at once where there is no background thread.
    pub fn wait(&self) -> PrepareReport {
        let mut done = self.done.0.lock();
        loop {
            match *done {
                Some(report) => return report,
                None => self.done.1.wait(&mut done),
            }
        }
    }
}

/// Publishes the report of a preparation when it is dropped, also after a panic.
struct ReportOnDrop {
    done: Arc<(Mutex<Option<PrepareReport>>, Condvar)>,
    report: PrepareReport,
}

impl Drop for ReportOnDrop {
    fn drop(&mut self) {
        *self.done.0.lock() = Some(self.report);
        self.done.1.notify_all();
    }
}

/// The parser that background threads use for a constraint, made when first needed.
#[derive(Debug, Default)]
pub(super) struct BackgroundParser {
    inner: Mutex<BackgroundParserState>,
}

impl BackgroundParser {
    /// Memory of the background parser, in bytes; `None` while another thread has its lock.
    pub(super) fn bytes(&self) -> Option<usize> {
        let inner = self.inner.try_lock()?;
        Some(inner.background.as_ref().map_or(0, |background| background.bytes()))
    }
}

/// What the lock of a [`BackgroundParser`] guards.
#[derive(Debug, Default)]
struct BackgroundParserState {
    /// The parser and its caches; `None` until first used and after a panic.
    background: Option<Box<MaskState>>,
    /// Configurations of the constraint's parser, and the configurations of the background parser
    /// for the same text. Valid in `constraint_epoch` and `background_epoch`.
    counterparts: HashMap<ConfigId, ConfigId>,
    /// The epoch of the constraint's caches for which `counterparts` holds.
    constraint_epoch: u64,
    /// The epoch of the background parser's caches for which `counterparts` holds.
    background_epoch: u64,
    /// The last preparation that ended by its budget: the constraint's epoch, the budget, and the
    /// number of configurations explored.
    last_preparation: Option<(u64, PrepareBudget, usize)>,
}

/// A configuration of the constraint's parser, valid in one epoch of its caches.
#[derive(Clone, Copy, Debug)]
struct ConstraintConfig {
    epoch: u64,
    config: ConfigId,
    /// The configuration that a matcher reaches by the same text: it also tracks the member names
    /// of open objects, to reject duplicates.
    config_with_keys: ConfigId,
}

/// What became of one mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MaskOutcome {
    /// It was made and is now cached by the constraint.
    Built,
    /// The constraint had it already.
    Cached,
    /// It could not be cached: the constraint emptied its caches meanwhile.
    Discarded,
    /// It takes more than the fuel of one mask.
    OutOfFuel,
}

impl Constraint {
    /// Makes masks that are likely to be needed soon, on a background thread, typically while the
    /// prompt is processed. First comes the mask of the start, then those of the configurations
    /// that texts are likely to pass, in descending likelihood.
    ///
    /// Likelihood is estimated from grammar and vocabulary: declared members in the order of their
    /// declaration, one value after the other, tokens as long as possible. The estimate decides the
    /// order of the work only, never a mask.
    ///
    /// Returns at once. While several constraints are prepared, the one whose next mask is the
    /// likeliest goes first. Does nothing where [`EngineOptions::background_threads`] is 0.
    ///
    /// A second call with the same budget costs nothing, unless the caches were emptied in between.
    ///
    /// The preparation ends after `budget`, after [`Limits::prepare_fuel`], or when a
    /// [`CancelToken`](crate::fuel::CancelToken) is cancelled under which this was called.
    ///
    /// Memory: the background parser is bounded as the constraint is, by [`Limits::parser_bytes`]
    /// and [`Limits::mask_bytes`].
    ///
    /// [`EngineOptions::background_threads`]: super::EngineOptions::background_threads
    /// [`Limits::prepare_fuel`]: crate::limits::Limits::prepare_fuel
    /// [`Limits::parser_bytes`]: crate::limits::Limits::parser_bytes
    /// [`Limits::mask_bytes`]: crate::limits::Limits::mask_bytes
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, PrepareBudget, SchemaOptions, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"tr", b"ue"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let schema = r#"{"type": "array"}"#;
    /// let constraint = engine.compile_json_schema(schema, &SchemaOptions::default())?;
    /// let prepared = constraint.prepare(PrepareBudget::default());
    /// // ... the host processes the prompt ...
    /// prepared.wait();
    /// constraint.matcher().fill_mask(&mut vec![0; vocab.mask_words()]);
    /// assert!(engine.stats().background_masks_used > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&self, budget: PrepareBudget) -> Prepared {
        let done = Arc::new((Mutex::new(None), Condvar::new()));
        let report = ReportOnDrop { done: done.clone(), report: PrepareReport::default() };
        let mut preparation = Preparation::new(self, budget, report);
        self.runtime
            .background
            .submit(Priority::Preparation, Box::new(move |signal| preparation.run_slice(signal)));
        // Without a thread the job is dropped, and `ReportOnDrop` publishes an empty report.
        Prepared { done }
    }
}

impl Matcher {
    /// Makes the masks after tokens that are likely to be sampled next, on a background thread,
    /// while the model computes. `likely` is, for example, the top of the masked logits; tokens
    /// that may not follow are skipped.
    ///
    /// Returns at once and takes no lock under which masks are made. Changes no result. Returns
    /// `false` where the engine has no background threads, the sequence is over, `likely` is empty,
    /// or earlier prefetches have spent as much as the sequence may.
    ///
    /// Served before preparations. At most 64 prefetches wait; the latest is served first, and the
    /// oldest is dropped.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::{Engine, EngineOptions, SchemaOptions, TokenId, Vocabulary};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    /// let mut matcher = engine.compile_json_schema("true", &SchemaOptions::default())?.matcher();
    /// let [brace, quote] = [b'{', b'"'].map(|byte| TokenId::from_raw(byte.into()));
    /// assert!(matcher.prefetch(&[brace, quote]));
    /// matcher.advance(brace)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefetch(&self, likely: &[TokenId]) -> bool {
        if self.is_over() || likely.is_empty() || self.config() == ConfigId::DEAD {
            return false;
        }
        let Some(account) = self.fuel.prefetches(self.masks.limits()) else { return false };
        let (masks, background_parser) = (self.masks.clone(), self.background_parser.clone());
        let likely = likely.to_vec();
        let config = self.config();
        let target = ConstraintConfig { epoch: self.epoch, config, config_with_keys: config };
        let (tokens, before) = (self.tokens.clone(), self.configs.iter().rev().nth(1).copied());
        let (counters, cancel) = (self.runtime.counters.clone(), fuel::cancel_tokens());
        count(&counters.prefetches, 1);
        self.runtime.background.submit(
            Priority::Prefetch,
            Box::new(move |signal| {
                if fuel::any_cancelled(&cancel) {
                    return None;
                }
                let job = PreparationJob { masks: &masks, counters: &counters, signal };
                let prefetch = || {
                    background_parser
                        .run_guarded(|inner| job.prefetch(inner, target, &tokens, before, &likely))
                };
                let prefetch = || fuel::run_under(&cancel, prefetch);
                let budget = masks.limits().prepare_fuel;
                let (_, units) = fuel::measure(|| fuel::with_budget(budget, prefetch));
                account.fetch_add(units, Ordering::Relaxed);
                None
            }),
        )
    }
}

impl BackgroundParser {
    /// Runs work on the background parser; `None` if it reached a limit. After a panic or a limit
    /// the parser is made anew.
    fn run_guarded<T>(
        &self,
        work: impl FnOnce(&mut BackgroundParserState) -> Result<T, ParserLimit>,
    ) -> Option<T> {
        let mut inner = self.inner.lock();
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut inner)));
        if !matches!(outcome, Ok(Ok(_))) {
            *inner = BackgroundParserState::default();
        }
        drop(inner);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).ok()
    }
}

impl BackgroundParserState {
    /// The parser, brought within its memory budget, and the valid part of `counterparts`.
    fn parser_and_counterparts(
        &mut self,
        masks: &GrammarMasks,
    ) -> (&mut MaskState, &mut HashMap<ConfigId, ConfigId>) {
        let background = self.background.get_or_insert_with(|| Box::new(masks.fresh_state()));
        background.clear_if_full();
        if background.epoch != self.background_epoch || self.counterparts.len() > MAX_COUNTERPARTS {
            self.counterparts.clear();
            self.background_epoch = background.epoch;
        }
        (background, &mut self.counterparts)
    }
}

/// What one background job works with.
struct PreparationJob<'a> {
    masks: &'a Arc<GrammarMasks>,
    counters: &'a EngineCounters,
    signal: &'a SliceSignal,
}

impl PreparationJob<'_> {
    /// Whether the job should go on: it has fuel, the engine exists, and the constraint has another
    /// owner.
    fn is_needed(&self) -> bool {
        fuel::check().is_ok() && !self.signal.is_closed() && Arc::strong_count(self.masks) > 1
    }

    /// Runs short work under the constraint's lock. After a panic the constraint's caches are
    /// repaired.
    fn with_constraint<T>(&self, work: impl FnOnce(&mut MaskState) -> T) -> T {
        let mut constraint = self.masks.lock();
        match catch_unwind(AssertUnwindSafe(|| work(&mut constraint))) {
            Ok(done) => done,
            Err(panic) => {
                constraint.reset_after_panic();
                drop(constraint);
                std::panic::resume_unwind(panic)
            }
        }
    }

    /// Makes the mask of `config`, a configuration of the background parser, and caches it at
    /// `target`, its counterpart in the constraint.
    fn make_mask(
        &self,
        background: &mut MaskState,
        config: ConfigId,
        target: ConstraintConfig,
    ) -> Result<MaskOutcome, ParserLimit> {
        let outcome = self.make_uncounted_mask(background, config, target)?;
        let counters = &self.counters.background_masks;
        let counter = match outcome {
            MaskOutcome::Built => &counters.built,
            MaskOutcome::Cached => &counters.cached,
            MaskOutcome::Discarded | MaskOutcome::OutOfFuel => &counters.discarded,
        };
        count(counter, 1);
        Ok(outcome)
    }

    /// As [`PreparationJob::make_mask`], without the statistics.
    fn make_uncounted_mask(
        &self,
        background: &mut MaskState,
        config: ConfigId,
        target: ConstraintConfig,
    ) -> Result<MaskOutcome, ParserLimit> {
        let lookup = |constraint: &mut MaskState| match constraint.epoch == target.epoch {
            true if self.masks.has_mask(constraint, target.config) => MaskOutcome::Cached,
            true => MaskOutcome::Built,
            false => MaskOutcome::Discarded,
        };
        let outcome = self.with_constraint(lookup);
        if outcome != MaskOutcome::Built {
            return Ok(outcome);
        }
        #[cfg(any(test, feature = "fault-injection"))]
        self.counters.maybe_panic(1);
        let mask = fuel::with_budget(self.masks.limits().mask_fuel, || {
            self.masks.prepare_mask(background, config)
        });
        let mask = match mask {
            Ok(mask) => mask,
            // A matcher has the same budget, so its attempt would end the same way.
            Err(ParserLimit::Fuel) if fuel::check().is_ok() => return Ok(MaskOutcome::OutOfFuel),
            Err(limit) => return Err(limit),
        };
        Ok(self.with_constraint(|constraint| {
            let outcome = lookup(constraint);
            if outcome == MaskOutcome::Built {
                self.masks.adopt_prepared(constraint, target.config, &mask);
            }
            outcome
        }))
    }

    /// Steps the background parser to the configuration of a matcher, then makes the masks after
    /// `likely`. `tokens` are those the matcher has taken; `before` is its configuration before the
    /// last one.
    fn prefetch(
        &self,
        inner: &mut BackgroundParserState,
        target: ConstraintConfig,
        tokens: &[TokenId],
        before: Option<ConfigId>,
        likely: &[TokenId],
    ) -> Result<(), ParserLimit> {
        if inner.constraint_epoch != target.epoch {
            inner.counterparts.clear();
            inner.constraint_epoch = target.epoch;
        }
        let masks = self.masks;
        let (background, counterparts) = inner.parser_and_counterparts(masks);
        let current = match (
            counterparts.get(&target.config),
            before.and_then(|before| counterparts.get(&before)),
            tokens.last(),
        ) {
            (Some(&current), _, _) => current,
            (None, Some(&before), Some(&last)) => background.step_token(masks, before, last)?,
            _ => {
                let mut current = background.parser.start();
                for &token in tokens {
                    current = background.step_token(masks, current, token)?;
                }
                current
            }
        };
        counterparts.insert(target.config, current);
        for &token in likely {
            if !self.is_needed() {
                break;
            }
            let next = background.step_token(masks, current, token)?;
            if next == ConfigId::DEAD {
                continue;
            }
            let config = self.with_constraint(|constraint| {
                let is_same = constraint.epoch == target.epoch;
                is_same.then(|| constraint.step_token(masks, target.config, token).ok()).flatten()
            });
            let Some(config) = config else { break };
            counterparts.insert(config, next);
            let target = ConstraintConfig { config, config_with_keys: config, ..target };
            self.make_mask(background, next, target)?;
        }
        Ok(())
    }

    /// Steps the constraint's parser to a candidate. `None` where its caches were emptied
    /// meanwhile, or are half full.
    fn step_to_candidate(&self, candidate: &Candidate) -> Option<ConstraintConfig> {
        let start = |constraint: &mut MaskState| {
            let config = constraint.parser.start();
            ConstraintConfig { epoch: constraint.epoch, config, config_with_keys: config }
        };
        let origin = candidate.origin.unwrap_or_else(|| self.with_constraint(start));
        self.step_path(origin, &candidate.path)
    }

    /// Steps the constraint's parser along a token. `None` as for
    /// [`PreparationJob::step_to_candidate`].
    fn step_path(
        &self,
        mut position: ConstraintConfig,
        path: &[Symbol],
    ) -> Option<ConstraintConfig> {
        for steps in path.chunks(STEPS_PER_LOCK) {
            position = self.with_constraint(|constraint| {
                // The other half of the memory budget is left to matchers.
                let has_room = position.epoch == constraint.epoch && !constraint.is_half_full();
                let mut config = has_room.then_some(position.config)?;
                for &symbol in steps {
                    config = constraint.parser.step_symbol(config, symbol).ok()?;
                }
                Some(ConstraintConfig { config, ..position })
            })?;
        }
        let bytes: Option<Vec<u8>> = path.iter().map(|symbol| symbol.byte()).collect();
        self.with_constraint(|constraint| {
            let epoch = (position.epoch == constraint.epoch).then_some(position.epoch)?;
            let before = position.config_with_keys;
            let after = match (&bytes, path) {
                (Some(bytes), _) => constraint.parser.cache_token_step(before, bytes),
                (None, [Symbol::Special(special)]) => {
                    constraint.parser.step_special(before, *special)
                }
                (None, _) => Ok(position.config),
            };
            Some(ConstraintConfig { epoch, config_with_keys: after.ok()?, ..position })
        })
    }
}

#[cfg(test)]
mod tests;
