//! The way to a model's engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mistralrs_core::{MistralRs, Request};
use tokio::sync::mpsc::Sender;

use crate::error::RequestError;

/// Where ids begin that are not the host's own.
const FIRST_ID: usize = 1 << 40;

/// Sends requests to a model.
#[derive(Clone)]
pub(crate) enum Host {
    /// The host itself: an engine that died is started anew by it.
    Runner(Arc<MistralRs>),
    /// The host's channel, where only a reference to the host was to be had.
    Line(Sender<Request>, Arc<AtomicUsize>),
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Host::Runner(_) => "Runner",
            Host::Line(..) => "Line",
        })
    }
}

impl Host {
    /// The channel of a host that is only borrowed.
    pub(crate) fn line(host: &MistralRs) -> Result<Host, RequestError> {
        Ok(Host::Line(sender(host)?, Arc::new(AtomicUsize::new(FIRST_ID))))
    }

    pub(crate) fn open(&self) -> Result<Line<'_>, RequestError> {
        match self {
            Host::Runner(host) => Line::of(host),
            Host::Line(sender, ids) => Ok(Line { sender: sender.clone(), ids: Ids::Ours(ids) }),
        }
    }
}

/// One use of the way.
pub(crate) struct Line<'h> {
    pub(crate) sender: Sender<Request>,
    ids: Ids<'h>,
}

enum Ids<'h> {
    Host(&'h MistralRs),
    Ours(&'h AtomicUsize),
}

impl<'h> Line<'h> {
    pub(crate) fn of(host: &'h MistralRs) -> Result<Line<'h>, RequestError> {
        Ok(Line { sender: sender(host)?, ids: Ids::Host(host) })
    }

    pub(crate) fn id(&self) -> usize {
        match self.ids {
            Ids::Host(host) => host.next_request_id(),
            Ids::Ours(ids) => ids.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn sender(host: &MistralRs) -> Result<Sender<Request>, RequestError> {
    host.get_sender(None).map_err(|error| RequestError::Host(error.to_string()))
}
