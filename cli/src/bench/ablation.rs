//! `--ablation`: what each optimisation of the engine is worth.
//!
//! Every case runs on one engine for each row of the table, one row after the other. The order of
//! the rows changes with each case and round, so all rows see the same moments of the machine. An
//! engine runs a case twice: *cold*, when it has not seen its grammar, and *again*. Engines have
//! pools of their own, and are new in each round. An engine that is not in the table runs each case
//! first, as automata are shared by the whole process.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Result;
use louver::engine::{Engine, EngineOptions};
use louver::ir::Simplify;
use louver::mask::PoolScope;
use louver::switches::Switches;
use louver::vocab::Vocabulary;
use serde::Serialize;

use super::feeder::Feeder;
use super::record::CaseRecord;
use super::stats::spread;
use super::summary::SortedTimes;
use super::workers::{self, RunCase};
use super::{CommonArgs, engine_options};
use crate::jsonl;

/// A name, and a change of the options.
type Change = (&'static str, fn(&mut EngineOptions));

/// Rows beside those of single switches. Those of the first row are what others are compared with;
/// the second has the same options, and shows the noise.
const CHANGES: &[Change] = &[
    ("all on", |_| {}),
    ("all on, once more", |_| {}),
    ("no direct walks", |options| options.tuning.direct_walk = 0),
    ("entries not cached", |options| options.pool_bytes = 0),
    ("entries not shared between grammars", |options| options.pool_scope = PoolScope::Constraint),
    ("no grammar simplified", |options| simplify(options, Simplify::Off)),
    ("every grammar simplified", |options| simplify(options, Simplify::On)),
    ("all switches off", |options| options.switches = Switches::OFF),
];

/// Changes whether grammars are simplified, however they were written.
fn simplify(options: &mut EngineOptions, simplify: Simplify) {
    (options.simplify, options.simplify_texts) = (simplify, simplify);
}

/// The rows: names and options.
fn rows(common: &CommonArgs) -> Vec<(String, EngineOptions)> {
    let changed = CHANGES.iter().map(|(name, change)| {
        let mut options = engine_options(common);
        change(&mut options);
        ((*name).to_owned(), options)
    });
    let switched = Switches::EACH.iter().map(|&(name, switches)| {
        (format!("`{name}` off"), engine_options(common).with_switches(switches))
    });
    changed.chain(switched).collect()
}

/// A line of the output.
#[derive(Serialize)]
struct Line<'a> {
    round: usize,
    row: &'a str,
    again: bool,
    #[serde(flatten)]
    record: &'a CaseRecord,
}

/// Runs the cases, writes all records, and prints the table.
pub(super) fn run(
    common: &CommonArgs,
    vocab: &Arc<Vocabulary>,
    rounds: NonZeroUsize,
    run_case: impl RunCase,
) -> Result<()> {
    let cases = workers::cases(common)?;
    let rows = rows(common);
    let mut out = jsonl::JsonlWriter::create(&common.out)?;
    let mut consistent = Ok(());
    let mut figures: Vec<Vec<Figures>> = rows.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds.get() {
        let records = run_round(common, vocab, &cases, round, &rows, &run_case);
        if round == 0 {
            workers::report_invalid(common, &records[0][0])?;
        }
        let all = records.iter().flatten().flatten();
        consistent = consistent.and_then(|()| workers::check_consistency(all));
        for (row, records) in records.iter().enumerate() {
            for (again, records) in records.iter().enumerate() {
                for record in records {
                    out.write(&Line { round, row: &rows[row].0, again: again == 1, record })?;
                }
            }
            figures[row].push(Figures::new(records));
        }
    }
    out.finish()?;
    eprintln!("{} cases, {rounds} rounds\n\n{}", cases.len(), Table { rows: &rows, figures });
    consistent
}

/// The rows in the order of the run with this number: another row is first, and rows follow others.
fn order(rows: usize, number: usize) -> impl Iterator<Item = usize> {
    let divides_both = |d: usize, stride: usize| rows.is_multiple_of(d) && stride.is_multiple_of(d);
    let is_coprime = |stride: &usize| !(2..=*stride).any(|d| divides_both(d, *stride));
    let strides: Vec<usize> = (1..rows).filter(is_coprime).collect();
    let stride = strides[number % strides.len()];
    (0..rows).map(move |turn| (number + turn * stride) % rows)
}

