//! The loop: question -> calls -> results -> answer.

use std::collections::BTreeSet;

use anyhow::Context;
use jsonschema::Validator;
use louver::front::json_schema::{Integers, SchemaOptions, Whitespace};
use louver_mistralrs::{
    Call, CallKind, Finish, Generation, Louver, Plan, Reasoning, RunOptions, ToolChoice,
};
use mistralrs::{
    CalledFunction, Model, RequestBuilder, TextMessageRole, ToolCallResponse, ToolCallType,
};
use serde_json::{Value, json};

use super::DemoArgs;
use super::free::{self, Found};
use super::show::Show;
use super::tally::Tally;
use super::tools;

/// Most turns in which the model may call tools.
const MOST_TURNS: usize = 4;

/// JSON as models are shown it, and not mostly white space where the weights are random.
fn one_spelling() -> SchemaOptions {
    SchemaOptions {
        whitespace: Whitespace::PythonLike,
        integers: Integers::Digits,
        ..SchemaOptions::default()
    }
}

pub(super) struct Agent<'a> {
    args: &'a DemoArgs,
    model: &'a Model,
    louver: &'a Louver,
    show: &'a mut Show,
    validators: Vec<(String, Validator)>,
    history: RequestBuilder,
    turns: u64,
    tally: Tally,
}

impl<'a> Agent<'a> {
    pub(super) fn new(
        args: &'a DemoArgs,
        model: &'a Model,
        louver: &'a Louver,
        show: &'a mut Show,
    ) -> anyhow::Result<Self> {
        let tools = tools::list();
        let validators = tools.as_array().into_iter().flatten().map(|tool| {
            let function = &tool["function"];
            let name = function["name"].as_str().unwrap_or_default().to_owned();
            Ok((name, jsonschema::validator_for(&function["parameters"])?))
        });
        let history = RequestBuilder::new()
            .add_message(TextMessageRole::System, "Answer with the help of the tools.")
            .add_message(TextMessageRole::User, &args.question);
        Ok(Agent {
            args,
            model,
            louver,
            show,
            validators: validators.collect::<anyhow::Result<_>>()?,
            history,
            turns: 0,
            tally: Tally::default(),
        })
    }

    /// Runs the loop and prints the report. Whether all went well.
    pub(super) async fn run(mut self) -> anyhow::Result<bool> {
        let how = if self.args.unconstrained {
            "WITHOUT Louver: nothing is guaranteed"
        } else {
            "constrained by Louver"
        };
        self.show.say(format!("mode       {how}"));
        self.show.say(format!("\nuser       {}", self.args.question));
        self.show.record(json!({"type": "user", "text": self.args.question}));

        let mut called = BTreeSet::new();
        let mut choice =
            Some(self.args.tool_choice.clone()).filter(|choice| *choice != ToolChoice::None);
        for _ in 0..MOST_TURNS {
            let Some(wanted) = choice.take() else { break };
            let calls = self.calling_turn(&wanted).await?;
            called.extend(calls.iter().map(|call| call.name.clone()));
            choice = match &self.args.tool_choice {
                ToolChoice::Auto => (!calls.is_empty()).then_some(ToolChoice::Auto),
                ToolChoice::Required => {
                    let left = self
                        .validators
                        .iter()
                        .map(|(name, _)| name)
                        .find(|name| !called.contains(*name));
                    left.filter(|_| !calls.is_empty()).cloned().map(ToolChoice::Named)
                }
                ToolChoice::None | ToolChoice::Named(_) => None,
            };
        }
        self.answering_turn().await?;

        self.show.say("");
        let constrained = !self.args.unconstrained;
        self.tally.lines(constrained).into_iter().for_each(|line| self.show.say(line));
        self.show.record(self.tally.record(constrained));
        Ok(self.tally.good())
    }

    /// A turn in which the model may call tools. Runs what it calls and keeps calls and results for the next turn.
    async fn calling_turn(&mut self, choice: &ToolChoice) -> anyhow::Result<Vec<Call>> {
        let what = match choice {
            ToolChoice::Auto => "the model may call tools".to_owned(),
            ToolChoice::Named(name) => format!("the model must call {name}"),
            ToolChoice::Required | ToolChoice::None => "the model must call tools".to_owned(),
        };
        let plan = if self.args.unconstrained {
            self.louver.unconstrained(tools::list())
        } else {
            let plan = self.louver.tools(tools::list()).choice(choice.clone());
            plan.reasoning(Reasoning::Off).schema_options(one_spelling()).build()?
        };
        let generation = self.generate(&what, &plan).await?;
        let (text, calls) = if self.args.unconstrained {
            (generation.turn.text.clone(), self.read_freely(&generation.turn.text))
        } else {
            (generation.turn.text, generation.turn.calls)
        };
        if calls.is_empty() && *choice != ToolChoice::Auto {
            self.tally.missing += 1;
            self.show.say("  MISSING    no call, although one was required");
            self.show.record(json!({"type": "missing_call"}));
        }
        let (mut valid, mut results) = (Vec::new(), Vec::new());
        for call in calls {
            if let Some(result) = self.call(&call) {
                valid.push(call);
                results.push(result);
            }
        }
        let responses = valid.iter().enumerate().map(|(index, call)| ToolCallResponse {
            index,
            id: call.id.clone(),
            tp: ToolCallType::Function,
            function: CalledFunction { name: call.name.clone(), arguments: call.arguments.clone() },
        });
        let history = std::mem::take(&mut self.history);
        self.history = if valid.is_empty() {
            history.add_message(TextMessageRole::Assistant, text)
        } else {
            history.add_message_with_tool_call(
                TextMessageRole::Assistant,
                text,
                responses.collect(),
            )
        };
        for (call, result) in valid.iter().zip(results) {
            self.history = std::mem::take(&mut self.history).add_tool_message(result, &call.id);
        }
        Ok(valid)
    }

