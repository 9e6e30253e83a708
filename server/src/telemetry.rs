//! Spans of requests, for export to OpenTelemetry, and events about generations, for the log. Names
//! and attributes of spans are those of its semantic conventions for HTTP servers and generative
//! AI; `louver.*` are our own.
//!
//! ```text
//! POST /v1/chat/completions     a request, until its body ends
//!   plan                        lowering and compiling, rendering and tokenizing the prompt
//!   chat MODEL                  one choice, from its start to its end
//! ```
//!
//! No span or event has text of a prompt or an answer, and none is made per token. A span costs
//! nothing unless a subscriber asks for its target, [`TARGET`].

use std::time::Duration;

use axum::http::{HeaderMap, Method};
use louver::engine::{PrepareBudget, PrepareReport, Prepared};
use louver_mistralrs::{Completion, Generation, GenerationError};
use tracing::field::Empty;
use tracing::{Span, trace_span};

use crate::http::routes::Route;
use crate::served_model::ServedModel;

/// Target of all spans for export. Their level is TRACE, so that logs do not repeat them.
pub const TARGET: &str = "louver_telemetry";

/// The host, as the conventions call it.
const PROVIDER: &str = "mistral_rs";

/// The name of methods that are not of the standard.
const OTHER_METHOD: &str = "_OTHER";

/// The span of a request. It continues the client's trace, if the headers name one and the feature
/// `otel` is on.
pub(crate) fn request(
    method: &Method,
    route: &'static Route,
    id: &str,
    client: Option<&str>,
    headers: &HeaderMap,
) -> Span {
    if route.is_polled {
        return Span::none();
    }
    let method = method_name(method);
    let name = if method == OTHER_METHOD { "HTTP" } else { method };
    let span = trace_span!(
        target: TARGET,
        "request",
        otel.name = %format_args!("{name} {}", route.path),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route.path,
        http.response.status_code = Empty,
        client.address = client,
        error.type = Empty,
        louver.request.id = id,
    );
    continue_trace(&span, headers);
    span
}

/// A method's name, as the conventions call it: those that are not of the standard, which may be
/// long, are `_OTHER`.
pub(crate) fn method_name(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::CONNECT,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
    ];
    if known.contains(method) { method.as_str() } else { OTHER_METHOD }
}

/// Ends the span of a request with the response's status.
pub(crate) fn end_request(span: &Span, status: u16) {
    span.record("http.response.status_code", i64::from(status));
    if status >= 400 {
        span.record("error.type", status);
    }
    // By the conventions, faults of the client are not errors of a server.
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of planning a request with this many tools.
pub(crate) fn plan(served: &ServedModel, tools: usize) -> Span {
    trace_span!(
        target: TARGET,
        "plan",
        gen_ai.request.model = served.name,
        louver.format = served.louver.format().ok(),
        louver.tools = int(tools),
        gen_ai.usage.input_tokens = Empty,
        louver.compile_seconds = Empty,
    )
}

/// Attributes of a request that the spans of its choices have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestAttributes {
    /// Time to lower and compile the grammar.
    pub(crate) compiled_in: Duration,
    pub(crate) max_tokens: usize,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    /// Number of tools.
    pub(crate) tools: usize,
}

