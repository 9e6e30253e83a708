//! Connection timeouts: closes connections whose client is slow or gone. Three deadlines: the
//! longest time without a request, for a request head to arrive, and without progress in writing a
//! response.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::limits::HttpLimits;

/// A body is slow after this part of the time that it may take. Then its connection may be evicted
/// for another one.
const SLOW_BODY_DIVISOR: u32 = 10;

/// The client of a connection and the connection's activity. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ClientConnection {
    pub(crate) address: SocketAddr,
    activity: Arc<Activity>,
}

/// The activity of a connection.
#[derive(Debug)]
pub(super) struct Activity {
    /// When the last request ended, or the connection was accepted.
    last_activity: Mutex<Instant>,
    /// Requests in progress.
    active_requests: AtomicUsize,
    /// Requests since the connection was accepted.
    total_requests: AtomicUsize,
    /// When the body that is being received counts as slow.
    slow_body_at: Mutex<Option<Instant>>,
    /// Whether a write waits for the client to read.
    is_writing: AtomicBool,
    /// Wakes the task that reads while requests are in progress.
    reader: Mutex<Option<Waker>>,
    /// Whether another connection has taken this one's slot.
    is_evicted: AtomicBool,
    evicted: Notify,
}

impl Activity {
    /// Whether requests are in progress.
    fn has_requests(&self) -> bool {
        self.active_requests.load(Ordering::SeqCst) > 0
    }

    /// Whether requests are in progress, or a response waits for the client to read it.
    fn is_busy(&self) -> bool {
        self.has_requests() || self.is_writing.load(Ordering::Relaxed)
    }

    /// Wakes the task that reads, so that it starts the idle timeout, unless the connection is
    /// busy. The end of a write wakes it, too.
    fn wake_reader(&self) {
        if !self.is_busy()
            && let Some(reader) = self.reader.lock().take()
        {
            reader.wake();
        }
    }
}

/// The body of a request, as it arrives.
pub(super) struct ReceivedBody {
    body: Incoming,
    /// The time after which it is slow.
    slow_after: Duration,
    activity: Arc<Activity>,
}

impl HttpBody for ReceivedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let mut slow_at = self.activity.slow_body_at.lock();
        match frame {
            Poll::Pending => {
                *slow_at = slow_at.or_else(|| Instant::now().checked_add(self.slow_after))
            }
            Poll::Ready(None | Some(Err(_))) => *slow_at = None,
            Poll::Ready(Some(Ok(_))) => {}
        }
        drop(slow_at);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        *self.activity.slow_body_at.lock() = None;
    }
}

/// A request in progress. The connection is not idle while it exists.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Activity>);

impl ClientConnection {
    pub(super) fn new(address: SocketAddr) -> ClientConnection {
        let activity = Activity {
            last_activity: Mutex::new(Instant::now()),
            active_requests: AtomicUsize::new(0),
            total_requests: AtomicUsize::new(0),
            slow_body_at: Mutex::new(None),
            is_writing: AtomicBool::new(false),
            reader: Mutex::new(None),
            is_evicted: AtomicBool::new(false),
            evicted: Notify::new(),
        };
        ClientConnection { address, activity: Arc::new(activity) }
    }

    /// Whether no request is in progress, or one whose body arrives slowly, and no response data
    /// waits to be sent.
    pub(super) fn is_inactive(&self) -> bool {
        let slow_at = *self.activity.slow_body_at.lock();
        let is_slow = slow_at.is_some_and(|slow_at| slow_at < Instant::now());
        is_slow && !self.activity.is_writing.load(Ordering::Relaxed) || self.is_idle()
    }

    /// Whether no request is in progress, and no response data waits to be sent.
    pub(super) fn is_idle(&self) -> bool {
        !self.activity.is_busy()
    }

    /// The body of a request of this connection, which is watched as it arrives. It is slow after
    /// part of the time that it may take.
    pub(super) fn receive(&self, body: Incoming, limits: &HttpLimits) -> ReceivedBody {
        let slow_after = limits.read_timeout_s.0 / SLOW_BODY_DIVISOR;
        ReceivedBody { body, slow_after, activity: self.activity.clone() }
    }

    /// When the last request ended, or the connection was accepted.
    pub(super) fn last_activity(&self) -> Instant {
        *self.activity.last_activity.lock()
    }

