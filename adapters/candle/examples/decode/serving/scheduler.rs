//! The loop: which sequences run, and what a step does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use louver::Engine;
use louver_candle::MaskBatch;

use super::draw::{DrawRow, draw};
use super::masks::{DrawnRows, fill};
use super::model::Model;
use super::sequence::{Finish, Output, Request, Sequence, StepParts};
use super::settings::Settings;

/// Sequences that wait and sequences that run.
pub(crate) struct DecodeLoop<M: Model> {
    pub(crate) model: M,
    engine: Arc<Engine>,
    settings: Settings,
    waiting: VecDeque<(usize, Request)>,
    running: Vec<Sequence<M::Cache>>,
    masks: MaskBatch,
    submitted: usize,
    times: Times,
}

/// Total times since the loop was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) steps: u32,
    /// The forward pass; on CUDA, the time to queue it.
    pub(crate) forward: Duration,
    /// Filling the masks.
    pub(crate) masks: Duration,
    /// Both, which is less than their sum if they overlap.
    pub(crate) both: Duration,
    /// Masking and drawing; on CUDA, the rest of the forward pass as well.
    pub(crate) draw: Duration,
    /// Matchers, forced tokens and drafts.
    pub(crate) accept: Duration,
}

impl<M: Model + Sync> DecodeLoop<M> {
    /// An empty loop. `engine` has the model's vocabulary.
    pub(crate) fn new(model: M, engine: Arc<Engine>, settings: Settings) -> Self {
        let mut masks = MaskBatch::for_vocabulary(engine.vocab());
        masks.keep_masks(settings.kept_masks);
        let (waiting, running) = (VecDeque::new(), Vec::new());
        let times = Times::default();
        Self { model, engine, settings, waiting, running, masks, submitted: 0, times }
    }

    /// Queues a request. Returns its number.
    pub(crate) fn submit(&mut self, request: Request) -> Result<usize> {
        let prompt = request.prompt.len();
        ensure!(prompt > 0, "the prompt is empty");
        ensure!(
            prompt <= self.model.context_length(),
            "the prompt has {prompt} tokens and the model reads at most {}",
            self.model.context_length()
        );
        let id = self.submitted;
        self.submitted += 1;
        self.waiting.push_back((id, request));
        Ok(id)
    }

    /// Ends a request, wherever it is. `None` if it has ended.
    pub(crate) fn cancel(&mut self, id: usize) -> Option<Output> {
        if let Some(at) = self.running.iter().position(|sequence| sequence.id == id) {
            return Some(self.running.remove(at).into_output());
        }
        let at = self.waiting.iter().position(|(waiting, _)| *waiting == id)?;
        self.waiting.remove(at);
        let (tokens, usage) = Default::default();
        Some(Output { id, tokens, finish: Finish::Cancelled, usage })
    }

    /// Whether nothing waits and nothing runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    pub(crate) fn times(&self) -> Times {
        self.times
    }

    /// The masks of the last step.
    pub(crate) fn masks(&self) -> &MaskBatch {
        &self.masks
    }

    /// Runs one step and returns the sequences that ended. After an error the loop is not to be
    /// used any more.
    pub(crate) fn step(&mut self) -> Result<Vec<Output>> {
        while self.running.len() < self.settings.max_rows
            && let Some((id, request)) = self.waiting.pop_front()
        {
            let (cache, length) = (self.model.new_cache(), self.model.context_length());
            self.running.push(Sequence::new(id, request, cache, &self.settings, length));
        }
        self.run_batch()?;
        let ended = self.running.extract_if(.., |sequence| sequence.is_finished());
        Ok(ended.map(Sequence::into_output).collect())
    }

    /// One forward pass over all running sequences, and the tokens that follow from it.
    fn run_batch(&mut self) -> Result<()> {
        let mut sequences: Vec<&mut Sequence<M::Cache>> =
            self.running.iter_mut().filter(|sequence| !sequence.is_finished()).collect();
        if sequences.is_empty() {
            return Ok(());
        }
        let (mut chunks, mut drawn, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for sequence in &mut sequences {
            sequence.plan(&self.settings);
            let sampling = sequence.sampling;
            let StepParts { chunk, matcher, draft, position } = sequence.parts();
            if chunk.logits > 0 {
                drawn.push(DrawnRows { matcher, draft, first: rows.len() });
                let row = |at| DrawRow { sampling, position: position + at };
                rows.extend((0..chunk.logits).map(row));
            }
            chunks.push(chunk);
        }

        let counts: Vec<usize> = chunks.iter().map(|chunk| chunk.logits).collect();
        let begin = Instant::now();
        let mut forward = || timed(|| self.model.forward(&mut chunks));
        let device = self.model.device();
        let mut fill = || timed(|| fill(&mut self.masks, &self.engine, &mut drawn, device));
        let ((logits, forward), (filled, masks)) = if self.settings.overlap {
            at_the_same_time(forward, fill)?
        } else {
            (forward(), fill())
        };
        let both = begin.elapsed();
        filled?;

        // Unconstrained rows have no mask, so the logits' padding is left out here.
        let logits = logits?.narrow(1, 0, self.masks.width())?;
        let (tokens, draw) = timed(|| draw(&logits, &self.masks, &rows));
        let tokens = tokens?;
        let ((), accept) = timed(|| {
            let mut rest = &tokens[..];
            for (sequence, count) in sequences.iter_mut().zip(counts) {
                let (own, others) = rest.split_at(count);
                sequence.accept(own, &self.settings, self.engine.vocab());
                rest = others;
            }
        });
        self.times.add(&Times { steps: 1, forward, masks, both, draw, accept });
        Ok(())
    }
}

/// Runs the forward pass on this thread and fills masks on another one.
fn at_the_same_time<A, B: Send>(
    forward: impl FnOnce() -> A,
    fill: impl FnOnce() -> B + Send,
) -> Result<(A, B)> {
    std::thread::scope(|scope| {
        let fill = scope.spawn(fill);
        let forward = forward();
        let filled = fill.join().map_err(|_| anyhow!("filling the masks panicked"))?;
        Ok((forward, filled))
    })
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let result = run();
    (result, begin.elapsed())
}

impl Times {
    fn add(&mut self, step: &Times) {
        self.steps += step.steps;
        self.forward += step.forward;
        self.masks += step.masks;
        self.both += step.both;
        self.draw += step.draw;
        self.accept += step.accept;
    }
}
