//! The request's body -> a demand.

use louver::spec::json::Json;
use louver_formats::ToolRequest;

use crate::error::{ApiError, ApiFault};
use crate::request::members::{Faults, Members};
use crate::request::options::{Extension, Sampling, Thinking, check_stop};
use crate::request::unknown::Table;
use crate::request::{messages, structure, to_value};
use crate::state::App;
use crate::turn::Demand;

const TABLE: Table = Table {
    known: &[
        "messages",
        "response_format",
        "n",
        "max_tokens",
        "max_completion_tokens",
        "logprobs",
        "top_logprobs",
        "stream_options",
        "reasoning_effort",
        "enable_thinking",
        "chat_template_kwargs",
        "modalities",
    ],
    ignored: &[
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prediction",
        "verbosity",
        "guided_decoding_backend",
        "reasoning_format",
        "preserved_tokens",
    ],
    refused: &[
        ("logit_bias", "the host has no logit bias"),
        ("audio", "the model has no audio"),
        ("functions", "`functions` is gone: use `tools`"),
        ("function_call", "`function_call` is gone: use `tool_choice`"),
        ("web_search_options", "the server does not search the web"),
        ("best_of", "use `n`"),
        ("text", "use `response_format`"),
        ("input", "use `messages`"),
        ("instructions", "use a message with the role `system`"),
        ("max_output_tokens", "use `max_completion_tokens`"),
    ],
};

/// A request that was understood.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    pub(crate) demand: Demand,
    /// How it is streamed, if it is.
    pub(crate) stream: Option<StreamOptions>,
}

/// How an answer is streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamOptions {
    /// A last chunk has the usage.
    pub(crate) include_usage: bool,
}

impl ChatRequest {
    /// Reads a body. All faults are found together.
    pub(crate) fn read(body: &Json, app: &App) -> Result<ChatRequest, ApiError> {
        let (limits, engine) = (&app.config().limits.requests, app.config().limits.engine());
        let mut faults = Faults::new();
        let Some(members) = Members::of(body, "", &mut faults) else {
            ApiError::refuse(faults)?;
            return Err(ApiError::invalid("", "invalid_type", "must be an object"));
        };
        TABLE.check(&members, app.config().unknown_members, &mut faults);
        let rewritten = structure::rewrite(&members, &engine, &mut faults);
        let (rewritten, places) = rewritten.unzip();
        let (body, places) = (rewritten.as_ref().unwrap_or(body), places.unwrap_or_default());
        check_modalities(&members, &mut faults);
        let mut sampling = Sampling::read(&members, &mut faults);
        sampling.read_max_tokens(
            &members,
            &["max_completion_tokens", "max_tokens"],
            limits,
            &mut faults,
        );
        sampling.read_n(&members, limits, &mut faults);
        sampling.read_logprobs(&members, &mut faults);
        let stream = read_stream(&members, &mut faults);
        check_stop(&members, limits, &mut faults);
        if members
            .get("tools")
            .and_then(Json::as_array)
            .is_some_and(|tools| tools.len() > limits.tools)
        {
            members.fail(
                &mut faults,
                "tools",
                "too_many",
                format!("at most {} tools", limits.tools),
            );
        }
        let mut demand = Demand {
            model: members.string(&mut faults, "model").map(str::to_owned),
            messages: messages::read(&members, limits, &mut faults),
            thinking: Thinking::read(&members, &mut faults),
            extension: Extension::read(&members, &mut faults),
            shown: members
                .get("tools")
                .and_then(Json::as_array)
                .unwrap_or_default()
                .iter()
                .map(to_value)
                .collect(),
            streamed: stream.is_some(),
            sampling,
            ..Demand::default()
        };
        match ToolRequest::parse(body) {
            Ok(request) => demand.tools = request,
            Err(error) => {
                let error = ApiError::from(error).map_pointers(|pointer| places.original(pointer));
                add(&mut faults, &error);
            }
        }
        ApiError::refuse(faults)?;
        demand.settle(app);
        demand.places = places;
        Ok(ChatRequest { demand, stream })
    }
}

/// Adds faults of places that have none yet.
fn add(faults: &mut Faults, error: &ApiError) {
    let known: Vec<Option<String>> = faults.iter().map(|fault| fault.param.clone()).collect();
    let new = |fault: &&ApiFault| fault.param.is_none() || !known.contains(&fault.param);
    faults.extend(error.faults().filter(new).cloned());
}

fn check_modalities(members: &Members<'_>, faults: &mut Faults) {
    let Some(kinds) = members.array(faults, "modalities") else { return };
    if kinds.iter().any(|kind| kind.as_str() != Some("text")) {
        members.fail(faults, "modalities", "unsupported", "the model has text only");
    }
}

fn read_stream(members: &Members<'_>, faults: &mut Faults) -> Option<StreamOptions> {
    let is_streamed = members.boolean(faults, "stream").unwrap_or(false);
    let mut options = StreamOptions::default();
    if let Some(given) = members.object(faults, "stream_options") {
        if !is_streamed {
            members.fail(faults, "stream_options", "contradiction", "needs `stream` to be true");
        }
        options.include_usage = given.boolean(faults, "include_usage").unwrap_or(false);
        // Padding against eavesdroppers is a proxy's affair; asking for none is fine.
        given.boolean(faults, "include_obfuscation");
    }
    is_streamed.then_some(options)
}
