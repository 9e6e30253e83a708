//! The inspector's routes.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::page::FILES;
use crate::app::json_response;
use crate::error::{ApiError, ErrorKind};
use crate::state::App;

/// The page, which holds nothing of anyone's, and the traces, which do.
pub(crate) fn routes() -> Router<App> {
    let traces = Router::new()
        .route("/v1/louver/traces", get(list))
        .route("/v1/louver/traces/{id}", get(one));
    FILES
        .iter()
        .fold(traces, |router, file| router.route(file.path, get(|| async { file.answer() })))
}

async fn list(State(app): State<App>) -> Result<Response, ApiError> {
    let written = serde_json::to_value(app.traces().listing());
    let list = written.map_err(|_| {
        ApiError::whole(ErrorKind::Internal, "traces", "the list cannot be written")
    })?;
    Ok(([(CACHE_CONTROL, "no-store")], json_response(&list)).into_response())
}

async fn one(State(app): State<App>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let gone = || {
        let message =
            format!("there is no trace {id:?}: it was not recorded, or newer ones took its place");
        ApiError::whole(ErrorKind::NotFound, "trace_not_found", message)
    };
    let json = app.traces().get(&id).ok_or_else(gone)?;
    Ok(([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], json).into_response())
}
