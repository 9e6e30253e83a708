//! The request: what one turn may be.

mod builtin;
mod checks;
mod choice;
mod custom;
mod declared_types;
mod errors;
mod function;
mod members;
mod parse;
mod response;
mod schema_shape;
mod tool;

pub use self::builtin::BuiltinTool;
pub(crate) use self::checks::STOP;
pub use self::choice::{ToolChoice, ToolChoiceError};
pub(crate) use self::custom::CustomError;
pub use self::custom::{CUSTOM_INPUT, CustomInput, CustomTool};
pub(crate) use self::declared_types::declared_types;
pub use self::errors::{
    ConstraintError, LowerError, PartErrors, RequestError, RequestErrors, RequestFault,
};
pub use self::function::FunctionTool;
pub(crate) use self::members::MAX_TOOL_NAME_BYTES;
pub use self::members::{MemberError, MemberErrorKind, NEUTRAL_TOOL_MEMBERS, ToolShape};
pub(crate) use self::parse::RESPONSE_POINTER;
pub use self::response::{ResponseFormat, ResponseTag};
pub use self::tool::{CallKind, Tool};

use std::borrow::Cow;
use std::num::NonZeroU32;

use louver::engine::Engine;
use louver::front::json_schema::{Registry, SchemaError, SchemaErrorReason, SchemaOptions};
use louver::limits::Limits;
use louver::spec::json::Json;
use louver::with_methods;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What one turn may be.
// Many fields: the members of a request, each independent of the others.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The offered tools. Their indices are those in the JSON pointers of errors.
    pub tools: Vec<Tool>,
    /// The names of the tools that may be called. `None`: all tools.
    pub allowed: Option<Vec<String>>,
    /// Whose schemas are enforced.
    pub strictness: Strictness,
    /// Whether a tool, and which tool, must be called.
    pub tool_choice: ToolChoice,
    /// How many calls the turn may have.
    pub parallel: Parallel,
    /// Whether there is a reasoning block.
    pub reasoning: Reasoning,
    /// The bound on reasoning. When it is reached, only the end of the block can follow.
    pub reasoning_budget: Option<ReasoningBudget>,
    /// Stop strings. Free text and the turn end with the first of them, which is not part of the
    /// text. A constrained response ends there, too, even if its structure is not complete: see
    /// [`Extractor::stopped_at`](crate::Extractor::stopped_at).
    pub stop: Vec<String>,
    /// Texts that free text must not contain, in addition to those of the format.
    pub bans: Vec<String>,
    /// The format of the response. `None`: free text.
    pub response_format: Option<ResponseFormat>,
    /// The options of JSON Schemas.
    pub schema_options: SchemaOptions,
    /// The limits of lowering.
    pub limits: Limits,
    /// Schema documents that references may lead to.
    pub registry: Registry,
    /// When the schemas of tools are lowered. Not part of the public interface.
    #[doc(hidden)]
    pub lazy: LazyTools,
}

with_methods!(ToolRequest {
    with_tools: tools = Vec<Tool>,
    with_allowed: allowed = impl Into<Option<Vec<String>>>,
    with_strictness: strictness = Strictness,
    with_tool_choice: tool_choice = ToolChoice,
    with_parallel: parallel = Parallel,
    with_reasoning: reasoning = Reasoning,
    with_reasoning_budget: reasoning_budget = impl Into<Option<ReasoningBudget>>,
    with_stop: stop = Vec<String>,
    with_bans: bans = Vec<String>,
    with_response_format: response_format = impl Into<Option<ResponseFormat>>,
    with_schema_options: schema_options = SchemaOptions,
    with_limits: limits = Limits,
    with_registry: registry = Registry,
    #[doc(hidden)]
    with_lazy: lazy = LazyTools,
});

/// When the schema of a tool's arguments is lowered. A schema is lowered later only if it certainly
/// has no errors, so that lowering a request always finds all errors. Tests compare the two.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LazyTools {
    /// With the request.
    Never,
    /// When a parse reaches the tool's arguments, in requests with at least this number of tools.
    From(usize),
}

impl Default for LazyTools {
    fn default() -> Self {
        LazyTools::From(2)
    }
}

