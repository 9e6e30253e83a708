//! Recorded requests, and a page that shows them.

use axum::Router;

use crate::state::App;

/// The routes.
pub(crate) fn routes() -> Router<App> {
    Router::new()
}
