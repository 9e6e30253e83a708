//! Corpora: all cases of a file on all engines, case by case.

use std::time::{Duration, Instant};

use anyhow::Result;
use louver_hf_tokenizers::Encoder;

use crate::cases::{self, Case};
use crate::engine::EngineKind;
use crate::options::Common;
use crate::record::Record;
use crate::setup::Setup;
use crate::table::{Bar, Column, Quantity, Table};
use crate::tool_format::ToolFormat;
use crate::{feed, output};

/// A corpus of cases.
pub(crate) struct Corpus {
    /// The scenario's name, a prefix of the record files.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) file: &'static str,
    pub(crate) case: fn(&str, &Encoder<'_>) -> Result<Case>,
    /// Whether texts contain special tokens.
    pub(crate) has_specials: bool,
    pub(crate) bars: &'static [Bar],
}

const fn bar(
    quantity: Quantity,
    statistic: &'static str,
    share: f64,
    against: Option<EngineKind>,
) -> Bar {
    Bar { quantity, statistic, share, against }
}

pub(crate) const SCHEMAS: Corpus = Corpus {
    name: "schemas",
    title: "JSON Schemas",
    file: "maskbench-dev.jsonl",
    case: cases::schema_case,
    has_specials: false,
    bars: &[
        bar(Quantity::Tbm, "avg", 5.0, None),
        bar(Quantity::Tbm, "p50", 5.0, None),
        bar(Quantity::Tbm, "p99", 5.0, None),
        bar(Quantity::Tbm, "p99.9", 3.0, None),
        bar(Quantity::Tbm, "max", 3.0, None),
        bar(Quantity::Ttfm, "avg", 5.0, Some(EngineKind::Llguidance)),
        bar(Quantity::Ttfm, "p50", 5.0, Some(EngineKind::Llguidance)),
        bar(Quantity::Ttfm, "p99", 5.0, Some(EngineKind::Llguidance)),
    ],
};

/// Tool calls in Llama 3's format.
pub(crate) const TOOLS: Corpus = Corpus {
    name: "tools",
    title: "Tool calls in free text",
    file: "toolcalls-dev.jsonl",
    case: |line, encoder| cases::tools_case(line, encoder, ToolFormat::Llama3Function),
    has_specials: false,
    bars: &[
        bar(Quantity::Tbm, "avg", 4.0, None),
        bar(Quantity::Tbm, "p99", 4.0, None),
        bar(Quantity::Ttfm, "avg", 8.0, None),
        bar(Quantity::Ttfm, "p99", 8.0, None),
    ],
};

const QWEN3_TOOLS: Corpus = Corpus {
    name: "tools.qwen3",
    title: "Tool calls in Qwen3's format",
    case: |line, encoder| cases::tools_case(line, encoder, ToolFormat::Qwen3),
    has_specials: true,
    ..TOOLS
};

const HARMONY_TOOLS: Corpus = Corpus {
    name: "tools.harmony",
    title: "Tool calls in Harmony",
    case: |line, encoder| cases::tools_case(line, encoder, ToolFormat::Harmony),
    has_specials: true,
    ..TOOLS
};

pub(super) fn schemas(common: &Common) -> Result<()> {
    run(common, &SCHEMAS, &common.tokenizer).map(drop)
}

pub(super) fn tools(common: &Common, format: ToolFormat) -> Result<()> {
    let corpus = match format {
        ToolFormat::Llama3Function => &TOOLS,
        ToolFormat::Qwen3 => &QWEN3_TOOLS,
        ToolFormat::Harmony => &HARMONY_TOOLS,
    };
    run(common, corpus, format.tokenizer()).map(drop)
}

/// Runs a corpus with a tokenizer, writes the records and prints the tables. Returns the cases that
/// all engines ran.
pub(crate) fn run(common: &Common, corpus: &Corpus, tokenizer: &str) -> Result<Vec<Row>> {
    let Some(lines) = cases::lines(common, corpus.file)? else { return Ok(Vec::new()) };
    let Some(setup) = Setup::load(common, tokenizer)? else { return Ok(Vec::new()) };
    let setup = setup.recognizing_specials(corpus.has_specials);
    let kinds = common.kinds();
    let engines = setup.engines(&kinds)?;
    let encoder = setup.encoder();
    let mut rows: Vec<Row> = Vec::new();
    let mut progress = Progress::new(corpus.name);
    for (number, line) in lines.enumerate() {
        let case = match (corpus.case)(&line?, &encoder) {
            Ok(case) => case,
            Err(error) => {
                eprintln!("skipped: case {number}: {error:#}");
                continue;
            }
        };
        let mut row: Row = kinds.iter().map(|_| None).collect();
        for turn in 0..engines.len() {
            // The first engine rotates from case to case.
            let k = (turn + number) % engines.len();
            if kinds[k] != EngineKind::Xgrammar || number % common.xgr_every == 0 {
                row[k] = Some(feed::run(engines[k].as_ref(), &case));
            }
        }
        rows.push(row);
        progress.tell(rows.len());
    }
    for (k, kind) in kinds.iter().enumerate() {
        let file = format!("{}.{tokenizer}.{}.jsonl", corpus.name, kind.name());
        output::write_lines(&common.out, &file, rows.iter().filter_map(|row| row[k].as_ref()))?;
    }
    let title = if common.prepare {
        format!("{}, Louver prepared", corpus.title)
    } else {
        corpus.title.to_owned()
    };
    output::heading(&title, tokenizer, &kinds);
    tables(&kinds, &rows, corpus.bars);
    rows.retain(|row| row.iter().all(Option::is_some));
    Ok(rows)
}

/// The records of one case per engine; `None` if the engine skipped the case.
pub(crate) type Row = Vec<Option<Record>>;

/// Prints tables of all cases, of those that all engines ran (if some were skipped), and of those
/// that all accepted.
fn tables(all_kinds: &[EngineKind], rows: &[Row], bars: &[Bar]) {
    let all: Vec<&Row> = rows.iter().collect();
    let shared: Vec<&Row> = rows.iter().filter(|row| row.iter().all(Option::is_some)).collect();
    let accepted =
        |row: &&Row| row.iter().all(|record| record.as_ref().is_some_and(|r| r.error.is_none()));
    let accepted: Vec<&Row> = rows.iter().filter(accepted).collect();
    let print = |title: &str, kinds: &[EngineKind], rows: &[&Row]| {
        let column = |&kind: &EngineKind| {
            let k = all_kinds.iter().position(|k| *k == kind);
            Column { kind, records: rows.iter().filter_map(|row| row[k?].as_ref()).collect() }
        };
        let columns: Vec<Column<'_>> = kinds.iter().map(column).collect();
        println!(
            "{title}, each engine's refusals left out of its times:\n\n{}",
            Table { columns: &columns, bars }
        );
    };
    if shared.len() < all.len() {
        let steady: Vec<EngineKind> =
            all_kinds.iter().copied().filter(|kind| *kind != EngineKind::Xgrammar).collect();
        print("All cases", &steady, &all);
        print("The cases xgrammar had too", all_kinds, &shared);
    } else {
        print("All cases", all_kinds, &all);
    }
    if all_kinds.len() > 1 && accepted.len() < shared.len() {
        print("The cases no engine refused", all_kinds, &accepted);
    }
}

/// Prints progress to stderr.
pub(crate) struct Progress {
    what: &'static str,
    last: Instant,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Progress {
        Progress { what, last: Instant::now() }
    }

    pub(crate) fn tell(&mut self, done: usize) {
        if self.last.elapsed() > Duration::from_secs(10) {
            self.last = Instant::now();
            eprintln!("{}: {done}", self.what);
        }
    }
}
