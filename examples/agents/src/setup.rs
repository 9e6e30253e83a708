//! Model selection and sampling options of the examples.

use louver_mistralrs::{Louver, LouverOptions, RunOptions, SchemaOptions, Whitespace};
use mistralrs::{
    Model, ModelDType, RequestBuilder, SamplingParams, TextMessageRole, TextModelBuilder,
};

use crate::lean;

/// Command-line arguments of all examples.
#[derive(Clone, Debug, clap::Parser)]
pub struct Setup {
    /// A real model: a directory or a Hugging Face id [default: a tiny model with random weights].
    #[arg(long, value_name = "PATH_OR_ID")]
    pub model: Option<String>,
    /// The model's wire format [default: detected from its chat template].
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
    /// Seed of all sampling; the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Maximum tokens per turn.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: u32,
}

impl Setup {
    /// Loads the model with Louver. Without `--model` it is the tiny model, which is written first
    /// if necessary.
    pub async fn load(&self) -> anyhow::Result<(Model, Louver)> {
        let builder = match &self.model {
            Some(model) => TextModelBuilder::new(model),
            None => {
                let tiny = louver_tiny_model::ensure(&louver_tiny_model::default_parent())?;
                println!(
                    "model      tiny, random weights: the text is noise, the structure guaranteed"
                );
                // The prefix cache is off: with it, the engine of mistralrs 0.8.1 fails on
                // concurrent requests.
                TextModelBuilder::new(tiny.dir.display())
                    .with_force_cpu()
                    .with_dtype(ModelDType::F32)
                    .with_prefix_cache_n(None)
            }
        };
        let options = LouverOptions::default().with_format(self.format.clone());
        let (model, louver) = Louver::load_with(builder, options).await?;
        println!("format     {}", louver.format().map_err(Clone::clone)?);
        Ok((model, louver))
    }

    /// Starts a conversation with a system message and a question.
    pub fn new_conversation(&self, louver: &Louver, question: &str) -> RequestBuilder {
        println!("user       {question}");
        let request = match self.model {
            Some(_) => RequestBuilder::new(),
            None => RequestBuilder::new().add_logits_processor(lean::favour_markers(louver)),
        };
        request
            .set_sampling(SamplingParams::neutral())
            .set_sampler_max_len(self.max_tokens as usize)
            .add_message(TextMessageRole::System, "Answer with the help of the tools.")
            .add_message(TextMessageRole::User, question)
    }

    /// The sampling options of a turn.
    pub fn run_options(&self, step: u64) -> RunOptions {
        RunOptions::default().with_seed(self.seed.wrapping_mul(1000).wrapping_add(step))
    }
}

/// JSON in the format of training data, with Python's white space, so that random output is
/// not mostly white space.
pub fn training_format() -> SchemaOptions {
    SchemaOptions::default().with_whitespace(Whitespace::PythonLike)
}
