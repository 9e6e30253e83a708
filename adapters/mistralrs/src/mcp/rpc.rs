//! JSON-RPC 2.0 as MCP uses it: messages to a server as text, and those of a server.

use louver::Limits;
use louver::spec::json::{Json, write_string};

/// Longest message of a server, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Most JSON values of a message: each takes many times its text in memory.
const MAX_MESSAGE_VALUES: usize = 200_000;
/// Longest id of a server's request, in bytes. The answer repeats it.
const MAX_ID_BYTES: usize = 128;

/// Error code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;
const NO_METHOD: &str = "this client has no such method";

/// Why there is no result of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum McpFailure {
    /// The server answered with an error of JSON-RPC.
    #[error("{message} (code {code})")]
    Rejected { code: i64, message: String },
    /// The server answered with an HTTP status that is an error.
    #[error("HTTP status {0}")]
    Status(u16),
    /// The server does not know the session any more, and has not read the request.
    #[error("the session has expired")]
    Expired,
    /// There was no reply within the time limit.
    #[error("{0}")]
    Late(String),
    /// There is no reply, or none that can be read.
    #[error("{0}")]
    NoReply(String),
}

impl McpFailure {
    pub(super) fn no_reply(message: impl Into<String>) -> McpFailure {
        McpFailure::NoReply(message.into())
    }
}

/// A message of a server. Notifications are ignored.
pub(super) enum ServerMessage {
    /// The reply to the client's request with this id.
    Reply { id: u64, result: Result<Json, McpFailure> },
    /// A request. The client has no capabilities, so only `ping` has a result.
    Request { answer: String },
}

/// The text of a request. `params` is JSON on one line.
pub(super) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// The text of a notification. `params` is JSON on one line.
pub(super) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// The text of the notification that the client has given up a request.
pub(super) fn cancelled(id: u64) -> String {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

/// A JSON string with this text.
pub(super) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// Reads a message of a server. `None` for notifications and for text that is no message, or one
/// with too many values. Cost: linear.
pub(super) fn read(text: &str) -> Option<ServerMessage> {
    // A value follows a bracket, a colon or a comma.
    let values = text.bytes().filter(|byte| matches!(byte, b'[' | b'{' | b':' | b',')).count();
    if values > MAX_MESSAGE_VALUES {
        return None;
    }
    let limits = Limits::default().with_source_bytes(MAX_MESSAGE_BYTES);
    let (message, _) = Json::parse_repeated(text, &limits).ok()?;
    let id = message.get_non_null("id")?;
    if let Some(method) = message.get("method") {
        let outcome = match method.as_str() {
            Some("ping") => r#""result":{}"#.to_owned(),
            _ => format!(r#""error":{{"code":{METHOD_NOT_FOUND},"message":{NO_METHOD:?}}}"#),
        };
        let is_id = matches!(id, Json::Number(_) | Json::String(_));
        let id = id.to_string();
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#);
        return (is_id && id.len() <= MAX_ID_BYTES).then_some(ServerMessage::Request { answer });
    }
    let Json::Number(id) = id else { return None };
    let id = id.as_str().parse().ok()?;
    let result = match (message.get("result"), message.get("error")) {
        (Some(result), _) => Ok(result.clone()),
        (None, error) => Err(read_error(error)),
    };
    Some(ServerMessage::Reply { id, result })
}

fn read_error(error: Option<&Json>) -> McpFailure {
    let code = match error.and_then(|error| error.get("code")) {
        Some(Json::Number(code)) => code.as_str().parse().ok(),
        _ => None,
    };
    let message = error.and_then(|error| error.get("message")).and_then(Json::as_str);
    let message = message.unwrap_or("an error without a message").to_owned();
    McpFailure::Rejected { code: code.unwrap_or_default(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded() {
        let reply =
            |values: usize| read(&format!(r#"{{"id":1,"result":[{}0]}}"#, "0,".repeat(values)));
        assert!(matches!(reply(100), Some(ServerMessage::Reply { id: 1, result: Ok(_) })));
        assert!(reply(MAX_MESSAGE_VALUES).is_none());
        let ping = |id: &str| match read(&format!(r#"{{"id":{id},"method":"ping"}}"#)) {
            Some(ServerMessage::Request { answer }) => Some(answer),
            _ => None,
        };
        assert_eq!(ping("7").unwrap(), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        assert!(ping(r#""a""#).unwrap().contains(r#""id":"a""#));
        assert_eq!(ping(r#"{"a":1}"#), None);
        assert_eq!(ping(&format!("{:?}", "a".repeat(MAX_ID_BYTES))), None);
    }
}
