//! The command `louver bench serve bfcl`: tool calls of a model without a constraint, with
//! mistral.rs's own constraint, and with Louver. Counts calls that match their schema and cases
//! whose calls are the expected ones.

mod cases;
mod host;
mod judge;
mod report;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use louver::engine::EngineOptions;
use louver_mistralrs::{Event, Parallel};
use mistralrs::TextMessageRole;

use super::record::CallVerdict;
use super::{BenchOutcome, test_server};
use crate::model_flags::ModelFlags;
use crate::tool_turn::{
    CallMode, ToolModel, ToolTurn, ToolTurnInput, ToolValidators, greedy_request,
};
use crate::trained;
use cases::Case;
use report::CaseResult;

/// `louver bench serve bfcl`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BfclArgs {
    /// The model: a directory, a GGUF file or a Hugging Face id [default: the tiny model with
    /// random weights].
    #[arg(long, value_name = "PATH_OR_ID")]
    model: Option<String>,
    /// Test SmolLM2-135M-Instruct, a small trained model. Downloads 93 MB once.
    #[arg(long, conflicts_with = "model")]
    trained: bool,
    #[command(flatten)]
    model_flags: ModelFlags,
    /// Cases, one JSON object per line: {"id", "question", "tools", "calls"} [default: a few
    /// built-in ones].
    #[arg(long, value_name = "FILE.jsonl")]
    cases: Option<PathBuf>,
    /// Categories: the parts of the ids before the last number [default: all].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
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

pub(super) async fn run(args: &BfclArgs, seed: u64) -> Result<BenchOutcome> {
    let cases = cases::read(args.cases.as_deref(), &args.categories, args.sample, seed)?;
    ensure!(
        !cases.is_empty(),
        "{} has no cases of these categories: {}",
        args.cases.as_ref().map_or("the built-in list".into(), |path| path.display().to_string()),
        args.categories.join(", ")
    );
    let mut config = match args.trained {
        true => trained::config(&trained::ensure().await?),
        false => test_server::model_or_tiny(args.model.as_deref())?,
    };
    // The modes share a prompt.
    config.prefix_cache = Some(4);
    args.model_flags.apply(&mut config);
    let (model, louver) =
        louver_server::load_model(&config, EngineOptions::default(), None).await?;
    let bench = BfclBench { model: ToolModel::new(model, louver)?, max_tokens: args.max_tokens };
    let started = Instant::now();
    let mut results = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        for mode in &args.modes {
            results.push(bench.run(case, *mode).await.with_context(|| case.id.clone())?);
        }
        eprint!("\r{} of {} cases, {:.0?} ", n + 1, cases.len(), started.elapsed());
    }
    eprintln!();
    Ok(BenchOutcome {
        passed: is_held(&results),
        records: results.iter().map(CaseResult::record).collect(),
        summary: report::table(&results, &args.modes),
    })
}

/// Whether Louver did what it promises: an answer has calls, and each is valid. Wrong calls are the
/// model's.
fn is_held(results: &[CaseResult]) -> bool {
    results.iter().all(|result| result.mode != Mode::Louver || result.is_valid())
}

struct BfclBench {
    model: ToolModel,
    max_tokens: usize,
}

impl BfclBench {
    async fn run(&self, case: &Case, mode: Mode) -> Result<CaseResult> {
        // Only cases of several calls may have several.
        let parallel = if case.calls.len() > 1 { Parallel::Any } else { Parallel::One };
        let mut turn = match mode {
            Mode::Free => self.turn(case, CallMode::Unconstrained, parallel).await?,
            Mode::Louver => self.turn(case, CallMode::Constrained, parallel).await?,
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
            verdict: CallVerdict {
                valid,
                is_right: judge::matches(&case.calls, &turn.calls, &case.tools),
                made: turn.calls.iter().map(|c| format!("{}({})", c.name, c.arguments)).collect(),
                text: turn.text,
            },
            is_truncated: turn.is_truncated,
            tokens: turn.tokens,
            took: turn.timing.steps,
            louver: turn.timing.louver,
        })
    }

    async fn turn(&self, case: &Case, mode: CallMode, parallel: Parallel) -> Result<ToolTurn> {
        let request =
            greedy_request(self.max_tokens).add_message(TextMessageRole::User, &case.question);
        let request = ToolTurnInput { request, tools: &case.tools, parallel, seed: 1 };
        self.model.generate_calls(mode, request, |_: &Event| ()).await
    }
}

#[cfg(test)]
#[test]
fn louver_must_call_validly_and_other_modes_need_not() {
    let result = |mode, calls, valid| CaseResult {
        id: String::new(),
        category: String::new(),
        mode,
        calls,
        verdict: CallVerdict { valid, ..CallVerdict::default() },
        is_truncated: false,
        tokens: 1,
        took: Default::default(),
        louver: Default::default(),
    };
    assert!(is_held(&[result(Mode::Louver, 2, 2), result(Mode::Free, 0, 0)]));
    assert!(is_held(&[result(Mode::Host, 2, 1)]));
    assert!(!is_held(&[result(Mode::Louver, 2, 1)]));
    assert!(!is_held(&[result(Mode::Louver, 0, 0)]));
}
