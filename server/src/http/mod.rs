//! Connections, request ids, keys, bodies: what every route has in common.

pub(crate) mod body;
mod connection;
mod layers;
pub(crate) mod origin;
pub(crate) mod phase;
mod places;
mod task;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt;

pub(crate) use connection::Peer;
pub(crate) use layers::{authorize, count_error, fresh_id, observe};
pub(crate) use task::owned;

use crate::app::router;
use crate::error::{ApiError, ErrorKind};
use crate::http::connection::Connection;
use crate::http::phase::Phase;
use crate::http::places::{Place, Places};
use crate::state::App;

/// How long cancelled generations have to say so to their clients.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Pause after the system refused to accept (too many open files, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The route that is always answered.
pub(crate) const HEALTH: &str = "/healthz";

/// Longest head of a request, and most bytes of an answer that wait for the system, in bytes.
const BUFFER: usize = 64 << 10;

/// Serves until `stop` is done. Then no connection is accepted any more and new requests are refused; running ones have the
/// configured grace to finish and are cancelled afterwards. Returns when the last connection is closed, or shortly after
/// the grace. Needs a tokio runtime of several threads.
///
/// The protocol is HTTP/1.1 without TLS. A connection that begins with HTTP/2 is closed.
pub async fn serve(
    listener: TcpListener,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = async {
        stop.await;
        tracing::info!("stopping: no new requests");
        app.phases().enter(Phase::Draining);
    };
    let serving = async { tokio::join!(stopping, accept_all(listener, &app)) };
    let deadline = async {
        app.phases().reached(Phase::Draining).await;
        tokio::time::sleep(app.config().grace_s.0).await;
        tracing::warn!("the grace is over: running requests are cancelled");
        app.phases().enter(Phase::Cancelling);
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        _ = serving => {}
        () = deadline => {}
    }
    Ok(())
}

/// Accepts connections until the server is told to stop, and waits until all of them are closed.
async fn accept_all(listener: TcpListener, app: &App) {
    let service = router(app.clone());
    let places = Places::new(app.config().limits.http);
    // Dropped with this future: connections do not outlive the server.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = app.phases().reached(Phase::Draining) => break,
            Some(_) = open.join_next() => {}
            (stream, address) = accept(&listener) => {
                let peer = Peer::new(address);
                // Without a place it is closed at once.
                if let Some(place) = places.enter(&peer) {
                    open.spawn(connection(stream, peer, place, app.clone(), service.clone()));
                }
            }
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection.
async fn connection(stream: TcpStream, peer: Peer, place: Place, app: App, service: Router) {
    // Small pieces are sent at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {error}");
    }
    let io = TokioIo::new(Connection::new(stream, &peer, app.config().limits.http));
    let is_spare = place.is_spare;
    let service =
        service_fn(|request| answer(request, peer.clone(), app.clone(), service.clone(), is_spare));
    // The connection has its own clock for heads: hyper's runs between requests, too.
    let mut http = http1::Builder::new();
    http.header_read_timeout(None).max_buf_size(BUFFER).keep_alive(!is_spare);
    let mut served = pin!(http.serve_connection(io, service));
    let done = tokio::select! {
        biased;
        done = served.as_mut() => done,
        () = app.phases().reached(Phase::Draining) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
        () = peer.evicted() => {
            // A request may have come just before: it is the last one.
            if peer.is_quiet() {
                return;
            }
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(client = %peer.address, "the connection failed: {error}");
    }
}

async fn answer(
    mut request: Request<Incoming>,
    peer: Peer,
    app: App,
    service: Router,
    is_spare: bool,
) -> Result<Response, Infallible> {
    if is_spare && request.uri().path() != HEALTH {
        let error = ApiError::whole(
            ErrorKind::Unavailable,
            "too_many_connections",
            "too many connections are open, of this client or of all: try again later",
        );
        // Not logged: there may be thousands a second.
        app.metrics().count(&error);
        return Ok(error.into_response());
    }
    request.extensions_mut().insert(ConnectInfo(peer));
    service.oneshot(request.map(Body::new)).await
}
