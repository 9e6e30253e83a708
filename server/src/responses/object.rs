//! The response object of the Responses API: request parameters, status and output.

use louver::spec::json::{Json, Object};
use louver_mistralrs::{Completion, Generation};
use serde_json::{Value, json};

use crate::clock::unix_seconds;
use crate::error::{ApiError, ErrorKind};
use crate::generation::{FinishedChoice, RunningRequest, Usage};
use crate::http::body::BodyShare;
use crate::request::to_value;
use crate::response_store::ConversationSource;
use crate::state::App;

/// Builds the response object, from the members that all its states share.
#[derive(Clone, Debug)]
pub(crate) struct ResponseBuilder {
    base: Value,
    /// The token counts of rounds before the last.
    earlier: Usage,
    /// The members `louver` of these rounds.
    rounds: Vec<Value>,
    /// Where the response is stored, and what with it.
    stored: Option<(App, ConversationSource)>,
    /// About the bytes of memory that the body's values take here.
    bytes: usize,
    /// Pays for them.
    share: BodyShare,
}

/// The state of a response.
#[derive(Debug)]
pub(crate) enum ResponseStatus<'a> {
    InProgress,
    Ended(&'a FinishedChoice),
    Failed(&'a ApiError),
}

impl ResponseBuilder {
    /// Creates the builder for a request body. `stored` is where the complete response is stored,
    /// and what with it.
    pub(crate) fn new(body: &Json, stored: Option<(App, ConversationSource)>) -> ResponseBuilder {
        let member_or =
            |name: &str, default: Value| body.get_non_null(name).map_or(default, to_value);
        let format = body.pointer("/text/format").filter(|format| **format != Json::Null);
        let mut format = format.map_or_else(|| json!({"type": "text"}), to_value);
        if format["type"] == "json_schema" {
            set_default_strict(&mut format);
        }
        let mut tools = member_or("tools", json!([]));
        set_applied_strictness(&mut tools);
        let mut choice = member_or("tool_choice", "auto".into());
        flatten(&mut choice);
        let mut text = json!({"format": format});
        if let Some(verbosity) = body.pointer("/text/verbosity").filter(|of| **of != Json::Null) {
            text["verbosity"] = to_value(verbosity);
        }
        let effort = body.pointer("/reasoning/effort").map_or(Value::Null, to_value);
        let base = json!({
            "id": null,
            "object": "response",
            "created_at": null,
            "status": "in_progress",
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": member_or("instructions", Value::Null),
            "max_output_tokens": member_or("max_output_tokens", Value::Null),
            "metadata": member_or("metadata", json!({})),
            "model": null,
            "output": [],
            "parallel_tool_calls": member_or("parallel_tool_calls", true.into()),
            "previous_response_id": member_or("previous_response_id", Value::Null),
            "reasoning": {"effort": effort, "summary": null},
            "store": stored.is_some(),
            "temperature": member_or("temperature", 1.0.into()),
            "text": text,
            "tool_choice": choice,
            "tools": tools,
            "top_p": member_or("top_p", 1.0.into()),
            "truncation": "disabled",
            "usage": null,
            "user": member_or("user", Value::Null),
        });
        let is_kept = |(name, _): &(&str, &Json)| *name != "input" || stored.is_some();
        let kept = body.as_object().into_iter().flat_map(Object::iter).filter(is_kept);
        let bytes = kept.map(|(_, value)| value.bytes()).sum();
        let (earlier, rounds, share) = (Usage::default(), Vec::new(), BodyShare::default());
        ResponseBuilder { base, earlier, rounds, stored, bytes, share }
    }

    /// Takes over the part of the body's share that pays for what is kept here.
    pub(crate) fn take_share(&mut self, of_body: &mut BodyShare) {
        self.share = of_body.split_off(self.bytes);
    }

    /// Adds what is known of the response when its generation has started.
    pub(crate) fn begin(&mut self, id: &str, running: &RunningRequest) {
        self.base["id"] = id.into();
        self.base["created_at"] = unix_seconds().into();
        self.base["model"] = running.served().name.as_str().into();
    }

    /// Adds the token counts and the member `louver` of a round that another one followed.
    pub(crate) fn add_round(&mut self, usage: Usage, louver: Option<Value>) {
        self.earlier = self.earlier + usage;
        self.rounds.extend(louver);
    }

    /// Stores a response that has ended.
    pub(crate) fn store(&self, response: &Value) {
        if let Some((app, source)) = &self.stored {
            app.responses().put(response, source);
        }
    }

    /// The response object with these items.
    pub(crate) fn response(&self, status: ResponseStatus<'_>, items: &[Value]) -> Value {
        let mut response = self.base.clone();
        response["output"] = items.into();
        match status {
            ResponseStatus::InProgress => {}
            ResponseStatus::Ended(finished) => {
                response["status"] = status_name(&finished.generation).into();
                if finished.generation.is_truncated() {
                    response["incomplete_details"] = json!({"reason": "max_output_tokens"});
                }
                response["usage"] = self.usage(&finished.generation);
                if let Some(louver) = finished.louver_member() {
                    response["louver"] = louver;
                }
                if !self.rounds.is_empty() {
                    response["louver"]["rounds"] = self.rounds.as_slice().into();
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

    fn usage(&self, generation: &Generation) -> Value {
        let Usage { prompt, generated, reasoning } =
            self.earlier + Usage::of_generation(generation);
        json!({
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": generated,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": prompt + generated,
        })
    }
}

/// Sets `strict` of the functions among these tools, also within namespaces, to what is applied.
fn set_applied_strictness(tools: &mut Value) {
    for tool in tools.as_array_mut().into_iter().flatten() {
        flatten(tool);
        if tool["type"] == "function" {
            set_default_strict(tool);
        } else if let Some(tools) = tool.get_mut("tools") {
            set_applied_strictness(tools);
        }
    }
}

/// Puts a tool or a choice of tools into the form of this API: what Chat Completions has in a
/// member with the name of the type stands beside `type`.
fn flatten(entry: &mut Value) {
    let Some(members) = entry.as_object_mut() else { return };
    if !members.contains_key("type") {
        members.insert("type".to_owned(), "function".into());
    }
    let kind = members["type"].as_str().unwrap_or_default().to_owned();
    if let Some(Value::Object(inner)) = members.get(&kind) {
        let inner = inner.clone();
        members.remove(&kind);
        members.extend(inner);
    }
    if kind == "allowed_tools" {
        members
            .get_mut("tools")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .for_each(flatten);
    }
}

/// Without `strict`, functions and schemas are strict.
fn set_default_strict(holder: &mut Value) {
    if holder["strict"].is_null() {
        holder["strict"] = true.into();
    }
}

/// The response status of a finished generation.
pub(crate) fn status_name(generation: &Generation) -> &'static str {
    match generation.report.completion {
        Completion::Truncated => "incomplete",
        _ => "completed",
    }
}
