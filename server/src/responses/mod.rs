//! The route `POST /v1/responses`: OpenAI's Responses API over the same turns. Responses are not
//! stored.
//!
//! ```text
//! body ──► translate ──► ChatRequest ──► turn::start ──► events ──► items ──► object
//!              └── pointers: of errors, back into the Responses body
//! ```

mod items;
mod object;
mod stream;
mod translate;

use std::time::Instant;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use louver::spec::json::Json;
use louver_mistralrs::Finish;
use serde_json::Value;

use crate::app::json_response;
use crate::chat::ChatRequest;
use crate::error::{ApiError, ErrorKind};
use crate::http::body::read_json;
use crate::http::{fresh_id, spawn_owned};
use crate::request::to_value;
use crate::state::{App, now};
use crate::turn::{self, Progress, RunningTurn};

use items::OutputItems;
use object::{ResponseStatus, ResponseTemplate};
use translate::{TranslatedBody, translate};

const ROUTE: &str = "/v1/responses";

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(ROUTE, post(create))
        .route("/v1/responses/{id}", get(reject_stored).delete(reject_stored))
        .route("/v1/responses/{id}/cancel", post(reject_stored))
        .route("/v1/responses/{id}/input_items", get(reject_stored))
}

/// Parses a Responses body. JSON pointers of errors refer to that body.
pub(crate) fn parse(body: &Json, app: &App) -> Result<ChatRequest, ApiError> {
    let TranslatedBody { body, pointers } = translate(body, app.config().unknown_members)?;
    let mut request = ChatRequest::parse(&body, app)
        .map_err(|error| error.map_pointers(|pointer| pointers.original(pointer)))?;
    request.turn.pointers = request.turn.pointers.compose(pointers);
    Ok(request)
}

async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    let (body, request) = read_json(&app, &parts.headers, body, |body, app| {
        let request = parse(&body, app)?;
        Ok((body, request))
    })
    .await?;
    let ChatRequest { turn: mut request, stream } = request;
    let id = fresh_id("resp_");
    request.id.clone_from(&id);
    request.trace_source = request.extension.trace.then(|| (ROUTE, to_value(&body)));
    let has_report = request.extension.report;
    spawn_owned(async move {
        let running = turn::start(&app, request, arrived).await?;
        let template = ResponseTemplate::new(&id, now(), &body, &running, has_report);
        drop(body);
        match stream {
            None => Ok(json_response(&collect(running, &template).await?)),
            Some(_) => Ok(stream::response(app, running, template)),
        }
    })
    .await
}

async fn reject_stored(Path(id): Path<String>) -> ApiError {
    let message = format!("there is no response {id:?}: responses are not stored");
    ApiError::general(ErrorKind::NotFound, "response_not_found", message)
}

/// Waits for the end of the generation and builds the response.
async fn collect(mut running: RunningTurn, template: &ResponseTemplate) -> Result<Value, ApiError> {
    let mut output = OutputItems::new(&*template.suffix);
    let mut finished = None;
    while let Some(progress) = running.next().await {
        match progress? {
            Progress::Event { event, .. } => {
                output.push(&event);
                output.take_events();
            }
            Progress::End { generation, trace, .. } => {
                output.finish(generation.finish != Finish::Stop);
                finished = Some((generation, trace));
            }
        }
    }
    let no_result = || {
        ApiError::general(ErrorKind::Internal, "internal", "the generation ended without a result")
    };
    let (generation, trace) = finished.ok_or_else(no_result)?;
    Ok(template.response(ResponseStatus::Ended { generation: &generation, trace }, output.items()))
}
