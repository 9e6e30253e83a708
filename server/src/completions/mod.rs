//! The route `POST /v1/completions`: text that continues a prompt, without a chat template. Its
//! output is plain text or the answer that the request asks for.

mod request;
mod response;
mod stream;

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;

use crate::chat::{ChatRequest, ResponseMeta};
use crate::error::ApiError;
use crate::http::body::read_json;
use crate::http::routes;
use crate::http::{fresh_id, json_response, spawn_owned};
use crate::request::to_value;
use crate::state::App;

pub(crate) use request::parse;

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new().route(routes::COMPLETIONS, post(create_completion))
}

async fn create_completion(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    let parsed = read_json(&app, &parts.headers, body, |body, app| {
        let mut request = parse(&body, app)?;
        request.turn.trace_source =
            request.turn.extension.trace.then(|| (routes::COMPLETIONS, to_value(&body)));
        Ok(request)
    });
    let ChatRequest { turn: mut request, stream } = parsed.await?;
    request.id = fresh_id("cmpl-");
    spawn_owned(async move {
        let (running, meta) = ResponseMeta::start(&app, request, arrived).await?;
        match stream {
            None => Ok(json_response(&response::collect(running, &meta).await?)),
            Some(options) => Ok(stream::response(app, running, meta, options)),
        }
    })
    .await
}
