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

/// Time limit for the answer to a ping, after a call had none. Then the server's process is ended.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A server, with the session that is open, if any.
pub(super) struct McpConnection {
    /// Its name in the log.
    name: String,
    source: McpServerSource,
    bearer_token: Option<String>,
    /// Time limit of one call. It includes connecting again.
    timeout: Duration,
    connect_timeout: Duration,
    ping_timeout: Duration,
    /// Locked while a session begins, so that there is one at a time.
    session: Mutex<Option<Arc<McpSession>>>,
}

impl McpConnection {
    /// A server that is not yet connected.
    pub(super) fn new(
        name: &str,
        source: McpServerSource,
        bearer_token: Option<String>,
        timeout: Duration,
    ) -> McpConnection {
        McpConnection {
            name: name.to_owned(),
            source,
            bearer_token,
            timeout,
            connect_timeout: CONNECT_TIMEOUT,
            ping_timeout: PING_TIMEOUT,
            session: Mutex::new(None),
        }
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
        let called = within(self.timeout, "no reply", self.request("tools/call", &params)).await;
        if called.as_ref().is_err_and(|failure| matches!(failure, McpFailure::Late(_)))
            && let Ok(Some(session)) = self.session.try_lock().as_deref()
        {
            let (session, name, limit) =
                (Arc::clone(session), self.name.clone(), self.ping_timeout);
            tokio::spawn(async move { session.end_if_hung(&name, limit).await });
        }
        called
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
        let was_lost = session.is_some();
        if was_lost {
            tracing::warn!(server = self.name, "the connection to the MCP server was lost");
        }
        let begun = McpSession::begin(&self.name, &self.source, self.bearer_token.as_deref()).await;
        // Without what it says, which may have secrets.
        match &begun {
            Ok(_) if was_lost => {
                tracing::info!(server = self.name, "connected to the MCP server again");
            }
            Err(_) if was_lost => {
                tracing::warn!(server = self.name, "the MCP server cannot be connected to again");
            }
            _ => {}
        }
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
    let late = |_| Err(McpFailure::Late(format!("{what} within {seconds} s")));
    tokio::time::timeout(limit, work).await.unwrap_or_else(late)
}

/// An initialized session with a server.
enum McpSession {
    Process(ProcessSession),
    Http(Arc<HttpSession>),
}

impl McpSession {
    async fn begin(
        name: &str,
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
                McpSession::Process(ProcessSession::start(program, name)?)
            }
            McpServerSource::Http { url, headers, .. } => {
                let headers = headers.iter().flatten();
                McpSession::Http(Arc::new(HttpSession::new(url, headers, bearer_token)?))
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

    /// Ends the session of a process that does not answer a ping. Requests that wait fail, and the
    /// next one starts another process.
    async fn end_if_hung(&self, name: &str, limit: Duration) {
        let McpSession::Process(process) = self else { return };
        let answered = tokio::time::timeout(limit, process.request("ping", "{}")).await;
        if answered.is_err() {
            tracing::warn!(server = name, "the MCP server does not answer: its process is ended");
            process.close();
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

    /// A server of these shell commands.
    fn server(script: &str, timeout: Duration) -> McpConnection {
        let (command, args) = ("sh".to_owned(), vec!["-c".to_owned(), script.to_owned()]);
        let source = McpServerSource::Process { command, args, work_dir: None, env: None };
        McpConnection::new("tests", source, None, timeout)
    }

    #[tokio::test]
    async fn servers_that_never_answer_are_given_up() {
        let mut connection = server("exec sleep 600", Duration::from_secs(600));
        connection.connect_timeout = Duration::from_millis(100);
        let error = connection.tools().await.unwrap_err();
        assert_eq!(error.to_string(), "the server was not ready within 0.1 s");
    }

    /// Answers the first request, which is `initialize`.
    const INITIALIZE: &str = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'"#;

    #[tokio::test]
    async fn processes_that_hang_are_replaced_and_slow_ones_are_not() {
        let answers = r#"while read line; do
            id=${line#*\"id\":}; echo "{\"jsonrpc\":\"2.0\",\"id\":${id%%,*},\"result\":{}}"
        done"#;
        let minute = Duration::from_secs(60);
        let slow = server(&format!("{INITIALIZE}; {answers}"), minute);
        let session = slow.session().await.unwrap();
        session.end_if_hung("slow", minute).await;
        assert!(session.is_open() && Arc::ptr_eq(&session, &slow.session().await.unwrap()));

        let limit = Duration::from_millis(10);
        let mut hung = server(&format!("{INITIALIZE}; exec sleep 600"), limit);
        hung.ping_timeout = limit;
        let session = hung.session().await.unwrap();
        let error = hung.call("f", "{}").await.unwrap_err();
        assert_eq!(error.to_string(), "no reply within 0.01 s");
        let ended = async {
            while session.is_open() {
                tokio::time::sleep(limit).await;
            }
        };
        tokio::time::timeout(minute, ended).await.unwrap();
        assert!(!Arc::ptr_eq(&session, &hung.session().await.unwrap()), "it was not replaced");
    }
}
