//! A running generation: what the host sends is drained at once, so that a slow reader never holds up its engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use louver_formats::{Event, Turn, TurnCollector};
use mistralrs_core::Response;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use crate::error::GenerationError;
use crate::hook::Shared;
use crate::reader::Reader;
use crate::report::Timing;

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
    /// What it cost.
    pub timing: Timing,
    /// Rows in which the model gave unusable logits (NaN or infinite) to allowed tokens.
    pub repaired_rows: usize,
}

/// What the reading task leaves.
pub(crate) struct Outcome {
    finish: Finish,
    tokens: Vec<u32>,
    timing: Timing,
    repaired_rows: usize,
}

/// Events of one generation as they come. Dropping it ends the generation at its next token.
#[derive(Debug)]
pub struct EventStream {
    pub(crate) events: UnboundedReceiver<Event>,
    pub(crate) outcome: oneshot::Receiver<Result<Outcome, GenerationError>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) collector: TurnCollector,
    pub(crate) prompt_tokens: usize,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome").field("finish", &self.finish).finish_non_exhaustive()
    }
}

impl EventStream {
    /// The next event; none after [`Event::End`].
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await;
        if let Some(event) = &event {
            self.collector.push(event);
        }
        event
    }

    /// Ends the generation at its next token. Events up to there still come.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Waits for the end; what was not read yet is read.
    pub async fn finish(mut self) -> Result<Generation, GenerationError> {
        while self.next().await.is_some() {}
        let outcome = (&mut self.outcome).await.unwrap_or(Err(GenerationError::HostGone))?;
        Ok(Generation {
            turn: std::mem::take(&mut self.collector).finish(),
            finish: outcome.finish,
            prompt_tokens: self.prompt_tokens,
            tokens: outcome.tokens,
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
    mut taps: UnboundedReceiver<Vec<u32>>,
    mut reader: Reader,
    events: UnboundedSender<Event>,
    shared: Arc<Shared>,
) -> Result<Outcome, GenerationError> {
    // The user may have stopped listening; the generation is read to its end all the same.
    let send = |found: Vec<Event>| found.into_iter().for_each(|event| drop(events.send(event)));
    let reason = loop {
        tokio::select! {
            biased;
            Some(tokens) = taps.recv() => send(reader.push(&tokens)),
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
    while let Ok(tokens) = taps.try_recv() {
        send(reader.push(&tokens));
    }
    // The chunk with the reason is not sent if the text ends inside a character.
    let vanished = reason.is_none() && !(reader.may_end() && reader.host_holds_back());
    send(reader.finish());

    if let Some(fault) = shared.fault.lock().clone().or_else(|| reader.fault().cloned()) {
        return Err(fault.into());
    }
    let cancelled = shared.cancelled.load(Ordering::Relaxed);
    let cut = shared.cut.load(Ordering::Relaxed);
    let finish = match reason {
        Some(Err(message)) => return Err(GenerationError::Host(message)),
        _ if cut => Finish::Length,
        _ if cancelled => Finish::Cancelled,
        None if vanished => return Err(GenerationError::HostGone),
        Some(Ok(reason)) if reason == "length" => Finish::Length,
        Some(Ok(reason)) if reason == "canceled" => Finish::Cancelled,
        None | Some(Ok(_)) => Finish::Stop,
    };
    let clock = shared.clock.lock();
    let timing = clock.timing(reader.spent(), ended);
    Ok(Outcome { finish, tokens: reader.tokens().to_vec(), timing, repaired_rows: clock.repaired })
}

/// The finish reason of a chunk, or the host's error.
fn finish_reason(response: Response) -> Option<Result<String, String>> {
    match response {
        Response::CompletionChunk(chunk) => chunk.choices.into_iter().find_map(|c| c.finish_reason).map(Ok),
        Response::Chunk(chunk) => chunk.choices.into_iter().find_map(|c| c.finish_reason).map(Ok),
        Response::CompletionDone(done) => {
            Some(Ok(done.choices.into_iter().next().map_or_else(String::new, |c| c.finish_reason)))
        }
        Response::Done(done) => Some(Ok(done.choices.into_iter().next().map_or_else(String::new, |c| c.finish_reason))),
        Response::InternalError(error) | Response::ValidationError(error) => Some(Err(error.to_string())),
        Response::ModelError(message, _) | Response::CompletionModelError(message, _) => Some(Err(message)),
        Response::ImageGeneration(_) | Response::Speech { .. } | Response::Raw { .. } | Response::Embeddings { .. } => {
            Some(Err("an answer of another kind".to_owned()))
        }
    }
}
