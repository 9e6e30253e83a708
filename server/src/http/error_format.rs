//! Errors in the format of Anthropic's API, for its routes and clients: `{"type": "error", "error":
//! {"type", "message", "param", "code"}, "request_id"}`. The message begins with the JSON pointer.
//! `param`, `code` and `errors` are as on the other routes.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use crate::error::{ApiError, ApiFault, ErrorKind};
use crate::http::routes::{self, Route};

/// The header in which Anthropic's API returns request ids.
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// The header that every client of Anthropic's API sends.
pub(crate) const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// Whether responses have the format of Anthropic's API: on its routes, and for its clients on
/// those of models, which both APIs have, and where nothing is served.
pub(crate) fn is_messages_request(route: &Route, headers: &HeaderMap) -> bool {
    match route.path {
        routes::MESSAGES => true,
        routes::MODELS | routes::OTHER => headers.contains_key(ANTHROPIC_VERSION),
        _ => false,
    }
}

/// The error's `type` in Anthropic's API.
fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Unauthorized => "authentication_error",
        ErrorKind::Forbidden => "permission_error",
        ErrorKind::NotFound => "not_found_error",
        ErrorKind::Timeout => "timeout_error",
        ErrorKind::TooLarge => "request_too_large",
        ErrorKind::Busy => "rate_limit_error",
        ErrorKind::Internal => "api_error",
        ErrorKind::Unavailable => "overloaded_error",
        ErrorKind::Invalid | ErrorKind::Method | ErrorKind::MediaType => "invalid_request_error",
    }
}

/// The HTTP status: that of the other routes, except 529 for an overloaded server.
fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Unavailable => StatusCode::from_u16(529).unwrap_or(kind.status()),
        _ => kind.status(),
    }
}

/// The body of an error, with `errors` if there are several faults.
pub(crate) fn messages_error(error: &ApiError, request_id: Option<&str>) -> Value {
    let fault_json = |fault: &ApiFault| {
        json!({
            "type": kind_name(error.kind),
            "message": fault.to_string(),
            "param": fault.param,
            "code": fault.code,
            "details": {"error_code": fault.code},
        })
    };
    let mut body = json!({"type": "error", "error": fault_json(error.first())});
    if error.faults().count() > 1 {
        body["errors"] = error.faults().map(fault_json).collect();
    }
    if let Some(id) = request_id {
        body["request_id"] = id.into();
    }
    body
}

/// Adapts a response of the Messages routes: rewrites an error, and adds the request id's header.
pub(crate) fn as_messages_response(mut response: Response, request_id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let Some(error) = response.extensions().get::<ApiError>() else { return response };
    let (status, body) = (status(error.kind), messages_error(error, Some(request_id)));
    let (mut parts, _) = response.into_parts();
    parts.status = status;
    Response::from_parts(parts, Body::from(body.to_string()))
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn errors_have_the_types_and_statuses_of_anthropics_api() {
        for (kind, code, name) in [
            (ErrorKind::Invalid, 400, "invalid_request_error"),
            (ErrorKind::Unauthorized, 401, "authentication_error"),
            (ErrorKind::Forbidden, 403, "permission_error"),
            (ErrorKind::NotFound, 404, "not_found_error"),
            (ErrorKind::Method, 405, "invalid_request_error"),
            (ErrorKind::Timeout, 408, "timeout_error"),
            (ErrorKind::TooLarge, 413, "request_too_large"),
            (ErrorKind::MediaType, 415, "invalid_request_error"),
            (ErrorKind::Busy, 429, "rate_limit_error"),
            (ErrorKind::Internal, 500, "api_error"),
            (ErrorKind::Unavailable, 529, "overloaded_error"),
        ] {
            let error = ApiError::general(kind, "code", "no");
            let response = as_messages_response(error.clone().into_response(), "req_1");
            assert_eq!((response.status().as_u16(), kind_name(kind)), (code, name));
            assert_eq!(response.headers()["request-id"], "req_1");
            let expected = json!({"type": "error", "request_id": "req_1", "error": {"type": name,
                "message": "no", "param": null, "code": "code", "details": {"error_code": "code"}}});
            assert_eq!(messages_error(&error, Some("req_1")), expected);
        }
    }

    #[test]
    fn all_faults_are_listed_and_messages_begin_with_pointers() {
        let faults = ["/a", "/b"].map(|pointer| ApiFault::at(pointer, "missing", "is missing"));
        let error = ApiError::reject(faults).unwrap_err();
        let body = messages_error(&error, None);
        assert_eq!(body["error"]["message"], "/a: is missing");
        assert_eq!(body["errors"][1]["message"], "/b: is missing");
        assert_eq!(body.get("request_id"), None);
    }
}
