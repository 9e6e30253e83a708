//! The server's life cycle: running, draining, cancelling.

use tokio::sync::watch;

/// The phase of the server. Phases only advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServerPhase {
    /// Requests are accepted.
    #[default]
    Running,
    /// New requests are rejected, running ones may finish.
    Draining,
    /// Running requests are cancelled.
    Cancelling,
}

/// The current phase, with notification of changes.
#[derive(Debug)]
pub(crate) struct PhaseWatch(watch::Sender<ServerPhase>);

impl Default for PhaseWatch {
    fn default() -> Self {
        PhaseWatch(watch::Sender::new(ServerPhase::Running))
    }
}

impl PhaseWatch {
    /// The current phase.
    pub(crate) fn current(&self) -> ServerPhase {
        *self.0.borrow()
    }

    /// Advances to a phase; no effect if the server is there or past it.
    pub(crate) fn enter(&self, phase: ServerPhase) {
        self.0.send_if_modified(|current| {
            let advances = phase > *current;
            *current = phase.max(*current);
            advances
        });
    }

    /// Waits until this phase or a later one is reached. Cancel-safe.
    pub(crate) async fn reached(&self, phase: ServerPhase) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|current| *current >= phase).await;
    }
}
