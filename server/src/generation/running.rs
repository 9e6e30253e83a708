//! The running generations of a request: all its choices read as one stream. Dropping it cancels
//! them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use louver_mistralrs::{Completion, EventStream, GenerationError, Plan, RequestParams};

use crate::admission::Admission;
use crate::error::{ApiError, DEADLINE, ErrorKind};
use crate::generation::choice::{Choice, Permits, Progress, RequestContext};
use crate::generation::rounds::Rounds;
use crate::generation::slots::{enter_generation, enter_planning};
use crate::generation::usage::Usage;
use crate::generation::{BlockingWork, GenerationRequest};
use crate::http::body::run_blocking;
use crate::http::phase::ServerPhase;
use crate::metrics::ModelLabels;
use crate::served_model::ServedModel;

/// Choices that run one after the other, for hosts that run one generation at a time.
#[derive(Clone)]
pub(super) struct SequentialChoices {
    pub(super) plan: Plan,
    /// The tokens of each prompt.
    pub(super) prompts: Arc<[Vec<u32>]>,
    /// The parameters of the first choice.
    pub(super) params: RequestParams,
    /// Index of the next choice to start.
    pub(super) next: usize,
    /// Number of choices of each prompt.
    pub(super) per_prompt: usize,
}

/// What follows the progress of a choice.
enum NextStep {
    /// More events of it.
    MoreEvents(Box<Choice>),
    /// The generation has ended: the server runs its calls, if it runs any of them, or starts the
    /// next choice, if choices run one after the other.
    GenerationEnded,
    /// Another round, after the results of the server's tools, and the parameters of its request.
    NextRound(Box<(Rounds, RequestParams)>),
    /// Its end, after the results of the server's tools: the client runs other calls.
    LastProgress(Box<(Rounds, Progress)>),
}

type ChoiceFuture = Pin<Box<dyn Future<Output = (NextStep, Result<Progress, ApiError>)> + Send>>;

/// The running generations of a request.
pub(crate) struct RunningRequest {
    /// Length of all prompts in tokens.
    pub(crate) prompt_tokens: usize,
    pending: FuturesUnordered<ChoiceFuture>,
    context: RequestContext,
    later_choices: Option<SequentialChoices>,
    /// The state of the tools that the server runs.
    rounds: Option<Rounds>,
    has_event: bool,
    /// Cancels planning and preparation when the request is dropped.
    work: Arc<BlockingWork>,
}

impl RunningRequest {
    /// Reads the streams, one for each choice that runs now; the number of tokens is that of all
    /// prompts. `later_choices` are started when those have ended. `rounds` is the state of the
    /// tools that the server runs.
    pub(super) fn new(
        context: RequestContext,
        streams: Vec<EventStream>,
        prompt_tokens: usize,
        later_choices: Option<SequentialChoices>,
        rounds: Option<Rounds>,
        work: BlockingWork,
    ) -> RunningRequest {
        count_prompt(&context, prompt_tokens);
        let choices = streams.into_iter().enumerate();
        let pending =
            choices.map(|(k, stream)| advance(Choice::begin(context.clone(), k, stream))).collect();
        RunningRequest {
            prompt_tokens,
            pending,
            context,
            later_choices,
            rounds,
            has_event: false,
            work: Arc::new(work),
        }
    }

    /// The model.
    pub(crate) fn served(&self) -> &Arc<ServedModel> {
        &self.context.served
    }

    /// The request's deadline.
    pub(super) fn deadline(&self) -> Instant {
        self.context.options.deadline
    }

