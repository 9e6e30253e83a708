//! `louver demo`: an agent loop on a real mistral.rs, by default with a tiny model of random weights.

mod agent;
mod free;
mod show;
mod tally;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use louver_mistralrs::{Louver, LouverOptions, ToolChoice};
use mistralrs::{Model, ModelDType, TextModelBuilder};
use serde_json::json;

use show::{Show, Style};

/// Runs an agent loop: question, tool calls, tools, answer. By default with a tiny model of random weights on the CPU.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// What to ask.
    #[arg(default_value = "How much warmer is Lima than Oslo over the next days?")]
    question: String,
    /// A real model: a directory or a Hugging Face id.
    #[arg(long, value_name = "PATH_OR_ID")]
    model: Option<String>,
    /// Where the tiny model is kept [default: the platform's cache directory].
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    model_dir: Option<PathBuf>,
    /// The model's wire format [default: found by its chat template].
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// auto, required, none or a tool's name. With `required`, each tool that was not called is then asked for by name.
    #[arg(long, value_name = "CHOICE", default_value = "required", value_parser = parse_choice)]
    tool_choice: ToolChoice,
    /// Seed of all sampling: the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sampling temperature; 0 takes the likeliest token.
    #[arg(long, default_value_t = 1.0)]
    temperature: f64,
    /// Longest turn, in tokens.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// The same without Louver: shows what breaks.
    #[arg(long)]
    unconstrained: bool,
    /// Prints every event as a line of JSON.
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

/// Runs the demo. The exit code is 0 only if every call the model made matched its schema, and so did its answer.
pub(crate) fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut show = Show::new(if args.json { Style::Json } else { Style::Text });
        let (model, louver) = load(&args, &mut show).await?;
        let good = agent::Agent::new(&args, &model, &louver, &mut show)?.run().await?;
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Writes the tiny model if need be, and loads.
async fn load(args: &DemoArgs, show: &mut Show) -> anyhow::Result<(Model, Louver)> {
    let builder = match &args.model {
        Some(model) => {
            show.say(format!("model      {model}"));
            show.record(json!({"type": "model", "model": model, "random_weights": false}));
            TextModelBuilder::new(model)
        }
        None => {
            let parent = args.model_dir.clone().unwrap_or_else(louver_tiny_model::default_parent);
            let begun = Instant::now();
            let tiny = louver_tiny_model::ensure(&parent)?;
            let (dir, how) = (tiny.dir.display(), if tiny.fresh { "written" } else { "found" });
            show.say(format!(
                "model      tiny Llama of random weights, {how} in {:.2?}: {dir}",
                begun.elapsed()
            ));
            show.say("           Its weights are random: what it says is noise. The structure is guaranteed.");
            show.record(
                json!({"type": "model", "model": dir.to_string(), "random_weights": true, "fresh": tiny.fresh}),
            );
            TextModelBuilder::new(dir).with_force_cpu().with_dtype(ModelDType::F32)
        }
    };
    show.say("host       loading with mistral.rs ...");
    let begun = Instant::now();
    let options = LouverOptions { format: args.format.clone(), ..LouverOptions::default() };
    let (model, louver) = Louver::load_with(builder, options).await?;
    let format = match louver.format() {
        Ok(format) => format.to_owned(),
        Err(error) => {
            return Err(anyhow::anyhow!("{error}; use --format to name the model's wire format"));
        }
    };
    let ids = louver.engine().vocab().width();
    show.say(format!(
        "           loaded in {:.2?}: {ids} token ids, wire format {format}",
        begun.elapsed()
    ));
    show.record(json!({"type": "loaded", "token_ids": ids, "format": format, "warnings": louver.warnings()}));
    for warning in louver.warnings().iter().take(5) {
        show.say(format!("warning    {warning}"));
    }
    Ok((model, louver))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices() {
        assert_eq!(parse_choice("auto"), Ok(ToolChoice::Auto));
        assert_eq!(parse_choice("required"), Ok(ToolChoice::Required));
        assert_eq!(parse_choice("none"), Ok(ToolChoice::None));
        assert_eq!(parse_choice("forecast"), Ok(ToolChoice::Named("forecast".to_owned())));
        assert!(parse_choice("").is_err());
    }
}
