//! The message object of the Messages API: stop reason, usage and content.

use std::sync::Arc;

use louver_mistralrs::Generation;
use serde_json::{Value, json};

use crate::generation::{FinishedChoice, RunningRequest};
use crate::messages::translate::MessageOptions;
use crate::served_model::ServedModel;

/// Builds the message and its stream events, from what all states of the message share.
#[derive(Debug)]
pub(crate) struct MessageBuilder {
    id: String,
    served: Arc<ServedModel>,
    pub(crate) options: MessageOptions,
    prompt_tokens: usize,
}

impl MessageBuilder {
    /// Creates the builder for a started request. `id` begins with `msg_`.
    pub(crate) fn new(
        id: String,
        running: &RunningRequest,
        options: MessageOptions,
    ) -> MessageBuilder {
        let served = running.served().clone();
        MessageBuilder { id, served, options, prompt_tokens: running.prompt_tokens }
    }

    /// The event `message_start`: the message before its content.
    pub(crate) fn start_event(&self) -> Value {
        let mut message = self.head();
        message["content"] = json!([]);
        message["stop_reason"] = Value::Null;
        message["stop_sequence"] = Value::Null;
        message["usage"] = self.usage(0, 0);
        json!({"type": "message_start", "message": message})
    }

    /// The event `message_delta`: stop reason, usage, and the member `louver`.
    pub(crate) fn delta_event(&self, finished: &FinishedChoice) -> Value {
        let generation = &finished.generation;
        let (reason, sequence) = stop_reason(generation);
        let mut event = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": self.usage(generation.tokens.len(), generation.reasoning_tokens),
        });
        if let Some(louver) = finished.louver_member() {
            event["louver"] = louver;
        }
        event
    }

    /// The JSON text of the message with these blocks.
    pub(crate) fn message(&self, blocks: &[String], finished: &FinishedChoice) -> String {
        let generation = &finished.generation;
        let (reason, sequence) = stop_reason(generation);
        let mut tail = json!({
            "stop_reason": reason,
            "stop_sequence": sequence,
            "usage": self.usage(generation.tokens.len(), generation.reasoning_tokens),
        });
        if let Some(louver) = finished.louver_member() {
            tail["louver"] = louver;
        }
        let (head, tail) = (self.head().to_string(), tail.to_string());
        // Joins the members of both objects.
        let (head, tail) = (head.trim_end_matches('}'), tail.trim_start_matches('{'));
        format!(r#"{head},"content":[{}],{tail}"#, blocks.join(","))
    }

    fn head(&self) -> Value {
        json!({"id": self.id, "type": "message", "role": "assistant", "model": self.served.name})
    }

    fn usage(&self, output: usize, thinking: usize) -> Value {
        json!({
            "input_tokens": self.prompt_tokens,
            "output_tokens": output,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens_details": {"thinking_tokens": thinking},
        })
    }
}

fn stop_reason(generation: &Generation) -> (&'static str, Option<&str>) {
    if generation.is_truncated() {
        return ("max_tokens", None);
    }
    if !generation.turn.calls.is_empty() {
        return ("tool_use", None);
    }
    let stopped = generation.stop_string.as_deref();
    (if stopped.is_some() { "stop_sequence" } else { "end_turn" }, stopped)
}