/// Runs all cases on one new engine a row. Returns the records by row, cold and again.
fn run_round(
    common: &CommonArgs,
    vocab: &Arc<Vocabulary>,
    cases: &[(usize, String)],
    round: usize,
    rows: &[(String, EngineOptions)],
    run_case: &impl RunCase,
) -> Vec<[Vec<CaseRecord>; 2]> {
    let engine = |options: &EngineOptions| Engine::new(vocab.clone(), options.clone());
    let first = engine(&rows[0].1);
    let engines: Vec<Engine> = rows.iter().map(|(_, options)| engine(options)).collect();
    let mut feeders: Vec<Feeder<'_>> =
        engines.iter().map(|engine| Feeder::new(engine, common)).collect();
    let mut records: Vec<[Vec<CaseRecord>; 2]> = rows.iter().map(|_| Default::default()).collect();
    for (k, (number, line)) in cases.iter().enumerate() {
        run_case(&mut Feeder::new(&first, common), *number, line);
        for row in order(rows.len(), k + round) {
            for records in &mut records[row] {
                records.push(run_case(&mut feeders[row], *number, line));
            }
        }
    }
    records
}

/// The figures of one row and round, in nanoseconds.
struct Figures([f64; COLUMNS.len()]);

/// The columns.
const COLUMNS: [&str; 8] = [
    "to matcher",
    "first mask",
    "cold avg",
    "cold p90",
    "cold p99",
    "again avg",
    "again p90",
    "again p99",
];

impl Figures {
    /// Of the records of cold cases, and of the same cases again.
    fn new([cold, again]: &[Vec<CaseRecord>; 2]) -> Figures {
        let ran = || cold.iter().filter(|record| record.error.is_none());
        let masks = |records: &[CaseRecord]| {
            let masks = records.iter().filter_map(|record| record.masks_ns.as_ref());
            let times = SortedTimes::new(masks.flatten().copied());
            [times.average(), times.quantile(0.9) as f64, times.quantile(0.99) as f64]
        };
        let ttfm = SortedTimes::new(ran().map(|record| record.ttfm_ns)).average();
        let first = SortedTimes::new(ran().filter_map(|record| record.first_mask_ns)).average();
        let ([a, b, c], [d, e, f]) = (masks(cold), masks(again));
        Figures([ttfm, first, a, b, c, d, e, f])
    }
}

/// The figures of the first row in microseconds, and of the others beside it.
struct Table<'r> {
    rows: &'r [(String, EngineOptions)],
    /// By row and round.
    figures: Vec<Vec<Figures>>,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | {} |", COLUMNS.join(" | "))?;
        writeln!(f, "|:--|{}", "--:|".repeat(COLUMNS.len()))?;
        for (row, (name, _)) in self.rows.iter().enumerate() {
            write!(f, "| {name} |")?;
            for column in 0..COLUMNS.len() {
                let rounds = self.figures[row].iter().zip(&self.figures[0]);
                let value = |(own, base): (&Figures, &Figures)| match row {
                    0 => own.0[column] / 1e3,
                    _ => own.0[column] / base.0[column].max(1.0),
                };
                let [least, median, greatest] =
                    spread(rounds.map(value).collect()).unwrap_or_default();
                write!(f, " {median:.2} ({least:.2} to {greatest:.2}) |")?;
            }
            writeln!(f)?;
        }
        write!(
            f,
            "\nThe first row in microseconds, the others as ratios to it in the same round: "
        )?;
        write!(f, "median (least to greatest).")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_all_rows() {
        for (rows, number) in (2..20).flat_map(|rows| (0..50).map(move |number| (rows, number))) {
            let mut all: Vec<usize> = order(rows, number).collect();
            assert_eq!(all[0], number % rows);
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rows_are_compared_with_the_first_in_the_same_round() {
        let row = |name: &str| (name.to_owned(), EngineOptions::default());
        let rounds = |values: &[f64]| values.iter().map(|&v| Figures([v; COLUMNS.len()])).collect();
        let figures = vec![rounds(&[2e3, 4e3, 8e3]), rounds(&[3e3, 8e3, 8e3])];
        let table = Table { rows: &[row("base"), row("other")], figures }.to_string();
        assert!(table.contains("| base | 4.00 (2.00 to 8.00) |"), "{table}");
        assert!(table.contains("| other | 1.50 (1.00 to 2.00) |"), "{table}");
    }
}
