//! Batches: masks of many sequences, filled by several threads.

use std::time::Instant;

use anyhow::Result;
use louver::engine::{Constraint, EngineOptions, Matcher};
use louver::ids::TokenId;
use rayon::prelude::*;
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

/// Times of filling the whole batch.
pub(super) struct Fill {
    /// With unchanged configurations.
    pub(super) standing: SortedTimes,
    /// With each sequence advanced by one token.
    pub(super) moving: SortedTimes,
}

#[derive(Serialize)]
struct BatchLine {
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
        lines.push(BatchLine { engine: kind.name(), matchers, threads, standing_ns, moving_ns });
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
    let mut batch = new_batch(setup, kind, cases, matchers, threads)?;
    // Each sequence visits all configurations of its text before. xgrammar computed all masks when
    // the schemas were compiled.
    let longest = cases.iter().map(|case| case.instances[0].0.len()).max().unwrap_or(0);
    let untimed = if kind == EngineKind::Xgrammar { 1 } else { longest };
    time_batch_calls(batch.as_mut(), untimed)
}

/// Creates the batch of an engine. Sequences start at different positions of their texts.
pub(super) fn new_batch<'a>(
    setup: &'a Setup,
    kind: EngineKind,
    cases: &'a [Case],
    matchers: usize,
    threads: usize,
) -> Result<Box<dyn Batch + 'a>> {
    Ok(match kind {
        EngineKind::Louver => Box::new(LouverBatch::new(setup, cases, matchers, threads)?),
        EngineKind::Llguidance => Box::new(LlguidanceBatch::new(setup, cases, matchers, threads)?),
        #[cfg(feature = "xgr")]
        EngineKind::Xgrammar => {
            Box::new(xgrammar_batch::XgrammarBatch::new(setup, cases, matchers, threads)?)
        }
        #[cfg(not(feature = "xgr"))]
        EngineKind::Xgrammar => anyhow::bail!("xgrammar is not built in"),
    })
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

/// The sequences of one engine, each of which repeats its text.
pub(super) trait Batch {
    /// Writes the masks of all sequences, on several threads.
    fn fill(&mut self) -> Result<()>;

    /// Advances each sequence by one token.
    fn step(&mut self) -> Result<()>;
}

/// Times an engine's batch calls, after some untimed ones.
fn time_batch_calls(batch: &mut dyn Batch, untimed: usize) -> Result<Fill> {
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
    compiler: LouverCompiler,
    constraints: Vec<Constraint>,
    sequences: Vec<Matcher>,
    /// The constraint, text and position of each sequence.
    positions: Vec<(usize, &'a [u32], usize)>,
    masks: Vec<u32>,
}

impl<'a> LouverBatch<'a> {
    fn new(
        setup: &Setup,
        cases: &'a [Case],
        matchers: usize,
        threads: usize,
    ) -> Result<LouverBatch<'a>> {
        let options = EngineOptions::default().with_batch_threads(threads);
        let compiler = LouverCompiler::new(&setup.vocab, options)?;
        let constraints: Result<Vec<Constraint>, String> =
            cases.iter().map(|c| compiler.constraint(&c.task)).collect();
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
        let masks = vec![0; matchers * setup.vocab.mask_words()];
        Ok(LouverBatch { compiler, constraints, sequences, positions, masks })
    }
}

impl Batch for LouverBatch<'_> {
    fn fill(&mut self) -> Result<()> {
        self.compiler.engine().fill_masks(&mut self.sequences, &mut self.masks)?;
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

struct LlguidanceSequence<'a> {
    initial: llguidance::Matcher,
    matcher: llguidance::Matcher,
    tokens: &'a [u32],
    position: usize,
}

impl LlguidanceSequence<'_> {
    fn step(&mut self) {
        let accepted = self.matcher.consume_token(self.tokens[self.position]);
        self.position += 1;
        if accepted.is_err() || self.position == self.tokens.len() {
            (self.matcher, self.position) = (self.initial.deep_clone(), 0);
        }
    }
}

struct LlguidanceBatch<'a> {
    sequences: Vec<LlguidanceSequence<'a>>,
    masks: Vec<u32>,
    words: usize,
    threads: rayon::ThreadPool,
}

impl<'a> LlguidanceBatch<'a> {
    fn new(
        setup: &Setup,
        cases: &'a [Case],
        matchers: usize,
        threads: usize,
    ) -> Result<LlguidanceBatch<'a>> {
        let engine = Llguidance::new(setup.tok_env()?)?;
        let initial: Result<Vec<_>, String> =
            cases.iter().map(|c| engine.matcher(&c.task).1).collect();
        let initial = initial.map_err(anyhow::Error::msg)?;
        let sequences = start_positions(cases, matchers).map(|(case, tokens, position)| {
            let matcher = initial[case].deep_clone();
            let initial = matcher.deep_clone();
            let mut sequence = LlguidanceSequence { initial, matcher, tokens, position: 0 };
            (0..position).for_each(|_| sequence.step());
            sequence
        });
        let words = setup.vocab.mask_words();
        Ok(LlguidanceBatch {
            sequences: sequences.collect(),
            masks: vec![0; matchers * words],
            words,
            threads: rayon::ThreadPoolBuilder::new().num_threads(threads).build()?,
        })
    }
}

impl Batch for LlguidanceBatch<'_> {
    /// The engine allocates each mask; it is copied into the batch's rows.
    fn fill(&mut self) -> Result<()> {
        let fill = |(sequence, row): (&mut LlguidanceSequence<'_>, &mut [u32])| -> Result<()> {
            let mask = sequence.matcher.compute_mask()?;
            for (word, bits) in row.iter_mut().zip(mask.as_slice()) {
                *word = *bits;
            }
            Ok(())
        };
        let (sequences, rows) =
            (self.sequences.par_iter_mut(), self.masks.par_chunks_mut(self.words));
        self.threads.install(|| sequences.zip(rows).try_for_each(fill))
    }

    fn step(&mut self) -> Result<()> {
        self.sequences.iter_mut().for_each(LlguidanceSequence::step);
        Ok(())
    }
}

#[cfg(feature = "xgr")]
mod xgrammar_batch {
    use anyhow::{Context, Result};
    use dlpark::versioned::SafeManagedTensorVersioned;
    use xgrammar::{BatchGrammarMatcher, GrammarMatcher};

    use super::{Batch, start_positions};
    use crate::cases::Case;
    use crate::engine::xgrammar::{Xgrammar, bitmask, matcher};
    use crate::setup::Setup;

    pub(super) struct XgrammarBatch<'a> {
        sequences: Vec<GrammarMatcher>,
        /// The text and position of each sequence.
        positions: Vec<(&'a [u32], usize)>,
        rows: SafeManagedTensorVersioned,
        batch: BatchGrammarMatcher,
    }

    impl<'a> XgrammarBatch<'a> {
        pub(super) fn new(
            setup: &Setup,
            cases: &'a [Case],
            matchers: usize,
            threads: usize,
        ) -> Result<XgrammarBatch<'a>> {
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
            Ok(XgrammarBatch { sequences, positions, rows, batch })
        }
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
