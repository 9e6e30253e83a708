//! A loaded model's engine.

use std::sync::{Arc, OnceLock};

use louver::engine::{Engine, EngineOptions};
use louver_formats::{Catalog, DetectError, ModelHints, ToolRequest, WireFormat};
use louver_hf_tokenizers::VocabOptions;
use mistralrs::{AnyModelBuilder, Model, RequestLike};
use mistralrs_core::{MistralRsBuilder, Pipeline};
use tokenizers::Tokenizer;
use tokio::sync::Mutex;

use crate::chat::Chat;
use crate::error::{LoadError, PlanError, RequestError};
use crate::files;
use crate::host::Host;
use crate::plan::{Plan, PlanBuilder, ToolList};
use crate::prompt::{ChatTemplate, PromptParts, TemplateError, TemplateInput, longest_text};

/// How a model's engine is made.
#[derive(Clone, Debug, Default)]
pub struct LouverOptions {
    /// The wire format's name; found by the chat template, the model's configuration and its tokens if none is given.
    pub format: Option<String>,
    /// Wire formats beside those that Louver ships; one of the same name replaces the shipped one.
    pub formats: Vec<WireFormat>,
    /// The engine's limits.
    pub engine: EngineOptions,
    /// Most bytes of a prompt's text. A longer one is refused before it is tokenized, and so is one that
    /// cannot fit into the model's context, as far as the tokenizer tells.
    pub prompt_bytes: Option<usize>,
}

/// Louver for one loaded model: its vocabulary, wire format and chat template. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Louver {
    pub(crate) inner: Arc<Inner>,
    pub(crate) host: Option<Host>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Result<ChatTemplate, TemplateError>,
    pub(crate) format: Result<WireFormat, DetectError>,
    pub(crate) max_context: usize,
    /// Most bytes of a prompt's text.
    prompt_bytes: usize,
    pub(crate) stops: Vec<u32>,
    /// Tokens that the host takes for ends and the wire format does not.
    early_ends: Vec<String>,
    warnings: Vec<String>,
    /// Whether prompts end inside a reasoning block: with `enable_thinking` false, true, undefined.
    opens: [OnceLock<bool>; 3],
}

/// What a model's engine is made of.
pub(crate) struct Parts {
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Result<ChatTemplate, TemplateError>,
    pub(crate) max_context: usize,
    /// The tokens that end a generation.
    pub(crate) ends: Vec<u32>,
    /// What the model's configuration says it is.
    pub(crate) kind: ModelKind,
}

/// What a model's configuration says it is, where it is known.
#[derive(Debug, Default)]
pub(crate) struct ModelKind {
    pub(crate) model_type: Option<String>,
    pub(crate) architectures: Vec<String>,
}

impl Inner {
    pub(crate) fn tokenize(&self, text: &str) -> Result<Vec<u32>, RequestError> {
        if text.len() > self.prompt_bytes {
            return Err(RequestError::TooManyBytes { bytes: text.len(), limit: self.prompt_bytes });
        }
        // Special tokens are the template's affair.
        let encoding = self.tokenizer.encode_fast(text, false);
        Ok(encoding.map_err(|error| RequestError::Tokenize(error.to_string()))?.get_ids().to_vec())
    }
}

impl Inner {
    /// Whether a prompt ends inside a reasoning block: the template writes the marker that opens it. Rendered once for each
    /// value of `enable_thinking`.
    pub(crate) fn opens_reasoning(&self, enable_thinking: Option<bool>) -> bool {
        let opens = || {
            let (Ok(template), Ok(format)) = (&self.template, &self.format) else { return false };
            let messages = [serde_json::json!({"role": "user", "content": ""})];
            let parts =
                PromptParts { messages: &messages, enable_thinking, ..PromptParts::default() };
            template.render(&parts).is_ok_and(|prompt| format.prompt_opens_reasoning(&prompt))
        };
        let known = &self.opens[enable_thinking.map_or(2, usize::from)];
        *known.get_or_init(opens)
    }
}

