//! A connection to one MCP server, which is made again after it was lost.

use std::sync::Arc;
use std::time::Duration;

use louver::spec::json::Json;
use mistralrs::McpServerSource;
use serde_json::json;
use tokio::sync::Mutex;

use super::http::HttpSession;
use super::process::ProcessSession;
use super::rpc::{self, McpFailure};

/// Time limit for starting a server and listing its tools.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Version of the protocol that the client asks for. Any version that the server selects is
/// accepted: the methods used exist in all of them.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// Highest number of pages of a list of tools.
const MAX_PAGES: usize = 100;

/// Memory of a list of tools, in bytes.
const MAX_TOOLS_BYTES: usize = 16 << 20;

/// A server, with the session that is open, if any.
pub(super) struct McpConnection {
    source: McpServerSource,
    bearer_token: Option<String>,
    /// Time limit of one call. It includes connecting again.
    timeout: Duration,
    connect_timeout: Duration,
    /// Locked while a session begins, so that there is one at a time.
    session: Mutex<Option<Arc<McpSession>>>,
}

impl McpConnection {
    /// A server that is not yet connected.
    pub(super) fn new(
        source: McpServerSource,
        bearer_token: Option<String>,
        timeout: Duration,
    ) -> McpConnection {
        let (connect_timeout, session) = (CONNECT_TIMEOUT, Mutex::new(None));
        McpConnection { source, bearer_token, timeout, connect_timeout, session }
    }

    /// The descriptions of the server's tools, all pages. Connects before.
    pub(super) async fn tools(&self) -> Result<Vec<Json>, McpFailure> {
        within(self.connect_timeout, "the server was not ready", self.pages_of_tools()).await
    }

    async fn pages_of_tools(&self) -> Result<Vec<Json>, McpFailure> {
        let (mut tools, mut bytes) = (Vec::new(), 0);
        let mut params = "{}".to_owned();
        for _ in 0..MAX_PAGES {
            let page = self.request("tools/list", &params).await?;
            let Some(listed) = page.get("tools").and_then(Json::as_array) else {
                return Err(McpFailure::no_reply("the reply has no list of tools"));
            };
            bytes += page.bytes();
            if bytes > MAX_TOOLS_BYTES {
                return Err(McpFailure::no_reply("the list of tools is too long"));
            }
            tools.extend(listed.iter().cloned());
            let cursor = page.get("nextCursor").and_then(Json::as_str);
            match cursor.filter(|cursor| !cursor.is_empty()) {
                Some(cursor) => params = format!(r#"{{"cursor":{}}}"#, rpc::string(cursor)),
                None => return Ok(tools),
            }
        }
        Err(McpFailure::no_reply(format!("the list of tools has more than {MAX_PAGES} pages")))
    }

    /// Calls a tool. `arguments` is JSON on one line. Connects before if the connection is lost.
    pub(super) async fn call(&self, tool: &str, arguments: &str) -> Result<Json, McpFailure> {
        let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, rpc::string(tool));
        within(self.timeout, "no reply", self.request("tools/call", &params)).await
    }

    /// Sends a request and waits for its reply.
    async fn request(&self, method: &str, params: &str) -> Result<Json, McpFailure> {
        match self.session().await?.request(method, params).await {
            // The server has not read the request, so that it may be sent again.
            Err(McpFailure::Expired) => self.session().await?.request(method, params).await,
            result => result,
        }
    }

    /// The open session, or a new one. The old one's process ends.
    async fn session(&self) -> Result<Arc<McpSession>, McpFailure> {
        let mut session = self.session.lock().await;
        if let Some(open) = session.as_ref().filter(|session| session.is_open()) {
            return Ok(Arc::clone(open));
        }
        let begun = McpSession::begin(&self.source, self.bearer_token.as_deref()).await;
        let begun = Arc::new(begun?);
        *session = Some(Arc::clone(&begun));
        Ok(begun)
    }
}

/// Bounds the time of work. `what` did not happen if it takes longer.
async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, McpFailure>>,
) -> Result<T, McpFailure> {
    let seconds = limit.as_secs_f64();
    let late = |_| Err(McpFailure::no_reply(format!("{what} within {seconds} s")));
    tokio::time::timeout(limit, work).await.unwrap_or_else(late)
}

/// An initialized session with a server.
enum McpSession {
    Process(ProcessSession),
    Http(Box<HttpSession>),
}

impl McpSession {
    async fn begin(
        source: &McpServerSource,
        bearer_token: Option<&str>,
    ) -> Result<McpSession, McpFailure> {
        let session = match source {
            McpServerSource::Process { command, args, work_dir, env } => {
                let mut program = tokio::process::Command::new(command);
                // The keys of the server's own clients are not for its tools.
                program.env_remove("LOUVER_API_KEY").args(args).envs(env.iter().flatten());
                if let Some(folder) = work_dir {
                    program.current_dir(folder);
                }
                McpSession::Process(ProcessSession::start(program)?)
            }
            McpServerSource::Http { url, headers, .. } => {
                let headers = headers.iter().flatten();
                McpSession::Http(Box::new(HttpSession::new(url, headers, bearer_token)?))
            }
            _ => {
                let message = "WebSockets are no transport of MCP: use a process or HTTP";
                return Err(McpFailure::no_reply(message));
            }
        };
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "louver", "version": env!("CARGO_PKG_VERSION")},
        });
        let result = session.request("initialize", &params.to_string()).await?;
        let initialized = rpc::notification("notifications/initialized", "{}");
        match &session {
            McpSession::Process(process) => process.send(initialized).await?,
            McpSession::Http(http) => {
                http.set_version(result.get("protocolVersion").and_then(Json::as_str));
                http.notify(initialized).await?;
            }
        }
        Ok(session)
    }

    async fn request(&self, method: &str, params: &str) -> Result<Json, McpFailure> {
        match self {
            McpSession::Process(process) => process.request(method, params).await,
            McpSession::Http(http) => http.request(method, params).await,
        }
    }

    fn is_open(&self) -> bool {
        match self {
            McpSession::Process(process) => process.is_open(),
            McpSession::Http(http) => http.is_open(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn servers_that_never_answer_are_given_up() {
        let (command, args) = ("sleep".to_owned(), vec!["600".to_owned()]);
        let source = McpServerSource::Process { command, args, work_dir: None, env: None };
        let mut connection = McpConnection::new(source, None, Duration::from_secs(600));
        connection.connect_timeout = Duration::from_millis(100);
        let error = connection.tools().await.unwrap_err();
        assert_eq!(error.to_string(), "the server was not ready within 0.1 s");
    }
}