    /// Tells the connection to close. Returns true the first time.
    pub(super) fn evict(&self) -> bool {
        self.activity.evicted.notify_one();
        !self.activity.is_evicted.swap(true, Ordering::Relaxed)
    }

    /// Waits until the connection is told to close.
    pub(super) async fn evicted(&self) {
        self.activity.evicted.notified().await;
    }

    #[cfg(test)]
    pub(super) fn is_evicted(&self) -> bool {
        self.activity.is_evicted.load(Ordering::Relaxed)
    }

    /// Registers a request in progress.
    pub(crate) fn begin_request(&self) -> ActiveRequest {
        self.activity.active_requests.fetch_add(1, Ordering::Relaxed);
        self.activity.total_requests.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(self.activity.clone())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        *self.0.last_activity.lock() = Instant::now();
        self.0.active_requests.fetch_sub(1, Ordering::SeqCst);
        self.0.wake_reader();
    }
}

/// A TCP stream with timeouts.
pub(super) struct Connection {
    stream: TcpStream,
    activity: Arc<Activity>,
    /// Value of `total_requests` when the deadlines were last reset.
    requests_seen: usize,
    idle_timeout: Timeout,
    head_timeout: Timeout,
    write_timeout: Timeout,
}

/// A timeout that runs from the time it is started.
struct Timeout {
    limit: Duration,
    running: Option<Pin<Box<Sleep>>>,
}

impl Timeout {
    fn new(limit: Duration) -> Timeout {
        Timeout { limit, running: None }
    }

