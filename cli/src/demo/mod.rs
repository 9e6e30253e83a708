//! The command `louver demo`: an agent loop on the real mistral.rs, by default with a tiny model
//! with random weights.

mod agent;
mod columns;
mod output;
mod stats;
mod tasks;
mod tools;
mod trained;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use louver::engine::EngineOptions;
use louver::front::json_schema::SchemaOptions;
use louver_mistralrs::ToolChoice;
use louver_server::{DeviceChoice, ModelConfig, Overrides};
use serde_json::json;

use crate::model_flags::{ModelFlags, schema_overrides};
use crate::tool_turn::ToolModel;
use output::{Output, OutputStyle};

/// Runs an agent loop: question, tool calls, tools, answer. By default with a tiny model with
/// random weights on the CPU.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The question.
    #[arg(default_value = "How much warmer is Lima than Oslo over the next days?")]
    question: String,
    /// Ask SmolLM2-135M-Instruct, a small trained model, five questions with and without Louver.
    /// Downloads 93 MB once; with --model, uses another GGUF file of it.
    #[arg(long, conflicts_with_all = ["question", "model_dir", "tool_choice", "unconstrained"])]
    trained: bool,
    /// A real model: a directory, a GGUF file or a Hugging Face id.
    #[arg(long, value_name = "PATH_OR_ID")]
    model: Option<String>,
    /// Directory of the tiny model [default: the platform's cache directory].
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    model_flags: ModelFlags,
    /// auto, required, none or a tool's name. With `required`, each tool that was not called is
    /// then requested by name.
    #[arg(long, value_name = "CHOICE", default_value = "required", value_parser = parse_choice)]
    tool_choice: ToolChoice,
    /// Seed of all sampling; the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sampling temperature; 0 selects the most likely token [default: 1; with --trained 0].
    #[arg(long)]
    temperature: Option<f64>,
    /// Maximum tokens per turn [default: 1024; with --trained 160].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Schema options, such as '{"whitespace": "compact"}', which override the demo's; see
    /// docs/JSON_SCHEMA.md.
    #[arg(long, value_name = "JSON", value_parser = schema_overrides, default_value = "{}")]
    schema_options: Overrides<SchemaOptions>,
    /// Run without Louver, to show what breaks.
    #[arg(long)]
    unconstrained: bool,
    /// Print every event as one line of JSON.
    #[arg(long)]
    json: bool,
}

fn parse_choice(text: &str) -> Result<ToolChoice, String> {
    Ok(match text {
        "auto" => ToolChoice::Auto,
        "required" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "" => return Err("must not be empty".to_owned()),
        name => ToolChoice::Named(name.to_owned()),
    })
}

/// Runs the demo. The exit code is 0 only if every call and the final answer matched their schemas.
pub(crate) fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut output = Output::new(if args.json { OutputStyle::Json } else { OutputStyle::Text });
        let model = load(&args, &mut output).await?;
        let is_good = match args.trained {
            true => trained::run(&args, &model, &mut output).await?,
            false => agent::Agent::new(&args, &model, &mut output)?.run().await?,
        };
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The model's options. Writes the tiny model first if necessary, or downloads the trained one.
async fn model_config(args: &DemoArgs, output: &mut Output) -> anyhow::Result<ModelConfig> {
    if args.trained {
        let file = match &args.model {
            Some(model) => PathBuf::from(model),
            None => crate::trained::ensure().await?,
        };
        let line = format!("model      SmolLM2-135M-Instruct: {}", file.display());
        output.print(line, json!({"type": "model", "model": file, "random_weights": false}));
        return Ok(crate::trained::config(&file));
    }
    if let Some(model) = &args.model {
        let record = json!({"type": "model", "model": model, "random_weights": false});
        output.print(format!("model      {model}"), record);
        return Ok(ModelConfig { model: model.clone(), ..ModelConfig::default() });
    }
    let parent = args.model_dir.clone().unwrap_or_else(louver_tiny_model::default_parent);
    let started = Instant::now();
    let tiny = louver_tiny_model::ensure(&parent)?;
    let (dir, how) = (tiny.dir.display(), if tiny.fresh { "written" } else { "found" });
    output.print_line(format!(
        "model      tiny Llama of random weights, {how} in {:.2?}: {dir}",
        started.elapsed()
    ));
    output.print_line(
        "           Its weights are random: the text is noise, the structure is guaranteed.",
    );
    output.print_line("           `louver demo --trained` shows a small trained model.");
    let model = dir.to_string();
    output.record(
        json!({"type": "model", "model": model, "random_weights": true, "fresh": tiny.fresh}),
    );
    Ok(ModelConfig { model, device: DeviceChoice::Cpu, ..ModelConfig::default() })
}

/// Number of prompt prefixes that the host caches: later turns continue earlier ones.
const PREFIX_CACHE: usize = 16;

/// Loads the model.
async fn load(args: &DemoArgs, output: &mut Output) -> anyhow::Result<ToolModel> {
    let mut config = model_config(args, output).await?;
    config.prefix_cache = Some(PREFIX_CACHE);
    args.model_flags.apply(&mut config);
    output.print_line("host       loading with mistral.rs ...");
    let started = Instant::now();
    let (model, louver) =
        louver_server::load_model(&config, EngineOptions::default(), None).await?;
    let format = louver.format().map_err(Clone::clone)?.to_owned();
    let ids = louver.engine().vocab().width();
    output.print_line(format!(
        "           loaded in {:.2?}: {ids} token ids, wire format {format}",
        started.elapsed()
    ));
    output.record(json!({"type": "loaded", "token_ids": ids, "format": format, "warnings": louver.warnings()}));
    // The warnings of the trained model are known, and tell a new user nothing.
    if !args.trained {
        for warning in louver.warnings().iter().take(5) {
            output.print_line(format!("warning    {warning}"));
        }
    }
    Ok(ToolModel::new(model, louver)?.with_schema_options(&args.schema_options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_choices_are_parsed() {
        assert_eq!(parse_choice("auto"), Ok(ToolChoice::Auto));
        assert_eq!(parse_choice("required"), Ok(ToolChoice::Required));
        assert_eq!(parse_choice("none"), Ok(ToolChoice::None));
        assert_eq!(parse_choice("forecast"), Ok(ToolChoice::Named("forecast".to_owned())));
        assert!(parse_choice("").is_err());
    }
}
