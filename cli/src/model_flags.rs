//! Flags about a model that several commands share.

use std::path::PathBuf;

use louver::front::json_schema::SchemaOptions;
use louver_server::{DeviceChoice, ModelConfig, Overrides};
use serde_json::Value;

/// How a model is loaded.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ModelFlags {
    /// The model's wire format, a name or a description (*.toml) [default: what its files say].
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// A Jinja file that replaces the model's chat template, or a template that Louver ships:
    /// chatml-tools.
    #[arg(long, value_name = "FILE|NAME")]
    chat_template: Option<PathBuf>,
    /// Data type of the weights, or of a GGUF model's activations; auto is f32 on the CPU.
    #[arg(long, value_name = "TYPE", value_parser = ["auto", "f32", "f16", "bf16"])]
    dtype: Option<String>,
    /// In-situ quantisation: 4, 8, Q4K, ... Not for GGUF.
    #[arg(long, value_name = "TYPE")]
    isq: Option<String>,
    /// Device of the model: auto, cpu, cuda, cuda:N, metal.
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
}

impl ModelFlags {
    /// Overrides the options of `model` with the flags that are given.
    pub(crate) fn apply(&self, model: &mut ModelConfig) {
        model.format = self.format.clone().or(model.format.take());
        model.chat_template = self.chat_template.clone().or(model.chat_template.take());
        model.dtype = self.dtype.clone().or(model.dtype.take());
        model.isq = self.isq.clone().or(model.isq.take());
        model.device = self.device.unwrap_or(model.device);
    }
}

/// Parses schema options of the command line that override others.
pub(crate) fn schema_overrides(text: &str) -> Result<Overrides<SchemaOptions>, String> {
    let options: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if options.get("policy").is_some() {
        return Err(
            "policy: no member of these options; `louver serve` has the flag `--policy`".to_owned()
        );
    }
    serde_path_to_error::deserialize(options).map_err(|error| error.to_string())
}
