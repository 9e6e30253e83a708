//! Errors, in OpenAI's format unless a route has another:
//! `{"error": {"message", "type", "param", "code"}}`, where `param` is a JSON pointer into the
//! request body. If a request has several faults, `error` is the first one and `errors` lists all.

use std::fmt;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use louver::compile::CompileError;
use louver::front::json_schema::{SchemaError, SchemaErrorReason};
use louver::spec::json::JsonError;
use louver_formats::{LowerError, MemberErrorKind, RequestError, RequestErrors};
use louver_mistralrs::{
    EnforcementError, GenerationError, PlanError, SendError, without_backtraces,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::limits::Seconds;
use crate::request::pointers::PointerMap;

/// The code of a request whose work has reached its deadline.
pub(crate) const DEADLINE: &str = "timeout";

/// The header by which the official clients of both APIs know whether to repeat a request.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The category of an error. It decides the HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid or unsupported: 400.
    Invalid,
    /// The API key is missing or invalid: 401.
    Unauthorized,
    /// The request's `Host` or `Origin` is not allowed: 403.
    Forbidden,
    /// The route, model or resource does not exist: 404.
    NotFound,
    /// The method is not allowed on this route: 405.
    Method,
    /// The request took too long to arrive or to process: 408.
    Timeout,
    /// The body is too long: 413.
    TooLarge,
    /// The content type is not JSON: 415.
    MediaType,
    /// The request queue is full, or the request waited too long: 429.
    Busy,
    /// The host or the server failed: 500.
    Internal,
    /// The server is stopping, or its host has died: 503.
    Unavailable,
}

impl ErrorKind {
    /// The HTTP status.
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

    /// The error's `type` in OpenAI's API.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Forbidden => "permission_error",
            ErrorKind::Busy => "rate_limit_error",
            ErrorKind::Timeout => "timeout_error",
            ErrorKind::Internal | ErrorKind::Unavailable => "server_error",
            ErrorKind::Invalid
            | ErrorKind::Unauthorized
            | ErrorKind::NotFound
            | ErrorKind::Method
            | ErrorKind::TooLarge
            | ErrorKind::MediaType => "invalid_request_error",
        }
    }
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiFault {
    /// A description for people.
    pub message: String,
    /// A JSON pointer to the invalid member of the body.
    pub param: Option<String>,
    /// A stable code for programs.
    pub code: &'static str,
}

/// The message, preceded by the pointer.
impl fmt::Display for ApiFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.param.as_deref() {
            None | Some("") => f.write_str(&self.message),
            Some(pointer) => write!(f, "{pointer}: {}", self.message),
        }
    }
}

impl ApiFault {
    /// A fault of the member at a JSON pointer. Of a long pointer or message, the middle is left
    /// out.
    pub fn at(
        pointer: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiFault {
        let param = Some(without_middle(pointer.into()));
        ApiFault { param, ..ApiFault::general(code, message) }
    }

    /// A list with more than `limit` items.
    pub(crate) fn too_many(pointer: impl Into<String>, limit: usize, items: &str) -> ApiFault {
        ApiFault::at(pointer, "too_many", format!("at most {limit} {items}"))
    }

    /// A fault of the request as a whole. Of a long message, the middle is left out.
    pub fn general(code: &'static str, message: impl Into<String>) -> ApiFault {
        ApiFault { message: without_middle(message.into()), param: None, code }
    }
}

/// Longest text of a fault, in bytes. Pointers and messages quote names of the request, which may
/// have megabytes.
const MAX_FAULT_BYTES: usize = 2_000;

/// Leaves out the middle of a text that is too long for a fault.
pub(crate) fn without_middle(text: String) -> String {
    if text.len() <= MAX_FAULT_BYTES {
        return text;
    }
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let head = boundary(MAX_FAULT_BYTES / 4 * 3);
    let tail = boundary(text.len() - MAX_FAULT_BYTES / 4);
    format!("{} [...] {}", &text[..head], &text[tail..])
}

/// Maximum number of faults of a request that are reported.
pub(crate) const MAX_FAULTS: usize = 100;

/// An error response. It has at least one fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.first())]
pub struct ApiError {
    /// The category, which decides the status.
    pub kind: ErrorKind,
    first: ApiFault,
    others: Vec<ApiFault>,
}

impl ApiError {
    /// An error with one fault.
    pub fn new(kind: ErrorKind, fault: ApiFault) -> ApiError {
        ApiError { kind, first: fault, others: Vec::new() }
    }

