//! One running choice of a request: its events, its end, and its cancellation when it is dropped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use louver::engine::Prepared;
use louver_formats::Event;
use louver_mistralrs::{EventStream, Finish, GenerationError, Step};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::ApiError;
use crate::generation::finished::FinishedChoice;
use crate::generation::record::{
    ChoiceTrace, EndedChoice, GenerationMetrics, TraceSource, traced_prefix,
};
use crate::generation::rounds::ToolResult;
use crate::generation::usage::Usage;
use crate::http::spawn_detached;
use crate::request::pointers::PointerMap;
use crate::served_model::ServedModel;
use crate::state::App;
use crate::telemetry::{self, RequestAttributes};

/// Timing and options of reading a request's generations.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadOptions {
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
    /// Whether steps are delivered with events rather than at the end.
    pub(super) live_steps: bool,
    /// Whether the response includes the enforcement report.
    pub(super) has_report: bool,
    pub(super) attributes: RequestAttributes,
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
        /// Steps of the tokens since the last event, if they are delivered with events.
        steps: Vec<Step>,
    },
    /// The server ran the calls of a round. Another round may follow.
    ToolResults {
        /// The results, in the order of the calls.
        results: Vec<ToolResult>,
        /// The token counts of the round, if its end is not reported.
        usage: Usage,
        /// The round's response member `louver`, if its end is not reported.
        louver: Option<Value>,
    },
    /// A choice ended.
    End {
        /// The choice.
        finished: FinishedChoice,
        /// Steps since the last event, if they are delivered with events.
        steps: Vec<Step>,
    },
}

/// Admission slots, held until the host has ended every generation of a request.
pub(super) type Permits = Arc<[OwnedSemaphorePermit]>;

/// State shared by all choices of a request.
#[derive(Clone)]
pub(super) struct RequestContext {
    pub(super) app: App,
    pub(super) served: Arc<ServedModel>,
    pub(super) trace_source: Option<TraceSource>,
    pub(super) options: ReadOptions,
    pub(super) permits: Permits,
    /// The preparation of masks, if there is one.
    pub(super) prepared: Option<Prepared>,
    /// Maps JSON pointers of the rewritten body to the request as sent.
    pub(super) pointers: Arc<PointerMap>,
}

/// One choice, while it is read. Dropping it cancels its generation.
pub(super) struct Choice {
    /// `None` after its end.
    running: Option<RunningChoice>,
    /// Steps of tokens after the last event. The generation goes on while events are read.
    later_steps: VecDeque<Step>,
}

/// The generation of a choice, and its records.
struct RunningChoice {
    index: usize,
    context: RequestContext,
    stream: EventStream,
    /// Steps that belong to the trace and were already delivered with events.
    traced_steps: Vec<Step>,
    trace: Option<ChoiceTrace>,
    metrics: GenerationMetrics,
}

/// Removes and returns the leading steps of the first `position` generated tokens.
fn take_until(steps: &mut VecDeque<Step>, position: usize) -> Vec<Step> {
    let end = steps.partition_point(|step| step.position < position);
    steps.drain(..end).collect()
}

impl Choice {
    /// Begins to read a choice.
    pub(super) fn begin(context: RequestContext, index: usize, stream: EventStream) -> Choice {
        let RequestContext { app, served, trace_source, options, .. } = &context;
        let prompt_tokens = stream.prompt_tokens();
        let span = telemetry::generation(served, index, prompt_tokens, &options.attributes);
        let metrics = GenerationMetrics::new(app.clone(), served, span);
        let bytes = app.config().limits.traces.trace_bytes;
        let trace = trace_source.as_ref().map(|source| source.begin(index, served, bytes));
        let traced_steps = Vec::new();
        let running = RunningChoice { index, context, stream, traced_steps, trace, metrics };
        Choice { running: Some(running), later_steps: VecDeque::new() }
    }

    /// The next event, and the choice if more may follow; the last one is the end.
    pub(super) async fn advance(mut self) -> (Option<Box<Choice>>, Result<Progress, ApiError>) {
        let Some(running) = &mut self.running else {
            return (None, Err(GenerationError::HostGone.into()));
        };
        let event = running.stream.next().await;
        if running.context.options.live_steps {
            self.later_steps.extend(running.stream.take_steps());
        }
        let until = if event.is_some() { running.stream.position() } else { usize::MAX };
        let steps = take_until(&mut self.later_steps, until);
        if running.trace.is_some() && !running.traced_steps.last().is_some_and(|step| step.cut) {
            running.traced_steps.extend_from_slice(traced_prefix(&steps));
        }
        let Some(event) = event else {
            return (None, self.end(steps).await);
        };
        running.record(&event);
        let choice = running.index;
        (Some(Box::new(self)), Ok(Progress::Event { choice, event, steps }))
    }

