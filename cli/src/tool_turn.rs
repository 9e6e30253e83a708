//! One turn of a model with tools, with Louver or without, for comparisons.

use anyhow::{Context, Result};
use jsonschema::Validator;
use louver::front::json_schema::{SchemaOptions, Whitespace};
use louver::spec::json::Json;
use louver_formats::{Reading, Tool, ToolRequest, WireFormat};
use louver_mistralrs::{
    Call, Event, Generation, Louver, Parallel, Plan, PlanBuilder, Reasoning, RunOptions, Timing,
    ToolChoice,
};
use louver_server::Overrides;
use mistralrs::{Model, RequestBuilder, SamplingParams};
use serde_json::Value;

/// Whether a turn is constrained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallMode {
    /// Free text, from which calls are read leniently.
    Unconstrained,
    /// At least one call is required and constrained by Louver.
    Constrained,
}

/// A model, and what is needed to read its output.
pub(crate) struct ToolModel {
    pub(crate) model: Model,
    pub(crate) louver: Louver,
    format: WireFormat,
    schema_options: SchemaOptions,
}

/// What a turn is generated from.
pub(crate) struct ToolTurnInput<'a> {
    /// Messages and sampling.
    pub(crate) request: RequestBuilder,
    /// The tools in OpenAI's format.
    pub(crate) tools: &'a Value,
    /// How many calls the turn may have.
    pub(crate) parallel: Parallel,
    /// Seed of all sampling.
    pub(crate) seed: u64,
}

/// A turn that a model has generated.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolTurn {
    /// The calls. Without Louver, what lenient reading finds.
    pub(crate) calls: Vec<Call>,
    /// The text besides calls.
    pub(crate) text: String,
    /// Whether the length limit ended it.
    pub(crate) is_truncated: bool,
    /// Generated tokens.
    pub(crate) tokens: usize,
    pub(crate) timing: Timing,
}

impl ToolModel {
    pub(crate) fn new(model: Model, louver: Louver) -> Result<ToolModel> {
        let format = louver.wire_format().map_err(Clone::clone)?.clone();
        Ok(ToolModel { model, louver, format, schema_options: training_format() })
    }

    /// With these schema options in place of the ones of training data.
    pub(crate) fn with_schema_options(self, options: &Overrides<SchemaOptions>) -> ToolModel {
        ToolModel { schema_options: options.apply(&self.schema_options), ..self }
    }

    /// Compiles a plan without reasoning, by default with JSON in the format of training data.
    pub(crate) fn build_plan(&self, plan: PlanBuilder) -> Result<Plan> {
        Ok(plan.reasoning(Reasoning::Off).schema_options(self.schema_options).build()?)
    }

    /// Generates one turn of calls, and passes its events to `show`.
    pub(crate) async fn generate_calls(
        &self,
        mode: CallMode,
        turn: ToolTurnInput<'_>,
        show: impl FnMut(&Event),
    ) -> Result<ToolTurn> {
        let plan = match mode {
            CallMode::Unconstrained => self.louver.unconstrained(turn.tools),
            CallMode::Constrained => {
                let plan = self.louver.tools(turn.tools).choice(ToolChoice::Required);
                self.build_plan(plan.parallel(turn.parallel))?
            }
        };
        let generation = self.generate(&plan, turn.request, turn.seed, show).await?;
        match mode {
            CallMode::Constrained => Ok(ToolTurn::from(generation)),
            CallMode::Unconstrained => {
                let text = &generation.turn.text;
                let read = self.read_unconstrained(turn.tools, turn.parallel, text)?.turn;
                Ok(ToolTurn { calls: read.calls, text: read.text, ..ToolTurn::from(generation) })
            }
        }
    }

    /// Generates one turn without reasoning, and passes its events to `show`.
    pub(crate) async fn generate(
        &self,
        plan: &Plan,
        request: RequestBuilder,
        seed: u64,
        mut show: impl FnMut(&Event),
    ) -> Result<Generation> {
        let options = RunOptions::default().with_seed(seed);
        let request = request.enable_thinking(false);
        let mut stream = plan.stream_with(&self.model, request, options).await?;
        while let Some(event) = stream.next().await {
            show(&event);
        }
        stream.finish().await.context("the generation failed")
    }

    /// Reads the calls of text that was generated without a constraint, in the model's wire format,
    /// regardless of their spacing and arguments.
    pub(crate) fn read_unconstrained(
        &self,
        tools: &Value,
        parallel: Parallel,
        text: &str,
    ) -> Result<Reading> {
        let tools = Tool::parse_list(&Json::from(tools))?;
        let schema_options = self.schema_options;
        let request = ToolRequest::default()
            .with_tools(tools)
            .with_parallel(parallel)
            .with_schema_options(schema_options);
        Ok(self.format.read_unconstrained(&request, text)?)
    }
}

impl From<Generation> for ToolTurn {
    fn from(generation: Generation) -> ToolTurn {
        ToolTurn {
            is_truncated: generation.is_truncated(),
            tokens: generation.tokens.len(),
            timing: generation.timing,
            calls: generation.turn.calls,
            text: generation.turn.text,
        }
    }
}

/// JSON in the format of training data.
fn training_format() -> SchemaOptions {
    SchemaOptions::closed().with_whitespace(Whitespace::PythonLike)
}

/// A request that selects the most likely token.
pub(crate) fn greedy_request(max_tokens: usize) -> RequestBuilder {
    RequestBuilder::new()
        .set_sampling(SamplingParams::neutral())
        .set_sampler_temperature(0.0)
        .set_sampler_max_len(max_tokens)
}

/// Validators of tools' arguments, independent of Louver.
pub(crate) struct ToolValidators(Vec<(String, Validator)>);

impl ToolValidators {
    /// Compiles the schemas of tools in OpenAI's format.
    pub(crate) fn new(tools: &Value) -> Result<ToolValidators> {
        let tools = tools.as_array().into_iter().flatten().map(|tool| {
            let function = &tool["function"];
            let name = function["name"].as_str().unwrap_or_default().to_owned();
            Ok((name, jsonschema::validator_for(&function["parameters"])?))
        });
        Ok(ToolValidators(tools.collect::<Result<_>>()?))
    }

    /// The tools' names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(name, _)| name)
    }

    /// What is wrong with a call, if anything is.
    pub(crate) fn fault(&self, call: &Call) -> Option<String> {
        let Some((_, validator)) = self.0.iter().find(|(name, _)| *name == call.name) else {
            return Some(format!("there is no tool {:?}", call.name));
        };
        match serde_json::from_str::<Value>(&call.arguments) {
            Err(error) => Some(format!("the arguments are not JSON: {error}")),
            Ok(arguments) => validator.validate(&arguments).err().map(|error| error.to_string()),
        }
    }
}
