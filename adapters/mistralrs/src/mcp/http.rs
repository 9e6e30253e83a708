//! MCP over HTTP: each message to the server is a request, whose response has the reply, as JSON or
//! in a stream of events.

use std::error::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use louver::spec::json::Json;
use reqwest_host::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest_host::{Client, Response, StatusCode};

use super::rpc::{self, MAX_MESSAGE_BYTES, McpFailure, ServerMessage};

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
const EVENT_STREAM: &str = "text/event-stream";

/// A server at a URL, with the state that its headers carry.
pub(super) struct HttpSession {
    client: Client,
    url: String,
    headers: HeaderMap,
    /// The id that the server gave the session, if it did.
    id: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    next_id: AtomicU64,
    is_lost: AtomicBool,
}

impl HttpSession {
    pub(super) fn new<'h>(
        url: &str,
        headers: impl Iterator<Item = (&'h String, &'h String)>,
        bearer_token: Option<&str>,
    ) -> Result<HttpSession, McpFailure> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let pair = name.parse().ok().zip(value.parse().ok());
            let (name, value): (reqwest_host::header::HeaderName, HeaderValue) =
                pair.ok_or_else(|| McpFailure::no_reply(format!("{name:?} is no header of HTTP")))?;
            map.insert(name, value);
        }
        if let Some(token) = bearer_token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let value = value.map_err(|_| McpFailure::no_reply("the bearer token is no header"))?;
            map.insert(AUTHORIZATION, value);
        }
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        map.insert(ACCEPT, accepted);
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(HttpSession {
            client: Client::builder().build().map_err(described)?,
            url: url.to_owned(),
            headers: map,
            id: OnceLock::new(),
            version: OnceLock::new(),
            next_id: AtomicU64::new(1),
            is_lost: AtomicBool::new(false),
        })
    }

    /// Sets the version of the protocol, which further requests name.
    pub(super) fn set_version(&self, version: Option<&str>) {
        if let Some(Ok(version)) = version.map(HeaderValue::from_str) {
            let _ = self.version.set(version);
        }
    }

    /// Sends a request and waits for its reply.
    pub(super) async fn request(&self, method: &str, params: &str) -> Result<Json, McpFailure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let response = self.post(rpc::request(id, method, params)).await?;
        if let Some(session) = response.headers().get(SESSION_HEADER) {
            let _ = self.id.set(session.clone());
        }
        let status = response.status();
        let result = match status {
            StatusCode::NOT_FOUND if self.id.get().is_some() => Err(McpFailure::Expired),
            _ => self.reply(id, response).await,
        };
        match result {
            Err(McpFailure::NoReply(_)) if !status.is_success() => {
                self.lose();
                Err(McpFailure::Status(status.as_u16()))
            }
            Err(McpFailure::Expired) => {
                self.lose();
                result
            }
            result => result,
        }
    }

    /// Sends a message that has no reply.
    pub(super) async fn notify(&self, message: String) -> Result<(), McpFailure> {
        let response = self.post(message).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(McpFailure::Status(status.as_u16())),
        }
    }

    /// Whether no request has failed in a way that may be the session's.
    pub(super) fn is_open(&self) -> bool {
        !self.is_lost.load(Ordering::Relaxed)
    }

    fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    async fn post(&self, message: String) -> Result<Response, McpFailure> {
        let mut request = self.client.post(&self.url).headers(self.headers.clone());
        for (name, value) in [(SESSION_HEADER, &self.id), (VERSION_HEADER, &self.version)] {
            if let Some(value) = value.get() {
                request = request.header(name, value);
            }
        }
        let sent = request.body(message).send().await;
        sent.map_err(|error| {
            self.lose();
            described(error)
        })
    }

    /// The reply to a request in its response.
    async fn reply(&self, id: u64, mut response: Response) -> Result<Json, McpFailure> {
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|t| t.to_str().ok());
        let is_stream = content_type.is_some_and(|t| t.starts_with(EVENT_STREAM));
        let (mut events, mut read_bytes) = (EventReader::default(), 0);
        while let Some(piece) = response.chunk().await.map_err(described)? {
            read_bytes += piece.len();
            if read_bytes > MAX_MESSAGE_BYTES {
                return Err(McpFailure::no_reply("the response is too long"));
            }
            events.bytes.extend_from_slice(&piece);
            while is_stream && let Some(text) = events.next() {
                if let Some(result) = self.find_reply(id, &text).await {
                    return result;
                }
            }
        }
        let text = String::from_utf8_lossy(&events.bytes);
        let result = if is_stream { None } else { self.find_reply(id, &text).await };
        result.unwrap_or_else(|| Err(McpFailure::no_reply("the response has no reply")))
    }

    /// The reply to a request among the messages of a text. Answers the server's own requests.
    async fn find_reply(&self, id: u64, text: &str) -> Option<Result<Json, McpFailure>> {
        for message in rpc::read(text).unwrap_or_default() {
            match message {
                ServerMessage::Reply { id: of, result } if of == id => return Some(result),
                ServerMessage::Reply { .. } => {}
                ServerMessage::Request { answer } => drop(self.post(answer).await),
            }
        }
        None
    }
}

/// An error with its causes. Without the URL, which may have secrets: clients see the text.
fn described(error: reqwest_host::Error) -> McpFailure {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    McpFailure::NoReply(text)
}

/// Splits a stream into the data of its events.
#[derive(Default)]
struct EventReader {
    /// What is not yet read.
    bytes: Vec<u8>,
    /// Number of these bytes that have no line feed.
    searched: usize,
    /// The data of the event that is not complete.
    data: String,
}

impl EventReader {
    /// The data of the next complete event.
    fn next(&mut self) -> Option<String> {
        let mut read = 0;
        let mut event = None;
        while event.is_none() {
            let unread = &self.bytes[read..];
            let Some(at) = unread[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.searched = unread.len();
                break;
            };
            let line = String::from_utf8_lossy(&unread[..self.searched + at]);
            let line = line.strip_suffix('\r').unwrap_or(&line);
            read += self.searched + at + 1;
            self.searched = 0;
            if let Some(data) = line.strip_prefix("data:") {
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
                self.data.push('\n');
            } else if line.is_empty() && !self.data.is_empty() {
                event = Some(std::mem::take(&mut self.data));
            }
        }
        self.bytes.drain(..read);
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_in_any_pieces() {
        let stream =
            ": hello\n\nevent: message\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:2\n\ndata: 3";
        for size in 1..stream.len() {
            let (mut reader, mut events) = (EventReader::default(), Vec::new());
            for piece in stream.as_bytes().chunks(size) {
                reader.bytes.extend_from_slice(piece);
                events.extend(std::iter::from_fn(|| reader.next()));
            }
            assert_eq!(events, ["{\"a\":\n1}\n", "2\n"], "{size}");
        }
    }
}
