//! Masks made before they are asked for, on the engine's background threads.
//!
//! The work is done with a parser of its own, so that no matcher waits for it: a constraint's lock is taken only to step to
//! where the mask belongs, and to put the finished mask there. A mask depends on the text alone, so it does not matter
//! which parser found it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

mod cut;
mod explore;

use self::explore::{Place, Places};
use super::background::Size;
use super::shared::{Counters, count};
use super::{Constraint, Matcher};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::TokenId;
use crate::mask::{Index, IndexState};
use crate::matcher::{ConfigId, DEAD, Parser, ParserLimit};

/// Steps of the constraint's own parser before others get its lock.
const STEPS_AT_ONCE: usize = 16;
/// Configurations of the constraint whose counterparts are remembered.
const MAX_KNOWN: usize = 1 << 16;

/// How much [`Constraint::prepare`] may do. It ends with the first of these; a place costs about thirty microseconds in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareBudget {
    /// Most masks to make. 512 by default.
    pub masks: usize,
    /// Most places to look at, inside of tokens and where tokens end; what takes much of the parser's memory counts as many. 16,384 by default.
    pub steps: usize,
    /// Most places where tokens end, each with a mask that is made or is known. 768 by default.
    pub places: usize,
}

impl Default for PrepareBudget {
    fn default() -> Self {
        PrepareBudget { masks: 512, steps: 16_384, places: 768 }
    }
}

/// What [`Constraint::prepare`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrepareReport {
    /// Places looked at where tokens end.
    pub places: usize,
    /// Masks made.
    pub built: usize,
    /// Masks that were known when their turn came.
    pub known: usize,
}

/// A preparation under way. Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Prepared {
    done: Arc<(Mutex<Option<PrepareReport>>, Condvar)>,
}

impl Prepared {
    /// Whether it is over.
    pub fn is_done(&self) -> bool {
        self.done.0.lock().is_some()
    }

    /// Waits until it is over: after its budget, when the engine is dropped, or at once where there are no threads for it.
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

/// Says that a preparation is over, whatever happens to it.
struct Finish {
    done: Arc<(Mutex<Option<PrepareReport>>, Condvar)>,
    report: PrepareReport,
}

impl Drop for Finish {
    fn drop(&mut self) {
        *self.done.0.lock() = Some(self.report);
        self.done.1.notify_all();
    }
}

/// The second parser of a constraint, made when first needed.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    shadow: Mutex<Shadow>,
}

impl Ahead {
    /// Memory of the second parser; none while someone else has the lock.
    pub(super) fn bytes(&self) -> Option<usize> {
        let shadow = self.shadow.try_lock()?;
        Some(shadow.state.as_ref().map_or(0, |state| state.bytes()))
    }
}

#[derive(Debug, Default)]
struct Shadow {
    state: Option<Box<IndexState>>,
    /// The constraint's configurations of one epoch, and what they are here.
    known: HashMap<ConfigId, ConfigId>,
    epoch: u64,
    own_epoch: u64,
    /// The last preparation that was not interrupted: in which epoch of the constraint, and how many places it looked at.
    prepared: Option<(u64, PrepareBudget, usize)>,
}

/// A configuration of the constraint's own parser.
#[derive(Clone, Copy, Debug)]
struct At {
    epoch: u64,
    config: ConfigId,
    /// The same as a text gets there: it is known which names there have been.
    named: ConfigId,
}

/// What became of one mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Built,
    Known,
    /// The constraint's caches were emptied meanwhile, or a limit was reached.
    Lost,
    /// It takes more than the fuel of one mask.
    Spent,
}

