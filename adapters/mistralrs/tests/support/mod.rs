//! Test support: the shared host, tools, and logits processors that simulate models.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use candle_core::{Device, Result, Tensor};
use louver_mistralrs::{
    Draw, Generation, LimitPolicy, Louver, Plan, Reasoning, RunOptions, SchemaOptions, ToolChoice,
    Turn, Whitespace,
};
use mistralrs::{
    CustomLogitsProcessor, Model, ModelDType, RequestBuilder, SamplingParams, TextMessageRole,
    TextModelBuilder,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// A turn whose calls have no ids: these differ from run to run, whatever the seed.
pub(crate) fn without_ids(mut turn: Turn) -> Turn {
    turn.calls.iter_mut().for_each(|call| call.id.clear());
    turn
}

pub(crate) struct Host {
    pub(crate) model: Model,
    pub(crate) louver: Louver,
}

static HOST: OnceCell<Host> = OnceCell::const_new();

/// Whether the host's prefix cache is on. With it, mistralrs 0.8.1 panics on batches of sequences
/// that continue cached prompts of different lengths (`shape mismatch` in `clone_in_cache`), with
/// and without Louver. So it is on for sequential requests only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrefixCache {
    On,
    Off,
}

/// The shared host.
pub(crate) async fn host() -> &'static Host {
    HOST.get_or_init(|| load_host(PrefixCache::Off)).await
}

/// The tiny model's builder.
pub(crate) fn builder() -> TextModelBuilder {
    let tiny = louver_tiny_model::ensure(&std::env::temp_dir().join("louver-tests")).unwrap();
    TextModelBuilder::new(tiny.dir.display()).with_force_cpu().with_dtype(ModelDType::F32)
}

/// Loads a host with a short chat template, which shows no tools. The comment in it makes detection
/// choose Qwen3's wire format.
pub(crate) async fn load_with_template(generation_prompt: &str) -> Host {
    let template = format!(
        "{{#- <tool_call>\n{{\"name\": </think> -#}}\
         {{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}{generation_prompt}"
    );
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!(
        "louver-tests-{}-{}.jinja",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, template).unwrap();
    let (model, louver) =
        Louver::load(builder().with_jinja_explicit(file.display().to_string())).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    Host { model, louver }
}

/// Loads a separate host.
pub(crate) async fn load_host(cache: PrefixCache) -> Host {
    let mut builder = builder();
    if cache == PrefixCache::Off {
        builder = builder.with_prefix_cache_n(None);
    }
    let (model, louver) = Louver::load(builder).await.unwrap();
    Host { model, louver }
}

/// Two tools: one with every bounded kind of argument, one with a pattern and alternatives.
pub(crate) fn tools() -> Value {
    json!([
        {"type": "function", "function": {"name": "weather", "description": "Weather of a city.", "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Oslo", "Lima", "Nairobi"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "fields": {"type": "array", "items": {"enum": ["rain", "wind", "sun"]}, "minItems": 1, "maxItems": 3},
                "note": {"type": "string", "maxLength": 12},
            },
            "required": ["city", "days", "fields"],
            "additionalProperties": false,
        }}},
        {"type": "function", "function": {"name": "book", "description": "Books a room.", "parameters": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
                "guest": {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 8}, {"type": "null"}]},
                "breakfast": {"type": "boolean"},
            },
            "required": ["code", "guest", "breakfast"],
            "additionalProperties": false,
        }}},
    ])
}

/// The schema of a response format.
pub(crate) fn response_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "maxLength": 16},
            "score": {"type": "integer", "minimum": -3, "maximum": 120},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        },
        "required": ["answer", "score", "tags"],
        "additionalProperties": false,
    })
}

/// A plan for the tools. White space is fixed, so that random output is not mostly white space.
pub(crate) fn plan(louver: &Louver, choice: ToolChoice) -> Plan {
    let options = SchemaOptions::default().with_whitespace(Whitespace::PythonLike);
    louver
        .tools(tools())
        .choice(choice)
        .reasoning(Reasoning::Off)
        .schema_options(options)
        .build()
        .unwrap()
}

/// A request with temperature 1 and no truncation; the SDK's default is greedy.
pub(crate) fn request(text: &str) -> RequestBuilder {
    let request = RequestBuilder::new().add_message(TextMessageRole::User, text);
    request.set_sampling(SamplingParams::neutral()).set_sampler_max_len(2000)
}

/// The host draws.
pub(crate) fn host_draws() -> RunOptions {
    RunOptions::default().with_draw(Draw::Host)
}

pub(crate) fn seeded(seed: u64) -> RunOptions {
    RunOptions::default().with_seed(seed)
}

/// As [`seeded`], truncated at the length limit.
pub(crate) fn seeded_truncating(seed: u64) -> RunOptions {
    seeded(seed).with_limit_policy(LimitPolicy::Off)
}

/// Runs one request to its end.
pub(crate) async fn run_request(
    host: &Host,
    plan: &Plan,
    request: RequestBuilder,
    options: RunOptions,
) -> Generation {
    plan.stream_with(&host.model, request, options).await.unwrap().finish().await.unwrap()
}

/// Checks that all calls use the given tools and match their schemas.
pub(crate) fn check_calls(turn: &Turn, tools: &Value) {
    for call in &turn.calls {
        let tool = tools.as_array().unwrap().iter().find(|t| t["function"]["name"] == *call.name);
        let tool = tool.unwrap_or_else(|| panic!("there is no tool {:?}", call.name));
        check_json(&call.arguments, &tool["function"]["parameters"]);
    }
}

/// Checks that the text is JSON that matches the schema.
pub(crate) fn check_json(text: &str, schema: &Value) {
    let value: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text:?}"));
    if let Err(error) = jsonschema::validate(schema, &value) {
        panic!("{error} in {text}");
    }
}

/// A processor that raises the logits of some tokens at every step.
pub(crate) fn prefer_tokens(tokens: Vec<u32>, strength: f32) -> Arc<dyn CustomLogitsProcessor> {
    Arc::new(move |logits: &Tensor, _: &[u32]| raise(logits, &tokens, strength))
}

/// A processor that forces a token at the first step and raises others afterwards.
pub(crate) fn force_first_then_prefer(
    first: u32,
    then: Vec<u32>,
    strength: f32,
) -> Arc<dyn CustomLogitsProcessor> {
    let begun = AtomicBool::new(false);
    Arc::new(move |logits: &Tensor, _: &[u32]| {
        if begun.swap(true, Ordering::Relaxed) {
            raise(logits, &then, strength)
        } else {
            raise(logits, &[first], 1e9)
        }
    })
}

fn raise(logits: &Tensor, tokens: &[u32], strength: f32) -> Result<Tensor> {
    let mut row = logits.to_vec1::<f32>()?;
    tokens.iter().for_each(|token| row[*token as usize] += strength);
    let width = row.len();
    Tensor::from_vec(row, width, &Device::Cpu)
}

/// The id of an added token.
pub(crate) fn token_id(louver: &Louver, text: &str) -> u32 {
    let vocab = louver.engine().vocab();
    let mut ids = (0..vocab.width() as u32).map(louver::ids::TokenId::from_raw);
    let found = ids.find(|token_id| {
        vocab.special_name(*token_id) == Some(text)
            || vocab.bytes(*token_id) == Some(text.as_bytes())
    });
    found.unwrap_or_else(|| panic!("no token {text}")).raw()
}

/// The ids that end a generation.
pub(crate) fn stop_ids(louver: &Louver) -> Vec<u32> {
    louver.engine().vocab().stops().iter().map(|token_id| token_id.raw()).collect()
}
