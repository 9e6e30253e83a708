//! Generations that are running, all choices of a request read as one stream. Dropping it cancels them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use louver_formats::Event;
use louver_mistralrs::{Completion, EventStream, Finish, Generation, GenerationError, Step};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{ApiError, ErrorKind};
use crate::http::phase::Phase;
use crate::inspect::{Outcome, Recorder, RequestSummary, TimingSummary};
use crate::metrics::{FinishLabels, ModelLabels};
use crate::state::{App, Served};

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
    pub(super) body: Value,
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

/// One choice.
struct Choice {
    index: usize,
    stream: EventStream,
    /// Steps that went with events.
    kept: Vec<Step>,
    recorder: Option<(String, Recorder)>,
    tally: Tally,
}

type Advance = Pin<Box<dyn Future<Output = (Option<Choice>, Result<Progress, GenerationError>)> + Send>>;

/// The generations of a request.
pub(crate) struct Running {
    /// The model.
    pub(crate) served: Arc<Served>,
    /// The prompt's length.
    pub(crate) prompt_tokens: usize,
    /// Time to lower and compile the grammar.
    pub(crate) compiled_in: Duration,
    app: App,
    advancing: FuturesUnordered<Advance>,
    options: Options,
    begun: bool,
    _permit: OwnedSemaphorePermit,
}

impl Running {
    pub(super) fn new(
        app: App,
        served: Arc<Served>,
        streams: Vec<EventStream>,
        permit: OwnedSemaphorePermit,
        (options, recording): (Options, Option<Recording>),
    ) -> Running {
        let prompt_tokens = streams.first().map_or(0, EventStream::prompt_tokens);
        let labels = ModelLabels { model: served.name.clone() };
        app.metrics().prompt_tokens.get_or_create(&labels).inc_by(prompt_tokens as u64);
        let choices = streams.into_iter().enumerate().map(|(index, stream)| {
            let tally = Tally::new(app.clone(), &served);
            let recorder = recording.as_ref().map(|recording| recording.begin(index, &served));
            advance(Choice { index, stream, kept: Vec::new(), recorder, tally }, options)
        });
        let advancing = choices.collect();
        let compiled_in = options.compiled_in;
        Running { served, prompt_tokens, compiled_in, app, advancing, options, begun: false, _permit: permit }
    }

    /// What happens next; `None` when all choices are over. An error is the request's: its generations are cancelled. Safe to
    /// drop and to call again.
    pub(crate) async fn next(&mut self) -> Option<Result<Progress, ApiError>> {
        let late = tokio::time::sleep_until(self.options.deadline.into());
        let app = self.app.clone();
        let error = tokio::select! {
            biased;
            next = self.advancing.next() => match next? {
                (choice, Ok(progress)) => {
                    self.note_first();
                    self.advancing.extend(choice.map(|choice| advance(choice, self.options)));
                    return Some(Ok(progress));
                }
                (_, Err(error)) => error.into(),
            },
            () = late => ApiError::whole(ErrorKind::Timeout, "timeout", "the request took too long"),
            () = app.phases().reached(Phase::Cancelling) => {
                ApiError::whole(ErrorKind::Unavailable, "stopping", "the server is stopping")
            }
        };
        self.advancing.clear();
        Some(Err(error))
    }

    fn note_first(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let labels = ModelLabels { model: self.served.name.clone() };
            let time = self.options.arrived.elapsed().as_secs_f64();
            self.app.metrics().first_token.get_or_create(&labels).observe(time);
        }
    }
}

fn advance(mut choice: Choice, options: Options) -> Advance {
    Box::pin(async move {
        let index = choice.index;
        let event = choice.stream.next().await;
        let steps = if options.live_steps { choice.stream.take_steps() } else { Vec::new() };
        if choice.recorder.is_some() {
            choice.kept.extend_from_slice(&steps);
        }
        let Some(event) = event else { return (None, choice.end(options, steps).await) };
        choice.tally.event(&event);
        if let Some((_, recorder)) = &mut choice.recorder {
            recorder.event(choice.stream.position(), &event);
        }
        (Some(choice), Ok(Progress::Event { choice: index, event, steps }))
    })
}

