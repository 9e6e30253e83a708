//! A loaded model's engine.

use std::sync::Arc;

use louver::engine::{Engine, EngineOptions};
use louver_formats::{Catalog, DetectError, ModelHints, WireFormat};
use louver_hf_tokenizers::VocabOptions;
use mistralrs::model_builder_trait::build_model_from_pipeline;
use mistralrs::{AnyModelBuilder, Model};
use mistralrs_core::Pipeline;
use tokenizers::Tokenizer;
use tokio::sync::Mutex;

use crate::error::{LoadError, RequestError};
use crate::plan::{Plan, PlanBuilder, ToolList};
use crate::prompt::{ChatTemplate, PromptParts, TemplateError};

/// How a model's engine is made.
#[derive(Clone, Debug, Default)]
pub struct LouverOptions {
    /// The wire format's name; found by the chat template if none is given.
    pub format: Option<String>,
    /// Wire formats beside those that Louver ships; one of the same name replaces the shipped one.
    pub formats: Vec<WireFormat>,
    /// The engine's limits.
    pub engine: EngineOptions,
}

/// Louver for one loaded model: its vocabulary, wire format and chat template. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Louver {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Result<ChatTemplate, TemplateError>,
    pub(crate) format: Result<WireFormat, DetectError>,
    pub(crate) max_context: usize,
    pub(crate) stops: Vec<u32>,
    warnings: Vec<String>,
}

impl Inner {
    pub(crate) fn tokenize(&self, text: &str) -> Result<Vec<u32>, RequestError> {
        // Special tokens are the template's affair.
        let encoding = self.tokenizer.encode_fast(text, false);
        Ok(encoding.map_err(|error| RequestError::Tokenize(error.to_string()))?.get_ids().to_vec())
    }
}

impl Inner {
    /// Whether a prompt ends inside a reasoning block: the template writes the marker that opens it.
    pub(crate) fn opens_reasoning(&self, format: &WireFormat, enable_thinking: Option<bool>) -> bool {
        let Ok(template) = &self.template else { return false };
        let messages = [serde_json::json!({"role": "user", "content": ""})];
        let parts = PromptParts { messages: &messages, tools: &[], enable_thinking };
        template.render(&parts).is_ok_and(|prompt| format.prompt_opens_reasoning(&prompt))
    }
}

impl Louver {
    /// Loads a model with one of the SDK's builders, and Louver for it.
    pub async fn load(builder: impl Into<AnyModelBuilder>) -> Result<(Model, Louver), LoadError> {
        Louver::load_with(builder, LouverOptions::default()).await
    }

    /// As [`Louver::load`], with options.
    pub async fn load_with(
        builder: impl Into<AnyModelBuilder>,
        options: LouverOptions,
    ) -> Result<(Model, Louver), LoadError> {
        let built = builder.into().build_pipeline().await;
        let (pipeline, scheduler, config) = built.map_err(|error| LoadError::Host(format!("{error:#}")))?;
        let louver = Louver::for_pipeline(&pipeline, options).await?;
        Ok((build_model_from_pipeline(pipeline, scheduler, config).await, louver))
    }

    /// Louver for a pipeline, before or after it is given to a `MistralRsBuilder`. Cost: decodes every token once.
    pub async fn for_pipeline(
        pipeline: &Arc<Mutex<dyn Pipeline>>,
        options: LouverOptions,
    ) -> Result<Louver, LoadError> {
        let pipeline = pipeline.lock().await;
        if pipeline.name().starts_with("Speculative:") {
            return Err(LoadError::Speculative);
        }
        let tokenizer = pipeline.tokenizer().ok_or(LoadError::NoTokenizer)?;
        let metadata = pipeline.get_metadata();
        // The logits' width is seen only when the first row comes; ids beyond the tokenizer's are masked there.
        let vocab_options = VocabOptions { stop_ids: metadata.eos_tok.clone(), ..VocabOptions::default() };
        let (vocab, warnings) = louver_hf_tokenizers::vocabulary(&tokenizer, &vocab_options)?;
        let template = match pipeline.get_chat_template() {
            Some(host) => ChatTemplate::from_host(&host),
            None => Err(TemplateError::Missing),
        };
        let mut catalog = Catalog::builtin();
        options.formats.into_iter().for_each(|format| catalog.add(format));
        let format = match &options.format {
            Some(name) => Ok(catalog.get(name)?.clone()),
            None => detect(&catalog, template.as_ref().ok(), &tokenizer),
        };
        Ok(Louver {
            inner: Arc::new(Inner {
                engine: Engine::new(Arc::new(vocab), options.engine),
                tokenizer,
                template,
                format,
                max_context: metadata.max_seq_len,
                stops: metadata.eos_tok.clone(),
                warnings: warnings.iter().map(ToString::to_string).collect(),
            }),
        })
    }

    /// A turn with these tools on offer.
    pub fn tools(&self, tools: impl Into<ToolList>) -> PlanBuilder<'_> {
        PlanBuilder::new(self, tools.into())
    }

    /// A turn that is an answer of this JSON Schema.
    pub fn answer(&self, schema: &serde_json::Value) -> PlanBuilder<'_> {
        PlanBuilder::new(self, ToolList::default()).response_format(schema)
    }

    /// A turn without any constraint, for comparison: the model sees the tools and says what it likes, and all of it comes
    /// as text.
    pub fn unconstrained(&self, tools: impl Into<ToolList>) -> Plan {
        Plan::unconstrained(self.inner.clone(), tools.into())
    }

    /// The wire format's name, or why it is not known.
    pub fn format(&self) -> Result<&str, &DetectError> {
        self.inner.format.as_ref().map(|format| format.name.as_str())
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// What could not be taken over from the tokenizer, for people.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }
}

fn detect(
    catalog: &Catalog,
    template: Option<&ChatTemplate>,
    tokenizer: &Tokenizer,
) -> Result<WireFormat, DetectError> {
    let added = tokenizer.get_added_tokens_decoder();
    let tokens: Vec<&str> = added.values().map(|token| token.content.as_str()).collect();
    let hints =
        ModelHints { chat_template: template.map(ChatTemplate::source), tokens: &tokens, ..ModelHints::default() };
    let found = catalog.detect(hints)?;
    catalog.get(&found.name).cloned().map_err(|error| DetectError::Unknown { seen: "catalog", known: error.known })
}
