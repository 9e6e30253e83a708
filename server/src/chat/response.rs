//! Response bodies of Chat Completions: a finished turn as JSON.

use std::time::{Duration, Instant};

use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_formats::Call;
use louver_mistralrs::{Generation, Phase, Step};
use serde_json::{Map, Value, json};

use crate::clock::unix_seconds;
use crate::error::ApiError;
use crate::request::messages::call_members;
use crate::state::App;
use crate::turn::{self, Progress, RunningTurn, TurnRequest, Usage};

/// Metadata that all parts of a response repeat.
#[derive(Clone, Debug)]
pub(crate) struct ResponseMeta {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    /// Whether the response includes the enforcement report.
    pub(crate) has_report: bool,
    /// The number of alternatives per token, if the response includes log probabilities.
    pub(crate) logprobs: Option<usize>,
}

impl ResponseMeta {
    /// Starts a request with an id, and describes its response.
    pub(crate) async fn start(
        app: &App,
        request: TurnRequest,
        arrived: Instant,
    ) -> Result<(RunningTurn, ResponseMeta), ApiError> {
        let id = request.id.clone();
        let (has_report, logprobs) = (request.extension.report, request.sampling.logprobs);
        let running = turn::start(app, request, arrived).await?;
        let meta = ResponseMeta {
            id,
            created: unix_seconds(),
            model: running.served().name.clone(),
            fingerprint: running.served().fingerprint(),
            has_report,
            logprobs,
        };
        Ok((running, meta))
    }

    /// A response body, or a chunk of a stream, with these choices.
    pub(crate) fn body(&self, object: &str, choices: Vec<Value>) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        })
    }
}

impl Usage {
    /// The `usage` object of Chat Completions.
    pub(crate) fn json(&self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.generated,
            "total_tokens": self.prompt + self.generated,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": self.reasoning,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        })
    }
}

/// Waits for all choices and builds the response body. `choice` makes the JSON of one.
pub(crate) async fn collect(
    mut running: RunningTurn,
    meta: &ResponseMeta,
    object: &str,
    choice: impl Fn(usize, &Generation, &Vocabulary) -> Value,
) -> Result<Value, ApiError> {
    let mut usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let mut finished = Vec::new();
    while let Some(progress) = running.next().await {
        if let Progress::End { choice, generation, trace, .. } = progress? {
            usage.add_choice(&generation);
            finished.push((choice, generation, trace));
        }
    }
    finished.sort_by_key(|(choice, ..)| *choice);
    let vocab = running.served().louver.engine().vocab();
    let choices = finished.iter().map(|(index, generation, _)| choice(*index, generation, vocab));
    let mut response = meta.body(object, choices.collect());
    response["usage"] = usage.json();
    let reports = finished.into_iter().filter_map(|(_, generation, trace)| {
        louver_member(&generation, trace, meta.has_report, running.compiled_in())
    });
    let mut reports: Vec<Value> = reports.collect();
    match reports.len() {
        0 => {}
        1 => response["louver"] = reports.swap_remove(0),
        _ => response["louver"] = json!({"choices": reports}),
    }
    Ok(response)
}

/// A choice of a chat completion.
pub(super) fn choice_json(
    meta: &ResponseMeta,
    choice: usize,
    generation: &Generation,
    vocab: &Vocabulary,
) -> Value {
    let turn = &generation.turn;
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let content = if turn.text.is_empty() && !turn.calls.is_empty() {
        Value::Null
    } else {
        turn.text.as_str().into()
    };
    message.insert("content".to_owned(), content);
    message.insert("refusal".to_owned(), Value::Null);
    if !turn.reasoning.is_empty() {
        message.insert("reasoning_content".to_owned(), turn.reasoning.as_str().into());
    }
    if !turn.calls.is_empty() {
        message.insert("tool_calls".to_owned(), turn.calls.iter().map(call_json).collect());
    }
    let logprobs = meta.logprobs.map_or(Value::Null, |top| logprobs(&generation.steps, top, vocab));
    json!({
        "index": choice,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": finish_reason(generation),
    })
}

fn call_json(call: &Call) -> Value {
    let (kind, content) = call_members(call.kind);
    json!({"id": call.id, "type": kind, kind: {"name": call.name, content: call.arguments}})
}

/// OpenAI's `finish_reason` of a generation.
pub(crate) fn finish_reason(generation: &Generation) -> &'static str {
    match generation.turn.calls.is_empty() {
        _ if generation.is_truncated() => "length",
        true => "stop",
        false => "tool_calls",
    }
}

/// Log probabilities of the tokens of the response text, in the format of Chat Completions. Tokens
/// of reasoning, calls and markers are left out. Traced steps may have more alternatives than
/// `top`.
pub(crate) fn logprobs(steps: &[Step], top: usize, vocab: &Vocabulary) -> Value {
    let is_text = |step: &&Step| matches!(step.phase, Phase::Text | Phase::Response | Phase::Free);
    let bytes = |token: u32| vocab.bytes(TokenId::from_raw(token)).map(<[u8]>::to_vec);
    let entry = |token: u32, text: &str, logprob: f32| json!({"token": text, "logprob": logprob, "bytes": bytes(token)});
    let token_json = |step: &Step| {
        let mut token_json = entry(step.token, &step.text, step.logprob);
        token_json["top_logprobs"] =
            step.top.iter().take(top).map(|c| entry(c.token, &c.text, c.logprob)).collect();
        token_json
    };
    json!({"content": steps.iter().filter(is_text).map(token_json).collect::<Vec<_>>(), "refusal": null})
}

/// The response member `louver`: the enforcement report, timings, and the trace's id.
pub(crate) fn louver_member(
    generation: &Generation,
    trace: Option<String>,
    has_report: bool,
    compiled_in: Duration,
) -> Option<Value> {
    let mut out = Map::new();
    if has_report {
        let timing = &generation.timing;
        let micros = |time: Duration| (time.as_secs_f64() * 1e7).round() / 10.0;
        out.insert("report".to_owned(), json!(generation.report));
        let timing = json!({
            "compile_us": micros(compiled_in),
            "masks": timing.masks.len(),
            "mask_us_mean": micros(timing.mask_mean()),
            "mask_us_p99": micros(timing.mask_quantile(0.99)),
            "louver_us": micros(timing.louver),
            "steps_us": micros(timing.steps),
        });
        out.insert("timing".to_owned(), timing);
    }
    if let Some(trace) = trace {
        out.insert("trace".to_owned(), trace.into());
    }
    (!out.is_empty()).then_some(Value::Object(out))
}
