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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Tensor;
use louver::engine::{Constraint, Matcher};
use louver::ids::TokenId;
use louver::matcher::AdvanceError;
use mistralrs_core::CustomLogitsProcessor;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::context::{Prompt, common_prefix};
use crate::error::Fault;
use crate::noise::Noise;
use crate::report::Clock;
use crate::row::{self, Masked};

/// What the hook and the reader of one generation tell each other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The reader wants no more.
    pub(crate) cancelled: AtomicBool,
    /// The length limit was reached.
    pub(crate) cut: AtomicBool,
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

/// How a hook is made.
pub(crate) struct HookOptions {
    /// None: nothing is masked, tokens are only tapped.
    pub(crate) constraint: Option<Constraint>,
    pub(crate) stops: Vec<u32>,
    pub(crate) prompt: Prompt,
    /// Most generated tokens, the last stop token not counted.
    pub(crate) limit: Option<usize>,
    pub(crate) noise: Option<Noise>,
    /// Where generated tokens go as they become known.
    pub(crate) tap: Option<UnboundedSender<Vec<u32>>>,
}

/// The processor of one generation.
pub(crate) struct Hook {
    shared: Arc<Shared>,
    stops: Vec<u32>,
    state: Mutex<State>,
}

struct State {
    prompt: Prompt,
    limit: Option<usize>,
    noise: Option<Noise>,
    matcher: Option<Matcher>,
    mask: Vec<u32>,
    /// Generated tokens as last seen.
    seen: Vec<u32>,
    tap: Option<UnboundedSender<Vec<u32>>>,
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
        let HookOptions { constraint, stops, prompt, limit, noise, tap } = options;
        let words = constraint.as_ref().map_or(0, |c| c.vocab().mask_words());
        let matcher = constraint.map(|c| c.matcher());
        let state = State { prompt, limit, noise, matcher, mask: vec![0; words], seen: Vec::new(), tap };
        Hook { shared, stops, state: Mutex::new(state) }
    }

    fn row(&self, logits: &Tensor, context: &[u32]) -> candle_core::Result<Tensor> {
        let mut state = self.state.lock();
        let begun = Instant::now();
        let generated = state.prompt.generated(context);
        state.publish(generated);
        let allowed = state.allowed(generated, &self.shared);
        let State { mask, noise, .. } = &mut *state;
        let mut masked_at = begun;
        let out = row::edit(logits, |row| {
            match allowed {
                Allowed::Anything => {}
                Allowed::Stops => row::only(row, &self.stops),
                Allowed::Masked => match row::mask(row, mask) {
                    Masked::Fine => {}
                    Masked::Repaired => self.shared.clock.lock().repaired += 1,
                    Masked::Nothing => {
                        self.shared.fail(Fault::NothingAllowed { width: row.len() });
                        row::only(row, &self.stops);
                    }
                },
            }
            masked_at = Instant::now();
            if let Some(noise) = noise {
                noise.add(row, generated.len());
            }
        })?;
        self.shared.clock.lock().step(begun, masked_at);
        Ok(out)
    }
}

impl State {
    /// Passes on tokens that were not there before. A generation that was rolled back by the host (none is in the
    /// supported pipelines) passes on nothing again.
    fn publish(&mut self, generated: &[u32]) {
        let known = common_prefix(&self.seen, generated);
        if known == self.seen.len() && generated.len() > known {
            self.seen.extend_from_slice(&generated[known..]);
            if let Some(tap) = &self.tap {
                // The reader may be gone; the generation ends soon then.
                let _ = tap.send(generated[known..].to_vec());
            }
        }
    }

    fn allowed(&mut self, generated: &[u32], shared: &Shared) -> Allowed {
        if shared.cancelled.load(Ordering::Relaxed) || shared.fault.lock().is_some() {
            return Allowed::Stops;
        }
        if self.limit.is_some_and(|limit| generated.len() >= limit) {
            shared.cut.store(true, Ordering::Relaxed);
            return Allowed::Stops;
        }
        let Some(matcher) = &mut self.matcher else { return Allowed::Anything };
        match follow(matcher, generated) {
            Ok(()) => {}
            // A stop token was taken and the host goes on regardless (it does so after a stop token at the first position).
            Err((_, AdvanceError::Terminated)) => return Allowed::Stops,
            Err((token, error)) => {
                shared.fail(Fault::Rejected { token, why: error.to_string() });
                return Allowed::Stops;
            }
        }
        matcher.fill_mask(&mut self.mask);
        if let Some(limit) = matcher.limit() {
            shared.fail(Fault::Limit(limit.to_owned()));
            return Allowed::Stops;
        }
        Allowed::Masked
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
                Fault::Panic(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic").to_owned())
            }
        };
        self.shared.fail(fault);
        let mut values = vec![0.0; logits.elem_count()];
        row::only(&mut values, &self.stops);
        let width = values.len();
        Ok(Tensor::from_vec(values, width, &candle_core::Device::Cpu).unwrap_or_else(|_| logits.clone()))
    }
}
