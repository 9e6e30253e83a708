//! Generations that are running, all choices of a request read as one stream. Dropping it cancels them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use louver_formats::Event;
use louver_mistralrs::{
    Completion, EventStream, Finish, Generation, GenerationError, Part, Plan, Run, Step,
    ViolationKind,
};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{ApiError, ErrorKind};
use crate::http::phase::Phase;
use crate::inspect::{Outcome, Recorder, RequestSummary, TimingSummary};
use crate::metrics::{FinishLabels, ModelLabels};
use crate::request::places::Places;
use crate::state::{App, Served};
use crate::turn::Work;

/// How a request is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
    pub(super) compiled_in: Duration,
    /// Steps come with events.
    pub(super) live_steps: bool,
}

/// What traces of a request need.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    /// The answer's id.
    pub(super) id: String,
    pub(super) route: &'static str,
    /// The request as it was sent.
    pub(super) body: Arc<Value>,
}

/// What happened next.
#[derive(Debug)]
pub(crate) enum Progress {
    /// A choice said something.
    Event {
        /// Which.
        choice: usize,
        /// What.
        event: Event,
        /// The steps since the last event, where they are wanted as they come.
        steps: Vec<Step>,
    },
    /// A choice is over.
    End {
        /// Which.
        choice: usize,
        /// What it came to.
        generation: Box<Generation>,
        /// As with events.
        steps: Vec<Step>,
        /// The trace's id, if it was recorded.
        trace: Option<String>,
    },
}

/// Places that are taken until the host has ended every generation of a request.
pub(super) type Permits = Arc<[OwnedSemaphorePermit]>;

/// What all choices of a request share.
#[derive(Clone)]
struct Shared {
    app: App,
    served: Arc<Served>,
    recording: Option<Recording>,
    options: Options,
    permits: Permits,
    /// Where members of the request stood that were rewritten.
    places: Arc<Places>,
}

/// Choices that are begun when the one before is over.
#[derive(Clone)]
pub(super) struct Later {
    pub(super) plan: Plan,
    pub(super) prompt: Vec<u32>,
    /// For one choice: the first.
    pub(super) run: Run,
    /// The next to begin.
    pub(super) next: usize,
    /// How many there are.
    pub(super) choices: usize,
}

/// One choice.
struct Choice {
    index: usize,
    /// None at its end.
    stream: Option<EventStream>,
    /// Steps of the trace that went with events.
    kept: Vec<Step>,
    recorder: Option<(String, Recorder)>,
    tally: Tally,
    permits: Permits,
    places: Arc<Places>,
}

type Advance = Pin<Box<dyn Future<Output = (Option<Choice>, Result<Progress, ApiError>)> + Send>>;

/// The generations of a request.
pub(crate) struct Running {
    /// The model.
    pub(crate) served: Arc<Served>,
    /// The prompt's length.
    pub(crate) prompt_tokens: usize,
    /// Time to lower and compile the grammar.
    pub(crate) compiled_in: Duration,
    advancing: FuturesUnordered<Advance>,
    shared: Shared,
    later: Option<Later>,
    begun: bool,
    /// Preparations end with the request.
    _work: Work,
}

impl Running {
    pub(super) fn new(
        (app, served): (App, Arc<Served>),
        streams: Vec<EventStream>,
        later: Option<Later>,
        (permits, work): (Permits, Work),
        (options, recording, places): (Options, Option<Recording>, Arc<Places>),
    ) -> Running {
        let prompt_tokens = streams.first().map_or(0, EventStream::prompt_tokens);
        let labels = ModelLabels { model: served.name.clone() };
        app.metrics().prompt_tokens.get_or_create(&labels).inc_by(prompt_tokens as u64);
        let shared = Shared { app, served: served.clone(), recording, options, permits, places };
        let choices = streams.into_iter().enumerate();
        let advancing =
            choices.map(|(index, stream)| advance(shared.choice(index, stream), options)).collect();
        let compiled_in = options.compiled_in;
        Running {
            served,
            prompt_tokens,
            compiled_in,
            advancing,
            shared,
            later,
            begun: false,
            _work: work,
        }
    }

    /// When the request's time is over.
    pub(super) fn deadline(&self) -> Instant {
        self.shared.options.deadline
    }