impl Louver {
    /// Loads a model with one of the SDK's builders, and Louver for it.
    pub async fn load(builder: impl Into<AnyModelBuilder>) -> Result<(Model, Louver), LoadError> {
        Louver::load_with(builder, LouverOptions::default()).await
    }

    /// As [`Louver::load`], with options.
    ///
    /// Where the host takes tokens of the wire format for ends of the generation (Harmony's `<|channel|>`, 0.8.1), its own
    /// end detection is switched off for the whole model: requests that go past Louver need stop tokens of their own then.
    pub async fn load_with(
        builder: impl Into<AnyModelBuilder>,
        options: LouverOptions,
    ) -> Result<(Model, Louver), LoadError> {
        let built = builder.into().build_pipeline().await;
        let (pipeline, scheduler, config) =
            built.map_err(|error| LoadError::Host(format!("{error:#}")))?;
        let mut louver = Louver::for_pipeline(&pipeline, options).await?;
        let engine = config.engine_config;
        let mut runner = MistralRsBuilder::new(
            pipeline,
            scheduler,
            engine.throughput_logging_enabled,
            engine.search_embedding_model,
        )
        .with_no_kv_cache(engine.no_kv_cache)
        .with_no_prefix_cache(engine.no_prefix_cache)
        .with_prefix_cache_n(engine.prefix_cache_n)
        .with_disable_eos_stop(!louver.inner.early_ends.is_empty());
        if let Some(callback) = engine.search_callback {
            runner = runner.with_search_callback(callback);
        }
        for (name, callback) in engine.tool_callbacks {
            runner = runner.with_tool_callback(name, callback);
        }
        for (name, tool) in engine.tool_callbacks_with_tools {
            runner = runner.with_tool_callback_and_tool(name, tool.callback, tool.tool);
        }
        if let Some(mcp) = config.mcp_client_config {
            runner = runner.with_mcp_client(mcp);
        }
        if let Some(loader) = config.loader_config {
            runner = runner.with_loader_config(loader);
        }
        let runner = runner.build().await;
        louver.host = Some(Host::Runner(runner.clone()));
        Ok((Model::new(runner), louver))
    }

    /// Louver for a model that the SDK has loaded. The host does not give its tokenizer and chat template away, so they
    /// are read from the files it was loaded from: a directory, or the Hugging Face cache. Cost: reads and decodes the
    /// vocabulary. Fails for models without these files (GGUF), for Harmony (see [`Louver::load`], which can switch the
    /// host's end detection off) and for templates given to the builder by hand: use [`Louver::load`] there.
    pub async fn for_model(model: &Model) -> Result<Louver, LoadError> {
        Louver::for_model_with(model, LouverOptions::default()).await
    }

    /// As [`Louver::for_model`], with options.
    pub async fn for_model_with(
        model: &Model,
        options: LouverOptions,
    ) -> Result<Louver, LoadError> {
        let host = model.inner();
        let id = host.get_default_model_id().map_err(LoadError::Host)?;
        let id = id.ok_or_else(|| LoadError::Host("there is no model".to_owned()))?;
        if id.starts_with("Speculative:") {
            return Err(LoadError::Speculative);
        }
        let max_context =
            host.max_sequence_length(None).map_err(|error| LoadError::Host(error.to_string()))?;
        let parts = files::read(&id, max_context)?;
        let louver = Louver::assemble(parts, options)?;
        match louver.inner.early_ends.first() {
            Some(token) => Err(LoadError::EarlyEnd { token: token.clone() }),
            None => louver.with_model(model).map_err(|error| LoadError::Host(error.to_string())),
        }
    }