/// The span of one choice.
pub(crate) fn generation(
    served: &ServedModel,
    choice: usize,
    prompt_tokens: usize,
    request: &RequestAttributes,
) -> Span {
    let model = &*served.name;
    trace_span!(
        target: TARGET,
        "generation",
        otel.name = %format_args!("chat {model}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = PROVIDER,
        gen_ai.request.model = model,
        gen_ai.request.max_tokens = int(request.max_tokens),
        gen_ai.request.temperature = request.temperature,
        gen_ai.request.top_p = request.top_p,
        gen_ai.response.model = model,
        gen_ai.usage.input_tokens = int(prompt_tokens),
        gen_ai.usage.output_tokens = Empty,
        louver.format = served.louver.format().ok(),
        louver.tools = int(request.tools),
        louver.choice = int(choice),
        louver.compile_seconds = request.compiled_in.as_secs_f64(),
        louver.finish = Empty,
        louver.completion = Empty,
        louver.prepared_masks = Empty,
        louver.tool_calls = Empty,
        louver.forced_tokens = Empty,
        louver.refused_tokens = Empty,
        louver.repaired_rows = Empty,
        louver.masks = Empty,
        louver.mask_seconds = Empty,
        louver.work_seconds = Empty,
        louver.step_seconds = Empty,
    )
}

/// Logs that masks are prepared while the prompt is processed.
pub(crate) fn preparation(budget: &PrepareBudget) {
    let PrepareBudget { masks, steps, candidates, .. } = budget;
    tracing::debug!(masks, steps, candidates, "masks are prepared");
}

/// Records the results of a complete generation. What is not as usual is logged where it happens.
pub(crate) fn record_generation(span: &Span, generation: &Generation, prepared: Option<&Prepared>) {
    // Work that goes on is not waited for.
    let prepared = prepared.filter(|prepared| prepared.is_done()).map(Prepared::wait);
    if let Some(report) = prepared {
        let PrepareReport { candidates, built, cached, .. } = report;
        span.in_scope(|| tracing::debug!(candidates, built, cached, "masks were prepared"));
        span.record("louver.prepared_masks", int(report.built));
    }
    if span.is_disabled() {
        return;
    }
    let (report, timing) = (&generation.report, &generation.timing);
    let completion = match report.completion {
        Completion::Complete => "complete",
        Completion::Limited => "limited",
        Completion::Stopped => "stopped",
        Completion::Truncated => "truncated",
        Completion::Cancelled => "cancelled",
        _ => "other",
    };
    span.record("louver.completion", completion);
    for (name, count) in [
        ("gen_ai.usage.output_tokens", generation.tokens.len()),
        ("louver.tool_calls", generation.turn.calls.len()),
        ("louver.forced_tokens", report.forced_tokens),
        ("louver.refused_tokens", report.refused_tokens),
        ("louver.repaired_rows", generation.repaired_rows),
        ("louver.masks", timing.masks.len()),
    ] {
        span.record(name, int(count));
    }
    span.record("louver.mask_seconds", timing.masks.iter().sum::<Duration>().as_secs_f64());
    span.record("louver.work_seconds", timing.louver.as_secs_f64());
    span.record("louver.step_seconds", timing.steps.as_secs_f64());
}

/// Logs why a generation failed: a limit was reached, or the host is at fault.
pub(crate) fn failed_generation(span: &Span, error: &GenerationError) {
    span.in_scope(|| tracing::warn!("the generation failed: {error}"));
}

/// Records why the host ended a generation: `stop`, `length`, `cancelled` or `error`.
pub(crate) fn end_generation(span: &Span, finish: &'static str) {
    if finish == "error" {
        span.record("otel.status_code", "ERROR");
    }
    span.record("louver.finish", finish);
}

/// Integers are 64 bits and signed in OpenTelemetry.
fn int(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Records the `finish_reason` of the response.
#[cfg(feature = "otel")]
pub(crate) fn set_finish_reason(span: &Span, reason: &'static str) {
    use opentelemetry::{Array, StringValue, Value};
    use tracing_opentelemetry::OpenTelemetrySpanExt;
    // A list by the conventions, which fields of spans cannot be.
    let reasons = Value::Array(Array::String(vec![StringValue::from(reason)]));
    span.set_attribute("gen_ai.response.finish_reasons", reasons);
}

#[cfg(not(feature = "otel"))]
pub(crate) fn set_finish_reason(_: &Span, _: &'static str) {}

#[cfg(feature = "otel")]
fn continue_trace(span: &Span, headers: &HeaderMap) {
    use opentelemetry::trace::TraceContextExt;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    struct Headers<'a>(&'a HeaderMap);
    impl opentelemetry::propagation::Extractor for Headers<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.get(key).and_then(|value| value.to_str().ok())
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(|name| name.as_str()).collect()
        }
    }

    if span.is_disabled() {
        return;
    }
    let parent = opentelemetry::global::get_text_map_propagator(|propagator| {
        propagator.extract(&Headers(headers))
    });
    if parent.span().span_context().is_valid() {
        // It fails only if no layer exports the span.
        let _ = span.set_parent(parent);
    }
}

#[cfg(not(feature = "otel"))]
fn continue_trace(_: &Span, _: &HeaderMap) {}
