//! The summary of a phase, for people.

use super::actions::{ACTION_KINDS, ActionKind};
use super::monitor::Observations;
use crate::bench::serve::record::{RequestRecord, fault_lines, faulty};
use crate::bench::stats::quantile;
use crate::counts::{counts, joined_counts};

/// Maximum number of memory sizes to show.
const MAX_SIZES: usize = 20;
/// Minimum number of samples to judge memory growth.
const MIN_SAMPLES: usize = 20;

/// The requirement on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryCheck {
    /// None: memory is only shown, because caches fill.
    Shown,
    /// Memory must not grow after a quarter of the time.
    Flat,
}

/// How memory developed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryGrowth {
    /// Growth of at most 10 % plus 32 MiB.
    Flat,
    /// More than that.
    Grows,
    /// The phase was too short, or memory cannot be measured.
    Unknown,
}

/// The lines of a phase, and whether it met all requirements.
pub(super) fn phase(
    name: &str,
    records: &[RequestRecord],
    settled: bool,
    observations: &Observations,
    memory: MemoryCheck,
) -> (Vec<String>, bool) {
    let took = observations.took.as_secs_f64();
    let faulty = faulty(records);
    let server_errors =
        records.iter().filter(|record| record.status.is_some_and(|status| status >= 500)).count();
    let growth = growth(&observations.memory);
    let verdict = match (memory, growth) {
        (MemoryCheck::Shown, _) => "",
        (MemoryCheck::Flat, MemoryGrowth::Flat) => ": flat",
        (MemoryCheck::Flat, MemoryGrowth::Grows) => ": IT GROWS",
        (MemoryCheck::Flat, MemoryGrowth::Unknown) => ": too short to tell",
    };
    let most = observations.memory.iter().max().copied().unwrap_or(0) / 1024;
    let checks = observations.health_ns.len();
    let sizes: Vec<String> =
        sample_evenly(&observations.memory).map(|kib| (kib / 1024).to_string()).collect();
    let mut lines = vec![format!("{name:<10} {} requests in {took:.0} s", records.len())];
    lines.extend(ACTION_KINDS.iter().filter_map(|kind| kind_line(*kind, records)));
    lines.extend([
        format!(
            "  health     {checks} checks, {} failed, {}",
            observations.unhealthy,
            times(observations.health_ns.clone())
        ),
        format!("  memory     {} MiB, at most {most}{verdict}", sizes.join(" ")),
        format!("  afterwards {}", if settled { "nothing runs" } else { "GENERATIONS STILL RUN" }),
        format!("  5xx        {server_errors}"),
        format!("  faulty     {} of {}", faulty.len(), records.len()),
    ]);
    lines.extend(fault_lines(&faulty, "    "));
    let grows = memory == MemoryCheck::Flat && growth == MemoryGrowth::Grows;
    let passed = faulty.is_empty()
        && server_errors == 0
        && observations.unhealthy == 0
        && checks > 0
        && settled
        && !grows;
    (lines, passed)
}

/// The line of one kind: number of requests, statuses, completed generations, and latency.
fn kind_line(kind: ActionKind, records: &[RequestRecord]) -> Option<String> {
    let records: Vec<&RequestRecord> =
        records.iter().filter(|record| kind.matches(&record.id)).collect();
    if records.is_empty() {
        return None;
    }
    let statuses = counts(records.iter().map(|record| match record.status {
        Some(status) => status.to_string(),
        None if kind.disconnects => "left".to_owned(),
        None => "no answer".to_owned(),
    }));
    let generated = records.iter().filter(|record| record.tokens > Some(0)).count();
    let tokens: u64 = records.iter().filter_map(|record| record.tokens).sum();
    let faulty = records.iter().filter(|record| record.error.is_some()).count();
    Some(format!(
        "  {:<18} {:>6}: {}; {generated} whole generations of {tokens} tokens, {}, {faulty} faulty",
        kind.description,
        records.len(),
        joined_counts(&statuses, ": "),
        times(records.iter().map(|record| record.took_ns).collect()),
    ))
}

fn times(mut values: Vec<u64>) -> String {
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| quantile(&mut values, share) as f64 / 1e6);
    format!("p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms")
}

/// An even sample of the values, including the last.
fn sample_evenly(values: &[u64]) -> impl Iterator<Item = u64> {
    let count = values.len().min(MAX_SIZES);
    (1..=count).map(move |n| values[n * values.len() / count - 1])
}

/// Compares the median sizes of the second and the last quarter. A leak grows steadily; an
/// expensive request uses memory only briefly.
fn growth(memory: &[u64]) -> MemoryGrowth {
    if memory.len() < MIN_SAMPLES {
        return MemoryGrowth::Unknown;
    }
    let quarter = |n: usize| {
        let mut sizes = memory[n * memory.len() / 4..(n + 1) * memory.len() / 4].to_vec();
        sizes.sort_unstable();
        sizes[sizes.len() / 2]
    };
    let (before, after) = (quarter(1), quarter(3));
    if after <= before + before / 10 + 32 * 1024 { MemoryGrowth::Flat } else { MemoryGrowth::Grows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_growth_is_detected() {
        let sizes =
            |steps: &[u64]| steps.iter().flat_map(|mib| [mib * 1024; 5]).collect::<Vec<_>>();
        assert_eq!(growth(&sizes(&[100, 300, 310, 305, 312, 900, 300, 310])), MemoryGrowth::Flat);
        assert_eq!(growth(&sizes(&[100, 300, 310, 320, 340, 360, 380, 400])), MemoryGrowth::Grows);
        assert_eq!(growth(&[]), MemoryGrowth::Unknown);
        assert_eq!(sample_evenly(&[1, 2, 3]).collect::<Vec<_>>(), [1, 2, 3]);
        let many: Vec<u64> = (1..=100).collect();
        assert_eq!(
            sample_evenly(&many).collect::<Vec<_>>(),
            (1..=20).map(|n| 5 * n).collect::<Vec<_>>()
        );
    }

    #[test]
    fn failed_phases_are_detected() {
        let record = |id: &str, status| RequestRecord {
            id: id.to_owned(),
            status,
            ..RequestRecord::default()
        };
        let observations = |unhealthy| Observations {
            health_ns: vec![1_000_000],
            unhealthy,
            ..Observations::default()
        };
        let fine = [record("Good { at: 1 }", Some(200)), record("LeaveStream { at: 1 }", None)];
        let (lines, passed) = phase("abuse", &fine, true, &observations(0), MemoryCheck::Flat);
        assert!(passed && lines.iter().any(|line| line.contains("left: 1")), "{lines:?}");
        let faulty =
            RequestRecord { error: Some("why".to_owned()), ..record("Odd { at: 1 }", Some(200)) };
        for (records, settled, observations) in [
            (&fine[..], false, observations(0)),
            (&fine, true, observations(1)),
            (&fine, true, Observations::default()),
            (&[record("Hostile(1)", Some(500))], true, observations(0)),
            (&[faulty], true, observations(0)),
            (
                &fine,
                true,
                Observations {
                    memory: (0..100).map(|mib| mib * 1024).collect(),
                    ..observations(0)
                },
            ),
        ] {
            assert!(!phase("abuse", records, settled, &observations, MemoryCheck::Flat).1);
        }
    }
}
