//! Which model an example runs on, and how it samples.

use louver_mistralrs::{Louver, LouverOptions, RunOptions, SchemaOptions, Whitespace};
use mistralrs::{
    Model, ModelDType, RequestBuilder, SamplingParams, TextMessageRole, TextModelBuilder,
};

use crate::lean;

/// What every example takes.
#[derive(Clone, Debug, clap::Parser)]
pub struct Setup {
    /// A real model: a directory or a Hugging Face id [default: a tiny model of random weights].
    #[arg(long, value_name = "PATH_OR_ID")]
    pub model: Option<String>,
    /// The model's wire format [default: found by its chat template].
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
    /// Seed of all sampling: the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Longest turn, in tokens.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: u32,
}

impl Setup {
    /// Loads the model, and Louver for it. Without `--model`: the tiny one, which is written first if need be.
    pub async fn load(&self) -> anyhow::Result<(Model, Louver)> {
        let builder = match &self.model {
            Some(model) => TextModelBuilder::new(model),
            None => {
                let tiny = louver_tiny_model::ensure(&louver_tiny_model::default_parent())?;
                println!(
                    "model      tiny, of random weights: what it says is noise, its structure is guaranteed"
                );
                // Its prefix cache is off: mistralrs 0.8.1 loses its engine with it when requests run side by side.
                TextModelBuilder::new(tiny.dir.display())
                    .with_force_cpu()
                    .with_dtype(ModelDType::F32)
                    .with_prefix_cache_n(None)
            }
        };
        let options = LouverOptions { format: self.format.clone(), ..LouverOptions::default() };
        let (model, louver) = Louver::load_with(builder, options).await?;
        println!("format     {}", louver.format().map_err(Clone::clone)?);
        Ok((model, louver))
    }

    /// A conversation with a system message and a question.
    pub fn ask(&self, louver: &Louver, question: &str) -> RequestBuilder {
        println!("user       {question}");
        let request = match self.model {
            Some(_) => RequestBuilder::new(),
            None => RequestBuilder::new().add_logits_processor(lean::towards_markers(louver)),
        };
        request
            .set_sampling(SamplingParams::neutral())
            .set_sampler_max_len(self.max_tokens as usize)
            .add_message(TextMessageRole::System, "Answer with the help of the tools.")
            .add_message(TextMessageRole::User, question)
    }

    /// How the `step`th turn samples.
    pub fn step(&self, step: u64) -> RunOptions {
        RunOptions {
            seed: Some(self.seed.wrapping_mul(1000).wrapping_add(step)),
            ..RunOptions::default()
        }
    }
}

/// JSON as models are shown it, with one space where Python writes one: not mostly white space where weights are random.
pub fn one_spelling() -> SchemaOptions {
    SchemaOptions { whitespace: Whitespace::PythonLike, ..SchemaOptions::default() }
}
