//! `POST /v1/louver/check`: a request compiled and priced, and not run.

use axum::Router;

use crate::state::App;

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
}
