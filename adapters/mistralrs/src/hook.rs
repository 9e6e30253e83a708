//! The one hook mistral.rs offers. Its rules (what was measured about the host):
//!
//! * state is a function of the context's tokens, never of the number of calls;
//! * never an error, never a panic, never a row without a finite logit: a fault ends this one generation by allowing
//!   nothing but stop tokens, and is reported on the side;
//! * the generated tokens are tapped here, because text loses the special ones. The host never shows the last token it
//!   samples, so the last is always made a stop token: a length limit, a fault and a cancellation all end the generation
//!   by allowing nothing else, and the host's own length limit lies one token further out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use candle_core::Tensor;
use louver::engine::{Constraint, Matcher};
use louver::ids::TokenId;
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;
use mistralrs_core::CustomLogitsProcessor;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::context::{Prompt, common_prefix};
use crate::error::{ExtendError, Fault};
use crate::extend::Changes;
use crate::plan::Prefetch;
use crate::record::{Record, Recorder, Step};
use crate::report::Clock;
use crate::row::{self, Masked};
use crate::safety::Safety;
use crate::sampler::{self, Sampler, Scratch};

/// A mask that took longer than this makes it likely that the next ones will, too.
const SLOW_MASK: Duration = Duration::from_micros(30);
/// For how many tokens after a slow mask the next ones are made ahead.
const STAYS_SLOW: usize = 8;

/// What the hook and the reader of one generation tell each other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The reader wants no more.
    pub(crate) cancelled: AtomicBool,
    /// The length limit was reached.
    pub(crate) cut: AtomicBool,
    /// The mask was narrowed for the length limit's sake, against the model's wish.
    pub(crate) pressed: AtomicBool,
    /// Steps at which the grammar left one token.
    pub(crate) forced: AtomicUsize,
    /// Steps at which the model's likeliest token was refused.
    pub(crate) refused: AtomicUsize,
    /// The plan that is to be taken over at the next step.
    pub(crate) changes: Mutex<Changes>,
    /// The first fault.
    pub(crate) fault: Mutex<Option<Fault>>,
    /// Time spent.
    pub(crate) clock: Mutex<Clock>,
}

impl Shared {
    fn fail(&self, fault: Fault) {
        self.fault.lock().get_or_insert(fault);
    }
}

/// What the hook tells the reader, in order.
pub(crate) enum Tap {
    /// Generated tokens, and the record of the last of them.
    Tokens {
        /// The tokens.
        tokens: Vec<u32>,
        /// If steps are recorded.
        step: Option<Box<Step>>,
    },
    /// The stop token that was drawn. Some formats have markers that end the turn: it may be part of what is read.
    Stopped {
        /// The token.
        token: u32,
        /// If steps are recorded.
        step: Option<Box<Step>>,
    },
    /// What follows is under this plan.
    Plan(Box<(Constraint, louver_formats::Plan)>),
}

/// How a hook is made.
pub(crate) struct HookOptions {
    /// None: nothing is masked, tokens are only tapped.
    pub(crate) constraint: Option<Constraint>,
    pub(crate) vocab: Arc<Vocabulary>,
    pub(crate) stops: Vec<u32>,
    pub(crate) prompt: Prompt,
    /// Most generated tokens, the last stop token not counted.
    pub(crate) limit: Option<usize>,
    /// Draws here; the host does if there is none.
    pub(crate) sampler: Option<Sampler>,
    /// Whether the mask narrows near the limit.
    pub(crate) safe: bool,
    pub(crate) prefetch: Prefetch,
    pub(crate) record: Record,
    /// Where generated tokens go as they become known.
    pub(crate) tap: Option<UnboundedSender<Tap>>,
}

/// The processor of one generation.
pub(crate) struct Hook {
    shared: Arc<Shared>,
    stops: Vec<u32>,
    vocab: Arc<Vocabulary>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}

struct State {
    prompt: Prompt,
    limit: Option<usize>,
    sampler: Option<Sampler>,
    scratch: Scratch,
    matcher: Option<Matcher>,
    mask: Vec<u32>,
    /// Generated tokens as last seen.
    seen: Vec<u32>,
    safety: Option<Safety>,
    prefetch: Prefetch,
    /// Tokens to go for which masks are made ahead.
    slow: usize,
    recorder: Recorder,
    tap: Option<UnboundedSender<Tap>>,
}

/// What may follow.
enum Allowed {
    /// What the mask says.
    Masked,
    /// Stop tokens.
    Stops,
    /// Anything.
    Anything,
}

