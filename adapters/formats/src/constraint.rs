//! The builder of tool constraints.

use louver::engine::{Constraint, Engine};
use louver::front::json_schema::SchemaOptions;
use louver::spec::json::Json;
use louver::spec::tools::{Tool, ToolChoice};

use crate::format::WireFormat;
use crate::plan::Plan;
use crate::request::{
    Builtin, ConstraintError, CustomTool, LowerError, Parallel, Reasoning, ReasoningBudget,
    RequestError, Strictness, ToolRequest,
};

/// Builds the constraint of one turn. Names and texts are never pasted into grammar text.
///
/// ```
/// use louver::limits::Limits;
/// use louver::spec::json::Json;
/// use louver_formats::{Catalog, Parallel, Reasoning, ReasoningBudget, ToolConstraint};
///
/// let tools = Json::parse(r#"[{"name": "now"}, {"name": "later"}]"#, &Limits::default())?;
/// let constraint = ToolConstraint::new()
///     .tools(&tools)?
///     .allow(["now"])
///     .required()
///     .parallel(Parallel::One)
///     .reasoning(Reasoning::Required)
///     .reasoning_budget(ReasoningBudget::Tokens(2_000));
/// let plan = constraint.lower(Catalog::shipped().get("qwen3")?)?;
/// assert!(plan.tools()[0].arguments.is_some() && plan.tools()[1].arguments.is_none());
/// // What does not go together is an error.
/// assert!(constraint.reasoning(Reasoning::Off).lower(Catalog::shipped().get("qwen3")?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolConstraint {
    request: ToolRequest,
}

impl ToolConstraint {
    /// A turn of text, without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses `tools`, `tool_choice`, `parallel_tool_calls`, `response_format` and `stop` of an
    /// OpenAI request body.
    pub fn from_request(body: &Json) -> Result<Self, RequestError> {
        Ok(ToolConstraint { request: ToolRequest::parse(body)? })
    }

    /// Sets the offered tools, in OpenAI's JSON forms. Tools of other types than `function` and
    /// `custom` are built-in tools.
    pub fn tools(mut self, tools: &Json) -> Result<Self, RequestError> {
        self.request.offer(tools)?;
        Ok(self)
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.request.tools.push(tool);
        self
    }

    /// Adds a custom tool, which is called with text.
    pub fn custom(mut self, tool: CustomTool) -> Self {
        self.request.customs.push(tool);
        self
    }

    /// Adds a built-in tool.
    pub fn builtin(mut self, builtin: Builtin) -> Self {
        self.request.builtins.push(builtin);
        self
    }

    /// Sets whether a tool, and which tool, must be called.
    pub fn choice(mut self, choice: ToolChoice) -> Self {
        self.request.tool_choice = choice;
        self
    }

    /// Requires at least one call.
    pub fn required(self) -> Self {
        self.choice(ToolChoice::Required)
    }

    /// Requires one call of this tool.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.choice(ToolChoice::Named(name.into()))
    }

    /// Sets the tools that may be called.
    pub fn allow(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.request.allowed = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets how many calls the turn may have.
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.request.parallel = parallel;
        self
    }

    /// Sets whose schemas are enforced.
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.request.strictness = strictness;
        self
    }

    /// Sets whether there is a reasoning block.
    pub fn reasoning(mut self, reasoning: Reasoning) -> Self {
        self.request.reasoning = reasoning;
        self
    }

    /// Bounds the length of reasoning.
    pub fn reasoning_budget(mut self, most: ReasoningBudget) -> Self {
        self.request.reasoning_budget = Some(most);
        self
    }

    /// Sets the JSON Schema of the answer. If tools may be called, the turn is calls or the answer.
    pub fn response_format(mut self, schema: Json) -> Self {
        self.request.response_format = Some(schema);
        self
    }

    /// Adds a stop string, which ends free text and the turn.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.request.stop.push(text.into());
        self
    }

    /// Adds a text that free text must not contain.
    pub fn ban(mut self, text: impl Into<String>) -> Self {
        self.request.bans.push(text.into());
        self
    }

    /// Sets the options of JSON Schemas.
    pub fn schema_options(mut self, options: SchemaOptions) -> Self {
        self.request.schema_options = options;
        self
    }

    /// The request so far.
    pub fn request(&self) -> &ToolRequest {
        &self.request
    }

    /// Lowers the request for a wire format; see [`WireFormat::lower`].
    pub fn lower(&self, format: &WireFormat) -> Result<Plan, LowerError> {
        format.lower(&self.request)
    }

    /// Lowers and compiles the request for an engine; see [`ToolRequest::compile`].
    pub fn compile(
        &self,
        engine: &Engine,
        format: &WireFormat,
    ) -> Result<(Plan, Constraint), ConstraintError> {
        self.request.clone().compile(engine, format)
    }
}

impl From<ToolRequest> for ToolConstraint {
    fn from(request: ToolRequest) -> Self {
        ToolConstraint { request }
    }
}

impl From<ToolConstraint> for ToolRequest {
    fn from(constraint: ToolConstraint) -> Self {
        constraint.request
    }
}
