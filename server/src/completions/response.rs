//! Response bodies of completions: a finished turn as JSON.

use louver_mistralrs::{Generation, Step};
use serde_json::{Map, Value, json};

use crate::chat::ResponseMeta;

/// The member `object` of response bodies and of chunks.
pub(super) const OBJECT: &str = "text_completion";

/// A finished choice.
pub(super) fn choice(meta: &ResponseMeta, choice: usize, generation: &Generation) -> Value {
    let logprobs = meta.logprobs.map(|top| Logprobs::new(top).json(&generation.steps));
    choice_json(choice, &generation.turn.text, logprobs, Some(finish_reason(generation)))
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
