//! Generations: the hook for the host, the events for the consumer, and the task between the two.

use std::future::Future;
use std::sync::Arc;

use louver::CancelToken;
use louver::engine::PrepareBudget;
use louver::with_methods;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;
use tracing::field::Empty;

use crate::hook::{GenerationState, LogitsHook, LogitsHookOptions};
use crate::options::Prefetch;
use crate::plan::TurnPlan;
use crate::prompt_boundary::PromptBoundary;
use crate::record::Record;
use crate::report::DrawnBy;
use crate::sampler::{Sampler, Sampling};
use crate::stream::{EventStream, Finish, GenerationReading, ReadResult};
use crate::truncation::LimitPolicy;

/// What a generation is started with.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GenerationInput<'a> {
    /// The prompt's tokens.
    pub prompt: &'a [u32],
    /// Maximum number of generated tokens without the final stop token. The host's own limit must
    /// be one higher, because the last token is always a stop token.
    pub limit: usize,
    /// The sampling parameters.
    pub sampling: Sampling,
    /// Who draws: see [`RunOptions::drawn_by`](crate::RunOptions::drawn_by) and
    /// [`DrawnBy::of_choice`].
    pub drawn_by: DrawnBy,
    /// Behaviour near the length limit.
    pub limit_policy: LimitPolicy,
    /// When the next mask is computed while the model computes. Only if Louver draws.
    pub prefetch: Prefetch,
    /// What is recorded of each step.
    pub record: Record,
    /// Ids of earlier calls in the conversation, which new calls do not reuse.
    pub earlier_ids: &'a [String],
}

impl<'a> GenerationInput<'a> {
    /// A generation with the model's sampling parameters and the usual options, at the beginning of
    /// a conversation.
    pub fn new(prompt: &'a [u32], limit: usize, drawn_by: DrawnBy) -> GenerationInput<'a> {
        GenerationInput {
            prompt,
            limit,
            sampling: Sampling::default(),
            drawn_by,
            limit_policy: LimitPolicy::default(),
            prefetch: Prefetch::default(),
            record: Record::default(),
            earlier_ids: &[],
        }
    }
}

with_methods!(GenerationInput<'a> {
    with_limit: limit = usize,
    with_sampling: sampling = Sampling,
    with_drawn_by: drawn_by = DrawnBy,
    with_limit_policy: limit_policy = LimitPolicy,
    with_prefetch: prefetch = Prefetch,
    with_record: record = Record,
    with_earlier_ids: earlier_ids = &'a [String],
});

/// A generation that is ready to run in a host.
#[derive(Debug)]
#[non_exhaustive]
pub struct PreparedGeneration {
    /// Called by the host with each row of logits.
    pub hook: Arc<LogitsHook>,
    /// For the consumer.
    pub events: EventStream,
    /// The task that turns tokens into events.
    pub task: GenerationTask,
}

/// The task that turns a generation's tokens into events.
#[derive(Debug)]
pub struct GenerationTask {
    reading: GenerationReading,
    outcome: oneshot::Sender<ReadResult>,
}

impl GenerationTask {
    /// Runs to the end of the generation. `end` resolves to the host's first finish reason, to its
    /// error, or to `None` if the host is gone; until then it must drain the host's responses. It
    /// is dropped as soon as it has resolved. Run it as a task of its own, so that a slow consumer
    /// delays nothing.
    pub async fn run(self, end: impl Future<Output = Option<Result<Finish, String>>>) {
        let result = self.reading.read(end).await;
        // The consumer may be gone.
        drop(self.outcome.send(result));
    }
}

/// The preparation of a request's first masks, which ends when this is dropped.
#[derive(Debug, Default)]
#[must_use = "the preparation ends when this is dropped"]
pub struct RequestPreparation(CancelToken);

impl Drop for RequestPreparation {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl TurnPlan {
    /// Computes the first masks in the background: see
    /// [`Overlap::prepare`](crate::Overlap::prepare). Keep the value until the generation has
    /// ended.
    pub fn prepare_masks(&self, budget: PrepareBudget) -> RequestPreparation {
        let preparation = RequestPreparation::default();
        if let Some(constraint) = self.constraint() {
            tracing::debug!("preparation: first masks in the background");
            preparation.0.run(|| constraint.prepare(budget));
        }
        preparation
    }

    /// Sets up a generation. The host then gets its hook, and its task must be run.
    pub fn generation(&self, input: &GenerationInput<'_>) -> PreparedGeneration {
        let shared = Arc::new(GenerationState::new(generation_span(input)));
        let (token_sender, token_receiver) = mpsc::unbounded_channel();
        let mut hook = self.hook_options(PromptBoundary::Fixed(input.prompt.len()));
        hook.limit = Some(input.limit);
        let sampling = input.sampling;
        hook.sampler = input.drawn_by.seed().map(|seed| Sampler { seed, sampling });
        hook.narrows_near_limit = match input.limit_policy {
            LimitPolicy::Auto => self.is_structured(),
            LimitPolicy::Safe => self.constraint().is_some(),
            LimitPolicy::Off => false,
        };
        hook.prefetch = input.prefetch;
        hook.record = input.record;
        hook.token_sender = Some(token_sender);
        let hook = Arc::new(LogitsHook::new(hook, shared.clone()));
        let (event_sender, events) = mpsc::unbounded_channel();
        let (outcome_sender, outcome) = oneshot::channel();
        let steps = Arc::default();
        let reading = GenerationReading {
            tokens: token_receiver,
            reader: self.generation_reader(input.earlier_ids),
            events: event_sender,
            shared: shared.clone(),
            steps: Arc::clone(&steps),
        };
        let events = EventStream {
            events,
            steps,
            position: 0,
            plan: self.clone(),
            extension: None,
            outcome,
            shared,
            collector: Default::default(),
            prompt_tokens: input.prompt.len(),
            drawn_by: input.drawn_by,
        };
        PreparedGeneration {
            hook,
            events,
            task: GenerationTask { reading, outcome: outcome_sender },
        }
    }

    /// A hook alone, for hosts that render the prompt and read the output themselves: the prompt's
    /// length is learned from the contexts, and the host draws and limits the length. The host also
    /// ends constrained responses at stop strings, which no mask knows.
    pub fn hook(&self) -> LogitsHook {
        let options = self.hook_options(PromptBoundary::learned());
        LogitsHook::new(options, Arc::new(GenerationState::new(Span::current())))
    }

    /// The options of a hook without a length limit, for a host that draws.
    fn hook_options(&self, prompt: PromptBoundary) -> LogitsHookOptions {
        LogitsHookOptions {
            constraint: self.constraint().cloned(),
            vocab: self.vocab.clone(),
            prompt,
            limit: None,
            sampler: None,
            narrows_near_limit: false,
            prefetch: Prefetch::default(),
            record: Record::default(),
            token_sender: None,
        }
    }
}

/// The span of a generation; if it is disabled, the current one, so that events have a place.
fn generation_span(input: &GenerationInput<'_>) -> Span {
    let span = tracing::debug_span!(
        "generation",
        prompt_tokens = input.prompt.len(),
        limit = input.limit,
        seed = input.drawn_by.seed(),
        tokens = Empty,
        finish = Empty,
        masks = Empty,
    );
    if span.is_disabled() { Span::current() } else { span }
}
