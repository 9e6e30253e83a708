//! The HTTP layer that all routes share: connections, request ids, API keys, origins and bodies.

pub(crate) mod api_key;
pub(crate) mod body;
mod connection;
pub(crate) mod error_format;
mod layers;
pub(crate) mod origin;
mod path_id;
pub(crate) mod phase;
mod response;
pub(crate) mod routes;
mod slots;
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

pub(crate) use api_key::ApiKey;
pub(crate) use connection::ClientConnection;
pub(crate) use layers::{RequestId, authorize, count_error, fresh_id, observe};
pub(crate) use path_id::PathId;
pub(crate) use response::{json_response, json_text, json_text_response};
pub(crate) use task::{spawn_detached, spawn_owned};

use crate::error::{ApiError, ErrorKind};
use crate::http::connection::Connection;
use crate::http::phase::ServerPhase;
use crate::http::routes::Route;
use crate::http::slots::{ConnectionSlot, ConnectionSlots};
use crate::state::App;

/// Time that cancelled generations have to send their error to the client.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause after a failed `accept`; most often there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Maximum size of a request head and of the buffered response data, in bytes.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// Serves `router` until `stop` completes: see [`serve`](crate::serve).
pub(crate) async fn serve_router(
    router: Router,
    listener: TcpListener,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = async {
        stop.await;
        tracing::info!("shutting down: new requests are rejected");
        app.phases().enter(ServerPhase::Draining);
    };
    let serving = async { tokio::join!(stopping, accept_all(listener, router, &app)) };
    let deadline = async {
        app.phases().reached(ServerPhase::Draining).await;
        tokio::time::sleep(app.config().grace_s.0).await;
        tracing::warn!("the grace period is over: cancelling running requests");
        app.phases().enter(ServerPhase::Cancelling);
        tokio::time::sleep(CANCEL_TIMEOUT).await;
    };
    tokio::select! {
        _ = serving => {}
        () = deadline => {}
    }
    Ok(())
}

/// Accepts connections until the server is told to stop, then waits until all of them are closed.
async fn accept_all(listener: TcpListener, service: Router, app: &App) {
    let slots = ConnectionSlots::new(app.config().limits.http);
    // Dropped with this future, so that connections do not outlive the server.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = app.phases().reached(ServerPhase::Draining) => break,
            Some(_) = open.join_next() => {}
            (stream, address) = accept(&listener) => {
                let client = ClientConnection::new(address);
                // Without a slot the connection is closed immediately.
                if let Some(slot) = slots.acquire(&client) {
                    let (app, service) = (app.clone(), service.clone());
                    open.spawn(serve_connection(stream, client, slot, app, service));
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
async fn serve_connection(
    stream: TcpStream,
    client: ClientConnection,
    slot: ConnectionSlot,
    app: App,
    service: Router,
) {
    // Send small chunks immediately.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {error}");
    }
    let io = TokioIo::new(Connection::new(stream, &client, app.config().limits.http));
    let is_spare = slot.is_spare;
    let service = service_fn(|request| {
        handle(request, client.clone(), app.clone(), service.clone(), is_spare)
    });
    // `Connection` has its own timeout for request heads; hyper's would also run between requests.
    let mut http = http1::Builder::new();
    http.header_read_timeout(None).max_buf_size(MAX_BUFFER_BYTES).keep_alive(!is_spare);
    let mut served = pin!(http.serve_connection(io, service));
    let ended = tokio::select! {
        biased;
        done = served.as_mut() => Some(done),
        // The head of a request may still be incomplete: it is not answered.
        () = app.phases().reached(ServerPhase::Draining) => client.is_idle().then_some(Ok(())),
        // A request may have just arrived: it is answered as the last one.
        () = client.evicted() => client.is_inactive().then_some(Ok(())),
    };
    let done = match ended {
        Some(done) => done,
        None => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(client = %client.address, "the connection failed: {error}");
    }
}

async fn handle(
    mut request: Request<Incoming>,
    client: ClientConnection,
    app: App,
    service: Router,
    is_spare: bool,
) -> Result<Response, Infallible> {
    if is_spare && !routes::is_health(request.uri().path()) {
        let error = ApiError::general(
            ErrorKind::Unavailable,
            "too_many_connections",
            "too many connections are open, from this client or in all: try again later",
        );
        // Not logged: there may be thousands per second.
        app.metrics().count_error(&error);
        let route = Route::of(request.uri().path());
        let is_messages = error_format::is_messages_request(route, request.headers());
        let id = layers::request_id(request.headers());
        return Ok(layers::with_request_id(error.into_response(), &id, is_messages));
    }
    let limits = app.config().limits.http;
    request.extensions_mut().insert(ConnectInfo(client.clone()));
    service.oneshot(request.map(|body| Body::new(client.receive(body, &limits)))).await
}
