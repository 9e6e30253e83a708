//! Measurement of a few cases in several rounds with new engines, without cached results.

use anyhow::Result;
use serde::Serialize;

use crate::cases::Case;
use crate::options::Common;
use crate::record::Record;
use crate::setup::Setup;
use crate::table::{SortedTimes, micros};
use crate::{feed, output};

/// A record with its round.
#[derive(Serialize)]
pub(crate) struct Measured {
    round: usize,
    #[serde(flatten)]
    record: Record,
}

/// Measures the cases, writes the records and prints one row per case and engine, with medians over
/// the rounds.
pub(crate) fn run(
    common: &Common,
    setup: &Setup,
    name: &str,
    title: &str,
    cases: &[Case],
    rounds: usize,
) -> Result<()> {
    let kinds = common.kinds();
    // By case, then by engine.
    let mut measured: Vec<Vec<Vec<Record>>> = vec![vec![Vec::new(); kinds.len()]; cases.len()];
    for round in 0..rounds {
        for (case, of_case) in cases.iter().zip(&mut measured) {
            for turn in 0..kinds.len() {
                let k = (turn + round) % kinds.len();
                let engine = setup.engine(kinds[k])?;
                of_case[k].push(feed::run(engine.as_ref(), case));
            }
        }
    }
    output::heading(title, &common.tokenizer, &kinds);
    println!("Fresh engines each round; medians of {rounds} rounds, in microseconds.\n");
    println!(
        "| case | engine | TTFM | first mask | both | TBM avg | TBM max | all masks | outcome |"
    );
    println!("|:--|:--|--:|--:|--:|--:|--:|--:|:--|");
    for (case, of_case) in cases.iter().zip(&measured) {
        for (kind, records) in kinds.iter().zip(of_case) {
            println!("| {} | {} | {} |", case.id, kind.name(), figures(case, records));
        }
    }
    for (k, kind) in kinds.iter().enumerate() {
        let records = measured.iter().flat_map(|of_case| of_case[k].iter().enumerate());
        let lines = records.map(|(round, record)| Measured { round, record: record.clone() });
        output::write_lines(
            &common.out,
            &format!("{name}.{}.{}.jsonl", common.tokenizer, kind.name()),
            lines,
        )?;
    }
    Ok(())
}

/// The cells of a row after the engine.
fn figures(case: &Case, records: &[Record]) -> String {
    let median = |value: &dyn Fn(&Record) -> Option<f64>| {
        let values = SortedTimes::new(records.iter().filter_map(value).map(|nanos| nanos as u64));
        micros(values.percentile(50.0))
    };
    let masks = |record: &Record| {
        record.masks_ns.as_ref().map(|masks| SortedTimes::new(masks.iter().copied()))
    };
    let both = |record: &Record| Some((record.ttfm_ns + record.first_mask_ns?) as f64);
    let cells = [
        median(&|record| Some(record.ttfm_ns as f64)),
        median(&|record| record.first_mask_ns.map(|ns| ns as f64)),
        median(&both),
        median(&|record| masks(record)?.average()),
        median(&|record| masks(record)?.percentile(100.0)),
        median(&|record| Some(masks(record)?.sum())),
    ];
    format!(
        "{} | {}",
        cells.join(" | "),
        records.first().map_or(String::new(), |record| outcome(case, record))
    )
}

fn outcome(case: &Case, record: &Record) -> String {
    if let Some(error) = &record.error {
        let line: String = error.lines().next().unwrap_or_default().chars().take(80).collect();
        return format!("refused: {}", line.replace('|', "/"));
    }
    let wanted: usize = case.instances.iter().map(|(tokens, _)| tokens.len()).sum();
    let fed = record.masks_ns.as_ref().map_or(0, Vec::len);
    match record.wrong.as_deref() {
        Some([]) => format!("right ({fed} tokens)"),
        _ => format!("wrong after {fed} of {wanted} tokens"),
    }
}