    /// Starts the timeout, unless it is running.
    fn start(&mut self) -> &mut Pin<Box<Sleep>> {
        let limit = self.limit;
        self.running.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)))
    }

    fn stop(&mut self) {
        self.running = None;
    }

    /// An error once the timeout has elapsed; registers the task to be woken then.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.start().as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl Connection {
    pub(super) fn new(
        stream: TcpStream,
        client: &ClientConnection,
        limits: HttpLimits,
    ) -> Connection {
        Connection {
            stream,
            activity: client.activity.clone(),
            requests_seen: 0,
            idle_timeout: Timeout::new(limits.idle_timeout_s.0),
            head_timeout: Timeout::new(limits.header_timeout_s.0),
            write_timeout: Timeout::new(limits.write_timeout_s.0),
        }
    }

    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let done = match done {
            Poll::Ready(done) => {
                self.write_timeout.stop();
                Poll::Ready(done)
            }
            Poll::Pending => self.write_timeout.poll(context).map(Err),
        };
        let was_writing = self.activity.is_writing.swap(done.is_pending(), Ordering::Relaxed);
        if was_writing && done.is_ready() {
            // The next read starts the idle timeout.
            context.waker().wake_by_ref();
        }
        done
    }

    /// Whether a request is in progress, or a response waits for the client to read it: one of
    /// known length is handed over at once. The timeouts restart after each request.
    fn is_busy(&mut self) -> bool {
        let total_requests = self.activity.total_requests.load(Ordering::Relaxed);
        let is_busy = self.activity.is_busy();
        if is_busy || total_requests != self.requests_seen {
            self.requests_seen = total_requests;
            self.idle_timeout.stop();
            self.head_timeout.stop();
        }
        is_busy
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let (is_busy, before) = (this.is_busy(), buffer.filled().len());
        match Pin::new(&mut this.stream).poll_read(context, buffer) {
            Poll::Ready(read) => {
                // A head that arrives byte by byte does not restart its timeout.
                if !is_busy && buffer.filled().len() > before {
                    this.head_timeout.start();
                }
                Poll::Ready(read)
            }
            Poll::Pending if is_busy => {
                *this.activity.reader.lock() = Some(context.waker().clone());
                // The last request may have ended since.
                this.activity.wake_reader();
                Poll::Pending
            }
            Poll::Pending => {
                if this.head_timeout.running.is_some()
                    && let Poll::Ready(late) = this.head_timeout.poll(context)
                {
                    return Poll::Ready(Err(late));
                }
                this.idle_timeout.poll(context).map(Err)
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_write(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch_write(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.watch_write(context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch_write(context, done)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::poll_fn;

    use axum::body::Body;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::limits::Seconds;

    /// A client, and the connection that the server has accepted from it.
    async fn connect(limits: HttpLimits) -> (TcpStream, ClientConnection, Connection) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, address) = listener.accept().await.unwrap();
        let accepted = ClientConnection::new(address);
        let connection = Connection::new(stream, &accepted, limits);
        (client, accepted, connection)
    }

    /// A response that the client does not read costs no work.
    #[tokio::test]
    async fn unread_responses_are_not_polled_again_and_again() {
        let (mut client, accepted, connection) = connect(HttpLimits::default()).await;
        let respond = service_fn(move |_: hyper::Request<Incoming>| {
            drop(accepted.begin_request());
            let body = Body::from(vec![0_u8; 32 << 20]);
            async move { Ok::<_, Infallible>(hyper::Response::new(body)) }
        });
        let mut served =
            Box::pin(http1::Builder::new().serve_connection(TokioIo::new(connection), respond));
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut polls = 0;
        let counted = poll_fn(|context| {
            polls += 1;
            served.as_mut().poll(context).map(drop)
        });
        let pause = Duration::from_millis(500);
        assert!(tokio::time::timeout(pause, counted).await.is_err(), "nobody reads the response");
        assert!(polls < 1_000, "{polls} polls");
    }

    /// The connection is idle once the client has read the response, not while it reads.
    #[tokio::test]
    async fn slow_clients_get_the_whole_of_a_response_of_known_length() {
        const LENGTH: usize = 32 << 20;
        let idle = Duration::from_millis(50);
        let limits = HttpLimits { idle_timeout_s: Seconds(idle), ..HttpLimits::default() };
        let (mut client, accepted, connection) = connect(limits).await;
        let respond = service_fn(move |_: hyper::Request<Incoming>| {
            drop(accepted.begin_request());
            let body = Body::from(vec![0_u8; LENGTH]);
            async move { Ok::<_, Infallible>(hyper::Response::new(body)) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), respond));
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let (mut space, mut length) = (vec![0; 4 << 20], 0);
        loop {
            let read = tokio::time::timeout(Duration::from_secs(60), client.read(&mut space));
            match read.await.expect("the connection is closed when it is idle").unwrap() {
                0 => break,
                read if length == 0 => {
                    length = read;
                    tokio::time::sleep(idle * 6).await;
                }
                read => length += read,
            }
        }
        assert!(length > LENGTH, "{length}");
    }

    /// The idle timeout runs also if a request ends, by its own account, after the connection
    /// waits for the next one.
    #[tokio::test]
    async fn kept_alive_connections_time_out() {
        let idle = Duration::from_millis(50);
        let limits = HttpLimits { idle_timeout_s: Seconds(idle), ..HttpLimits::default() };
        let (mut client, accepted, connection) = connect(limits).await;
        let respond = service_fn(move |_: hyper::Request<Incoming>| {
            let active_request = accepted.begin_request();
            tokio::spawn(async move {
                tokio::time::sleep(idle).await;
                drop(active_request);
            });
            async move { Ok::<_, Infallible>(hyper::Response::new(Body::from("done"))) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), respond));
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut response = Vec::new();
        let read = client.read_to_end(&mut response);
        let read = tokio::time::timeout(Duration::from_secs(60), read).await;
        assert!(read.expect("the connection is closed when it is idle").is_ok());
        assert!(response.ends_with(b"done"));
    }

    #[tokio::test]
    async fn stalled_and_idle_connections_time_out() {
        let limits = HttpLimits {
            idle_timeout_s: Seconds(Duration::from_millis(50)),
            write_timeout_s: Seconds(Duration::from_millis(100)),
            ..HttpLimits::default()
        };
        let (_client, accepted, mut connection) = connect(limits).await;
        let active_request = accepted.begin_request();

        // Not idle while a request is in progress, but stalled once the system's buffers are full.
        let piece = vec![0; 64 << 10];
        let started = Instant::now();
        let error = loop {
            let written =
                poll_fn(|context| Pin::new(&mut connection).poll_write(context, &piece)).await;
            match written {
                Ok(_) => assert!(started.elapsed() < Duration::from_secs(30)),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        // Idle afterwards.
        drop(active_request);
        let mut space = [0; 16];
        let mut buffer = ReadBuf::new(&mut space);
        let read =
            poll_fn(|context| Pin::new(&mut connection).poll_read(context, &mut buffer)).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
