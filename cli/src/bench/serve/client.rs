//! A client of the chat route, which reads complete and streamed responses into the same form.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use serde_json::Value;

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// An HTTP client of one server. Cheap to clone; connections are reused.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    root: String,
}

/// A tool call in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// A response with one choice.
#[derive(Clone, Debug, Default)]
pub(super) struct ChatResponse {
    pub(super) status: u16,
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) finish: Option<String>,
    pub(super) tokens: u64,
    /// The member `louver`.
    pub(super) louver: Value,
    /// The error's body.
    pub(super) error: Option<Value>,
    pub(super) took: Duration,
    /// Number of stream chunks.
    pub(super) chunks: usize,
}

impl Client {
    pub(super) fn new(root: String) -> Result<Client> {
        Ok(Client {
            http: reqwest::Client::builder().timeout(REQUEST_TIMEOUT).no_proxy().build()?,
            root,
        })
    }

    /// Creates a client that shares no connections with this one.
    pub(super) fn separate_connection(&self) -> Result<Client> {
        Client::new(self.root.clone())
    }

    /// Sends a chat request and reads the whole response.
    pub(super) async fn send_chat(&self, body: &Value) -> Result<ChatResponse> {
        self.read(body.to_string().into_bytes(), usize::MAX).await
    }

    /// Sends a streaming request and disconnects after `chunks` chunks. Returns whether the stream
    /// was longer.
    pub(super) async fn read_partially(&self, body: &Value, chunks: usize) -> Result<()> {
        self.read(body.to_string().into_bytes(), chunks).await.map(drop)
    }

    /// Sends arbitrary bytes as the body.
    pub(super) async fn send(&self, body: Vec<u8>) -> Result<ChatResponse> {
        self.read(body, usize::MAX).await
    }

    /// Gets a route's status and text.
    pub(super) async fn get(&self, path: &str) -> Result<(u16, String)> {
        let response = self.http.get(format!("{}{path}", self.root)).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    /// Posts a body to a route and discards the response. Returns the status.
    pub(super) async fn post(&self, path: &str, body: Vec<u8>) -> Result<u16> {
        let response = self.request(path, body).send().await?;
        let status = response.status().as_u16();
        response.bytes().await?;
        Ok(status)
    }

    fn request(&self, path: &str, body: Vec<u8>) -> reqwest::RequestBuilder {
        let request = self.http.post(format!("{}{path}", self.root));
        request.header("content-type", "application/json").body(body)
    }

    async fn read(&self, body: Vec<u8>, max_chunks: usize) -> Result<ChatResponse> {
        let started = Instant::now();
        let http_response = self.request("/v1/chat/completions", body).send().await?;
        let mut response =
            ChatResponse { status: http_response.status().as_u16(), ..ChatResponse::default() };
        let kind = http_response
            .headers()
            .get("content-type")
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            let mut bytes = http_response.bytes_stream();
            let mut events = SseDecoder::default();
            let mut done = false;
            while response.chunks < max_chunks {
                let Some(piece) = bytes.next().await else { break };
                for data in events.push(&piece?) {
                    if data == "[DONE]" {
                        done = true;
                        continue;
                    }
                    response.chunks += 1;
                    response
                        .read_chunk(&serde_json::from_str(&data).context("a chunk is not JSON")?);
                }
            }
            if !done && response.chunks < max_chunks && response.error.is_none() {
                bail!("the stream ended without [DONE]");
            }
        } else {
            let text = http_response.text().await?;
            let value: Value =
                serde_json::from_str(&text).with_context(|| format!("not JSON: {text}"))?;
            response.read_body(&value);
        }
        response.took = started.elapsed();
        Ok(response)
    }
}

impl ChatResponse {
    fn read_body(&mut self, value: &Value) {
        self.error = value.get("error").cloned();
        self.read_common_members(value);
        let choice = &value["choices"][0];
        self.finish = choice["finish_reason"].as_str().map(str::to_owned);
        let message = &choice["message"];
        self.text = string(&message["content"]);
        self.reasoning = string(&message["reasoning_content"]);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            self.calls.push(ToolCall {
                name: string(&function["name"]),
                arguments: string(&function["arguments"]),
            });
        }
    }

    fn read_chunk(&mut self, value: &Value) {
        if let Some(error) = value.get("error") {
            self.error = Some(error.clone());
        }
        self.read_common_members(value);
        let choice = &value["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        let delta = &choice["delta"];
        self.text.push_str(delta["content"].as_str().unwrap_or_default());
        self.reasoning.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap_or(0) as usize;
            let function = &call["function"];
            if index == self.calls.len() {
                self.calls
                    .push(ToolCall { name: string(&function["name"]), arguments: String::new() });
            }
            if let Some(known) = self.calls.get_mut(index) {
                known.arguments.push_str(function["arguments"].as_str().unwrap_or_default());
            }
        }
    }

    fn read_common_members(&mut self, value: &Value) {
        if let Some(tokens) = value["usage"]["completion_tokens"].as_u64() {
            self.tokens = tokens;
        }
        if let Some(louver) = value.get("louver") {
            self.louver = louver.clone();
        }
    }

    /// A time of the response's report.
    pub(super) fn timing_ns(&self, name: &str) -> Option<u64> {
        Some((self.louver["timing"][name].as_f64()? * 1e3) as u64)
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Decodes server-sent events to their data.
#[derive(Debug, Default)]
struct SseDecoder(Vec<u8>);

impl SseDecoder {
    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some(end) = self.0.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = self.0.drain(..end + 2).collect();
            let event = String::from_utf8_lossy(&event).into_owned();
            let data: Vec<&str> = event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(str::trim)
                .collect();
            if !data.is_empty() {
                found.push(data.join("\n"));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_decoded_at_every_split() {
        let text = ": note\n\ndata: {\"a\":1}\n\ndata:x\ndata: y\n\ndata: [DONE]\n\n";
        for cut in 0..text.len() {
            let mut events = SseDecoder::default();
            let mut found = events.push(&text.as_bytes()[..cut]);
            found.extend(events.push(&text.as_bytes()[cut..]));
            assert_eq!(found, ["{\"a\":1}", "x\ny", "[DONE]"]);
        }
    }
}
