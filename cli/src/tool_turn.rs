//! One turn of a model with tools, with Louver or without, for comparisons.

use anyhow::{Context, Result};
use jsonschema::Validator;
use louver::front::json_schema::{Integers, SchemaOptions, Whitespace};
use louver::spec::json::Json;
use louver_formats::{Reading, Tool, ToolRequest, WireFormat};
use louver_mistralrs::{
    Call, Event, Generation, Louver, Parallel, Reasoning, RunOptions, Timing, ToolChoice,
};
use mistralrs::{Model, RequestBuilder, SamplingParams};
use serde_json::Value;

/// How a turn is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guidance {
    /// Free text, from which calls are read leniently.
    Without,
    /// At least one call is required and constrained by Louver.
    Louver,
}

/// A model, and what is needed to read its output.
pub(crate) struct ToolModel {
    pub(crate) model: Model,
    pub(crate) louver: Louver,
    format: WireFormat,
}

/// What a turn is generated from.
pub(crate) struct TurnRequest<'a> {
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
        Ok(ToolModel { model, louver, format })
    }

    /// Generates one turn and calls `show` with each event.
    pub(crate) async fn generate(
        &self,
        guidance: Guidance,
        turn: TurnRequest<'_>,
        mut show: impl FnMut(&Event),
    ) -> Result<ToolTurn> {
        let plan = match guidance {
            Guidance::Without => self.louver.unconstrained(turn.tools),
            Guidance::Louver => {
                let plan = self.louver.tools(turn.tools).choice(ToolChoice::Required);
                let plan = plan.parallel(turn.parallel).reasoning(Reasoning::Off);
                plan.schema_options(training_format()).build()?
            }
        };
        let options = RunOptions { seed: Some(turn.seed), ..RunOptions::default() };
        let request = turn.request.enable_thinking(false);
        let mut stream = plan.stream_with(&self.model, request, options).await?;
        while let Some(event) = stream.next().await {
            show(&event);
        }
        let generation = stream.finish().await.context("the generation failed")?;
        match guidance {
            Guidance::Louver => Ok(ToolTurn::from(generation)),
            Guidance::Without => {
                let text = &generation.turn.text;
                let read = read_unconstrained(&self.format, turn.tools, turn.parallel, text)?.turn;
                Ok(ToolTurn { calls: read.calls, text: read.text, ..ToolTurn::from(generation) })
            }
        }
    }
}

/// Reads the calls of text that was generated without a constraint, in a model's wire format,
/// whatever their spacing and arguments.
pub(crate) fn read_unconstrained(
    format: &WireFormat,
    tools: &Value,
    parallel: Parallel,
    text: &str,
) -> Result<Reading> {
    let tools = Tool::parse_list(&Json::from(tools))?;
    let schema_options = training_format();
    let request = ToolRequest { tools, parallel, schema_options, ..ToolRequest::default() };
    Ok(format.read_unconstrained(&request, text)?)
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
pub(crate) fn training_format() -> SchemaOptions {
    SchemaOptions {
        whitespace: Whitespace::PythonLike,
        integers: Integers::Digits,
        ..SchemaOptions::default()
    }
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
