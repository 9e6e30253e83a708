//! The logits hook: masks each row of logits and taps the generated tokens.
//!
//! Rules, from measured behaviour of hosts:
//!
//! * The state is a function of the context's tokens, never of the number of calls.
//! * The hook never returns an error, never panics, and never returns a row without a finite logit.
//!   An error ends its generation: only stop tokens remain allowed, and the error is reported
//!   separately.
//! * Generated tokens are tapped here, because the host's text loses special tokens. The host never
//!   passes the last token that it samples, so the last token is always forced to be a stop token.
//!   A length limit, an error and a cancellation all end the generation by allowing stop tokens
//!   only. The host's own length limit is one token higher.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use louver::engine::{Constraint, Matcher};
use louver::fuel::CancelToken;
use louver::ids::TokenId;
use louver::matcher::AdvanceError;
use louver::vocab::Vocabulary;
use louver_candle::LogitCheck;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tracing::Span;

use crate::error::EnforcementError;
use crate::extend::PlanChanges;
use crate::options::Prefetch;
use crate::prompt_boundary::{PromptBoundary, common_prefix};
use crate::record::{Record, Step, StepRecorder};
use crate::report::StepClock;
use crate::row;
use crate::sampler::{self, DrawIndex, Sampler, Scratch};
use crate::truncation::TruncationGuard;

/// A mask that takes longer than this predicts slow masks for the next steps.
const SLOW_MASK_TIME: Duration = Duration::from_micros(30);
/// Number of steps after a slow mask for which masks are prefetched.
const PREFETCH_STEPS: usize = 8;

/// State shared by the hook and the reading task of one generation.
#[derive(Debug)]
pub(crate) struct GenerationState {
    /// The parent of the generation's trace events.
    pub(crate) span: Span,
    /// Cancels the generation, and the work of its row under way.
    pub(crate) cancelled: CancelToken,
    /// A stop string has ended the response.
    pub(crate) is_stopped: AtomicBool,
    /// The length limit was reached.
    pub(crate) is_truncated: AtomicBool,
    /// The last position at which the length limit has excluded a token that the model preferred.
    pub(crate) narrowed_at: Mutex<Option<usize>>,
    /// Steps at which the grammar allowed one token only.
    pub(crate) forced_tokens: AtomicUsize,
    /// Steps at which the model's most likely token was not allowed.
    pub(crate) refused_tokens: AtomicUsize,
    /// Rows with unusable logits for allowed tokens.
    pub(crate) repaired_rows: AtomicUsize,
    /// The stop token that the last call has sampled, if it has.
    pub(crate) stop_draw: Mutex<Option<StopDraw>>,
    /// A plan change to apply at the next step.
    pub(crate) changes: Mutex<PlanChanges>,
    /// The first error.
    pub(crate) error: Mutex<Option<EnforcementError>>,
    /// Timing.
    pub(crate) clock: Mutex<StepClock>,
}

impl GenerationState {
    pub(crate) fn new(span: Span) -> GenerationState {
        GenerationState {
            span,
            cancelled: Default::default(),
            is_stopped: Default::default(),
            is_truncated: Default::default(),
            narrowed_at: Default::default(),
            forced_tokens: Default::default(),
            refused_tokens: Default::default(),
            repaired_rows: Default::default(),
            stop_draw: Default::default(),
            changes: Default::default(),
            error: Default::default(),
            clock: Default::default(),
        }
    }

    /// Keeps the first error, which ends the generation.
    pub(crate) fn fail(&self, error: EnforcementError) {
        let mut first = self.error.lock();
        if first.is_some() {
            return;
        }
        *first = Some(error.clone());
        drop(first);
        match error {
            EnforcementError::Limit(limit) => {
                tracing::debug!(parent: &self.span, limit, "limit reached")
            }
            error => tracing::warn!(parent: &self.span, %error, "enforcement failed"),
        }
    }

    /// Counts a row with unusable logits for allowed tokens.
    fn count_repaired(&self) {
        let rows = self.repaired_rows.fetch_add(1, Ordering::Relaxed) + 1;
        if rows == 1 {
            tracing::warn!(parent: &self.span, "repaired row: NaN or infinite logits");
        } else {
            tracing::trace!(parent: &self.span, rows, "repaired row");
        }
    }

