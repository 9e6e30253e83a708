//! Louver for a loaded model: engine, tokenizer, chat template and wire format.

use std::sync::Arc;

use louver::engine::{Engine, EngineOptions};
use louver::with_methods;
use louver_formats::{Catalog, WireFormat};
use louver_hf_tokenizers::VocabOptions;
use louver_host::{
    ChatTemplate, Checkpoint, MessageStyle, ResolveError, Resolved, SendError, TemplateError,
    TemplateInput, resolve,
};
use mistralrs::{AnyModelBuilder, Model};
use mistralrs_core::Pipeline;
use tokenizers::Tokenizer;
use tokio::sync::Mutex;

use crate::context_limit::max_text_bytes;
use crate::error::LoadError;
use crate::gguf::GgufModel;
use crate::host_builder::host_builder;
use crate::host_types;
use crate::model_files;
use crate::model_parts::{DEFAULT_CONTEXT, ModelParts};
use crate::request_sender::{Host, sender};
use crate::unsupported;

/// Options of setting up Louver for a model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LouverOptions {
    /// The wire format's name; by default detected from the chat template, the model's
    /// configuration and its tokens.
    pub format: Option<String>,
    /// Additional wire formats; one with the name of a built-in format replaces it.
    pub formats: Vec<WireFormat>,
    /// The source of a chat template (Jinja) that replaces the model's.
    pub chat_template: Option<String>,
    /// Options of the engine.
    pub engine: EngineOptions,
    /// Maximum bytes of a prompt's text. A longer one is rejected before tokenization, and so is
    /// one that cannot fit the model's context, as far as the tokenizer tells.
    pub prompt_bytes: Option<usize>,
}

with_methods!(LouverOptions {
    with_format: format = impl Into<Option<String>>,
    with_formats: formats = Vec<WireFormat>,
    with_chat_template: chat_template = impl Into<Option<String>>,
    with_engine: engine = EngineOptions,
    with_prompt_bytes: prompt_bytes = impl Into<Option<usize>>,
});

/// Louver for one loaded model: its vocabulary, wire format and chat template. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Louver {
    pub(crate) inner: Arc<LouverInner>,
    pub(crate) host: Option<Host>,
}

#[derive(Debug)]
pub(crate) struct LouverInner {
    pub(crate) engine: Engine,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Result<ChatTemplate, TemplateError>,
    pub(crate) format: Result<WireFormat, ResolveError>,
    /// How the chat template wants messages.
    pub(crate) message_style: MessageStyle,
    pub(crate) max_context: usize,
    /// Maximum bytes of a prompt's text.
    prompt_bytes: usize,
    /// Tokens that end a generation for the host but not in the wire format.
    early_ends: Vec<String>,
    warnings: Vec<String>,
}

impl LouverInner {
    /// The tokens of a prompt's text; with those that the tokenizer adds, if `add_special`. Error:
    /// they leave no room for output.
    pub(crate) fn tokenize(&self, text: &str, add_special: bool) -> Result<Vec<u32>, SendError> {
        if text.len() > self.prompt_bytes {
            return Err(SendError::TooManyBytes { bytes: text.len(), limit: self.prompt_bytes });
        }
        let encoding = self.tokenizer.encode_fast(text, add_special);
        let encoding = encoding.map_err(|error| SendError::Tokenize(error.to_string()))?;
        match encoding.get_ids() {
            [] => Err(SendError::EmptyPrompt),
            tokens => self.available_tokens(tokens.len()).map(|_| tokens.to_vec()),
        }
    }

    /// The tokens that the model's context leaves for output. Error: none.
    pub(crate) fn available_tokens(&self, prompt_tokens: usize) -> Result<usize, SendError> {
        let (tokens, limit) = (prompt_tokens, self.max_context);
        match limit.saturating_sub(tokens) {
            0 => Err(SendError::TooLong { tokens, limit }),
            available => Ok(available),
        }
    }

    /// Whether the prompt of a short conversation ends inside a reasoning block, because the
    /// template writes the opening marker.
    pub(crate) fn opens_reasoning(&self, input: &TemplateInput) -> bool {
        let (Ok(template), Ok(format)) = (&self.template, &self.format) else { return false };
        let without_tools = TemplateInput::new(&[], input.enable_thinking);
        let input = without_tools.with_variables(input.variables.clone());
        let messages = [serde_json::json!({"role": "user", "content": ""})];
        let prompt = template.render(&messages, &input);
        prompt.is_ok_and(|prompt| format.prompt_opens_reasoning(&prompt))
    }
}

