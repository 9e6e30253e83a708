//! A running generation: what the host sends is drained at once, so that a slow reader never holds up its engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use louver_formats::{Event, Turn, TurnCollector};
use mistralrs_core::Response;
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use crate::error::GenerationError;
use crate::hook::{Shared, Tap};
use crate::reader::Reader;
use crate::record::{Phase, Step};
use crate::report::{Completion, EnforcementReport, Level, Relaxed, Timing};
use crate::validate::Checks;

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The model ended its turn.
    Stop,
    /// The length limit was reached.
    Length,
    /// It was cancelled.
    Cancelled,
}

/// A generation that is over.
#[derive(Clone, Debug)]
pub struct Generation {
    /// What the model said. A call that was cut off is not among the calls.
    pub turn: Turn,
    /// Why it ended.
    pub finish: Finish,
    /// The prompt's length, in tokens.
    pub prompt_tokens: usize,
    /// The generated tokens without the stop token.
    pub tokens: Vec<u32>,
    /// How many of them are reasoning.
    pub reasoning_tokens: usize,
    /// What it cost.
    pub timing: Timing,
    /// Rows in which the model gave unusable logits (NaN or infinite) to allowed tokens.
    pub repaired_rows: usize,
    /// What was enforced.
    pub report: EnforcementReport,
    /// The steps that [`EventStream::take_steps`] has not taken, if steps are recorded.
    pub steps: Vec<Step>,
}

/// What the reading task leaves.
pub(crate) struct Outcome {
    finish: Finish,
    completion: Completion,
    tokens: Vec<u32>,
    reasoning_tokens: usize,
    timing: Timing,
    repaired_rows: usize,
}

/// Events of one generation as they come. Dropping it ends the generation at its next token.
#[derive(Debug)]
pub struct EventStream {
    pub(crate) events: UnboundedReceiver<Read>,
    pub(crate) steps: Arc<Mutex<Vec<Step>>>,
    /// The tokens read when the last event was decided.
    pub(crate) position: usize,
    pub(crate) relaxed: Option<Vec<Relaxed>>,
    /// What is validated when it has been said.
    pub(crate) checks: Option<Arc<Checks>>,
    /// What the grammar's labels mean.
    pub(crate) lowered: Option<louver_formats::Plan>,
    pub(crate) outcome: oneshot::Receiver<Result<Outcome, GenerationError>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) collector: TurnCollector,
    pub(crate) prompt_tokens: usize,
}

/// An event, and how many tokens had been read when it was decided.
#[derive(Debug)]
pub(crate) struct Read {
    position: usize,
    event: Event,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome").field("finish", &self.finish).finish_non_exhaustive()
    }
}

impl EventStream {
    /// The next event; none after [`Event::End`].
    pub async fn next(&mut self) -> Option<Event> {
        let Read { position, event } = self.events.recv().await?;
        self.position = position;
        self.collector.push(&event);
        Some(event)
    }

