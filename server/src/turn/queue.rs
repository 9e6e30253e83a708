//! The queue between the task that reads a request's generations and the response body that sends
//! them to the client.
//!
//! The task never waits for the body, so a generation ends, and its place is free, when the host is
//! done with it. The queue needs no bound of its own: a generation has at most `max_tokens` tokens
//! and a request `n` generations, and the queue is emptied `write_timeout_s` after the request's
//! deadline at the latest.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout_at};
use tracing::Instrument;

use crate::error::{ApiError, ErrorKind};
use crate::http::count_error;
use crate::state::App;
use crate::turn::{Progress, Running};

/// What the body gets: progress, or the error that ended the request.
type Item = Result<Progress, ApiError>;

/// How the queue ends for the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// There may be more.
    Open,
    /// Nothing comes behind the items that are there.
    Complete,
    /// Items were thrown away: the answer is not whole.
    Broken,
}

#[derive(Debug)]
struct State {
    items: VecDeque<Item>,
    end: End,
    /// Whether the body was dropped.
    is_left: bool,
    /// Since when there are items and none was taken.
    waiting_since: Option<Instant>,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

/// The body's side. Dropping it cancels the generations.
#[derive(Debug)]
pub(super) struct Receiver(Arc<Queue>);

/// The answer was broken off: some of it was thrown away.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off: its client took nothing of it for too long")]
pub(crate) struct BrokenOff;

/// Reads the generations in a task of its own, whether or not anyone takes what is received.
/// The task ends them when the receiver is dropped, when the request's deadline passes, and when
/// there is something to take and nothing is taken for `write_timeout_s`.
pub(super) fn spawn(app: App, running: Running) -> Receiver {
    let state =
        State { items: VecDeque::new(), end: End::Open, is_left: false, waiting_since: None };
    let queue = Arc::new(Queue { state: Mutex::new(state), changed: Notify::new() });
    let filled = queue.clone();
    tokio::spawn(async move { filled.fill(&app, running).await }.in_current_span());
    Receiver(queue)
}

impl Queue {
    async fn fill(&self, app: &App, running: Running) {
        let patience = app.config().limits.http.write_timeout_s.0;
        let deadline = running.deadline();
        // Dropped by the select, so that a generation does not outlive its client's patience.
        let reading = self.read(app, running);
        tokio::select! {
            biased;
            () = self.unread(patience) => return self.break_off(app),
            () = reading => {}
        }
        let taken = tokio::select! {
            biased;
            () = self.unread(patience) => false,
            taken = timeout_at((deadline + patience).into(), self.emptied()) => taken.is_ok(),
        };
        if !taken {
            self.break_off(app);
        }
    }

    /// Reads the generations to their end.
    async fn read(&self, app: &App, mut running: Running) {
        while let Some(item) = running.next().await {
            let is_last = item.is_err();
            if let Err(error) = &item {
                count_error(app, error);
            }
            self.change(|state| {
                state.items.push_back(item);
                state.waiting_since.get_or_insert_with(Instant::now);
            });
            if is_last {
                break;
            }
        }
        self.change(|state| state.end = End::Complete);
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock());
        self.changed.notify_waiters();
        changed
    }

    /// Waits until the body was dropped, or nothing was taken for so long.
    async fn unread(&self, patience: Duration) {
        loop {
            // Made before the state is looked at, so that no change is missed.
            let changed = self.changed.notified();
            let (is_left, since) = {
                let state = self.state.lock();
                (state.is_left, state.waiting_since)
            };
            match since {
                _ if is_left => return,
                None => changed.await,
                Some(since) if since.elapsed() >= patience => return,
                Some(since) => tokio::select! {
                    () = changed => {}
                    () = sleep_until((since + patience).into()) => {}
                },
            }
        }
    }

    async fn emptied(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state.lock().items.is_empty() {
                return;
            }
            changed.await;
        }
    }

    fn break_off(&self, app: &App) {
        let is_left = self.change(|state| {
            state.items = VecDeque::new();
            state.end = End::Broken;
            state.waiting_since = None;
            state.is_left
        });
        if !is_left {
            let message = "the client took nothing of its answer for too long";
            count_error(app, &ApiError::whole(ErrorKind::Timeout, "write_timeout", message));
        }
    }
}

impl Receiver {
    /// The next item; `None` at the end. Safe to drop and to call again.
    pub(super) async fn next(&mut self) -> Result<Option<Item>, BrokenOff> {
        loop {
            let changed = self.0.changed.notified();
            let (item, end) = {
                let mut state = self.0.state.lock();
                let item = state.items.pop_front();
                state.waiting_since = (!state.items.is_empty()).then(Instant::now);
                (item, state.end)
            };
            match (item, end) {
                (Some(item), _) => {
                    self.0.changed.notify_waiters();
                    return Ok(Some(item));
                }
                (None, End::Complete) => return Ok(None),
                (None, End::Broken) => return Err(BrokenOff),
                (None, End::Open) => changed.await,
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.change(|state| state.is_left = true);
    }
}
