//! The agent loop: question, tool calls, results, answer.

use std::collections::BTreeSet;

use louver_formats::{Difference, Reading};
use louver_mistralrs::{Call, Event, Generation, Parallel, Plan, ToolChoice, Turn};
use mistralrs::{CalledFunction, RequestBuilder, TextMessageRole, ToolCallResponse, ToolCallType};
use serde_json::{Value, json};

use super::DemoArgs;
use super::output::Output;
use super::stats::RunStats;
use super::tools;
use crate::tool_turn::{ToolModel, ToolValidators};

/// Maximum number of turns in which the model may call tools.
const MAX_CALLING_TURNS: usize = 4;
/// Default of `--max-tokens`.
const MAX_TOKENS: u32 = 1024;

pub(super) struct Agent<'a> {
    args: &'a DemoArgs,
    model: &'a ToolModel,
    output: &'a mut Output,
    validators: ToolValidators,
    history: RequestBuilder,
    turns: u64,
    stats: RunStats,
}

impl<'a> Agent<'a> {
    pub(super) fn new(
        args: &'a DemoArgs,
        model: &'a ToolModel,
        output: &'a mut Output,
    ) -> anyhow::Result<Self> {
        let history = RequestBuilder::new()
            .add_message(TextMessageRole::System, "Answer with the help of the tools.")
            .add_message(TextMessageRole::User, &args.question);
        Ok(Agent {
            args,
            model,
            output,
            validators: ToolValidators::new(&tools::list())?,
            history,
            turns: 0,
            stats: RunStats::default(),
        })
    }

    /// Runs the loop and prints the report. Returns whether every call and the answer were valid.
    pub(super) async fn run(mut self) -> anyhow::Result<bool> {
        let mode = if self.args.unconstrained {
            "WITHOUT Louver: no guarantees"
        } else {
            "constrained by Louver"
        };
        self.output.print_line(format!("mode       {mode}"));
        let question = &self.args.question;
        let record = json!({"type": "user", "text": question});
        self.output.print(format!("\nuser       {question}"), record);

        let mut called = BTreeSet::new();
        let mut choice =
            Some(self.args.tool_choice.clone()).filter(|choice| *choice != ToolChoice::None);
        for _ in 0..MAX_CALLING_TURNS {
            let Some(requested) = choice.take() else { break };
            let calls = self.calling_turn(&requested).await?;
            called.extend(calls.iter().map(|call| call.name.clone()));
            choice = match &self.args.tool_choice {
                ToolChoice::Auto => (!calls.is_empty()).then_some(ToolChoice::Auto),
                ToolChoice::Required => {
                    let remaining = self.validators.names().find(|name| !called.contains(*name));
                    remaining.filter(|_| !calls.is_empty()).cloned().map(ToolChoice::Named)
                }
                ToolChoice::None | ToolChoice::Named(_) => None,
            };
        }
        self.answering_turn().await?;

        self.output.print_line("");
        let constrained = !self.args.unconstrained;
        self.stats.lines(constrained).into_iter().for_each(|line| self.output.print_line(line));
        self.output.record(self.stats.record(constrained));
        Ok(self.stats.is_good())
    }