    /// Rejects a request with these faults; `Ok` if there are none. Only the first 100 are kept.
    pub fn reject(faults: impl IntoIterator<Item = ApiFault>) -> Result<(), ApiError> {
        let mut faults = faults.into_iter().take(MAX_FAULTS);
        match faults.next() {
            None => Ok(()),
            Some(first) => {
                Err(ApiError { kind: ErrorKind::Invalid, first, others: faults.collect() })
            }
        }
    }

    /// An invalid request with one fault.
    pub fn invalid(
        pointer: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiError {
        ApiError::new(ErrorKind::Invalid, ApiFault::at(pointer, code, message))
    }

    /// An error that concerns no particular member.
    pub fn general(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::new(kind, ApiFault::general(code, message))
    }

    /// Work that has reached a limit on its time, by the limit's name in a configuration.
    pub(crate) fn timeout(code: &'static str, limit: &str, value: Seconds) -> ApiError {
        let message = format!("took longer than `limits.{limit}` ({} s)", value.0.as_secs_f64());
        ApiError::general(ErrorKind::Timeout, code, message)
    }

    /// The server takes no more requests.
    pub(crate) fn stopping() -> ApiError {
        ApiError::general(ErrorKind::Unavailable, "stopping", "the server is stopping")
    }

    /// The first fault.
    pub fn first(&self) -> &ApiFault {
        &self.first
    }

    /// All faults.
    pub fn faults(&self) -> impl Iterator<Item = &ApiFault> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The response body in OpenAI's format, with `errors` if there are several faults.
    pub fn body(&self) -> Value {
        let error_json = |fault: &ApiFault| {
            json!({
                "message": fault.to_string(),
                "type": self.kind.name(),
                "param": fault.param,
                "code": fault.code,
            })
        };
        let mut body = json!({"error": error_json(&self.first)});
        if !self.others.is_empty() {
            body["errors"] = self.faults().map(error_json).collect();
        }
        body
    }

    /// The error with this pointer for the faults that have none.
    #[must_use]
    pub(crate) fn with_pointer(mut self, pointer: &str) -> ApiError {
        for fault in std::iter::once(&mut self.first).chain(&mut self.others) {
            fault.param.get_or_insert_with(|| pointer.to_owned());
        }
        self
    }

    /// Translates the JSON pointers to those of the body as sent.
    #[must_use]
    pub(crate) fn map_pointers(mut self, pointers: &PointerMap) -> ApiError {
        for fault in std::iter::once(&mut self.first).chain(&mut self.others) {
            fault.param = fault.param.take().map(|pointer| pointers.original(&pointer));
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
            // Clients repeat a 408, which would do the same work as often again.
            ErrorKind::Timeout if self.first.code == DEADLINE => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
            }
            _ => {}
        }
        // The middleware reads the error for the log and the metrics.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        ApiError::general(
            ErrorKind::Invalid,
            "invalid_json",
            format!("the body is not JSON: {error}"),
        )
    }
}

fn schema_fault(error: SchemaError) -> ApiFault {
    let code = match error.reason {
        SchemaErrorReason::Malformed(_) => "invalid_schema",
        SchemaErrorReason::Unsupported(_) => "unsupported_schema",
        SchemaErrorReason::Unsatisfiable(_) => "unsatisfiable_schema",
        SchemaErrorReason::Limit(_) => "schema_limit",
        _ => "schema",
    };
    let hint = match error.reason {
        // Requests set neither limits nor the policy.
        SchemaErrorReason::Limit(_) => {
            "simplify the schema; limits (`limits.schema`) and their relaxation (`policy`) are \
             settings of the server"
        }
        _ => error.hint(),
    };
    let message = format!("{}; {hint}", error.reason);
    ApiFault::at(error.pointer, code, message)
}

