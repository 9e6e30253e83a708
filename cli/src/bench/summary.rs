//! The summary of a run, for people.

use std::fmt;

use super::record::CaseRecord;
use super::stats::quantile_of_sorted;
use crate::counts::counts;

/// The quantiles to show.
const QUANTILES: [f64; 5] = [0.25, 0.5, 0.9, 0.99, 0.999];

/// Totals and times over all records.
// Many fields: a row of a table.
pub(super) struct Summary {
    unit: String,
    cases: usize,
    passing: usize,
    /// Instances wrongly accepted and wrongly rejected.
    wrong: [usize; 2],
    /// Valid instances that only the options for the spelling of numbers exclude.
    spelled_otherwise: usize,
    refused: usize,
    refused_for: Vec<(String, usize)>,
    relaxed: RelaxedSummary,
    masks: SortedTimes,
    ttfm: SortedTimes,
    first: SortedTimes,
    /// Empty without preparation.
    prepare: SortedTimes,
    preparation: Option<[u64; 4]>,
}

/// What the policy relaxes.
struct RelaxedSummary {
    /// Schemas with relaxed keywords.
    schemas: usize,
    keywords: Vec<(String, usize)>,
    /// Invalid instances that only validation rejects.
    invalidated: usize,
}

/// Times in ascending order, in nanoseconds.
#[derive(Default)]
pub(super) struct SortedTimes(Vec<u64>);

impl SortedTimes {
    pub(super) fn new(times: impl Iterator<Item = u64>) -> SortedTimes {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        SortedTimes(times)
    }

    /// The quantile at `share` (0 to 1).
    pub(super) fn quantile(&self, share: f64) -> u64 {
        quantile_of_sorted(&self.0, share)
    }

    pub(super) fn average(&self) -> f64 {
        // The sum of no numbers is -0.0.
        let sum = self.0.iter().fold(0.0, |sum, &time| sum + time as f64);
        sum / self.0.len().max(1) as f64
    }
}

/// In microseconds.
impl fmt::Display for SortedTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.1}", self.average() / 1e3)?;
        for share in QUANTILES {
            write!(f, " {:>10.1}", self.quantile(share) as f64 / 1e3)?;
        }
        write!(f, " {:>10.1}", self.quantile(1.0) as f64 / 1e3)
    }
}

/// How often each text occurs, the most frequent first.
fn counted<'r>(texts: impl Iterator<Item = &'r String>) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = counts(texts).into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

impl Summary {
    /// Summarises records; `unit` is the plural noun for cases.
    pub(super) fn new(records: &[CaseRecord], unit: &str) -> Summary {
        let ran = || records.iter().filter(|r| r.error.is_none());
        let refused_for = counted(records.iter().flat_map(|r| &r.refused_for));
        Summary {
            unit: unit.to_owned(),
            cases: records.len(),
            passing: ran().filter(|r| r.wrong.iter().flatten().next().is_none()).count(),
            wrong: [false, true]
                .map(|expected| records.iter().map(|r| r.count_wrong(expected)).sum()),
            spelled_otherwise: ran().map(|r| r.spelled_otherwise).sum(),
            refused: records.len() - ran().count(),
            refused_for,
            relaxed: RelaxedSummary {
                schemas: ran().filter(|r| r.relaxed.is_some()).count(),
                keywords: counted(records.iter().flat_map(|r| &r.relaxed_keywords)),
                invalidated: records.iter().map(|r| r.invalidated).sum(),
            },
            masks: SortedTimes::new(
                records.iter().filter_map(|r| r.masks_ns.as_ref()).flatten().copied(),
            ),
            ttfm: SortedTimes::new(ran().map(|r| r.ttfm_ns)),
            first: SortedTimes::new(ran().filter_map(|r| r.first_mask_ns)),
            prepare: SortedTimes::new(ran().filter_map(|r| r.prepare_ns)),
            preparation: ran()
                .filter_map(|r| r.preparation.as_ref())
                .map(|a| [a.candidates as u64, a.built as u64, a.cached as u64, a.used])
                .reduce(|sum, each| std::array::from_fn(|i| sum[i] + each[i])),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}; refused {}, passing {}",
            self.unit, self.cases, self.refused, self.passing
        )?;
        writeln!(
            f,
            "instances wrongly accepted {}, wrongly rejected {}",
            self.wrong[0], self.wrong[1]
        )?;
        if self.spelled_otherwise > 0 {
            let count = self.spelled_otherwise;
            writeln!(f, "valid, but numbers spelled otherwise (option `integers`) {count}")?;
        }
        write!(f, "{:<18} {:>9} {:>10}", "microseconds", "count", "avg")?;
        for share in QUANTILES {
            write!(f, " {:>10}", format!("p{}", 100.0 * share))?;
        }
        writeln!(f, " {:>10}", "max")?;
        let prepare = (!self.prepare.0.is_empty()).then_some(("prepare", &self.prepare));
        let rows = [
            ("mask + advance", &self.masks),
            ("time to matcher", &self.ttfm),
            ("first mask", &self.first),
        ];
        for (name, times) in rows.into_iter().chain(prepare) {
            writeln!(f, "{name:<18} {:>9} {times}", times.0.len())?;
        }
        if let Some([candidates, built, cached, used]) = self.preparation {
            writeln!(
                f,
                "prepared: {candidates} candidates, {built} masks built, {cached} cached, {used} of the \
                 built were used"
            )?;
        }
        self.relaxed.fmt(f)?;
        if !self.refused_for.is_empty() {
            writeln!(f, "refused for (a case may be refused for several):")?;
        }
        for (reason, count) in &self.refused_for {
            writeln!(f, "{count:>7}  {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RelaxedSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.schemas > 0 {
            writeln!(
                f,
                "not enforced fully {}; invalid instances that only validation rejects {}",
                self.schemas, self.invalidated
            )?;
        }
        for (keyword, count) in &self.keywords {
            writeln!(f, "{count:>7}  {keyword}")?;
        }
        Ok(())
    }
}

