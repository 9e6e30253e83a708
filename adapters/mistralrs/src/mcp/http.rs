//! MCP over HTTP: each message to the server is a request, whose response has the reply, as JSON or
//! in a stream of events.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use louver::spec::json::Json;
use reqwest_host::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest_host::redirect::Policy;
use reqwest_host::{Client, Response, StatusCode};
use tokio::runtime::Handle;

use super::rpc::{self, MAX_MESSAGE_BYTES, McpFailure, ServerMessage};

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
/// Time limit for telling a server that a request was given up.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
const EVENT_STREAM: &str = "text/event-stream";
/// Most requests of the server that are answered for one of the client's.
const MAX_ANSWERS: usize = 16;

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
            let (name, mut value): (reqwest_host::header::HeaderName, HeaderValue) =
                pair.ok_or_else(|| McpFailure::no_reply(format!("{name:?} is no header of HTTP")))?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        if let Some(token) = bearer_token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value =
                value.map_err(|_| McpFailure::no_reply("the bearer token is no header"))?;
            value.set_sensitive(true);
            map.insert(AUTHORIZATION, value);
        }
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        map.insert(ACCEPT, accepted);
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(HttpSession {
            // A redirect would send the configured headers to another host.
            client: Client::builder().redirect(Policy::none()).build().map_err(described)?,
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
    pub(super) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: &str,
    ) -> Result<Json, McpFailure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let session = (method != "initialize").then(|| Arc::clone(self));
        let mut pending = CancelOnDrop { session, id };
        let result = self.exchange(id, method, params).await;
        pending.session = None;
        result
    }

    async fn exchange(&self, id: u64, method: &str, params: &str) -> Result<Json, McpFailure> {
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
        let (mut events, mut read_bytes, mut answers) = (EventReader::default(), 0, 0);
        while let Some(piece) = response.chunk().await.map_err(described)? {
            read_bytes += piece.len();
            if read_bytes > MAX_MESSAGE_BYTES {
                return Err(McpFailure::no_reply("the response is too long"));
            }
            events.push(&piece);
            while is_stream && let Some(text) = events.next() {
                if let Some(result) = self.find_reply(id, &text, &mut answers).await {
                    return result;
                }
            }
        }
        let text = String::from_utf8_lossy(&events.bytes);
        let result = if is_stream { None } else { self.find_reply(id, &text, &mut answers).await };
        result.unwrap_or_else(|| Err(McpFailure::no_reply("the response has no reply")))
    }

    /// The reply to a request, if a message is that. Answers a request of the server, unless it has
    /// sent too many; `answers` is their number.
    async fn find_reply(
        &self,
        id: u64,
        text: &str,
        answers: &mut usize,
    ) -> Option<Result<Json, McpFailure>> {
        match rpc::read(text)? {
            ServerMessage::Reply { id: of, result } if of == id => return Some(result),
            ServerMessage::Request { answer } if *answers < MAX_ANSWERS => {
                *answers += 1;
                drop(self.post(answer).await);
            }
            _ => {}
        }
        None
    }
}

/// A request that waits for its reply. If it is dropped, the server is told so: to close the
/// connection does not cancel a request.
struct CancelOnDrop {
    /// `None` once there is a reply, and for `initialize`, which cannot be cancelled.
    session: Option<Arc<HttpSession>>,
    id: u64,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) = (self.session.take(), Handle::try_current()) else {
            return;
        };
        let cancelled = rpc::cancelled(self.id);
        // Best effort.
        runtime.spawn(tokio::time::timeout(CANCEL_TIMEOUT, async move {
            drop(session.notify(cancelled).await);
        }));
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

/// Splits a stream into the data of its events. Cost: linear.
#[derive(Default)]
struct EventReader {
    bytes: Vec<u8>,
    /// Number of these bytes that were read.
    read: usize,
    /// Number of these bytes after which to search a line feed.
    searched: usize,
    /// The data of the event that is not complete.
    data: String,
}

impl EventReader {
    /// Adds bytes of the stream.
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The data of the next complete event.
    fn next(&mut self) -> Option<String> {
        loop {
            let unread = &self.bytes[self.searched..];
            let Some(at) = unread.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.bytes.len();
                return None;
            };
            let end = self.searched + at;
            let line = String::from_utf8_lossy(&self.bytes[self.read..end]);
            let line = line.strip_suffix('\r').unwrap_or(&line);
            (self.read, self.searched) = (end + 1, end + 1);
            if let Some(data) = line.strip_prefix("data:") {
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
                self.data.push('\n');
            } else if line.is_empty() && !self.data.is_empty() {
                return Some(std::mem::take(&mut self.data));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configured headers would go to the other host.
    #[tokio::test]
    async fn redirects_are_not_followed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            assert!(tokio::io::AsyncReadExt::read(&mut stream, &mut head).await.unwrap() > 0);
            let redirect = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{address}/other\r\n\
                 content-length: 0\r\n\r\n"
            );
            tokio::io::AsyncWriteExt::write_all(&mut stream, redirect.as_bytes()).await.unwrap();
        };
        let header = ("x-api-key".to_owned(), "secret".to_owned());
        let headers = std::iter::once((&header.0, &header.1));
        let session = HttpSession::new(&format!("http://{address}/mcp"), headers, None).unwrap();
        let session = Arc::new(session);
        let (result, ()) = tokio::join!(session.request("ping", "{}"), server);
        assert_eq!(result, Err(McpFailure::Status(307)));
    }

    #[tokio::test]
    async fn requests_that_are_given_up_are_cancelled() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let session = HttpSession::new(&url, std::iter::empty(), None).unwrap();
        let session = Arc::new(session);
        let received = async |end: &str| {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !String::from_utf8_lossy(&request).contains(end) {
                let read = tokio::io::AsyncReadExt::read_buf(&mut stream, &mut request).await;
                assert_ne!(read.unwrap(), 0, "{}", String::from_utf8_lossy(&request));
            }
            stream
        };
        tokio::select! {
            result = session.request("tools/call", "{}") => panic!("{result:?}"),
            _open = received(r#""method":"tools/call","params":{}}"#) => {}
        }
        let cancelled = received(r#""notifications/cancelled","params":{"requestId":1}}"#);
        tokio::time::timeout(Duration::from_secs(60), cancelled).await.unwrap();
    }

    #[test]
    fn events_are_read_in_any_pieces() {
        let stream =
            ": hello\n\nevent: message\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:2\n\ndata: 3";
        for size in 1..stream.len() {
            let (mut reader, mut events) = (EventReader::default(), Vec::new());
            for piece in stream.as_bytes().chunks(size) {
                reader.push(piece);
                events.extend(std::iter::from_fn(|| reader.next()));
            }
            assert_eq!(events, ["{\"a\":\n1}\n", "2\n"], "{size}");
        }
    }
}
