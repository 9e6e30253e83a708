//! Request channel: sends requests to the engine of a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use louver_host::SendError;
use mistralrs_core::{MistralRs, Request};
use tokio::sync::mpsc::Sender;

/// A handle to the host of a model.
#[derive(Clone)]
pub(crate) enum Host {
    /// The host itself, which restarts a dead engine.
    Runner(Arc<MistralRs>),
    /// The host's channel, if only a reference to the host was available.
    Channel(Sender<Request>),
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Host::Runner(_) => "Runner",
            Host::Channel(_) => "Channel",
        })
    }
}

impl Host {
    /// The sender of requests.
    pub(crate) fn sender(&self) -> Result<Sender<Request>, SendError> {
        match self {
            Host::Runner(host) => sender(host),
            Host::Channel(sender) => Ok(sender.clone()),
        }
    }
}

/// The sender of a host's requests.
pub(crate) fn sender(host: &MistralRs) -> Result<Sender<Request>, SendError> {
    host.get_sender(None).map_err(|error| SendError::Host(error.to_string()))
}

/// An id for a request: beyond the host's own.
pub(crate) fn next_request_id() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1 << 40);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
