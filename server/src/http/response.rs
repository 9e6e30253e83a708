//! Responses with a JSON body.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

/// The JSON text of a value, which can be written as JSON.
pub(crate) fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A 200 response with a JSON body.
pub(crate) fn json_response(value: &Value) -> Response {
    json_text_response(value.to_string())
}

/// A 200 response whose body is this JSON text.
pub(crate) fn json_text_response(json: impl Into<Body>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], json.into()).into_response()
}
