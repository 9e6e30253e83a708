//! The running generations of a request: all its choices read as one stream. Dropping it cancels
//! them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use louver::engine::Prepared;
use louver_formats::Event;
use louver_mistralrs::{
    CheckedPart, Completion, EventStream, Finish, Generation, GenerationError, Plan, Run, Step,
    ViolationKind,
};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{ApiError, ErrorKind};
use crate::http::phase::ServerPhase;
use crate::inspect::{RequestSummary, TimingSummary, TraceOutcome, TraceRecorder};
use crate::metrics::{FinishLabels, ModelLabels};
use crate::request::pointers::PointerMap;
use crate::state::{App, ServedModel};
use crate::telemetry;
use crate::turn::BlockingWork;
use crate::turn::rounds::{Rounds, ToolResult};

/// Timing and options of reading a request's generations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
    pub(crate) compiled_in: Duration,
    /// Whether steps are delivered with events rather than at the end.
    pub(super) live_steps: bool,
    pub(crate) max_tokens: usize,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    /// Number of tools.
    pub(crate) tools: usize,
}

/// Request data that its traces record.
#[derive(Clone, Debug)]
pub(super) struct TraceSource {
    /// The response id.
    pub(super) id: String,
    pub(super) route: &'static str,
    /// The request as sent.
    pub(super) body: Arc<Value>,
}

/// The next event of a request.
#[derive(Debug)]
pub(crate) enum Progress {
    /// A choice produced output.
    Event {
        /// Index of the choice.
        choice: usize,
        /// The parsed output event.
        event: Event,
        /// Steps since the last event, if they are delivered with events.
        steps: Vec<Step>,
    },
    /// The server ran the calls of a choice's turn. Another turn of it may follow.
    ToolResults {
        /// The results, in the order of the calls.
        results: Vec<ToolResult>,
        /// Number of tokens of the turn, if its end is not reported.
        generated: usize,
        /// Number of reasoning tokens among them.
        reasoning: usize,
    },
    /// A choice ended.
    End {
        /// Index of the choice.
        choice: usize,
        /// The complete generation.
        generation: Box<Generation>,
        /// Steps since the last event, if they are delivered with events.
        steps: Vec<Step>,
        /// The trace's id, if one was stored.
        trace: Option<String>,
    },
}

/// Admission slots, held until the host has ended every generation of a request.
pub(super) type Permits = Arc<[OwnedSemaphorePermit]>;

/// State shared by all choices of a request.
#[derive(Clone)]
struct TurnContext {
    app: App,
    served: Arc<ServedModel>,
    trace_source: Option<TraceSource>,
    options: Options,
    permits: Permits,
    /// The preparation of masks, if there is one.
    prepared: Option<Prepared>,
    /// Maps JSON pointers of the rewritten body to the request as sent.
    pointers: Arc<PointerMap>,
}

/// Choices that run one after the other, for hosts that run one generation at a time.
#[derive(Clone)]
pub(super) struct SequentialChoices {
    pub(super) plan: Plan,
    pub(super) prompt: Vec<u32>,
    /// The run of the first choice.
    pub(super) run: Run,
    /// Index of the next choice to start.
    pub(super) next: usize,
    /// Total number of choices.
    pub(super) choices: usize,
}

/// One running choice.
struct Choice {
    index: usize,
    /// `None` after its end.
    stream: Option<EventStream>,
    /// Steps that belong to the trace and were already delivered with events.
    traced_steps: Vec<Step>,
    recorder: Option<(String, TraceRecorder)>,
    metrics: GenerationMetrics,
    permits: Permits,
    prepared: Option<Prepared>,
    pointers: Arc<PointerMap>,
}

/// What follows the progress of a choice.
enum After {
    /// More events of it.
    Choice(Box<Choice>),
    /// The calls of its turn that the server runs, or nothing.
    End,
    /// The next choice, if choices run one after the other.
    Choices,
    /// Another turn, with the results of the server's tools.
    Round(Box<(Rounds, Run)>),
    /// Its end, after the results of the server's tools: the client runs other calls.
    Last(Box<Progress>),
}

