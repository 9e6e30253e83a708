//! The HTTP router: all routes of the server and their middleware.

use std::io;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::clock::rfc3339;
use crate::error::{ApiError, ErrorKind};
use crate::http::error_format::ANTHROPIC_VERSION;
use crate::http::origin::check_origin;
use crate::http::phase::ServerPhase;
use crate::http::routes::{self, Route};
use crate::http::{PathId, authorize, json_response, observe, serve_router};
use crate::served_model::ServedModel;
use crate::state::App;
use crate::{chat, check, completions, inspect, messages, responses, unsupported};

/// Longest time that the health check waits for the host.
const HEALTH_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// Builds the router with all routes. Serve it with [`serve`], or nest it in another
/// axum application.
pub fn router(app: App) -> Router {
    Router::new()
        .merge(chat::routes())
        .merge(completions::routes())
        .merge(responses::routes())
        .merge(messages::routes())
        .merge(unsupported::routes())
        .merge(check::routes())
        .merge(inspect::routes())
        .route(routes::MODELS, get(models))
        .route("/v1/models/{*id}", get(model))
        .route(routes::HEALTH, get(health))
        .route(routes::HEALTH_ALIAS, get(health))
        .route(routes::METRICS, get(metrics))
        .fallback(not_found)
        .method_not_allowed_fallback(other_method)
        // The layer added last runs first.
        .layer(from_fn_with_state(app.clone(), authorize))
        .layer(from_fn_with_state(app.clone(), check_origin))
        .layer(from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// Serves until `stop` completes. Then the server accepts no connections and rejects new requests.
/// Running requests may finish within the configured grace period and are cancelled afterwards.
/// Returns when the last connection is closed, or shortly after the grace period. Needs a
/// multi-threaded tokio runtime.
///
/// The protocol is HTTP/1.1 without TLS. HTTP/2 connections are closed.
pub async fn serve(
    listener: TcpListener,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    serve_router(router(app.clone()), listener, app, stop).await
}

async fn not_found(uri: Uri) -> ApiError {
    let message = match (Route::meant_by(uri.path()), Route::similar_to(uri.path())) {
        (Some(meant), _) => format!("there is no such route: use {meant}"),
        (None, Some(similar)) => format!("there is no such route: is {similar} meant?"),
        (None, None) => "there is no such route".to_owned(),
    };
    ApiError::general(ErrorKind::NotFound, "unknown_route", message)
}

async fn other_method() -> ApiError {
    ApiError::general(
        ErrorKind::Method,
        "method_not_allowed",
        "the method is not allowed here: see the Allow header",
    )
}

fn model_object(served: &ServedModel, name: &str) -> Value {
    let louver = json!({"format": served.louver.format().ok(), "settings": served.settings});
    json!({
        "id": name,
        "object": "model",
        "created": served.created,
        "owned_by": "louver",
        "louver": louver,
    })
}

/// A model in the format of Anthropic's API.
fn anthropic_model(served: &ServedModel) -> Value {
    let created = rfc3339(served.created);
    json!({
        "type": "model",
        "id": served.name,
        "display_name": served.name,
        "created_at": created,
        "lifecycle": "active",
        "max_input_tokens": served.louver.max_context(),
        "max_tokens": served.settings.limits.requests.max_tokens.min(served.louver.max_context()),
    })
}

async fn models(State(app): State<App>, headers: HeaderMap) -> Response {
    let models = app.models().iter();
    if headers.contains_key(ANTHROPIC_VERSION) {
        let data: Vec<Value> = models.map(|served| anthropic_model(served)).collect();
        let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
        let (first, last) = (id(data.first()), id(data.last()));
        return json_response(
            &json!({"data": data, "has_more": false, "first_id": first, "last_id": last}),
        );
    }
    let data: Vec<Value> = models.map(|served| model_object(served, &served.name)).collect();
    json_response(&json!({"object": "list", "data": data}))
}

async fn model(
    State(app): State<App>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let served = app.model(Some(&id))?;
    Ok(json_response(&match headers.contains_key(ANTHROPIC_VERSION) {
        true => anthropic_model(served),
        false => model_object(served, &id),
    }))
}

/// Health check: 200 while all hosts accept requests; 503 if one does not, or on a connection that
/// is still open while the server stops.
async fn health(State(app): State<App>) -> Result<Response, ApiError> {
    let unavailable =
        |code, message: String| ApiError::general(ErrorKind::Unavailable, code, message);
    if app.phases().current() != ServerPhase::Running {
        return Err(ApiError::stopping());
    }
    for served in app.models() {
        let model_to_check = served.clone();
        let alive = tokio::task::spawn_blocking(move || model_to_check.is_alive());
        if !matches!(tokio::time::timeout(HEALTH_TIMEOUT, alive).await, Ok(Ok(true))) {
            return Err(unavailable(
                "host_gone",
                format!("the host of model {:?} does not answer", served.name),
            ));
        }
    }
    Ok(json_response(&json!({"status": "ok"})))
}

async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let failed =
        |_| ApiError::general(ErrorKind::Internal, "metrics", "the counters cannot be written");
    let text = app.metrics().text().map_err(failed)?;
    let kind =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
