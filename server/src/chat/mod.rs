//! `POST /v1/chat/completions`.

mod answer;
mod request;
mod stream;

use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;

use crate::app::json_response;
use crate::error::ApiError;
use crate::http::body::read_json;
use crate::http::{fresh_id, owned};
use crate::request::to_value;
use crate::state::{App, now};
use crate::turn;

use answer::Frame;
pub(crate) use answer::report;
pub(crate) use request::ChatRequest;

const ROUTE: &str = "/v1/chat/completions";

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new().route(ROUTE, post(complete))
}

async fn complete(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    let request = read_json(&app, &parts.headers, body, |body, app| {
        let mut request = ChatRequest::read(&body, app)?;
        request.demand.source = request.demand.extension.trace.then(|| (ROUTE, to_value(&body)));
        Ok(request)
    });
    let ChatRequest { mut demand, stream } = request.await?;
    let id = fresh_id("chatcmpl-");
    demand.id.clone_from(&id);
    let (report, logprobs) = (demand.extension.report, demand.sampling.logprobs);
    owned(async move {
        let running = turn::start(&app, demand, arrived).await?;
        let frame = Frame {
            id,
            created: now(),
            model: running.served.name.clone(),
            fingerprint: running.served.fingerprint(),
            report,
            logprobs,
        };
        match stream {
            None => Ok(json_response(&answer::collect(running, &frame).await?)),
            Some(options) => Ok(stream::answer(app, running, frame, options)),
        }
    })
    .await
}
