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
use crate::error::{ApiError, ErrorKind};
use crate::http::body::read_json;
use crate::http::routes;
use crate::http::{fresh_id, json_response, json_text_response, spawn_owned};
use crate::request::to_value;
use crate::state::App;
use crate::turn::{self, Progress, RunningTurn, TurnRequest, run_check};

use blocks::ContentBlocks;
use message::MessageTemplate;
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
    let TranslatedMessages { body, pointers, options } =
        translate(body, app.config().unknown_members, body_use)?;
    Ok((chat::parse_translated(&body, pointers, app)?, options))
}

async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    let parsed = read_json(&app, &parts.headers, body, |body, app| {
        let (mut request, options) = parse_with_options(&body, app, BodyUse::Create)?;
        let is_traced = request.extension.trace;
        request.trace_source = is_traced.then(|| (routes::MESSAGES, to_value(&body)));
        Ok((request, options))
    });
    let (mut request, options) = parsed.await?;
    let stream = request.stream;
    let id = fresh_id("msg_");
    request.id.clone_from(&id);
    let has_report = request.extension.report;
    spawn_owned(async move {
        let running = turn::start(&app, request, arrived).await?;
        let template = MessageTemplate::new(id, &running, options, has_report);
        match stream {
            None => Ok(json_text_response(collect(running, &template).await?)),
            Some(_) => Ok(stream::response(app, running, template)),
        }
    })
    .await
}

/// Waits for the end of the generation and builds the message.
async fn collect(mut running: RunningTurn, template: &MessageTemplate) -> Result<String, ApiError> {
    let mut blocks = ContentBlocks::new(template.options.omits_thinking);
    let mut finished = None;
    while let Some(progress) = running.next().await {
        match progress? {
            Progress::Event { event, .. } => {
                blocks.push(&event);
                blocks.take_events();
            }
            // Only Responses requests have tools that the server runs.
            Progress::ToolResults { .. } => {}
            Progress::End { generation, trace, .. } => {
                blocks.finish();
                finished = Some((generation, trace));
            }
        }
    }
    let no_result = || {
        ApiError::general(ErrorKind::Internal, "internal", "the generation ended without a result")
    };
    let (generation, trace) = finished.ok_or_else(no_result)?;
    Ok(template.message(blocks.complete(), &generation, trace))
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
