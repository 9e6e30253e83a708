//! Benchmarks Louver against llguidance and (feature `xgr`) xgrammar: natively, in one program, on
//! one thread, with the same tokens, case by case, so that a busy machine affects all alike.
//!
//! * *TTFM*, time to first matcher: from the parsed schema (or tools) in the engine's input format
//!   to a matcher, without a mask.
//! * *TBM*, time between masks: mask and advance of one token.

mod cases;
mod clock;
mod engine;
mod engine_kind;
mod feed;
mod o200k;
mod options;
mod output;
mod plot;
#[path = "../../../cli/src/bench/python.rs"]
#[allow(dead_code, reason = "the command uses the rest")]
mod python;
mod record;
mod scenario;
mod setup;
mod table;
mod tool_format;

use anyhow::Result;
use clap::Parser;

/// Louver and its peers on the same tokens.
#[derive(Debug, Parser)]
#[command(name = "louver-peers")]
struct Cli {
    #[command(flatten)]
    common: options::Common,
    #[command(subcommand)]
    scenario: scenario::Scenario,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    clock::choose(cli.common.clock);
    scenario::run(&cli.common, &cli.scenario)
}