    fn set_truncated(&self, is_truncated: bool) {
        let was_truncated = self.is_truncated.swap(is_truncated, Ordering::Relaxed);
        if is_truncated && !was_truncated {
            tracing::debug!(parent: &self.span, "truncated at the length limit");
        }
    }

    fn set_narrowed(&self, position: usize) {
        if self.narrowed_at.lock().replace(position).is_none() {
            tracing::debug!(parent: &self.span, "narrowed near the length limit");
        }
    }
}

/// A message from the hook to the reading task.
#[derive(Debug)]
pub(crate) enum TokenEvent {
    /// Generated tokens, and the recorded step of the last one.
    Tokens {
        /// The tokens.
        tokens: Vec<u32>,
        /// The recorded step, if steps are recorded.
        step: Option<Box<Step>>,
    },
    /// The following tokens belong to this plan.
    Plan(Box<(Constraint, louver_formats::LoweredRequest)>),
}

/// A sampled stop token. The host passes no context with it. In some formats it is also the marker
/// that ends the turn, so it may be part of the output.
#[derive(Debug)]
pub(crate) struct StopDraw {
    /// The token.
    pub(crate) token: u32,
    /// The recorded step, if steps are recorded.
    pub(crate) step: Option<Box<Step>>,
}

/// Options of a hook.
pub(crate) struct LogitsHookOptions {
    /// `None`: nothing is masked, tokens are only tapped.
    pub(crate) constraint: Option<Constraint>,
    pub(crate) vocab: Arc<Vocabulary>,
    pub(crate) prompt: PromptBoundary,
    /// Maximum number of generated tokens, without the final stop token.
    pub(crate) limit: Option<usize>,
    /// Louver's sampler; `None` if the host samples.
    pub(crate) sampler: Option<Sampler>,
    /// Whether to narrow the mask near the length limit.
    pub(crate) narrows_near_limit: bool,
    pub(crate) prefetch: Prefetch,
    pub(crate) record: Record,
    /// Receives generated tokens as they become known.
    pub(crate) token_sender: Option<UnboundedSender<TokenEvent>>,
}

/// The logits hook of one generation. Its state is a function of the context's tokens, never of the
/// number of calls: the host may call it in any order and repeatedly.
pub struct LogitsHook {
    shared: Arc<GenerationState>,
    stops: Vec<u32>,
    vocab: Arc<Vocabulary>,
    state: Mutex<HookState>,
}

impl std::fmt::Debug for LogitsHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogitsHook").finish_non_exhaustive()
    }
}

struct HookState {
    options: LogitsHookOptions,
    scratch: Scratch,
    matcher: Option<Matcher>,
    mask: Vec<u32>,
    /// Generated tokens that were published.
    published: Vec<u32>,
    truncation_guard: Option<TruncationGuard>,
    /// Remaining steps for which masks are prefetched.
    prefetch_steps: usize,
    recorder: StepRecorder,
    /// The number of generated tokens at the last call. Another call there is the same step of the
    /// report.
    position: Option<usize>,
}

/// The tokens that may follow.
enum AllowedTokens {
    /// Those of the mask.
    Masked,
    /// Stop tokens only.
    StopTokens,
    /// All tokens.
    All,
}

impl LogitsHook {
    pub(crate) fn new(options: LogitsHookOptions, shared: Arc<GenerationState>) -> LogitsHook {
        let matcher = options.constraint.as_ref().map(Constraint::matcher);
        let words = if matcher.is_some() { options.vocab.mask_words() } else { 0 };
        let vocab = options.vocab.clone();
        let stops = vocab.stops().iter().map(|stop| stop.raw()).collect();
        let state = HookState {
            scratch: Scratch::default(),
            matcher,
            mask: vec![0; words],
            published: Vec::new(),
            truncation_guard: options.narrows_near_limit.then(TruncationGuard::default),
            prefetch_steps: 0,
            recorder: StepRecorder::new(options.record),
            position: None,
            options,
        };
        LogitsHook { shared, stops, vocab, state: Mutex::new(state) }
    }

