//! Running sequences beside new requests: what a mask waits for.
//!
//! ```text
//! sequences   mask, advance, prefetch   for each of them, then the rest of the forward pass
//! arrivals    compile, prepare          a new tool set every few milliseconds
//! engine      preparations, prefetches  on its background thread
//! ```
//!
//! The thread of the sequences counts how often it blocks (voluntary context switches). A mask
//! during which it blocked waited for a lock. A mask that was slow without that was made in this
//! thread, or the operating system gave the core to another thread.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use louver::engine::{Constraint, EngineOptions, Matcher, PrepareBudget};
use louver::ids::TokenId;
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

use super::corpus::TOOLS;
use crate::cases::{self, Case, Task, Tool, Tools};
use crate::engine::{EngineKind, LouverCompiler};
use crate::options::Common;
use crate::output;
use crate::setup::Setup;
use crate::table::{SortedTimes, micros};

/// The bar: 999 of 1,000 masks take at most so long, whatever is prepared beside them.
const BAR: Duration = Duration::from_millis(1);

/// Options of the scenario.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LoadArgs {
    /// Running sequences.
    #[arg(long, value_name = "N", default_value = "64")]
    sequences: NonZeroUsize,
    /// New tool sets per second.
    #[arg(long, value_name = "N", default_value = "200")]
    arrivals: NonZeroUsize,
    /// Duration of a step's forward pass, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "15")]
    forward_ms: u64,
    /// Duration of each phase.
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    seconds: u64,
}

/// What happens beside the running sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Beside {
    Nothing,
    Compilations,
    Preparations,
}

impl Beside {
    const ALL: [Beside; 3] = [Beside::Nothing, Beside::Compilations, Beside::Preparations];

    fn name(self) -> &'static str {
        match self {
            Beside::Nothing => "nothing",
            Beside::Compilations => "new tool sets, not prepared",
            Beside::Preparations => "new tool sets, prepared",
        }
    }
}

/// The times of one phase, in nanoseconds.
#[derive(Debug, Default, Serialize)]
struct Phase {
    masks_ns: Vec<u64>,
    /// Of those, the masks that waited for a lock.
    blocked_ns: Vec<u64>,
    /// New tool sets compiled.
    arrivals: usize,
    /// Masks made in the background, and those of them that were asked for.
    ahead: (u64, u64),
    /// Background jobs that were dropped for later ones.
    dropped: u64,
}

pub(super) fn run(common: &Common, args: LoadArgs) -> Result<()> {
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let Some(lines) = cases::lines(common, TOOLS.file)? else { return Ok(()) };
    let encoder = setup.encoder();
    let cases: Vec<Case> =
        lines.map(|line| (TOOLS.case)(&line?, &encoder)).collect::<Result<_>>()?;
    ensure!(!cases.is_empty(), "there are no cases");
    output::heading(
        "Running sequences beside new requests",
        &common.tokenizer,
        &[EngineKind::Louver],
    );
    println!(
        "{} sequences, {} new tool sets a second, forward passes of {} ms, {} s each. \
         Microseconds.\n",
        args.sequences, args.arrivals, args.forward_ms, args.seconds
    );
    println!(
        "| beside | arrivals | masks | p50 | p99 | p99.9 | max | waited for a lock | at most | made \
         ahead | used | dropped |"
    );
    println!("|:--|{}", "--:|".repeat(11));
    let mut lines = Vec::new();
    for beside in Beside::ALL {
        let phase = phase(&setup, &cases, args, beside)?;
        println!("{}", row(beside, &phase));
        lines.push((beside, phase));
    }
    output::write_lines(&common.out, &format!("load.{}.jsonl", common.tokenizer), &lines)?;
    for (beside, phase) in &lines {
        let slow = phase.masks_ns.iter().filter(|ns| u128::from(**ns) > BAR.as_nanos()).count();
        ensure!(
            slow * 1000 <= phase.masks_ns.len(),
            "beside {}, {slow} of {} masks took over 1 ms",
            beside.name(),
            phase.masks_ns.len()
        );
    }
    Ok(())
}

fn row(beside: Beside, phase: &Phase) -> String {
    let masks = SortedTimes::new(phase.masks_ns.iter().copied());
    let blocked = SortedTimes::new(phase.blocked_ns.iter().copied());
    let times = [50.0, 99.0, 99.9, 100.0].map(|p| micros(masks.percentile(p)));
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        beside.name(),
        phase.arrivals,
        phase.masks_ns.len(),
        times.join(" | "),
        phase.blocked_ns.len(),
        micros(blocked.percentile(100.0)),
        phase.ahead.0,
        phase.ahead.1,
        phase.dropped
    )
}

