//! Response bodies of Chat Completions: finished choices as JSON.

use std::time::Instant;

use axum::response::Response;
use louver::vocab::Vocabulary;
use louver_formats::Call;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::chat::logprobs::ChatLogprobs;
use crate::clock::unix_seconds;
use crate::error::ApiError;
use crate::generation::{
    self, FinishedChoice, GenerationRequest, Progress, RunningRequest, Usage, finish_reason,
};
use crate::http::body::run_blocking;
use crate::http::{json_text, json_text_response};
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
    pub(crate) fn body<'a>(
        &'a self,
        object: &'static str,
        choices: Vec<ChoiceBody<'a>>,
    ) -> CompletionBody<'a> {
        CompletionBody {
            id: &self.id,
            object,
            created: self.created,
            model: &self.model,
            system_fingerprint: &self.fingerprint,
            choices,
            usage: None,
            louver: None,
        }
    }
}

/// A response body, or a chunk of a stream.
#[derive(Debug, Serialize)]
pub(crate) struct CompletionBody<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'a str,
    choices: Vec<ChoiceBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) louver: Option<Value>,
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

/// A choice of a response body, or of a chunk.
#[derive(Debug, Serialize)]
pub(crate) struct ChoiceBody<'a> {
    index: usize,
    /// Its output: the member `message`, `delta` or `text`.
    #[serde(flatten)]
    output: Map<String, Value>,
    logprobs: Option<ChoiceLogprobs<'a>>,
    finish_reason: Option<&'static str>,
}

/// Log probabilities in the format of a route.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ChoiceLogprobs<'a> {
    Chat(ChatLogprobs<'a>),
    Completion(Value),
}

impl<'a> ChoiceBody<'a> {
    /// A choice whose output is the member `name`.
    pub(crate) fn new(
        index: usize,
        name: &str,
        output: Value,
        logprobs: Option<ChoiceLogprobs<'a>>,
        finish_reason: Option<&'static str>,
    ) -> ChoiceBody<'a> {
        let output = Map::from_iter([(name.to_owned(), output)]);
        ChoiceBody { index, output, logprobs, finish_reason }
    }
}

/// Makes a choice of a response body.
pub(crate) type WriteChoice =
    for<'a> fn(&ResponseMeta, &'a FinishedChoice, &'a Vocabulary) -> ChoiceBody<'a>;

/// Waits for all choices and responds. The body is written on a blocking thread, as it has
/// megabytes with log probabilities.
pub(crate) async fn respond(
    mut running: RunningRequest,
    meta: ResponseMeta,
    object: &'static str,
    write_choice: WriteChoice,
) -> Result<Response, ApiError> {
    let mut usage = Usage { prompt: running.prompt_tokens, ..Usage::default() };
    let mut finished = Vec::new();
    while let Some(progress) = running.next().await {
        if let Progress::End { finished: choice, .. } = progress? {
            usage.add_choice(&choice.generation);
            finished.push(choice);
        }
    }
    finished.sort_by_key(|choice| choice.index);
    let served = running.served().clone();
    let body = run_blocking(move || {
        let vocab = served.louver.engine().vocab();
        let choices = finished.iter().map(|choice| write_choice(&meta, choice, vocab));
        let mut response = meta.body(object, choices.collect());
        response.usage = Some(usage.json());
        let reports = finished.iter().filter_map(FinishedChoice::louver_member);
        let mut reports: Vec<Value> = reports.collect();
        response.louver = match reports.len() {
            0 | 1 => reports.pop(),
            _ => Some(json!({"choices": reports})),
        };
        Ok(json_text(&response))
    });
    Ok(json_text_response(body.await?))
}

/// A choice of a chat completion.
pub(super) fn chat_choice<'a>(
    meta: &ResponseMeta,
    choice: &'a FinishedChoice,
    vocab: &'a Vocabulary,
) -> ChoiceBody<'a> {
    let generation = &choice.generation;
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
    let logprobs = meta.logprobs.map(|top| ChatLogprobs::new(&generation.steps, top, vocab));
    let logprobs = logprobs.map(ChoiceLogprobs::Chat);
    let finish = Some(finish_reason(generation));
    ChoiceBody::new(choice.index, "message", message.into(), logprobs, finish)
}

fn call_json(call: &Call) -> Value {
    let (kind, content) = call_members(call.kind);
    json!({"id": call.id, "type": kind, kind: {"name": call.name, content: call.arguments}})
}
