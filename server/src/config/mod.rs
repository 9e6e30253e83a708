//! Server configuration: a TOML file (`--config`), extended by command-line flags.

mod fault;
mod foreign;
mod model;
pub(crate) mod origins;
pub(crate) mod overrides;
mod settings;

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use louver::front::json_schema::{Policy, SchemaOptions};
use louver_mistralrs::Draw;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::config::origins::{host_fault, origin_fault};
use crate::limits::{NO_SOURCE_BYTES, SOURCE_BYTES, Seconds, ServerLimits, schema_faults};
use crate::mcp::McpServer;

pub use fault::{ConfigError, ConfigFault, ConfigFile};
pub use foreign::foreign_option;
pub use model::{Batching, DeviceChoice, ModelConfig, ModelLimitOverrides};
pub use origins::parse_host;
pub use overrides::{Overridable, Overrides};
pub use settings::{
    EngineSettings, ModelLimits, ModelRequestLimits, ModelSettings, PreparationSettings,
    ReasoningDefault, StrictTools,
};

/// The server's configuration.
// Many fields: the members of a configuration file.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address to listen on; `localhost` is 127.0.0.1.
    #[serde(deserialize_with = "read_host")]
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
    /// Schema options, by default [`SchemaOptions::closed`]. Their `policy` is set by the member
    /// above.
    #[serde(deserialize_with = "schema_options")]
    pub schema_options: SchemaOptions,
    /// Schema documents that references of schemas may lead to: files, and folders of `*.json`.
    pub registry: Vec<PathBuf>,
    /// Which tools' arguments must match their schema: every tool's (`all`), or those of tools
    /// marked `strict` (`auto`, as in OpenAI's API).
    pub strict_tools: StrictTools,
    /// The reasoning of requests that do not say.
    pub reasoning: ReasoningDefault,
    /// Maximum reasoning tokens of requests that do not say.
    pub reasoning_budget: Option<u32>,
    /// Who draws the tokens of requests without a seed; Louver draws those of requests with one.
    pub draw: Draw,
    /// Threads and caches of each model's engine.
    pub engine: EngineSettings,
    /// Masks that are made ahead.
    pub preparation: PreparationSettings,
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
            schema_options: SchemaOptions::closed(),
            registry: Vec::new(),
            strict_tools: StrictTools::default(),
            reasoning: ReasoningDefault::default(),
            reasoning_budget: None,
            draw: Draw::default(),
            engine: EngineSettings::default(),
            preparation: PreparationSettings::default(),
            unknown_members: UnknownMembers::default(),
            grace_s: Seconds(std::time::Duration::from_secs(30)),
            limits: ServerLimits::default(),
            mcp_servers: Vec::new(),
            models: Vec::new(),
        }
    }
}

