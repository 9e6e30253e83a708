//! The settings of a model: what its requests are run with, unless they say otherwise. Each is a
//! member of the configuration, and of a model's table in it.

use louver::engine::{EngineOptions, PrepareBudget};
use louver::front::json_schema::{Policy, SchemaOptions};
use louver::limits::Limits;
use louver_formats::{Reasoning, Strictness};
use louver_mistralrs::Draw;
use serde::{Deserialize, Serialize, Serializer};

use crate::limits::{RequestLimits, SOURCE_BYTES, Seconds, zeros};

/// Which tools' arguments must match their schema. Those of forced calls always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrictTools {
    /// Those of tools whose `strict` is true, as in OpenAI's API.
    #[default]
    Auto,
    /// Every tool's.
    All,
    /// None, whatever `strict` says.
    Off,
}

impl From<StrictTools> for Strictness {
    fn from(strict: StrictTools) -> Strictness {
        match strict {
            StrictTools::Auto => Strictness::AsFlagged,
            StrictTools::All => Strictness::All,
            StrictTools::Off => Strictness::Off,
        }
    }
}

/// The reasoning of requests that do not say whether they want any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningDefault {
    /// What the chat template does by default; the model may reason.
    #[default]
    Optional,
    /// None.
    Off,
    /// The turn begins with reasoning, unless the request turns it off.
    Required,
}

impl ReasoningDefault {
    /// The grammar's reasoning, and the chat template's `enable_thinking`, of a request that turns
    /// reasoning on, off, or does not say.
    pub(crate) fn of_request(self, is_on: Option<bool>) -> (Reasoning, Option<bool>) {
        match (is_on, self) {
            (Some(false), _) | (None, ReasoningDefault::Off) => (Reasoning::Off, Some(false)),
            (_, ReasoningDefault::Required) => (Reasoning::Required, Some(true)),
            (is_on, _) => (Reasoning::Optional, is_on),
        }
    }
}

/// Threads and caches of a model's engine: see [`EngineOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Threads that make masks before they are needed; with 0 none are.
    pub background_threads: usize,
    /// Memory of mask entries and masks that all grammars share, in bytes. Models with equal
    /// vocabularies share it; the largest value holds.
    pub pool_bytes: usize,
    /// Memory of the grammar cache, in bytes.
    pub grammar_cache_bytes: usize,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let EngineOptions { background_threads, pool_bytes, grammar_cache_bytes, .. } =
            EngineOptions::default();
        EngineSettings { background_threads, pool_bytes, grammar_cache_bytes }
    }
}

impl EngineSettings {
    /// Highest number of background threads.
    const MAX_THREADS: usize = 64;

    /// What is wrong, if anything: the member, and what it must be.
    pub(crate) fn fault(&self) -> Option<(&'static str, String)> {
        let problem = format!("must be at most {}", EngineSettings::MAX_THREADS);
        (self.background_threads > EngineSettings::MAX_THREADS)
            .then_some(("background_threads", problem))
    }
}

/// Preparation: masks made on a background thread while the prompt is processed. Its fuel is
/// `limits.schema.prepare_fuel`. See [`PrepareBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PreparationSettings {
    /// Whether masks are prepared at all.
    pub enabled: bool,
    /// Maximum number of masks to make for one request.
    pub masks: usize,
    /// Maximum number of configurations to explore.
    pub steps: usize,
    /// Maximum number of configurations at the ends of tokens.
    pub candidates: usize,
}

impl Default for PreparationSettings {
    fn default() -> Self {
        let PrepareBudget { masks, steps, candidates, .. } = PrepareBudget::default();
        PreparationSettings { enabled: true, masks, steps, candidates }
    }
}

impl PreparationSettings {
    /// The budget of one preparation; `None` if there is none.
    pub(crate) fn budget(&self) -> Option<PrepareBudget> {
        let budget = PrepareBudget::default()
            .with_masks(self.masks)
            .with_steps(self.steps)
            .with_candidates(self.candidates);
        self.enabled.then_some(budget)
    }
}