    /// Masks a row of logits, or draws from it, for the tokens so far (`context`: the prompt and
    /// the generated tokens; the first context may be an end of the prompt). Never panics and never
    /// leaves a row without a finite logit: an error ends the generation, by allowing stop tokens
    /// only. Cost: one mask and one or two passes over the row.
    pub fn apply(&self, row: &mut [f32], context: &[u32]) {
        let process = || self.shared.cancelled.run(|| self.process_row(row, context));
        let result = catch_unwind(AssertUnwindSafe(process));
        if let Err(panic) = result {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
            self.end(row, EnforcementError::Panic(text.to_owned()));
        }
    }

    /// Ends the generation because its row cannot be read, for the given reason. `row` gets the
    /// logits that the host takes in its place.
    pub fn refuse(&self, row: &mut [f32], reason: String) {
        self.end(row, EnforcementError::Logits(reason));
    }

    fn end(&self, row: &mut [f32], error: EnforcementError) {
        self.shared.fail(error);
        row::allow_only(row, &self.stops);
    }

    fn process_row(&self, row: &mut [f32], context: &[u32]) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let started = Instant::now();
        let generated = state.options.prompt.generated(context);
        // The host may ask for a row again, or go on in spite of a stop token.
        *self.shared.stop_draw.lock() = None;
        state.publish(generated, &self.vocab);
        let allowed = state.allowed(generated, &self.shared);
        let is_new_step = state.position.replace(generated.len()) != Some(generated.len());
        let mut masked_at = started;
        match allowed {
            AllowedTokens::StopTokens => row::allow_only(row, &self.stops),
            AllowedTokens::All | AllowedTokens::Masked => {
                let masked = matches!(allowed, AllowedTokens::Masked);
                if masked && state.options.sampler.is_none() {
                    self.narrow(state, row, generated.len());
                }
                if state.recorder.is_on() {
                    let mask = masked.then_some(state.mask.as_slice());
                    let (at, matcher) = (generated.len(), state.matcher.as_mut());
                    state.recorder.observe(at, row, mask, matcher, &self.vocab);
                }
                if state.options.sampler.is_none() {
                    match masked {
                        true => self.mask(state, row, is_new_step),
                        false => self.repair(row),
                    }
                }
                masked_at = Instant::now();
                self.sample(state, row, masked, generated.len(), is_new_step);
            }
        }
        self.shared.clock.lock().step(started, masked_at);
    }

    /// Makes an unconstrained row usable, if the host samples.
    fn repair(&self, row: &mut [f32]) {
        let (largest, has_nan) = sampler::scan_row(row);
        if !row.is_empty() && (has_nan || !largest.is_finite()) {
            self.shared.count_repaired();
            row::repair(row);
        }
    }

    /// Narrows the mask near the length limit, if the host samples.
    fn narrow(&self, state: &mut HookState, row: &[f32], position: usize) {
        let room = state.room(position);
        if let (Some(truncation_guard), Some(matcher)) =
            (&mut state.truncation_guard, &mut state.matcher)
            && truncation_guard.narrow(matcher, &mut state.mask, row, room)
        {
            self.shared.set_narrowed(position);
        }
    }

    /// Masks the row, if the host samples.
    fn mask(&self, state: &HookState, row: &mut [f32], is_new_step: bool) {
        if is_new_step && state.mask.iter().map(|word| word.count_ones()).sum::<u32>() == 1 {
            self.shared.forced_tokens.fetch_add(1, Ordering::Relaxed);
        }
        match row::mask(row, &state.mask) {
            LogitCheck::Finite => {}
            LogitCheck::Irregular => self.shared.count_repaired(),
            LogitCheck::NoneAllowed => self.allow_nothing(row),
        }
    }

    /// Ends the generation because the row has no allowed token.
    fn allow_nothing(&self, row: &mut [f32]) {
        self.end(row, EnforcementError::NothingAllowed { width: row.len() });
    }

    /// Samples, if Louver does, and prefetches the mask after the sampled token while the model
    /// computes. The row need not be masked in that case: the host takes the sampled token.
    fn sample(
        &self,
        state: &mut HookState,
        row: &mut [f32],
        masked: bool,
        position: usize,
        is_new_step: bool,
    ) {
        let Some(sampler) = &state.options.sampler else { return };
        let mask = masked.then_some(state.mask.as_slice());
        let (mut largest, has_nan) = sampler::scan_row(row);
        let index = DrawIndex::first(position);
        let mut sampled = sampler.sample(row, mask, index, &mut state.scratch);
        if sampled.is_irregular {
            self.shared.count_repaired();
            match masked {
                true => drop(row::mask(row, &state.mask)),
                false => row::repair(row),
            }
            largest = largest.min(row::LARGE);
            sampled = sampler.sample(row, mask, index, &mut state.scratch);
        }
        let Some(mut token) = sampled.token else { return self.allow_nothing(row) };
        if masked {
            let accepted = state.draw_within_limit(row, token, position);
            if accepted != Some(token) {
                self.shared.set_narrowed(position);
            }
            let Some(accepted) = accepted else { return self.allow_nothing(row) };
            token = accepted;
        }
        if sampler::host_would_differ(largest, has_nan) {
            sampler::keep_only(row, token);
        }
        if masked && is_new_step {
            self.shared
                .forced_tokens
                .fetch_add(usize::from(sampled.allowed == 1), Ordering::Relaxed);
            self.shared
                .refused_tokens
                .fetch_add(usize::from(largest > sampled.best), Ordering::Relaxed);
        }
        if self.stops.contains(&token) {
            let step = state.recorder.complete(position, token, &self.vocab).map(Box::new);
            *self.shared.stop_draw.lock() = Some(StopDraw { token, step });
        } else if let Some(matcher) = &state.matcher
            && (state.options.prefetch == Prefetch::Always
                || state.options.prefetch == Prefetch::Adaptive && state.prefetch_steps > 0)
        {
            matcher.prefetch(&[TokenId::from_raw(token)]);
        }
    }
}

