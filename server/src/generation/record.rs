//! Records of one choice: its metrics, its span and its trace.

use std::sync::Arc;

use louver::engine::Prepared;
use louver_formats::Event;
use louver_mistralrs::{
    CheckedPart, Completion, Finish, Generation, GenerationError, Step, ViolationKind,
};
use serde_json::Value;

use crate::error::ApiError;
use crate::generation::finished::finish_reason;
use crate::http::body::run_blocking;
use crate::inspect::{RequestSummary, TimingSummary, TraceOutcome, TraceRecorder};
use crate::metrics::{FinishLabels, ModelLabels};
use crate::served_model::ServedModel;
use crate::state::App;
use crate::telemetry;

/// Request data that its traces record.
#[derive(Clone, Debug)]
pub(super) struct TraceSource {
    /// The response id.
    pub(super) id: String,
    pub(super) route: &'static str,
    /// The request as sent.
    pub(super) body: Arc<Value>,
}

/// The leading steps that belong to a trace: up to and including the one where it was cut off.
pub(super) fn traced_prefix(steps: &[Step]) -> &[Step] {
    let end = steps.iter().position(|step| step.cut).map_or(steps.len(), |last| last + 1);
    &steps[..end]
}

impl TraceSource {
    /// Begins the trace of a choice, limited to `bytes` of events.
    pub(super) fn begin(&self, choice: usize, served: &ServedModel, bytes: usize) -> ChoiceTrace {
        let id = if choice == 0 { self.id.clone() } else { format!("{}-{choice}", self.id) };
        let summary = RequestSummary {
            route: self.route.to_owned(),
            model: served.name.clone(),
            format: served.louver.format().ok().map(str::to_owned),
            choice,
            body: self.body.clone(),
        };
        let vocabulary = served.louver.engine().vocab().width();
        ChoiceTrace { id, vocabulary, recorder: TraceRecorder::new(summary, bytes) }
    }
}

/// What a trace has of the end of a choice.
pub(super) struct EndedChoice {
    pub(super) prompt_tokens: usize,
    /// All steps that were taken.
    pub(super) steps: Vec<Step>,
    pub(super) result: Result<Generation, GenerationError>,
}

/// The trace of a choice.
pub(super) struct ChoiceTrace {
    id: String,
    /// Width of the vocabulary in tokens.
    vocabulary: usize,
    pub(super) recorder: TraceRecorder,
}

impl ChoiceTrace {
    /// Stores the trace on a blocking thread, because it may have megabytes. Returns its id, or
    /// logs why it was not stored, and returns the choice. Error: a panic.
    pub(super) async fn store(
        self,
        app: App,
        ended: EndedChoice,
    ) -> Result<(Option<String>, EndedChoice), ApiError> {
        run_blocking(move || Ok((self.store_now(&app, &ended), ended))).await
    }

    fn store_now(self, app: &App, ended: &EndedChoice) -> Option<String> {
        let steps = traced_prefix(&ended.steps);
        let (finish, report, timing) = match &ended.result {
            Ok(generation) => {
                let timing = TimingSummary::from(&generation.timing);
                (finish_name(generation).to_owned(), serde_json::json!(generation.report), timing)
            }
            Err(error) => {
                (format!("error: {error}"), serde_json::json!({}), TimingSummary::default())
            }
        };
        let outcome = TraceOutcome {
            prompt_tokens: ended.prompt_tokens,
            vocabulary: self.vocabulary,
            finish: &finish,
            steps,
            cut: steps.last().is_some_and(|step| step.cut),
            report: &report,
            timing,
        };
        match self.recorder.finish(app.traces(), &self.id, &outcome) {
            Ok(()) => Some(self.id),
            Err(error) => {
                tracing::warn!(id = self.id, "the trace was not stored: {error}");
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
pub(super) struct GenerationMetrics {
    app: App,
    labels: ModelLabels,
    /// Why it ended: `stop`, `length`, `cancelled` or `error`.
    finish: &'static str,
    span: tracing::Span,
}

impl GenerationMetrics {
    pub(super) fn new(app: App, served: &ServedModel, span: tracing::Span) -> GenerationMetrics {
        app.metrics().running_generations.inc();
        GenerationMetrics { app, labels: ModelLabels::of(served), finish: "cancelled", span }
    }

    pub(super) fn event(&self, event: &Event) {
        if matches!(event, Event::CallStart { .. }) {
            self.app.metrics().calls_started.get_or_create(&self.labels).inc();
        }
    }

    /// Records the end. `prepared` is the preparation that the choice reports.
    pub(super) fn end(
        mut self,
        result: &Result<Generation, GenerationError>,
        prepared: Option<&Prepared>,
    ) {
        match result {
            Ok(generation) => {
                self.finish = finish_name(generation);
                telemetry::record_generation(&self.span, generation, prepared);
                if generation.finish != Finish::Cancelled {
                    telemetry::set_finish_reason(&self.span, finish_reason(generation));
                }
                self.count(generation);
            }
            Err(error) => {
                telemetry::failed_generation(&self.span, error);
                self.finish = "error";
            }
        }
    }

    fn count(&self, generation: &Generation) {
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
            (&metrics.forced_tokens, report.forced_tokens),
            (&metrics.refused_tokens, report.refused_tokens),
            (&metrics.repaired_rows, generation.repaired_rows),
            (&metrics.truncated, usize::from(truncated)),
            (&metrics.violations, distinct_parts(ViolationKind::Violated)),
            (&metrics.unchecked, distinct_parts(ViolationKind::Unchecked)),
        ] {
            counter.get_or_create(&self.labels).inc_by(count as u64);
        }
        let masks = metrics.mask_seconds.get_or_create(&self.labels);
        generation.timing.masks.iter().for_each(|mask| masks.observe(mask.as_secs_f64()));
        drop(masks);
        let timing = &generation.timing;
        metrics.work_seconds.get_or_create(&self.labels).inc_by(timing.louver.as_secs_f64());
        metrics.step_seconds.get_or_create(&self.labels).inc_by(timing.steps.as_secs_f64());
    }
}

impl Drop for GenerationMetrics {
    fn drop(&mut self) {
        let metrics = self.app.metrics();
        metrics.running_generations.dec();
        let labels = FinishLabels { model: self.labels.model.clone(), finish: self.finish };
        metrics.generations.get_or_create(&labels).inc();
        telemetry::end_generation(&self.span, self.finish);
    }
}
