//! The configuration: a TOML file (`--config`), which the command's flags add to.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use louver::front::json_schema::{Policy, SchemaOptions};
use louver_formats::Strictness;
use serde::Deserialize;

use crate::http::origin::{host_fault, origin_fault};
use crate::limits::{Seconds, ServerLimits};

/// How the server runs and which models it serves.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address to listen at.
    pub host: IpAddr,
    /// The port; 0 takes any that is free.
    pub port: u16,
    /// Keys of clients, sent as `Authorization: Bearer KEY`. None: everyone may ask.
    pub api_keys: Vec<String>,
    /// Whether the server may listen at an address beside the loopback's without keys.
    pub allow_no_keys: bool,
    /// Names of this server beside the loopback's that requests may have in their `Host` header. Without
    /// keys no other name is served; with keys all are, unless there is a list.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may ask, such as `https://app.example`. None: only the server's own.
    pub cors_origins: Vec<String>,
    /// What happens to a schema keyword that cannot be enforced.
    pub policy: Policy,
    /// How schemas are read. Its `policy` is the member above.
    pub schema_options: SchemaOptions,
    /// Whose arguments match their schema: every tool's (`all`), or those of tools that are `strict` (`as_flagged`, as in
    /// OpenAI's API).
    #[serde(deserialize_with = "strictness")]
    pub strict_tools: Strictness,
    /// What happens to members of a request that mean nothing to the server.
    pub unknown_members: UnknownMembers,
    /// How long running requests may take to finish when the server is told to stop.
    pub grace_s: Seconds,
    /// What clients may cost.
    pub limits: ServerLimits,
    /// The models; a request that names none is for the first.
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
            strict_tools: Strictness::AsFlagged,
            unknown_members: UnknownMembers::default(),
            grace_s: Seconds(std::time::Duration::from_secs(30)),
            limits: ServerLimits::default(),
            models: Vec::new(),
        }
    }
}

/// In TOML: `"as_flagged"` or `"all"`.
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

/// What happens to members of a request that mean nothing to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownMembers {
    /// They are ignored.
    #[default]
    Ignore,
    /// The request is refused.
    Refuse,
}

/// One model: where it is, and how it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// A directory or a Hugging Face id.
    pub model: String,
    /// What requests call it; by default the id, or the directory's name.
    pub name: Option<String>,
    /// Further names.
    pub aliases: Vec<String>,
    /// The wire format; found by the chat template if none is given.
    pub format: Option<String>,
    /// Files with wire formats of one's own.
    pub format_files: Vec<PathBuf>,
    /// Quantisation while loading, in the host's spelling: `4`, `8`, `Q4K`, ...
    pub isq: Option<String>,
    /// Where it runs.
    pub device: DeviceChoice,
    /// The weights' type, in the host's spelling: `auto`, `f32`, `bf16`, ...
    pub dtype: Option<String>,
    /// A Jinja file in place of the model's own chat template.
    pub chat_template: Option<PathBuf>,
    /// A `tokenizer.json` in place of the model's own.
    pub tokenizer: Option<PathBuf>,
    /// The revision on the hub.
    pub revision: Option<String>,
    /// Whether the host may compute several generations together.
    pub batching: Batching,
    /// Most sequences the host batches.
    pub max_sequences: Option<usize>,
    /// Prefixes the host keeps. None by default: mistral.rs 0.8.1 panics where it batches requests that continue cached
    /// prompts of different lengths without paged attention.
    pub prefix_cache: Option<usize>,
    /// Most tokens of one generation of this model, where that is less than the server's limit.
    pub max_tokens: Option<usize>,
}

impl ModelConfig {
    /// Whether the host computes one generation at a time.
    pub fn is_one_at_a_time(&self) -> bool {
        let on_cpu = || match self.device {
            DeviceChoice::Cpu => true,
            DeviceChoice::Auto => {
                mistralrs::best_device(false).map_or(true, |device| device.is_cpu())
            }
            DeviceChoice::Cuda(_) | DeviceChoice::Metal(_) => false,
        };
        match self.batching {
            Batching::Auto => on_cpu(),
            Batching::On => false,
            Batching::Off => true,
        }
    }

    /// What requests call it.
    pub fn served_name(&self) -> String {
        let by_path =
            || Path::new(&self.model).file_name().map(|name| name.to_string_lossy().into_owned());
        let is_directory = Path::new(&self.model).is_dir();
        let found = self.name.clone().or_else(|| by_path().filter(|_| is_directory));
        found.unwrap_or_else(|| self.model.clone())
    }
}

/// Whether the host may compute several generations of a model together.
///
/// On the CPU, mistral.rs 0.8.1 must not: its attention mixes the sequences of a batch up, so that a generation depends on its
/// neighbours and on what they were asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batching {
    /// Not on the CPU.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Where a model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum DeviceChoice {
    /// Where the host thinks best.
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

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{}: {source}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: toml::de::Error,
    },
    /// A value that makes no sense.
    #[error("{member}: {problem}")]
    Value {
        /// The member, such as `limits.http.body_bytes`.
        member: String,
        /// What is wrong.
        problem: String,
    },
}

impl Config {
    /// How schemas are read where a request says nothing else.
    pub(crate) fn schema_options(&self) -> SchemaOptions {
        SchemaOptions { policy: self.policy, ..self.schema_options }
    }

    /// Reads a configuration file. Unknown members are errors.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        read_toml(path)
    }

    /// Whether the configuration can be used: limits, names, keys.
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
            let problem = "others reach this address and there are no keys: set some (LOUVER_API_KEY, --api-key or \
                           api_keys), or let everyone ask (--allow-no-keys or allow_no_keys = true)";
            return fault("host", format!("{}: {problem}", self.host));
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
    fn a_whole_configuration() {
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
    fn what_is_wrong_is_said() {
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
