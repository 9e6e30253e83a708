//! MCP over the standard input and output of a process: a JSON-RPC message a line.
//!
//! One task reads all lines and hands each reply to the request with its id. A late reply, to a
//! request that was given up, is discarded.

use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use louver::spec::json::Json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::rpc::{self, MAX_MESSAGE_BYTES, McpFailure, ServerMessage};

/// How long a process may take to exit after its standard input was closed. Then it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Memory for lines that is kept between them, in bytes.
const SMALL_LINE_BYTES: usize = 64 << 10;

/// Number of lines that wait to be written.
const WAITING_LINES: usize = 64;

/// A running server. Its process ends with this.
pub(super) struct ProcessSession {
    /// What a task writes to the process: a request that is dropped leaves no half of a line.
    lines: mpsc::Sender<String>,
    replies: Arc<PendingReplies>,
    next_id: AtomicU64,
    /// Dropped with the session or before, which ends its task and process.
    open: Mutex<Option<oneshot::Sender<()>>>,
}

/// The requests that wait for a reply, by id.
#[derive(Default)]
struct PendingReplies {
    by_id: Mutex<HashMap<u64, ReplySender>>,
    /// Why the connection is lost, if an error ended it.
    error: OnceLock<String>,
}

type ReplySender = oneshot::Sender<Result<Json, McpFailure>>;

impl PendingReplies {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, ReplySender>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, id: u64) -> Option<ReplySender> {
        self.lock().remove(&id)
    }

    /// The failure of requests once the connection is lost.
    fn lost(&self) -> McpFailure {
        let ended = "the server's process has ended or closed its output";
        McpFailure::no_reply(self.error.get().map_or(ended, String::as_str))
    }
}

/// Fails the requests that wait when it is dropped: at the end of the connection, also after a
/// panic.
struct FailedAtEnd(Arc<PendingReplies>);

impl Drop for FailedAtEnd {
    fn drop(&mut self) {
        self.0.lock().clear();
    }
}

/// Forgets a request when it is dropped, and tells the server so if there was no reply.
struct PendingRequest<'s> {
    session: &'s ProcessSession,
    id: u64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.session.replies.take(self.id).is_some() {
            // Best effort: dropped if the queue is full.
            let _ = self.session.lines.try_send(rpc::cancelled(self.id));
        }
    }
}

impl ProcessSession {
    /// Starts the process of a server with this name. What it writes to standard error goes to that
    /// of this process.
    pub(super) fn start(mut program: Command, name: &str) -> Result<ProcessSession, McpFailure> {
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        program.kill_on_drop(true);
        let started = program.spawn().and_then(|mut child| {
            let pipes = child.stdin.take().zip(child.stdout.take());
            let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
            Ok((child, stdin, stdout))
        });
        let (child, stdin, stdout) = started.map_err(|error| {
            let program = program.as_std().get_program().display().to_string();
            McpFailure::no_reply(format!("{program:?} cannot be started: {error}"))
        })?;
        let replies = Arc::new(PendingReplies::default());
        let (lines, to_write) = mpsc::channel(WAITING_LINES);
        let (open, dropped) = oneshot::channel();
        let reading = read(stdout, Arc::clone(&replies), lines.clone());
        let writing = write(stdin, to_write);
        let name = name.to_owned();
        let io = async move {
            let ended = tokio::select! {
                read = reading => read,
                written = writing => written,
                _ = dropped => return Ok(()),
            };
            let error = ended.as_ref().err().map(tracing::field::display);
            tracing::warn!(
                server = name,
                error,
                "the connection to the MCP server's process has ended"
            );
            ended
        };
        tokio::spawn(run(child, io, FailedAtEnd(Arc::clone(&replies))));
        let open = Mutex::new(Some(open));
        Ok(ProcessSession { lines, replies, next_id: AtomicU64::new(1), open })
    }

    /// Sends a request and waits for its reply.
    pub(super) async fn request(&self, method: &str, params: &str) -> Result<Json, McpFailure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.replies.lock().insert(id, sender);
        let _pending = PendingRequest { session: self, id };
        self.send(rpc::request(id, method, params)).await?;
        receiver.await.unwrap_or_else(|_| Err(self.replies.lost()))
    }

    /// Sends a message, without waiting for an answer.
    pub(super) async fn send(&self, message: String) -> Result<(), McpFailure> {
        self.lines.send(message).await.map_err(|_| self.replies.lost())
    }

    /// Ends the process. Requests that wait fail.
    pub(super) fn close(&self) {
        drop(self.open.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Whether the connection is not lost.
    pub(super) fn is_open(&self) -> bool {
        let is_closed = self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        !is_closed && !self.lines.is_closed()
    }
}

/// Reads and writes until the connection ends. Then the requests that wait fail, and the process
/// ends.
async fn run(mut child: Child, io: impl Future<Output = io::Result<()>>, failed: FailedAtEnd) {
    // Closes the process's standard input at its end.
    if let Err(error) = io.await {
        let _ = failed.0.error.set(format!("the connection to the server's process: {error}"));
    }
    drop(failed);
    if tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// Writes lines to the process.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        stdin.write_all(line.as_bytes()).await?;
        stdin.flush().await?;
    }
    Ok(())
}

/// Reads lines until the process closes its output. Lines that are no messages are skipped.
async fn read(
    stdout: ChildStdout,
    replies: Arc<PendingReplies>,
    answers: mpsc::Sender<String>,
) -> io::Result<()> {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.shrink_to(SMALL_LINE_BYTES);
        let mut limited = (&mut stdout).take(MAX_MESSAGE_BYTES as u64 + 1);
        if limited.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        if line.len() > MAX_MESSAGE_BYTES {
            return Err(io::Error::other("the message is too long"));
        }
        let text = std::str::from_utf8(&line).unwrap_or_default();
        match rpc::read(text) {
            Some(ServerMessage::Reply { id, result }) => {
                if let Some(sender) = replies.take(id) {
                    // The request may have been given up just now.
                    let _ = sender.send(result);
                }
            }
            // Best effort: dropped if the queue is full.
            Some(ServerMessage::Request { answer }) => drop(answers.try_send(answer)),
            None => {}
        }
    }
}
