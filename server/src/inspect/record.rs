//! One generation's trace, from its beginning to the store.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use louver_formats::Event;
use serde::Serialize;

use super::store::{Entry, StoreError, TraceStore};

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestSummary {
    /// The route, `/v1/chat/completions` for example.
    pub route: String,
    /// The model's name.
    pub model: String,
    /// The wire format's name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Which choice of the answer, from 0.
    pub choice: usize,
    /// The request as it was sent. Choices share it.
    #[serde(serialize_with = "shared")]
    pub body: Arc<serde_json::Value>,
}

/// What the generation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimingSummary {
    /// Mean time of a mask, microseconds.
    pub mask_mean_us: f64,
    /// The time 99 of 100 masks did not exceed, microseconds.
    pub mask_p99_us: f64,
    /// All of Louver's work, microseconds.
    pub louver_us: f64,
    /// From the first step to the end, microseconds.
    pub steps_us: f64,
    /// Louver's share of that, 0 to 1.
    pub share: f64,
}

impl From<&louver_mistralrs::Timing> for TimingSummary {
    fn from(timing: &louver_mistralrs::Timing) -> Self {
        let us = |time: Duration| time.as_nanos() as f64 / 1000.0;
        TimingSummary {
            mask_mean_us: us(timing.mask_mean()),
            mask_p99_us: us(timing.mask_quantile(0.99)),
            louver_us: us(timing.louver),
            steps_us: us(timing.steps),
            share: timing.share(),
        }
    }
}

/// How a generation ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a, S, R> {
    /// The prompt's length in tokens.
    pub prompt_tokens: usize,
    /// How many tokens the vocabulary has.
    pub vocabulary: usize,
    /// The finish reason, or what went wrong.
    pub finish: &'a str,
    /// The recorded steps.
    pub steps: &'a [S],
    /// Whether there would have been more.
    pub cut: bool,
    /// What was enforced.
    pub report: &'a R,
    /// What it cost.
    pub timing: TimingSummary,
}

/// An event, and how many tokens had been read when it was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Placed {
    tokens: usize,
    event: Event,
}

/// Collects the events of one generation while it runs.
#[derive(Clone, Debug)]
pub struct Recorder {
    created: u64,
    request: RequestSummary,
    events: Vec<Placed>,
    calls: Vec<String>,
    /// Bytes of events that still fit; none once one did not.
    left: Option<usize>,
}

/// A trace as JSON has it.
#[derive(Serialize)]
struct Trace<'a, S, R> {
    object: &'static str,
    version: u32,
    id: &'a str,
    created: u64,
    request: &'a RequestSummary,
    prompt_tokens: usize,
    vocabulary: usize,
    finish: &'a str,
    cut: bool,
    report: &'a R,
    timing: TimingSummary,
    steps: &'a [S],
    events: &'a [Placed],
}

impl Recorder {
    /// Begins to record, no more than so many bytes of events.
    pub fn new(request: RequestSummary, bytes: usize) -> Recorder {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Recorder { created, request, events: Vec::new(), calls: Vec::new(), left: Some(bytes) }
    }

    /// Takes the next event. `tokens`: how many tokens had been read when it was decided.
    pub fn event(&mut self, tokens: usize, event: &Event) {
        self.left = self.left.and_then(|left| left.checked_sub(size(event)));
        if self.left.is_none() {
            return;
        }
        if let Event::CallStart { name, .. } = event {
            self.calls.push(name.clone());
        }
        self.events.push(Placed { tokens, event: event.clone() });
    }

    /// Puts the trace into the store under this id.
    ///
    /// # Errors
    /// The store's: the trace is too large, or none are kept. Nothing else is lost then.
    pub fn finish<S: Serialize, R: Serialize>(
        self,
        store: &TraceStore,
        id: &str,
        outcome: &Outcome<'_, S, R>,
    ) -> Result<(), StoreError> {
        let cut = outcome.cut || self.left.is_none();
        let entry = Entry {
            id: id.to_owned(),
            created: self.created,
            route: self.request.route.clone(),
            model: self.request.model.clone(),
            choice: self.request.choice,
            prompt_tokens: outcome.prompt_tokens,
            steps: outcome.steps.len(),
            calls: self.calls,
            finish: outcome.finish.to_owned(),
            cut,
        };
        let trace = Trace {
            object: "louver.trace",
            version: 1,
            id,
            created: self.created,
            request: &self.request,
            prompt_tokens: outcome.prompt_tokens,
            vocabulary: outcome.vocabulary,
            finish: outcome.finish,
            cut,
            report: outcome.report,
            timing: outcome.timing,
            steps: outcome.steps,
            events: &self.events,
        };
        store.put(entry, &trace)
    }
}

/// An event's memory, in bytes.
fn size(event: &Event) -> usize {
    let text = match event {
        Event::TextDelta { delta }
        | Event::ReasoningDelta { delta }
        | Event::ArgumentsDelta { delta, .. } => delta.len(),
        Event::CallStart { id, name, .. } => id.len() + name.len(),
        _ => 0,
    };
    size_of::<Placed>() + text
}

fn shared<S: serde::Serializer>(
    body: &Arc<serde_json::Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    body.as_ref().serialize(serializer)
}
