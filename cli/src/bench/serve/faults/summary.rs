//! What a phase came to, for people.

use std::collections::BTreeMap;

use super::acts::{KINDS, Kind};
use super::watch::Seen;
use crate::bench::serve::record::{Record, quantile};

/// How many sizes of memory are shown.
const SIZES: usize = 20;
/// How many looks at memory say how it goes on.
const ENOUGH: usize = 20;
/// How many faults are shown.
const FAULTS: usize = 10;

/// What is asked of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// It is shown: caches fill.
    Shown,
    /// It must not grow once a quarter of the time is over.
    Flat,
}

/// How memory went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// At most a tenth and 32 MiB more.
    Flat,
    /// More than that.
    Grows,
    /// The phase was too short, or memory cannot be looked at.
    Unknown,
}

/// The lines of a phase, and whether every promise was kept in it.
pub(super) fn phase(
    name: &str,
    records: &[Record],
    settled: bool,
    (seen, memory): (&Seen, Memory),
) -> (Vec<String>, bool) {
    let took = seen.took.as_secs_f64();
    let faulty: Vec<&Record> = records.iter().filter(|record| record.error.is_some()).collect();
    let server_errors =
        records.iter().filter(|record| record.status.is_some_and(|status| status >= 500)).count();
    let growth = growth(&seen.memory);
    let verdict = match (memory, growth) {
        (Memory::Shown, _) => "",
        (Memory::Flat, Growth::Flat) => ": flat",
        (Memory::Flat, Growth::Grows) => ": IT GROWS",
        (Memory::Flat, Growth::Unknown) => ": too short to tell",
    };
    let most = seen.memory.iter().max().copied().unwrap_or(0) / 1024;
    let checks = seen.health_ns.len();
    let sizes: Vec<String> = spread(&seen.memory).map(|kib| (kib / 1024).to_string()).collect();
    let mut lines = vec![format!("{name:<10} {} requests in {took:.0} s", records.len())];
    lines.extend(KINDS.iter().filter_map(|kind| of_kind(*kind, records)));
    lines.extend([
        format!(
            "  health     {checks} checks, {} failed, {}",
            seen.unhealthy,
            times(seen.health_ns.clone())
        ),
        format!("  memory     {} MiB, at most {most}{verdict}", sizes.join(" ")),
        format!("  afterwards {}", if settled { "nothing runs" } else { "GENERATIONS STILL RUN" }),
        format!("  5xx        {server_errors}"),
        format!("  faulty     {} of {}", faulty.len(), records.len()),
    ]);
    let first = faulty.iter().take(FAULTS);
    lines
        .extend(first.map(|r| format!("    {}: {}", r.id, r.error.as_deref().unwrap_or_default())));
    let grows = memory == Memory::Flat && growth == Growth::Grows;
    let good = faulty.is_empty()
        && server_errors == 0
        && seen.unhealthy == 0
        && checks > 0
        && settled
        && !grows;
    (lines, good)
}

/// The line of one kind: how many there were, what was answered, how many were answered by a generation, and how long that took.
fn of_kind(kind: Kind, records: &[Record]) -> Option<String> {
    let records: Vec<&Record> = records.iter().filter(|record| kind.has(&record.id)).collect();
    if records.is_empty() {
        return None;
    }
    let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
    for record in &records {
        let status = match record.status {
            Some(status) => status.to_string(),
            None if kind.is_left => "left".to_owned(),
            None => "no answer".to_owned(),
        };
        *statuses.entry(status).or_default() += 1;
    }
    let statuses: Vec<String> =
        statuses.into_iter().map(|(status, count)| format!("{status}: {count}")).collect();
    let generated = records.iter().filter(|record| record.tokens > Some(0)).count();
    let tokens: u64 = records.iter().filter_map(|record| record.tokens).sum();
    let faulty = records.iter().filter(|record| record.error.is_some()).count();
    Some(format!(
        "  {:<18} {:>6}: {}; {generated} whole generations of {tokens} tokens, {}, {faulty} faulty",
        kind.what,
        records.len(),
        statuses.join(", "),
        times(records.iter().map(|record| record.took_ns).collect()),
    ))
}

fn times(mut values: Vec<u64>) -> String {
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| quantile(&mut values, share) as f64 / 1e6);
    format!("p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms")
}

/// Some of the values, evenly, the last among them.
fn spread(values: &[u64]) -> impl Iterator<Item = u64> {
    let count = values.len().min(SIZES);
    (1..=count).map(move |n| values[n * values.len() / count - 1])
}

/// How memory went on once a quarter of the time was over: the middle sizes of the second quarter and of the last. Whoever
/// leaks has more and more; a costly request has much for a moment.
fn growth(memory: &[u64]) -> Growth {
    if memory.len() < ENOUGH {
        return Growth::Unknown;
    }
    let quarter = |n: usize| {
        let mut sizes = memory[n * memory.len() / 4..(n + 1) * memory.len() / 4].to_vec();
        sizes.sort_unstable();
        sizes[sizes.len() / 2]
    };
    let (before, after) = (quarter(1), quarter(3));
    if after <= before + before / 10 + 32 * 1024 { Growth::Flat } else { Growth::Grows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_seen() {
        let sizes =
            |steps: &[u64]| steps.iter().flat_map(|mib| [mib * 1024; 5]).collect::<Vec<_>>();
        assert_eq!(growth(&sizes(&[100, 300, 310, 305, 312, 900, 300, 310])), Growth::Flat);
        assert_eq!(growth(&sizes(&[100, 300, 310, 320, 340, 360, 380, 400])), Growth::Grows);
        assert_eq!(growth(&[]), Growth::Unknown);
        assert_eq!(spread(&[1, 2, 3]).collect::<Vec<_>>(), [1, 2, 3]);
        let many: Vec<u64> = (1..=100).collect();
        assert_eq!(spread(&many).collect::<Vec<_>>(), (1..=20).map(|n| 5 * n).collect::<Vec<_>>());
    }

    #[test]
    fn broken_promises_are_seen() {
        let record = |id: &str, status| Record { id: id.to_owned(), status, ..Record::default() };
        let seen = |unhealthy| Seen { health_ns: vec![1_000_000], unhealthy, ..Seen::default() };
        let fine = [record("Good { at: 1 }", Some(200)), record("LeaveStream { at: 1 }", None)];
        let (lines, good) = phase("abuse", &fine, true, (&seen(0), Memory::Flat));
        assert!(good && lines.iter().any(|line| line.contains("left: 1")), "{lines:?}");
        let faulty = Record { error: Some("why".to_owned()), ..record("Odd { at: 1 }", Some(200)) };
        for (records, settled, seen) in [
            (&fine[..], false, seen(0)),
            (&fine, true, seen(1)),
            (&fine, true, Seen::default()),
            (&[record("Hostile(1)", Some(500))], true, seen(0)),
            (&[faulty], true, seen(0)),
            (&fine, true, Seen { memory: (0..100).map(|mib| mib * 1024).collect(), ..seen(0) }),
        ] {
            assert!(!phase("abuse", records, settled, (&seen, Memory::Flat)).1);
        }
    }
}