impl Constraint {
    /// Makes masks that will be needed soon on a background thread, while a prompt is processed: that of the beginning, then those
    /// of the places that texts are likely to come by, likeliest first. What is likely is guessed from the grammar and the vocabulary:
    /// declared names in the order of their declaration, one value after the other, tokens as long as can be. Returns
    /// at once. Changes no result. Does nothing where [`EngineOptions::background_threads`] is 0, and next to nothing the second time, unless the
    /// constraint's caches were emptied.
    ///
    /// It ends after [`Limits::prepare_fuel`], and early when a [`CancelToken`](crate::fuel::CancelToken) under
    /// which it was called is cancelled.
    ///
    /// The background has a parser of its own for each constraint that uses it, with bounds like the constraint's
    /// ([`Limits::parser_bytes`], [`Limits::mask_bytes`]).
    ///
    /// [`EngineOptions::background_threads`]: super::EngineOptions::background_threads
    /// [`Limits::prepare_fuel`]: crate::limits::Limits::prepare_fuel
    /// [`Limits::parser_bytes`]: crate::limits::Limits::parser_bytes
    /// [`Limits::mask_bytes`]: crate::limits::Limits::mask_bytes
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use louver::engine::{Engine, EngineOptions, PrepareBudget};
    /// # use louver::front::json_schema::SchemaOptions;
    /// # use louver::vocab::Vocabulary;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vocab = Arc::new(Vocabulary::toy(&[b"tr", b"ue"]));
    /// let engine = Engine::new(vocab.clone(), EngineOptions::default());
    /// let constraint = engine.compile_json_schema(r#"{"type": "array"}"#, &SchemaOptions::default())?;
    /// let prepared = constraint.prepare(PrepareBudget::default());
    /// // ... the host processes the prompt ...
    /// prepared.wait();
    /// constraint.matcher().fill_mask(&mut vec![0; vocab.mask_words()]);
    /// assert!(engine.stats().ahead_used > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&self, budget: PrepareBudget) -> Prepared {
        let done = Arc::new((Mutex::new(None), Condvar::new()));
        let finish = Finish { done: done.clone(), report: PrepareReport::default() };
        let (index, ahead) = (self.index.clone(), self.ahead.clone());
        let counters = self.shared.counters.clone();
        let tokens = fuel::cancel_tokens();
        self.shared.background.submit(
            Size::Large,
            Box::new(move |closed| {
                let mut finish = finish;
                let work = Work { index: &index, counters: &counters, closed };
                fuel::run_under(&tokens, || {
                    fuel::limited(index.prepare_fuel(), || {
                        ahead.guarded(|shadow| work.prepare(shadow, &budget, &mut finish.report));
                    });
                });
            }),
        );
        // A job that was not taken is dropped, and says so.
        Prepared { done }
    }
}

impl Matcher {
    /// Makes, on a background thread, the masks behind tokens that are likely to be taken next (the top of the masked
    /// logits, say), while the model computes. Tokens that may not follow are passed over. Returns at once and takes no lock
    /// that a mask is made under; changes no result. False if there are no background threads, or the sequence is over.
    ///
    /// Requests that wait are served latest first; the oldest are dropped if too many wait.
    pub fn prefetch(&self, likely: &[TokenId]) -> bool {
        if self.is_over() || likely.is_empty() || self.config() == DEAD {
            return false;
        }
        let (index, ahead, likely) = (self.index.clone(), self.ahead.clone(), likely.to_vec());
        let at = At { epoch: self.epoch, config: self.config(), named: self.config() };
        let (tokens, before) = (self.tokens.clone(), self.configs.iter().rev().nth(1).copied());
        let counters = self.shared.counters.clone();
        count(&counters.prefetches, 1);
        self.shared.background.submit(
            Size::Small,
            Box::new(move |closed| {
                let work = Work { index: &index, counters: &counters, closed };
                fuel::limited(index.prepare_fuel(), || {
                    ahead.guarded(|shadow| work.prefetch(shadow, at, (&tokens, before), &likely));
                });
            }),
        )
    }
}

impl Ahead {
    /// Runs work on the second parser; after a panic it is made anew.
    fn guarded(&self, work: impl FnOnce(&mut Shadow) -> Result<(), ParserLimit>) {
        let mut shadow = self.shadow.lock();
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut shadow)));
        if !matches!(outcome, Ok(Ok(()))) {
            *shadow = Shadow::default();
        }
        drop(shadow);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Shadow {
    /// The parser, within its budget, and what is known of the constraint's configurations.
    fn get(&mut self, index: &Index) -> (&mut IndexState, &mut HashMap<ConfigId, ConfigId>) {
        let state = self.state.get_or_insert_with(|| Box::new(index.fresh_state()));
        if state.parser.start() == DEAD {
            // It was emptied when there was no fuel left.
            **state = index.fresh_state();
        }
        state.relieve();
        if state.epoch != self.own_epoch || self.known.len() > MAX_KNOWN {
            self.known.clear();
            self.own_epoch = state.epoch;
        }
        (state, &mut self.known)
    }
}

