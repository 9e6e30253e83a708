//! The event stream of a running generation. The host's responses are drained immediately, so that
//! a slow consumer never blocks its engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use louver_formats::{Event, Turn, TurnCollector};
use mistralrs_core::Response;
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use crate::error::{Fault, GenerationError};
use crate::hook::{GenerationState, TokenEvent};
use crate::reader::Reader;
use crate::record::{Phase, Step};
use crate::report::{Completion, DrawnBy, EnforcementLevel, EnforcementReport, Relaxed, Timing};
use crate::validate::SchemaValidators;

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

/// A finished generation.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The parsed output. Truncated calls are left out.
    pub turn: Turn,
    /// Why it ended.
    pub finish: Finish,
    /// The prompt's length, in tokens.
    pub prompt_tokens: usize,
    /// The generated tokens without the stop token.
    pub tokens: Vec<u32>,
    /// Number of reasoning tokens among them.
    pub reasoning_tokens: usize,
    /// Timing.
    pub timing: Timing,
    /// Number of rows with unusable logits (NaN or infinite) for allowed tokens.
    pub repaired_rows: usize,
    /// The enforcement report.
    pub report: EnforcementReport,
    /// Recorded steps that [`EventStream::take_steps`] has not taken.
    pub steps: Vec<Step>,
}

impl Generation {
    /// Whether the turn is incomplete because of the length limit. A turn that was completed near
    /// the limit is not, although it may have been longer without a limit.
    pub fn is_truncated(&self) -> bool {
        self.report.completion == Completion::Truncated
    }
}

/// The result of the reading task.
pub(crate) struct ReadOutcome {
    finish: Finish,
    completion: Completion,
    tokens: Vec<u32>,
    reasoning_tokens: usize,
    timing: Timing,
    repaired_rows: usize,
}

/// The events of one running generation. Dropping it ends the generation at the next token.
#[derive(Debug)]
pub struct EventStream {
    pub(crate) events: UnboundedReceiver<PositionedEvent>,
    pub(crate) steps: Arc<Mutex<Vec<Step>>>,
    /// Number of tokens read when the last event was emitted.
    pub(crate) position: usize,
    pub(crate) relaxed: Option<Vec<Relaxed>>,
    /// Validators of relaxed schemas.
    pub(crate) validators: Option<Arc<SchemaValidators>>,
    /// The meaning of the grammar's labels.
    pub(crate) lowered: Option<louver_formats::Plan>,
    pub(crate) outcome: oneshot::Receiver<Result<ReadOutcome, GenerationError>>,
    pub(crate) shared: Arc<GenerationState>,
    pub(crate) collector: TurnCollector,
    pub(crate) prompt_tokens: usize,
    pub(crate) drawn_by: DrawnBy,
}

/// An event and the number of tokens read when it was emitted.
#[derive(Debug)]
pub(crate) struct PositionedEvent {
    position: usize,
    event: Event,
}

impl std::fmt::Debug for ReadOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome").field("finish", &self.finish).finish_non_exhaustive()
    }
}

impl EventStream {
    /// The next event; `None` after [`Event::End`].
    pub async fn next(&mut self) -> Option<Event> {
        let PositionedEvent { position, event } = self.events.recv().await?;
        self.position = position;
        self.collector.push(&event);
        Some(event)
    }

