//! Response bodies of completions: a finished turn as JSON.

use louver_mistralrs::{Generation, Step};
use serde_json::{Map, Value, json};

use crate::chat::{ResponseMeta, Usage, louver_member};
use crate::error::ApiError;
use crate::turn::{Progress, RunningTurn};

/// Waits for all choices and builds the response body.
pub(crate) async fn collect(
    mut running: RunningTurn,
    meta: &ResponseMeta,
) -> Result<Value, ApiError> {
    let mut usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let mut choices: Vec<(usize, Value, Option<Value>)> = Vec::new();
    while let Some(progress) = running.next().await {
        let Progress::End { choice, generation, trace, .. } = progress? else { continue };
        usage.add(&generation);
        let logprobs = meta.logprobs.map(|top| Logprobs::new(top).json(&generation.steps));
        let finish = finish_reason(&generation);
        let body = choice_json(choice, &generation.turn.text, logprobs, Some(finish));
        let louver = louver_member(&generation, trace, meta.has_report, running.compiled_in());
        choices.push((choice, body, louver));
    }
    choices.sort_by_key(|(choice, ..)| *choice);
    let mut response = body(meta, choices.iter().map(|(_, body, _)| body.clone()).collect());
    response["usage"] = usage.json();
    let mut reports: Vec<Value> = choices.into_iter().filter_map(|(_, _, louver)| louver).collect();
    match reports.len() {
        0 => {}
        1 => response["louver"] = reports.remove(0),
        _ => response["louver"] = json!({"choices": reports}),
    }
    Ok(response)
}

/// A response body, or a chunk of a stream, with these choices.
pub(crate) fn body(meta: &ResponseMeta, choices: Vec<Value>) -> Value {
    json!({
        "id": meta.id,
        "object": "text_completion",
        "created": meta.created,
        "model": meta.model,
        "system_fingerprint": meta.fingerprint,
        "choices": choices,
    })
}

pub(crate) fn choice_json(
    choice: usize,
    text: &str,
    logprobs: Option<Value>,
    finish: Option<&str>,
) -> Value {
    json!({"index": choice, "text": text, "logprobs": logprobs, "finish_reason": finish})
}

/// The `finish_reason` of a generation without calls.
pub(crate) fn finish_reason(generation: &Generation) -> &'static str {
    if generation.is_truncated() { "length" } else { "stop" }
}

/// The writer of a choice's log probabilities. Their text offsets continue from chunk to chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logprobs {
    /// Number of alternatives per token.
    top: usize,
    /// Characters of the tokens so far.
    offset: usize,
}

impl Logprobs {
    pub(crate) fn new(top: usize) -> Self {
        Logprobs { top, offset: 0 }
    }

    /// Natural logarithms for all tokens of these steps, with probabilities among the allowed
    /// tokens.
    pub(crate) fn json(&mut self, steps: &[Step]) -> Value {
        let mut offsets = Vec::with_capacity(steps.len());
        for step in steps {
            offsets.push(self.offset);
            self.offset += step.text.chars().count();
        }
        let top = |step: &Step| -> Map<String, Value> {
            let top = step.top.iter().take(self.top);
            top.map(|candidate| (candidate.text.clone(), candidate.logprob.into())).collect()
        };
        let top: Option<Vec<Map<String, Value>>> =
            (self.top > 0).then(|| steps.iter().map(top).collect());
        json!({
            "tokens": steps.iter().map(|step| &step.text).collect::<Vec<_>>(),
            "token_logprobs": steps.iter().map(|step| step.logprob).collect::<Vec<_>>(),
            "top_logprobs": top,
            "text_offset": offsets,
        })
    }
}
