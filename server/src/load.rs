//! Models of a configuration -> models that are served.

use std::path::{Path, PathBuf};

use louver::engine::EngineOptions;
use louver_formats::WireFormat;
use louver_mistralrs::{Louver, LouverOptions};
use mistralrs::{Device, ModelDType, TextModelBuilder, parse_isq_value};

use crate::config::{Config, ConfigError, DeviceChoice, ModelConfig};
use crate::state::{App, Served};

/// The server cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A model.
    #[error("model {model:?}: {source}")]
    Model {
        /// Its name.
        model: String,
        /// Why.
        source: louver_mistralrs::LoadError,
    },
    /// A model's option.
    #[error("model {model:?}: {member}: {problem}")]
    Option {
        /// Its name.
        model: String,
        /// Which option.
        member: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// Loads the models of a configuration. A model whose wire format is not known is an error: nothing it says could be read.
/// Cost: the models' own loading, and each tokenizer decoded once.
pub async fn load(config: Config) -> Result<App, LoadError> {
    config.check()?;
    let mut models = Vec::with_capacity(config.models.len());
    for model in &config.models {
        models.push(load_model(&config, model).await?);
    }
    Ok(App::new(config, models))
}

async fn load_model(config: &Config, model: &ModelConfig) -> Result<Served, LoadError> {
    let name = model.served_name();
    let builder = builder(model)?;
    let options = LouverOptions {
        format: model.format.clone(),
        formats: formats(model)?,
        engine: EngineOptions { limits: config.limits.engine(), ..EngineOptions::default() },
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
    Ok(Served::new(model, host, louver))
}

fn builder(config: &ModelConfig) -> Result<TextModelBuilder, LoadError> {
    let fault = |member, problem: String| LoadError::Option {
        model: config.served_name(),
        member,
        problem,
    };
    let mut builder = TextModelBuilder::new(&config.model).with_prefix_cache_n(config.prefix_cache);
    let device = match config.device {
        DeviceChoice::Auto => None,
        DeviceChoice::Cpu => Some(Ok(Device::Cpu)),
        DeviceChoice::Cuda(ordinal) => Some(Device::new_cuda(ordinal)),
        DeviceChoice::Metal(ordinal) => Some(Device::new_metal(ordinal)),
    };
    let device = device.transpose().map_err(|error| fault("device", error.to_string()))?;
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
        let there = existing(template).map_err(|problem| fault("chat_template", problem))?;
        builder = builder.with_jinja_explicit(there);
    }
    if let Some(tokenizer) = &config.tokenizer {
        let there = existing(tokenizer).map_err(|problem| fault("tokenizer", problem))?;
        builder = builder.with_tokenizer_json(there);
    }
    if let Some(revision) = &config.revision {
        builder = builder.with_hf_revision(revision);
    }
    if let Some(sequences) = config.max_sequences {
        builder = builder.with_max_num_seqs(sequences);
    }
    Ok(builder)
}

/// The path as text, if there is such a file: the host panics where one is missing.
fn existing(path: &Path) -> Result<String, String> {
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
