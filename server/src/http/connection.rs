//! Connections whose other side is slow or has vanished are closed: there is a longest time without a request, and a
//! longest time in which nothing of an answer is taken.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::limits::HttpLimits;

/// Pause after the system refused to accept (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A listener with a bound on open connections.
pub(super) struct Connections {
    listener: TcpListener,
    limits: HttpLimits,
    slots: Arc<Semaphore>,
}

impl Connections {
    pub(super) fn new(listener: TcpListener, limits: HttpLimits) -> Connections {
        Connections { listener, limits, slots: Arc::new(Semaphore::new(limits.connections)) }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = Peer;

    async fn accept(&mut self) -> (Connection, Peer) {
        // The semaphore is never closed; without a slot the connection is not counted.
        let slot = self.slots.clone().acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Small pieces are sent at once.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!("TCP_NODELAY: {error}");
                    }
                    let requests = Arc::new(AtomicUsize::new(0));
                    let peer = Peer { address, requests: requests.clone() };
                    return (Connection::new(stream, slot, requests, self.limits), peer);
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer { address: self.listener.local_addr()?, requests: Arc::default() })
    }
}

/// The other side of a connection, and how many of its requests are being answered.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Connected<IncomingStream<'_, Connections>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Connections>) -> Self {
        stream.remote_addr().clone()
    }
}

/// A request that is being answered; the connection is not idle while it is held.
#[derive(Debug)]
pub(crate) struct Answering(Arc<AtomicUsize>);

impl Peer {
    pub(crate) fn answering(&self) -> Answering {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Answering(self.requests.clone())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection with its two clocks.
pub(super) struct Connection {
    stream: TcpStream,
    _slot: Option<OwnedSemaphorePermit>,
    requests: Arc<AtomicUsize>,
    idle: Clock,
    stalled: Clock,
}

/// A deadline that begins when it is first asked for.
struct Clock {
    limit: Duration,
    running: Option<Pin<Box<Sleep>>>,
}

impl Clock {
    fn new(limit: Duration) -> Clock {
        Clock { limit, running: None }
    }

    fn stop(&mut self) {
        self.running = None;
    }

    /// An error once the deadline has passed; wakes the task then.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let limit = self.limit;
        let running = self.running.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        running.as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl Connection {
    fn new(
        stream: TcpStream,
        slot: Option<OwnedSemaphorePermit>,
        requests: Arc<AtomicUsize>,
        limits: HttpLimits,
    ) -> Connection {
        let (idle, stalled) = (Clock::new(limits.idle_timeout_s.0), Clock::new(limits.write_timeout_s.0));
        Connection { stream, _slot: slot, requests, idle, stalled }
    }

    fn watch_write<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match done {
            Poll::Ready(done) => {
                self.stalled.stop();
                Poll::Ready(done)
            }
            Poll::Pending => self.stalled.poll(context).map(Err),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let busy = this.requests.load(Ordering::Relaxed) > 0;
        if busy {
            this.idle.stop();
        }
        match Pin::new(&mut this.stream).poll_read(context, buffer) {
            // A request that trickles in byte by byte does not start the clock anew.
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending if busy => Poll::Pending,
            Poll::Pending => this.idle.poll(context).map(Err),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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

    use super::*;
    use crate::limits::Seconds;

    #[tokio::test]
    async fn whoever_takes_nothing_is_given_up() {
        let limits = HttpLimits {
            idle_timeout_s: Seconds(Duration::from_millis(50)),
            write_timeout_s: Seconds(Duration::from_millis(100)),
            connections: 1,
            ..HttpLimits::default()
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut connections = Connections::new(listener, limits);
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut connection, peer) = connections.accept().await;
        let answering = peer.answering();

        // Not idle while a request is answered, but stalled once the system's buffers are full.
        let piece = vec![0; 64 << 10];
        let begun = Instant::now();
        let error = loop {
            let written = poll_fn(|context| Pin::new(&mut connection).poll_write(context, &piece)).await;
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
        let read = poll_fn(|context| Pin::new(&mut connection).poll_read(context, &mut buffer)).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);

        // There is one slot: the next connection waits for it.
        let _second = TcpStream::connect(address).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(50), connections.accept()).await.is_err());
        drop(connection);
        assert!(tokio::time::timeout(Duration::from_secs(5), connections.accept()).await.is_ok());
    }
}
