//! The event queue between the task that reads a request's generations and the response body that
//! sends them to the client.
//!
//! The task never waits for the body, so a generation ends and frees its slot as soon as the host
//! is done. The queue needs no bound of its own: a request has at most `n` generations of
//! `max_tokens` tokens each, and the queue is emptied at the latest `write_timeout_s` after the
//! request's deadline.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout_at};
use tracing::Instrument;

use crate::error::{ApiError, ErrorKind};
use crate::generation::{Progress, RunningRequest};
use crate::http::count_error;
use crate::state::App;

/// A queue entry: progress, or the error that ended the request.
type Item = Result<Progress, ApiError>;

/// Whether more items follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueEnd {
    /// More items may follow.
    Open,
    /// No items follow those in the queue.
    Complete,
    /// Items were discarded: the response is incomplete.
    Aborted,
}

#[derive(Debug)]
struct QueueState {
    items: VecDeque<Item>,
    queue_end: QueueEnd,
    /// Whether the response body was dropped.
    is_receiver_dropped: bool,
    /// Time since which items are waiting and none was taken.
    waiting_since: Option<Instant>,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Notify,
}

/// The consumer side, held by the response body. Dropping it cancels the generations.
#[derive(Debug)]
pub(super) struct Receiver(Arc<Queue>);

/// The response was aborted because the client stopped reading; part of it was discarded.
#[derive(Debug, thiserror::Error)]
#[error("the response was aborted: the client stopped reading it")]
pub(crate) struct StreamAborted;

/// Reads the generations in a separate task, independent of the consumer. The task cancels them
/// when the receiver is dropped, when the request's deadline passes, or when the consumer takes
/// nothing for `write_timeout_s`.
pub(super) fn spawn(app: App, running: RunningRequest) -> Receiver {
    let state = QueueState {
        items: VecDeque::new(),
        queue_end: QueueEnd::Open,
        is_receiver_dropped: false,
        waiting_since: None,
    };
    let queue = Arc::new(Queue { state: Mutex::new(state), changed: Notify::new() });
    let producer = queue.clone();
    tokio::spawn(async move { producer.run(&app, running).await }.in_current_span());
    Receiver(queue)
}

impl Queue {
    async fn run(&self, app: &App, running: RunningRequest) {
        let write_timeout = app.config().limits.http.write_timeout_s.0;
        let deadline = running.deadline();
        // `select!` drops the reader, so that generations do not outlive the write timeout.
        let reading = self.read(app, running);
        tokio::select! {
            biased;
            () = self.wait_until_abandoned(write_timeout) => return self.abort(app),
            () = reading => {}
        }
        let taken = tokio::select! {
            biased;
            () = self.wait_until_abandoned(write_timeout) => false,
            taken = timeout_at((deadline + write_timeout).into(), self.wait_until_empty()) => {
                taken.is_ok()
            }
        };
        if !taken {
            self.abort(app);
        }
    }

    /// Reads the generations to their end.
    async fn read(&self, app: &App, mut running: RunningRequest) {
        while let Some(item) = running.next().await {
            let is_last = item.is_err();
            if let Err(error) = &item {
                count_error(app, error);
            }
            self.update(|state| {
                state.items.push_back(item);
                state.waiting_since.get_or_insert_with(Instant::now);
            });
            if is_last {
                break;
            }
        }
        self.update(|state| state.queue_end = QueueEnd::Complete);
    }

    fn update<T>(&self, update: impl FnOnce(&mut QueueState) -> T) -> T {
        let changed = update(&mut self.state.lock());
        self.changed.notify_waiters();
        changed
    }

    /// Waits until the receiver is dropped, or nothing was taken for the write timeout.
    async fn wait_until_abandoned(&self, write_timeout: Duration) {
        loop {
            // Registered before the state is read, so that no notification is missed.
            let changed = self.changed.notified();
            let (is_receiver_dropped, waiting_since) = {
                let state = self.state.lock();
                (state.is_receiver_dropped, state.waiting_since)
            };
            match waiting_since {
                _ if is_receiver_dropped => return,
                None => changed.await,
                Some(waiting_since) if waiting_since.elapsed() >= write_timeout => return,
                Some(waiting_since) => tokio::select! {
                    () = changed => {}
                    () = sleep_until((waiting_since + write_timeout).into()) => {}
                },
            }
        }
    }

    async fn wait_until_empty(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state.lock().items.is_empty() {
                return;
            }
            changed.await;
        }
    }

    fn abort(&self, app: &App) {
        let is_receiver_dropped = self.update(|state| {
            state.items = VecDeque::new();
            state.queue_end = QueueEnd::Aborted;
            state.waiting_since = None;
            state.is_receiver_dropped
        });
        if !is_receiver_dropped {
            let message = "the client stopped reading its response";
            count_error(app, &ApiError::general(ErrorKind::Timeout, "write_timeout", message));
        }
    }
}

impl Receiver {
    /// The next item; `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<Item>, StreamAborted> {
        loop {
            let changed = self.0.changed.notified();
            let (item, queue_end) = {
                let mut state = self.0.state.lock();
                let item = state.items.pop_front();
                state.waiting_since = (!state.items.is_empty()).then(Instant::now);
                (item, state.queue_end)
            };
            match (item, queue_end) {
                (Some(item), _) => {
                    self.0.changed.notify_waiters();
                    return Ok(Some(item));
                }
                (None, QueueEnd::Complete) => return Ok(None),
                (None, QueueEnd::Aborted) => return Err(StreamAborted),
                (None, QueueEnd::Open) => changed.await,
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.update(|state| state.is_receiver_dropped = true);
    }
}
