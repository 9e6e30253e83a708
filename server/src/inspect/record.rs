//! Recording of a generation's trace.

use std::sync::Arc;
use std::time::Duration;

use louver_formats::Event;
use serde::Serialize;

use super::store::{TraceEntry, TraceStore, TraceStoreError};
use crate::clock::unix_seconds;

/// The request of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestSummary {
    /// The route, `/v1/chat/completions` for example.
    pub route: String,
    /// The model's name.
    pub model: String,
    /// The wire format's name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Index of the choice, from 0.
    pub choice: usize,
    /// The request body as sent; shared by all choices.
    #[serde(serialize_with = "serialize_body")]
    pub body: Arc<serde_json::Value>,
}

/// Timings of a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimingSummary {
    /// Mean time per mask, in microseconds.
    pub mask_mean_us: f64,
    /// 99th percentile of the time per mask, in microseconds.
    pub mask_p99_us: f64,
    /// Total time of Louver's work, in microseconds.
    pub louver_us: f64,
    /// Time from the first step to the end, in microseconds.
    pub steps_us: f64,
    /// Louver's share of that time, from 0 to 1.
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

/// The result of a generation.
#[derive(Clone, Copy, Debug)]
pub struct TraceOutcome<'a, S, R> {
    /// The prompt's length in tokens.
    pub prompt_tokens: usize,
    /// Size of the vocabulary in tokens.
    pub vocabulary: usize,
    /// The finish reason, or the error.
    pub finish: &'a str,
    /// The recorded steps.
    pub steps: &'a [S],
    /// Whether recording was cut off at its limit.
    pub cut: bool,
    /// The enforcement report.
    pub report: &'a R,
    /// Timings.
    pub timing: TimingSummary,
}

/// An event and the number of tokens read when the parser emitted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct PositionedEvent {
    tokens: usize,
    event: Event,
}

/// Collects the events of one generation while it runs.
#[derive(Clone, Debug)]
pub struct TraceRecorder {
    created: u64,
    request: RequestSummary,
    events: Vec<PositionedEvent>,
    calls: Vec<String>,
    /// Remaining bytes for events; `None` once an event did not fit.
    bytes_left: Option<usize>,
}

/// The JSON format of a trace.
// Many fields: a trace as it is stored and served.
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
    events: &'a [PositionedEvent],
}

impl TraceRecorder {
    /// Starts recording, limited to `bytes` of events.
    pub fn new(request: RequestSummary, bytes: usize) -> TraceRecorder {
        TraceRecorder {
            created: unix_seconds(),
            request,
            events: Vec::new(),
            calls: Vec::new(),
            bytes_left: Some(bytes),
        }
    }

    /// Records an event. `tokens` is the number of tokens read when the parser emitted it.
    pub fn event(&mut self, tokens: usize, event: &Event) {
        self.bytes_left =
            self.bytes_left.and_then(|bytes_left| bytes_left.checked_sub(event_bytes(event)));
        if self.bytes_left.is_none() {
            return;
        }
        if let Event::CallStart { name, .. } = event {
            self.calls.push(name.clone());
        }
        self.events.push(PositionedEvent { tokens, event: event.clone() });
    }

    /// Stores the trace under this id.
    ///
    /// # Errors
    /// The store's: the trace is too large, or the store keeps none. Other traces are unaffected.
    pub fn finish<S: Serialize, R: Serialize>(
        self,
        store: &TraceStore,
        id: &str,
        outcome: &TraceOutcome<'_, S, R>,
    ) -> Result<(), TraceStoreError> {
        let cut = outcome.cut || self.bytes_left.is_none();
        let entry = TraceEntry {
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

/// Memory of an event in bytes.
fn event_bytes(event: &Event) -> usize {
    let text = match event {
        Event::TextDelta { delta }
        | Event::ReasoningDelta { delta }
        | Event::ArgumentsDelta { delta, .. } => delta.len(),
        Event::CallStart { id, name, .. } => id.len() + name.len(),
        _ => 0,
    };
    size_of::<PositionedEvent>() + text
}

fn serialize_body<S: serde::Serializer>(
    body: &Arc<serde_json::Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    body.as_ref().serialize(serializer)
}
