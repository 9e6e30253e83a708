//! Routes of OpenAI's and Anthropic's APIs, and of other servers, that are not served: a 404 that
//! names the way out.

use axum::Router;
use axum::http::Uri;
use axum::routing::any;

use crate::error::{ApiError, ErrorKind};
use crate::state::App;

/// Routes that are not served, with all below them, what is not supported, and what to use instead.
const ROUTES: &[(&[&str], &str, &str)] = &[
    (
        &[
            "/v1/embeddings",
            "/api/embed",
            "/api/embeddings",
            "/embedding",
            "/embeddings",
            "/embed",
            "/pooling",
        ],
        "embeddings are not supported",
        "use a server for embedding models",
    ),
    (&["/v1/images"], "images are not supported", "use a server for image models"),
    (&["/v1/videos"], "videos are not supported", "use a server for video models"),
    (&["/v1/audio"], "audio is not supported", "use a server for speech models"),
    (&["/v1/realtime"], "sessions are not supported", "send each turn to /v1/responses"),
    (&["/v1/moderations"], "moderation is not supported", "use a server for moderation models"),
    (&["/v1/fine_tuning"], "models are not trained", "serve a trained model"),
    (&["/v1/evals"], "evaluations are not run", "see `louver bench serve bfcl`"),
    (
        &["/v1/chat/completions/{id}"],
        "chat completions are not stored",
        "use /v1/responses, which stores its responses",
    ),
    (&["/v1/batches"], "batches are not supported", "send each request to its own route"),
    (
        &["/v1/files", "/v1/uploads", "/v1/vector_stores"],
        "files are not stored",
        "put their text into the messages",
    ),
    (&["/v1/containers"], "code is not run", "offer a tool that runs it"),
    (&["/v1/skills"], "skills are not stored", "put their text into the messages"),
    (&["/v1/assistants"], "assistants are not stored", "use /v1/responses"),
    (
        &["/v1/threads", "/v1/conversations"],
        "conversations are not stored",
        "use `previous_response_id`",
    ),
    (
        &["/v1/responses/input_tokens"],
        "counting is not supported",
        "use /v1/louver/check, which returns `prompt_tokens`",
    ),
    (&["/v1/responses/compact"], "conversations are not compacted", "send a shorter `input`"),
    (&["/v1/messages/batches"], "batches are not supported", "send each request to /v1/messages"),
    (&["/v1/complete"], "this old route of Anthropic's API is not supported", "use /v1/messages"),
    (&["/api/chat"], OTHER_API, "use /v1/chat/completions"),
    (
        &["/api/generate", "/completion", "/generate"],
        OTHER_API,
        "use /v1/completions, or /v1/chat/completions",
    ),
    (&["/api/tags", "/api/show", "/api/ps"], OTHER_API, "use /v1/models"),
    (&["/api/version"], OTHER_API, "use `louver --version`"),
    (&["/api/pull"], "models are not loaded by requests", "name them when the server starts"),
    (&["/generate_stream"], OTHER_API, "use /v1/completions with `stream`"),
    (&["/infill"], "infilling is not supported", "send the prompt to /v1/completions"),
    (
        &["/tokenize", "/detokenize", "/v1/tokenize", "/v1/detokenize"],
        "tokens are not listed",
        TOKENS,
    ),
    (&["/apply-template"], "prompts are not rendered", TOKENS),
    (
        &["/rerank", "/v1/rerank", "/v2/rerank", "/score", "/v1/score", "/classify"],
        "ranking is not supported",
        "use a server for ranking models",
    ),
    (
        &["/props", "/get_model_info"],
        OTHER_API,
        "use /v1/models, which has the settings of each model",
    ),
    (&["/slots"], OTHER_API, "use /metrics"),
    (&["/ready", "/ping"], OTHER_API, "use /healthz"),
];

/// Of routes whose request another route takes in another format.
const OTHER_API: &str = "this route of another server is not served";

/// How to learn the length of a prompt.
const TOKENS: &str = "/v1/louver/check returns `prompt_tokens`";

/// The routes.
pub(crate) fn routes() -> Router<App> {
    let routes = ROUTES.iter().flat_map(|&(routes, what, replacement)| {
        routes.iter().map(move |route| (*route, what, replacement))
    });
    routes.fold(Router::new(), |router, (route, what, replacement)| {
        let refuse = move |uri: Uri| async move {
            // A base URL that is the whole route already.
            match uri.path().ends_with("/chat/completions") {
                true => refusal("this route is not served", "use /v1/chat/completions"),
                false => refusal(what, replacement),
            }
        };
        let below = format!("{route}/{{*below}}");
        router.route(route, any(refuse)).route(&below, any(refuse))
    })
}

fn refusal(what: &str, replacement: &str) -> ApiError {
    let message = format!("{what} here: {replacement}");
    ApiError::general(ErrorKind::NotFound, "unsupported_route", message)
}
