//! What a turn may be, and why a request cannot become a grammar.

use louver::front::json_schema::{SchemaErrors, SchemaOptions};
use louver::ir::GrammarError;
use louver::limits::Limits;
use louver::spec::json::Json;
use louver::spec::tools::{Tool, ToolChoice, ToolChoiceError, ToolErrors};
use serde_json::json;

/// One turn's demands.
#[derive(Clone, Debug, Default)]
pub struct ToolRequest {
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// Whether and which of them must be called.
    pub tool_choice: ToolChoice,
    /// How many calls the turn may have.
    pub parallel: Parallel,
    /// What the reasoning block may be.
    pub reasoning: Reasoning,
    /// The JSON Schema of an answer. With tools to choose from, the turn is calls or such an answer; where a call is
    /// forced, it plays no part.
    pub response_format: Option<Json>,
    /// How schemas are read.
    pub schema_options: SchemaOptions,
    /// What schemas may cost.
    pub limits: Limits,
}

/// How many calls a turn may have, if the family allows several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallel {
    /// Any number.
    #[default]
    Any,
    /// One at most.
    One,
}

/// What the reasoning block at the beginning of a turn may be, in families that have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// The turn may begin with a block.
    #[default]
    Optional,
    /// There is no block: reasoning is off, or the prompt has already closed it.
    Off,
    /// The turn begins with a block.
    Required,
    /// The prompt has already opened the block: the turn begins inside.
    Opened,
}

/// A request body that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Its `tools`.
    #[error(transparent)]
    Tools(#[from] ToolErrors),
    /// Its `tool_choice`.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// Another member.
    #[error("{pointer}: must be {expected}")]
    Malformed {
        /// JSON pointer of the member.
        pointer: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl ToolRequest {
    /// Reads `tools`, `tool_choice`, `parallel_tool_calls` and `response_format` of an OpenAI request body; its other
    /// members do not matter here. Cost: linear.
    pub fn parse(body: &Json) -> Result<ToolRequest, RequestError> {
        let malformed = |pointer, expected| RequestError::Malformed { pointer, expected };
        let Json::Object(members) = body else {
            return Err(malformed("", "an object"));
        };
        let tools = match members.get("tools") {
            None | Some(Json::Null) => Vec::new(),
            Some(tools) => Tool::parse_list(tools)?,
        };
        let tool_choice = ToolChoice::parse(members.get("tool_choice").unwrap_or(&Json::Null))?;
        tool_choice.check(&tools)?;
        let parallel = match members.get("parallel_tool_calls") {
            None | Some(Json::Null | Json::Bool(true)) => Parallel::Any,
            Some(Json::Bool(false)) => Parallel::One,
            Some(_) => return Err(malformed("/parallel_tool_calls", "a boolean")),
        };
        let response = members.get("response_format").unwrap_or(&Json::Null);
        let response_format = match (response.get("type").and_then(Json::as_str), response) {
            (_, Json::Null) | (Some("text"), _) => None,
            (Some("json_object"), _) => Some(Json::from(json!({"type": "object"}))),
            (Some("json_schema"), _) => match response.pointer("/json_schema/schema") {
                Some(schema @ (Json::Object(_) | Json::Bool(_))) => Some(schema.clone()),
                _ => return Err(malformed(RESPONSE_POINTER, "a JSON Schema")),
            },
            _ => return Err(malformed("/response_format/type", "\"text\", \"json_object\" or \"json_schema\"")),
        };
        Ok(ToolRequest { tools, tool_choice, parallel, response_format, ..ToolRequest::default() })
    }
}

/// Where `response_format` stands in a request, for pointers.
pub(crate) const RESPONSE_POINTER: &str = "/response_format/json_schema/schema";

/// Why a request cannot become a grammar.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The tool choice does not fit the tools.
    #[error(transparent)]
    Choice(#[from] ToolChoiceError),
    /// Schemas that cannot be enforced: all errors of all of them, with pointers into the request such as
    /// `/tools/2/function/parameters/properties/x/not`.
    #[error(transparent)]
    Schemas(#[from] SchemaErrors),
    /// Reasoning was asked of a family without.
    #[error("wire format `{format}` has no reasoning block")]
    NoReasoning {
        /// The family.
        format: String,
    },
    /// The grammar is not well formed.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
}
