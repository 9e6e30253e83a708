//! `louver serve`: the OpenAI-compatible server.

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::ArgGroup;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use louver::front::json_schema::{Policy, SchemaOptions};
use louver_server::{
    Config, DeviceChoice, ModelConfig, Overrides, Seconds, ServerLimits, StrictTools, parse_host,
};
use serde::de::DeserializeOwned;

use crate::model_flags::{ModelFlags, schema_overrides};
use crate::registry::RegistryArgs;
use crate::telemetry::{self, LogFormat};
use crate::trained;

/// The environment variable with API keys, separated by commas.
const KEYS_VARIABLE: &str = "LOUVER_API_KEY";
/// Time that tasks have to end after the server has stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves models with OpenAI's API: chat completions, responses, models; health, metrics, an
/// inspector.
// Many fields: the flags of a command.
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("source").args(["positional", "model", "tiny", "trained"]))]
pub(crate) struct ServeArgs {
    /// TOML configuration file; flags override it or add to it (docs/DEPLOYING.md).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A model: a directory, a GGUF file or a Hugging Face id.
    #[arg(id = "positional", value_name = "MODEL")]
    positional: Option<String>,
    /// The same, as a flag.
    #[arg(long, value_name = "PATH_OR_ID")]
    model: Option<String>,
    /// Model name in requests [default: the id, or the name of the directory or file].
    #[arg(long, value_name = "NAME", requires = "source")]
    name: Option<String>,
    /// Serve the tiny model with random weights, as the model `tiny`.
    #[arg(long)]
    tiny: bool,
    /// Serve SmolLM2-135M-Instruct, a small trained model, as the model `smollm2-135m`. Downloads
    /// 93 MB once.
    #[arg(long)]
    trained: bool,
    /// Directory of the tiny model [default: the platform's cache directory].
    #[arg(long, value_name = "DIR", requires = "tiny",
          conflicts_with_all = ["positional", "model", "trained"])]
    model_dir: Option<PathBuf>,
    #[command(flatten)]
    model_flags: ModelFlags,
    /// Address to listen on [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS", value_parser = parse_host)]
    host: Option<IpAddr>,
    /// Port to listen on; 0 selects a free port [default: 8080].
    #[arg(long)]
    port: Option<u16>,
    /// API key of clients; repeatable. Also read from LOUVER_API_KEY, separated by commas.
    #[arg(long, value_name = "KEY")]
    api_key: Vec<String>,
    /// Allow requests without an API key on non-loopback addresses.
    #[arg(long)]
    allow_no_keys: bool,
    /// Additional host name that requests may use in their Host header; repeatable.
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// TOML file with limits, which replaces the configuration's limits.
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Maximum length of a request body, in bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    max_body: Option<u32>,
    /// Handling of schema keywords that cannot be enforced: `strict` rejects the request,
    /// `best_effort` relaxes and reports the keyword, `validate` also validates the output.
    #[arg(long, value_parser = one_of::<Policy>(["strict", "validate", "best_effort"]))]
    policy: Option<Policy>,
    /// Which tools' arguments must match their schema: `auto`, those of tools whose `strict` is
    /// true, as in OpenAI's API; `all`; or `off`. Those of required calls always must
    /// [default: auto].
    #[arg(long, value_parser = one_of::<StrictTools>(["auto", "all", "off"]))]
    strict_tools: Option<StrictTools>,
    /// Schema options, such as '{"integers": "zero_fraction"}', which override the configuration's;
    /// see docs/JSON_SCHEMA.md.
    #[arg(long, value_name = "JSON", value_parser = schema_overrides)]
    schema_options: Option<Overrides<SchemaOptions>>,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Grace period for running requests after SIGTERM, SIGINT or SIGHUP, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    grace: Option<Seconds>,
    /// Format of the log on standard error. RUST_LOG sets the log level.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Address of an OpenTelemetry collector, such as http://127.0.0.1:4318, that spans of requests
    /// are sent to by OTLP over HTTP. Also read from OTEL_EXPORTER_OTLP_ENDPOINT.
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
}