    /// What happens next; `None` when all choices are over. An error is the request's: its generations are cancelled. Safe to
    /// drop and to call again.
    pub(crate) async fn next(&mut self) -> Option<Result<Progress, ApiError>> {
        let options = self.shared.options;
        let late = tokio::time::sleep_until(options.deadline.into());
        let app = self.shared.app.clone();
        let error = tokio::select! {
            // The deadline first: a generation that always has something to say must not outrun it.
            biased;
            () = late => ApiError::whole(ErrorKind::Timeout, "timeout", "the request took too long"),
            () = app.phases().reached(Phase::Cancelling) => {
                ApiError::whole(ErrorKind::Unavailable, "stopping", "the server is stopping")
            }
            next = self.advancing.next() => match next? {
                (choice, Ok(progress)) => {
                    self.note_first();
                    match choice {
                        Some(choice) => self.advancing.push(advance(choice, options)),
                        None => self.begin_next(),
                    }
                    return Some(Ok(progress));
                }
                (_, Err(error)) => error,
            },
        };
        self.advancing.clear();
        self.later = None;
        Some(Err(error))
    }

    /// Begins the next choice, if choices come one after the other.
    fn begin_next(&mut self) {
        let Some(later) = self.later.as_mut().filter(|later| later.next < later.choices) else {
            return;
        };
        let (index, starting, shared) = (later.next, later.clone(), self.shared.clone());
        later.next += 1;
        self.advancing.push(Box::pin(async move {
            match starting.start(&shared.served).await {
                Ok(stream) => advance(shared.choice(index, stream), shared.options).await,
                Err(error) => (None, Err(error)),
            }
        }));
    }

    fn note_first(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let labels = ModelLabels { model: self.served.name.clone() };
            let time = self.shared.options.arrived.elapsed().as_secs_f64();
            self.shared.app.metrics().first_token.get_or_create(&labels).observe(time);
        }
    }
}

impl Later {
    /// The stream of the choice that is next.
    async fn start(mut self, served: &Served) -> Result<EventStream, ApiError> {
        self.run.options.seed =
            self.run.options.seed.map(|seed| seed.wrapping_add(self.next as u64));
        let mut streams = self.plan.start(&served.model.0, self.prompt, self.run).await?;
        streams.pop().ok_or_else(|| GenerationError::HostGone.into())
    }
}

impl Shared {
    fn choice(&self, index: usize, stream: EventStream) -> Choice {
        let tally = Tally::new(self.app.clone(), &self.served);
        let bytes = self.app.config().limits.traces.trace_bytes;
        let recorder =
            self.recording.as_ref().map(|recording| recording.begin(index, &self.served, bytes));
        let (permits, places) = (self.permits.clone(), self.places.clone());
        Choice { index, stream: Some(stream), kept: Vec::new(), recorder, tally, permits, places }
    }
}

fn advance(mut choice: Choice, options: Options) -> Advance {
    Box::pin(async move {
        let index = choice.index;
        let Some(stream) = &mut choice.stream else {
            return (None, Err(GenerationError::HostGone.into()));
        };
        let event = stream.next().await;
        let (steps, position) =
            (if options.live_steps { stream.take_steps() } else { Vec::new() }, stream.position());
        if choice.recorder.is_some() && !choice.kept.last().is_some_and(|step| step.cut) {
            choice.kept.extend_from_slice(traced(&steps));
        }
        let Some(event) = event else { return (None, choice.end(options, steps).await) };
        choice.tally.event(&event);
        if let Some((_, recorder)) = &mut choice.recorder {
            recorder.event(position, &event);
        }
        (Some(choice), Ok(Progress::Event { choice: index, event, steps }))
    })
}

impl Choice {
    /// Reads the end. `steps`: those taken since the last event.
    async fn end(mut self, options: Options, mut steps: Vec<Step>) -> Result<Progress, ApiError> {
        let Some(stream) = self.stream.take() else { return Err(GenerationError::HostGone.into()) };
        let (index, mut kept, recorder) =
            (self.index, std::mem::take(&mut self.kept), self.recorder.take());
        let (last, prompt_tokens) = (stream.take_steps(), stream.prompt_tokens());
        if options.live_steps {
            steps.extend_from_slice(&last);
        }
        kept.extend(last);
        let mut ended = stream.finish().await;
        for relaxed in ended.iter_mut().flat_map(|generation| &mut generation.report.relaxed) {
            relaxed.pointer = self.places.original(&relaxed.pointer);
        }
        let trace = recorder.and_then(|recorder| {
            self.tally.records().put(recorder, prompt_tokens, traced(&kept), &ended)
        });
        match &mut ended {
            Ok(generation) => {
                generation.steps = kept;
                self.tally.end(generation);
            }
            Err(_) => self.tally.finish = "error",
        }
        Ok(Progress::End { choice: index, generation: Box::new(ended?), steps, trace })
    }
}

