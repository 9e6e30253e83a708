//! The route `POST /v1/completions`: text that continues a prompt, without a chat template. Its
//! output is plain text or the answer that the request asks for.

pub(crate) mod request;
mod response;
mod stream;

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;

use crate::chat::{ResponseMeta, respond};
use crate::error::ApiError;
use crate::generation::read_request;
use crate::http::routes;
use crate::http::spawn_owned;
use crate::state::App;

pub(crate) use request::parse;

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new().route(routes::COMPLETIONS, post(create_completion))
}

async fn create_completion(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let parse = |body: &_, app: &_, _: &mut _| Ok((parse(body, app)?, ()));
    let (request, ()) = read_request(&app, request, routes::COMPLETIONS, "cmpl-", parse).await?;
    let stream = request.stream;
    spawn_owned(async move {
        let (running, meta) = ResponseMeta::start(&app, request, arrived).await?;
        let Some(options) = stream else {
            return respond(running, meta, response::OBJECT, response::choice).await;
        };
        Ok(stream::response(app, running, meta, options))
    })
    .await
}