impl Louver {
    /// Loads a model with one of the SDK's builders and sets up Louver for it.
    pub async fn load(builder: impl Into<AnyModelBuilder>) -> Result<(Model, Louver), LoadError> {
        Louver::load_with(builder, LouverOptions::default()).await
    }

    /// As [`Louver::load`], with options.
    ///
    /// If the host ends generations at tokens that the wire format needs (Harmony's `<|channel|>`,
    /// 0.8.1), its end detection is switched off for the whole model. Requests that do not use
    /// Louver then need their own stop tokens.
    pub async fn load_with(
        builder: impl Into<AnyModelBuilder>,
        options: LouverOptions,
    ) -> Result<(Model, Louver), LoadError> {
        let pipeline_parts = builder.into().build_pipeline().await;
        let (pipeline, scheduler, config) =
            pipeline_parts.map_err(|error| LoadError::host(&error))?;
        let mut louver = Louver::for_pipeline(&pipeline, options).await?;
        let runner = host_builder(pipeline, scheduler, config)
            .with_disable_eos_stop(!louver.inner.early_ends.is_empty());
        let runner = runner.build().await;
        louver.host = Some(Host::Runner(runner.clone()));
        Ok((Model::new(runner), louver))
    }

    /// Loads a GGUF file. Unlike the SDK's `GgufModelBuilder`, which [`Louver::load`] also takes,
    /// this sets the data type of activations.
    pub async fn load_gguf(
        model: GgufModel,
        options: LouverOptions,
    ) -> Result<(Model, Louver), LoadError> {
        let (pipeline, runner) = model.load()?;
        let pipeline: Arc<Mutex<dyn Pipeline>> = pipeline;
        let mut louver = Louver::for_pipeline(&pipeline, options).await?;
        let runner = runner.with_disable_eos_stop(!louver.inner.early_ends.is_empty());
        let runner = runner.build().await;
        louver.host = Some(Host::Runner(runner.clone()));
        Ok((Model::new(runner), louver))
    }

