//! Test support: a separate server per test, and a client.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use louver_mistralrs::Louver;
use louver_server::{App, Config, ModelConfig, ServedModel, load, serve};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Timeout of all operations.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// A logits processor of the host.
pub(crate) type Processor = Arc<dyn mistralrs::CustomLogitsProcessor>;

pub(crate) struct Server {
    pub(crate) base: String,
    pub(crate) client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
}

/// A request of a table, and the check of its answer.
pub(crate) struct TableRequest {
    pub(crate) name: String,
    pub(crate) path: &'static str,
    pub(crate) body: String,
    pub(crate) check: Box<dyn Fn(&Answer) + Send>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    /// The error's code and pointer.
    pub(crate) fn error(&self) -> (u16, String, Option<String>) {
        let body = self.json();
        let text = |name: &str| body["error"][name].as_str().map(str::to_owned);
        (self.status, text("code").unwrap_or_default(), text("param"))
    }
}

/// Parses a configuration and adds the model. Its models without a path are the tiny one.
pub(crate) fn config(toml: &str) -> Config {
    let mut config: Config = toml::from_str(toml).unwrap();
    let tiny = louver_tiny_model::ensure(&std::env::temp_dir().join("louver-tests")).unwrap();
    for model in config.models.iter_mut().filter(|model| model.model.is_empty()) {
        model.model = tiny.dir.display().to_string();
        model.device = "cpu".parse().unwrap();
    }
    config.models.push(ModelConfig {
        model: tiny.dir.display().to_string(),
        name: Some("tiny".to_owned()),
        aliases: vec!["small".to_owned()],
        device: "cpu".parse().unwrap(),
        dtype: Some("f32".to_owned()),
        ..ModelConfig::default()
    });
    config
}

impl Server {
    pub(crate) async fn start(toml: &str) -> Server {
        Server::run(load(config(toml)).await.unwrap()).await
    }

    /// Starts a server with an additional logits processor.
    pub(crate) async fn with_processor(toml: &str, processor: Processor) -> Server {
        Server::with_processors(toml, vec![processor]).await.0
    }

    /// Starts a server with additional logits processors. Also returns Louver's part of its model.
    pub(crate) async fn with_processors(
        toml: &str,
        processors: Vec<Processor>,
    ) -> (Server, Louver) {
        let config = config(toml);
        let builder = mistralrs::TextModelBuilder::new(&config.models[0].model)
            .with_force_cpu()
            .with_dtype(mistralrs::ModelDType::F32)
            .with_prefix_cache_n(None);
        let (model, louver) = Louver::load(builder).await.unwrap();
        let mut served = ServedModel::new(&config.models[0], model, louver.clone());
        served.processors = processors;
        (Server::run(App::new(config, vec![served])).await, louver)
    }

    async fn run(app: App) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(serve(listener, app, async { drop(stopped.await) }));
        let client = reqwest::Client::builder().timeout(TIMEOUT).build().unwrap();
        Server { base, client, stop: Some(stop), serving }
    }

    pub(crate) fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Answer { status, headers, text: answer.text().await.unwrap() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.client.get(format!("{}{path}", self.base))).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self
            .client
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/json");
        self.send(request.body(body)).await
    }

    pub(crate) async fn chat(&self, body: &Value) -> Answer {
        self.post("/v1/chat/completions", body.to_string()).await
    }

    /// The chunks of a streamed response without `[DONE]`, which must be present.
    pub(crate) async fn stream(&self, body: &Value) -> Vec<Value> {
        let mut body = body.clone();
        body["stream"] = true.into();
        let answer = self.chat(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        let mut chunks: Vec<&str> = data(&answer.text);
        assert_eq!(chunks.pop(), Some("[DONE]"), "{}", answer.text);
        chunks.into_iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect()
    }

    /// Starts a stream and returns after its first bytes.
    pub(crate) async fn begin(&self, body: &Value) -> (reqwest::Response, String) {
        let mut body = body.clone();
        body["stream"] = true.into();
        let request = self.client.post(format!("{}/v1/chat/completions", self.base));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let mut answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let first = answer.chunk().await.unwrap().unwrap();
        (answer, String::from_utf8(first.to_vec()).unwrap())
    }

    /// The sum of a counter or gauge over all labels.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.text;
        let of_name =
            |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let lines: Vec<&str> = text.lines().filter(of_name).collect();
        assert!(!lines.is_empty(), "no metric {name} in {text}");
        lines.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Waits until a metric has this value.
    pub(crate) async fn wait_for(&self, name: &str, value: f64) {
        let begun = Instant::now();
        while self.metric(name).await != value {
            assert!(begun.elapsed() < TIMEOUT, "{name} is never {value}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn signal_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits for the end of the server.
    pub(crate) async fn stopped(self) {
        tokio::time::timeout(TIMEOUT, self.serving)
            .await
            .expect("the server does not stop")
            .unwrap()
            .unwrap();
    }
}

/// The rest of a stream.
pub(crate) async fn rest(answer: reqwest::Response) -> String {
    let mut text = String::new();
    let mut bytes = answer.bytes_stream();
    while let Some(piece) = bytes.next().await {
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    text
}

/// The data of server-sent events.
pub(crate) fn data(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

/// A seed that the same test has not used yet. It does not depend on other tests: each runs in a
/// thread of its own.
pub(crate) fn seed() -> u64 {
    thread_local!(static NEXT: Cell<u64> = const { Cell::new(1) });
    NEXT.replace(NEXT.get() + 1)
}

pub(crate) fn tools() -> Value {
    json!([
        {"type": "function", "function": {"name": "weather", "strict": true, "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Oslo", "Lima"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "note": {"type": "string", "maxLength": 8},
            },
            "required": ["city", "days", "note"],
            "additionalProperties": false,
        }}},
        {"type": "function", "function": {"name": "book", "strict": true, "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, "breakfast": {"type": "boolean"}},
            "required": ["code", "breakfast"],
            "additionalProperties": false,
        }}},
    ])
}

/// An unconstrained request, without reasoning so that random output ends.
pub(crate) fn ask(more: Value) -> Value {
    let mut body = json!({
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 60,
        "seed": seed(),
        "reasoning_effort": "none",
        "louver": {"whitespace": "python_like"},
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// A request that generates thousands of tokens.
pub(crate) fn long_request() -> Value {
    let schema = json!({"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3000});
    ask(json!({
        "max_tokens": 7000,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }))
}

/// Limits under which the schema of [`expensive_format`] is not rejected.
pub(crate) const NO_FUEL_LIMIT: &str = "[limits.schema]\ncompile_fuel = 1000000000000\n\
                                        automaton_states = 100000000\ncompiled_states = 100000000\n";

/// A response format whose automaton has a hundred million states, so that its compilation never
/// ends within the test.
pub(crate) fn expensive_format() -> Value {
    let schema = json!({"type": "string", "not": {"pattern": "^(a|b)*a(a|b){26}$"}});
    json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
}
