//! Model loading: from the configured models to the shared server state.

use std::path::{Path, PathBuf};

use louver::engine::EngineOptions;
use louver::front::json_schema::Registry;
use louver_formats::{FormatError, LowerError, ToolRequest, WireFormat};
use louver_mistralrs::{
    ChatTemplate, GenerationError, GgufModel, Louver, LouverOptions, PlanError, RequestParams,
    SendError, without_backtraces,
};
use mistralrs::{
    Device, IsqType, Model, ModelDType, SamplingParams, TextModelBuilder, parse_isq_value,
};
use serde_json::json;

use crate::config::{Config, ConfigError, ModelConfig, ModelSettings, ReasoningDefault};
use crate::device;
use crate::mcp::McpServers;
use crate::model_source::{self, ModelSource, SourceError};
use crate::responses::offered_name;
use crate::served_model::{ServedModel, plan_reasoning};
use crate::state::App;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The registry cannot be read.
    #[error(transparent)]
    Registry(#[from] louver_formats::RegistryError),
    /// A model's files were not found.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A model cannot be loaded.
    #[error("model {model:?}: {source}")]
    Model {
        /// The model's name.
        model: String,
        /// The cause.
        source: louver_mistralrs::LoadError,
    },
    /// A model was loaded, but the host cannot run it.
    #[error("model {model:?}: mistral.rs has loaded it, but cannot run it: {problem}")]
    Step {
        /// The model's name.
        model: String,
        /// The host's error.
        problem: String,
    },
    /// The schema of an MCP server's tool cannot be enforced.
    #[error("MCP server {label:?}: the tool {tool:?} cannot be offered by {model:?}: {problem}")]
    McpTool {
        /// The label of the server.
        label: String,
        /// The tool's name on the server.
        tool: String,
        /// The name of the model.
        model: String,
        /// What is wrong.
        problem: String,
    },
    /// An MCP server cannot be used.
    #[error("MCP server {label:?}: {source}")]
    Mcp {
        /// Its label.
        label: String,
        /// The cause.
        source: louver_mistralrs::McpError,
    },
    /// An option of a model is invalid.
    #[error("model {model:?}: {member}: {problem}")]
    Option {
        /// The model's name.
        model: String,
        /// The option's name.
        member: &'static str,
        /// What is wrong with the value.
        problem: String,
    },
}

/// Loads the models of a configuration. Fails if the wire format of a model is unknown, because its
/// output could not be parsed; if a model cannot generate a token; and if a tool of an MCP server
/// cannot be offered. Cost: the models' own loading time and one token of each; each tokenizer is
/// decoded once, and each tool of an MCP server compiled for each model.
pub async fn load(config: Config) -> Result<App, LoadError> {
    config.check()?;
    let registry = louver_formats::read_registry(&config.registry)?;
    let mut models = Vec::with_capacity(config.models.len());
    for model in &config.models {
        models.push(load_served(&config, model, &registry).await?);
    }
    let mcp_servers = McpServers::connect(&config.mcp_servers).await;
    let mcp_servers = mcp_servers.map_err(|(label, source)| LoadError::Mcp { label, source })?;
    for (of_model, served) in config.models.iter().zip(&models) {
        check_mcp_tools(&config.settings(of_model), served, &mcp_servers)?;
    }
    Ok(App::with_mcp_servers(config, models, mcp_servers))
}

async fn load_served(
    config: &Config,
    model: &ModelConfig,
    registry: &Registry,
) -> Result<ServedModel, LoadError> {
    let ModelSettings { engine, limits, reasoning, .. } = config.settings(model);
    let options = EngineOptions::default()
        .with_limits(limits.schema.with_source_bytes(config.limits.http.body_bytes))
        .with_background_threads(engine.background_threads)
        .with_pool_bytes(engine.pool_bytes)
        .with_grammar_cache_bytes(engine.grammar_cache_bytes)
        .with_registry(registry.clone());
    let (host, louver) = load_model(model, options, Some(limits.requests.prompt_bytes)).await?;
    check_reasoning(model, &louver, reasoning)?;
    let name = model.served_name();
    for warning in louver.warnings() {
        tracing::warn!(model = name, "{warning}");
    }
    Ok(ServedModel::new(model, host, louver))
}

