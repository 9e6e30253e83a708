//! Errors as OpenAI's API has them: `{"error": {"message", "type", "param", "code"}}`, `param` a JSON pointer into the
//! request's body. Where a request has several faults, `error` is the first and `errors` has them all.

use std::fmt;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use louver::compile::CompileError;
use louver::front::json_schema::{SchemaErrorReason, SchemaErrors};
use louver::spec::json::JsonError;
use louver::spec::tools::{ToolChoiceError, ToolErrors};
use louver_formats::LowerError;
use louver_mistralrs::{Fault, GenerationError, PlanError};
use serde::Serialize;
use serde_json::{Value, json};

/// What kind of failure it is: decides the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong, or asks for what cannot be done: 400.
    Invalid,
    /// No key, or not one of the server's: 401.
    Unauthorized,
    /// A foreign name of the server, or a foreign web page: 403.
    Forbidden,
    /// No such route, model or thing: 404.
    NotFound,
    /// The route has other methods: 405.
    Method,
    /// The request took too long to arrive or to be answered: 408.
    Timeout,
    /// The body is too long: 413.
    TooLarge,
    /// The body is not JSON by its content type: 415.
    MediaType,
    /// Too many requests wait already, or this one waited too long: 429.
    Busy,
    /// The host or the server failed: 500.
    Internal,
    /// The server is stopping, or its host has died: 503.
    Unavailable,
}

impl ErrorKind {
    /// The status.
    pub fn status(self) -> StatusCode {
        match self {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Method => StatusCode::METHOD_NOT_ALLOWED,
            ErrorKind::Timeout => StatusCode::REQUEST_TIMEOUT,
            ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorKind::Busy => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The error's `type`, as OpenAI's API names it.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Unauthorized => "authentication_error",
            ErrorKind::Forbidden => "permission_error",
            ErrorKind::NotFound => "not_found_error",
            ErrorKind::Busy => "rate_limit_error",
            ErrorKind::Timeout => "timeout_error",
            ErrorKind::Internal | ErrorKind::Unavailable => "server_error",
            ErrorKind::Invalid | ErrorKind::Method | ErrorKind::TooLarge | ErrorKind::MediaType => {
                "invalid_request_error"
            }
        }
    }
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiFault {
    /// What is wrong, for people.
    pub message: String,
    /// Where: a JSON pointer into the body.
    pub param: Option<String>,
    /// What is wrong, for programs.
    pub code: &'static str,
}

/// With its place.
impl fmt::Display for ApiFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.param.as_deref() {
            None | Some("") => f.write_str(&self.message),
            Some(pointer) => write!(f, "{pointer}: {}", self.message),
        }
    }
}

impl ApiFault {
    /// A fault at a place of the body.
    pub fn at(
        pointer: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiFault {
        ApiFault { message: message.into(), param: Some(pointer.into()), code }
    }

    /// A fault of the request as a whole.
    pub fn whole(code: &'static str, message: impl Into<String>) -> ApiFault {
        ApiFault { message: message.into(), param: None, code }
    }
}

/// An answer that is an error. Never without a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.first())]
pub struct ApiError {
    /// Decides the status.
    pub kind: ErrorKind,
    first: ApiFault,
    others: Vec<ApiFault>,
}

impl ApiError {
    /// An error with one fault.
    pub fn new(kind: ErrorKind, fault: ApiFault) -> ApiError {
        ApiError { kind, first: fault, others: Vec::new() }
    }

    /// A request that is wrong in these ways; `Ok` if there are none.
    pub fn refuse(faults: Vec<ApiFault>) -> Result<(), ApiError> {
        let mut faults = faults.into_iter();
        match faults.next() {
            None => Ok(()),
            Some(first) => {
                Err(ApiError { kind: ErrorKind::Invalid, first, others: faults.collect() })
            }
        }
    }

    /// A request that is wrong at one place.
    pub fn invalid(
        pointer: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiError {
        ApiError::new(ErrorKind::Invalid, ApiFault::at(pointer, code, message))
    }

    /// An error without a place in the body.
    pub fn whole(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::new(kind, ApiFault::whole(code, message))
    }

    /// The first fault.
    pub fn first(&self) -> &ApiFault {
        &self.first
    }

    /// All faults.
    pub fn faults(&self) -> impl Iterator<Item = &ApiFault> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The body: OpenAI's shape, and `errors` where there are several.
    pub fn body(&self) -> Value {
        let shape = |fault: &ApiFault| {
            json!({
                "message": fault.to_string(), "type": self.kind.name(), "param": fault.param, "code": fault.code,
            })
        };
        match self.others.is_empty() {
            true => json!({"error": shape(&self.first)}),
            false => {
                json!({"error": shape(&self.first), "errors": self.faults().map(shape).collect::<Vec<_>>()})
            }
        }
    }

    /// The same error with pointers translated, for routes whose bodies have another shape than Chat Completions.
    #[must_use]
    pub fn map_pointers(mut self, translate: impl Fn(&str) -> String) -> ApiError {
        for fault in std::iter::once(&mut self.first).chain(&mut self.others) {
            fault.param = fault.param.take().map(|pointer| translate(&pointer));
        }
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body().to_string()));
        *response.status_mut() = self.kind.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.kind {
            ErrorKind::Busy | ErrorKind::Unavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            ErrorKind::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        // For the log and the metrics.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        ApiError::whole(
            ErrorKind::Invalid,
            "invalid_json",
            format!("the body is not JSON: {error}"),
        )
    }
}

