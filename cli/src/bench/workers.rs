//! Parallel execution of cases.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow, bail};
use louver::engine::Engine;

use super::CommonArgs;
use super::feeder::Feeder;
use super::record::CaseRecord;
use super::summary::Summary;
use crate::jsonl;

/// Runs a case: its line number, and the line.
pub(super) trait RunCase: Fn(&mut Feeder<'_>, usize, &str) -> CaseRecord + Sync {}

impl<F: Fn(&mut Feeder<'_>, usize, &str) -> CaseRecord + Sync> RunCase for F {}

/// Runs every case, writes the records in the order of the cases, and prints a summary to stderr.
pub(super) fn run(
    common: &CommonArgs,
    unit: &str,
    engine: &Engine,
    run_case: impl RunCase,
) -> Result<()> {
    let mut out = jsonl::JsonlWriter::create(&common.out)?;
    let records = records(common, engine, &cases(common)?, run_case)?;
    for record in &records {
        out.write(record)?;
    }
    out.finish()?;
    eprint!("{}", Summary::new(&records, unit));
    report_invalid(common, &records)?;
    check_consistency(&records)
}

/// Fails if a mask allowed a token that the matcher rejected.
pub(super) fn check_consistency<'r>(
    records: impl IntoIterator<Item = &'r CaseRecord>,
) -> Result<()> {
    let inconsistent = records.into_iter().filter(|record| record.inconsistent > 0);
    let inconsistent: Vec<(&str, usize)> =
        inconsistent.map(|record| (&*record.id, record.inconsistent)).collect();
    let Some((first, _)) = inconsistent.first() else { return Ok(()) };
    let tokens: usize = inconsistent.iter().map(|(_, tokens)| tokens).sum();
    bail!("masks allowed {tokens} tokens that the matcher rejected, the first in case {first}")
}

/// Prints why the first line that is not a case is none. Fails if no line is a case.
pub(super) fn report_invalid(common: &CommonArgs, records: &[CaseRecord]) -> Result<()> {
    let invalid = records.iter().filter(|record| !record.is_case());
    let invalid: Vec<String> = invalid.filter_map(|record| record.error.clone()).collect();
    jsonl::report_invalid(&common.cases, records.len(), &invalid)
}

/// Reads the lines of the cases to run.
pub(super) fn cases(common: &CommonArgs) -> Result<Vec<(usize, String)>> {
    let mut cases = jsonl::read(&common.cases)?;
    cases.truncate(common.limit.unwrap_or(usize::MAX));
    Ok(cases)
}

/// Runs every case and returns the records in the order of the cases.
pub(super) fn records(
    common: &CommonArgs,
    engine: &Engine,
    cases: &[(usize, String)],
    run_case: impl RunCase,
) -> Result<Vec<CaseRecord>> {
    let next = AtomicUsize::new(0);
    let run_worker = || {
        let mut feeder = Feeder::new(engine, common);
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some((number, line)) = cases.get(i) else { return done };
            done.push((i, run_case(&mut feeder, *number, line)));
        }
    };
    let mut done = if common.threads.get() == 1 {
        run_worker()
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> =
                (0..common.threads.get()).map(|_| scope.spawn(run_worker)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inconsistent_masks_are_an_error() {
        let record = |id: &str, inconsistent| CaseRecord {
            id: id.to_owned(),
            inconsistent,
            ..CaseRecord::default()
        };
        let records = [record("a", 0), record("b", 2), record("c", 1)];
        assert!(check_consistency(&records[..1]).is_ok());
        let error = check_consistency(&records).unwrap_err().to_string();
        assert!(error.contains("3 tokens") && error.ends_with("case b"), "{error}");
    }
}
