//! The command `louver bench serve`: the server under load and abuse, the cost of Louver per
//! generation, and the calls of real models. The server runs in this process and is accessed over
//! HTTP; `throughput` and `bfcl` use the plugin without it.

mod banned_ids;
mod beside;
mod bfcl;
mod chat_cases;
mod client;
mod faults;
mod load;
mod matrix;
mod odd_models;
mod record;
mod test_server;
mod throughput;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::jsonl;
use crate::model_flags::ModelFlags;
use record::RequestRecord;

/// The benchmarks of the server.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum BenchMode {
    /// Every kind of `tool_choice` in every wire format, streamed and not: responses match their
    /// schemas and each other.
    Matrix(MatrixArgs),
    /// Disconnecting clients, malformed bodies, hostile schemas, odd models: all other requests are
    /// unaffected.
    Faults(FaultsArgs),
    /// Many connections for some time: no failures, and the cost of Louver per request.
    Load(LoadArgs),
    /// Tokens per second with and without a constraint.
    Throughput(ThroughputArgs),
    /// Tool calls of any model through its own template: without a constraint, with mistral.rs's
    /// own and with Louver. Cases are those of the Berkeley Function Calling Leaderboard, or a few
    /// built-in ones.
    Bfcl(bfcl::BfclArgs),
    /// Latency and correctness of good requests during attacks, compared with a quiet server.
    Beside(BesideArgs),
}

/// `louver bench serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeBenchArgs {
    /// The benchmarks of the server.
    #[command(subcommand)]
    mode: BenchMode,
    /// Output file for results, one JSON object per line.
    #[arg(long, value_name = "FILE.jsonl", global = true)]
    out: Option<PathBuf>,
    /// Seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 1, global = true)]
    seed: u64,
}

/// `louver bench serve matrix`.
#[derive(Clone, Debug, Args)]
pub(crate) struct MatrixArgs {
    /// Number of requests, half of them streamed.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    requests: usize,
    /// Test only these wire formats.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    formats: Vec<String>,
    /// Number of wire formats tested concurrently, each with its own model.
    #[arg(long, value_name = "N", default_value_t = 4)]
    at_once: usize,
}

/// `louver bench serve faults`.
#[derive(Clone, Debug, Args)]
pub(crate) struct FaultsArgs {
    /// Number of requests; for a quarter of them the client disconnects.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    requests: usize,
    /// Number of further requests of all kinds while memory is monitored.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    soak: usize,
    /// Number of concurrent requests.
    #[arg(long, value_name = "N", default_value_t = 16)]
    at_once: usize,
    /// Number of identical models; each computes independently.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = positive)]
    models: usize,
    /// Concurrent generations per model. With one, responses must equal those of a quiet server;
    /// with more, they must be valid (mistralrs 0.8.1 mixes up the sequences of a batch on the
    /// CPU).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive)]
    generations: usize,
}

/// `louver bench serve load`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// Number of connections, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// Duration in seconds.
    #[arg(long, value_name = "S", default_value_t = 120)]
    seconds: u64,
}

/// `louver bench serve throughput`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ThroughputArgs {
    /// The model: a directory, a GGUF file or a Hugging Face id [default: the tiny model with
    /// random weights].
    #[arg(long, value_name = "PATH_OR_ID")]
    model: Option<String>,
    #[command(flatten)]
    model_flags: ModelFlags,
    /// Also test a tiny model with this tokenizer.json.
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: Option<PathBuf>,
    /// Tokens per generation.
    #[arg(long, value_name = "N", default_value_t = 256)]
    tokens: usize,
    /// Number of measurements per setup, in turns with the others.
    #[arg(long, value_name = "N", default_value_t = 9)]
    rounds: usize,
    /// Tokens of the prompt beside which tools are called.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    prompt: usize,
    /// Only these shapes: free text, rows of a JSON array, tool calls beside a long prompt.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = ["text", "rows", "calls"])]
    shapes: Vec<String>,
    /// Numbers of requests at once [default: 1 and 8; for tool calls also 32 and 64].
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = positive)]
    at_once: Vec<usize>,
}

/// `louver bench serve beside`.
#[derive(Clone, Debug, Args)]
pub(crate) struct BesideArgs {
    /// Number of good requests during each attack, and before it on the quiet server.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = positive)]
    requests: usize,
    /// Run only these attacks; `ordinary` is another client with good requests, for comparison.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = beside::attack_names())]
    attacks: Vec<String>,
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse::<std::num::NonZeroUsize>();
    number.map(usize::from).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &ServeBenchArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match &args.mode {
            BenchMode::Matrix(mode) => matrix::run(mode, args.seed).await,
            BenchMode::Faults(mode) => faults::run(mode, args.seed).await,
            BenchMode::Load(mode) => load::run(mode, args.seed).await,
            BenchMode::Throughput(mode) => throughput::run(mode, args.seed).await,
            BenchMode::Bfcl(mode) => bfcl::run(mode, args.seed).await,
            BenchMode::Beside(mode) => beside::run(mode, args.seed).await,
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    let BenchOutcome { records, summary, passed } = outcome?;
    if let Some(out) = &args.out {
        let mut out = jsonl::JsonlWriter::create(out)?;
        records.iter().try_for_each(|record| out.write(record))?;
        out.finish()?;
    }
    summary.iter().for_each(|line| println!("{line}"));
    println!("{}", if passed { "passed" } else { "FAILED" });
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The result of a benchmark.
struct BenchOutcome {
    records: Vec<RequestRecord>,
    /// Lines for people.
    summary: Vec<String>,
    /// Whether all requirements were met.
    passed: bool,
}