    /// Number of tokens read when the last event was emitted.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes the recorded steps. The step of a token is available before the token's events.
    pub fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.steps.lock())
    }

    /// The prompt's length, in tokens.
    pub fn prompt_tokens(&self) -> usize {
        self.prompt_tokens
    }

    /// Who draws the tokens, and the seed.
    pub fn drawn_by(&self) -> DrawnBy {
        self.drawn_by
    }

    /// Cancels the generation at its next token. Events up to there still arrive.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Waits for the end and reads the remaining events.
    pub async fn finish(mut self) -> Result<Generation, GenerationError> {
        while self.next().await.is_some() {}
        let outcome = (&mut self.outcome).await.unwrap_or(Err(GenerationError::HostGone))?;
        let level = match &self.relaxed {
            None => EnforcementLevel::None,
            Some(relaxed) if relaxed.is_empty() => EnforcementLevel::Full,
            Some(_) => EnforcementLevel::Partial,
        };
        let turn = std::mem::take(&mut self.collector).finish();
        let is_whole = matches!(outcome.completion, Completion::Complete | Completion::Pressed);
        let violations = match self.validators.take() {
            None => Vec::new(),
            // Up to a second of work, which must not block other tasks.
            Some(validators) => {
                let turn = turn.clone();
                let task =
                    tokio::task::spawn_blocking(move || validators.violations(&turn, is_whole));
                task.await.map_err(|_| GenerationError::HostGone)?
            }
        };
        let report = EnforcementReport {
            level,
            violations,
            relaxed: self.relaxed.take().unwrap_or_default(),
            completion: outcome.completion,
            forced_tokens: self.shared.forced_tokens.load(Ordering::Relaxed),
            refused_tokens: self.shared.refused_tokens.load(Ordering::Relaxed),
            drawn_by: self.drawn_by,
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

/// Reads a generation to its end. Keeps the host's channel open exactly until the first finish
/// reason.
pub(crate) async fn read(
    mut host: Receiver<Response>,
    mut token_receiver: UnboundedReceiver<TokenEvent>,
    mut reader: Reader,
    events: UnboundedSender<PositionedEvent>,
    (shared, steps): (Arc<GenerationState>, Arc<Mutex<Vec<Step>>>),
) -> Result<ReadOutcome, GenerationError> {
    // The consumer may be gone; the generation is still read to its end.
    let send = |position: usize, new_events: Vec<Event>| {
        new_events
            .into_iter()
            .for_each(|event| drop(events.send(PositionedEvent { position, event })));
    };
    let mut has_stop_token = false;
    let mut process = |reader: &mut Reader, token_event: TokenEvent| match token_event {
        TokenEvent::Tokens { tokens, step } => {
            let new_events = reader.push(&tokens);
            let phase = reader.phase();
            steps.lock().extend(step.map(|step| Step { phase, ..*step }));
            send(reader.tokens().len(), new_events);
        }
        TokenEvent::Plan(plan) => {
            let new_events = reader.replan(&plan.0, plan.1);
            send(reader.tokens().len(), new_events);
        }
        TokenEvent::Stopped { token, step } => {
            let phase = if reader.is_constrained() { Phase::Marker } else { Phase::Free };
            steps.lock().extend(step.map(|step| Step { phase, ..*step }));
            if shared.is_truncated.load(Ordering::Relaxed) {
                reader.cut_off();
            }
            has_stop_token = true;
            send(reader.tokens().len(), reader.stop(Some(token)));
        }
    };
    let reason = loop {
        tokio::select! {
            biased;
            Some(token_event) = token_receiver.recv() => process(&mut reader, token_event),
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
    while let Ok(token_event) = token_receiver.try_recv() {
        process(&mut reader, token_event);
    }
    let cancelled = shared.cancelled.load(Ordering::Relaxed);
    let is_truncated = shared.is_truncated.load(Ordering::Relaxed);
    if is_truncated || cancelled && !has_stop_token {
        reader.cut_off();
    }
    // The host sends no final chunk if the text ends inside a character.
    let host_gone = reason.is_none() && !(reader.may_end() && reader.host_holds_back());
    if matches!(reason, Some(Ok(_))) && !cancelled {
        send(reader.tokens().len(), reader.stop(None));
    }
    let may_end = reader.may_end();
    let end = reader.finish();
    let is_complete = may_end && !end.iter().any(|event| matches!(event, Event::Incomplete { .. }));
    send(reader.tokens().len(), end);

    if let Some(fault) = shared.fault.lock().clone().or_else(|| reader.fault().cloned()) {
        return Err(fault.into());
    }
    let is_narrowed = shared.is_narrowed.load(Ordering::Relaxed);
    let finish = match reason {
        Some(Err(message)) => return Err(GenerationError::Host(message)),
        _ if is_truncated || is_narrowed && !cancelled => Finish::Length,
        _ if cancelled => Finish::Cancelled,
        None if host_gone => return Err(GenerationError::HostGone),
        Some(Ok(reason)) if reason == "length" => Finish::Length,
        Some(Ok(reason)) if reason == "canceled" => Finish::Cancelled,
        None | Some(Ok(_)) => Finish::Stop,
    };
    if let Some(fault) = bypass(finish, may_end, &shared) {
        return Err(fault.into());
    }
    let completion = match finish {
        Finish::Cancelled => Completion::Cancelled,
        Finish::Stop => Completion::Complete,
        Finish::Length if is_complete && is_narrowed => Completion::Pressed,
        Finish::Length => Completion::Truncated,
    };
    let clock = shared.clock.lock();
    let timing = clock.timing(reader.elapsed(), ended);
    let (tokens, reasoning_tokens) = (reader.tokens().to_vec(), reader.reasoning_tokens());
    Ok(ReadOutcome {
        finish,
        completion,
        tokens,
        reasoning_tokens,
        timing,
        repaired_rows: clock.repaired,
    })
}

/// The fault of a generation whose tokens the host did not choose from rows that Louver had seen.
/// `may_end`: whether the grammar allows the end.
fn bypass(finish: Finish, may_end: bool, shared: &GenerationState) -> Option<Fault> {
    match finish {
        Finish::Cancelled => None,
        _ if !shared.clock.lock().has_started() => {
            Some(Fault::Bypassed("no row of logits was passed to it"))
        }
        Finish::Stop if !may_end => Some(Fault::Bypassed("the turn ended where it could not end")),
        Finish::Stop | Finish::Length => None,
    }
}

/// The finish reason in a response, or the host's error.
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
        | Response::Embeddings { .. } => Some(Err("an unexpected kind of response".to_owned())),
    }
}
