//! The command `louver demo`: an agent loop on the real mistral.rs, by default with a tiny model
//! with random weights.

mod agent;
mod lenient;
mod output;
mod stats;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use louver_mistralrs::{Louver, LouverOptions, ToolChoice};
use mistralrs::{Model, ModelDType, TextModelBuilder};
use serde_json::json;

use output::{Output, OutputStyle};

/// Runs an agent loop: question, tool calls, tools, answer. By default with a tiny model with
/// random weights on the CPU.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The question.
    #[arg(default_value = "How much warmer is Lima than Oslo over the next days?")]
    question: String,
    /// A real model: a directory or a Hugging Face id.
    #[arg(long, value_name = "PATH_OR_ID")]
    model: Option<String>,
    /// Directory of the tiny model [default: the platform's cache directory].
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    model_dir: Option<PathBuf>,
    /// The model's wire format [default: detected from its chat template].
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// auto, required, none or a tool's name. With `required`, each tool that was not called is
    /// then requested by name.
    #[arg(long, value_name = "CHOICE", default_value = "required", value_parser = parse_choice)]
    tool_choice: ToolChoice,
    /// Seed of all sampling; the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sampling temperature; 0 selects the most likely token.
    #[arg(long, default_value_t = 1.0)]
    temperature: f64,
    /// Maximum tokens per turn.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
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
        let (model, louver) = load(&args, &mut output).await?;
        let is_good = agent::Agent::new(&args, &model, &louver, &mut output)?.run().await?;
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Loads the model; writes the tiny model first if necessary.
async fn load(args: &DemoArgs, output: &mut Output) -> anyhow::Result<(Model, Louver)> {
    let builder = match &args.model {
        Some(model) => {
            output.print_line(format!("model      {model}"));
            output.record(json!({"type": "model", "model": model, "random_weights": false}));
            TextModelBuilder::new(model)
        }
        None => {
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
            output.record(
                json!({"type": "model", "model": dir.to_string(), "random_weights": true, "fresh": tiny.fresh}),
            );
            TextModelBuilder::new(dir).with_force_cpu().with_dtype(ModelDType::F32)
        }
    };
    output.print_line("host       loading with mistral.rs ...");
    let started = Instant::now();
    let options = LouverOptions { format: args.format.clone(), ..LouverOptions::default() };
    let (model, louver) = Louver::load_with(builder, options).await?;
    let format = match louver.format() {
        Ok(format) => format.to_owned(),
        Err(error) => {
            return Err(anyhow::anyhow!("{error}; use --format to name the model's wire format"));
        }
    };
    let ids = louver.engine().vocab().width();
    output.print_line(format!(
        "           loaded in {:.2?}: {ids} token ids, wire format {format}",
        started.elapsed()
    ));
    output.record(json!({"type": "loaded", "token_ids": ids, "format": format, "warnings": louver.warnings()}));
    for warning in louver.warnings().iter().take(5) {
        output.print_line(format!("warning    {warning}"));
    }
    Ok((model, louver))
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