/// A parser of one of these names, which are those of the configuration.
fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: [&'static str; 3],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(name.into()))
}

fn seconds(text: &str) -> Result<Seconds, String> {
    let number: f64 = text.parse().map_err(|_| "must be a number of seconds".to_owned())?;
    Seconds::try_from(number)
}

/// Serves until SIGTERM, SIGINT or SIGHUP. Each ends the loading of models as well, and a second
/// one the wait for running requests.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let export = telemetry::start(args.log_format, args.otlp_endpoint.as_deref())?;
    // Loading a model occupies one thread; another one waits for signals.
    let threads = std::thread::available_parallelism().map_or(2, |threads| threads.get().max(2));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    let served = runtime.block_on(async {
        let config = build_config(&args).await?;
        config.check()?;
        log_keys(&config);
        let mut signals = StopSignals::new()?;
        let (host, port) = (config.host, config.port);
        // Bind before loading, so that an address in use is reported immediately.
        let listener = tokio::net::TcpListener::bind((host, port)).await;
        let listener = listener.with_context(|| format!("cannot listen at {host}:{port}"))?;
        // A task of its own: loading occupies its thread.
        let app = tokio::select! {
            app = tokio::spawn(louver_server::load(config)) => app??,
            () = signals.next() => {
                tracing::info!("stopped while loading");
                return Ok(ExitCode::SUCCESS);
            }
        };
        let address = listener.local_addr()?;
        for served in app.models() {
            tracing::info!(
                model = served.name,
                format = served.louver.format().unwrap_or(""),
                "serving"
            );
        }
        tracing::info!(%address, "listening");
        // For scripts, as text whatever the log's format; standard output may be closed.
        let _ = writeln!(std::io::stdout(), "listening on http://{address}");
        let _ = std::io::stdout().flush();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let second_signal = async {
            signals.next().await;
            drop(stop);
            signals.next().await;
        };
        tokio::select! {
            served = louver_server::serve(listener, app, async { drop(stopped.await) }) => served?,
            () = second_signal => {
                tracing::warn!("stopped by a second signal: running requests are lost");
                return Ok(ExitCode::FAILURE);
            }
        }
        tracing::info!("stopped");
        anyhow::Ok(ExitCode::SUCCESS)
    });
    // Aborted clients may still hold connections. Tasks are dropped, which ends MCP processes.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    export.finish();
    served
}

/// Reads the configuration file and applies the flags.
async fn build_config(args: &ServeArgs) -> anyhow::Result<Config> {
    let mut config = match &args.config {
        Some(path) => Config::read(path).context("--config")?,
        None => Config::default(),
    };
    if let Some(model) = model_from_flags(args).await? {
        config.models.insert(0, model);
    }
    if let Some(first) = config.models.first_mut() {
        args.model_flags.apply(first);
    }
    config.host = args.host.unwrap_or(config.host);
    config.port = args.port.unwrap_or(config.port);
    config.api_keys.extend(args.api_key.iter().cloned());
    config.api_keys.extend(keys_from_environment(std::env::var_os(KEYS_VARIABLE))?);
    config.allow_no_keys |= args.allow_no_keys;
    config.allowed_hosts.extend(args.allowed_host.iter().cloned());
    if let Some(path) = &args.limits {
        config.limits = ServerLimits::read(path).context("--limits")?;
    }
    if let Some(bytes) = args.max_body {
        let http = &mut config.limits.http;
        http.body_bytes = bytes as usize;
        http.bodies_bytes = http.bodies_bytes.max(http.body_bytes);
    }
    config.policy = args.policy.unwrap_or(config.policy);
    config.strict_tools = args.strict_tools.unwrap_or(config.strict_tools);
    if let Some(options) = &args.schema_options {
        config.schema_options = options.apply(&config.schema_options);
    }
    config.registry.extend(args.registry.registry.iter().cloned());
    config.grace_s = args.grace.unwrap_or(config.grace_s);
    Ok(config)
}