impl HookState {
    /// Number of tokens that may still follow, without a stop token.
    fn room(&self, position: usize) -> usize {
        self.options.limit.map_or(usize::MAX, |limit| limit.saturating_sub(position))
    }

    /// The drawn token, or another one if no completion would fit within the length limit after
    /// it. Then the row keeps no other token; `None` if it does not have the token.
    fn draw_within_limit(&mut self, row: &mut [f32], drawn: u32, position: usize) -> Option<u32> {
        let room = self.room(position);
        let (Some(guard), Some(matcher), Some(sampler)) =
            (&mut self.truncation_guard, &mut self.matcher, &self.options.sampler)
        else {
            return Some(drawn);
        };
        let (mask, scratch) = (&mut self.mask, &mut self.scratch);
        let mut index = DrawIndex::first(position);
        let token = guard.within_limit(matcher, room, TokenId::from_raw(drawn), |refused| {
            index.refused += 1;
            let id = refused.index();
            row[id] = f32::NEG_INFINITY;
            mask[id / 32] &= !(1 << (id % 32));
            sampler.sample(row, Some(mask), index, scratch).token.map(TokenId::from_raw)
        });
        if index.refused > 0 || token.raw() != drawn {
            if token.index() >= row.len() {
                return None;
            }
            sampler::keep_only(row, token.raw());
        }
        Some(token.raw())
    }

    /// Publishes tokens that are new in the context. If the host rolled the generation back (no
    /// supported pipeline does), nothing is published twice.
    fn publish(&mut self, generated: &[u32], vocab: &Vocabulary) {
        let common = common_prefix(&self.published, generated);
        if common == self.published.len() && generated.len() > common {
            self.published.extend_from_slice(&generated[common..]);
            let tokens = generated[common..].to_vec();
            let step = tokens
                .last()
                .and_then(|last| self.recorder.complete(generated.len() - 1, *last, vocab));
            if let Some(token_sender) = &self.options.token_sender {
                // The reader may be gone; then the generation ends soon.
                let _ = token_sender.send(TokenEvent::Tokens { tokens, step: step.map(Box::new) });
            }
        }
    }

