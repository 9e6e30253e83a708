//! The command `louver bench accuracy`: tool calls of a trained model without a constraint, with
//! mistral.rs's own constraint, and with Louver. Counts calls that match their schema and cases
//! whose calls are the expected ones.

mod cases;
mod host;
mod judge;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use louver::engine::EngineOptions;
use louver_mistralrs::{Event, Parallel};
use louver_server::ModelConfig;
use mistralrs::TextMessageRole;

use crate::model_flags::ModelFlags;
use crate::tool_turn::{
    Guidance, ToolModel, ToolTurn, ToolValidators, TurnRequest, greedy_request,
};
use crate::trained;
use cases::Case;
use report::{CaseResult, Totals};

/// `louver bench accuracy`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AccuracyArgs {
    /// The model: a directory, a GGUF file or a Hugging Face id [default: SmolLM2-135M-Instruct, of
    /// which 93 MB are downloaded once].
    #[arg(long, value_name = "PATH_OR_ID")]
    model: Option<String>,
    #[command(flatten)]
    model_flags: ModelFlags,
    /// Cases, one JSON object per line: {"id", "question", "tools", "calls"}.
    #[arg(long, value_name = "FILE.jsonl")]
    cases: PathBuf,
    /// Categories: the parts of the ids before the last number.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "simple_python,multiple,parallel"
    )]
    categories: Vec<String>,
    /// Cases per category, drawn by the seed.
    #[arg(long, value_name = "N", default_value_t = 40)]
    sample: usize,
    /// The ways of generating calls.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Mode::value_variants().to_vec())]
    modes: Vec<Mode>,
    /// Maximum tokens of an answer.
    #[arg(long, value_name = "N", default_value_t = 160)]
    max_tokens: usize,
    /// Seed of the sample. Answers are the most likely tokens.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Output file for results: one JSON document.
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
}

/// A way of generating calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Mode {
    /// Free text, from which calls are read leniently.
    Free,
    /// mistral.rs's own constraint (llguidance): one call by a JSON Schema.
    Host,
    /// Louver.
    Louver,
}

pub(crate) fn run(args: &AccuracyArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_cases(args))
}

async fn run_cases(args: &AccuracyArgs) -> Result<ExitCode> {
    let cases = cases::read(&args.cases, &args.categories, args.sample, args.seed)?;
    ensure!(!cases.is_empty(), "{} has no such cases", args.cases.display());
    let mut config = match &args.model {
        Some(model) => ModelConfig { model: model.clone(), ..ModelConfig::default() },
        None => trained::config(&trained::ensure().await?),
    };
    // The modes share a prompt.
    config.prefix_cache = Some(4);
    args.model_flags.apply(&mut config);
    let (model, louver) =
        louver_server::load_model(&config, EngineOptions::default(), None).await?;
    let model = ToolModel::new(model, louver)?;
    let bench = AccuracyBench { model, max_tokens: args.max_tokens };
    let started = Instant::now();
    let mut results = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        for mode in &args.modes {
            results.push(bench.run(case, *mode).await.with_context(|| case.id.clone())?);
        }
        eprint!("\r{} of {} cases, {:.0?} ", n + 1, cases.len(), started.elapsed());
    }
    eprintln!();
    let mut totals: BTreeMap<(String, Mode), Totals> = BTreeMap::new();
    for (category, mode) in
        args.categories.iter().flat_map(|c| args.modes.iter().map(move |m| (c, m)))
    {
        let own = results.iter().filter(|r| r.category == *category && r.mode == *mode);
        totals.insert((category.clone(), *mode), Totals::of(own));
    }
    for mode in &args.modes {
        let all = Totals::of(results.iter().filter(|result| result.mode == *mode));
        totals.insert(("~all".to_owned(), *mode), all);
    }
    print!("{}", report::table(&totals));
    if let Some(out) = &args.out {
        let text = report::json(&config.served_name(), args.seed, &totals, &results);
        std::fs::write(out, format!("{text:#}\n"))
            .with_context(|| format!("cannot write {}", out.display()))?;
    }
    // A call of Louver that is not valid is a fault; wrong answers are the model's.
    let is_good = results.iter().all(|r| r.mode != Mode::Louver || r.calls == r.valid);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct AccuracyBench {
    model: ToolModel,
    max_tokens: usize,
}

impl AccuracyBench {
    async fn run(&self, case: &Case, mode: Mode) -> Result<CaseResult> {
        // Only cases of several calls may have several.
        let parallel = if case.calls.len() > 1 { Parallel::Any } else { Parallel::One };
        let mut turn = match mode {
            Mode::Free => self.turn(case, Guidance::Without, parallel).await?,
            Mode::Louver => self.turn(case, Guidance::Louver, parallel).await?,
            Mode::Host => host::turn(&self.model, case, self.max_tokens).await?,
        };
        if parallel == Parallel::One {
            turn.calls.truncate(1);
        }
        let validators = ToolValidators::new(&case.tools)?;
        let is_valid = |call: &&louver_mistralrs::Call| validators.fault(call).is_none();
        let valid = turn.calls.iter().filter(is_valid).count();
        Ok(CaseResult {
            id: case.id.clone(),
            category: case.category.clone(),
            mode,
            calls: turn.calls.len(),
            valid,
            is_right: judge::matches(&case.calls, &turn.calls, &case.tools),
            is_cut: turn.is_cut,
            tokens: turn.tokens,
            seconds: turn.timing.steps.as_secs_f64(),
            louver_seconds: turn.timing.louver.as_secs_f64(),
            made: turn.calls.iter().map(|c| format!("{}({})", c.name, c.arguments)).collect(),
            text: turn.text,
        })
    }

    async fn turn(&self, case: &Case, guidance: Guidance, parallel: Parallel) -> Result<ToolTurn> {
        let request =
            greedy_request(self.max_tokens).add_message(TextMessageRole::User, &case.question);
        let request = TurnRequest { request, tools: &case.tools, parallel, seed: 1 };
        self.model.generate(guidance, request, |_: &Event| ()).await
    }
}