/// One table row per run, in microseconds.
pub(super) struct SummaryRow {
    name: String,
    summary: Summary,
}

impl SummaryRow {
    /// The names of the columns.
    pub(super) const HEADING: &str = "microseconds     refused passing | \
        time to matcher: avg p50 p99 | first mask: avg p99 | mask + advance: avg p50 p99 p99.9 | \
        numbers spelled otherwise";

    /// A line of this name.
    pub(super) fn new(name: &str, records: &[CaseRecord]) -> SummaryRow {
        SummaryRow { name: name.to_owned(), summary: Summary::new(records, "") }
    }
}

impl fmt::Display for SummaryRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { refused, passing, spelled_otherwise, ttfm, first, masks, .. } = &self.summary;
        write!(f, "{:<16} {refused:>7} {passing:>7} |", self.name)?;
        for (times, shares) in
            [(ttfm, &[0.5, 0.99][..]), (first, &[0.99]), (masks, &[0.5, 0.99, 0.999])]
        {
            write!(f, " {:>8.1}", times.average() / 1e3)?;
            for share in shares {
                write!(f, " {:>8.1}", times.quantile(*share) as f64 / 1e3)?;
            }
            write!(f, " |")?;
        }
        write!(f, " {spelled_otherwise:>7}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_summarised() {
        let ran = |wrong, masks_ns: &[u64]| CaseRecord {
            ttfm_ns: 5_000,
            first_mask_ns: masks_ns.first().copied(),
            masks_ns: Some(masks_ns.to_vec()),
            wrong: Some(wrong),
            ..CaseRecord::default()
        };
        let took = std::time::Duration::from_millis(9);
        let records = [
            ran(vec![], &[1_000, 2_000]),
            ran(vec![(0, true, false), (1, false, true)], &[3_000]),
            CaseRecord::refused("x".into(), took, "no", vec!["not".into(), "format".into()]),
            CaseRecord::refused("y".into(), took, "no", vec!["not".into()]),
        ];
        let summary = Summary::new(&records, "schemas");
        assert_eq!((summary.passing, summary.refused), (1, 2));
        assert_eq!(summary.wrong, [1, 1]);
        assert_eq!(summary.refused_for, [("not".to_owned(), 2), ("format".to_owned(), 1)]);
        assert_eq!((summary.masks.quantile(0.0), summary.masks.quantile(0.5)), (1_000, 2_000));
        assert_eq!((summary.masks.quantile(1.0), summary.ttfm.quantile(0.999)), (3_000, 5_000));
        let text = summary.to_string();
        assert!(text.contains("schemas: 4; refused 2, passing 1\n"), "{text}");
        assert!(text.contains("      2  not\n      1  format\n"), "{text}");
        let row = SummaryRow::new("qwen3", &records).to_string();
        let row: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(row[..7], ["qwen3", "2", "1", "|", "5.0", "5.0", "5.0"]);
        assert_eq!(row[11..15], ["2.0", "2.0", "3.0", "3.0"]);
        assert_eq!(row[15..], ["|", "0"]);
    }

    #[test]
    fn empty_runs_have_a_summary() {
        let summary = Summary::new(&[], "schemas").to_string();
        assert!(summary.starts_with("schemas: 0;") && !summary.contains("-0.0"), "{summary}");
    }
}