    /// The next event; `None` when all choices have ended. An error ends the request and cancels
    /// its generations. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Result<Progress, ApiError>> {
        let options = self.context.options;
        let app = self.context.app.clone();
        let limit = self.context.served.settings.limits.requests.timeout_s;
        let error = loop {
            let interrupted = async {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(options.deadline.into()) => {
                        ApiError::timeout(DEADLINE, "requests.timeout_s", limit)
                    }
                    () = app.phases().reached(ServerPhase::Cancelling) => ApiError::stopping(),
                }
            };
            let (next_step, progress) = match next_pending(&mut self.pending, interrupted).await? {
                Ok(next) => next,
                Err(error) => break error,
            };
            match progress {
                Ok(progress) => {
                    self.observe_first_event();
                    if let Some(progress) = self.continue_after(next_step, progress) {
                        return Some(Ok(progress));
                    }
                }
                Err(error) => break error,
            }
        };
        self.pending.clear();
        self.later_choices = None;
        Some(Err(error))
    }

    /// Passes the progress of the only choice to `read`, which returns the response at the end of
    /// the choice. That is read on a blocking thread, because a response may have megabytes.
    pub(crate) async fn collect<T: Send + 'static>(
        mut self,
        mut read: impl FnMut(Progress) -> Option<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        while let Some(progress) = self.next().await {
            let progress = progress?;
            if !matches!(progress, Progress::End { .. }) {
                read(progress);
            } else if let Some(response) = run_blocking(move || Ok(read(progress))).await? {
                return Ok(response);
            } else {
                break;
            }
        }
        let message = "the generation ended without a result";
        Err(ApiError::general(ErrorKind::Internal, "internal", message))
    }

    /// Starts what follows. Returns the progress to report; none while the server runs the calls of
    /// a round.
    fn continue_after(&mut self, next_step: NextStep, progress: Progress) -> Option<Progress> {
        match next_step {
            NextStep::MoreEvents(choice) => self.pending.push(advance(*choice)),
            NextStep::NextRound(round) => {
                let (rounds, params) = *round;
                self.start_round(rounds, params);
            }
            // Rounds have ended, so that no calls are run after this progress. They pay for the
            // results until the response ends.
            NextStep::LastProgress(last) => {
                let (rounds, end) = *last;
                self.rounds = Some(rounds);
                self.pending.push(Box::pin(async { (NextStep::GenerationEnded, Ok(end)) }));
            }
            NextStep::GenerationEnded => match self.tool_round(progress) {
                Ok(running) => {
                    self.pending.push(running);
                    return None;
                }
                Err(progress) => {
                    self.start_next_choice();
                    return Some(*progress);
                }
            },
        }
        Some(progress)
    }

    /// The future that runs the calls of an ended round, if the server runs any of them; otherwise
    /// the end itself.
    fn tool_round(&mut self, progress: Progress) -> Result<ChoiceFuture, Box<Progress>> {
        let (mut rounds, mut finished, steps) = match (self.rounds.take(), progress) {
            (Some(rounds), Progress::End { finished, steps })
                if rounds.calls_server_tools(&finished.generation)
                    && !finished.generation.is_truncated() =>
            {
                (rounds, finished, steps)
            }
            (rounds, progress) => {
                self.rounds = rounds;
                return Err(Box::new(progress));
            }
        };
        let app = self.context.app.clone();
        // The generation has ended, and others run while the calls do.
        self.context.permits = Permits::default();
        Ok(Box::pin(async move {
            let results = rounds.run(&app, &finished.generation).await;
            if rounds.can_continue(&finished.generation) {
                if let Some(params) = rounds.next_params() {
                    let usage = Usage::of_generation(&finished.generation);
                    let louver = finished.louver_member();
                    let results = Progress::ToolResults { results, usage, louver };
                    return (NextStep::NextRound(Box::new((rounds, params))), Ok(results));
                }
                // No tokens are left for another round.
                finished.generation.report.completion = Completion::Truncated;
            }
            // The end reports the round.
            let usage = Usage::default();
            let results = Progress::ToolResults { results, usage, louver: None };
            let end = Progress::End { finished, steps };
            rounds.end();
            (NextStep::LastProgress(Box::new((rounds, end))), Ok(results))
        }))
    }

    /// Starts the next round, after the results of the server's tools.
    fn start_round(&mut self, rounds: Rounds, params: RequestParams) {
        let (mut context, work) = (self.context.clone(), self.work.clone());
        // Each round has a trace of its own. Masks are prepared for the first only.
        if let Some(source) = &mut context.trace_source {
            source.id = format!("{}-r{}", source.id, rounds.complete);
        }
        context.prepared = None;
        let request = rounds.request.clone();
        self.rounds = Some(rounds);
        self.pending.push(Box::pin(async move {
            let started = plan_round(request, &mut context, &work, params).await;
            begin(context, 0, started).await
        }));
    }

    /// Starts the next choice, if choices run one after the other.
    fn start_next_choice(&mut self) {
        let Some(later) = self.later_choices.as_mut().filter(|later| later.has_next()) else {
            return;
        };
        let (index, starter, context) = (later.next, later.clone(), self.context.clone());
        later.next += 1;
        self.pending.push(Box::pin(async move {
            let started = starter.start(&context.served).await;
            begin(context, index, started).await
        }));
    }

    fn observe_first_event(&mut self) {
        if !std::mem::replace(&mut self.has_event, true) {
            let labels = ModelLabels::of(&self.context.served);
            let time = self.context.options.arrived.elapsed().as_secs_f64();
            self.context.app.metrics().first_token_seconds.get_or_create(&labels).observe(time);
        }
    }
}