    /// The last turn: an answer by a JSON Schema.
    async fn answering_turn(&mut self) -> anyhow::Result<()> {
        let schema = tools::answer_schema();
        let plan = if self.args.unconstrained {
            self.louver.unconstrained(Value::Null)
        } else {
            self.louver
                .answer(&schema)
                .reasoning(Reasoning::Off)
                .schema_options(one_spelling())
                .build()?
        };
        let generation = self.generate("the answer, by a JSON Schema", &plan).await?;
        let fault = match serde_json::from_str::<Value>(generation.turn.text.trim()) {
            Err(error) => Some(format!("not JSON: {error}")),
            Ok(answer) => jsonschema::validator_for(&schema)?
                .validate(&answer)
                .err()
                .map(|error| error.to_string()),
        };
        self.tally.answer_valid = fault.is_none();
        self.show.say(format!(
            "  check      {}",
            fault.as_deref().unwrap_or("the answer matches its schema")
        ));
        self.show.record(json!({"type": "answer_check", "valid": fault.is_none(), "fault": fault}));
        Ok(())
    }

    /// One generation, streamed.
    async fn generate(&mut self, what: &str, plan: &Plan) -> anyhow::Result<Generation> {
        self.show.turn(what);
        self.turns += 1;
        let options = RunOptions {
            seed: Some(self.args.seed.wrapping_mul(1000).wrapping_add(self.turns)),
            ..RunOptions::default()
        };
        let request = (self.history.clone())
            .enable_thinking(false)
            .set_sampling(mistralrs::SamplingParams::neutral())
            .set_sampler_temperature(self.args.temperature)
            .set_sampler_max_len(self.args.max_tokens as usize);
        let mut stream = plan.stream_with(self.model, request, options).await?;
        while let Some(event) = stream.next().await {
            self.show.event(&event);
        }
        let generation = stream.finish().await.context("the generation failed")?;
        if generation.finish == Finish::Length {
            self.show.say(format!(
                "  cut off    after {} tokens (--max-tokens)",
                generation.tokens.len()
            ));
        }
        self.tally.tokens += generation.tokens.len();
        self.tally.timing.add(&generation.timing);
        Ok(generation)
    }

    /// Checks a call and, if it is valid, runs it.
    fn call(&mut self, call: &Call) -> Option<Value> {
        self.tally.calls += 1;
        let fault = self.fault(call);
        self.show.record(
            json!({"type": "call_check", "id": call.id, "valid": fault.is_none(), "fault": fault}),
        );
        if let Some(fault) = fault {
            self.show.say(format!("  INVALID    {}: {fault}", call.name));
            return None;
        }
        self.tally.valid += 1;
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let result = tools::run(&call.name, &arguments);
        self.show.say(format!("  result     {} is valid; it returns {result}", call.name));
        self.show.record(json!({"type": "tool_result", "id": call.id, "result": result}));
        Some(result)
    }

    fn fault(&self, call: &Call) -> Option<String> {
        let Some((_, validator)) = self.validators.iter().find(|(name, _)| *name == call.name)
        else {
            return Some("there is no such tool".to_owned());
        };
        match serde_json::from_str::<Value>(&call.arguments) {
            Err(error) => Some(format!("the arguments are not JSON: {error}")),
            Ok(arguments) => validator.validate(&arguments).err().map(|error| error.to_string()),
        }
    }

    /// The calls in what an unconstrained model said. What only looks like one counts as an invalid call.
    fn read_freely(&mut self, text: &str) -> Vec<Call> {
        let mut calls = Vec::new();
        for found in free::calls(text) {
            match found {
                Found::Call { name, arguments } => {
                    let id = format!("call_{}", calls.len());
                    let arguments = arguments.to_string();
                    calls.push(Call { id, name, arguments, kind: CallKind::Function });
                }
                Found::Broken(why) => {
                    self.tally.calls += 1;
                    self.show.say(format!("  INVALID    {why}"));
                    self.show.record(json!({"type": "call_check", "valid": false, "fault": why}));
                }
            }
        }
        calls
    }
}