/// The limits of requests that a model may set for itself: see [`RequestLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelRequestLimits {
    /// Maximum number of concurrent generations of this model. The server's limit holds for all
    /// models together.
    pub concurrent: usize,
    /// Time limit for a request, including waiting.
    pub timeout_s: Seconds,
    /// Maximum and default tokens of one generation.
    pub max_tokens: usize,
    /// Maximum bytes of a rendered prompt.
    pub prompt_bytes: usize,
}

impl From<RequestLimits> for ModelRequestLimits {
    fn from(limits: RequestLimits) -> Self {
        let RequestLimits { concurrent, timeout_s, max_tokens, prompt_bytes, .. } = limits;
        ModelRequestLimits { concurrent, timeout_s, max_tokens, prompt_bytes }
    }
}

impl Default for ModelRequestLimits {
    fn default() -> Self {
        RequestLimits::default().into()
    }
}

impl ModelRequestLimits {
    /// What is wrong: members, and what they must be.
    pub(crate) fn faults(&self, server: &RequestLimits) -> Vec<(&'static str, String)> {
        let mut out = zeros(&[
            ("concurrent", self.concurrent as u64),
            ("max_tokens", self.max_tokens as u64),
            ("prompt_bytes", self.prompt_bytes as u64),
        ]);
        if self.concurrent > server.concurrent {
            out.push(("concurrent", "must be at most the server's".to_owned()));
        }
        out
    }
}

/// The effective limits of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelLimits {
    /// Limits of its requests.
    pub requests: ModelRequestLimits,
    /// Limits of schemas, grammars and parsers. Not `source_bytes`, which is
    /// the server's `http.body_bytes`.
    #[serde(serialize_with = "without_source_bytes")]
    pub schema: Limits,
}

/// The effective settings of a model: its own members where it has them, and the configuration's
/// where not. Made by [`Config::settings`](super::Config::settings).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelSettings {
    /// Handling of schema keywords that cannot be enforced.
    pub policy: Policy,
    /// Which tools' arguments must match their schema.
    pub strict_tools: StrictTools,
    /// The reasoning of requests that do not say.
    pub reasoning: ReasoningDefault,
    /// Maximum reasoning tokens of requests that do not say.
    pub reasoning_budget: Option<u32>,
    /// Who draws.
    pub draw: Draw,
    /// Schema options. Their policy is the one above.
    #[serde(serialize_with = "without_policy")]
    pub schema_options: SchemaOptions,
    /// Threads and caches.
    pub engine: EngineSettings,
    /// Masks that are made ahead.
    pub preparation: PreparationSettings,
    /// Limits.
    pub limits: ModelLimits,
}

impl ModelSettings {
    /// The settings as TOML, as a model's table in a configuration may have them.
    pub fn to_toml(&self) -> String {
        let mut settings = serde_json::to_value(self).unwrap_or_default();
        // TOML has no null.
        if let Some(members) = settings.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        toml::to_string(&settings).unwrap_or_default()
    }
}

/// Serialises schema options without their policy, as configurations have them.
fn without_policy<S: Serializer>(options: &SchemaOptions, to: S) -> Result<S::Ok, S::Error> {
    serialize_without("policy", options, to)
}

/// Serialises limits of schemas as configurations have them.
fn without_source_bytes<S: Serializer>(limits: &Limits, to: S) -> Result<S::Ok, S::Error> {
    serialize_without(SOURCE_BYTES, limits, to)
}

fn serialize_without<S: Serializer>(
    member: &str,
    options: &impl Serialize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut members = serde_json::to_value(options).map_err(serde::ser::Error::custom)?;
    if let Some(members) = members.as_object_mut() {
        members.remove(member);
        members.retain(|_, value| !value.is_null());
    }
    members.serialize(serializer)
}
