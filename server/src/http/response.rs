//! Responses with a JSON body.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// A 200 response with a JSON body.
pub(crate) fn json_response(value: &Value) -> Response {
    json_text_response(value.to_string())
}

/// A 200 response whose body is this JSON text.
pub(crate) fn json_text_response(json: impl Into<Body>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], json.into()).into_response()
}
