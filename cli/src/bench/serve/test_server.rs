//! The server under test, in this process, and the wire formats that its model supports.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use louver::engine::{Engine, EngineOptions};
use louver::spec::json::Json;
use louver_formats::{Catalog, Reasoning, ToolRequest};
use louver_hf_tokenizers::VocabOptions;
use louver_mistralrs::Louver;
use louver_server::{App, Batching, Config, DeviceChoice, ModelConfig, ServedModel, ServerLimits};
use mistralrs::{ModelDType, TextModelBuilder};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::Client;
use super::odd_models;

/// A running server. Dropping it leaves the server to the runtime.
pub(super) struct TestServer {
    pub(super) client: Client,
    pub(super) address: SocketAddr,
    /// The models' names in requests.
    pub(super) models: Vec<String>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl TestServer {
    /// Loads models and serves them on a free local port.
    pub(super) async fn start(config: Config) -> Result<TestServer> {
        TestServer::serve(louver_server::load(config).await?).await
    }

    /// Serves several copies of the embedded model, each with a number of concurrent generations
    /// and with the odd models' processors before Louver's.
    pub(super) async fn start_hostile(models: usize, generations: usize) -> Result<TestServer> {
        let batching = if generations > 1 { Batching::On } else { Batching::Off };
        let mut configs = Vec::with_capacity(models);
        let mut served_models = Vec::with_capacity(models);
        for number in 0..models {
            let config = ModelConfig { batching, ..model_config(&format!("tiny{number}"), None)? };
            let builder =
                TextModelBuilder::new(&config.model).with_force_cpu().with_dtype(ModelDType::F32);
            let (host, louver) = Louver::load(builder.with_prefix_cache_n(None)).await?;
            let mut served = ServedModel::new(&config, host, louver);
            served.processors = odd_models::processors(served.louver.engine().vocab());
            configs.push(config);
            served_models.push(served);
        }
        let mut limits = ServerLimits::default();
        limits.requests.concurrent = models * generations;
        limits.requests.n = limits.requests.n.min(limits.requests.concurrent);
        TestServer::serve(App::new(
            Config { models: configs, limits, ..Config::default() },
            served_models,
        ))
        .await
    }

    async fn serve(app: App) -> Result<TestServer> {
        let models = app.models().iter().map(|served| served.name.clone()).collect();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving =
            tokio::spawn(louver_server::serve(listener, app, async move { drop(stopped.await) }));
        Ok(TestServer {
            client: Client::new(format!("http://{address}"))?,
            address,
            models,
            stop,
            serving,
        })
    }

    /// Stops the server and waits for it.
    pub(super) async fn stop(self) -> Result<()> {
        // If the server has already ended, its task returns the reason.
        let _ = self.stop.send(());
        Ok(self.serving.await.context("the server panicked")??)
    }
}

/// The directory of the embedded model.
pub(super) fn tiny_model_dir() -> Result<PathBuf> {
    Ok(louver_tiny_model::ensure(&louver_tiny_model::default_parent())?.dir)
}

/// The configuration of a model, or of the embedded one called `tiny`.
pub(super) fn model_or_tiny(model: Option<&str>) -> Result<ModelConfig> {
    match model {
        Some(model) => Ok(ModelConfig { model: model.to_owned(), ..ModelConfig::default() }),
        None => model_config("tiny", None),
    }
}

/// The configuration of the embedded model with a name and a wire format.
pub(super) fn model_config(name: &str, format: Option<&str>) -> Result<ModelConfig> {
    Ok(ModelConfig {
        model: tiny_model_dir()?.display().to_string(),
        name: Some(name.to_owned()),
        format: format.map(str::to_owned),
        device: DeviceChoice::Cpu,
        dtype: Some("f32".to_owned()),
        ..ModelConfig::default()
    })
}

/// Partitions the wire formats into those that the embedded model's vocabulary can spell, and those
/// whose markers must be special tokens.
pub(super) fn partition_formats() -> Result<(Vec<String>, Vec<String>)> {
    let loaded = louver_hf_tokenizers::load(
        tiny_model_dir()?.join("tokenizer.json"),
        &VocabOptions::default(),
    )?;
    let engine = Engine::new(Arc::new(loaded.vocab), EngineOptions::default());
    let tools = r#"{"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}"#;
    let request = ToolRequest::parse(&Json::parse(tools, &engine.options().limits)?)?;
    let catalog = Catalog::shipped();
    let usable = |name: &String| {
        let format = catalog.get(name).ok()?.clone().bind(engine.vocab());
        let request = request.clone().with_reasoning(Reasoning::Off);
        engine.compile(format.lower(&request).ok()?.grammar().clone()).ok()
    };
    Ok(catalog.names().into_iter().partition(|name| usable(name).is_some()))
}