impl SequentialChoices {
    fn has_next(&self) -> bool {
        self.next < self.prompts.len() * self.per_prompt
    }

    /// Starts the next choice and returns its event stream. The choices of each prompt have the
    /// seeds of a request with this prompt alone.
    async fn start(mut self, served: &ServedModel) -> Result<EventStream, ApiError> {
        let (prompt, index) = (self.next / self.per_prompt, self.next % self.per_prompt);
        let seed = &mut self.params.options.seed;
        *seed = seed.map(|seed| seed.wrapping_add(index as u64));
        let prompt = self.prompts.get(prompt).cloned().unwrap_or_default();
        single(self.plan.start(&served.model, prompt, self.params).await?)
    }
}

/// Plans and starts a round after the first, once there are slots again. The work is cancelled with
/// the request.
async fn plan_round(
    request: GenerationRequest,
    context: &mut RequestContext,
    work: &BlockingWork,
    params: RequestParams,
) -> Result<EventStream, ApiError> {
    let (app, served, checkpoint) =
        (context.app.clone(), context.served.clone(), work.checkpoint());
    let mut admission = Admission::again();
    let planning = enter_planning(&app, &served, 1, &mut admission).await?;
    let planned = work.run(planning.clone(), move || {
        let plan = request.plan(&served).map_err(|error| request.plan_error(error))?;
        checkpoint()?;
        // A request with tools is a conversation, which is one prompt.
        let (plan, mut prompts) = request.render(plan)?;
        Ok((plan, prompts.pop().unwrap_or_default()))
    });
    let planned = planned.await.map_err(|error| error.map_pointers(&context.pointers));
    let (plan, prompt) = planned?;
    let served = &context.served;
    context.permits = enter_generation(&app, served, planning, &mut admission).await?;
    count_prompt(context, prompt.len());
    single(plan.start(&context.served.model, prompt, params).await?)
}

/// Adds the tokens of the prompts that a request sends to the host.
fn count_prompt(context: &RequestContext, tokens: usize) {
    let counter = &context.app.metrics().prompt_tokens;
    counter.get_or_create(&ModelLabels::of(&context.served)).inc_by(tokens as u64);
}

/// The next output of `pending`, or the error of `interrupted` if that is first. `None` if nothing
/// is pending: what has ended is not interrupted.
async fn next_pending<F: Future>(
    pending: &mut FuturesUnordered<F>,
    interrupted: impl Future<Output = ApiError>,
) -> Option<Result<F::Output, ApiError>> {
    if pending.is_empty() {
        return None;
    }
    tokio::select! {
        // Polled first: a generation that always has output must not outrun its deadline.
        biased;
        error = interrupted => Some(Err(error)),
        next = pending.next() => next.map(Ok),
    }
}

/// The stream of a request with one choice.
fn single(mut streams: Vec<EventStream>) -> Result<EventStream, ApiError> {
    streams.pop().ok_or_else(|| GenerationError::HostGone.into())
}

/// The first event of a choice, and what follows it.
async fn begin(
    context: RequestContext,
    index: usize,
    started: Result<EventStream, ApiError>,
) -> (NextStep, Result<Progress, ApiError>) {
    match started {
        Ok(stream) => advance(Choice::begin(context, index, stream)).await,
        Err(error) => (NextStep::GenerationEnded, Err(error)),
    }
}

/// The next event of a choice, and what follows it.
fn advance(choice: Choice) -> ChoiceFuture {
    Box::pin(async move {
        let (choice, progress) = choice.advance().await;
        (choice.map_or(NextStep::GenerationEnded, NextStep::MoreEvents), progress)
    })
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// A request that has ended gets no error of the deadline that passes next; another one does,
    /// even if it always has output.
    #[tokio::test]
    async fn only_what_is_pending_is_interrupted() {
        let late = || ready(ApiError::stopping());
        let mut running = FuturesUnordered::new();
        assert!(next_pending(&mut running, late()).await.is_none());
        running.push(ready(5));
        assert!(matches!(next_pending(&mut running, late()).await, Some(Err(_))));
        assert!(matches!(next_pending(&mut running, pending()).await, Some(Ok(5))));
        assert!(next_pending(&mut running, pending()).await.is_none());
    }
}
