//! The response object: what a request asked for, and what came of it so far.

use louver::spec::json::Json;
use louver_mistralrs::{Finish, Generation};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorKind};
use crate::request::to_value;
use crate::turn::Running;

/// What all states of a response share.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Ends the ids of the response and its items.
    pub(crate) suffix: String,
    base: Value,
    report: bool,
    compiled_in: std::time::Duration,
    prompt_tokens: usize,
}

/// How far a response is.
#[derive(Debug)]
pub(crate) enum Status<'a> {
    InProgress,
    Ended {
        generation: &'a Generation,
        /// Its trace's id.
        trace: Option<String>,
    },
    Failed(&'a ApiError),
}

impl Frame {
    /// For a request that was started. `body` is what was asked; `id` begins with `resp_`.
    pub(crate) fn new(
        id: &str,
        created: u64,
        body: &Json,
        running: &Running,
        report: bool,
    ) -> Frame {
        let given = |name: &str, default: Value| {
            body.get(name).filter(|value| **value != Json::Null).map_or(default, to_value)
        };
        let text = |format: Value| json!({"format": format});
        let format = body.pointer("/text/format").map_or_else(|| json!({"type": "text"}), to_value);
        let effort = body.pointer("/reasoning/effort").map_or(Value::Null, to_value);
        let base = json!({
            "id": id,
            "object": "response",
            "created_at": created,
            "status": "in_progress",
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": given("instructions", Value::Null),
            "max_output_tokens": given("max_output_tokens", Value::Null),
            "metadata": given("metadata", json!({})),
            "model": running.served.name,
            "output": [],
            "parallel_tool_calls": given("parallel_tool_calls", true.into()),
            "previous_response_id": null,
            "reasoning": {"effort": effort, "summary": null},
            "store": false,
            "temperature": given("temperature", 1.0.into()),
            "text": text(format),
            "tool_choice": given("tool_choice", "auto".into()),
            "tools": given("tools", json!([])),
            "top_p": given("top_p", 1.0.into()),
            "truncation": "disabled",
            "usage": null,
            "user": given("user", Value::Null),
        });
        let suffix = id.trim_start_matches("resp_").to_owned();
        let (compiled_in, prompt_tokens) = (running.compiled_in, running.prompt_tokens);
        Frame { suffix, base, report, compiled_in, prompt_tokens }
    }

    /// The response with these items.
    pub(crate) fn response(&self, status: Status<'_>, items: &[Value]) -> Value {
        let mut response = self.base.clone();
        response["output"] = items.into();
        match status {
            Status::InProgress => {}
            Status::Ended { generation, trace } => {
                response["status"] = self.word(generation).into();
                if generation.finish == Finish::Length {
                    response["incomplete_details"] = json!({"reason": "max_output_tokens"});
                }
                response["usage"] = self.usage(generation);
                if let Some(report) =
                    crate::chat::report(generation, trace, self.report, self.compiled_in)
                {
                    response["louver"] = report;
                }
            }
            Status::Failed(error) => {
                response["status"] = "failed".into();
                let code = if error.kind == ErrorKind::Busy {
                    "rate_limit_exceeded"
                } else {
                    "server_error"
                };
                response["error"] = json!({"code": code, "message": error.to_string()});
            }
        }
        response
    }

    /// How a generation ended, as the status of its response.
    pub(crate) fn word(&self, generation: &Generation) -> &'static str {
        match generation.finish {
            Finish::Length => "incomplete",
            Finish::Cancelled => "cancelled",
            Finish::Stop => "completed",
        }
    }

    fn usage(&self, generation: &Generation) -> Value {
        let (input, output) = (self.prompt_tokens, generation.tokens.len());
        json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": generation.reasoning_tokens},
            "total_tokens": input + output,
        })
    }
}