    /// Louver for a pipeline, before or after it is given to a `MistralRsBuilder`. Cost: decodes every token once.
    /// [`Louver::chat`] needs the model too: see [`Louver::with_model`]. For Harmony, build the host with
    /// `with_disable_eos_stop(true)`.
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
        let template = match pipeline.get_chat_template() {
            Some(host) => ChatTemplate::from_host(&host),
            None => Err(TemplateError::Missing),
        };
        let (max_context, ends) = (metadata.max_seq_len, metadata.eos_tok.clone());
        let kind = files::kind(&pipeline.name());
        Louver::assemble(Parts { tokenizer, template, max_context, ends, kind }, options)
    }

    /// The same, for requests to this model: the one the pipeline was given to. An engine of it that dies later is not
    /// started anew by [`Louver::chat`]; [`Plan::stream`] and models of [`Louver::load`] do that.
    pub fn with_model(mut self, model: &Model) -> Result<Louver, RequestError> {
        self.host = Some(Host::line(model.inner())?);
        Ok(self)
    }

    fn assemble(parts: Parts, options: LouverOptions) -> Result<Louver, LoadError> {
        let Parts { tokenizer, template, max_context, ends, kind } = parts;
        let mut catalog = Catalog::builtin();
        options.formats.into_iter().for_each(|format| catalog.add(format));
        let format = match &options.format {
            Some(name) => Ok(catalog.get(name)?.clone()),
            None => detect(&catalog, template.as_ref().ok(), &tokenizer, &kind),
        };
        // Formats that end every message by a marker say themselves which of them end the turn.
        let own = format.as_ref().ok().filter(|format| format.messages.is_some());
        let own: Option<Vec<u32>> = own.and_then(|format| {
            format.stop_tokens.iter().map(|name| tokenizer.token_to_id(name)).collect()
        });
        let stops = own.unwrap_or_else(|| ends.clone());
        let early = ends.iter().filter(|id| !stops.contains(id));
        let early_ends = early.filter_map(|id| tokenizer.id_to_token(*id)).collect();
        // The logits' width is seen only when the first row comes; ids beyond the tokenizer's are masked there.
        let vocab_options = VocabOptions { stop_ids: stops.clone(), ..VocabOptions::default() };
        let (vocab, warnings) = louver_hf_tokenizers::vocabulary(&tokenizer, &vocab_options)?;
        let stops = vocab.stops().iter().map(|id| id.raw()).collect();
        let fitting = longest_text(&tokenizer, max_context).unwrap_or(usize::MAX);
        Ok(Louver {
            inner: Arc::new(Inner {
                engine: Engine::new(Arc::new(vocab), options.engine),
                tokenizer,
                template,
                format,
                max_context,
                prompt_bytes: options.prompt_bytes.unwrap_or(usize::MAX).min(fitting),
                stops,
                early_ends,
                warnings: warnings.iter().map(ToString::to_string).collect(),
                opens: Default::default(),
            }),
            host: None,
        })
    }

    /// A conversation's next turn, sent to the model: see [`Chat`].
    pub fn chat(&self, request: impl RequestLike + Send + 'static) -> Chat {
        Chat::new(self.clone(), request)
    }

    /// A turn as an OpenAI-shaped request asks for it. The engine's limits hold; `reasoning` is taken as given, except
    /// that [`Reasoning::Optional`](louver_formats::Reasoning::Optional) becomes [`Reasoning::Opened`](louver_formats::Reasoning::Opened) where the chat template opens the block.
    pub fn plan(&self, request: ToolRequest, shown: TemplateInput) -> Result<Plan, PlanError> {
        Plan::new(self.inner.clone(), request, shown)
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

    /// The chat template, or why there is none.
    pub fn template(&self) -> Result<&ChatTemplate, &TemplateError> {
        self.inner.template.as_ref()
    }

    /// Longest prompt and answer together, in tokens.
    pub fn max_context(&self) -> usize {
        self.inner.max_context
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
    kind: &ModelKind,
) -> Result<WireFormat, DetectError> {
    let added = tokenizer.get_added_tokens_decoder();
    let tokens: Vec<&str> = added.values().map(|token| token.content.as_str()).collect();
    let architectures: Vec<&str> = kind.architectures.iter().map(String::as_str).collect();
    let hints = ModelHints {
        chat_template: template.map(ChatTemplate::source),
        tokens: &tokens,
        model_type: kind.model_type.as_deref(),
        architectures: &architectures,
    };
    let found = catalog.detect(hints)?;
    catalog
        .get(&found.name)
        .cloned()
        .map_err(|error| DetectError::Unknown { seen: "catalog", known: error.known })
}
