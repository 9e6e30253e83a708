//! Whether the server runs, stops or has stopped.

use tokio::sync::watch;

/// Where the server is. It only goes forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Requests are taken.
    #[default]
    Running,
    /// New ones are refused, running ones may finish.
    Draining,
    /// Running ones are cancelled.
    Cancelling,
}

/// The phase, and who waits for the next one.
#[derive(Debug)]
pub(crate) struct Phases(watch::Sender<Phase>);

impl Default for Phases {
    fn default() -> Self {
        Phases(watch::Sender::new(Phase::Running))
    }
}

impl Phases {
    /// The phase.
    pub(crate) fn now(&self) -> Phase {
        *self.0.borrow()
    }

    /// Goes on to a phase, unless it is past it.
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let goes_on = phase > *now;
            *now = phase.max(*now);
            goes_on
        });
    }

    /// Waits until this phase or a later one has begun. Safe to drop.
    pub(crate) async fn reached(&self, phase: Phase) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|now| *now >= phase).await;
    }
}