/// How many calls a turn may have, if the family allows several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallel {
    /// Any number.
    #[default]
    Any,
    /// One at most.
    One,
    /// At most this number.
    AtMost(NonZeroU32),
}

/// Whose schemas are enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Every tool's.
    #[default]
    All,
    /// Those of tools with `strict`, and of all tools if a call is forced. The arguments of other
    /// tools are any JSON object; in styles other than JSON, declared arguments have their types.
    AsFlagged,
    /// None, whatever `strict` says, unless a call is forced.
    Off,
}

/// The rule by which the schema of a function is enforced or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SchemaRule {
    /// Enforced, because a call is required.
    Required,
    /// Enforced, as those of all functions ([`Strictness::All`]).
    All,
    /// Enforced, because the function is `strict` ([`Strictness::AsFlagged`]).
    Strict,
    /// Not enforced, because the function is not `strict` ([`Strictness::AsFlagged`]).
    NotStrict,
    /// Not enforced, whether the function is `strict` or not ([`Strictness::Off`]).
    Off,
}

impl SchemaRule {
    /// Whether the schema is enforced. Otherwise, the arguments are any JSON object; in styles
    /// other than JSON, declared arguments have their types.
    pub fn is_enforced(self) -> bool {
        matches!(self, SchemaRule::Required | SchemaRule::All | SchemaRule::Strict)
    }
}

/// Whether a turn begins with a reasoning block, in families that have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// The turn may begin with a block.
    #[default]
    Optional,
    /// No block: reasoning is off, or the prompt has already closed the block.
    Off,
    /// The turn begins with a block.
    Required,
    /// The prompt has already opened the block: the turn begins inside.
    Opened,
}

/// A bound on the reasoning of a turn, without its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningBudget {
    /// At most this number of tokens that begin in the reasoning. If the end marker is text in the
    /// vocabulary, the token that begins it counts.
    Tokens(u32),
    /// At most this number of code points.
    Characters(u32),
}

impl ToolRequest {
    /// The schema of a function's arguments that is enforced.
    pub(crate) fn arguments_schema<'a>(&self, function: &'a FunctionTool) -> Cow<'a, Json> {
        if self.schema_rule(function).is_enforced() {
            Cow::Borrowed(&function.parameters)
        } else {
            Cow::Owned(any_object())
        }
    }

    /// Whether a function's schema is enforced, and why.
    pub(crate) fn schema_rule(&self, function: &FunctionTool) -> SchemaRule {
        match self.strictness {
            _ if self.is_forced() => SchemaRule::Required,
            Strictness::All => SchemaRule::All,
            Strictness::AsFlagged if function.strict => SchemaRule::Strict,
            Strictness::AsFlagged => SchemaRule::NotStrict,
            Strictness::Off => SchemaRule::Off,
        }
    }

    /// The error of function `k` if its schema is not enforced, by the rule of its tool.
    pub(crate) fn unenforced(&self, k: usize, function: &FunctionTool) -> Option<SchemaError> {
        let rule = self.schema_rule(function);
        let reason = match rule {
            SchemaRule::NotStrict => {
                "set `strict: true` to enforce the schema; other objects are accepted"
            }
            _ => "schemas of tools are off, whatever `strict` says; other objects are accepted",
        };
        let is_relaxed = !rule.is_enforced() && function.parameters != any_object();
        is_relaxed.then(|| SchemaError {
            pointer: function.parameters_pointer(k),
            keyword: String::new(),
            reason: SchemaErrorReason::Unenforced(reason.into()),
        })
    }

    /// Takes over the properties of an engine that lowering depends on: its limits, its registry
    /// unless the request has one, and the special tokens of its vocabulary.
    pub(crate) fn apply_engine(&mut self, engine: &Engine) {
        self.limits = engine.options().limits.clone();
        if self.registry.is_empty() {
            self.registry = engine.options().registry.clone();
        }
        if let Some(ResponseFormat::StructuralTag(tag)) = &mut self.response_format {
            let specials = engine.vocab().specials().iter().map(|(_, name)| name.clone());
            tag.options.special_tokens.extend(specials);
        }
    }
}

/// The schema of any object.
fn any_object() -> Json {
    Json::from(json!({"type": "object"}))
}