/// Runs one phase on a new engine.
fn phase(setup: &Setup, cases: &[Case], args: LoadArgs, beside: Beside) -> Result<Phase> {
    let louver = LouverCompiler::new(&setup.vocab, EngineOptions::default())?;
    let done = AtomicBool::new(false);
    let mut phase = std::thread::scope(|scope| {
        let arrivals = scope.spawn(|| match beside {
            Beside::Nothing => Ok(0),
            _ => arrive(&louver, cases, args, beside, &done),
        });
        let phase = steps(&louver, cases, args);
        done.store(true, Ordering::Relaxed);
        let arrivals = arrivals.join().map_err(|_| anyhow::anyhow!("the arrivals panicked"))??;
        Ok::<_, anyhow::Error>(Phase { arrivals, ..phase? })
    })?;
    let stats = louver.engine().stats();
    phase.ahead = (stats.background_masks_built, stats.background_masks_used);
    phase.dropped = stats.background_jobs_dropped;
    Ok(phase)
}

/// Compiles and prepares new tool sets, each with names of its own, until `done`.
fn arrive(
    louver: &LouverCompiler,
    cases: &[Case],
    args: LoadArgs,
    beside: Beside,
    done: &AtomicBool,
) -> Result<usize> {
    let interval = Duration::from_secs(1) / u32::try_from(args.arrivals.get())?;
    let begin = Instant::now();
    let mut arrivals = 0;
    while !done.load(Ordering::Relaxed) {
        let Task::Tools(tools) = &cases[arrivals % cases.len()].task else {
            bail!("a case without tools")
        };
        let renamed =
            |tool: &Tool| Tool { name: format!("{}_{arrivals}", tool.name), ..tool.clone() };
        let tools = Tools::of(tools.each.iter().map(renamed).collect(), tools.format);
        let constraint = louver.constraint(&Task::Tools(tools)).map_err(anyhow::Error::msg)?;
        if beside == Beside::Preparations {
            constraint.prepare(PrepareBudget::default());
        }
        arrivals += 1;
        let due = begin + interval * u32::try_from(arrivals)?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(arrivals)
}

/// A running sequence, and the text that its model generates.
struct Running<'a> {
    matcher: Matcher,
    /// The token sampled in the last step, which the matcher has not taken yet.
    sampled: Option<TokenId>,
    /// The rest of the text.
    tokens: &'a [u32],
}

/// Starts the sequence of a case; its constraint was prepared while its prompt was processed.
fn start<'a>(louver: &LouverCompiler, case: &'a Case) -> Result<Running<'a>> {
    let constraint: Constraint = louver.constraint(&case.task).map_err(anyhow::Error::msg)?;
    constraint.prepare(PrepareBudget::default());
    let tokens = case.instances.first().context("a case without a text")?.0.as_slice();
    Ok(Running { matcher: constraint.matcher(), sampled: None, tokens })
}

/// Steps the running sequences. A sequence that ends is followed by that of the next case.
fn steps(louver: &LouverCompiler, cases: &[Case], args: LoadArgs) -> Result<Phase> {
    let mut next = cases.iter().cycle();
    let mut running = Vec::new();
    for case in next.by_ref().take(args.sequences.get()) {
        running.push(start(louver, case)?);
    }
    let mut row = vec![0; louver.engine().vocab().mask_words()];
    let mut phase = Phase::default();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(args.seconds) {
        let step = Instant::now();
        for sequence in &mut running {
            let (clock, blocks) = (Instant::now(), blocks()?);
            if let Some(token) = sequence.sampled.take() {
                ensure!(sequence.matcher.advance(token).is_ok(), "a valid text was rejected");
            }
            sequence.matcher.fill_mask(&mut row);
            let nanos = u64::try_from(clock.elapsed().as_nanos())?;
            phase.masks_ns.push(nanos);
            phase.blocked_ns.extend((self::blocks()? > blocks).then_some(nanos));
            match sequence.tokens.split_first() {
                Some((&token, rest)) => {
                    let token = TokenId::from_raw(token);
                    (sequence.sampled, sequence.tokens) = (Some(token), rest);
                    sequence.matcher.prefetch(&[token]);
                }
                None => *sequence = start(louver, next.next().context("no cases")?)?,
            }
        }
        let left = Duration::from_millis(args.forward_ms).saturating_sub(step.elapsed());
        std::thread::sleep(left);
    }
    Ok(phase)
}

/// How often this thread has blocked.
fn blocks() -> Result<i64> {
    Ok(getrusage(UsageWho::RUSAGE_THREAD)?.voluntary_context_switches())
}