impl Choice {
    /// Reads the end. `steps`: those taken since the last event.
    async fn end(self, options: Options, mut steps: Vec<Step>) -> Result<Progress, GenerationError> {
        let Choice { index, stream, mut kept, recorder, tally } = self;
        let prompt_tokens = stream.prompt_tokens();
        let mut generation = match stream.finish().await {
            Ok(generation) => Box::new(generation),
            Err(error) => {
                if let Some((id, recorder)) = recorder {
                    record_failure(&id, recorder, prompt_tokens, &kept, (&error, &tally));
                }
                tally.fail();
                return Err(error);
            }
        };
        if options.live_steps {
            steps.extend_from_slice(&generation.steps);
        }
        kept.append(&mut generation.steps);
        generation.steps = kept;
        let trace = recorder.and_then(|(id, recorder)| record(id, recorder, &generation, &tally));
        tally.end(&generation);
        Ok(Progress::End { choice: index, generation, steps, trace })
    }
}

impl Recording {
    /// A choice's recorder, and the id its trace will have.
    fn begin(&self, choice: usize, served: &Served) -> (String, Recorder) {
        let id = if choice == 0 { self.id.clone() } else { format!("{}-{choice}", self.id) };
        let summary = RequestSummary {
            route: self.route.to_owned(),
            model: served.name.clone(),
            format: served.louver.format().ok().map(str::to_owned),
            choice,
            body: self.body.clone(),
        };
        (id, Recorder::new(summary))
    }
}

/// Puts a trace into the store; its id, if it is there now.
fn record(id: String, recorder: Recorder, generation: &Generation, tally: &Tally) -> Option<String> {
    let outcome = Outcome {
        prompt_tokens: generation.prompt_tokens,
        vocabulary: tally.vocabulary,
        finish: finish_word(generation),
        steps: &generation.steps,
        report: &generation.report,
        timing: TimingSummary::from(&generation.timing),
    };
    match recorder.finish(tally.app.traces(), &id, &outcome) {
        Ok(()) => Some(id),
        Err(error) => {
            tracing::warn!(id, "not recorded: {error}");
            None
        }
    }
}

/// Puts the trace of a generation that failed into the store: its steps up to the last event.
fn record_failure(
    id: &str,
    recorder: Recorder,
    prompt_tokens: usize,
    steps: &[Step],
    (error, tally): (&GenerationError, &Tally),
) {
    let finish = format!("error: {error}");
    let (report, timing) = (serde_json::json!({}), TimingSummary::default());
    let vocabulary = tally.vocabulary;
    let outcome = Outcome { prompt_tokens, vocabulary, finish: &finish, steps, report: &report, timing };
    if let Err(error) = recorder.finish(tally.app.traces(), id, &outcome) {
        tracing::warn!(id, "not recorded: {error}");
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
        Tally { app, labels: ModelLabels { model: served.name.clone() }, vocabulary, finish: "cancelled" }
    }

    fn event(&self, event: &Event) {
        if matches!(event, Event::CallStart { .. }) {
            self.app.metrics().calls.get_or_create(&self.labels).inc();
        }
    }

    fn fail(mut self) {
        self.finish = "error";
    }

    fn end(mut self, generation: &Generation) {
        self.finish = finish_word(generation);
        let metrics = self.app.metrics();
        let report = &generation.report;
        let truncated = report.completion == Completion::Truncated;
        for (counter, count) in [
            (&metrics.generated_tokens, generation.tokens.len()),
            (&metrics.forced, report.forced_tokens),
            (&metrics.refused, report.refused_tokens),
            (&metrics.repaired, generation.repaired_rows),
            (&metrics.truncated, usize::from(truncated)),
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
