//! Connections, request ids, keys, bodies: what every route has in common.

pub(crate) mod body;
mod connection;
mod layers;
pub(crate) mod phase;

use std::future::Future;
use std::io;

use tokio::net::TcpListener;

pub(crate) use connection::Peer;
pub(crate) use layers::{authorize, count_error, fresh_id, observe};

use crate::app::router;
use crate::http::connection::Connections;
use crate::http::phase::Phase;
use crate::state::App;

/// How long cancelled generations have to say so to their clients.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(2);

/// Serves until `stop` is done. Then no connection is accepted any more and new requests are refused; running ones have the
/// configured grace to finish and are cancelled afterwards. Returns when the last connection is closed, or shortly after
/// the grace. Needs a tokio runtime of several threads.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let limits = app.config().limits.http;
    let listener = Connections::new(listener, limits);
    let service = router(app.clone()).into_make_service_with_connect_info::<Peer>();
    let phases = app.clone();
    let stopped = async move {
        stop.await;
        tracing::info!("stopping: no new requests");
        phases.phases().enter(Phase::Draining);
    };
    let serving = async { axum::serve(listener, service).with_graceful_shutdown(stopped).await };
    let deadline = async {
        app.phases().reached(Phase::Draining).await;
        tokio::time::sleep(app.config().grace_s.0).await;
        tracing::warn!("the grace is over: running requests are cancelled");
        app.phases().enter(Phase::Cancelling);
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        served = serving => served,
        () = deadline => Ok(()),
    }
}