    /// Sets up Louver for a model that the SDK has loaded. The host does not expose its tokenizer
    /// and chat template, so they are read from the model's files: a directory, also one with a
    /// GGUF file, or the Hugging Face cache. Cost: reads and decodes the vocabulary. Fails for
    /// models without these files and for Harmony (see [`Louver::load`], which can switch the
    /// host's end detection off). A template that was given to the builder is unknown here; give it
    /// to [`LouverOptions`], too.
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
        let category = host.get_model_category(None).ok();
        unsupported::check(&id, category.as_ref(), &Checkpoint::default())?;
        let max_context =
            host.max_sequence_length(None).map_err(|error| LoadError::Host(error.to_string()))?;
        let mut parts = model_files::read(&id)?;
        parts.max_context = max_context.or(parts.max_context);
        unsupported::check(&id, None, &parts.checkpoint)?;
        let louver = Louver::assemble(parts, options)?;
        match louver.inner.early_ends.first() {
            Some(token) => Err(LoadError::EarlyEnd { token: token.clone() }),
            None => louver.with_model(model).map_err(|error| LoadError::Host(error.to_string())),
        }
    }

    /// Sets up Louver for a pipeline, before or after it is given to a `MistralRsBuilder`. Cost:
    /// decodes every token once. [`Louver::chat`] also needs the model: see [`Louver::with_model`].
    /// For Harmony, build the host with `with_disable_eos_stop(true)`.
    pub async fn for_pipeline(
        pipeline: &Arc<Mutex<dyn Pipeline>>,
        options: LouverOptions,
    ) -> Result<Louver, LoadError> {
        let pipeline = pipeline.lock().await;
        let mut checkpoint = model_files::checkpoint(&pipeline.name())?;
        unsupported::check(&pipeline.name(), Some(&pipeline.category()), &checkpoint)?;
        let tokenizer = pipeline.tokenizer().ok_or(LoadError::NoTokenizer)?;
        let metadata = pipeline.get_metadata();
        checkpoint.template = Err(TemplateError::Missing);
        if let Some(host) = pipeline.get_chat_template() {
            let tokens = [host.bos_tok(), host.eos_tok(), host.unk_tok()];
            checkpoint.template = host_types::chat_template(&host, tokens.clone());
            checkpoint.template_tokens = tokens;
        }
        let (max_context, ends) = (Some(metadata.max_seq_len), metadata.eos_tok.clone());
        Louver::assemble(ModelParts { tokenizer, checkpoint, max_context, ends }, options)
    }

    /// Sets the model for requests: the one that the pipeline was given to. [`Louver::chat`] does
    /// not restart an engine of it that dies later; [`Plan::stream`](crate::Plan::stream) and
    /// models of [`Louver::load`] do.
    pub fn with_model(mut self, model: &Model) -> Result<Louver, SendError> {
        self.host = Some(Host::Channel(sender(model.inner())?));
        Ok(self)
    }

    fn assemble(parts: ModelParts, options: LouverOptions) -> Result<Louver, LoadError> {
        let ends = parts.all_ends(options.chat_template.as_deref());
        let ModelParts { mut tokenizer, mut checkpoint, max_context, .. } = parts;
        let max_context = max_context.unwrap_or(DEFAULT_CONTEXT);
        if tokenizer.get_truncation().is_some() || tokenizer.get_padding().is_some() {
            louver_hf_tokenizers::keep_whole_texts(Arc::make_mut(&mut tokenizer));
        }
        let added: Vec<_> = tokenizer.get_added_tokens_decoder().into_values().collect();
        let special = added.iter().filter(|token| token.special);
        checkpoint.special_tokens = special.map(|token| token.content.clone()).collect();
        checkpoint.tokens = added.into_iter().map(|token| token.content).collect();
        if let Some(source) = &options.chat_template {
            checkpoint.template = ChatTemplate::new(source, checkpoint.template_tokens.clone());
        }
        let mut catalog = Catalog::shipped();
        options.formats.into_iter().for_each(|format| catalog.add(format));
        let resolved = match &options.format {
            Some(name) => Ok(Resolved::named(catalog.get(name)?.clone(), &checkpoint)),
            None => {
                let name = checkpoint.model_type.as_deref().unwrap_or("from-chat-template");
                resolve(&checkpoint, &catalog, name)
            }
        };
        let message_style = resolved.as_ref().map(Resolved::style).unwrap_or_default();
        let (format, mut warnings) = match resolved {
            Ok(resolved) => (Ok(resolved.format), resolved.notes),
            Err(error) => (Err(error), Vec::new()),
        };
        let template = checkpoint.template;
        let format_stops = format.as_ref().ok().and_then(|format| turn_ends(format, &tokenizer));
        let stops = format_stops.unwrap_or_else(|| ends.clone());
        let early_end_ids = ends.iter().filter(|id| !stops.contains(id));
        let early_ends = early_end_ids.filter_map(|id| tokenizer.id_to_token(*id)).collect();
        // The width of the logits is only known with the first row; ids beyond the tokenizer's are
        // masked there.
        let vocab_options = VocabOptions::default().with_stop_ids(stops);
        let (vocab, vocab_warnings) = louver_hf_tokenizers::vocabulary(&tokenizer, &vocab_options)?;
        warnings.extend(vocab_warnings.iter().map(ToString::to_string));
        warnings.extend(template_warning(template.as_ref().ok()));
        let max_prompt_bytes = max_text_bytes(&tokenizer, max_context).unwrap_or(usize::MAX);
        Ok(Louver {
            inner: Arc::new(LouverInner {
                engine: Engine::new(Arc::new(vocab), options.engine),
                tokenizer,
                template,
                format,
                message_style,
                max_context,
                prompt_bytes: options.prompt_bytes.unwrap_or(usize::MAX).min(max_prompt_bytes),
                early_ends,
                warnings,
            }),
            host: None,
        })
    }

    /// The wire format's name, or why there is none.
    pub fn format(&self) -> Result<&str, &ResolveError> {
        self.wire_format().map(|format| format.name.as_str())
    }

    /// The wire format, or why there is none.
    pub fn wire_format(&self) -> Result<&WireFormat, &ResolveError> {
        self.inner.format.as_ref()
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The chat template, or why there is none.
    pub fn template(&self) -> Result<&ChatTemplate, &TemplateError> {
        self.inner.template.as_ref()
    }

    /// Maximum length of prompt and output together, in tokens.
    pub fn max_context(&self) -> usize {
        self.inner.max_context
    }

    /// Warnings about the tokenizer, the format and the chat template, for people.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }
}

/// The tokens that end a turn, if the format ends every message with a marker: only such formats
/// specify which markers end the turn.
fn turn_ends(format: &WireFormat, tokenizer: &Tokenizer) -> Option<Vec<u32>> {
    format.messages.as_ref()?;
    format.stop_tokens.iter().map(|name| tokenizer.token_to_id(name)).collect()
}

/// The warning about a template that does not show tools to the model.
fn template_warning(template: Option<&ChatTemplate>) -> Option<String> {
    let source = template?.source();
    (!source.contains("tools") && !source.contains("functions")).then(|| {
        "the chat template does not show tools to the model, so it calls them blindly; give it one \
         that does (`--chat-template`, `LouverOptions::chat_template`)"
            .to_owned()
    })
}
