//! `louver bench tools --forced`: how many tokens of recorded tool calls the grammar forces, which
//! are as many steps of the model saved.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use louver::engine::{Constraint, Matcher};
use louver::front::json_schema::{SchemaOptions, Whitespace};
use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use louver_formats::{Catalog, WireFormat};
use serde::Serialize;

use super::{RecordedCalls, bind, compile};
use crate::bench::tokenizer::TextEncoder;
use crate::bench::{ToolsArgs, python, workers};
use crate::jsonl;

/// Most forced bytes and special tokens at a time.
const LONGEST: usize = 1024;

/// The white space between JSON tokens: what the grammar allows, and what the calls have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Spacing {
    /// As the options say; the calls are spaced as Python does.
    Options,
    Python,
    Compact,
}

const SPACINGS: [Spacing; 3] = [Spacing::Options, Spacing::Python, Spacing::Compact];

/// One case with one spacing, or the sum of several.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct ForcedCounts {
    /// Calls counted, as turns.
    cases: usize,
    /// Cases whose calls the grammar refuses or cannot be written.
    skipped: usize,
    /// Tokens of the calls and their markup.
    tokens: usize,
    /// Tokens that the grammar forces, cut as the tokenizer cuts them.
    forced: usize,
    /// Forced texts that the tokenizer cut in another way than in the whole call. They count as
    /// forced as far as both agree.
    cut_otherwise: usize,
}

/// A line of the output file.
#[derive(Serialize)]
struct ForcedRecord<'a> {
    id: &'a str,
    format: &'a str,
    spacing: Spacing,
    #[serde(flatten)]
    counts: ForcedCounts,
}

/// The sums of a format.
struct ForcedRow<'a> {
    format: &'a str,
    totals: [ForcedCounts; 3],
}

/// The names of a row's columns.
const HEADING: &str = "format              cases | allowed: tokens forced | \
    as Python: tokens forced | compact: tokens forced | cut otherwise";

/// Counts all cases in one format or all of them; prints a table with a row for each.
pub(super) fn run(
    args: &ToolsArgs,
    encoder: &TextEncoder<'_>,
    vocab: &Arc<Vocabulary>,
) -> Result<ExitCode> {
    let cases = workers::cases(&args.common)?;
    let cases: Vec<RecordedCalls> =
        cases.iter().map(|(_, line)| RecordedCalls::read(line)).collect::<Result<_>>()?;
    let mut out = jsonl::JsonlWriter::create(&args.common.out)?;
    let families = match args.format.as_str() {
        "all" => Catalog::shipped().formats().to_vec(),
        name => vec![Catalog::shipped().named_or_file(name)?],
    };
    eprintln!("{HEADING}");
    for family in &families {
        let (engine, format) = bind(args, family, vocab)?;
        let mut row = ForcedRow { format: &family.name, totals: Default::default() };
        for case in &cases {
            for (spacing, total) in SPACINGS.into_iter().zip(&mut row.totals) {
                let options = spacing.options(&args.options);
                let constraint = compile(&engine, &format, &case.tools, &options).ok();
                let counts = constraint
                    .map(|constraint| count(&constraint, case, &format, spacing, encoder))
                    .transpose()?
                    .flatten()
                    .unwrap_or(ForcedCounts { skipped: 1, ..ForcedCounts::default() });
                total.add(&counts);
                out.write(&ForcedRecord { id: &case.id, format: row.format, spacing, counts })?;
            }
        }
        eprintln!("{row}");
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Follows the calls, and counts where they are forced. `None` if the grammar refuses them.
fn count(
    constraint: &Constraint,
    case: &RecordedCalls,
    format: &WireFormat,
    spacing: Spacing,
    encoder: &TextEncoder<'_>,
) -> Result<Option<ForcedCounts>> {
    let write = if spacing == Spacing::Compact { python::compact } else { python::dumps };
    let Ok(text) = case.render(format, String::new(), write) else { return Ok(None) };
    let tokens: Vec<TokenId> = encoder.encode(&text)?.into_iter().map(TokenId::from_raw).collect();
    let mut counts = ForcedCounts { cases: 1, tokens: tokens.len(), ..ForcedCounts::default() };
    let mut matcher = constraint.matcher();
    let mut rest = &tokens[..];
    while !rest.is_empty() {
        let forced = forced_tokens(&mut matcher, encoder);
        let agreed = forced.iter().zip(rest).take_while(|(a, b)| a == b).count();
        counts.forced += agreed;
        counts.cut_otherwise += usize::from(agreed < forced.len().min(rest.len()));
        // The forced tokens, and the one that the model draws then.
        let step = rest.len().min(agreed + 1);
        if rest[..step].iter().any(|&token| matcher.advance(token).is_err()) {
            return Ok(None);
        }
        rest = &rest[step..];
    }
    Ok(matcher.is_complete().then_some(counts))
}

/// The forced tokens, as the tokenizer cuts them.
fn forced_tokens(matcher: &mut Matcher, encoder: &TextEncoder<'_>) -> Vec<TokenId> {
    matcher.forced_tokens_with(LONGEST, &mut |bytes| {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        encoder.encode(text).unwrap_or_default().into_iter().map(TokenId::from_raw).collect()
    })
}

impl Spacing {
    fn options(self, options: &SchemaOptions) -> SchemaOptions {
        match self {
            Spacing::Options => *options,
            Spacing::Python => options.with_whitespace(Whitespace::PythonLike),
            Spacing::Compact => options.with_whitespace(Whitespace::Compact),
        }
    }
}

impl ForcedCounts {
    fn add(&mut self, other: &ForcedCounts) {
        self.cases += other.cases;
        self.skipped += other.skipped;
        self.tokens += other.tokens;
        self.forced += other.forced;
        self.cut_otherwise += other.cut_otherwise;
    }

    fn percent(&self) -> f64 {
        100.0 * self.forced as f64 / self.tokens.max(1) as f64
    }
}

impl fmt::Display for ForcedRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases: Vec<String> = self.totals.iter().map(|t| t.cases.to_string()).collect();
        write!(f, "{:<16} {:>14} |", self.format, cases.join(" "))?;
        for total in &self.totals {
            write!(f, " {:>7} {:>5.1} % |", total.tokens, total.percent())?;
        }
        write!(f, " {}", self.totals.iter().map(|t| t.cut_otherwise).sum::<usize>())
    }
}
