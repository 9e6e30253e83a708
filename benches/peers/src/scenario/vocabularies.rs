//! The schema corpus on several tokenizers, to compare their results.

use anyhow::Result;

use super::corpus::{self, SCHEMAS};
use crate::engine::EngineKind;
use crate::options::Common;
use crate::record::Record;
use crate::table::{Quantity, micros, ratio};

/// The tokenizers; the first one is the reference.
const TOKENIZERS: [&str; 4] = ["llama3_1", "qwen3", "deepseek_v3", "llama2"];
/// The compared quantities.
const FIGURES: [(Quantity, Option<f64>, &str); 5] = [
    (Quantity::Tbm, None, "avg"),
    (Quantity::Tbm, Some(50.0), "p50"),
    (Quantity::Tbm, Some(99.0), "p99"),
    (Quantity::Ttfm, None, "avg"),
    (Quantity::Ttfm, Some(99.0), "p99"),
];

pub(super) fn run(common: &Common) -> Result<()> {
    let kinds = common.kinds();
    let mut figures: Vec<(&str, EngineKind, Vec<Option<f64>>)> = Vec::new();
    for tokenizer in TOKENIZERS {
        let rows = corpus::run(common, &SCHEMAS, tokenizer)?;
        if rows.is_empty() {
            continue;
        }
        for (k, &kind) in kinds.iter().enumerate() {
            let records: Vec<&Record> = rows.iter().filter_map(|row| row[k].as_ref()).collect();
            let figure = |(quantity, percentile, _): &(Quantity, Option<f64>, &str)| {
                let times = quantity.times(&records);
                percentile.map_or_else(|| times.average(), |p| times.percentile(p))
            };
            figures.push((tokenizer, kind, FIGURES.iter().map(figure).collect()));
        }
    }
    println!("\n## Tokenizers side by side\n");
    println!(
        "Microseconds on the cases all engines had, and the ratio to the same engine on {}.\n",
        TOKENIZERS[0]
    );
    let names: Vec<String> =
        FIGURES.iter().map(|(quantity, _, name)| format!("{} {name}", quantity.name())).collect();
    println!("| tokenizer | engine | {} |", names.join(" | "));
    println!("|:--|:--|{}", "--:|".repeat(FIGURES.len()));
    for (tokenizer, kind, values) in &figures {
        let base = figures
            .iter()
            .find(|(t, k, _)| *t == TOKENIZERS[0] && k == kind)
            .map(|(_, _, base)| base);
        let cell = |(i, value): (usize, &Option<f64>)| match (base.and_then(|base| base[i]), value)
        {
            (Some(base), Some(value)) => {
                format!("{} (x{})", micros(Some(*value)), ratio(value / base))
            }
            (_, value) => micros(*value),
        };
        let cells: Vec<String> = values.iter().enumerate().map(cell).collect();
        println!("| {tokenizer} | {} | {} |", kind.name(), cells.join(" | "));
    }
    Ok(())
}
