//! The route `POST /v1/chat/completions`.

mod chunks;
pub(crate) mod request;
mod response;
mod stream;

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;

use crate::error::ApiError;
use crate::generation::read_request;
use crate::http::routes;
use crate::http::{json_response, spawn_owned};
use crate::state::App;

pub(crate) use chunks::Chunks;
pub(crate) use request::{ChatBody, parse, parse_body, parse_translated};
use response::choice_json;
pub(crate) use response::{ResponseMeta, collect};

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new().route(routes::CHAT_COMPLETIONS, post(create_completion))
}

async fn create_completion(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let parse = |body: &_, app: &_, _: &mut _| Ok((parse(body, app)?, ()));
    let (request, ()) =
        read_request(&app, request, routes::CHAT_COMPLETIONS, "chatcmpl-", parse).await?;
    let stream = request.stream;
    spawn_owned(async move {
        let (running, meta) = ResponseMeta::start(&app, request, arrived).await?;
        let Some(options) = stream else {
            let choice = |k, generation: &_, vocab: &_| choice_json(&meta, k, generation, vocab);
            let body = collect(running, &meta, "chat.completion", choice).await?;
            return Ok(json_response(&body));
        };
        Ok(stream::response(app, running, meta, options))
    })
    .await
}
