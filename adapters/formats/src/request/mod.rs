//! The request: what one turn may be.

mod answer;
mod builtin;
mod checks;
mod custom;
mod errors;
mod parse;

pub use self::answer::AnswerTag;
pub use self::builtin::Builtin;
pub(crate) use self::custom::INPUT;
pub use self::custom::{CustomError, CustomErrorReason, CustomInput, CustomTool};
pub use self::errors::{ConstraintError, LowerError, PartErrors, RequestError, RequestFault};
pub(crate) use self::parse::RESPONSE_POINTER;

use std::borrow::Cow;
use std::num::NonZeroU32;

use louver::engine::Engine;
use louver::front::json_schema::{Registry, SchemaError, SchemaErrorReason, SchemaOptions};
use louver::limits::Limits;
use louver::spec::json::Json;
use louver::spec::tools::{Tool, ToolChoice};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What one turn may be.
// Many fields: the members of a request, each independent of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRequest {
    /// The offered functions.
    pub tools: Vec<Tool>,
    /// The offered custom tools, which are called with text.
    pub customs: Vec<CustomTool>,
    /// The offered built-in tools.
    pub builtins: Vec<Builtin>,
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
    /// text.
    pub stop: Vec<String>,
    /// Texts that free text must not contain, in addition to those of the format.
    pub bans: Vec<String>,
    /// The JSON Schema of the answer. If tools may be called, the turn is calls or the answer; if a
    /// call is forced, the schema is ignored.
    pub response_format: Option<Json>,
    /// A structural tag that constrains the answer. It excludes a schema and tools that may be
    /// called.
    pub answer_tag: Option<AnswerTag>,
    /// The options of JSON Schemas.
    pub schema_options: SchemaOptions,
    /// The limits of lowering.
    pub limits: Limits,
    /// Schema documents that references may lead to.
    pub registry: Registry,
    /// When the schemas of tools are lowered.
    pub lazy: LazyTools,
}

/// When the schema of a tool's arguments is lowered. A schema is lowered later only if it certainly
/// has no errors, so that lowering a request always finds all errors.
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
    /// tools are any JSON object.
    AsFlagged,
}

/// Whether a turn begins with a reasoning block, in families that have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// The kind of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A function or a built-in tool, whose arguments are JSON.
    #[default]
    Function,
    /// A custom tool, whose input is text.
    Custom,
}

impl CallKind {
    pub(crate) fn is_function(&self) -> bool {
        *self == CallKind::Function
    }
}

impl ToolRequest {
    /// The schema of a tool's arguments that is enforced.
    pub(crate) fn arguments_schema<'a>(&self, tool: &'a Tool) -> Cow<'a, Json> {
        if self.is_enforced(tool) {
            Cow::Borrowed(&tool.parameters)
        } else {
            Cow::Owned(any_object())
        }
    }

    /// Whether a tool's schema is enforced.
    fn is_enforced(&self, tool: &Tool) -> bool {
        self.strictness == Strictness::All || tool.strict || self.is_forced()
    }

    /// Whether the turn must have a call.
    pub(crate) fn is_forced(&self) -> bool {
        matches!(self.tool_choice, ToolChoice::Required | ToolChoice::Named(_))
    }

    /// Whether the turn may call the tool.
    pub(crate) fn may_call(&self, name: &str) -> bool {
        let is_allowed =
            self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|a| a == name));
        is_allowed
            && match &self.tool_choice {
                ToolChoice::Auto | ToolChoice::Required => true,
                ToolChoice::None => false,
                ToolChoice::Named(named) => named == name,
            }
    }

    /// The tools whose schema is not enforced as they are not `strict`: their indices, and an error
    /// for each.
    pub(crate) fn unflagged(&self) -> Vec<(usize, SchemaError)> {
        let tools = self.tools.iter().enumerate().filter(|(_, tool)| {
            !self.is_enforced(tool) && self.may_call(&tool.name) && tool.parameters != any_object()
        });
        let error = |(k, tool): (usize, &Tool)| {
            let reason = "the tool is not flagged strict: any object".into();
            let error = SchemaError {
                pointer: tool.parameters_pointer(self.position(k)),
                keyword: String::new(),
                reason: SchemaErrorReason::Unsupported(reason),
            };
            (k, error)
        };
        tools.map(error).collect()
    }

    /// The index of function `k` among all tools of the request.
    pub(crate) fn position(&self, k: usize) -> usize {
        let index = |builtin: &Builtin| {
            let rest = builtin.pointer.strip_prefix("/tools/")?;
            rest.split('/').next()?.parse().ok()
        };
        let customs = self.customs.iter().filter_map(CustomTool::index);
        let mut others: Vec<usize> =
            self.builtins.iter().filter_map(index).chain(customs).collect();
        others.sort_unstable();
        others.into_iter().fold(k, |k, other| if other <= k { k + 1 } else { k })
    }

    /// Takes over the properties of an engine that lowering depends on: its limits, its registry
    /// unless the request has one, and the special tokens of its vocabulary.
    pub(crate) fn apply_engine(&mut self, engine: &Engine) {
        self.limits = engine.options().limits.clone();
        if self.registry.is_empty() {
            self.registry = engine.options().registry.clone();
        }
        if let Some(answer) = &mut self.answer_tag {
            let specials = engine.vocab().specials().iter().map(|(_, name)| name.clone());
            answer.options.special_tokens.extend(specials);
        }
    }

    /// The number of tools that are called as functions are: all but the built-in tools.
    pub(crate) fn functions(&self) -> usize {
        self.tools.len() + self.customs.len()
    }

    /// Names and kinds in the order of a plan's tools.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, CallKind)> {
        let functions = self.tools.iter().map(|tool| (tool.name.as_str(), CallKind::Function));
        let customs = self.customs.iter().map(|custom| (custom.name.as_str(), CallKind::Custom));
        functions
            .chain(customs)
            .chain(self.builtins.iter().map(|b| (b.name.as_str(), CallKind::Function)))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds().map(|(name, _)| name)
    }
}

/// The schema of any object.
fn any_object() -> Json {
    Json::from(json!({"type": "object"}))
}
