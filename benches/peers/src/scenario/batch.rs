//! Batches: masks of many sequences, filled by several threads.

use std::sync::Barrier;
use std::time::Instant;

use anyhow::Result;
use louver::engine::{Constraint, EngineOptions, Matcher};
use louver::ids::TokenId;
use serde::Serialize;

use super::corpus::SCHEMAS;
use crate::cases::{self, Case, Task};
use crate::engine::{Engine, EngineKind, Llguidance, LouverCompiler};
use crate::options::Common;
use crate::output;
use crate::setup::Setup;
use crate::table::{SortedTimes, micros};

/// Number of schemas that the sequences use.
const SCHEMAS_USED: usize = 20;
/// Maximum bytes of a schema, because some engines compile eagerly.
const MAX_SCHEMA_BYTES: usize = 3000;
/// Number of timed fills of the whole batch.
const ROUNDS: usize = 40;

/// A sequence that repeats its text.
trait Sequence: Send {
    fn fill(&mut self, row: &mut [u32]);
    fn step(&mut self);
    /// Number of tokens of the text.
    fn length(&self) -> usize;
}

/// Times of filling the whole batch.
pub(super) struct Fill {
    /// With unchanged configurations.
    pub(super) standing: SortedTimes,
    /// With each sequence advanced by one token.
    pub(super) moving: SortedTimes,
}

#[derive(Serialize)]
struct Line {
    engine: &'static str,
    matchers: usize,
    threads: usize,
    standing_ns: Option<f64>,
    moving_ns: Option<f64>,
}

pub(super) fn run(common: &Common, matchers: usize, threads: usize) -> Result<()> {
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let kinds = common.kinds();
    let Some(cases) = schemas(common, &setup, &kinds)? else { return Ok(()) };
    output::heading("A batch", &common.tokenizer, &kinds);
    println!(
        "{matchers} sequences on {} schemas, warm, {threads} threads; the whole batch's masks.",
        cases.len()
    );
    println!("Microseconds over {ROUNDS} fills.\n");
    println!("| engine | standing, least | median | max | moving, least | median | max |");
    println!("|:--|--:|--:|--:|--:|--:|--:|");
    let mut lines = Vec::new();
    for kind in kinds {
        let fill = measure(&setup, kind, &cases, matchers, threads)?;
        let cells = [&fill.standing, &fill.moving]
            .map(|t| [0.0, 50.0, 100.0].map(|p| micros(t.percentile(p))).join(" | "));
        println!("| {} | {} |", kind.name(), cells.join(" | "));
        let (standing_ns, moving_ns) =
            (fill.standing.percentile(50.0), fill.moving.percentile(50.0));
        lines.push(Line { engine: kind.name(), matchers, threads, standing_ns, moving_ns });
    }
    output::write_lines(&common.out, &format!("batch.{}.jsonl", common.tokenizer), lines)
}

/// Schemas from the whole file, each with one valid instance that all engines accept.
pub(super) fn schemas(
    common: &Common,
    setup: &Setup,
    kinds: &[EngineKind],
) -> Result<Option<Vec<Case>>> {
    let Some(lines) = cases::lines(common, SCHEMAS.file)? else { return Ok(None) };
    let encoder = setup.encoder();
    let engines = setup.engines(kinds)?;
    let mut cases = Vec::new();
    for line in lines.step_by(41) {
        let Ok(mut case) = cases::schema_case(&line?, &encoder) else { continue };
        case.instances.retain(|(tokens, valid)| *valid && tokens.len() > 20);
        case.instances.truncate(1);
        let passes = |engine: &dyn Engine| {
            crate::feed::run(engine, &case).wrong.is_some_and(|wrong| wrong.is_empty())
        };
        let Task::Schema(schema) = &case.task else { continue };
        if schema.text.len() < MAX_SCHEMA_BYTES
            && !case.instances.is_empty()
            && engines.iter().all(|engine| passes(engine.as_ref()))
        {
            cases.push(case);
        }
        if cases.len() == SCHEMAS_USED {
            break;
        }
    }
    Ok((!cases.is_empty()).then_some(cases))
}

/// Measures warm fills of a batch.
pub(super) fn measure(
    setup: &Setup,
    kind: EngineKind,
    cases: &[Case],
    matchers: usize,
    threads: usize,
) -> Result<Fill> {
    match kind {
        EngineKind::Louver => time_louver(setup, cases, matchers, threads),
        EngineKind::Llguidance => {
            let engine = Llguidance::new(setup.tok_env()?)?;
            let initial: Result<Vec<_>, String> =
                cases.iter().map(|c| engine.matcher(&c.task).1).collect();
            let initial = initial.map_err(anyhow::Error::msg)?;
            let sequences = start_positions(cases, matchers).map(|(c, tokens, position)| {
                let matcher = initial[c].deep_clone();
                let mut sequence = LlguidanceSequence {
                    initial: matcher.deep_clone(),
                    matcher,
                    tokens,
                    position: 0,
                };
                (0..position).for_each(|_| sequence.step());
                sequence
            });
            Ok(time_threads(sequences.collect(), setup.vocab.mask_words(), threads))
        }
        #[cfg(feature = "xgr")]
        EngineKind::Xgrammar => xgrammar_batch::time_batch(setup, cases, matchers, threads),
        #[cfg(not(feature = "xgr"))]
        EngineKind::Xgrammar => anyhow::bail!("xgrammar is not built in"),
    }
}

