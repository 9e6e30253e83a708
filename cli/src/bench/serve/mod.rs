//! `louver bench serve`: the server under load and abuse, and what Louver costs a generation. The server runs in this
//! process, with models of random weights, and is asked over HTTP like any other.

mod beside;
mod demands;
mod dice;
mod faults;
mod hostile;
mod http;
mod load;
mod matrix;
mod record;
mod throughput;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::lines;
use record::Record;

/// What is tried.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Mode {
    /// Every kind of `tool_choice` in every wire format, streamed and not: answers match their schemas, and each other.
    Matrix(MatrixArgs),
    /// Clients that vanish, bodies that are none, hostile schemas, odd models: all other requests get what they would get alone.
    Faults(FaultsArgs),
    /// Many connections for a while: no failures, and what Louver cost a request.
    Load(LoadArgs),
    /// Tokens a second with a constraint and without.
    Throughput(ThroughputArgs),
    /// Good requests on a quiet server, and beside each of several attacks: no wrong answer, and how much longer they take.
    Beside(BesideArgs),
}

/// `louver bench serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// What is tried.
    #[command(subcommand)]
    mode: Mode,
    /// Where the results go, one JSON object a line.
    #[arg(long, value_name = "FILE.jsonl", global = true)]
    out: Option<PathBuf>,
    /// Seed of everything that is left to chance.
    #[arg(long, value_name = "N", default_value_t = 1, global = true)]
    seed: u64,
}

/// `louver bench serve matrix`.
#[derive(Clone, Debug, Args)]
pub(crate) struct MatrixArgs {
    /// How many requests, half of them streamed.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    requests: usize,
    /// Only these wire formats.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    formats: Vec<String>,
    /// Wire formats at the same time, each a model of its own.
    #[arg(long, value_name = "N", default_value_t = 4)]
    at_once: usize,
}

/// `louver bench serve faults`.
#[derive(Clone, Debug, Args)]
pub(crate) struct FaultsArgs {
    /// How many requests; a quarter of them is left by their clients.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    requests: usize,
    /// How many more, of all kinds, while memory is watched.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    soak: usize,
    /// Requests at the same time.
    #[arg(long, value_name = "N", default_value_t = 16)]
    at_once: usize,
    /// Models the server has, all the same: each computes by itself.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = positive)]
    models: usize,
    /// Generations of a model at the same time. With one, answers must be those of a quiet server, word for word; with
    /// more, valid (mistralrs 0.8.1 mixes up the sequences of a batch on the CPU).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive)]
    generations: usize,
}

/// `louver bench serve load`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// Connections, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// For how long.
    #[arg(long, value_name = "S", default_value_t = 120)]
    seconds: u64,
}

/// `louver bench serve throughput`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ThroughputArgs {
    /// A model around this tokenizer.json beside the embedded one.
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: Option<PathBuf>,
    /// Tokens of each generation.
    #[arg(long, value_name = "N", default_value_t = 256)]
    tokens: usize,
    /// How often each arrangement is measured, in turns with the others.
    #[arg(long, value_name = "N", default_value_t = 15)]
    rounds: usize,
}

/// `louver bench serve beside`.
#[derive(Clone, Debug, Args)]
pub(crate) struct BesideArgs {
    /// Good requests beside each attack, and as many on the quiet server before it.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = positive)]
    requests: usize,
    /// Only these attacks; `ordinary` is another client with good requests, to compare with.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = beside::names())]
    attacks: Vec<String>,
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse::<std::num::NonZeroUsize>();
    number.map(usize::from).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match &args.mode {
            Mode::Matrix(mode) => matrix::run(mode, args.seed).await,
            Mode::Faults(mode) => faults::run(mode, args.seed).await,
            Mode::Load(mode) => load::run(mode, args.seed).await,
            Mode::Throughput(mode) => throughput::run(mode, args.seed).await,
            Mode::Beside(mode) => beside::run(mode, args.seed).await,
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    let Outcome { records, summary, good } = outcome?;
    if let Some(out) = &args.out {
        let mut out = lines::Writer::create(out)?;
        records.iter().try_for_each(|record| out.write(record))?;
        out.finish()?;
    }
    summary.iter().for_each(|line| println!("{line}"));
    println!("{}", if good { "all is as it should be" } else { "NOT AS IT SHOULD BE" });
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a mode came to.
struct Outcome {
    records: Vec<Record>,
    /// For people.
    summary: Vec<String>,
    /// Whether every promise was kept.
    good: bool,
}
