//! The same questions to a trained model without Louver and with it.

use std::fmt::Write as _;

use louver_mistralrs::{Parallel, Timing};
use mistralrs::TextMessageRole;
use serde_json::{Value, json};

use super::DemoArgs;
use super::output::{Output, Paint};
use super::tasks::{self, Task};
use crate::tool_turn::{
    CallMode, ToolModel, ToolTurn, ToolTurnInput, ToolValidators, greedy_request,
};

/// Default of `--max-tokens`.
const MAX_TOKENS: u32 = 160;
const MODES: [CallMode; 2] = [CallMode::Unconstrained, CallMode::Constrained];

/// Counts of one mode over all questions.
#[derive(Debug, Default)]
struct Counts {
    calls: usize,
    valid: usize,
    right: usize,
    tokens: usize,
    timing: Timing,
}

/// Asks the questions and prints a table. Returns whether every call with Louver was valid.
pub(super) async fn run(
    args: &DemoArgs,
    model: &ToolModel,
    output: &mut Output,
) -> anyhow::Result<bool> {
    let tools = tasks::list();
    let validators = ToolValidators::new(&tools)?;
    let tasks = tasks::tasks();
    let mut counts = [Counts::default(), Counts::default()];
    for task in &tasks {
        output.turn(task.question);
        output.begin_columns();
        for (n, (mode, counts)) in MODES.into_iter().zip(&mut counts).enumerate() {
            if n > 0 {
                output.next_column();
            }
            output.record(json!({"type": "mode", "mode": label(mode)}));
            output.print_line(output.paint(Paint::Dim, heading(mode)));
            let request = greedy_request(args.max_tokens.unwrap_or(MAX_TOKENS) as usize)
                .set_sampler_temperature(args.temperature.unwrap_or(0.0))
                .add_message(TextMessageRole::User, task.question);
            let request =
                ToolTurnInput { request, tools: &tools, parallel: Parallel::One, seed: args.seed };
            let turn = model.generate_calls(mode, request, |event| output.event(event)).await?;
            counts.add(task, &turn, &validators, output);
        }
        output.end_columns();
    }
    let [without, with] = &counts;
    output.print_line("");
    table(without, with, tasks.len()).lines().for_each(|line| output.print_line(line));
    for (mode, counts) in MODES.into_iter().zip(&counts) {
        output.record(counts.record(mode, tasks.len()));
    }
    Ok(with.calls > 0 && with.calls == with.valid)
}

fn label(mode: CallMode) -> &'static str {
    match mode {
        CallMode::Unconstrained => "without",
        CallMode::Constrained => "Louver",
    }
}

fn heading(mode: CallMode) -> &'static str {
    match mode {
        CallMode::Unconstrained => "without Louver",
        CallMode::Constrained => "with Louver",
    }
}

impl Counts {
    /// Checks and executes the calls of a turn, and prints what they return.
    fn add(
        &mut self,
        task: &Task,
        turn: &ToolTurn,
        validators: &ToolValidators,
        output: &mut Output,
    ) {
        self.tokens += turn.tokens;
        self.timing.add(&turn.timing);
        let mut results = Vec::new();
        for call in &turn.calls {
            self.calls += 1;
            let fault = validators.fault(call);
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            let result = fault.is_none().then(|| tasks::run(&call.name, &arguments));
            output.record(json!({
                "type": "call_check", "name": call.name, "arguments": call.arguments,
                "valid": fault.is_none(), "fault": fault, "result": result,
            }));
            match (fault, &result) {
                (Some(fault), _) => output.print_labelled(Paint::Bad, "INVALID", &fault),
                (None, result) => {
                    let result = result.as_ref().map(Value::to_string).unwrap_or_default();
                    output.print_labelled(Paint::Plain, "result", &result);
                }
            }
            self.valid += usize::from(result.is_some());
            results.push(result);
        }
        let is_right = matches!(&results[..], [Some(result)] if *result == task.result());
        self.right += usize::from(is_right);
        let (paint, text) = match (is_right, turn.calls.is_empty()) {
            (true, _) => (Paint::Good, "right"),
            (false, true) => (Paint::Bad, "wrong: no call can be read"),
            (false, false) => (Paint::Bad, "wrong"),
        };
        output.print_labelled(paint, "", text);
        output.record(json!({"type": "task_check", "question": task.question, "right": is_right}));
    }

    /// Tokens per second, without the prompts.
    fn rate(&self) -> f64 {
        self.tokens as f64 / self.timing.steps.as_secs_f64().max(1e-9)
    }

    fn record(&self, mode: CallMode, questions: usize) -> Value {
        json!({
            "type": "summary", "mode": label(mode), "questions": questions, "calls": self.calls,
            "valid": self.valid, "right": self.right, "tokens": self.tokens,
            "tokens_per_second": self.rate(), "louver_share": self.timing.share(),
        })
    }
}

/// The figures side by side.
fn table(without: &Counts, with: &Counts, questions: usize) -> String {
    let mut out = String::new();
    let mut row = |name: &str, left: String, right: String| {
        let _ = writeln!(out, "{name:<28}{left:>16}{right:>16}");
    };
    let of = |part: usize, all: usize| format!("{part} of {all}");
    row("", "without Louver".to_owned(), "with Louver".to_owned());
    row("calls valid by schema", of(without.valid, without.calls), of(with.valid, with.calls));
    row("questions answered right", of(without.right, questions), of(with.right, questions));
    row("tokens", without.tokens.to_string(), with.tokens.to_string());
    row("tokens per second", format!("{:.1}", without.rate()), format!("{:.1}", with.rate()));
    row(
        "Louver's share of the time",
        "-".to_owned(),
        format!("{:.1} %", 100.0 * with.timing.share()),
    );
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_table_has_both_columns() {
        let timing = Timing::default()
            .with_louver(Duration::from_millis(20))
            .with_steps(Duration::from_secs(2));
        let with = Counts { calls: 6, valid: 6, right: 3, tokens: 90, timing };
        let table = table(&Counts::default(), &with, 5);
        for line in [
            "calls valid by schema                 0 of 0          6 of 6",
            "questions answered right              0 of 5          3 of 5",
            "tokens per second                        0.0            45.0",
            "Louver's share of the time                 -           1.0 %",
        ] {
            assert!(table.contains(line), "{table}");
        }
    }
}
