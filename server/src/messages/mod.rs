//! The route `POST /v1/messages`: Anthropic's Messages API over the generation of Chat
//! Completions.
//!
//! ```text
//! body ──► translate ──► GenerationRequest ──► generation::start ──► events ──► blocks ──► message
//!              └── pointers: of errors, back into the Messages body
//! ```

mod blocks;
mod call_id;
mod conversation;
mod message;
mod stream;
mod tools;
pub(crate) mod translate;

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use louver::spec::json::Json;
use serde_json::json;

use crate::chat;
use crate::error::ApiError;
use crate::generation::{self, GenerationRequest, read_request, run_check};
use crate::http::body::read_json;
use crate::http::routes;
use crate::http::{RequestId, json_response, json_text_response, spawn_owned};
use crate::request::call_history::ResultOrder;
use crate::state::App;

use blocks::ContentBlocks;
use message::MessageBuilder;
use translate::{MessageOptions, TranslatedMessages, translate};

/// Rules of a body that depend on its route and its headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyRules {
    /// Whether `max_tokens` is required: to create a message, not to count or check.
    requires_max_tokens: bool,
    /// Whether the budget of thinking is that of several turns, and so may exceed `max_tokens`.
    has_interleaved_thinking: bool,
}

impl BodyRules {
    pub(crate) fn new(requires_max_tokens: bool, headers: &HeaderMap) -> BodyRules {
        let mut betas = headers.get_all("anthropic-beta").iter().filter_map(|v| v.to_str().ok());
        let has_interleaved_thinking = betas.any(|betas| betas.contains("interleaved-thinking"));
        BodyRules { requires_max_tokens, has_interleaved_thinking }
    }
}

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(routes::MESSAGES, post(create))
        .route("/v1/messages/count_tokens", post(count_tokens))
}

/// Parses a Messages body. JSON pointers of errors refer to that body.
pub(crate) fn parse(
    body: &Json,
    app: &App,
    rules: BodyRules,
) -> Result<(GenerationRequest, MessageOptions), ApiError> {
    let max_tools = app.config().limits.requests.tools;
    let TranslatedMessages { body, pointers, call_pointers, options } =
        translate(body, max_tools, app.config().unknown_members, rules)?;
    let order = ResultOrder::AfterMessage;
    let translated = chat::ChatBody { body: &body, pointers, call_pointers, order };
    Ok((chat::parse_translated(translated, app)?, options))
}

async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let rules = BodyRules::new(true, request.headers());
    let parse = move |body: &_, app: &_, _: &mut _| self::parse(body, app, rules);
    let (request, options) = read_request(&app, request, routes::MESSAGES, "msg_", parse).await?;
    let (stream, id) = (request.stream, request.id.clone());
    spawn_owned(async move {
        let running = generation::start(&app, request, arrived).await?;
        let builder = MessageBuilder::new(id, &running, options);
        if stream.is_some() {
            return Ok(stream::response(app, running, builder, request_id));
        }
        let mut blocks = ContentBlocks::new(builder.options.omits_thinking);
        let message = running.collect(move |progress| {
            let finished = blocks.process(progress);
            blocks.take_events();
            Some(builder.message(blocks.complete(), &finished?))
        });
        Ok(json_text_response(message.await?))
    })
    .await
}

/// Counts the tokens of the prompt. The request is compiled as for a message, because the tool
/// choice may change the prompt. It shares the slots and the deadline of checks.
async fn count_tokens(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let rules = BodyRules::new(false, &parts.headers);
    let parse = move |body, app: &_, _: &mut _| parse(&body, app, rules);
    let ((mut request, _), share) = read_json(&app, &parts.headers, body, parse).await?;
    request.body.share = share;
    let served = app.model(request.model.as_deref())?.clone();
    let count = move || {
        let count = || -> Result<usize, ApiError> {
            let plan = request.plan(&served).map_err(|error| request.plan_error(error))?;
            request.count_tokens(plan)
        };
        count().map_err(|error| error.map_pointers(&request.pointers))
    };
    Ok(json_response(&json!({"input_tokens": run_check(app, count).await?})))
}