/// The API keys in the environment. A variable that is set without a key, or with a blank one, is
/// an error, so that a mistake does not open the server.
fn keys_from_environment(value: Option<std::ffi::OsString>) -> anyhow::Result<Vec<String>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let value = value.into_string().map_err(|_| anyhow::anyhow!("{KEYS_VARIABLE} is not UTF-8"))?;
    let keys: Vec<String> = value.split(',').map(|key| key.trim().to_owned()).collect();
    if keys.iter().any(String::is_empty) {
        anyhow::bail!(
            "{KEYS_VARIABLE} is set but has a blank key: unset it, or set it to comma-separated keys"
        );
    }
    Ok(keys)
}

/// Logs whether API keys are required.
fn log_keys(config: &Config) {
    match config.api_keys.len() {
        0 => {
            tracing::warn!(
                host = %config.host,
                "API keys are off: anyone who can reach the address may send requests"
            )
        }
        keys => tracing::info!(keys, "API keys are on"),
    }
}

/// The model given by flags.
async fn model_from_flags(args: &ServeArgs) -> anyhow::Result<Option<ModelConfig>> {
    let mut model = if let Some(model) = args.model.as_ref().or(args.positional.as_ref()) {
        ModelConfig { model: model.clone(), ..ModelConfig::default() }
    } else if args.trained {
        trained::config(&trained::ensure().await?)
    } else if args.tiny {
        let parent = args.model_dir.clone().unwrap_or_else(louver_tiny_model::default_parent);
        let tiny = louver_tiny_model::ensure(&parent)?;
        ModelConfig {
            model: tiny.dir.display().to_string(),
            name: Some("tiny".to_owned()),
            device: DeviceChoice::Cpu,
            ..ModelConfig::default()
        }
    } else {
        return Ok(None);
    };
    model.name = args.name.clone().or(model.name);
    Ok(Some(model))
}

/// The signals that tell the process to stop.
struct StopSignals {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
}