    fn allowed(&mut self, generated: &[u32], shared: &GenerationState) -> AllowedTokens {
        if shared.cancelled.is_cancelled()
            || shared.is_stopped.load(Ordering::Relaxed)
            || shared.error.lock().is_some()
        {
            return AllowedTokens::StopTokens;
        }
        let at_limit = self.options.limit.is_some_and(|limit| generated.len() >= limit);
        let Some(matcher) = &mut self.matcher else {
            if at_limit {
                shared.set_truncated(true);
            }
            return if at_limit { AllowedTokens::StopTokens } else { AllowedTokens::All };
        };
        match advance_to(matcher, generated) {
            Ok(()) => {}
            // The host continues after a stop token at the first position.
            Err((_, AdvanceError::Terminated)) => return AllowedTokens::StopTokens,
            // The token was not read to its end.
            Err(_) if shared.cancelled.is_cancelled() => return AllowedTokens::StopTokens,
            Err((token, error)) => {
                shared.fail(EnforcementError::rejected_token(token, &error));
                return AllowedTokens::StopTokens;
            }
        }
        // The lock is not held while the tokens are read again.
        let change = if at_limit { None } else { shared.changes.lock().take() };
        if let Some(change) = change {
            let (resumed, reply) = match matcher.resumed_in(&change.constraint) {
                Ok(resumed) => (Some(resumed), Ok(generated.len())),
                Err(error) => (None, Err(error.into())),
            };
            // If the requester is gone, the old plan stays.
            if let (Ok(()), Some(resumed)) = (change.reply.send(reply), resumed) {
                *matcher = resumed;
                self.truncation_guard =
                    self.truncation_guard.is_some().then(TruncationGuard::default);
                if let Some(token_sender) = &self.options.token_sender {
                    let plan = Box::new((change.constraint, change.lowered));
                    let _ = token_sender.send(TokenEvent::Plan(plan));
                }
            }
        }
        let started = Instant::now();
        matcher.fill_mask(&mut self.mask);
        self.prefetch_steps = if started.elapsed() > SLOW_MASK_TIME {
            PREFETCH_STEPS
        } else {
            self.prefetch_steps.saturating_sub(1)
        };
        if shared.cancelled.is_cancelled() {
            return AllowedTokens::StopTokens;
        }
        if let Some(limit) = matcher.limit() {
            shared.fail(EnforcementError::Limit(limit.to_owned()));
            return AllowedTokens::StopTokens;
        }
        if at_limit {
            return self.restrict_to_stops(shared);
        }
        AllowedTokens::Masked
    }

    /// Restricts the filled mask to stop tokens at the length limit. Output that can only end is
    /// not truncated. A stop token that the grammar requires, for example at the end of a call,
    /// does not count.
    fn restrict_to_stops(&mut self, shared: &GenerationState) -> AllowedTokens {
        let Some(matcher) = &self.matcher else { return AllowedTokens::StopTokens };
        let mut stop_mask = vec![0; self.mask.len()];
        for stop in matcher.vocab().stops() {
            stop_mask[stop.raw() as usize / 32] |= 1 << (stop.raw() % 32);
        }
        let can_continue =
            self.mask.iter().zip(&stop_mask).any(|(mask, stop_mask)| mask & !stop_mask != 0);
        shared.set_truncated(can_continue);
        self.mask.iter_mut().zip(&stop_mask).for_each(|(mask, stop_mask)| *mask &= stop_mask);
        if self.mask.iter().any(|word| *word != 0) {
            AllowedTokens::Masked
        } else {
            AllowedTokens::StopTokens
        }
    }
}

/// Advances a matcher to these tokens, from the longest common prefix.
fn advance_to(matcher: &mut Matcher, tokens: &[u32]) -> Result<(), (u32, AdvanceError)> {
    let common = matcher.tokens().iter().zip(tokens).take_while(|(a, b)| a.raw() == **b).count();
    matcher.rollback(matcher.tokens().len() - common);
    for &token in &tokens[common..] {
        matcher.advance(TokenId::from_raw(token)).map_err(|error| (token, error))?;
    }
    Ok(())
}
