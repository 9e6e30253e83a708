//! Parsing of Chat Completions bodies.

use louver::spec::json::Json;

use crate::error::ApiError;
use crate::generation::{GenerationRequest, Prompt};
use crate::request::call_history::ResultOrder;
use crate::request::member_table::{MemberTable, RouteAdvice};
use crate::request::members::{Faults, Members};
use crate::request::options::{RequestExtension, Sampling, StreamOptions, check_counts};
use crate::request::pointers::PointerMap;
use crate::request::template::TemplateOptions;
use crate::request::{messages, structure, to_value};
use crate::state::App;

pub(crate) const MEMBER_TABLE: MemberTable = MemberTable {
    accepted: &[
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
        "documents",
        "modalities",
    ],
    ignored: &["verbosity", "reasoning_format", "preserved_tokens", "tool_stream"],
    unsupported: &[
        ("best_of", "use `n`"),
        ("text", "use `response_format`"),
        ("input", "use `messages`"),
        ("prompt", "use `messages`, or /v1/completions"),
        ("system", "use a message with the role `system`"),
        ("instructions", "use a message with the role `system`"),
        ("max_output_tokens", "use `max_completion_tokens`"),
        ("reasoning", "use `reasoning_effort`, or `louver.reasoning_budget`"),
    ],
    advice: RouteAdvice {
        structure: "use `response_format`",
        max_tokens: "use `max_completion_tokens`",
        reasoning: "use `reasoning_effort` or `enable_thinking`",
        stop: "use `stop`",
        tools: "use `tools` and `tool_choice`",
    },
};

/// A body that was translated from another route's.
pub(crate) struct ChatBody<'b> {
    pub(crate) body: &'b Json,
    /// Maps its JSON pointers to those of the body as sent, which errors and the request refer to.
    pub(crate) pointers: PointerMap,
    /// The same for calls and the ids of results. Only faults of this body refer to them, and there
    /// may be thousands, so that the request does not have them.
    pub(crate) call_pointers: Vec<(String, String)>,
    pub(crate) order: ResultOrder,
}

/// Parses a body. Reports all faults together.
pub(crate) fn parse(body: &Json, app: &App) -> Result<GenerationRequest, ApiError> {
    parse_ordered(body, ResultOrder::AfterMessage, app)
}

fn parse_ordered(
    body: &Json,
    order: ResultOrder,
    app: &App,
) -> Result<GenerationRequest, ApiError> {
    let limits = &app.config().limits.requests;
    parse_body(body, app, &MEMBER_TABLE, |members, request, faults| {
        check_modalities(members, faults);
        let names = ["max_completion_tokens", "max_tokens"];
        request.sampling.read_max_tokens(members, &names, faults);
        request.sampling.read_n(members, limits, faults);
        request.sampling.read_logprobs(members, faults);
        request.template = TemplateOptions::read(members, &mut request.pointers, faults);
        request.prompt = Prompt::Messages(messages::read(members, limits, order, faults));
        let tools = members.get("tools").and_then(Json::as_array).unwrap_or_default();
        request.template_tools = tools.iter().map(to_value).collect();
    })
}

/// Parses the members that Chat Completions and Completions share. `read_own` reads those that only
/// one of them has, into the request. Reports all faults together.
pub(crate) fn parse_body(
    body: &Json,
    app: &App,
    table: &MemberTable,
    read_own: impl FnOnce(&Members<'_>, &mut GenerationRequest, &mut Faults),
) -> Result<GenerationRequest, ApiError> {
    let (limits, engine) = (&app.config().limits.requests, app.config().limits.engine());
    let (members, mut faults) = (Members::of_body(body)?, Faults::new());
    check_counts(&members, limits)?;
    let mut request = GenerationRequest::default();
    let unknown = app.config().unknown_members;
    table.check(&members, unknown, &mut faults, &mut request.pointers);
    let rewritten = structure::rewrite(&members, &engine, &mut faults, &mut request.pointers);
    request.sampling = Sampling::read(&members, &mut faults);
    request.stream = StreamOptions::read(&members, unknown, &mut faults);
    request.model = members.string(&mut faults, "model").map(str::to_owned);
    read_own(&members, &mut request, &mut faults);
    request.extension = RequestExtension::read(&members, &mut faults);
    request.complete(rewritten.as_ref().unwrap_or(body), &engine, faults)
}

/// Parses a body that was translated from another route's.
pub(crate) fn parse_translated(
    translated: ChatBody<'_>,
    app: &App,
) -> Result<GenerationRequest, ApiError> {
    let ChatBody { body, pointers, call_pointers, order } = translated;
    match parse_ordered(body, order, app) {
        Ok(mut request) => {
            request.pointers = request.pointers.compose(pointers);
            Ok(request)
        }
        Err(error) => {
            let mut pointers = pointers;
            call_pointers.into_iter().for_each(|(from, to)| pointers.insert(from, to));
            Err(error.map_pointers(&pointers))
        }
    }
}

fn check_modalities(members: &Members<'_>, faults: &mut Faults) {
    let Some(modalities) = members.array(faults, "modalities") else { return };
    if modalities.iter().any(|kind| kind.as_str() != Some("text")) {
        members.fail(faults, "modalities", "unsupported", "only text output is supported");
    }
}
