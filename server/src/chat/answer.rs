//! What a turn came to -> the answer's JSON.

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
    pub(crate) logprobs: bool,
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

/// Waits for all choices.
pub(crate) async fn collect(mut running: Running, frame: &Frame) -> Result<Value, ApiError> {
    let mut usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let mut ended: Vec<(usize, Box<Generation>)> = Vec::new();
    while let Some(progress) = running.next().await {
        if let Progress::End { choice, generation, .. } = progress? {
            usage.add(&generation);
            ended.push((choice, generation));
        }
    }
    ended.sort_by_key(|(choice, _)| *choice);
    let choices: Vec<Value> = ended.iter().map(|(choice, generation)| whole(*choice, generation, frame)).collect();
    let mut answer = json!({
        "id": frame.id,
        "object": "chat.completion",
        "created": frame.created,
        "model": frame.model,
        "system_fingerprint": frame.fingerprint,
        "choices": choices,
        "usage": usage.json(),
    });
    if frame.report {
        let generations: Vec<&Generation> = ended.iter().map(|(_, generation)| &**generation).collect();
        answer["louver"] = report(&generations, running.compiled_in);
    }
    Ok(answer)
}

fn whole(choice: usize, generation: &Generation, frame: &Frame) -> Value {
    let turn = &generation.turn;
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let content = if turn.text.is_empty() && !turn.calls.is_empty() { Value::Null } else { turn.text.as_str().into() };
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
        "logprobs": if frame.logprobs { logprobs(&generation.steps) } else { Value::Null },
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
pub(crate) fn logprobs(steps: &[Step]) -> Value {
    let of_text = |step: &&Step| matches!(step.phase, Phase::Text | Phase::Response | Phase::Free);
    let content: Vec<Value> = steps.iter().filter(of_text).map(logprob).collect();
    json!({"content": content, "refusal": null})
}

fn logprob(step: &Step) -> Value {
    let top: Vec<Value> =
        step.top.iter().map(|c| json!({"token": c.text, "logprob": c.logprob, "bytes": c.text.as_bytes()})).collect();
    json!({"token": step.text, "logprob": step.logprob, "bytes": step.bytes, "top_logprobs": top})
}

/// The member `louver` of an answer: what was enforced, and what it cost.
pub(crate) fn report(generations: &[&Generation], compiled_in: std::time::Duration) -> Value {
    let micros = |time: std::time::Duration| (time.as_secs_f64() * 1e7).round() / 10.0;
    let one = |generation: &Generation| {
        let timing = &generation.timing;
        json!({
            "report": generation.report,
            "timing": {
                "compile_us": micros(compiled_in),
                "mask_mean_us": micros(timing.mask_mean()),
                "mask_p99_us": micros(timing.mask_quantile(0.99)),
                "louver_us": micros(timing.louver),
                "steps_us": micros(timing.steps),
            },
        })
    };
    match generations {
        [generation] => one(generation),
        several => json!({"choices": several.iter().map(|generation| one(generation)).collect::<Vec<_>>()}),
    }
}