impl Hook {
    pub(crate) fn new(options: HookOptions, shared: Arc<Shared>) -> Hook {
        let HookOptions {
            constraint,
            vocab,
            stops,
            prompt,
            limit,
            sampler,
            safe,
            prefetch,
            record,
            tap,
        } = options;
        let matcher = constraint.map(|c| c.matcher());
        let words = if matcher.is_some() { vocab.mask_words() } else { 0 };
        let state = State {
            prompt,
            limit,
            sampler,
            scratch: Scratch::default(),
            matcher,
            mask: vec![0; words],
            seen: Vec::new(),
            safety: safe.then(Safety::default),
            prefetch,
            slow: 0,
            recorder: Recorder::new(record),
            tap,
        };
        Hook { shared, stops, vocab, state: Mutex::new(state) }
    }

    fn row(&self, logits: &Tensor, context: &[u32]) -> candle_core::Result<Tensor> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let begun = Instant::now();
        let generated = state.prompt.generated(context);
        state.publish(generated, &self.vocab);
        let allowed = state.allowed(generated, &self.shared);
        let mut masked_at = begun;
        let out = row::edit(logits, |row| match allowed {
            Allowed::Stops => row::only(row, &self.stops),
            Allowed::Anything | Allowed::Masked => {
                let masked = matches!(allowed, Allowed::Masked);
                if masked {
                    self.narrow(state, row, generated.len());
                }
                if state.recorder.is_on() {
                    let mask = masked.then_some(state.mask.as_slice());
                    state.recorder.note(
                        generated.len(),
                        row,
                        mask,
                        state.matcher.as_mut(),
                        &self.vocab,
                    );
                }
                if masked && state.sampler.is_none() {
                    self.mask(state, row);
                }
                masked_at = Instant::now();
                self.draw(state, row, masked, generated.len());
            }
        })?;
        self.shared.clock.lock().step(begun, masked_at);
        Ok(out)
    }

    fn narrow(&self, state: &mut State, row: &[f32], position: usize) {
        let room = state.limit.map_or(usize::MAX, |limit| limit - position);
        if let (Some(safety), Some(matcher)) = (&mut state.safety, &mut state.matcher)
            && safety.narrow(matcher, &mut state.mask, row, room)
        {
            self.shared.pressed.store(true, Ordering::Relaxed);
        }
    }

    /// Masks the row, for a draw of the host's.
    fn mask(&self, state: &State, row: &mut [f32]) {
        if state.mask.iter().map(|word| word.count_ones()).sum::<u32>() == 1 {
            self.shared.forced.fetch_add(1, Ordering::Relaxed);
        }
        match row::mask(row, &state.mask) {
            Masked::Fine => {}
            Masked::Repaired => self.shared.clock.lock().repaired += 1,
            Masked::Nothing => {
                self.shared.fail(Fault::NothingAllowed { width: row.len() });
                row::only(row, &self.stops);
            }
        }
    }

    /// Draws, where the draw is ours, and has the mask behind the drawn token made while the model computes. The row
    /// need not be masked for that: the host takes what was drawn.
    fn draw(&self, state: &mut State, row: &mut [f32], masked: bool, position: usize) {
        let Some(sampler) = &state.sampler else { return };
        let mask = masked.then_some(state.mask.as_slice());
        let survey = sampler::survey(row);
        let mut drawn = sampler.draw(row, mask, position, &mut state.scratch);
        if drawn.odd {
            self.shared.clock.lock().repaired += 1;
            let all = if masked { None } else { Some(vec![u32::MAX; row.len().div_ceil(32)]) };
            row::mask(row, all.as_deref().unwrap_or(&state.mask));
            drawn = sampler.draw(row, mask, position, &mut state.scratch);
        }
        let Some(token) = drawn.token else {
            self.shared.fail(Fault::NothingAllowed { width: row.len() });
            row::only(row, &self.stops);
            return;
        };
        if sampler::misleads(survey) {
            sampler::only(row, token);
        }
        if masked {
            self.shared.forced.fetch_add(usize::from(drawn.allowed == 1), Ordering::Relaxed);
            self.shared.refused.fetch_add(usize::from(survey.0 > drawn.best), Ordering::Relaxed);
        }
        if self.stops.contains(&token) {
            let step = state.recorder.settle(position, token, &self.vocab).map(Box::new);
            if let Some(tap) = &state.tap {
                let _ = tap.send(Tap::Stopped { token, step });
            }
        } else if let Some(matcher) = &state.matcher
            && (state.prefetch == Prefetch::Always
                || state.prefetch == Prefetch::Adaptive && state.slow > 0)
        {
            matcher.prefetch(&[TokenId::from_raw(token)]);
        }
    }
}