impl Drop for Choice {
    /// One that was not read to its end is cancelled; its place is free when the host has ended it, and its trace is what there
    /// was of it.
    fn drop(&mut self) {
        let (Some(mut stream), Ok(runtime)) =
            (self.stream.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        stream.cancel();
        let (permits, mut kept, mut recorder) =
            (self.permits.clone(), std::mem::take(&mut self.kept), self.recorder.take());
        let records = self.tally.records();
        runtime.spawn(async move {
            while let Some(event) = stream.next().await {
                if let Some((_, recorder)) = &mut recorder {
                    recorder.event(stream.position(), &event);
                }
            }
            kept.extend(stream.take_steps());
            let prompt_tokens = stream.prompt_tokens();
            let ended = stream.finish().await;
            drop(permits);
            if let Some(recorder) = recorder {
                records.put(recorder, prompt_tokens, traced(&kept), &ended);
            }
        });
    }
}

/// The steps that are part of a trace.
fn traced(steps: &[Step]) -> &[Step] {
    let end = steps.iter().position(|step| step.cut).map_or(steps.len(), |last| last + 1);
    &steps[..end]
}

impl Recording {
    /// A choice's recorder, which takes so many bytes of events, and the id its trace will have.
    fn begin(&self, choice: usize, served: &Served, bytes: usize) -> (String, Recorder) {
        let id = if choice == 0 { self.id.clone() } else { format!("{}-{choice}", self.id) };
        let summary = RequestSummary {
            route: self.route.to_owned(),
            model: served.name.clone(),
            format: served.louver.format().ok().map(str::to_owned),
            choice,
            body: self.body.clone(),
        };
        (id, Recorder::new(summary, bytes))
    }
}

/// Where traces go.
struct Records {
    app: App,
    /// The vocabulary's width.
    vocabulary: usize,
}

impl Records {
    /// Puts a trace into the store; its id, if it is there now.
    fn put(
        &self,
        (id, recorder): (String, Recorder),
        prompt_tokens: usize,
        steps: &[Step],
        ended: &Result<Generation, GenerationError>,
    ) -> Option<String> {
        let (finish, report, timing) = match ended {
            Ok(generation) => {
                let timing = TimingSummary::from(&generation.timing);
                (finish_word(generation).to_owned(), serde_json::json!(generation.report), timing)
            }
            Err(error) => {
                (format!("error: {error}"), serde_json::json!({}), TimingSummary::default())
            }
        };
        let (cut, vocabulary) = (steps.last().is_some_and(|step| step.cut), self.vocabulary);
        let outcome = Outcome {
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
                tracing::warn!(id, "not recorded: {error}");
                None
            }
        }
    }
}

fn finish_word(generation: &Generation) -> &'static str {
    match generation.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Cancelled => "cancelled",
    }
}

/// Counts a generation; one that is dropped before its end was cancelled.
struct Tally {
    app: App,
    labels: ModelLabels,
    /// The vocabulary's width.
    vocabulary: usize,
    finish: &'static str,
}

impl Tally {
    fn new(app: App, served: &Served) -> Tally {
        app.metrics().generations.inc();
        let vocabulary = served.louver.engine().vocab().width();
        Tally {
            app,
            labels: ModelLabels { model: served.name.clone() },
            vocabulary,
            finish: "cancelled",
        }
    }

    fn event(&self, event: &Event) {
        if matches!(event, Event::CallStart { .. }) {
            self.app.metrics().calls.get_or_create(&self.labels).inc();
        }
    }

    fn records(&self) -> Records {
        Records { app: self.app.clone(), vocabulary: self.vocabulary }
    }

    fn end(&mut self, generation: &Generation) {
        self.finish = finish_word(generation);
        let metrics = self.app.metrics();
        let report = &generation.report;
        let truncated = report.completion == Completion::Truncated;
        let parts = |kind| {
            let mut parts: Vec<&Part> = Vec::new();
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
            (&metrics.violations, parts(ViolationKind::Violated)),
            (&metrics.unchecked, parts(ViolationKind::Unchecked)),
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

impl Drop for Tally {
    fn drop(&mut self) {
        let metrics = self.app.metrics();
        metrics.generations.dec();
        let labels = FinishLabels { model: self.labels.model.clone(), finish: self.finish };
        metrics.finished.get_or_create(&labels).inc();
    }
}