/// An error with several faults. Lists from lower crates are never empty; an empty one would become
/// a fault at `pointer`.
fn from_faults(faults: impl IntoIterator<Item = ApiFault>, pointer: &str) -> ApiError {
    let no_fault = || ApiError::invalid(pointer, "invalid", "refused without a reason");
    ApiError::reject(faults).err().unwrap_or_else(no_fault)
}

impl From<CompileError> for ApiError {
    fn from(error: CompileError) -> Self {
        let code = match error {
            _ if error.is_limit() => "grammar_limit",
            CompileError::Empty { .. } => "unsatisfiable",
            _ => "grammar",
        };
        ApiError::general(ErrorKind::Invalid, code, error.to_string())
    }
}

impl From<LowerError> for ApiError {
    fn from(error: LowerError) -> Self {
        let message = error.to_string();
        match error {
            LowerError::Parts(errors) => {
                let grammars = errors.grammar_faults().into_iter().map(grammar_fault);
                let faults = errors.schemas.into_iter().map(schema_fault).chain(grammars);
                from_faults(faults, "")
            }
            other => {
                let code = match other {
                    LowerError::Choice(_) => "invalid_tool_choice",
                    LowerError::NoReasoning { .. } => "no_reasoning",
                    LowerError::NoBuiltins { .. } => "no_builtins",
                    LowerError::Combination { .. } => "unsupported_combination",
                    LowerError::TooMuchText { .. } => "too_much_text",
                    LowerError::TooManyCalls { .. } => "too_many_calls",
                    _ => return ApiError::general(ErrorKind::Invalid, "grammar", message),
                };
                let faults = other.faults().into_iter();
                let faults = faults.map(|fault| ApiFault::at(fault.pointer, code, fault.message));
                from_faults(faults, "")
            }
        }
    }
}

/// A fault in a custom tool or a structural tag.
fn grammar_fault(fault: louver_formats::RequestFault) -> ApiFault {
    ApiFault::at(fault.pointer, "invalid_grammar", fault.message)
}

impl From<RequestErrors> for ApiError {
    fn from(errors: RequestErrors) -> Self {
        let faults = |error: &RequestError| {
            let code = match error {
                RequestError::Tool(_) => "invalid_tool",
                RequestError::Choice(_) => "invalid_tool_choice",
                RequestError::StructuralTag(_) => "invalid_grammar",
                RequestError::Member(error) => match error.kind {
                    MemberErrorKind::UnknownMember { .. } => "unknown_member",
                    _ => "invalid_type",
                },
                _ => "invalid",
            };
            let faults = error.faults().into_iter();
            faults.map(move |fault| ApiFault::at(fault.pointer, code, fault.message))
        };
        from_faults(errors.0.iter().flat_map(faults), "")
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
            PlanError::Format(_) => {
                ApiError::general(ErrorKind::Internal, "unknown_format", message)
            }
            _ => ApiError::general(ErrorKind::Invalid, "plan", message),
        }
    }
}

impl From<SendError> for ApiError {
    fn from(error: SendError) -> Self {
        let message = error.to_string();
        match error {
            SendError::Template(_) => ApiError::invalid("/messages", "chat_template", message),
            SendError::TooLong { .. } | SendError::TooManyBytes { .. } => {
                ApiError::invalid("/messages", "context_length_exceeded", message)
            }
            SendError::EmptyPrompt | SendError::UnknownToken { .. } => {
                ApiError::invalid("/messages", "invalid_prompt", message)
            }
            SendError::Host(_) => ApiError::general(ErrorKind::Unavailable, "host", message),
            SendError::Unsupported(_) => {
                ApiError::general(ErrorKind::Invalid, "unsupported", message)
            }
            _ => ApiError::general(ErrorKind::Internal, "request", message),
        }
    }
}

