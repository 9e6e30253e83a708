//! Result tables: percentiles side by side in Markdown.

use std::fmt;

use crate::engine::EngineKind;
use crate::record::Record;

/// The statistics to show, each with its percentile; `None` is the average.
const STATISTICS: [(&str, Option<f64>); 9] = [
    ("avg", None),
    ("p25", Some(25.0)),
    ("p50", Some(50.0)),
    ("p75", Some(75.0)),
    ("p90", Some(90.0)),
    ("p95", Some(95.0)),
    ("p99", Some(99.0)),
    ("p99.9", Some(99.9)),
    ("max", Some(100.0)),
];

/// Measured times in ascending order, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedTimes(Vec<u64>);

impl SortedTimes {
    pub(crate) fn new(times: impl IntoIterator<Item = u64>) -> SortedTimes {
        let mut times: Vec<u64> = times.into_iter().collect();
        times.sort_unstable();
        SortedTimes(times)
    }

    /// In nanoseconds; `None` without any times.
    pub(crate) fn percentile(&self, p: f64) -> Option<f64> {
        let rank = (self.0.len() as f64 * p / 100.0) as usize;
        self.0.get(rank.min(self.0.len().saturating_sub(1))).map(|&time| time as f64)
    }

    /// In nanoseconds; `None` without any times.
    pub(crate) fn average(&self) -> Option<f64> {
        (!self.0.is_empty())
            .then(|| self.0.iter().map(|&t| t as f64).sum::<f64>() / self.0.len() as f64)
    }

    /// In nanoseconds.
    pub(crate) fn sum(&self) -> f64 {
        self.0.iter().map(|&t| t as f64).sum()
    }

    fn statistic(&self, percentile: Option<f64>) -> Option<f64> {
        percentile.map_or_else(|| self.average(), |p| self.percentile(p))
    }
}

/// A target: the maximum of Louver's value as a share of the better peer's (or of one peer's).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    pub(crate) quantity: Quantity,
    pub(crate) statistic: &'static str,
    /// One divided by this.
    pub(crate) share: f64,
    /// Only this peer counts.
    pub(crate) against: Option<EngineKind>,
}

/// The measured quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Tbm,
    Ttfm,
    TtfmAndMask,
    Prepare,
}

impl Quantity {
    const ALL: [Quantity; 4] =
        [Quantity::Tbm, Quantity::Ttfm, Quantity::TtfmAndMask, Quantity::Prepare];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Quantity::Tbm => "TBM",
            Quantity::Ttfm => "TTFM",
            Quantity::TtfmAndMask => "TTFM and first mask",
            Quantity::Prepare => "preparation",
        }
    }

    pub(crate) fn times(self, records: &[&Record]) -> SortedTimes {
        let ran = records.iter().filter(|record| record.error.is_none());
        match self {
            Quantity::Tbm => {
                SortedTimes::new(ran.flat_map(|record| record.masks_ns.iter().flatten().copied()))
            }
            Quantity::Ttfm => SortedTimes::new(ran.map(|record| record.ttfm_ns)),
            Quantity::Prepare => SortedTimes::new(ran.filter_map(|record| record.prepare_ns)),
            Quantity::TtfmAndMask => {
                SortedTimes::new(ran.filter_map(|record| {
                    Some(record.ttfm_ns.saturating_add(record.first_mask_ns?))
                }))
            }
        }
    }
}

/// The records of one engine.
pub(crate) struct Column<'r> {
    pub(crate) kind: EngineKind,
    pub(crate) records: Vec<&'r Record>,
}

/// A table of all quantities, with one column per engine.
pub(crate) struct Table<'t, 'r> {
    pub(crate) columns: &'t [Column<'r>],
    pub(crate) bars: &'t [Bar],
}

impl fmt::Display for Table<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.columns.iter().map(|column| column.kind.name()).collect();
        let (peers, bars) = (names.len() > 1 && self.louver().is_some(), !self.bars.is_empty());
        write!(f, "| microseconds | {} |", names.join(" | "))?;
        writeln!(
            f,
            "{}{}",
            if peers { " Louver / better peer |" } else { "" },
            if bars { " bar |" } else { "" }
        )?;
        let extra = usize::from(peers) + usize::from(bars);
        writeln!(f, "|:--|{}", "--:|".repeat(names.len() + extra))?;
        for quantity in Quantity::ALL {
            let times: Vec<SortedTimes> =
                self.columns.iter().map(|column| quantity.times(&column.records)).collect();
            if quantity == Quantity::Prepare && times.iter().all(|times| times.0.is_empty()) {
                continue;
            }
            for (statistic, percentile) in STATISTICS {
                let row: Vec<Option<f64>> =
                    times.iter().map(|times| times.statistic(percentile)).collect();
                write!(f, "| {}, {statistic} |", quantity.name())?;
                row.iter().try_for_each(|value| write!(f, " {} |", micros(*value)))?;
                if peers {
                    write!(f, " {} |", self.share(&row, None).map_or("-".to_owned(), ratio))?;
                }
                if bars {
                    write!(f, " {} |", self.bar(quantity, statistic, &row))?;
                }
                writeln!(f)?;
            }
        }
        self.counts(f)
    }
}

