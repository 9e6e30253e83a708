//! Cases shared among threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow};

use super::CommonArgs;
use super::record::Record;
use super::summary::Summary;
use crate::lines;

/// Runs every line of the cases, writes the records in the order of the cases, and prints a summary to stderr. `worker` is
/// called once a thread and makes what the thread runs each line with.
pub(super) fn run<F>(common: &CommonArgs, unit: &str, worker: impl Fn() -> F + Sync) -> Result<()>
where
    F: FnMut(usize, &str) -> Record,
{
    let mut out = lines::Writer::create(&common.out)?;
    let records = records(common, &cases(common)?, worker)?;
    for record in &records {
        out.write(record)?;
    }
    out.finish()?;
    eprint!("{}", Summary::of(&records, unit));
    Ok(())
}

/// The lines of the cases that are to be run.
pub(super) fn cases(common: &CommonArgs) -> Result<Vec<(usize, String)>> {
    let mut cases = lines::read(&common.cases)?;
    cases.truncate(common.limit.unwrap_or(usize::MAX));
    Ok(cases)
}

/// Runs every case; the records are in the order of the cases.
pub(super) fn records<F>(
    common: &CommonArgs,
    cases: &[(usize, String)],
    worker: impl Fn() -> F + Sync,
) -> Result<Vec<Record>>
where
    F: FnMut(usize, &str) -> Record,
{
    shared(cases, common.threads, &worker)
}

fn shared<F>(
    cases: &[(usize, String)],
    threads: NonZeroUsize,
    worker: &(impl Fn() -> F + Sync),
) -> Result<Vec<Record>>
where
    F: FnMut(usize, &str) -> Record,
{
    let next = AtomicUsize::new(0);
    let take = || {
        let mut run = worker();
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some((number, line)) = cases.get(i) else { return done };
            done.push((i, run(*number, line)));
        }
    };
    let mut done = if threads.get() == 1 {
        take()
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads.get()).map(|_| scope.spawn(take)).collect();
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
