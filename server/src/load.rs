//! Model loading: from the configured models to the shared server state.

use std::path::{Path, PathBuf};

use louver::engine::EngineOptions;
use louver::front::json_schema::Registry;
use louver_formats::WireFormat;
use louver_mistralrs::{Louver, LouverOptions};
use mistralrs::{Device, ModelDType, TextModelBuilder, parse_isq_value};

use crate::config::{Config, ConfigError, ModelConfig};
use crate::device;
use crate::mcp::McpServers;
use crate::state::{App, ServedModel};

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
    /// A model cannot be loaded.
    #[error("model {model:?}: {source}")]
    Model {
        /// The model's name.
        model: String,
        /// The cause.
        source: louver_mistralrs::LoadError,
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
/// output could not be parsed. Cost: the models' own loading time; each tokenizer is decoded once.
pub async fn load(config: Config) -> Result<App, LoadError> {
    config.check()?;
    let registry = louver_formats::read_registry(&config.registry)?;
    let mut models = Vec::with_capacity(config.models.len());
    for model in &config.models {
        models.push(load_model(&config, model, &registry).await?);
    }
    let mcp_servers = McpServers::connect(&config.mcp_servers).await;
    let mcp_servers = mcp_servers.map_err(|(label, source)| LoadError::Mcp { label, source })?;
    Ok(App::with_mcp_servers(config, models, mcp_servers))
}

async fn load_model(
    config: &Config,
    model: &ModelConfig,
    registry: &Registry,
) -> Result<ServedModel, LoadError> {
    let name = model.served_name();
    let builder = builder(model)?;
    let options = LouverOptions {
        format: model.format.clone(),
        formats: formats(model)?,
        engine: EngineOptions::default()
            .with_limits(config.limits.engine())
            .with_registry(registry.clone()),
        prompt_bytes: Some(config.limits.requests.prompt_bytes),
    };
    let loaded = Louver::load_with(builder, options).await;
    let (host, louver) =
        loaded.map_err(|source| LoadError::Model { model: name.clone(), source })?;
    if let Err(error) = louver.format() {
        let problem = format!("{error}; name the model's wire format (docs/FORMATS.md)");
        return Err(LoadError::Option { model: name, member: "format", problem });
    }
    for warning in louver.warnings() {
        tracing::warn!(model = name, "{warning}");
    }
    Ok(ServedModel::new(model, host, louver))
}

fn builder(config: &ModelConfig) -> Result<TextModelBuilder, LoadError> {
    let fault = |member, problem: String| LoadError::Option {
        model: config.served_name(),
        member,
        problem,
    };
    let mut builder = TextModelBuilder::new(&config.model).with_prefix_cache_n(config.prefix_cache);
    let device = device::open(config.device).map_err(|problem| fault("device", problem))?;
    if let Some(isq) = &config.isq {
        let isq = parse_isq_value(isq, device.as_ref()).map_err(|problem| fault("isq", problem))?;
        builder = builder.with_isq(isq);
    }
    builder = match device {
        Some(Device::Cpu) => builder.with_force_cpu(),
        Some(device) => builder.with_device(device),
        None => builder,
    };
    if let Some(dtype) = &config.dtype {
        let dtype = dtype.parse::<ModelDType>().map_err(|problem| fault("dtype", problem))?;
        builder = builder.with_dtype(dtype);
    }
    if let Some(template) = &config.chat_template {
        let path_text =
            existing_file(template).map_err(|problem| fault("chat_template", problem))?;
        builder = builder.with_jinja_explicit(path_text);
    }
    if let Some(tokenizer) = &config.tokenizer {
        let path_text = existing_file(tokenizer).map_err(|problem| fault("tokenizer", problem))?;
        builder = builder.with_tokenizer_json(path_text);
    }
    if let Some(revision) = &config.revision {
        builder = builder.with_hf_revision(revision);
    }
    if let Some(sequences) = config.max_sequences {
        builder = builder.with_max_num_seqs(sequences);
    }
    Ok(builder)
}

/// Checks that a file exists and returns its path as text. The host panics on a missing file.
fn existing_file(path: &Path) -> Result<String, String> {
    if path.is_file() {
        Ok(path.display().to_string())
    } else {
        Err(format!("{} is not a file", path.display()))
    }
}

fn formats(config: &ModelConfig) -> Result<Vec<WireFormat>, LoadError> {
    let fault = |path: &PathBuf, problem: String| LoadError::Option {
        model: config.served_name(),
        member: "format_files",
        problem: format!("{}: {problem}", path.display()),
    };
    let mut formats = Vec::with_capacity(config.format_files.len());
    for path in &config.format_files {
        let text = std::fs::read_to_string(path).map_err(|error| fault(path, error.to_string()))?;
        formats.push(WireFormat::from_toml(&text).map_err(|error| fault(path, error.to_string()))?);
    }
    Ok(formats)
}
