//! Server configuration: a TOML file (`--config`), extended by command-line flags.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use louver::front::json_schema::{Policy, SchemaOptions};
use louver_formats::Strictness;
use serde::Deserialize;

use crate::http::origin::{host_fault, origin_fault};
use crate::limits::{Seconds, ServerLimits};
use crate::mcp::McpServer;

/// The server's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 selects a free one.
    pub port: u16,
    /// API keys, sent as `Authorization: Bearer KEY`. If empty, no key is required.
    pub api_keys: Vec<String>,
    /// Whether the server may listen on a non-loopback address without API keys.
    pub allow_no_keys: bool,
    /// Host names of this server besides the loopback names. Without API keys, requests with any
    /// other `Host` are rejected; with keys, only if this list is not empty.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests, such as `https://app.example`. By default only
    /// the server's own origin may.
    pub cors_origins: Vec<String>,
    /// Handling of schema keywords that cannot be enforced.
    pub policy: Policy,
    /// Schema options. Their `policy` is set by the member above.
    pub schema_options: SchemaOptions,
    /// Schema documents that references of schemas may lead to: files, and folders of `*.json`.
    pub registry: Vec<PathBuf>,
    /// Which tools' arguments must match their schema: every tool's (`all`), or those of tools
    /// marked `strict` (`as_flagged`, as in OpenAI's API).
    #[serde(deserialize_with = "strictness")]
    pub strict_tools: Strictness,
    /// Handling of request members that the server does not know.
    pub unknown_members: UnknownMembers,
    /// Grace period for running requests at shutdown.
    pub grace_s: Seconds,
    /// Resource limits.
    pub limits: ServerLimits,
    /// MCP servers whose tools requests to the Responses API may name by their label.
    #[serde(rename = "mcp")]
    pub mcp_servers: Vec<McpServer>,
    /// The models. A request without a model name uses the first.
    #[serde(rename = "model")]
    pub models: Vec<ModelConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8080,
            api_keys: Vec::new(),
            allow_no_keys: false,
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            policy: Policy::default(),
            schema_options: SchemaOptions::default(),
            registry: Vec::new(),
            strict_tools: Strictness::AsFlagged,
            unknown_members: UnknownMembers::default(),
            grace_s: Seconds(std::time::Duration::from_secs(30)),
            limits: ServerLimits::default(),
            mcp_servers: Vec::new(),
            models: Vec::new(),
        }
    }
}

/// Parses `"as_flagged"` or `"all"`.
fn strictness<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Strictness, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Named {
        AsFlagged,
        All,
    }
    Ok(match Named::deserialize(deserializer)? {
        Named::AsFlagged => Strictness::AsFlagged,
        Named::All => Strictness::All,
    })
}

/// Handling of request members that the server does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownMembers {
    /// Ignore them.
    #[default]
    Ignore,
    /// Reject the request.
    Refuse,
}

/// The source and loading options of one model.
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
    /// The wire format; detected from the chat template by default.
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
    pub max_sequences: Option<usize>,
    /// Number of prompt prefixes that the host caches. None by default: mistral.rs 0.8.1 panics
    /// when it batches requests that continue cached prompts of different lengths without paged
    /// attention.
    pub prefix_cache: Option<usize>,
    /// Maximum tokens of one generation of this model, where lower than the server's limit.
    pub max_tokens: Option<usize>,
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

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not valid TOML or has unknown or ill-typed members.
    #[error("{}: {source}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The position and the cause.
        source: toml::de::Error,
    },
    /// A value is invalid.
    #[error("{member}: {problem}")]
    Value {
        /// The member, such as `limits.http.body_bytes`.
        member: String,
        /// What is wrong with the value.
        problem: String,
    },
}

impl Config {
    /// The schema options of requests without their own.
    pub(crate) fn schema_options(&self) -> SchemaOptions {
        SchemaOptions { policy: self.policy, ..self.schema_options }
    }