impl State {
    /// Passes on tokens that were not there before. A generation that was rolled back by the host (none is in the
    /// supported pipelines) passes on nothing again.
    fn publish(&mut self, generated: &[u32], vocab: &Vocabulary) {
        let known = common_prefix(&self.seen, generated);
        if known == self.seen.len() && generated.len() > known {
            self.seen.extend_from_slice(&generated[known..]);
            let tokens = generated[known..].to_vec();
            let step = tokens
                .last()
                .and_then(|last| self.recorder.settle(generated.len() - 1, *last, vocab));
            if let Some(tap) = &self.tap {
                // The reader may be gone; the generation ends soon then.
                let _ = tap.send(Tap::Tokens { tokens, step: step.map(Box::new) });
            }
        }
    }

    fn allowed(&mut self, generated: &[u32], shared: &Shared) -> Allowed {
        if shared.cancelled.load(Ordering::Relaxed) || shared.fault.lock().is_some() {
            return Allowed::Stops;
        }
        let at_limit = self.limit.is_some_and(|limit| generated.len() >= limit);
        let Some(matcher) = &mut self.matcher else {
            shared.cut.fetch_or(at_limit, Ordering::Relaxed);
            return if at_limit { Allowed::Stops } else { Allowed::Anything };
        };
        match follow(matcher, generated) {
            Ok(()) => {}
            // A stop token was taken and the host goes on regardless (it does so after a stop token at the first position).
            Err((_, AdvanceError::Terminated)) => return Allowed::Stops,
            Err((token, error)) => {
                shared.fail(Fault::of_token(token, &error));
                return Allowed::Stops;
            }
        }
        if let (false, Some(change)) = (at_limit, shared.changes.lock().take()) {
            let reply = matcher.resumed_in(&change.constraint).map(|resumed| {
                *matcher = resumed;
                self.safety = self.safety.is_some().then(Safety::default);
                if let Some(tap) = &self.tap {
                    let _ = tap.send(Tap::Plan(Box::new((change.constraint, change.lowered))));
                }
                generated.len()
            });
            // Who asked may have left.
            let _ = change.reply.send(reply.map_err(ExtendError::from));
        }
        let begun = Instant::now();
        matcher.fill_mask(&mut self.mask);
        self.slow =
            if begun.elapsed() > SLOW_MASK { STAYS_SLOW } else { self.slow.saturating_sub(1) };
        if let Some(limit) = matcher.limit() {
            shared.fail(Fault::Limit(limit.to_owned()));
            return Allowed::Stops;
        }
        if at_limit {
            return self.last(shared);
        }
        Allowed::Masked
    }

    /// At the length limit: the mask is there. What can only end is not cut off. A stop token that the grammar
    /// asks for, as some formats do at the end of a call, costs nothing.
    fn last(&mut self, shared: &Shared) -> Allowed {
        let Some(matcher) = &self.matcher else { return Allowed::Stops };
        let mut ends = vec![0; self.mask.len()];
        for stop in matcher.vocab().stops() {
            ends[stop.raw() as usize / 32] |= 1 << (stop.raw() % 32);
        }
        let may_go_on = self.mask.iter().zip(&ends).any(|(mask, ends)| mask & !ends != 0);
        shared.cut.store(may_go_on, Ordering::Relaxed);
        self.mask.iter_mut().zip(&ends).for_each(|(mask, ends)| *mask &= ends);
        if self.mask.iter().any(|word| *word != 0) { Allowed::Masked } else { Allowed::Stops }
    }
}

/// Brings a matcher to where these tokens lead, by way of the longest common prefix.
fn follow(matcher: &mut Matcher, tokens: &[u32]) -> Result<(), (u32, AdvanceError)> {
    let known = matcher.tokens().iter().zip(tokens).take_while(|(a, b)| a.raw() == **b).count();
    matcher.rollback(matcher.tokens().len() - known);
    for &token in &tokens[known..] {
        matcher.advance(TokenId::from_raw(token)).map_err(|error| (token, error))?;
    }
    Ok(())
}

impl CustomLogitsProcessor for Hook {
    fn apply(&self, logits: &Tensor, context: &[u32]) -> candle_core::Result<Tensor> {
        let fault = match catch_unwind(AssertUnwindSafe(|| self.row(logits, context))) {
            Ok(Ok(row)) => return Ok(row),
            Ok(Err(error)) => Fault::Logits(error.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                Fault::Panic(
                    text.or_else(|| panic.downcast_ref::<&str>().copied())
                        .unwrap_or("panic")
                        .to_owned(),
                )
            }
        };
        self.shared.fail(fault);
        let mut values = vec![0.0; logits.elem_count()];
        row::only(&mut values, &self.stops);
        let width = values.len();
        Ok(Tensor::from_vec(values, width, &candle_core::Device::Cpu)
            .unwrap_or_else(|_| logits.clone()))
    }
}
