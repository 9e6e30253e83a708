//! A choice that has ended, and what every route reports of it.

use std::time::Duration;

use louver_mistralrs::Generation;
use serde_json::{Map, Value, json};

/// A choice that has ended.
#[derive(Debug)]
pub(crate) struct FinishedChoice {
    /// Index of the choice.
    pub(crate) index: usize,
    /// The complete generation.
    pub(crate) generation: Box<Generation>,
    /// The trace's id, if one was stored.
    pub(super) trace: Option<String>,
    /// Whether the response includes the enforcement report.
    pub(super) has_report: bool,
    /// Time to lower and compile the grammar.
    pub(super) compiled_in: Duration,
}

impl FinishedChoice {
    /// The response member `louver`: the enforcement report, timings, and the trace's id.
    pub(crate) fn louver_member(&self) -> Option<Value> {
        let mut out = Map::new();
        if self.has_report {
            let timing = &self.generation.timing;
            let micros = |time: Duration| (time.as_secs_f64() * 1e7).round() / 10.0;
            out.insert("report".to_owned(), json!(self.generation.report));
            let timing = json!({
                "compile_us": micros(self.compiled_in),
                "masks": timing.masks.len(),
                "mask_us_mean": micros(timing.mask_mean()),
                "mask_us_p99": micros(timing.mask_quantile(0.99)),
                "louver_us": micros(timing.louver),
                "steps_us": micros(timing.steps),
            });
            out.insert("timing".to_owned(), timing);
        }
        if let Some(trace) = &self.trace {
            out.insert("trace".to_owned(), trace.as_str().into());
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }
}

/// OpenAI's `finish_reason` of a generation.
pub(crate) fn finish_reason(generation: &Generation) -> &'static str {
    match generation.turn.calls.is_empty() {
        _ if generation.is_truncated() => "length",
        true => "stop",
        false => "tool_calls",
    }
}
