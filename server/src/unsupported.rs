//! Routes of OpenAI's and Anthropic's APIs that are not served: a 404 that names the way out.

use axum::Router;
use axum::routing::any;

use crate::error::{ApiError, ErrorKind};
use crate::state::App;

/// The routes, what is not supported, and what to use instead.
const ROUTES: [(&str, &str, &str); 15] = [
    ("/v1/embeddings", "embeddings are not supported", "use a server for embedding models"),
    ("/v1/images/generations", "images are not supported", "use a server for image models"),
    ("/v1/images/edits", "images are not supported", "use a server for image models"),
    ("/v1/images/variations", "images are not supported", "use a server for image models"),
    ("/v1/audio/speech", "audio is not supported", "use a server for speech models"),
    ("/v1/audio/transcriptions", "audio is not supported", "use a server for speech models"),
    ("/v1/audio/translations", "audio is not supported", "use a server for speech models"),
    ("/v1/moderations", "moderation is not supported", "use a server for moderation models"),
    ("/v1/batches", "batches are not supported", "send each request to its own route"),
    ("/v1/files", "files are not stored", "put their text into the messages"),
    ("/v1/conversations", "conversations are not stored", "use `previous_response_id`"),
    (
        "/v1/responses/input_tokens",
        "counting is not supported",
        "use /v1/louver/check, which returns `prompt_tokens`",
    ),
    ("/v1/responses/compact", "conversations are not compacted", "send a shorter `input`"),
    ("/v1/messages/batches", "batches are not supported", "send each request to /v1/messages"),
    ("/v1/complete", "this old route of Anthropic's API is not supported", "use /v1/messages"),
];

/// The routes.
pub(crate) fn routes() -> Router<App> {
    ROUTES.into_iter().fold(Router::new(), |router, (route, what, replacement)| {
        router.route(route, any(move || async move { refusal(what, replacement) }))
    })
}

fn refusal(what: &str, replacement: &str) -> ApiError {
    let message = format!("{what} here: {replacement}");
    ApiError::general(ErrorKind::NotFound, "unsupported_route", message)
}
