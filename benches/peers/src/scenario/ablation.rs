//! Ablation: Louver with each of its switches changed, like Table 1 of the XGrammar 2 paper:
//! preprocessing and mask times.

use anyhow::Result;
use louver::engine::EngineOptions;
use louver::ir::Simplify;
use louver::mask::PoolScope;
use louver::switches::{Switch, Switches};
use louver_hf_tokenizers::Encoder;
use serde::Serialize;

use super::corpus::{Corpus, Progress, SCHEMAS, TOOLS};
use crate::cases::{self, Case};
use crate::engine::{Engine, EngineKind, Louver};
use crate::options::Common;
use crate::record::Record;
use crate::setup::Setup;
use crate::table::{SortedTimes, micros};
use crate::{feed, output};

/// A named change of the defaults.
type Configuration = (&'static str, fn(&mut EngineOptions));

/// The configurations; add new ones here.
const CONFIGURATIONS: &[Configuration] = &[
    ("defaults", |_| {}),
    ("no direct walks (direct_walk = 0)", |options| options.tuning.direct_walk = 0),
    ("smaller direct walks (direct_walk = 1024)", |options| options.tuning.direct_walk = 1024),
    ("duplicates merged (simplify = cheap)", |options| options.simplify = Simplify::Cheap),
    ("grammars simplified throughout (simplify = full)", |options| {
        options.simplify = Simplify::Full
    }),
    ("no entries cached (pool_bytes = 0)", |options| options.pool_bytes = 0),
    ("no entries shared between grammars (pool_scope = Constraint)", |options| {
        options.pool_scope = PoolScope::Constraint
    }),
    ("transitions not cached (transitions = Off)", |options| {
        options.switches.transitions = Switch::Off
    }),
    ("masks not cached (masks = Off)", |options| options.switches.masks = Switch::Off),
    ("no shared representatives (representatives = Off)", |options| {
        options.switches.representatives = Switch::Off
    }),
    ("equal masks not shared (equal_masks = Off)", |options| {
        options.switches.equal_masks = Switch::Off
    }),
    ("lookahead not cached (lookahead = Off)", |options| options.switches.lookahead = Switch::Off),
    ("counted repeats written out (counters = Off)", |options| {
        options.switches.counters = Switch::Off
    }),
    ("all of these off", |options| {
        (options.pool_scope, options.switches) = (PoolScope::Constraint, Switches::OFF)
    }),
];

#[derive(Serialize)]
struct Line<'a> {
    configuration: &'a str,
    #[serde(flatten)]
    record: &'a Record,
}

pub(super) fn run(common: &Common) -> Result<()> {
    for corpus in [&SCHEMAS, &TOOLS] {
        of_corpus(common, corpus)?;
    }
    Ok(())
}

fn of_corpus(common: &Common, corpus: &Corpus) -> Result<()> {
    let Some(lines) = cases::lines(common, corpus.file)? else { return Ok(()) };
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let encoder: Encoder<'_> = setup.encoder();
    let mut engines = Vec::new();
    for (_, change) in CONFIGURATIONS {
        let mut options = EngineOptions::default();
        change(&mut options);
        engines.push(Louver::new(&setup.vocab, options)?);
    }
    let mut records: Vec<Vec<Record>> = engines.iter().map(|_| Vec::new()).collect();
    let mut progress = Progress::new(corpus.name);
    for (number, line) in lines.enumerate() {
        let Ok(case): Result<Case> = (corpus.case)(&line?, &encoder) else { continue };
        for turn in 0..engines.len() {
            let k = (turn + number) % engines.len();
            let engine: &dyn Engine = &engines[k];
            records[k].push(feed::run(engine, &case));
        }
        progress.tell(number);
    }
    output::heading(
        &format!("Switches: {}", corpus.title),
        &common.tokenizer,
        &[EngineKind::Louver],
    );
    println!(
        "{} cases, microseconds. Preprocessing is the time to the matcher.\n",
        records[0].len()
    );
    println!(
        "| configuration | preprocessing avg | p99 | first mask avg | TBM avg | p50 | p99 | p99.9 \
         | max |"
    );
    println!("|:--|--:|--:|--:|--:|--:|--:|--:|--:|");
    for ((name, _), records) in CONFIGURATIONS.iter().zip(&records) {
        println!("| {name} | {} |", figures(records).join(" | "));
    }
    let all = CONFIGURATIONS.iter().zip(&records);
    let lines = all.flat_map(|((configuration, _), records)| {
        records.iter().map(|record| Line { configuration, record })
    });
    output::write_lines(
        &common.out,
        &format!("ablation-{}.{}.jsonl", corpus.name, common.tokenizer),
        lines,
    )
}

fn figures(records: &[Record]) -> [String; 8] {
    let ran = || records.iter().filter(|record| record.error.is_none());
    let ttfm = SortedTimes::new(ran().map(|record| record.ttfm_ns));
    let first = SortedTimes::new(ran().filter_map(|record| record.first_mask_ns));
    let tbm = SortedTimes::new(ran().flat_map(|record| record.masks_ns.iter().flatten().copied()));
    [
        ttfm.average(),
        ttfm.percentile(99.0),
        first.average(),
        tbm.average(),
        tbm.percentile(50.0),
        tbm.percentile(99.0),
        tbm.percentile(99.9),
        tbm.percentile(100.0),
    ]
    .map(micros)
}