    /// Finishes the choice. `steps` are those taken since the last event.
    async fn end(mut self, mut steps: Vec<Step>) -> Result<Progress, ApiError> {
        let Some(mut running) = self.running.take() else {
            return Err(GenerationError::HostGone.into());
        };
        let last = running.stream.take_steps();
        let (index, options) = (running.index, running.context.options);
        if options.live_steps {
            steps.extend_from_slice(&last);
        }
        running.traced_steps.extend(last);
        // Validators may run for a second, in which the request may be dropped.
        let (trace, ended) = spawn_detached(running.end()).await?;
        let mut generation = Box::new(ended.result?);
        if generation.finish == Finish::Cancelled {
            // Not by this server: the choice was read to its end.
            let message = "it cancelled the generation".to_owned();
            return Err(GenerationError::Host(message).into());
        }
        generation.steps = ended.steps;
        let ReadOptions { has_report, attributes, .. } = options;
        let compiled_in = attributes.compiled_in;
        let finished = FinishedChoice { index, generation, trace, has_report, compiled_in };
        Ok(Progress::End { finished, steps })
    }
}

impl RunningChoice {
    fn record(&mut self, event: &Event) {
        self.metrics.event(event);
        if let Some(trace) = &mut self.trace {
            trace.recorder.event(self.stream.position(), event);
        }
    }

    /// Waits until the host has ended the generation. Then counts it, releases its slot and stores
    /// its trace, whose id it returns. Error: a panic.
    async fn end(mut self) -> Result<(Option<String>, EndedChoice), ApiError> {
        // Of a choice that is not read to its end.
        while let Some(event) = self.stream.next().await {
            self.record(&event);
        }
        let RunningChoice { index, context, stream, traced_steps: mut steps, .. } = self;
        steps.extend(stream.take_steps());
        let prompt_tokens = stream.prompt_tokens();
        let mut result = stream.finish().await;
        for report in result.iter_mut().map(|generation| &mut generation.report) {
            let relaxed = report.relaxed.iter_mut().map(|relaxed| &mut relaxed.pointer);
            let warnings = report.warnings.iter_mut().map(|warning| &mut warning.pointer);
            for pointer in relaxed.chain(warnings) {
                *pointer = context.pointers.original(pointer);
            }
            report.warnings.extend_from_slice(context.pointers.warnings());
        }
        let RequestContext { app, prepared, permits, .. } = context;
        // One preparation for all choices: the first reports it.
        self.metrics.end(&result, prepared.as_ref().filter(|_| index == 0));
        drop(permits);
        let ended = EndedChoice { prompt_tokens, steps, result };
        match self.trace {
            Some(trace) => trace.store(app, ended).await,
            None => Ok((None, ended)),
        }
    }
}

impl Drop for Choice {
    /// Cancels a choice that was not read to its end. When the host has ended the generation, it is
    /// counted, its slot is released, and the partial trace is stored.
    fn drop(&mut self) {
        let (Some(mut running), Ok(runtime)) =
            (self.running.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        running.stream.cancel();
        if running.trace.is_some() {
            running.traced_steps.extend(std::mem::take(&mut self.later_steps));
        }
        runtime.spawn(async move { drop(running.end().await) });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Text of later tokens may be ready before the events of earlier ones are read.
    #[test]
    fn steps_go_with_the_event_of_their_token() {
        let step = |position: usize| -> Step {
            let step = json!({"position": position, "token": 1, "text": "a", "phase": "text",
                "allowed": 1, "logprob": 0.0, "removed_mass": 0.0, "forced": false, "top": [],
                "refused": []});
            serde_json::from_value(step).unwrap()
        };
        let mut steps: VecDeque<Step> = (0..5).map(step).collect();
        let mut taken = |until| -> Vec<usize> {
            take_until(&mut steps, until).iter().map(|step| step.position).collect()
        };
        assert_eq!(taken(2), [0, 1]);
        assert_eq!(taken(2), [0; 0]);
        assert_eq!(taken(4), [2, 3]);
        assert_eq!(taken(usize::MAX), [4]);
    }
}