    /// Reads a configuration file. Unknown members are errors.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        read_toml(path)
    }

    /// Validates limits, names and API keys.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fault = |member: &str, problem: String| {
            Err(ConfigError::Value { member: member.to_owned(), problem })
        };
        if self.schema_options.policy != Policy::default() {
            return fault("schema_options.policy", "use the member `policy`".to_owned());
        }
        if let Some((member, problem)) = self.limits.fault() {
            return fault(&format!("limits.{member}"), problem);
        }
        if self.api_keys.iter().any(|key| key.trim().is_empty()) {
            return fault("api_keys", "a key is blank".to_owned());
        }
        if !self.api_keys.iter().flat_map(|key| key.bytes()).all(|b| b.is_ascii_graphic()) {
            return fault("api_keys", "keys must be visible ASCII characters".to_owned());
        }
        if self.api_keys.is_empty()
            && !self.allow_no_keys
            && !self.host.to_canonical().is_loopback()
        {
            let problem = "this address is reachable from other machines and there are no API \
                           keys: set some (LOUVER_API_KEY, --api-key or api_keys), or allow \
                           requests without a key (--allow-no-keys or allow_no_keys = true)";
            return fault("host", format!("{}: {problem}", self.host));
        }
        if let Some(problem) = self.mcp_servers.iter().find_map(McpServer::fault) {
            return fault("mcp", problem);
        }
        let mut labels: Vec<&str> = self.mcp_servers.iter().map(|s| s.label.as_str()).collect();
        labels.sort_unstable();
        if let Some(twice) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
            return fault("mcp", format!("there are two servers with the label {:?}", twice[0]));
        }
        if let Some(problem) = self.allowed_hosts.iter().find_map(|name| host_fault(name)) {
            return fault("allowed_hosts", problem);
        }
        if let Some(problem) = self.cors_origins.iter().find_map(|origin| origin_fault(origin)) {
            return fault("cors_origins", problem);
        }
        if self.models.is_empty() {
            return fault("model", "there is no model to serve".to_owned());
        }
        let mut names = Vec::new();
        for model in &self.models {
            if model.model.is_empty() {
                return fault("model.model", "must not be empty".to_owned());
            }
            for name in std::iter::once(model.served_name()).chain(model.aliases.iter().cloned()) {
                if names.contains(&name) {
                    return fault("model.name", format!("two models are called {name:?}"));
                }
                names.push(name);
            }
        }
        Ok(())
    }
}

impl ServerLimits {
    /// Reads a file of limits. Unknown members are errors.
    pub fn read(path: &Path) -> Result<ServerLimits, ConfigError> {
        read_toml(path)
    }
}

fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|source| ConfigError::Toml { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_file_is_parsed() {
        let config: Config = toml::from_str(
            r#"
            host = "0.0.0.0"
            port = 9000
            api_keys = ["a", "b"]
            policy = "best_effort"
            strict_tools = "all"
            unknown_members = "refuse"
            grace_s = 5.5
            [limits.requests]
            concurrent = 8
            [[model]]
            model = "Qwen/Qwen3-4B"
            aliases = ["small"]
            isq = "4"
            device = "cuda:1"
            [[model]]
            model = "org/other"
            name = "other"
            format = "llama3"
            "#,
        )
        .unwrap();
        assert_eq!(
            (config.port, config.api_keys.len(), config.strict_tools),
            (9000, 2, Strictness::All)
        );
        assert_eq!(config.models[0].served_name(), "Qwen/Qwen3-4B");
        assert_eq!(config.models[0].device, DeviceChoice::Cuda(1));
        assert_eq!(config.models[1].served_name(), "other");
        config.check().unwrap();
    }

    #[test]
    fn public_addresses_need_keys_or_a_flag() {
        let check = |text: &str| {
            toml::from_str::<Config>(&format!("{text}\n[[model]]\nmodel = \"a\"")).unwrap().check()
        };
        for host in ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1"] {
            let error = check(&format!("host = \"{host}\"")).unwrap_err().to_string();
            // Both ways out.
            assert!(
                error.contains("LOUVER_API_KEY") && error.contains("--allow-no-keys"),
                "{error}"
            );
            check(&format!("host = \"{host}\"\napi_keys = [\"k\"]")).unwrap();
            check(&format!("host = \"{host}\"\nallow_no_keys = true")).unwrap();
        }
        for host in ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1"] {
            check(&format!("host = \"{host}\"")).unwrap();
        }
    }

    #[test]
    fn invalid_configurations_have_errors() {
        let check =
            |text: &str| toml::from_str::<Config>(text).unwrap().check().unwrap_err().to_string();
        assert_eq!(check(""), "model: there is no model to serve");
        let twice = "[[model]]\nmodel = \"a\"\n[[model]]\nmodel = \"b\"\naliases = [\"a\"]";
        assert_eq!(check(twice), "model.name: two models are called \"a\"");
        for keys in ["\"\"", "\" \"", "\"a\", \"\\t\"", "\"a b\""] {
            let error = check(&format!("api_keys = [{keys}]\n[[model]]\nmodel = \"a\""));
            assert!(error.starts_with("api_keys: "), "{error}");
        }
        assert!(
            check("allowed_hosts = [\"a:80\"]\n[[model]]\nmodel = \"a\"")
                .starts_with("allowed_hosts: ")
        );
        let options = check("[schema_options]\npolicy = \"validate\"\n[[model]]\nmodel = \"a\"");
        assert_eq!(options, "schema_options.policy: use the member `policy`");
        assert!(
            check("cors_origins = [\"*\"]\n[[model]]\nmodel = \"a\"").starts_with("cors_origins: ")
        );
        assert!(
            check("[limits.requests]\nn = 0\n[[model]]\nmodel = \"a\"")
                .starts_with("limits.requests.n: ")
        );
        assert!(toml::from_str::<Config>("[[model]]\nmodel = \"a\"\ndevice = \"tpu\"").is_err());
        assert!(toml::from_str::<Config>("prot = 1").is_err());
        assert!(matches!(Config::read(Path::new("no such file")), Err(ConfigError::Read { .. })));
    }
}
