//! The response object of the Responses API: request parameters, status and output.

use louver::spec::json::Json;
use louver_mistralrs::{Completion, Generation};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorKind};
use crate::request::to_value;
use crate::response_store::ConversationSource;
use crate::state::App;
use crate::turn::{RunningTurn, Usage};

/// The members that all states of a response share.
#[derive(Clone, Debug)]
pub(crate) struct ResponseTemplate {
    /// Suffix of the ids of the response and its items.
    pub(crate) suffix: String,
    base: Value,
    has_report: bool,
    compiled_in: std::time::Duration,
    /// The token counts of turns before the last.
    earlier: Usage,
    /// Where the response is stored, and what with it.
    stored: Option<(App, ConversationSource)>,
}

/// The state of a response.
#[derive(Debug)]
pub(crate) enum ResponseStatus<'a> {
    InProgress,
    Ended {
        generation: &'a Generation,
        /// The trace's id.
        trace: Option<String>,
    },
    Failed(&'a ApiError),
}

impl ResponseTemplate {
    /// Creates the template for a started request. `body` is the request; `id` begins with `resp_`.
    pub(crate) fn new(
        id: &str,
        created: u64,
        body: &Json,
        running: &RunningTurn,
        has_report: bool,
    ) -> ResponseTemplate {
        let member_or =
            |name: &str, default: Value| body.get_non_null(name).map_or(default, to_value);
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
            "instructions": member_or("instructions", Value::Null),
            "max_output_tokens": member_or("max_output_tokens", Value::Null),
            "metadata": member_or("metadata", json!({})),
            "model": running.served().name,
            "output": [],
            "parallel_tool_calls": member_or("parallel_tool_calls", true.into()),
            "previous_response_id": member_or("previous_response_id", Value::Null),
            "reasoning": {"effort": effort, "summary": null},
            "store": false,
            "temperature": member_or("temperature", 1.0.into()),
            "text": text(format),
            "tool_choice": member_or("tool_choice", "auto".into()),
            "tools": member_or("tools", json!([])),
            "top_p": member_or("top_p", 1.0.into()),
            "truncation": "disabled",
            "usage": null,
            "user": member_or("user", Value::Null),
        });
        let suffix = id.trim_start_matches("resp_").to_owned();
        let (compiled_in, earlier) = (running.compiled_in(), Usage::default());
        ResponseTemplate { suffix, base, has_report, compiled_in, earlier, stored: None }
    }

    /// Sets where the complete response is stored; `None` stores it nowhere.
    pub(crate) fn with_store(mut self, app: App, stored: Option<ConversationSource>) -> Self {
        self.base["store"] = stored.is_some().into();
        self.stored = stored.map(|source| (app, source));
        self
    }

    /// Adds the token counts of a turn that another one followed.
    pub(crate) fn add_usage(&mut self, usage: Usage) {
        self.earlier = self.earlier + usage;
    }

    /// Stores a response that has ended.
    pub(crate) fn store(&self, response: &Value) {
        if let Some((app, source)) = &self.stored
            && response["status"] != "cancelled"
        {
            app.responses().put(response, source);
        }
    }

    /// The response object with these items.
    pub(crate) fn response(&self, status: ResponseStatus<'_>, items: &[Value]) -> Value {
        let mut response = self.base.clone();
        response["output"] = items.into();
        match status {
            ResponseStatus::InProgress => {}
            ResponseStatus::Ended { generation, trace } => {
                response["status"] = self.status_name(generation).into();
                if generation.is_truncated() {
                    response["incomplete_details"] = json!({"reason": "max_output_tokens"});
                }
                response["usage"] = self.usage(generation);
                if let Some(member) =
                    crate::chat::louver_member(generation, trace, self.has_report, self.compiled_in)
                {
                    response["louver"] = member;
                }
            }
            ResponseStatus::Failed(error) => {
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

    /// The response status of a finished generation.
    pub(crate) fn status_name(&self, generation: &Generation) -> &'static str {
        match generation.report.completion {
            Completion::Truncated => "incomplete",
            Completion::Cancelled => "cancelled",
            Completion::Complete | Completion::Pressed => "completed",
        }
    }

    fn usage(&self, generation: &Generation) -> Value {
        let Usage { prompt, generated, reasoning } = self.earlier + Usage::of_turn(generation);
        json!({
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": generated,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": prompt + generated,
        })
    }
}
