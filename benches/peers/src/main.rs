//! Louver against its peers: llguidance and (feature `xgr`) xgrammar, natively, in one program, on one thread, on the same
//! tokens, case by case, so that a busy moment of the machine hits all alike.
//!
//! * *TTFM*: from the schema (or tools) as a value in the form the engine takes to a matcher that is ready; no mask yet.
//! * *TBM*: mask and advance of one token, together.

mod cases;
mod clock;
mod engine;
mod feed;
mod options;
mod output;
mod plot;
#[path = "../../../cli/src/bench/python.rs"]
mod python;
mod record;
mod scenario;
mod setup;
mod table;

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    let cli = options::Cli::parse();
    clock::choose(cli.common.clock);
    scenario::run(&cli.common, &cli.scenario)
}
