//! What a turn came to -> the answer's JSON.

use std::time::Duration;

use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_formats::{Call, CallKind};
use louver_mistralrs::{Finish, Generation, Phase, Step};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::turn::{Progress, Running};

/// What all parts of an answer share.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    /// Whether the enforcement report is part of it.
    pub(crate) report: bool,
    /// Probabilities are part of it, those of so many other tokens too.
    pub(crate) logprobs: Option<usize>,
}

/// Tokens of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) generated: usize,
    pub(crate) reasoning: usize,
}

impl Usage {
    /// Adds a choice's.
    pub(crate) fn add(&mut self, generation: &Generation) {
        self.generated += generation.tokens.len();
        self.reasoning += generation.reasoning_tokens;
    }

    /// As Chat Completions has it.
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

/// A choice that is over.
struct Ended {
    choice: usize,
    generation: Box<Generation>,
    trace: Option<String>,
}

/// Waits for all choices.
pub(crate) async fn collect(mut running: Running, frame: &Frame) -> Result<Value, ApiError> {
    let mut usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let mut ended: Vec<Ended> = Vec::new();
    while let Some(progress) = running.next().await {
        if let Progress::End { choice, generation, trace, .. } = progress? {
            usage.add(&generation);
            ended.push(Ended { choice, generation, trace });
        }
    }
    ended.sort_by_key(|ended| ended.choice);
    let vocab = running.served.louver.engine().vocab();
    let choices: Vec<Value> = ended.iter().map(|ended| whole(ended, frame, vocab)).collect();
    let mut answer = json!({
        "id": frame.id,
        "object": "chat.completion",
        "created": frame.created,
        "model": frame.model,
        "system_fingerprint": frame.fingerprint,
        "choices": choices,
        "usage": usage.json(),
    });
    let reports: Vec<Value> = ended
        .into_iter()
        .filter_map(|Ended { generation, trace, .. }| {
            report(&generation, trace, frame.report, running.compiled_in)
        })
        .collect();
    match reports.len() {
        0 => {}
        1 => answer["louver"] = reports.into_iter().collect::<Vec<_>>().swap_remove(0),
        _ => answer["louver"] = json!({"choices": reports}),
    }
    Ok(answer)
}

fn whole(Ended { choice, generation, .. }: &Ended, frame: &Frame, vocab: &Vocabulary) -> Value {
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
    json!({
        "index": choice,
        "message": message,
        "logprobs": frame.logprobs.map_or(Value::Null, |top| logprobs(&generation.steps, top, vocab)),
        "finish_reason": finish_reason(generation),
    })
}

fn call_json(call: &Call) -> Value {
    match call.kind {
        CallKind::Function => {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        }
        CallKind::Custom => {
            json!({"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}})
        }
    }
}

/// OpenAI's word for how a generation ended.
pub(crate) fn finish_reason(generation: &Generation) -> &'static str {
    match generation.finish {
        Finish::Length => "length",
        Finish::Stop | Finish::Cancelled if generation.turn.calls.is_empty() => "stop",
        Finish::Stop | Finish::Cancelled => "tool_calls",
    }
}

/// Probabilities of the tokens of the answer's text, as Chat Completions has them. Reasoning, calls and markers have none.
/// Traces know more alternatives than `top`.
pub(crate) fn logprobs(steps: &[Step], top: usize, vocab: &Vocabulary) -> Value {
    let of_text = |step: &&Step| matches!(step.phase, Phase::Text | Phase::Response | Phase::Free);
    let bytes = |token: u32| vocab.bytes(TokenId::from_raw(token)).map(<[u8]>::to_vec);
    let entry = |token: u32, text: &str, logprob: f32| json!({"token": text, "logprob": logprob, "bytes": bytes(token)});
    let full = |step: &Step| {
        let mut found = entry(step.token, &step.text, step.logprob);
        found["top_logprobs"] =
            step.top.iter().take(top).map(|c| entry(c.token, &c.text, c.logprob)).collect();
        found
    };
    json!({"content": steps.iter().filter(of_text).map(full).collect::<Vec<_>>(), "refusal": null})
}

/// The member `louver` of an answer: what was enforced, what it cost, and where its trace is.
pub(crate) fn report(
    generation: &Generation,
    trace: Option<String>,
    wanted: bool,
    compiled_in: Duration,
) -> Option<Value> {
    let mut out = Map::new();
    if wanted {
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