impl Table<'_, '_> {
    fn louver(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.kind == EngineKind::Louver)
    }

    /// Louver's value divided by the better peer's, or by that of one peer.
    fn share(&self, row: &[Option<f64>], against: Option<EngineKind>) -> Option<f64> {
        let louver = row[self.louver()?]?;
        let peers = self.columns.iter().zip(row).filter(|(column, _)| match against {
            Some(kind) => column.kind == kind,
            None => column.kind != EngineKind::Louver,
        });
        peers.filter_map(|(_, value)| *value).min_by(f64::total_cmp).map(|better| louver / better)
    }

    fn bar(&self, quantity: Quantity, statistic: &str, row: &[Option<f64>]) -> String {
        let bar =
            self.bars.iter().find(|bar| bar.quantity == quantity && bar.statistic == statistic);
        let Some(bar) = bar else { return String::new() };
        let against = bar.against.map(|kind| format!(" of {}", kind.name())).unwrap_or_default();
        let verdict = match self.share(row, bar.against) {
            Some(share) if share * bar.share <= 1.0 => "met",
            Some(_) => "missed",
            None => "not measured",
        };
        format!("1/{}{against}: {verdict}", bar.share)
    }

    fn counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        type Count = fn(&[&Record]) -> usize;
        let rows: [(&str, Count); 6] = [
            ("cases", |records| records.len()),
            ("tokens", |records| records.iter().flat_map(|r| &r.masks_ns).map(Vec::len).sum()),
            ("refused", |records| records.iter().filter(|r| r.error.is_some()).count()),
            ("all verdicts right", |records| {
                records.iter().filter(|r| r.wrong.as_ref().is_some_and(Vec::is_empty)).count()
            }),
            ("with a valid instance rejected", |records| {
                records.iter().filter(|r| r.is_wrong(true)).count()
            }),
            ("with an invalid instance accepted", |records| {
                records.iter().filter(|r| r.is_wrong(false)).count()
            }),
        ];
        let extra = usize::from(self.columns.len() > 1 && self.louver().is_some())
            + usize::from(!self.bars.is_empty());
        for (name, count) in rows {
            write!(f, "| {name} |")?;
            self.columns
                .iter()
                .try_for_each(|column| write!(f, " {} |", count(&column.records)))?;
            writeln!(f, "{}", " |".repeat(extra))?;
        }
        Ok(())
    }
}

/// Formats nanoseconds as microseconds with the significant digits.
pub(crate) fn micros(nanos: Option<f64>) -> String {
    match nanos.map(|nanos| nanos / 1e3) {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// Formats a ratio with the significant digits.
pub(crate) fn ratio(value: f64) -> String {
    if value < 10.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ttfm_ns: u64, masks: &[u64]) -> Record {
        let first_mask_ns = masks.first().copied();
        Record {
            ttfm_ns,
            first_mask_ns,
            masks_ns: Some(masks.to_vec()),
            wrong: Some(vec![]),
            ..Record::default()
        }
    }

    #[test]
    fn percentiles_are_ranks() {
        let times = SortedTimes::new([4_000, 1_000, 3_000, 2_000]);
        let all = [0.0, 25.0, 50.0, 99.9, 100.0].map(|p| times.percentile(p).unwrap());
        assert_eq!(all, [1_000.0, 2_000.0, 3_000.0, 4_000.0, 4_000.0]);
        assert_eq!((times.average(), SortedTimes::default().average()), (Some(2_500.0), None));
        assert_eq!(SortedTimes::default().percentile(50.0), None);
    }

    #[test]
    fn bars_are_shares_of_the_better_peer() {
        let (ours, first, second) =
            (record(10_000, &[1_000]), record(90_000, &[4_000]), record(40_000, &[50_000]));
        let columns = [
            Column { kind: EngineKind::Louver, records: vec![&ours] },
            Column { kind: EngineKind::Llguidance, records: vec![&first] },
            Column { kind: EngineKind::Xgrammar, records: vec![&second] },
        ];
        let bar = |quantity, share, against| Bar { quantity, statistic: "avg", share, against };
        let bars =
            [bar(Quantity::Tbm, 5.0, None), bar(Quantity::Ttfm, 5.0, Some(EngineKind::Llguidance))];
        let text = Table { columns: &columns, bars: &bars }.to_string();
        assert!(
            text.contains("| TBM, avg | 1.00 | 4.00 | 50.0 | 0.250 | 1/5: missed |\n"),
            "{text}"
        );
        assert!(
            text.contains("| TTFM, avg | 10.0 | 90.0 | 40.0 | 0.250 | 1/5 of llguidance: met |\n"),
            "{text}"
        );
        assert!(
            text.contains("| TTFM and first mask, max | 11.0 | 94.0 | 90.0 | 0.122 |  |\n"),
            "{text}"
        );
        assert!(text.contains("| cases | 1 | 1 | 1 | | |\n"), "{text}");
    }
}