/// One job's surroundings.
struct Work<'a> {
    index: &'a Arc<Index>,
    counters: &'a Counters,
    closed: &'a AtomicBool,
}

impl Work<'_> {
    /// Whether anyone can still use what is made here, and there is fuel for more.
    fn is_needed(&self) -> bool {
        fuel::check().is_ok()
            && !self.closed.load(Ordering::Relaxed)
            && Arc::strong_count(self.index) > 1
    }

    /// Something short under the constraint's lock.
    fn on_constraint<T>(&self, work: impl FnOnce(&mut IndexState) -> T) -> T {
        let mut state = self.index.lock();
        match catch_unwind(AssertUnwindSafe(|| work(&mut state))) {
            Ok(done) => done,
            Err(panic) => {
                state.recover();
                drop(state);
                std::panic::resume_unwind(panic)
            }
        }
    }

    /// Makes the mask of a configuration, here and at the constraint.
    fn make(&self, state: &mut IndexState, config: ConfigId, at: At) -> Result<Made, ParserLimit> {
        let known = |own: &mut IndexState| match own.epoch == at.epoch {
            true if self.index.has_mask(own, at.config) => Made::Known,
            true => Made::Built,
            false => Made::Lost,
        };
        let mut made = self.on_constraint(known);
        if made == Made::Built {
            #[cfg(test)]
            self.counters.maybe_panic(1);
            let ahead = match fuel::limited(self.index.mask_fuel(), || {
                self.index.made_ahead(state, config)
            }) {
                Ok(ahead) => ahead,
                // A mask that is too much work here is too much for a matcher as well.
                Err(ParserLimit::Fuel) if fuel::check().is_ok() => {
                    count(&self.counters.ahead_lost, 1);
                    return Ok(Made::Spent);
                }
                Err(limit) => return Err(limit),
            };
            made = self.on_constraint(|own| match known(own) {
                Made::Built => {
                    self.index.adopt(own, at.config, &ahead);
                    Made::Built
                }
                other => other,
            });
        }
        match made {
            Made::Built => count(&self.counters.ahead_built, 1),
            Made::Known => count(&self.counters.ahead_known, 1),
            Made::Lost | Made::Spent => count(&self.counters.ahead_lost, 1),
        }
        Ok(made)
    }

    fn prefetch(
        &self,
        shadow: &mut Shadow,
        at: At,
        (tokens, before): (&[TokenId], Option<ConfigId>),
        likely: &[TokenId],
    ) -> Result<(), ParserLimit> {
        if shadow.epoch != at.epoch {
            shadow.known.clear();
            shadow.epoch = at.epoch;
        }
        let index = self.index;
        let (state, known) = shadow.get(index);
        let here = match (known.get(&at.config), before.and_then(|b| known.get(&b)), tokens.last())
        {
            (Some(&here), _, _) => here,
            (None, Some(&before), Some(&last)) => state.step_token(index, before, last)?.0,
            _ => {
                let mut here = state.parser.start();
                for &token in tokens {
                    here = state.step_token(index, here, token)?.0;
                }
                here
            }
        };
        known.insert(at.config, here);
        for &token in likely {
            if !self.is_needed() {
                break;
            }
            let (next, _) = state.step_token(index, here, token)?;
            if next == DEAD {
                continue;
            }
            let own = self.on_constraint(|own| {
                let is_same = own.epoch == at.epoch;
                is_same.then(|| own.step_token(index, at.config, token).ok()).flatten()
            });
            let Some((config, _)) = own else { break };
            known.insert(config, next);
            self.make(state, next, At { config, named: config, ..at })?;
        }
        Ok(())
    }

    fn prepare(
        &self,
        shadow: &mut Shadow,
        budget: &PrepareBudget,
        report: &mut PrepareReport,
    ) -> Result<(), ParserLimit> {
        let epoch = self.on_constraint(|own| own.epoch);
        if let Some((_, _, places)) =
            shadow.prepared.as_ref().filter(|done| done.0 == epoch && done.1 == *budget)
        {
            (report.places, report.known) = (*places, *places);
            return Ok(());
        }
        let (state, _) = shadow.get(self.index);
        let mut places = Places::new(&mut state.parser, budget.places, budget.steps);
        while report.built < budget.masks && !places.is_spent() {
            let Some(place) = places.next().filter(|_| self.is_needed()) else { break };
            let Some(at) = self.arrive(&place) else { break };
            report.places += 1;
            count(&self.counters.ahead_places, 1);
            let bytes = state.parser.bytes();
            match self.make(state, place.config, at)? {
                Made::Built => report.built += 1,
                Made::Known => report.known += 1,
                Made::Spent => continue,
                Made::Lost => break,
            }
            let known = places.leave(&mut state.parser, self.index.vocab.trie(), &place, at)?;
            for path in known {
                if self.follow(at, &path).is_none() {
                    break;
                }
            }
            places.count(state.parser.bytes().saturating_sub(bytes));
            if places.is_text(place.config) {
                self.read_all(at, state.parser.allowed(place.config));
            }
        }
        if self.is_needed() {
            self.on_constraint(IndexState::reserve_more);
            shadow.prepared = Some((epoch, budget.clone(), report.places));
        }
        Ok(())
    }

    /// Takes each byte from a place in the constraint's own parser, so that it is known where it leads.
    fn read_all(&self, at: At, bytes: ByteSet) {
        let bytes: Vec<u8> = bytes.iter().collect();
        for bytes in bytes.chunks(STEPS_AT_ONCE) {
            self.on_constraint(|own| {
                if own.epoch == at.epoch {
                    // Where there is no room for more, those who need it make some.
                    bytes.iter().all(|&byte| own.parser.step(at.config, byte).is_ok());
                }
            });
        }
    }

    /// Where a place is in the constraint's own parser. `None` where its caches were emptied on the way, or have no room.
    fn arrive(&self, place: &Place) -> Option<At> {
        let own_start = |own: &mut IndexState| {
            let config = own.parser.start();
            At { epoch: own.epoch, config, named: config }
        };
        let at = place.from.unwrap_or_else(|| self.on_constraint(own_start));
        self.follow(at, &place.path)
    }

    /// Where a token leads from a place in the constraint's own parser. `None` as for [`Work::arrive`].
    fn follow(&self, mut at: At, path: &[Symbol]) -> Option<At> {
        for steps in path.chunks(STEPS_AT_ONCE) {
            at = self.on_constraint(|own| {
                // What matchers need is not to be pushed out.
                let room = at.epoch == own.epoch && !own.is_half_full(self.index);
                let mut config = room.then_some(at.config)?;
                for &symbol in steps {
                    symbol.begin(&mut own.parser, config).ok()?;
                    config = symbol.step(&mut own.parser, config).ok()?;
                }
                Some(At { config, ..at })
            })?;
        }
        let bytes: Option<Vec<u8>> = path.iter().map(|symbol| symbol.byte()).collect();
        self.on_constraint(|own| {
            let epoch = (at.epoch == own.epoch).then_some(at.epoch)?;
            let named = match (&bytes, path) {
                (Some(bytes), _) => own.parser.remember(at.named, bytes),
                (None, [Symbol::Special(special)]) => own.parser.step_special(at.named, *special),
                (None, _) => Ok(at.config),
            };
            Some(At { epoch, named: named.ok()?, ..at })
        })
    }
}

/// What is read at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    Byte(u8),
    Special(u32),
}

impl Symbol {
    /// Makes known where the beginning of a name leads a text.
    fn begin(self, parser: &mut Parser, config: ConfigId) -> Result<(), ParserLimit> {
        match self {
            Symbol::Byte(byte) => parser.advance(config, byte).map(|_| ()),
            Symbol::Special(_) => Ok(()),
        }
    }

    fn byte(self) -> Option<u8> {
        match self {
            Symbol::Byte(byte) => Some(byte),
            Symbol::Special(_) => None,
        }
    }

    fn step(self, parser: &mut Parser, config: ConfigId) -> Result<ConfigId, ParserLimit> {
        match self {
            Symbol::Byte(byte) => parser.step(config, byte),
            Symbol::Special(special) => parser.step_special(config, special),
        }
    }
}

#[cfg(test)]
mod tests;
