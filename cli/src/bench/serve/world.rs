//! The server in this process, and which wire formats a model can be served with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use louver::engine::{Engine, EngineOptions};
use louver::spec::json::Json;
use louver_formats::{Catalog, Reasoning, ToolRequest};
use louver_hf_tokenizers::VocabOptions;
use louver_mistralrs::Louver;
use louver_server::{App, Batching, Config, DeviceChoice, ModelConfig, Served, ServerLimits};
use mistralrs::{ModelDType, TextModelBuilder};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::hostile;
use super::http::Client;

/// A running server. Dropping it leaves the server to the runtime.
pub(super) struct World {
    pub(super) client: Client,
    pub(super) address: SocketAddr,
    /// What requests call the models.
    pub(super) models: Vec<String>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl World {
    /// Loads models and serves them on a free port of this machine.
    pub(super) async fn start(config: Config) -> Result<World> {
        World::serve(louver_server::load(config).await?).await
    }

    /// Serves the embedded model so many times over, each with so many generations at the same time and with the hostile
    /// processors in front of Louver's.
    pub(super) async fn start_hostile(models: usize, generations: usize) -> Result<World> {
        let batching = if generations > 1 { Batching::On } else { Batching::Off };
        let mut configs = Vec::with_capacity(models);
        let mut all = Vec::with_capacity(models);
        for number in 0..models {
            let config = ModelConfig { batching, ..model(&format!("tiny{number}"), None)? };
            let builder =
                TextModelBuilder::new(&config.model).with_force_cpu().with_dtype(ModelDType::F32);
            let (host, louver) = Louver::load(builder.with_prefix_cache_n(None)).await?;
            let mut served = Served::new(&config, host, louver);
            served.processors.0 = hostile::processors(served.louver.engine().vocab());
            configs.push(config);
            all.push(served);
        }
        let mut limits = ServerLimits::default();
        limits.requests.concurrent = models * generations;
        limits.requests.n = limits.requests.n.min(limits.requests.concurrent);
        World::serve(App::new(Config { models: configs, limits, ..Config::default() }, all)).await
    }

    async fn serve(app: App) -> Result<World> {
        let models = app.models().iter().map(|served| served.name.clone()).collect();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving =
            tokio::spawn(louver_server::serve(listener, app, async move { drop(stopped.await) }));
        Ok(World {
            client: Client::new(format!("http://{address}"))?,
            address,
            models,
            stop,
            serving,
        })
    }

    /// Stops, and waits until it has.
    pub(super) async fn stop(self) -> Result<()> {
        // If the server is gone already, its task says why.
        let _ = self.stop.send(());
        Ok(self.serving.await.context("the server panicked")??)
    }
}

/// The embedded model's directory.
pub(super) fn tiny() -> Result<PathBuf> {
    Ok(louver_tiny_model::ensure(&louver_tiny_model::default_parent())?.dir)
}

/// A model of the embedded weights under a name, in a wire format.
pub(super) fn model(name: &str, format: Option<&str>) -> Result<ModelConfig> {
    Ok(ModelConfig {
        model: tiny()?.display().to_string(),
        name: Some(name.to_owned()),
        format: format.map(str::to_owned),
        device: DeviceChoice::Cpu,
        dtype: Some("f32".to_owned()),
        ..ModelConfig::default()
    })
}

/// The wire formats whose grammars the embedded model's vocabulary can spell; the others have markers that must be special
/// tokens of their own.
pub(super) fn formats() -> Result<(Vec<String>, Vec<String>)> {
    let loaded =
        louver_hf_tokenizers::load(tiny()?.join("tokenizer.json"), &VocabOptions::default())?;
    let engine = Engine::new(Arc::new(loaded.vocab), EngineOptions::default());
    let tools = r#"{"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}"#;
    let request = ToolRequest::parse(&Json::parse(tools, &engine.options().limits)?)?;
    let usable = |name: &String| {
        let catalog = Catalog::builtin();
        let format = catalog.get(name).ok()?.clone().bind(engine.vocab());
        let request = ToolRequest { reasoning: Reasoning::Off, ..request.clone() };
        engine.compile(format.lower(&request).ok()?.grammar().clone()).ok()
    };
    Ok(Catalog::builtin().names().into_iter().partition(|name| usable(name).is_some()))
}