impl From<ToolErrors> for ApiError {
    fn from(errors: ToolErrors) -> Self {
        let fault = |error: louver::spec::tools::ToolError| {
            ApiFault::at(error.pointer, "invalid_tool", error.kind.to_string())
        };
        several(errors.0.into_iter().map(fault).collect(), "/tools")
    }
}

impl From<ToolChoiceError> for ApiError {
    fn from(error: ToolChoiceError) -> Self {
        let message = error.to_string();
        let message = message.strip_prefix("/tool_choice: ").unwrap_or(&message);
        ApiError::invalid("/tool_choice", "invalid_tool_choice", message)
    }
}

impl From<SchemaErrors> for ApiError {
    fn from(errors: SchemaErrors) -> Self {
        let fault = |error: louver::front::json_schema::SchemaError| {
            let code = match error.reason {
                SchemaErrorReason::Malformed(_) => "invalid_schema",
                SchemaErrorReason::Unsupported(_) => "unsupported_schema",
                SchemaErrorReason::Unsatisfiable(_) => "unsatisfiable_schema",
                SchemaErrorReason::Limit(_) => "schema_limit",
                _ => "schema",
            };
            let message = format!("{}; {}", error.reason, error.hint());
            ApiFault::at(error.pointer, code, message)
        };
        several(errors.0.into_iter().map(fault).collect(), "")
    }
}

/// An error of several faults; lists from the lower crates are never empty, and if one were, `place` is at fault.
fn several(faults: Vec<ApiFault>, place: &str) -> ApiError {
    let nothing = || ApiError::invalid(place, "invalid", "refused without a reason");
    ApiError::refuse(faults).err().unwrap_or_else(nothing)
}

impl From<CompileError> for ApiError {
    fn from(error: CompileError) -> Self {
        let code = match error {
            CompileError::Limit { .. } => "grammar_limit",
            CompileError::Empty { .. } => "unsatisfiable",
            _ => "grammar",
        };
        ApiError::whole(ErrorKind::Invalid, code, error.to_string())
    }
}

impl From<LowerError> for ApiError {
    fn from(error: LowerError) -> Self {
        let message = error.to_string();
        match error {
            LowerError::Choice(error) => error.into(),
            LowerError::Schemas(errors) => errors.into(),
            LowerError::Parts(errors) => {
                several(errors.faults().into_iter().map(of_part).collect(), "")
            }
            LowerError::NoReasoning { .. } => {
                ApiError::invalid("/louver/reasoning_budget", "no_reasoning", message)
            }
            LowerError::NoBuiltins { .. } => ApiError::invalid("/tools", "no_builtins", message),
            LowerError::Combination { what } => {
                ApiError::invalid(combination_place(what), "unsupported_combination", message)
            }
            LowerError::TooMuchText { ref pointer, .. } => {
                ApiError::invalid(pointer, "too_much_text", message)
            }
            LowerError::TooManyCalls { .. } => {
                ApiError::invalid("/parallel_tool_calls", "too_many_calls", message)
            }
            _ => ApiError::whole(ErrorKind::Invalid, "grammar", message),
        }
    }
}

/// A fault of a schema, a custom tool or a structural tag.
fn of_part(fault: louver_formats::RequestFault) -> ApiFault {
    let code = if fault.keyword.is_some() { "invalid_schema" } else { "invalid_grammar" };
    ApiFault::at(fault.pointer, code, fault.message)
}

/// The member a combination is about, as far as its words say.
fn combination_place(what: &str) -> &'static str {
    if what.contains("stop string") {
        "/stop"
    } else if what.contains("reasoning") {
        "/louver/reasoning_budget"
    } else if what.contains("tool") {
        "/tools"
    } else {
        "/response_format"
    }
}

impl From<louver_formats::RequestError> for ApiError {
    fn from(error: louver_formats::RequestError) -> Self {
        use louver_formats::RequestError;
        let message = error.to_string();
        match error {
            RequestError::Tools(errors) => errors.into(),
            RequestError::Choice(error) => error.into(),
            RequestError::Builtin { tool, expected } => ApiError::invalid(
                format!("/tools/{tool}"),
                "invalid_tool",
                format!("expected {expected}"),
            ),
            RequestError::Malformed { pointer, expected } => {
                ApiError::invalid(pointer, "invalid_type", format!("must be {expected}"))
            }
            RequestError::UnknownMember { pointer, hint } => ApiError::invalid(
                pointer,
                "unknown_member",
                format!("there is no such member{hint}"),
            ),
            RequestError::StructuralTag(_) => {
                several(error.faults().into_iter().map(of_part).collect(), "/response_format")
            }
            _ => ApiError::whole(ErrorKind::Invalid, "invalid", message),
        }
    }
}