    /// How many tokens had been read when the last event was decided.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The steps recorded so far and not taken yet. The step of a token is there before the events it leads to.
    pub fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.steps.lock())
    }

    /// The prompt's length, in tokens.
    pub fn prompt_tokens(&self) -> usize {
        self.prompt_tokens
    }

    /// Ends the generation at its next token. Events up to there still come.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Waits for the end; what was not read yet is read.
    pub async fn finish(mut self) -> Result<Generation, GenerationError> {
        while self.next().await.is_some() {}
        let outcome = (&mut self.outcome).await.unwrap_or(Err(GenerationError::HostGone))?;
        let level = match &self.relaxed {
            None => Level::None,
            Some(relaxed) if relaxed.is_empty() => Level::Full,
            Some(_) => Level::Partial,
        };
        let turn = std::mem::take(&mut self.collector).finish();
        let is_whole = matches!(outcome.completion, Completion::Complete | Completion::Pressed);
        let violations = match self.checks.take() {
            None => Vec::new(),
            // Up to a second of work, which nobody else should wait for.
            Some(checks) => {
                let turn = turn.clone();
                let validating =
                    tokio::task::spawn_blocking(move || checks.violations(&turn, is_whole));
                validating.await.map_err(|_| GenerationError::HostGone)?
            }
        };
        let report = EnforcementReport {
            level,
            violations,
            relaxed: self.relaxed.take().unwrap_or_default(),
            completion: outcome.completion,
            forced_tokens: self.shared.forced.load(Ordering::Relaxed),
            refused_tokens: self.shared.refused.load(Ordering::Relaxed),
        };
        Ok(Generation {
            report,
            steps: self.take_steps(),
            turn,
            finish: outcome.finish,
            prompt_tokens: self.prompt_tokens,
            tokens: outcome.tokens,
            reasoning_tokens: outcome.reasoning_tokens,
            timing: outcome.timing,
            repaired_rows: outcome.repaired_rows,
        })
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Reads a generation to its end. Keeps the host's channel open until the first finish reason and not a moment longer.
pub(crate) async fn read(
    mut host: Receiver<Response>,
    mut taps: UnboundedReceiver<Tap>,
    mut reader: Reader,
    events: UnboundedSender<Read>,
    (shared, steps): (Arc<Shared>, Arc<Mutex<Vec<Step>>>),
) -> Result<Outcome, GenerationError> {
    // The user may have stopped listening; the generation is read to its end all the same.
    let send = |position: usize, found: Vec<Event>| {
        found.into_iter().for_each(|event| drop(events.send(Read { position, event })));
    };
    let mut stopped = false;
    let mut take = |reader: &mut Reader, tap: Tap| match tap {
        Tap::Tokens { tokens, step } => {
            let found = reader.push(&tokens);
            let phase = reader.phase();
            steps.lock().extend(step.map(|step| Step { phase, ..*step }));
            send(reader.tokens().len(), found);
        }
        Tap::Plan(plan) => {
            let found = reader.replan(&plan.0, plan.1);
            send(reader.tokens().len(), found);
        }
        Tap::Stopped { token, step } => {
            let phase = if reader.is_constrained() { Phase::Marker } else { Phase::Free };
            steps.lock().extend(step.map(|step| Step { phase, ..*step }));
            if shared.cut.load(Ordering::Relaxed) {
                reader.cut_off();
            }
            stopped = true;
            send(reader.tokens().len(), reader.stop(Some(token)));
        }
    };
    let reason = loop {
        tokio::select! {
            biased;
            Some(tap) = taps.recv() => take(&mut reader, tap),
            response = host.recv() => match response {
                None => break None,
                Some(response) => if let Some(reason) = finish_reason(response) {
                    break Some(reason);
                }
            },
        }
    };
    let ended = Instant::now();
    drop(host);
    shared.changes.lock().close();
    while let Ok(tap) = taps.try_recv() {
        take(&mut reader, tap);
    }
    let cancelled = shared.cancelled.load(Ordering::Relaxed);
    let cut = shared.cut.load(Ordering::Relaxed);
    if cut || cancelled && !stopped {
        reader.cut_off();
    }
    // The chunk with the reason is not sent if the text ends inside a character.
    let vanished = reason.is_none() && !(reader.may_end() && reader.host_holds_back());
    if matches!(reason, Some(Ok(_))) && !cancelled {
        send(reader.tokens().len(), reader.stop(None));
    }
    let may_end = reader.may_end();
    let end = reader.finish();
    let whole = may_end && !end.iter().any(|event| matches!(event, Event::Incomplete { .. }));
    send(reader.tokens().len(), end);

    if let Some(fault) = shared.fault.lock().clone().or_else(|| reader.fault().cloned()) {
        return Err(fault.into());
    }
    let pressed = shared.pressed.load(Ordering::Relaxed);
    let finish = match reason {
        Some(Err(message)) => return Err(GenerationError::Host(message)),
        _ if cut || pressed && !cancelled => Finish::Length,
        _ if cancelled => Finish::Cancelled,
        None if vanished => return Err(GenerationError::HostGone),
        Some(Ok(reason)) if reason == "length" => Finish::Length,
        Some(Ok(reason)) if reason == "canceled" => Finish::Cancelled,
        None | Some(Ok(_)) => Finish::Stop,
    };
    let completion = match finish {
        Finish::Cancelled => Completion::Cancelled,
        Finish::Stop => Completion::Complete,
        Finish::Length if whole && pressed => Completion::Pressed,
        Finish::Length => Completion::Truncated,
    };
    let clock = shared.clock.lock();
    let timing = clock.timing(reader.spent(), ended);
    let (tokens, reasoning_tokens) = (reader.tokens().to_vec(), reader.reasoning());
    Ok(Outcome {
        finish,
        completion,
        tokens,
        reasoning_tokens,
        timing,
        repaired_rows: clock.repaired,
    })
}

/// The finish reason of a chunk, or the host's error.
fn finish_reason(response: Response) -> Option<Result<String, String>> {
    match response {
        Response::CompletionChunk(chunk) => {
            chunk.choices.into_iter().find_map(|c| c.finish_reason).map(Ok)
        }
        Response::Chunk(chunk) => chunk.choices.into_iter().find_map(|c| c.finish_reason).map(Ok),
        Response::CompletionDone(done) => {
            Some(Ok(done.choices.into_iter().next().map_or_else(String::new, |c| c.finish_reason)))
        }
        Response::Done(done) => {
            Some(Ok(done.choices.into_iter().next().map_or_else(String::new, |c| c.finish_reason)))
        }
        Response::InternalError(error) | Response::ValidationError(error) => {
            Some(Err(error.to_string()))
        }
        Response::ModelError(message, _) | Response::CompletionModelError(message, _) => {
            Some(Err(message))
        }
        Response::ImageGeneration(_)
        | Response::Speech { .. }
        | Response::Raw { .. }
        | Response::Embeddings { .. } => Some(Err("an answer of another kind".to_owned())),
    }
}
