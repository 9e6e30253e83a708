//! Parallel execution of cases.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow};

use super::CommonArgs;
use super::record::CaseRecord;
use super::summary::Summary;
use crate::jsonl;

/// Runs every case, writes the records in the order of the cases, and prints a summary to stderr.
/// `worker` is called once per thread and returns the function that runs a case.
pub(super) fn run<F>(common: &CommonArgs, unit: &str, worker: impl Fn() -> F + Sync) -> Result<()>
where
    F: FnMut(usize, &str) -> CaseRecord,
{
    let mut out = jsonl::JsonlWriter::create(&common.out)?;
    let records = records(common, &cases(common)?, worker)?;
    for record in &records {
        out.write(record)?;
    }
    out.finish()?;
    eprint!("{}", Summary::new(&records, unit));
    Ok(())
}

/// Reads the lines of the cases to run.
pub(super) fn cases(common: &CommonArgs) -> Result<Vec<(usize, String)>> {
    let mut cases = jsonl::read(&common.cases)?;
    cases.truncate(common.limit.unwrap_or(usize::MAX));
    Ok(cases)
}

/// Runs every case and returns the records in the order of the cases.
pub(super) fn records<F>(
    common: &CommonArgs,
    cases: &[(usize, String)],
    worker: impl Fn() -> F + Sync,
) -> Result<Vec<CaseRecord>>
where
    F: FnMut(usize, &str) -> CaseRecord,
{
    run_parallel(cases, common.threads, &worker)
}

fn run_parallel<F>(
    cases: &[(usize, String)],
    threads: NonZeroUsize,
    worker: &(impl Fn() -> F + Sync),
) -> Result<Vec<CaseRecord>>
where
    F: FnMut(usize, &str) -> CaseRecord,
{
    let next = AtomicUsize::new(0);
    let run_worker = || {
        let mut run = worker();
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some((number, line)) = cases.get(i) else { return done };
            done.push((i, run(*number, line)));
        }
    };
    let mut done = if threads.get() == 1 {
        run_worker()
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads.get()).map(|_| scope.spawn(run_worker)).collect();
            let joined: Result<Vec<_>, _> = handles.into_iter().map(|h| h.join()).collect();
            joined.map_err(|_| anyhow!("a worker thread panicked"))
        })?
        .into_iter()
        .flatten()
        .collect()
    };
    done.sort_unstable_by_key(|(i, _)| *i);
    Ok(done.into_iter().map(|(_, record)| record).collect())
}
