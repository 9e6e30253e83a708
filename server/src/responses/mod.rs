//! `POST /v1/responses`: the same turns in the shape of OpenAI's Responses API. Nothing is stored.
//!
//! ```text
//! body ──► translate ──► ChatRequest ──► turn::start ──► events ──► items ──► object
//!              └── places: pointers of errors, back into the Responses body
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
use crate::http::{fresh_id, owned};
use crate::request::to_value;
use crate::state::{App, now};
use crate::turn::{self, Progress, Running};

use items::Output;
use object::{Frame, Status};
use translate::{Translated, translate};

const ROUTE: &str = "/v1/responses";

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(ROUTE, post(create))
        .route("/v1/responses/{id}", get(stored).delete(stored))
        .route("/v1/responses/{id}/cancel", post(stored))
        .route("/v1/responses/{id}/input_items", get(stored))
}

/// A body in this route's shape, understood. Pointers of errors are into it.
pub(crate) fn read(body: &Json, app: &App) -> Result<ChatRequest, ApiError> {
    let Translated { body, places } = translate(body, app.config().unknown_members)?;
    let mut request = ChatRequest::read(&body, app)
        .map_err(|error| error.map_pointers(|pointer| places.original(pointer)))?;
    request.demand.places = request.demand.places.then(places);
    Ok(request)
}

async fn create(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    let (body, request) = read_json(&app, &parts.headers, body, |body, app| {
        let request = read(&body, app)?;
        Ok((body, request))
    })
    .await?;
    let ChatRequest { mut demand, stream } = request;
    let id = fresh_id("resp_");
    demand.id.clone_from(&id);
    demand.source = demand.extension.trace.then(|| (ROUTE, to_value(&body)));
    let report = demand.extension.report;
    owned(async move {
        let running = turn::start(&app, demand, arrived).await?;
        let frame = Frame::new(&id, now(), &body, &running, report);
        drop(body);
        match stream {
            None => Ok(json_response(&collect(running, &frame).await?)),
            Some(_) => Ok(stream::answer(app, running, frame)),
        }
    })
    .await
}

async fn stored(Path(id): Path<String>) -> ApiError {
    let message = format!("there is no response {id:?}: responses are not stored");
    ApiError::whole(ErrorKind::NotFound, "response_not_found", message)
}

/// Waits for the end.
async fn collect(mut running: Running, frame: &Frame) -> Result<Value, ApiError> {
    let mut output = Output::new(&*frame.suffix);
    let mut ended = None;
    while let Some(progress) = running.next().await {
        match progress? {
            Progress::Event { event, .. } => {
                output.push(&event);
                output.take_events();
            }
            Progress::End { generation, trace, .. } => {
                output.finish(generation.finish != Finish::Stop);
                ended = Some((generation, trace));
            }
        }
    }
    let gone =
        || ApiError::whole(ErrorKind::Internal, "internal", "the generation ended without a word");
    let (generation, trace) = ended.ok_or_else(gone)?;
    Ok(frame.response(Status::Ended { generation: &generation, trace }, output.items()))
}
