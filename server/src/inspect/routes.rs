//! The inspector's routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use super::page::FILES;
use super::store::TraceStore;

const JSON: &str = "application/json";

/// The page and the traces of this store, to be merged into a server's router. Who may read traces is the server's to decide:
/// they lie under `/v1/louver/traces`.
pub fn routes<S: Clone + Send + Sync + 'static>(store: Arc<TraceStore>) -> Router<S> {
    let mut router = Router::new().route("/v1/louver/traces", get(list)).route("/v1/louver/traces/{id}", get(one));
    for file in &FILES {
        router = router.route(file.path, get(|| async { file.answer() }));
    }
    router.with_state(store)
}

async fn list(State(store): State<Arc<TraceStore>>) -> Response {
    ([(CACHE_CONTROL, "no-store")], axum::Json(store.listing())).into_response()
}

async fn one(State(store): State<Arc<TraceStore>>, Path(id): Path<String>) -> Response {
    match store.get(&id) {
        Some(json) => ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")], json).into_response(),
        None => {
            let error = json!({
                "message": format!("there is no trace {id:?}: it was not recorded, or newer ones took its place"),
                "type": "invalid_request_error",
                "param": null,
                "code": "trace_not_found",
            });
            (StatusCode::NOT_FOUND, [(CONTENT_TYPE, JSON)], json!({ "error": error }).to_string()).into_response()
        }
    }
}
