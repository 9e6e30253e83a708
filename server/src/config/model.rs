//! The table of one model in a configuration.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use louver::front::json_schema::{Policy, SchemaOptions};
use louver::limits::Limits;
use louver_mistralrs::Draw;
use serde::Deserialize;

use super::overrides::Overrides;
use super::settings::{
    EngineSettings, ModelRequestLimits, PreparationSettings, ReasoningDefault, StrictTools,
};

/// The source and loading options of one model.
// Many fields: the members of a table of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// A directory, a GGUF file, a directory with one GGUF file, or a Hugging Face id.
    pub model: String,
    /// The name in requests; by default the id, the directory's name, or the GGUF file's name
    /// without its extension.
    pub name: Option<String>,
    /// Alternative names.
    pub aliases: Vec<String>,
    /// The wire format: a name, or a description (`*.toml`). By default it comes from what the
    /// checkpoint ships.
    pub format: Option<String>,
    /// Files with custom wire formats.
    pub format_files: Vec<PathBuf>,
    /// In-situ quantisation, in the host's notation: `4`, `8`, `Q4K`, ... Not for GGUF.
    pub isq: Option<String>,
    /// The device.
    pub device: DeviceChoice,
    /// The data type of the weights, or of the activations of a GGUF model: `auto` (the default),
    /// `f32`, `f16` or `bf16`. `auto` is `f32` on the CPU, where the host's own choice (`f16`) is
    /// several times slower, and the host's choice elsewhere.
    pub dtype: Option<String>,
    /// A Jinja file that replaces the model's chat template, or the name of a template that Louver
    /// ships: `chatml-tools`.
    pub chat_template: Option<PathBuf>,
    /// A `tokenizer.json` that replaces the model's. Not for GGUF.
    pub tokenizer: Option<PathBuf>,
    /// The revision on the Hugging Face Hub.
    pub revision: Option<String>,
    /// Whether the host may batch several generations.
    pub batching: Batching,
    /// Maximum number of sequences that the host batches.
    pub max_sequences: Option<NonZeroUsize>,
    /// Number of prompt prefixes that the host caches. None by default: mistral.rs 0.8.1 panics
    /// when it batches requests that continue cached prompts of different lengths without paged
    /// attention.
    pub prefix_cache: Option<usize>,
    /// This model's handling of schema keywords that cannot be enforced.
    pub policy: Option<Policy>,
    /// Which of this model's tools must match their schema.
    pub strict_tools: Option<StrictTools>,
    /// The reasoning of this model's requests that do not say.
    pub reasoning: Option<ReasoningDefault>,
    /// Maximum reasoning tokens of this model's requests that do not say.
    pub reasoning_budget: Option<u32>,
    /// Who draws this model's tokens.
    pub draw: Option<Draw>,
    /// Schema options of this model. Their policy is set by the member above.
    pub schema_options: Overrides<SchemaOptions>,
    /// Threads and caches of this model's engine.
    pub engine: Overrides<EngineSettings>,
    /// Preparation of this model's masks.
    pub preparation: Overrides<PreparationSettings>,
    /// Limits of this model.
    pub limits: ModelLimitOverrides,
}

/// Limits that a model sets for itself, named as in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelLimitOverrides {
    /// Limits of requests.
    pub requests: Overrides<ModelRequestLimits>,
    /// Limits of schemas, grammars and parsers.
    pub schema: Overrides<Limits>,
}

impl ModelConfig {
    /// Whether the host runs one generation at a time.
    pub fn is_serial(&self) -> bool {
        match self.batching {
            Batching::Auto => self.is_on_cpu(),
            Batching::On => false,
            Batching::Off => true,
        }
    }

    /// Whether the model runs on the CPU.
    pub(crate) fn is_on_cpu(&self) -> bool {
        match self.device {
            DeviceChoice::Cpu => true,
            DeviceChoice::Auto => {
                mistralrs::best_device(false).map_or(true, |device| device.is_cpu())
            }
            DeviceChoice::Cuda(_) | DeviceChoice::Metal(_) => false,
        }
    }

    /// The name in requests.
    pub fn served_name(&self) -> String {
        let path = Path::new(&self.model);
        let path_name = || match path {
            _ if path.is_dir() => path.file_name(),
            _ if path.is_file() => path.file_stem(),
            _ => None,
        };
        let path_name = || path_name().map(|name| name.to_string_lossy().into_owned());
        self.name.clone().or_else(path_name).unwrap_or_else(|| self.model.clone())
    }
}

/// Whether the host may batch several generations of a model.
///
/// On the CPU, mistral.rs 0.8.1 must not: its attention mixes up the sequences of a batch, so that
/// a generation depends on the other sequences and their prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batching {
    /// Batch, except on the CPU.
    #[default]
    Auto,
    /// Always batch.
    On,
    /// Never batch.
    Off,
}

/// The device of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum DeviceChoice {
    /// The host's choice.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A CUDA device.
    Cuda(usize),
    /// A Metal device.
    Metal(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, ordinal) = text.split_once(':').unwrap_or((text, "0"));
        let ordinal: usize =
            ordinal.parse().map_err(|_| format!("{ordinal:?} is not a device's number"))?;
        match kind {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda(ordinal)),
            "metal" => Ok(DeviceChoice::Metal(ordinal)),
            _ => Err(format!("unknown device {text:?}: auto, cpu, cuda, cuda:N, metal or metal:N")),
        }
    }
}

impl TryFrom<String> for DeviceChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
