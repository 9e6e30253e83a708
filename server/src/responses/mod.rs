//! `POST /v1/responses`.

use axum::Router;

use crate::state::App;

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
}