/// Checks that requests to the model may offer each tool of the MCP servers, alone.
fn check_mcp_tools(
    settings: &ModelSettings,
    served: &ServedModel,
    servers: &McpServers,
) -> Result<(), LoadError> {
    /// Where the schema is in the request of this check.
    const SCHEMA: &str = "/tools/0/function/parameters";
    for label in servers.labels() {
        for mut tool in servers.functions(label) {
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            tool["name"] = offered_name(label, &name).into();
            let tools = json!([{"type": "function", "function": tool}]);
            let plan = served.louver.tools(tools).schema_options(settings.schema_options);
            plan.strictness(settings.strict_tools.into()).build().map_err(|error| {
                LoadError::McpTool {
                    label: label.to_owned(),
                    tool: name,
                    model: served.name.clone(),
                    problem: error.to_string().replace(SCHEMA, "/inputSchema"),
                }
            })?;
        }
    }
    Ok(())
}

/// Checks that the model can have the configured reasoning, and its own budget of it.
fn check_reasoning(
    model: &ModelConfig,
    louver: &Louver,
    reasoning: ReasoningDefault,
) -> Result<(), LoadError> {
    let fault = |member, error: PlanError| {
        let is_of_reasoning = matches!(
            error,
            PlanError::AlwaysReasons | PlanError::Lower(LowerError::NoReasoning { .. })
        );
        // Others, such as markers that the vocabulary does not have, are of every request.
        let member = if is_of_reasoning { member } else { "format" };
        option_fault(model)(member, error.to_string())
    };
    plan_reasoning(louver, reasoning, None).map_err(|error| fault("reasoning", error))?;
    let budgeted = plan_reasoning(louver, ReasoningDefault::Optional, model.reasoning_budget);
    budgeted.map(drop).map_err(|error| fault("reasoning_budget", error))
}

/// Loads one model, sets up Louver for it and generates one token. Fails if its wire format is
/// unknown, or the host cannot run it. A prompt of more than `prompt_bytes` bytes is rejected.
pub async fn load_model(
    model: &ModelConfig,
    engine: EngineOptions,
    prompt_bytes: Option<usize>,
) -> Result<(Model, Louver), LoadError> {
    let fault = option_fault(model);
    let source = model_source::find(&model.model, model.tokenizer.is_some())?;
    let (format, formats) = formats(model)?;
    let options = LouverOptions::default()
        .with_format(format)
        .with_formats(formats)
        .with_chat_template(chat_template(model)?)
        .with_engine(engine)
        .with_prompt_bytes(prompt_bytes);
    let loaded = match source {
        ModelSource::Hub(id) => Louver::load_with(text_builder(model, &id)?, options).await,
        ModelSource::Directory(path) => {
            Louver::load_with(text_builder(model, &path.display().to_string())?, options).await
        }
        ModelSource::Gguf(file) => Louver::load_gguf(gguf_model(model, &file)?, options).await,
    };
    let (host, louver) =
        loaded.map_err(|source| LoadError::Model { model: model.served_name(), source })?;
    if let Err(error) = louver.format() {
        return Err(fault("format", format!("{error}{FORMAT_HELP}")));
    }
    try_step(&host, &louver)
        .await
        .map_err(|problem| LoadError::Step { model: model.served_name(), problem })?;
    Ok((host, louver))
}

/// Generates one token. The host loads some weights that it cannot run, such as those of a type
/// that the device does not multiply. The error is the host's.
async fn try_step(host: &Model, louver: &Louver) -> Result<(), String> {
    let Ok(plan) = louver.plan_completion(ToolRequest::default()) else { return Ok(()) };
    let Ok(prompt) = plan.text_prompt("a") else { return Ok(()) };
    let sampling = SamplingParams { max_len: Some(1), ..SamplingParams::neutral() };
    let params = RequestParams::default().with_sampling(sampling);
    let mut streams = match plan.start(host, prompt, params).await {
        Ok(streams) => streams,
        Err(SendError::Host(problem)) => return Err(without_backtraces(&problem)),
        Err(_) => return Ok(()),
    };
    let Some(stream) = streams.pop() else { return Ok(()) };
    match stream.finish().await {
        Err(error @ (GenerationError::Host(_) | GenerationError::HostGone)) => {
            Err(without_backtraces(&error.to_string()))
        }
        _ => Ok(()),
    }
}

