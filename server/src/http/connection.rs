//! Connections whose other side is slow or has vanished are closed. Three clocks: the longest time
//! without a request, the longest time for the head of a request to arrive, and the longest time in
//! which nothing of an answer is taken.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::limits::HttpLimits;

/// The other side of a connection, and what is going on there.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    activity: Arc<Activity>,
}

/// What is going on at a connection.
#[derive(Debug)]
pub(super) struct Activity {
    /// When the last request ended, or the connection began.
    last: Mutex<Instant>,
    /// Requests that are being answered.
    requests: AtomicUsize,
    /// Requests there have been.
    begun: AtomicUsize,
    /// Whether a part of an answer waits for the client to take it.
    is_writing: AtomicBool,
    /// Whether another connection has taken this one's place.
    is_evicted: AtomicBool,
    evicted: Notify,
}

/// A request that is being answered; the connection is not idle while it is held.
#[derive(Debug)]
pub(crate) struct Answering(Arc<Activity>);

impl Peer {
    pub(super) fn new(address: SocketAddr) -> Peer {
        let activity = Activity {
            last: Mutex::new(Instant::now()),
            requests: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            is_writing: AtomicBool::new(false),
            is_evicted: AtomicBool::new(false),
            evicted: Notify::new(),
        };
        Peer { address, activity: Arc::new(activity) }
    }

    /// Whether nothing is asked and nothing is left to send.
    pub(super) fn is_quiet(&self) -> bool {
        self.activity.requests.load(Ordering::Relaxed) == 0
            && !self.activity.is_writing.load(Ordering::Relaxed)
    }

    /// When the last request ended, or the connection began.
    pub(super) fn last(&self) -> Instant {
        *self.activity.last.lock()
    }

    /// Tells the connection to end. True the first time.
    pub(super) fn evict(&self) -> bool {
        self.activity.evicted.notify_one();
        !self.activity.is_evicted.swap(true, Ordering::Relaxed)
    }

    /// Waits until the connection is told to end.
    pub(super) async fn evicted(&self) {
        self.activity.evicted.notified().await;
    }

    #[cfg(test)]
    pub(super) fn is_evicted(&self) -> bool {
        self.activity.is_evicted.load(Ordering::Relaxed)
    }

    /// Begins to answer a request.
    pub(crate) fn answering(&self) -> Answering {
        self.activity.requests.fetch_add(1, Ordering::Relaxed);
        self.activity.begun.fetch_add(1, Ordering::Relaxed);
        Answering(self.activity.clone())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        *self.0.last.lock() = Instant::now();
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection with its clocks.
pub(super) struct Connection {
    stream: TcpStream,
    activity: Arc<Activity>,
    /// How many requests there had been when the clocks were last stopped.
    seen: usize,
    idle: Clock,
    head: Clock,
    stalled: Clock,
}

/// A deadline that begins when it is started.
struct Clock {
    limit: Duration,
    running: Option<Pin<Box<Sleep>>>,
}

impl Clock {
    fn new(limit: Duration) -> Clock {
        Clock { limit, running: None }
    }

    /// Starts the clock, unless it is running.
    fn start(&mut self) -> &mut Pin<Box<Sleep>> {
        let limit = self.limit;
        self.running.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)))
    }

    fn stop(&mut self) {
        self.running = None;
    }

    /// An error once the deadline has passed; wakes the task then.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.start().as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: &Peer, limits: HttpLimits) -> Connection {
        Connection {
            stream,
            activity: peer.activity.clone(),
            seen: 0,
            idle: Clock::new(limits.idle_timeout_s.0),
            head: Clock::new(limits.header_timeout_s.0),
            stalled: Clock::new(limits.write_timeout_s.0),
        }
    }

    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.activity.is_writing.store(done.is_pending(), Ordering::Relaxed);
        match done {
            Poll::Ready(done) => {
                self.stalled.stop();
                Poll::Ready(done)
            }
            Poll::Pending => self.stalled.poll(context).map(Err),
        }
    }

    /// Whether a request is being answered. The clocks begin anew after each request.
    fn is_busy(&mut self) -> bool {
        let begun = self.activity.begun.load(Ordering::Relaxed);
        let is_busy = self.activity.requests.load(Ordering::Relaxed) > 0;
        if is_busy || begun != self.seen {
            self.seen = begun;
            self.idle.stop();
            self.head.stop();
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
                // A head that trickles in byte by byte does not start its clock anew.
                if !is_busy && buffer.filled().len() > before {
                    this.head.start();
                }
                Poll::Ready(read)
            }
            Poll::Pending if is_busy => Poll::Pending,
            Poll::Pending => {
                if this.head.running.is_some()
                    && let Poll::Ready(late) = this.head.poll(context)
                {
                    return Poll::Ready(Err(late));
                }
                this.idle.poll(context).map(Err)
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
    use std::future::poll_fn;

    use tokio::net::TcpListener;

    use super::*;
    use crate::limits::Seconds;

    #[tokio::test]
    async fn whoever_takes_nothing_is_given_up() {
        let limits = HttpLimits {
            idle_timeout_s: Seconds(Duration::from_millis(50)),
            write_timeout_s: Seconds(Duration::from_millis(100)),
            ..HttpLimits::default()
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).await.unwrap();
        let (stream, address) = listener.accept().await.unwrap();
        let peer = Peer::new(address);
        let mut connection = Connection::new(stream, &peer, limits);
        let answering = peer.answering();

        // Not idle while a request is answered, but stalled once the system's buffers are full.
        let piece = vec![0; 64 << 10];
        let begun = Instant::now();
        let error = loop {
            let written =
                poll_fn(|context| Pin::new(&mut connection).poll_write(context, &piece)).await;
            match written {
                Ok(_) => assert!(begun.elapsed() < Duration::from_secs(30)),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        // Idle afterwards.
        drop(answering);
        let mut space = [0; 16];
        let mut buffer = ReadBuf::new(&mut space);
        let read =
            poll_fn(|context| Pin::new(&mut connection).poll_read(context, &mut buffer)).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