impl StopSignals {
    /// From here on the signals do not end the process by themselves.
    #[cfg(unix)]
    fn new() -> std::io::Result<StopSignals> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::terminate(), SignalKind::interrupt()];
        if !ignores_hangup() {
            kinds.push(SignalKind::hangup());
        }
        let signals = kinds.into_iter().map(signal).collect::<Result<_, _>>()?;
        Ok(StopSignals { signals })
    }

    #[cfg(not(unix))]
    fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {})
    }

    /// Completes at the next signal.
    async fn next(&mut self) {
        #[cfg(unix)]
        std::future::poll_fn(|context| {
            match self.signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
        #[cfg(not(unix))]
        drop(tokio::signal::ctrl_c().await);
    }
}

/// Whether the process was started without SIGHUP, as by `nohup`, and must not react to it. Where
/// this is not known, as outside of Linux, the signal is left alone.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is 1, the lowest bit.
    mask.is_none_or(|mask| mask & 1 != 0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use louver::front::json_schema::Integers;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestCli {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn parse(flags: &[&str]) -> Config {
        let args = std::iter::once("louver").chain(flags.iter().copied());
        let args = TestCli::try_parse_from(args).unwrap().serve;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(build_config(&args)).unwrap()
    }

    #[test]
    fn flags_are_applied_to_the_configuration() {
        let flags = [
            "--model",
            "org/name",
            "--format",
            "qwen3",
            "--isq",
            "4",
            "--device",
            "cuda:1",
            "--host",
            "0.0.0.0",
            "--port",
            "0",
            "--api-key",
            "a",
            "--api-key",
            "b",
            "--allowed-host",
            "models.example",
            "--max-body",
            "99000000",
            "--policy",
            "best_effort",
            "--strict-tools",
            "all",
            "--schema-options",
            r#"{"integers": "zero_fraction", "exponents": "allowed"}"#,
            "--dtype",
            "bf16",
            "--chat-template",
            "chatml-tools",
            "--registry",
            "schemas",
            "--grace",
            "2.5",
        ];
        let config = parse(&flags);
        config.check().unwrap();
        let model = &config.models[0];
        assert_eq!(
            (model.served_name().as_str(), model.format.as_deref()),
            ("org/name", Some("qwen3"))
        );
        assert_eq!((model.device, model.isq.as_deref()), (DeviceChoice::Cuda(1), Some("4")));
        assert_eq!((config.port, config.policy), (0, Policy::BestEffort));
        assert_eq!(config.strict_tools, StrictTools::All);
        let options = config.settings(model).schema_options;
        assert_eq!(options.integers, Integers::ZeroFraction);
        for options in [r#"{"integer": 1}"#, r#"{"policy": "validate"}"#, "[]", "{"] {
            let flags = ["louver", "--schema-options", options];
            assert!(TestCli::try_parse_from(flags).is_err(), "{options}");
        }
        assert_eq!(
            (model.dtype.as_deref(), model.chat_template.as_deref()),
            (Some("bf16"), Some(std::path::Path::new("chatml-tools")))
        );
        assert_eq!(&config.api_keys[..2], ["a", "b"]);
        assert_eq!(config.allowed_hosts, ["models.example"]);
        assert_eq!(
            (config.limits.http.body_bytes, config.limits.http.bodies_bytes),
            (99_000_000, 99_000_000)
        );
        assert_eq!(config.registry, [PathBuf::from("schemas")]);
        assert!(!config.allow_no_keys && parse(&["--allow-no-keys"]).allow_no_keys);
        assert!(parse(&["--model", "x", "--api-key", " "]).check().is_err());
        let error = parse(&[]).check().unwrap_err().to_string();
        for advice in ["--model", "--tiny", "--trained", "[[model]]"] {
            assert!(error.contains(advice), "{error}");
        }
        assert!(parse(&["--host", "localhost"]).host.is_loopback());
        let error = TestCli::try_parse_from(["louver", "--host", "a.b"]).unwrap_err().to_string();
        assert!(error.contains("such as 127.0.0.1"), "{error}");
        assert!(TestCli::try_parse_from(["louver", "--device", "tpu"]).is_err());
        assert!(TestCli::try_parse_from(["louver", "--dtype", "f8"]).is_err());
        assert!(TestCli::try_parse_from(["louver", "--strict-tools", "some"]).is_err());
    }

    #[test]
    fn one_model_is_named_by_flags() {
        for flags in [&["org/name"][..], &["--model", "org/name"]] {
            let model = &parse(flags).models[0];
            assert_eq!((model.model.as_str(), &model.name), ("org/name", &None), "{flags:?}");
        }
        assert_eq!(parse(&["org/name", "--name", "x"]).models[0].served_name(), "x");
        let folder = std::env::temp_dir().join(format!("louver-flags-{}", std::process::id()));
        let tiny = ["--tiny", "--model-dir", folder.to_str().unwrap(), "--name", "x"];
        assert_eq!(parse(&tiny).models[0].served_name(), "x");
        std::fs::remove_dir_all(&folder).unwrap();
        for flags in [
            &["org/name", "--model", "org/name"][..],
            &["org/name", "--tiny"],
            &["--tiny", "--model", "x"],
            &["--tiny", "--trained"],
            &["--trained", "--model-dir", "x"],
            &["--model", "y", "--model-dir", "x"],
            &["y", "--model-dir", "x"],
            &["--name", "x"],
        ] {
            let args = ["louver"].iter().chain(flags).copied();
            assert!(TestCli::try_parse_from(args).is_err(), "{flags:?}");
        }
    }

    #[test]
    fn blank_keys_in_the_environment_are_errors() {
        let keys = |value: &str| keys_from_environment(Some(value.into()));
        assert_eq!(keys("a").unwrap(), ["a"]);
        assert_eq!(keys(" a , b").unwrap(), ["a", "b"]);
        assert!(keys_from_environment(None).unwrap().is_empty());
        for blank in ["", " ", ",", " , ", "a,", ",a", "a,,b"] {
            assert!(
                keys(blank).unwrap_err().to_string().starts_with("LOUVER_API_KEY is set but"),
                "{blank:?}"
            );
        }
    }
}