fn read_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpAddr, D::Error> {
    parse_host(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Handling of request members that the server does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownMembers {
    /// Ignore them.
    Ignore,
    /// Reject the request.
    #[default]
    Refuse,
}

/// Reads the members of a table of schema options. The others have this configuration's defaults.
fn schema_options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SchemaOptions, D::Error> {
    let members = Overrides::<SchemaOptions>::deserialize(deserializer)?;
    if members.has("policy") {
        let problem = "there is no option `policy`: use the member `policy` beside this table";
        return Err(D::Error::custom(problem));
    }
    Ok(members.apply(&SchemaOptions::closed()))
}

impl Config {
    /// The effective settings of a model: the members of its own table override the
    /// configuration's. Members of a request override both.
    pub fn settings(&self, model: &ModelConfig) -> ModelSettings {
        let policy = model.policy.unwrap_or(self.policy);
        let schema_options = model.schema_options.apply(&self.schema_options);
        let requests = model.limits.requests.apply(&self.limits.requests.into());
        ModelSettings {
            policy,
            strict_tools: model.strict_tools.unwrap_or(self.strict_tools),
            reasoning: model.reasoning.unwrap_or(self.reasoning),
            reasoning_budget: model.reasoning_budget.or(self.reasoning_budget),
            draw: model.draw.unwrap_or(self.draw),
            schema_options: schema_options.with_policy(policy),
            engine: model.engine.apply(&self.engine),
            preparation: model.preparation.apply(&self.preparation),
            limits: ModelLimits {
                requests,
                schema: model.limits.schema.apply(&self.limits.schema),
            },
        }
    }

    /// Reads a configuration file. Unknown members are errors.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has faults of syntax, members or types: all of them.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        ConfigFile::open(path)?.config()
    }

    /// Validates limits, names and API keys.
    ///
    /// # Errors
    ///
    /// All faults.
    pub fn check(&self) -> Result<(), ConfigError> {
        let faults = self.faults();
        if faults.is_empty() { Ok(()) } else { Err(ConfigError::Values { faults }) }
    }

    /// The faults of values. Files are not looked at.
    pub fn faults(&self) -> Vec<ConfigFault> {
        let mut faults = Vec::new();
        if self.schema_options.policy != Policy::default() {
            faults.push(ConfigFault::new("schema_options.policy", "use the member `policy`"));
        }
        for (member, problem) in self.limits.faults() {
            faults.push(ConfigFault::new(format!("limits.{member}"), problem));
        }
        if let Some((member, problem)) = self.engine.fault() {
            faults.push(ConfigFault::new(format!("engine.{member}"), problem));
        }
        if self.reasoning_budget == Some(0) {
            faults.push(ConfigFault::new("reasoning_budget", NO_BUDGET));
        }
        self.add_access_faults(&mut faults);
        self.add_mcp_faults(&mut faults);
        self.add_model_faults(&mut faults);
        faults
    }

    fn add_access_faults(&self, faults: &mut Vec<ConfigFault>) {
        if self.api_keys.iter().any(|key| key.trim().is_empty()) {
            faults.push(ConfigFault::new("api_keys", "a key is blank"));
        } else if !self.api_keys.iter().flat_map(|key| key.bytes()).all(|b| b.is_ascii_graphic()) {
            faults.push(ConfigFault::new("api_keys", "keys must be visible ASCII characters"));
        }
        if self.api_keys.is_empty()
            && !self.allow_no_keys
            && !self.host.to_canonical().is_loopback()
        {
            let problem = "this address is reachable from other machines and there are no API \
                           keys: set some (LOUVER_API_KEY, --api-key or api_keys), or allow \
                           requests without a key (--allow-no-keys or allow_no_keys = true)";
            faults.push(ConfigFault::new("host", format!("{}: {problem}", self.host)));
        }
        let hosts = self.allowed_hosts.iter().filter_map(|name| host_fault(name));
        faults.extend(hosts.map(|problem| ConfigFault::new("allowed_hosts", problem)));
        let origins = self.cors_origins.iter().filter_map(|origin| origin_fault(origin));
        faults.extend(origins.map(|problem| ConfigFault::new("cors_origins", problem)));
    }

    fn add_mcp_faults(&self, faults: &mut Vec<ConfigFault>) {
        for (i, server) in self.mcp_servers.iter().enumerate() {
            let label = &server.label;
            let is_repeated = self.mcp_servers[..i].iter().any(|other| other.label == *label);
            let problem = server.fault().or_else(|| {
                is_repeated.then(|| format!("there are two servers with the label {label:?}"))
            });
            faults.extend(problem.map(|problem| ConfigFault::new(format!("mcp[{i}]"), problem)));
        }
    }

    fn add_model_faults(&self, faults: &mut Vec<ConfigFault>) {
        if self.models.is_empty() {
            faults.push(ConfigFault::new("model", NO_MODEL));
        }
        let mut names = Vec::new();
        for (i, model) in self.models.iter().enumerate() {
            let mut add = |member: &str, problem: String| {
                faults.push(ConfigFault::new(format!("model[{i}].{member}"), problem));
            };
            if model.model.is_empty() {
                add("model", NO_SOURCE.to_owned());
            }
            for (member, mut names) in
                [("name", model.name.as_slice().iter()), ("aliases", model.aliases.iter())]
            {
                if names.any(|name| name.trim().is_empty()) {
                    add(member, "must not be empty".to_owned());
                }
            }
            for name in std::iter::once(model.served_name()).chain(model.aliases.iter().cloned()) {
                if names.contains(&name) {
                    add("name", format!("two models are called {name:?}"));
                }
                names.push(name);
            }
            if model.schema_options.has("policy") {
                add("schema_options.policy", "use the member `policy`".to_owned());
            }
            if model.reasoning_budget == Some(0) {
                add("reasoning_budget", NO_BUDGET.to_owned());
            }
            let settings = self.settings(model);
            let ModelLimits { requests, schema } = settings.limits;
            // Limits that the model does not set are those of the configuration.
            for (member, problem) in requests.faults(&self.limits.requests) {
                if model.limits.requests.has(member) {
                    add(&format!("limits.requests.{member}"), problem);
                }
            }
            let mut schema_faults = schema_faults(&schema);
            schema_faults.push((SOURCE_BYTES, NO_SOURCE_BYTES.to_owned()));
            let has_depth_fault = schema_faults.iter().any(|(member, _)| *member == "depth");
            if !has_depth_fault && schema.depth > self.limits.schema.depth {
                let problem = "must be at most the server's, which bounds the bodies of requests";
                schema_faults.push(("depth", problem.to_owned()));
            }
            for (member, problem) in schema_faults {
                if model.limits.schema.has(member) {
                    add(&format!("limits.schema.{member}"), problem);
                }
            }
            if let Some((member, problem)) = settings.engine.fault()
                && model.engine.has(member)
            {
                add(&format!("engine.{member}"), problem);
            }
        }
    }
}

/// What is wrong with a configuration without models.
const NO_MODEL: &str = "there is no model to serve: name one with --model, --tiny or --trained, or \
                        in a table [[model]] of the file of --config";

/// What is wrong with a model without a source.
const NO_SOURCE: &str = "is missing: name a directory, a GGUF file or an id of the Hugging \
                         Face Hub, owner/name";

/// What is wrong with a reasoning budget of 0.
const NO_BUDGET: &str = "must not be 0: `reasoning = \"off\"` turns reasoning off";

impl ConfigFile {
    /// Parses the configuration.
    ///
    /// # Errors
    ///
    /// [`ConfigError::File`] with all faults of syntax, members and types.
    pub fn config(&self) -> Result<Config, ConfigError> {
        self.parse()
    }
}

impl ServerLimits {
    /// Reads a file of limits. Unknown members are errors.
    ///
    /// # Errors
    ///
    /// As those of [`Config::read`].
    pub fn read(path: &Path) -> Result<ServerLimits, ConfigError> {
        ConfigFile::open(path)?.parse()
    }
}

#[cfg(test)]
mod tests {
    use louver::front::json_schema::Whitespace;

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
            (9000, 2, StrictTools::All)
        );
        assert_eq!(config.models[0].served_name(), "Qwen/Qwen3-4B");
        assert_eq!(config.models[0].device, DeviceChoice::Cuda(1));
        assert_eq!(config.models[1].served_name(), "other");
        config.check().unwrap();
    }

    #[test]
    fn members_of_a_model_override_those_of_the_configuration() {
        let config: Config = toml::from_str(
            r#"
            policy = "validate"
            reasoning = "off"
            reasoning_budget = 100
            [schema_options]
            integers = "zero_fraction"
            max_digits = 9
            [engine]
            background_threads = 2
            [preparation]
            masks = 5
            [limits.requests]
            max_tokens = 50
            [limits.schema]
            nodes = 1000
            [[model]]
            model = "a"
            [[model]]
            model = "b"
            policy = "best_effort"
            strict_tools = "all"
            reasoning = "required"
            reasoning_budget = 7
            draw = "host"
            schema_options = { integers = "digits", whitespace = "compact" }
            engine = { pool_bytes = 5 }
            preparation = { enabled = false }
            [model.limits]
            requests = { max_tokens = 90, timeout_s = 1.5 }
            schema = { mask_fuel = 3 }
            "#,
        )
        .unwrap();
        config.check().unwrap();
        let [plain, own] = [0, 1].map(|i| config.settings(&config.models[i]));
        assert_eq!((plain.policy, plain.schema_options.policy), (config.policy, config.policy));
        assert_eq!((plain.strict_tools, plain.draw), (StrictTools::Auto, Draw::Louver));
        assert_eq!((plain.reasoning, plain.reasoning_budget), (config.reasoning, Some(100)));
        assert_eq!((plain.engine, plain.preparation), (config.engine, config.preparation));
        assert_eq!(plain.limits.requests, config.limits.requests.into());
        assert_eq!(plain.limits.schema, config.limits.schema);
        assert_eq!(plain.preparation.budget().unwrap().masks, 5);

        let expected = ModelSettings {
            policy: Policy::BestEffort,
            strict_tools: StrictTools::All,
            reasoning: ReasoningDefault::Required,
            reasoning_budget: Some(7),
            draw: Draw::Host,
            schema_options: SchemaOptions::closed()
                .with_policy(Policy::BestEffort)
                .with_whitespace(Whitespace::Compact)
                .with_max_digits(Some(9)),
            engine: EngineSettings { pool_bytes: 5, ..config.engine },
            preparation: PreparationSettings { enabled: false, ..config.preparation },
            limits: ModelLimits {
                requests: ModelRequestLimits {
                    max_tokens: 90,
                    timeout_s: Seconds(std::time::Duration::from_millis(1500)),
                    ..config.limits.requests.into()
                },
                schema: config.limits.schema.clone().with_mask_fuel(3),
            },
        };
        assert_eq!(own, expected);
        assert_eq!(own.preparation.budget(), None);
        // What is printed can be read again, and is the same.
        let again = format!("[[model]]\nmodel = \"b\"\n{}", nested(&own.to_toml()));
        let again: Config = toml::from_str(&again).unwrap();
        assert_eq!(again.settings(&again.models[0]), own);
    }

    /// TOML of a model's table below `[[model]]`.
    fn nested(toml: &str) -> String {
        toml.replace("\n[", "\n[model.")
    }

    #[test]
    fn requests_override_the_reasoning_of_models() {
        use louver_formats::Reasoning;
        use {Reasoning as R, ReasoningDefault::*};
        for (default, request, expected) in [
            (Optional, None, (R::Optional, None)),
            (Optional, Some(true), (R::Optional, Some(true))),
            (Optional, Some(false), (R::Off, Some(false))),
            (Off, None, (R::Off, Some(false))),
            (Off, Some(true), (R::Optional, Some(true))),
            (Required, None, (R::Required, Some(true))),
            (Required, Some(true), (R::Required, Some(true))),
            (Required, Some(false), (R::Off, Some(false))),
        ] {
            assert_eq!(default.of_request(request), expected, "{default:?} {request:?}");
        }
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
        assert_eq!(check(""), format!("model: {NO_MODEL}"));
        assert_eq!(check("[[model]]\nname = \"a\""), format!("model[0].model: {NO_SOURCE}"));
        for (member, name) in [("name", "name = \" \""), ("aliases", "aliases = [\"b\", \"\"]")] {
            let error = check(&format!("[[model]]\nmodel = \"a\"\n{name}"));
            assert_eq!(error, format!("model[0].{member}: must not be empty"));
        }
        let twice = "[[model]]\nmodel = \"a\"\n[[model]]\nmodel = \"b\"\naliases = [\"a\"]";
        assert_eq!(check(twice), "model[1].name: two models are called \"a\"");
        for keys in ["\"\"", "\" \"", "\"a\", \"\\t\"", "\"a b\""] {
            let error = check(&format!("api_keys = [{keys}]\n[[model]]\nmodel = \"a\""));
            assert!(error.starts_with("api_keys: "), "{error}");
        }
        assert!(
            check("allowed_hosts = [\"a:80\"]\n[[model]]\nmodel = \"a\"")
                .starts_with("allowed_hosts: ")
        );
        for policy in ["validate", "strict"] {
            let text = format!("[schema_options]\npolicy = \"{policy}\"\n[[model]]\nmodel = \"a\"");
            let error = toml::from_str::<Config>(&text).unwrap_err().to_string();
            assert!(error.contains("use the member `policy`"), "{error}");
        }
        assert!(
            check("cors_origins = [\"*\"]\n[[model]]\nmodel = \"a\"").starts_with("cors_origins: ")
        );
        assert!(
            check("[limits.requests]\nn = 0\n[[model]]\nmodel = \"a\"")
                .starts_with("limits.requests.n: ")
        );
        let all = "[limits.schema]\ndepth = 10\n[[model]]\nmodel = \"a\"\n\
                   [model.limits]\nschema = { depth = 20, mask_fuel = 0 }";
        let all = check(all);
        assert!(all.contains("schema.depth: ") && all.contains("schema.mask_fuel: "), "{all}");
        let length = check("[[model]]\nmodel = \"a\"\nlimits.schema = { source_bytes = 5 }");
        assert_eq!(length, format!("model[0].limits.schema.source_bytes: {NO_SOURCE_BYTES}"));
        assert!(toml::from_str::<Config>("[[model]]\nmodel = \"a\"\ndevice = \"tpu\"").is_err());
        assert!(toml::from_str::<Config>("prot = 1").is_err());
        assert!(matches!(Config::read(Path::new("no such file")), Err(ConfigError::Read { .. })));
    }
}