type ChoiceFuture = Pin<Box<dyn Future<Output = (After, Result<Progress, ApiError>)> + Send>>;

/// The running generations of a request.
pub(crate) struct RunningTurn {
    /// The model.
    pub(crate) served: Arc<ServedModel>,
    /// Prompt length in tokens.
    pub(crate) prompt_tokens: usize,
    /// Time to lower and compile the grammar.
    pub(crate) compiled_in: Duration,
    pending: FuturesUnordered<ChoiceFuture>,
    context: TurnContext,
    later_choices: Option<SequentialChoices>,
    /// The state of the tools that the server runs, and the run of its first round.
    rounds: Option<(Rounds, Run)>,
    has_event: bool,
    /// Held so that background preparation is cancelled with the request.
    _work: BlockingWork,
}

impl RunningTurn {
    pub(super) fn new(
        (app, served): (App, Arc<ServedModel>),
        streams: Vec<EventStream>,
        (later_choices, rounds): (Option<SequentialChoices>, Option<(Rounds, Run)>),
        (permits, work, prepared): (Permits, BlockingWork, Option<Prepared>),
        (options, trace_source, pointers): (Options, Option<TraceSource>, Arc<PointerMap>),
    ) -> RunningTurn {
        let prompt_tokens = streams.first().map_or(0, EventStream::prompt_tokens);
        let labels = ModelLabels { model: served.name.clone() };
        app.metrics().prompt_tokens.get_or_create(&labels).inc_by(prompt_tokens as u64);
        let context = TurnContext {
            app,
            served: served.clone(),
            trace_source,
            options,
            permits,
            prepared,
            pointers,
        };
        let choices = streams.into_iter().enumerate();
        let pending = choices
            .map(|(index, stream)| advance(context.choice(index, stream), options))
            .collect();
        let compiled_in = options.compiled_in;
        RunningTurn {
            served,
            prompt_tokens,
            compiled_in,
            pending,
            context,
            later_choices,
            rounds,
            has_event: false,
            _work: work,
        }
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
        let error = loop {
            let late = tokio::time::sleep_until(options.deadline.into());
            let (after, progress) = tokio::select! {
                // The deadline is polled first: a generation that always has output must not
                // outrun it.
                biased;
                () = late => {
                    let message = "the request took too long";
                    break ApiError::general(ErrorKind::Timeout, "timeout", message);
                }
                () = app.phases().reached(ServerPhase::Cancelling) => {
                    let message = "the server is stopping";
                    break ApiError::general(ErrorKind::Unavailable, "stopping", message);
                }
                next = self.pending.next() => next?,
            };
            match progress {
                Ok(progress) => {
                    self.observe_first_event();
                    if let Some(progress) = self.continue_after(after, progress) {
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

    /// Starts what follows. Returns the progress to report; none while the server runs the calls of
    /// a turn.
    fn continue_after(&mut self, after: After, progress: Progress) -> Option<Progress> {
        let options = self.context.options;
        match after {
            After::Choice(choice) => self.pending.push(advance(*choice, options)),
            After::Round(round) => self.start_round(*round),
            After::Last(last) => {
                self.pending.push(Box::pin(async { (After::Choices, Ok(*last)) }));
            }
            After::End => match self.tool_round(progress) {
                Ok(running) => {
                    self.pending.push(running);
                    return None;
                }
                Err(progress) => {
                    self.start_next_choice();
                    return Some(*progress);
                }
            },
            After::Choices => self.start_next_choice(),
        }
        Some(progress)
    }

    /// The future that runs the calls of an ended turn, if the server runs any of them; otherwise
    /// the end itself.
    fn tool_round(&mut self, progress: Progress) -> Result<ChoiceFuture, Box<Progress>> {
        let (mut rounds, run, end) = match (self.rounds.take(), progress) {
            (Some((rounds, run)), Progress::End { choice, generation, steps, trace })
                if rounds.has_calls(&generation) && !generation.is_truncated() =>
            {
                (rounds, run, (choice, generation, steps, trace))
            }
            (rounds, progress) => {
                self.rounds = rounds;
                return Err(Box::new(progress));
            }
        };
        let app = self.context.app.clone();
        Ok(Box::pin(async move {
            let (choice, generation, steps, trace) = end;
            let results = rounds.run(&app, &generation).await;
            if rounds.continues(&generation) {
                let (generated, reasoning) = (generation.tokens.len(), generation.reasoning_tokens);
                let results = Progress::ToolResults { results, generated, reasoning };
                return (After::Round(Box::new((rounds, run))), Ok(results));
            }
            // The end reports these tokens.
            let results = Progress::ToolResults { results, generated: 0, reasoning: 0 };
            let end = Progress::End { choice, generation, steps, trace };
            (After::Last(Box::new(end)), Ok(results))
        }))
    }

    /// Starts the next turn, after the results of the server's tools.
    fn start_round(&mut self, (rounds, run): (Rounds, Run)) {
        self.rounds = Some((rounds.clone(), run.clone()));
        let context = self.context.clone();
        self.pending.push(Box::pin(async move {
            match rounds.start(&context.served, run).await {
                Ok(stream) => advance(context.choice(0, stream), context.options).await,
                Err(error) => (After::End, Err(error)),
            }
        }));
    }

    /// Starts the next choice, if choices run one after the other.
    fn start_next_choice(&mut self) {
        let Some(later) = self.later_choices.as_mut().filter(|later| later.next < later.choices)
        else {
            return;
        };
        let (index, starter, context) = (later.next, later.clone(), self.context.clone());
        later.next += 1;
        self.pending.push(Box::pin(async move {
            match starter.start(&context.served).await {
                Ok(stream) => advance(context.choice(index, stream), context.options).await,
                Err(error) => (After::End, Err(error)),
            }
        }));
    }

    fn observe_first_event(&mut self) {
        if !std::mem::replace(&mut self.has_event, true) {
            let labels = ModelLabels { model: self.served.name.clone() };
            let time = self.context.options.arrived.elapsed().as_secs_f64();
            self.context.app.metrics().first_token.get_or_create(&labels).observe(time);
        }
    }
}

impl SequentialChoices {
    /// Starts the next choice and returns its event stream.
    async fn start(mut self, served: &ServedModel) -> Result<EventStream, ApiError> {
        self.run.options.seed =
            self.run.options.seed.map(|seed| seed.wrapping_add(self.next as u64));
        let mut streams = self.plan.start(&served.model.0, self.prompt, self.run).await?;
        streams.pop().ok_or_else(|| GenerationError::HostGone.into())
    }
}

impl TurnContext {
    fn choice(&self, index: usize, stream: EventStream) -> Choice {
        let span =
            telemetry::generation(&self.served, index, stream.prompt_tokens(), &self.options);
        let metrics = GenerationMetrics::new(self.app.clone(), &self.served, span);
        let bytes = self.app.config().limits.traces.trace_bytes;
        let recorder = self
            .trace_source
            .as_ref()
            .map(|trace_source| trace_source.begin(index, &self.served, bytes));
        let (permits, pointers) = (self.permits.clone(), self.pointers.clone());
        // One for all choices: the first reports it.
        let prepared = self.prepared.clone().filter(|_| index == 0);
        Choice {
            index,
            stream: Some(stream),
            traced_steps: Vec::new(),
            recorder,
            metrics,
            permits,
            prepared,
            pointers,
        }
    }
}

fn advance(mut choice: Choice, options: Options) -> ChoiceFuture {
    Box::pin(async move {
        let index = choice.index;
        let Some(stream) = &mut choice.stream else {
            return (After::End, Err(GenerationError::HostGone.into()));
        };
        let event = stream.next().await;
        let (steps, position) =
            (if options.live_steps { stream.take_steps() } else { Vec::new() }, stream.position());
        if choice.recorder.is_some() && !choice.traced_steps.last().is_some_and(|step| step.cut) {
            choice.traced_steps.extend_from_slice(traced_prefix(&steps));
        }
        let Some(event) = event else { return (After::End, choice.end(options, steps).await) };
        choice.metrics.event(&event);
        if let Some((_, recorder)) = &mut choice.recorder {
            recorder.event(position, &event);
        }
        (After::Choice(Box::new(choice)), Ok(Progress::Event { choice: index, event, steps }))
    })
}

impl Choice {
    /// Finishes the choice. `steps` are those taken since the last event.
    async fn end(mut self, options: Options, mut steps: Vec<Step>) -> Result<Progress, ApiError> {
        let Some(stream) = self.stream.take() else { return Err(GenerationError::HostGone.into()) };
        let (index, mut traced_steps, recorder) =
            (self.index, std::mem::take(&mut self.traced_steps), self.recorder.take());
        let (last, prompt_tokens) = (stream.take_steps(), stream.prompt_tokens());
        if options.live_steps {
            steps.extend_from_slice(&last);
        }
        traced_steps.extend(last);
        let mut result = stream.finish().await;
        for relaxed in result.iter_mut().flat_map(|generation| &mut generation.report.relaxed) {
            relaxed.pointer = self.pointers.original(&relaxed.pointer);
        }
        let trace = recorder.and_then(|recorder| {
            self.metrics.trace_sink().store(
                recorder,
                prompt_tokens,
                traced_prefix(&traced_steps),
                &result,
            )
        });
        match &mut result {
            Ok(generation) => {
                generation.steps = traced_steps;
                telemetry::record_generation(
                    &self.metrics.span,
                    generation,
                    &options,
                    self.prepared.as_ref(),
                );
                self.metrics.end(generation);
            }
            Err(error) => {
                telemetry::failed_generation(&self.metrics.span, error);
                self.metrics.finish = "error";
            }
        }
        Ok(Progress::End { choice: index, generation: Box::new(result?), steps, trace })
    }
}

impl Drop for Choice {
    /// Cancels a choice that was not read to its end. Its slot is released when the host has ended
    /// the generation, and the partial trace is stored.
    fn drop(&mut self) {
        let (Some(mut stream), Ok(runtime)) =
            (self.stream.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        stream.cancel();
        let (permits, mut traced_steps, mut recorder) =
            (self.permits.clone(), std::mem::take(&mut self.traced_steps), self.recorder.take());
        let trace_sink = self.metrics.trace_sink();
        runtime.spawn(async move {
            while let Some(event) = stream.next().await {
                if let Some((_, recorder)) = &mut recorder {
                    recorder.event(stream.position(), &event);
                }
            }
            traced_steps.extend(stream.take_steps());
            let prompt_tokens = stream.prompt_tokens();
            let result = stream.finish().await;
            drop(permits);
            if let Some(recorder) = recorder {
                trace_sink.store(recorder, prompt_tokens, traced_prefix(&traced_steps), &result);
            }
        });
    }
}

/// The leading steps that belong to a trace: up to and including the one where it was cut off.
fn traced_prefix(steps: &[Step]) -> &[Step] {
    let end = steps.iter().position(|step| step.cut).map_or(steps.len(), |last| last + 1);
    &steps[..end]
}

impl TraceSource {
    /// Creates the recorder of a choice, limited to `bytes` of events, and the id of its trace.
    fn begin(&self, choice: usize, served: &ServedModel, bytes: usize) -> (String, TraceRecorder) {
        let id = if choice == 0 { self.id.clone() } else { format!("{}-{choice}", self.id) };
        let summary = RequestSummary {
            route: self.route.to_owned(),
            model: served.name.clone(),
            format: served.louver.format().ok().map(str::to_owned),
            choice,
            body: self.body.clone(),
        };
        (id, TraceRecorder::new(summary, bytes))
    }
}

/// Stores finished traces.
struct TraceSink {
    app: App,
    /// Width of the vocabulary in tokens.
    vocabulary: usize,
}

impl TraceSink {
    /// Stores a trace and returns its id, or logs why it was not stored.
    fn store(
        &self,
        (id, recorder): (String, TraceRecorder),
        prompt_tokens: usize,
        steps: &[Step],
        result: &Result<Generation, GenerationError>,
    ) -> Option<String> {
        let (finish, report, timing) = match result {
            Ok(generation) => {
                let timing = TimingSummary::from(&generation.timing);
                (finish_name(generation).to_owned(), serde_json::json!(generation.report), timing)
            }
            Err(error) => {
                (format!("error: {error}"), serde_json::json!({}), TimingSummary::default())
            }
        };
        let (cut, vocabulary) = (steps.last().is_some_and(|step| step.cut), self.vocabulary);
        let outcome = TraceOutcome {
            prompt_tokens,
            vocabulary,
            finish: &finish,
            steps,
            cut,
            report: &report,
            timing,
        };
        match recorder.finish(self.app.traces(), &id, &outcome) {
            Ok(()) => Some(id),
            Err(error) => {
                tracing::warn!(id, "the trace was not stored: {error}");
                None
            }
        }
    }
}

fn finish_name(generation: &Generation) -> &'static str {
    match generation.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Cancelled => "cancelled",
    }
}

/// Metrics and span of one generation. A generation dropped before its end counts as cancelled.
struct GenerationMetrics {
    app: App,
    labels: ModelLabels,
    /// Width of the vocabulary in tokens.
    vocabulary: usize,
    finish: &'static str,
    span: tracing::Span,
}

impl GenerationMetrics {
    fn new(app: App, served: &ServedModel, span: tracing::Span) -> GenerationMetrics {
        app.metrics().generations.inc();
        let vocabulary = served.louver.engine().vocab().width();
        GenerationMetrics {
            app,
            labels: ModelLabels { model: served.name.clone() },
            vocabulary,
            finish: "cancelled",
            span,
        }
    }

    fn event(&self, event: &Event) {
        if matches!(event, Event::CallStart { .. }) {
            self.app.metrics().calls.get_or_create(&self.labels).inc();
        }
    }

    fn trace_sink(&self) -> TraceSink {
        TraceSink { app: self.app.clone(), vocabulary: self.vocabulary }
    }

    fn end(&mut self, generation: &Generation) {
        self.finish = finish_name(generation);
        let metrics = self.app.metrics();
        let report = &generation.report;
        let truncated = report.completion == Completion::Truncated;
        let distinct_parts = |kind| {
            let mut parts: Vec<&CheckedPart> = Vec::new();
            report.violations.iter().filter(|violation| violation.kind == kind).for_each(
                |violation| {
                    if !parts.contains(&&violation.part) {
                        parts.push(&violation.part);
                    }
                },
            );
            parts.len()
        };
        for (counter, count) in [
            (&metrics.generated_tokens, generation.tokens.len()),
            (&metrics.forced, report.forced_tokens),
            (&metrics.refused, report.refused_tokens),
            (&metrics.repaired, generation.repaired_rows),
            (&metrics.truncated, usize::from(truncated)),
            (&metrics.violations, distinct_parts(ViolationKind::Violated)),
            (&metrics.unchecked, distinct_parts(ViolationKind::Unchecked)),
        ] {
            counter.get_or_create(&self.labels).inc_by(count as u64);
        }
        let masks = metrics.mask.get_or_create(&self.labels);
        generation.timing.masks.iter().for_each(|mask| masks.observe(mask.as_secs_f64()));
        drop(masks);
        metrics.louver.get_or_create(&self.labels).inc_by(generation.timing.louver.as_secs_f64());
        metrics.steps.get_or_create(&self.labels).inc_by(generation.timing.steps.as_secs_f64());
    }
}

impl Drop for GenerationMetrics {
    fn drop(&mut self) {
        let metrics = self.app.metrics();
        metrics.generations.dec();
        let labels = FinishLabels { model: self.labels.model.clone(), finish: self.finish };
        metrics.finished.get_or_create(&labels).inc();
        telemetry::end_generation(&self.span, self.finish);
    }
}
