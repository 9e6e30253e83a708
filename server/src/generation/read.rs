//! Reading of the requests that generate: from the body to the parsed request.

use axum::extract::Request;
use louver::spec::json::Json;

use crate::error::ApiError;
use crate::generation::GenerationRequest;
use crate::http::body::{BodyShare, read_json};
use crate::http::fresh_id;
use crate::request::to_value;
use crate::state::App;

/// Reads and parses the body of a request. `parse` also returns what only its route needs. Sets the
/// response's id, and the source of its trace.
pub(crate) async fn read_request<T: Send + 'static>(
    app: &App,
    request: Request,
    route: &'static str,
    id_prefix: &str,
    parse: impl FnOnce(&Json, &App, &mut BodyShare) -> Result<(GenerationRequest, T), ApiError>
    + Send
    + 'static,
) -> Result<(GenerationRequest, T), ApiError> {
    let (parts, body) = request.into_parts();
    let parsed = read_json(app, &parts.headers, body, move |body, app, share| {
        let (mut request, other) = parse(&body, app, share)?;
        request.body.traced = request.extension.trace.then(|| (route, to_value(&body)));
        Ok((request, other))
    });
    let ((mut request, other), share) = parsed.await?;
    request.body.share = share;
    request.id = fresh_id(id_prefix);
    Ok((request, other))
}
