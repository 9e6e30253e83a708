//! Request channel: sends requests to the engine of a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use louver_host::RequestError;
use mistralrs_core::{MistralRs, Request};
use tokio::sync::mpsc::Sender;

/// First request id that Louver assigns itself, beyond the host's own ids.
const FIRST_LOUVER_ID: usize = 1 << 40;

/// A handle to the host of a model.
#[derive(Clone)]
pub(crate) enum Host {
    /// The host itself, which restarts a dead engine.
    Runner(Arc<MistralRs>),
    /// The host's channel, if only a reference to the host was available.
    Channel(Sender<Request>, Arc<AtomicUsize>),
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Host::Runner(_) => "Runner",
            Host::Channel(..) => "Channel",
        })
    }
}

impl Host {
    /// The channel of a borrowed host.
    pub(crate) fn from_borrowed(host: &MistralRs) -> Result<Host, RequestError> {
        Ok(Host::Channel(sender(host)?, Arc::new(AtomicUsize::new(FIRST_LOUVER_ID))))
    }

    pub(crate) fn open(&self) -> Result<RequestSender<'_>, RequestError> {
        match self {
            Host::Runner(host) => RequestSender::new(host),
            Host::Channel(sender, ids) => {
                Ok(RequestSender { sender: sender.clone(), ids: IdSource::Louver(ids) })
            }
        }
    }
}

/// A sender for one request, and the source of its id.
pub(crate) struct RequestSender<'h> {
    pub(crate) sender: Sender<Request>,
    ids: IdSource<'h>,
}

enum IdSource<'h> {
    Host(&'h MistralRs),
    Louver(&'h AtomicUsize),
}

impl<'h> RequestSender<'h> {
    pub(crate) fn new(host: &'h MistralRs) -> Result<RequestSender<'h>, RequestError> {
        Ok(RequestSender { sender: sender(host)?, ids: IdSource::Host(host) })
    }

    pub(crate) fn next_id(&self) -> usize {
        match self.ids {
            IdSource::Host(host) => host.next_request_id(),
            IdSource::Louver(ids) => ids.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn sender(host: &MistralRs) -> Result<Sender<Request>, RequestError> {
    host.get_sender(None).map_err(|error| RequestError::Host(error.to_string()))
}