/// What to do about an unknown or ambiguous wire format.
const FORMAT_HELP: &str = ". Either name the format that the model was trained on with \
    `--format NAME` (in a configuration `format = \"NAME\"`; docs/FORMATS.md lists them) or a \
    description with `--format FILE.toml` (`louver formats detect` helps), or, if its chat \
    template has no tools, give it one that has with `--chat-template FILE` (`chat_template`): \
    `--chat-template chatml-tools` is one that Louver ships, for models with <|im_start|> and \
    <|im_end|>";

/// Makes errors of a model's options.
pub(crate) fn option_fault(model: &ModelConfig) -> impl Fn(&'static str, String) -> LoadError + '_ {
    |member, problem| LoadError::Option { model: model.served_name(), member, problem }
}

/// The builder of a model in Hugging Face's format.
fn text_builder(config: &ModelConfig, model: &str) -> Result<TextModelBuilder, LoadError> {
    let mut builder = TextModelBuilder::new(model).with_prefix_cache_n(config.prefix_cache);
    let device = device(config)?;
    if let Some(isq) = isq(config, device.as_ref())? {
        builder = builder.with_isq(isq);
    }
    builder = match device {
        Some(Device::Cpu) => builder.with_force_cpu(),
        Some(device) => builder.with_device(device),
        None => builder,
    };
    builder = builder.with_dtype(dtype(config)?);
    if let Some(path) = tokenizer(config)? {
        builder = builder.with_tokenizer_json(path);
    }
    if let Some(revision) = &config.revision {
        builder = builder.with_hf_revision(revision);
    }
    if let Some(sequences) = config.max_sequences {
        builder = builder.with_max_num_seqs(sequences.get());
    }
    Ok(builder)
}

/// A GGUF model with its options. The file has its tokenizer and is quantised already; options
/// about these are errors.
fn gguf_model(config: &ModelConfig, file: &Path) -> Result<GgufModel, LoadError> {
    check_gguf_options(config)?;
    let model = GgufModel::new(file)
        .map_err(|source| LoadError::Model { model: config.served_name(), source })?;
    let mut model = model.with_dtype(dtype(config)?).with_prefix_cache(config.prefix_cache);
    if let Some(device) = device(config)? {
        model = model.with_device(device);
    }
    if let Some(sequences) = config.max_sequences {
        model = model.with_max_sequences(sequences);
    }
    Ok(model)
}

/// Refuses options that a GGUF file answers itself.
pub(crate) fn check_gguf_options(config: &ModelConfig) -> Result<(), LoadError> {
    for (member, is_set, problem) in [
        ("isq", config.isq.is_some(), "a GGUF file is quantised already"),
        ("tokenizer", config.tokenizer.is_some(), "a GGUF file has its own tokenizer"),
    ] {
        if is_set {
            return Err(option_fault(config)(member, problem.to_owned()));
        }
    }
    Ok(())
}

/// The type of in-situ quantisation, if there is any.
pub(crate) fn isq(
    config: &ModelConfig,
    device: Option<&Device>,
) -> Result<Option<IsqType>, LoadError> {
    let parse = |isq: &String| {
        parse_isq_value(isq, device).map_err(|problem| option_fault(config)("isq", problem))
    };
    config.isq.as_ref().map(parse).transpose()
}

/// The path of the tokenizer that replaces the model's, if there is one.
pub(crate) fn tokenizer(config: &ModelConfig) -> Result<Option<String>, LoadError> {
    let existing = |path: &PathBuf| {
        existing_file(path).map_err(|problem| option_fault(config)("tokenizer", problem))
    };
    config.tokenizer.as_ref().map(existing).transpose()
}

/// The device; `None` for the host's choice.
fn device(config: &ModelConfig) -> Result<Option<Device>, LoadError> {
    device::open(config.device).map_err(|problem| option_fault(config)("device", problem))
}

/// The data type of the weights: by default F32 on the CPU, and the host's choice elsewhere. On the
/// CPU the host has no multiplication of BF16.
pub(crate) fn dtype(config: &ModelConfig) -> Result<ModelDType, LoadError> {
    let name = config.dtype.as_deref().unwrap_or("auto");
    let unknown = |_: String| {
        let problem = format!("there is no data type {name:?}; known: auto, f32, f16, bf16");
        option_fault(config)("dtype", problem)
    };
    match name.parse().map_err(unknown)? {
        ModelDType::Auto if config.is_on_cpu() => Ok(ModelDType::F32),
        ModelDType::BF16 if config.is_on_cpu() => {
            let problem = "the CPU cannot multiply bf16: leave it out, or use f32 or f16";
            Err(option_fault(config)("dtype", problem.to_owned()))
        }
        dtype => Ok(dtype),
    }
}

/// The text of the chat template that replaces the model's, if there is one. Its syntax is checked.
pub(crate) fn chat_template(config: &ModelConfig) -> Result<Option<String>, LoadError> {
    let Some(path) = &config.chat_template else { return Ok(None) };
    let fault = |problem: String| option_fault(config)("chat_template", problem);
    let shipped = path.to_str().and_then(louver_mistralrs::shipped_template);
    if let (Some(template), false) = (shipped, path.is_file()) {
        return Ok(Some(template.to_owned()));
    }
    let template = std::fs::read_to_string(path).map_err(|error| {
        let names = louver_mistralrs::SHIPPED_TEMPLATES.map(|(name, _)| name).join(", ");
        fault(format!("cannot read {}: {error}; shipped: {names}", path.display()))
    })?;
    match ChatTemplate::new(&template, Default::default()) {
        Ok(_) => Ok(Some(template)),
        Err(error) => Err(fault(format!("{}: {error}", path.display()))),
    }
}

/// Checks that a file exists and returns its path as text. The host panics on a missing file.
fn existing_file(path: &Path) -> Result<String, String> {
    if path.is_file() {
        Ok(path.display().to_string())
    } else {
        Err(format!("{} is not a file", path.display()))
    }
}

/// The name of the configured wire format, if there is one, and the formats of files.
pub(crate) fn formats(
    config: &ModelConfig,
) -> Result<(Option<String>, Vec<WireFormat>), LoadError> {
    let fault = option_fault(config);
    let read = |member, path: &Path| {
        WireFormat::from_file(path).map_err(|error| {
            let problem = match error {
                // Has the path.
                FormatError::File { .. } => error.to_string(),
                error => format!("{}: {error}", path.display()),
            };
            fault(member, problem)
        })
    };
    let files = config.format_files.iter();
    let mut formats: Vec<_> =
        files.map(|path| read("format_files", path)).collect::<Result<_, _>>()?;
    let name = match &config.format {
        Some(file) if file.ends_with(".toml") => {
            formats.push(read("format", Path::new(file))?);
            formats.last().map(|format| format.name.clone())
        }
        name => name.clone(),
    };
    Ok((name, formats))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceChoice;

    #[test]
    fn weights_are_f32_on_the_cpu_by_default() {
        let chosen = |device, name: Option<&str>| {
            let name = name.map(str::to_owned);
            dtype(&ModelConfig { device, dtype: name, ..ModelConfig::default() })
        };
        assert_eq!(chosen(DeviceChoice::Cpu, None).unwrap(), ModelDType::F32);
        assert_eq!(chosen(DeviceChoice::Cpu, Some("f16")).unwrap(), ModelDType::F16);
        let error = chosen(DeviceChoice::Cpu, Some("bf16")).unwrap_err().to_string();
        assert!(error.contains("the CPU cannot multiply bf16"), "{error}");
        assert_eq!(chosen(DeviceChoice::Cuda(0), Some("bf16")).unwrap(), ModelDType::BF16);
        assert_eq!(chosen(DeviceChoice::Cuda(0), None).unwrap(), ModelDType::Auto);
        assert!(chosen(DeviceChoice::Cpu, Some("f31")).is_err());
    }
}