impl From<GenerationError> for ApiError {
    fn from(error: GenerationError) -> Self {
        // The log has the whole text.
        let message = without_backtraces(&error.to_string());
        match error {
            GenerationError::HostGone => {
                ApiError::general(ErrorKind::Unavailable, "host_gone", message)
            }
            // A mask of the request's schema or grammar exceeds its fuel.
            GenerationError::Enforcement(EnforcementError::Limit(_)) => {
                ApiError::general(ErrorKind::Invalid, "schema_limit", message)
            }
            GenerationError::Enforcement(_) => {
                ApiError::general(ErrorKind::Internal, "generation", message)
            }
            _ => ApiError::general(ErrorKind::Internal, "host", message),
        }
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;
    use louver::spec::json::Json;
    use louver_formats::{Catalog, ToolRequest};

    use super::*;

    fn lower_error(body: &str) -> ApiError {
        let body = Json::parse(body, &Limits::default()).unwrap();
        let request = ToolRequest::parse(&body).unwrap();
        Catalog::shipped().get("qwen3").unwrap().lower(&request).unwrap_err().into()
    }

    #[test]
    fn schema_errors_keep_their_pointers() {
        let error = lower_error(
            r#"{"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": 5, "minimum": "x"}}},
                {"type": "function", "function": {"name": "b", "parameters": {"allOf": [{"type": "string"}, {"type": "null"}]}}}]}"#,
        );
        let pointers: Vec<_> = error.faults().map(|f| f.param.clone().unwrap()).collect();
        assert!(
            pointers.iter().any(|p| p.starts_with("/tools/0/function/parameters/")),
            "{pointers:?}"
        );
        assert!(
            pointers.iter().any(|p| p.starts_with("/tools/1/function/parameters")),
            "{pointers:?}"
        );
        let body = error.body();
        assert_eq!(body["error"], body["errors"][0]);
        assert_eq!(body["error"]["type"], "invalid_request_error");
    }

    #[test]
    fn faults_are_bounded_in_number_and_length() {
        let fault = || ApiFault::at("/a".repeat(5_000), "invalid", "\u{e9}".repeat(5_000));
        assert!(fault().to_string().len() < 5_000);
        let error = ApiError::reject(std::iter::repeat_with(fault)).unwrap_err();
        assert_eq!(error.faults().count(), MAX_FAULTS);
    }

    #[test]
    fn backtraces_of_the_host_are_not_sent() {
        let text =
            "no matmul\n   0: candle_core::error::Error::bt\n             at /src/a.rs:1:2\n";
        let error = ApiError::from(GenerationError::Host(text.to_owned()));
        assert_eq!(error.first().message, "the host failed: no matmul");
    }

    #[test]
    fn unsupported_combinations_name_a_member() {
        let marker = r#"{"stop": "<tool_call>", "tools": [{"name": "f"}]}"#;
        assert_eq!(lower_error(marker).first().param.as_deref(), Some("/stop"));
    }

    #[test]
    fn error_bodies_have_openais_format() {
        let response = ApiError::invalid("/n", "too_many", "no").into_response();
        assert_eq!(response.status(), 400);
        let mut pointers = PointerMap::default();
        pointers.insert("/n", "/x/n");
        let error = ApiError::invalid("/n", "too_many", "no").map_pointers(&pointers);
        let error_json = json!({"error": {"message": "/x/n: no", "type": "invalid_request_error", "param": "/x/n", "code": "too_many"}});
        assert_eq!(error.body(), error_json);
        assert!(ApiError::reject([]).is_ok());
        let busy = ApiError::general(ErrorKind::Busy, "queue_full", "busy").into_response();
        assert_eq!(
            (busy.status().as_u16(), &busy.headers()["retry-after"]),
            (429, &"1".parse().unwrap())
        );
    }
}