/// The case, text and start position of each sequence.
fn start_positions(
    cases: &[Case],
    matchers: usize,
) -> impl Iterator<Item = (usize, &[u32], usize)> {
    (0..matchers).map(move |i| {
        let tokens = cases[i % cases.len()].instances[0].0.as_slice();
        (i % cases.len(), tokens, i * 7 % tokens.len())
    })
}

struct LlguidanceSequence<'a> {
    initial: llguidance::Matcher,
    matcher: llguidance::Matcher,
    tokens: &'a [u32],
    position: usize,
}

impl Sequence for LlguidanceSequence<'_> {
    /// The engine allocates its masks; the host's copy into the row is not measured.
    fn fill(&mut self, _row: &mut [u32]) {
        std::hint::black_box(self.matcher.compute_mask().is_ok());
    }

    fn step(&mut self) {
        let accepted = self.matcher.consume_token(self.tokens[self.position]);
        self.position += 1;
        if accepted.is_err() || self.position == self.tokens.len() {
            (self.matcher, self.position) = (self.initial.deep_clone(), 0);
        }
    }

    fn length(&self) -> usize {
        self.tokens.len()
    }
}

/// Fills the batch with permanent threads, each with its part of the sequences. A fill lasts from
/// the first thread's start to the last thread's end; every sequence has visited its configurations
/// before.
fn time_threads<S: Sequence>(mut sequences: Vec<S>, words: usize, threads: usize) -> Fill {
    let mut rows = vec![0u32; sequences.len() * words];
    let part = sequences.len().div_ceil(threads).max(1);
    let parts: Vec<_> = sequences.chunks_mut(part).zip(rows.chunks_mut(part * words)).collect();
    let barrier = Barrier::new(parts.len());
    let spans: Vec<Vec<Span>> = std::thread::scope(|scope| {
        let barrier = &barrier;
        let spawn =
            |(sequences, rows)| scope.spawn(move || time_thread(sequences, rows, words, barrier));
        let handles: Vec<_> = parts.into_iter().map(spawn).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    let duration = |round: usize| {
        let begin = spans.iter().map(|thread| thread[round].0).min()?;
        let end = spans.iter().map(|thread| thread[round].1).max()?;
        u64::try_from((end - begin).as_nanos()).ok()
    };
    Fill {
        standing: SortedTimes::new((0..ROUNDS).filter_map(duration)),
        moving: SortedTimes::new((ROUNDS..2 * ROUNDS).filter_map(duration)),
    }
}

/// Start and end of a thread's part of a fill.
type Span = (Instant, Instant);

/// One thread's part: each sequence once through its text, then the timed fills.
fn time_thread<S: Sequence>(
    sequences: &mut [S],
    rows: &mut [u32],
    words: usize,
    barrier: &Barrier,
) -> Vec<Span> {
    for (sequence, row) in sequences.iter_mut().zip(rows.chunks_mut(words)) {
        for _ in 0..sequence.length() {
            sequence.fill(row);
            sequence.step();
        }
    }
    let fill = |round| {
        if round >= ROUNDS {
            sequences.iter_mut().for_each(Sequence::step);
        }
        barrier.wait();
        let begin = Instant::now();
        sequences
            .iter_mut()
            .zip(rows.chunks_mut(words))
            .for_each(|(sequence, row)| sequence.fill(row));
        (begin, Instant::now())
    };
    (0..2 * ROUNDS).map(fill).collect()
}

/// A batch that the engine fills in one call, on its own threads.
trait Batch {
    fn fill(&mut self) -> Result<()>;
    fn step(&mut self) -> Result<()>;
}

/// Times an engine's batch calls, after some untimed ones.
fn time_batch_calls(batch: &mut impl Batch, untimed: usize) -> Result<Fill> {
    for _ in 0..untimed {
        batch.fill()?;
        batch.step()?;
    }
    let (mut standing, mut moving) = (Vec::new(), Vec::new());
    for round in 0..2 * ROUNDS {
        if round >= ROUNDS {
            batch.step()?;
        }
        let begin = Instant::now();
        batch.fill()?;
        let times = if round < ROUNDS { &mut standing } else { &mut moving };
        times.push(u64::try_from(begin.elapsed().as_nanos())?);
    }
    Ok(Fill { standing: SortedTimes::new(standing), moving: SortedTimes::new(moving) })
}

struct LouverBatch<'a> {
    engine: &'a louver::engine::Engine,
    constraints: &'a [Constraint],
    sequences: Vec<Matcher>,
    /// The constraint, text and position of each sequence.
    positions: Vec<(usize, &'a [u32], usize)>,
    masks: Vec<u32>,
}

fn time_louver(setup: &Setup, cases: &[Case], matchers: usize, threads: usize) -> Result<Fill> {
    let options = EngineOptions { batch_threads: threads, ..EngineOptions::default() };
    let engine = LouverCompiler::new(&setup.vocab, options)?;
    let constraints: Result<Vec<Constraint>, String> =
        cases.iter().map(|c| engine.constraint(&c.task)).collect();
    let constraints = constraints.map_err(anyhow::Error::msg)?;
    let positions: Vec<_> = start_positions(cases, matchers).collect();
    let mut sequences = Vec::new();
    for (case, tokens, position) in &positions {
        let mut matcher = constraints[*case].matcher();
        for &token in &tokens[..*position] {
            matcher.advance(TokenId::from_raw(token))?;
        }
        sequences.push(matcher);
    }
    let longest = positions.iter().map(|(_, tokens, _)| tokens.len()).max().unwrap_or(0);
    let masks = vec![0; matchers * setup.vocab.mask_words()];
    let mut batch = LouverBatch {
        engine: engine.engine(),
        constraints: &constraints,
        sequences,
        positions,
        masks,
    };
    time_batch_calls(&mut batch, longest)
}

impl Batch for LouverBatch<'_> {
    fn fill(&mut self) -> Result<()> {
        self.engine.fill_masks(&mut self.sequences, &mut self.masks)?;
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        for (matcher, (constraint, tokens, position)) in
            self.sequences.iter_mut().zip(&mut self.positions)
        {
            let accepted = matcher.advance(TokenId::from_raw(tokens[*position]));
            *position += 1;
            if accepted.is_err() || *position == tokens.len() {
                (*matcher, *position) = (self.constraints[*constraint].matcher(), 0);
            }
        }
        Ok(())
    }
}

#[cfg(feature = "xgr")]
mod xgrammar_batch {
    use anyhow::{Context, Result};
    use dlpark::versioned::SafeManagedTensorVersioned;
    use xgrammar::{BatchGrammarMatcher, GrammarMatcher};

    use super::{Batch, Fill, start_positions, time_batch_calls};
    use crate::cases::Case;
    use crate::engine::xgrammar::{Xgrammar, bitmask, matcher};
    use crate::setup::Setup;

    struct XgrammarBatch<'a> {
        sequences: Vec<GrammarMatcher>,
        /// The text and position of each sequence.
        positions: Vec<(&'a [u32], usize)>,
        rows: SafeManagedTensorVersioned,
        batch: BatchGrammarMatcher,
    }

    pub(super) fn time_batch(
        setup: &Setup,
        cases: &[Case],
        matchers: usize,
        threads: usize,
    ) -> Result<Fill> {
        let engine = Xgrammar::new(setup.tokenizer_info()?)?;
        let compiled: Result<Vec<_>, String> =
            cases.iter().map(|case| engine.compiled(&case.task).1).collect();
        let compiled = compiled.map_err(anyhow::Error::msg)?;
        let (mut sequences, mut positions) = (Vec::new(), Vec::new());
        for (case, tokens, position) in start_positions(cases, matchers) {
            let mut sequence = matcher(&compiled[case]);
            for &token in &tokens[..position] {
                sequence.accept_token(i32::try_from(token)?, None);
            }
            sequences.push(sequence);
            positions.push((tokens, position));
        }
        let rows = bitmask(setup.tokenizer_info()?, matchers)?;
        let batch = BatchGrammarMatcher::with_max_threads(i32::try_from(threads)?);
        // All masks were computed when the schemas were compiled.
        time_batch_calls(&mut XgrammarBatch { sequences, positions, rows, batch }, 1)
    }

    impl Batch for XgrammarBatch<'_> {
        fn fill(&mut self) -> Result<()> {
            let filled = self.batch.batch_fill_next_token_bitmask(
                &mut self.sequences,
                &mut self.rows,
                None,
                None,
            );
            filled.context("xgrammar rejected the batch")
        }

        fn step(&mut self) -> Result<()> {
            for (sequence, (tokens, position)) in self.sequences.iter_mut().zip(&mut self.positions)
            {
                let accepted = sequence.accept_token(i32::try_from(tokens[*position])?, None);
                *position += 1;
                if !accepted || *position == tokens.len() {
                    sequence.reset();
                    *position = 0;
                }
            }
            Ok(())
        }
    }
}
