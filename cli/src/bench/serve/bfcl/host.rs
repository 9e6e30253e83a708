//! A call with mistral.rs's own constraint: JSON that names a tool and has its arguments.
//!
//! mistral.rs 0.8.1 applies a constraint to the whole answer, so the answer is one call without the
//! markers of the wire format. The prompt is that of the other modes. Where calls of the wire
//! format are such JSON, it ends with their begin marker, so that the model is where it would write
//! one. mistral.rs ends a constrained answer at an id that is not of the tokenizer, and draws once
//! without the constraint: models whose logits are wider than the vocabulary are kept from such
//! ids.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use louver_mistralrs::{Call, TemplateInput, Timing};
use mistralrs::{
    Constraint, NormalRequest, Request, RequestMessage, Response, SamplingParams, StopTokens,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::cases::Case;
use crate::bench::serve::banned_ids::without_ids;
use crate::tool_turn::{ToolModel, ToolTurn};

/// The begin of a call in the wire formats whose calls are a JSON object between tags. Prompts of
/// other formats end where the answer begins.
fn call_begin(format: &str) -> &'static str {
    if matches!(format, "hermes" | "qwen2_5" | "qwen3") { "<tool_call>\n" } else { "" }
}

/// Generates one call.
pub(super) async fn turn(model: &ToolModel, case: &Case, max_tokens: usize) -> Result<ToolTurn> {
    let tools = case.tools.as_array().map(Vec::as_slice).unwrap_or_default();
    let messages = [json!({"role": "user", "content": case.question})];
    let input = TemplateInput::default().with_tools(tools.to_vec());
    let template = model.louver.template().map_err(Clone::clone)?;
    let prompt =
        template.render(&messages, &input)? + call_begin(model.louver.format().unwrap_or_default());
    let vocab = model.louver.engine().vocab();
    let stops = vocab.stops().iter().map(|id| id.raw()).collect();
    let sampling = SamplingParams {
        temperature: Some(0.0),
        max_len: Some(max_tokens),
        stop_toks: Some(StopTokens::Ids(stops)),
        ..SamplingParams::neutral()
    };
    let host = model.model.inner();
    let (sender, mut receiver) = mpsc::channel(1);
    let message = RequestMessage::Completion { text: prompt, echo_prompt: false, best_of: None };
    let width = vocab.width();
    let request = NormalRequest {
        constraint: Constraint::JsonSchema(schema(tools)),
        logits_processors: Some(vec![without_ids(move |id| id >= width)]),
        ..NormalRequest::new_simple(message, sampling, sender, host.next_request_id(), None, None)
    };
    let channel = host.get_sender(None).map_err(|error| anyhow::anyhow!("{error}"))?;
    channel.send(Request::Normal(Box::new(request))).await.context("mistral.rs is gone")?;
    match receiver.recv().await.context("mistral.rs is gone")? {
        Response::CompletionDone(done) => {
            let choice = done.choices.into_iter().next().context("no answer")?;
            let usage = done.usage;
            Ok(ToolTurn {
                calls: read(&choice.text).into_iter().collect(),
                is_truncated: choice.finish_reason == "length",
                tokens: usage.completion_tokens,
                timing: Timing::default()
                    .with_steps(Duration::from_secs_f32(usage.total_completion_time_sec.max(0.0))),
                text: choice.text,
            })
        }
        Response::InternalError(error) | Response::ValidationError(error) => {
            // A schema that llguidance refuses is an answer without a call.
            Ok(ToolTurn { text: error.to_string(), ..ToolTurn::default() })
        }
        Response::CompletionModelError(error, _) => {
            Ok(ToolTurn { text: error, ..ToolTurn::default() })
        }
        _ => bail!("mistral.rs gave an unexpected answer"),
    }
}

/// The schema of a call of one of the tools.
fn schema(tools: &[Value]) -> Value {
    let calls = tools.iter().map(|tool| {
        let function = &tool["function"];
        json!({
            "type": "object",
            "properties": {"name": {"const": function["name"]}, "arguments": function["parameters"]},
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    });
    json!({"anyOf": calls.collect::<Vec<_>>()})
}

/// The call of an answer.
fn read(text: &str) -> Option<Call> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    Some(Call::new(value["name"].as_str()?, value["arguments"].to_string()))
}
