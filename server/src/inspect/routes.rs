//! The inspector's routes.

use axum::Router;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::page::FILES;
use crate::error::{ApiError, ErrorKind};
use crate::http::{PathId, json_response, json_text_response, routes};
use crate::state::App;

/// The routes of the page, which is public, and of the traces, which are confidential.
pub(crate) fn routes() -> Router<App> {
    let traces = Router::new()
        .route(routes::TRACES, get(list_traces))
        .route("/v1/louver/traces/{id}", get(get_trace));
    FILES
        .iter()
        .fold(traces, |router, file| router.route(file.path, get(|| async { file.response() })))
}

async fn list_traces(State(app): State<App>) -> Result<Response, ApiError> {
    let serialised = serde_json::to_value(app.traces().listing());
    let list = serialised.map_err(|_| {
        ApiError::general(ErrorKind::Internal, "traces", "the list of traces cannot be serialised")
    })?;
    Ok(([(CACHE_CONTROL, "no-store")], json_response(&list)).into_response())
}

async fn get_trace(State(app): State<App>, PathId(id): PathId) -> Result<Response, ApiError> {
    let not_found = || {
        let message =
            format!("there is no trace {id:?}: it was not recorded, or newer ones replaced it");
        ApiError::general(ErrorKind::NotFound, "trace_not_found", message)
    };
    let json = app.traces().get(&id).ok_or_else(not_found)?;
    Ok(([(CACHE_CONTROL, "no-store")], json_text_response(json)).into_response())
}
