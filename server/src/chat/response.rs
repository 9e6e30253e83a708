//! Response bodies of Chat Completions: finished choices as JSON.

use std::time::Instant;

use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_formats::Call;
use louver_mistralrs::{Generation, Phase, Step};
use serde_json::{Map, Value, json};

use crate::clock::unix_seconds;
use crate::error::ApiError;
use crate::generation::{
    self, FinishedChoice, GenerationRequest, Progress, RunningRequest, Usage, finish_reason,
};
use crate::request::messages::call_members;
use crate::state::App;

/// Metadata that all parts of a response repeat.
#[derive(Clone, Debug)]
pub(crate) struct ResponseMeta {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    /// The number of alternatives per token, if the response includes log probabilities.
    pub(crate) logprobs: Option<usize>,
}

impl ResponseMeta {
    /// Starts a request with an id, and describes its response.
    pub(crate) async fn start(
        app: &App,
        request: GenerationRequest,
        arrived: Instant,
    ) -> Result<(RunningRequest, ResponseMeta), ApiError> {
        let id = request.id.clone();
        let logprobs = request.sampling.logprobs;
        let running = generation::start(app, request, arrived).await?;
        let meta = ResponseMeta {
            id,
            created: unix_seconds(),
            model: running.served().name.clone(),
            fingerprint: running.served().fingerprint(),
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
    mut running: RunningRequest,
    meta: &ResponseMeta,
    object: &str,
    choice: impl Fn(usize, &Generation, &Vocabulary) -> Value,
) -> Result<Value, ApiError> {
    let mut usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let mut finished = Vec::new();
    while let Some(progress) = running.next().await {
        if let Progress::End { finished: choice, .. } = progress? {
            usage.add_choice(&choice.generation);
            finished.push(choice);
        }
    }
    finished.sort_by_key(|choice| choice.index);
    let vocab = running.served().louver.engine().vocab();
    let choices = finished.iter().map(|ended| choice(ended.index, &ended.generation, vocab));
    let mut response = meta.body(object, choices.collect());
    response["usage"] = usage.json();
    let reports = finished.iter().filter_map(FinishedChoice::louver_member);
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
