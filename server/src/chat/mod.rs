//! The route `POST /v1/chat/completions`.

mod chunks;
mod logprobs;
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
use crate::http::spawn_owned;
use crate::state::App;

pub(crate) use chunks::Chunks;
pub(crate) use request::{ChatBody, parse, parse_body, parse_translated};
use response::chat_choice;
pub(crate) use response::{ChoiceBody, ChoiceLogprobs, ResponseMeta, respond};

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
            return respond(running, meta, "chat.completion", chat_choice).await;
        };
        Ok(stream::response(app, running, meta, options))
    })
    .await
}
