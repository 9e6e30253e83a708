//! Decode steps: the time that constraints add to a step with a forward pass of some duration.
//!
//! ```text
//! device   |<---------- forward pass ---------->|          | sampling ...
//! host     | advance | masks of the batch  |    ^          ^
//!                                               |<- added >|  if the masks are late
//! ```
//!
//! The host knows the last step's tokens when the forward pass begins, so it advances all sequences
//! and makes their masks meanwhile. What it has not finished when the logits are there is added to
//! the step. Applying the masks is one kernel on the device, the same for all engines, and is not
//! part of it; neither is the copy of the masks, which a host can do during the pass, too.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::batch::{Batch, new_batch, schemas};
use crate::options::Common;
use crate::output;
use crate::setup::Setup;
use crate::table::{SortedTimes, micros};

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub(crate) struct DecodeArgs {
    /// Numbers of sequences.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16,64,256,512,1024")]
    batch: Vec<NonZeroUsize>,
    /// Durations of the forward pass, in milliseconds.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "5,15,30")]
    forward_ms: Vec<u64>,
    /// Steps of each arrangement.
    #[arg(long, value_name = "N", default_value = "200")]
    steps: NonZeroUsize,
    /// Threads that make masks.
    #[arg(long, value_name = "N", default_value = "2")]
    threads: NonZeroUsize,
}

/// The result of one arrangement, in nanoseconds.
#[derive(Serialize)]
struct DecodeRecord {
    engine: &'static str,
    batch: usize,
    forward_ms: u64,
    /// Time to advance all sequences and to make their masks, by step.
    work_ns: Vec<u64>,
    /// The part of it that the forward pass did not cover, by step.
    added_ns: Vec<u64>,
}

pub(super) fn run(common: &Common, args: &DecodeArgs) -> Result<()> {
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let kinds = common.kinds();
    let Some(cases) = schemas(common, &setup, &kinds)? else { return Ok(()) };
    output::heading("Decode steps", &common.tokenizer, &kinds);
    println!(
        "{} schemas, {} threads, {} steps from the first token on. Microseconds a step.\n",
        cases.len(),
        args.threads,
        args.steps
    );
    println!(
        "| sequences | forward pass | engine | work, p50 | p99 | max | added, avg | p50 | p99 | \
         max |"
    );
    println!("|--:|--:|:--|{}", "--:|".repeat(7));
    let mut records = Vec::new();
    for &size in &args.batch {
        for &forward_ms in &args.forward_ms {
            for &kind in &kinds {
                let mut batch = new_batch(&setup, kind, &cases, size.get(), args.threads.get())?;
                let forward = Duration::from_millis(forward_ms);
                let (work_ns, added_ns) = steps(batch.as_mut(), forward, args.steps.get())?;
                let (engine, batch) = (kind.name(), size.get());
                let record = DecodeRecord { engine, batch, forward_ms, work_ns, added_ns };
                println!("{}", row(&record));
                records.push(record);
            }
        }
    }
    output::write_lines(&common.out, &format!("decode.{}.jsonl", common.tokenizer), records)
}

fn row(record: &DecodeRecord) -> String {
    let work = SortedTimes::new(record.work_ns.iter().copied());
    let added = SortedTimes::new(record.added_ns.iter().copied());
    let work = [50.0, 99.0, 100.0].map(|p| micros(work.percentile(p)));
    let percentiles = [50.0, 99.0, 100.0].map(|p| micros(added.percentile(p)));
    format!(
        "| {} | {} ms | {} | {} | {} | {} |",
        record.batch,
        record.forward_ms,
        record.engine,
        work.join(" | "),
        micros(added.average()),
        percentiles.join(" | ")
    )
}

/// Runs the steps. Returns the work of each, and what of it the forward pass did not cover.
fn steps(batch: &mut dyn Batch, forward: Duration, steps: usize) -> Result<(Vec<u64>, Vec<u64>)> {
    let (mut work_ns, mut added_ns) = (Vec::new(), Vec::new());
    batch.fill()?;
    for _ in 0..steps {
        let begin = Instant::now();
        batch.step()?;
        batch.fill()?;
        let work = begin.elapsed();
        work_ns.push(u64::try_from(work.as_nanos())?);
        added_ns.push(u64::try_from(work.saturating_sub(forward).as_nanos())?);
        std::thread::sleep(forward.saturating_sub(work));
    }
    Ok((work_ns, added_ns))
}