    /// Runs a turn in which the model may call tools, executes its calls, and adds calls and
    /// results to the history.
    async fn calling_turn(&mut self, choice: &ToolChoice) -> anyhow::Result<Vec<Call>> {
        let description = match choice {
            ToolChoice::Auto => "the model may call tools".to_owned(),
            ToolChoice::Named(name) => format!("the model must call {name}"),
            ToolChoice::Required | ToolChoice::None => "the model must call tools".to_owned(),
        };
        let plan = if self.args.unconstrained {
            self.model.louver.unconstrained(tools::list())
        } else {
            self.model.build_plan(self.model.louver.tools(tools::list()).choice(choice.clone()))?
        };
        let generation = self.generate(&description, &plan).await?;
        let turn = match self.args.unconstrained {
            true => self.read_unconstrained(&generation.turn.text)?,
            false => generation.turn,
        };
        let (text, calls) = (turn.text, turn.calls);
        if calls.is_empty() && *choice != ToolChoice::Auto {
            self.stats.missing += 1;
            let line = "  MISSING    no call, although one was required";
            self.output.print(line, json!({"type": "missing_call"}));
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

    /// Runs the last turn, whose answer must match a JSON Schema.
    async fn answering_turn(&mut self) -> anyhow::Result<()> {
        let schema = tools::answer_schema();
        let plan = if self.args.unconstrained {
            self.model.louver.unconstrained(Value::Null)
        } else {
            self.model.build_plan(self.model.louver.answer(&schema))?
        };
        let generation = self.generate("the answer, by a JSON Schema", &plan).await?;
        let fault = match serde_json::from_str::<Value>(generation.turn.text.trim()) {
            Err(error) => Some(format!("not JSON: {error}")),
            Ok(answer) => jsonschema::validator_for(&schema)?
                .validate(&answer)
                .err()
                .map(|error| error.to_string()),
        };
        self.stats.answer_valid = fault.is_none();
        let verdict = fault.as_deref().unwrap_or("the answer matches its schema");
        let record = json!({"type": "answer_check", "valid": fault.is_none(), "fault": fault});
        self.output.print(format!("  check      {verdict}"), record);
        Ok(())
    }

    /// Streams one generation.
    async fn generate(&mut self, description: &str, plan: &Plan) -> anyhow::Result<Generation> {
        self.output.turn(description);
        self.turns += 1;
        let seed = self.args.seed.wrapping_mul(1000).wrapping_add(self.turns);
        let request = (self.history.clone())
            .set_sampling(mistralrs::SamplingParams::neutral())
            .set_sampler_temperature(self.args.temperature.unwrap_or(1.0))
            .set_sampler_max_len(self.args.max_tokens.unwrap_or(MAX_TOKENS) as usize);
        let show = |event: &Event| self.output.event(event);
        let generation = self.model.generate(plan, request, seed, show).await?;
        if generation.is_truncated() {
            self.output.print_line(format!(
                "  cut off    after {} tokens (--max-tokens)",
                generation.tokens.len()
            ));
        }
        self.stats.tokens += generation.tokens.len();
        self.stats.timing.add(&generation.timing);
        Ok(generation)
    }

    /// Validates a call and, if it is valid, executes it.
    fn call(&mut self, call: &Call) -> Option<Value> {
        self.stats.calls += 1;
        let fault = self.validators.fault(call);
        self.output.record(
            json!({"type": "call_check", "id": call.id, "valid": fault.is_none(), "fault": fault}),
        );
        if let Some(fault) = fault {
            self.output.print_line(format!("  INVALID    {}: {fault}", call.name));
            return None;
        }
        self.stats.valid += 1;
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let result = tools::run(&call.name, &arguments);
        let line = format!("  result     {} is valid; it returns {result}", call.name);
        self.output.print(line, json!({"type": "tool_result", "id": call.id, "result": result}));
        Some(result)
    }

    /// Reads unconstrained output. Broken calls count as invalid.
    fn read_unconstrained(&mut self, text: &str) -> anyhow::Result<Turn> {
        let Reading { mut turn, differences, .. } =
            self.model.read_unconstrained(&tools::list(), Parallel::Any, text)?;
        let mut unended = BTreeSet::new();
        for difference in differences {
            let reason = match difference {
                Difference::Malformed { at } => {
                    format!("the beginning of a call without a call, at byte {at}")
                }
                Difference::Unended { call } => {
                    unended.insert(call);
                    "a call without its end".to_owned()
                }
                // Names and arguments are checked with the calls.
                _ => continue,
            };
            self.stats.calls += 1;
            let record = json!({"type": "call_check", "valid": false, "fault": reason});
            self.output.print(format!("  INVALID    {reason}"), record);
        }
        let calls = std::mem::take(&mut turn.calls).into_iter().enumerate();
        let calls = calls.filter(|(k, _)| !unended.contains(k)).map(|(_, call)| call);
        // The model has written no ids that the history could have.
        turn.calls = calls
            .enumerate()
            .map(|(k, call)| call.with_id(format!("call_{}_{k}", self.turns)))
            .collect();
        Ok(turn)
    }
}
