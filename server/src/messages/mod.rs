//! The route `POST /v1/messages`: Anthropic's Messages API over the same turns as Chat Completions.
//!
//! ```text
//! body ──► translate ──► TurnRequest ──► turn::start ──► events ──► blocks ──► message
//!              └── pointers: of errors, back into the Messages body
//! ```

mod blocks;
mod call_id;
mod conversation;
mod message;
mod stream;
mod tools;
mod translate;

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use louver::spec::json::Json;
use serde_json::json;

use crate::chat;
use crate::error::ApiError;
use crate::http::body::read_json;
use crate::http::routes;
use crate::http::{RequestId, json_response, json_text_response, spawn_owned};
use crate::request::call_history::ResultOrder;
use crate::state::App;
use crate::turn::{self, TurnRequest, read_request, run_check};

use blocks::ContentBlocks;
use message::MessageBuilder;
use translate::{MessageOptions, TranslatedMessages, translate};

/// What a body is parsed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyUse {
    /// To create a message: `max_tokens` is required.
    Create,
    /// To count the prompt's tokens or to check the request.
    Inspect,
}

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(routes::MESSAGES, post(create))
        .route("/v1/messages/count_tokens", post(count_tokens))
}

/// Parses a Messages body. JSON pointers of errors refer to that body.
pub(crate) fn parse(body: &Json, app: &App, body_use: BodyUse) -> Result<TurnRequest, ApiError> {
    Ok(parse_with_options(body, app, body_use)?.0)
}

fn parse_with_options(
    body: &Json,
    app: &App,
    body_use: BodyUse,
) -> Result<(TurnRequest, MessageOptions), ApiError> {
    let TranslatedMessages { body, pointers, call_pointers, options } =
        translate(body, app.config().unknown_members, body_use)?;
    let order = ResultOrder::AfterMessage;
    let translated = chat::ChatBody { body: &body, pointers, call_pointers, order };
    Ok((chat::parse_translated(translated, app)?, options))
}

async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let parse = |body: &_, app: &_| parse_with_options(body, app, BodyUse::Create);
    let (request, options) = read_request(&app, request, routes::MESSAGES, "msg_", parse).await?;
    let (stream, id) = (request.stream, request.id.clone());
    spawn_owned(async move {
        let running = turn::start(&app, request, arrived).await?;
        let builder = MessageBuilder::new(id, &running, options);
        if stream.is_some() {
            return Ok(stream::response(app, running, builder, request_id));
        }
        let mut blocks = ContentBlocks::new(builder.options.omits_thinking);
        let message = running.collect(|progress| {
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
    let parsed =
        read_json(&app, &parts.headers, body, |body, app| parse(&body, app, BodyUse::Inspect));
    let request = parsed.await?;
    let served = app.model(request.model.as_deref())?.clone();
    let count = move || {
        let prompt = || -> Result<Vec<u32>, ApiError> {
            let plan = request.plan(&served)?;
            Ok(request.tokens(&plan)?)
        };
        Ok(prompt().map_err(|error| error.map_pointers(&request.pointers))?.len())
    };
    Ok(json_response(&json!({"input_tokens": run_check(app, count).await?})))
}