impl From<PlanError> for ApiError {
    fn from(error: PlanError) -> Self {
        let message = error.to_string();
        match error {
            PlanError::Tools(errors) => errors.into(),
            PlanError::Lower(error) => error.into(),
            PlanError::Compile(error) => error.into(),
            PlanError::AlwaysReasons => {
                ApiError::invalid("/reasoning_effort", "always_reasons", message)
            }
            PlanError::Format(_) => ApiError::whole(ErrorKind::Internal, "unknown_format", message),
            _ => ApiError::whole(ErrorKind::Invalid, "plan", message),
        }
    }
}

impl From<louver_mistralrs::RequestError> for ApiError {
    fn from(error: louver_mistralrs::RequestError) -> Self {
        use louver_mistralrs::RequestError;
        let message = error.to_string();
        match error {
            RequestError::Template(_) => ApiError::invalid("/messages", "chat_template", message),
            RequestError::TooLong { .. } | RequestError::TooManyBytes { .. } => {
                ApiError::invalid("/messages", "context_length_exceeded", message)
            }
            RequestError::Host(_) => ApiError::whole(ErrorKind::Unavailable, "host", message),
            RequestError::Unsupported(_) => {
                ApiError::whole(ErrorKind::Invalid, "unsupported", message)
            }
            _ => ApiError::whole(ErrorKind::Internal, "request", message),
        }
    }
}

impl From<GenerationError> for ApiError {
    fn from(error: GenerationError) -> Self {
        let message = error.to_string();
        match error {
            GenerationError::HostGone => {
                ApiError::whole(ErrorKind::Unavailable, "host_gone", message)
            }
            // Masks of the request's schema or grammar need too much work.
            GenerationError::Fault(Fault::Limit(_)) => {
                ApiError::whole(ErrorKind::Invalid, "schema_limit", message)
            }
            GenerationError::Fault(_) => {
                ApiError::whole(ErrorKind::Internal, "generation", message)
            }
            _ => ApiError::whole(ErrorKind::Internal, "host", message),
        }
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use louver::spec::json::Json;
    use louver_formats::{Catalog, ToolRequest};

    use super::*;

    fn lowered(body: &str) -> ApiError {
        let body = Json::parse(body, &Limits::default()).unwrap();
        let request = ToolRequest::parse(&body).unwrap();
        Catalog::builtin().get("qwen3").unwrap().lower(&request).unwrap_err().into()
    }

    #[test]
    fn all_schema_errors_keep_their_pointers() {
        let error = lowered(
            r#"{"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": 5, "minimum": "x"}}},
                {"type": "function", "function": {"name": "b", "parameters": {"allOf": [{"type": "string"}, {"type": "null"}]}}}]}"#,
        );
        let places: Vec<_> = error.faults().map(|f| f.param.clone().unwrap()).collect();
        assert!(
            places.iter().any(|p| p.starts_with("/tools/0/function/parameters/")),
            "{places:?}"
        );
        assert!(places.iter().any(|p| p.starts_with("/tools/1/function/parameters")), "{places:?}");
        let body = error.body();
        assert_eq!(body["error"], body["errors"][0]);
        assert_eq!(body["error"]["type"], "invalid_request_error");
    }

    #[test]
    fn combinations_have_places() {
        let both = r#"{"stop": "x", "response_format": {"type": "json_object"}}"#;
        assert_eq!(lowered(both).first().param.as_deref(), Some("/stop"));
        let marker = r#"{"stop": "<tool_call>", "tools": [{"name": "f"}]}"#;
        assert_eq!(lowered(marker).first().param.as_deref(), Some("/stop"));
    }

    #[test]
    fn the_shape_is_openais() {
        let response = ApiError::invalid("/n", "too_many", "no").into_response();
        assert_eq!(response.status(), 400);
        let error = ApiError::invalid("/n", "too_many", "no").map_pointers(|p| format!("/x{p}"));
        let shape = json!({"error": {"message": "/x/n: no", "type": "invalid_request_error", "param": "/x/n", "code": "too_many"}});
        assert_eq!(error.body(), shape);
        assert!(ApiError::refuse(Vec::new()).is_ok());
        let busy = ApiError::whole(ErrorKind::Busy, "queue_full", "busy").into_response();
        assert_eq!(
            (busy.status().as_u16(), &busy.headers()["retry-after"]),
            (429, &"1".parse().unwrap())
        );
    }
}
