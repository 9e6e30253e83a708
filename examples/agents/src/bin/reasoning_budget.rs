//! A reasoning model with a budget. It must reason within the budget, then call tools; then, after
//! as much reasoning again, it must answer with a JSON Schema. The events separate reasoning, calls
//! and the answer.

use clap::Parser;
use louver_examples::{Setup, Toolbox, append_turn, printable, run_calls, training_format, travel};
use louver_mistralrs::{Generation, Parallel, PlanBuilder, Reasoning, ReasoningBudget, ToolChoice};
use mistralrs::{Model, RequestBuilder};
use serde_json::{Value, json};

/// Maximum reasoning tokens per turn.
const REASONING_BUDGET: u32 = 60;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let setup = Setup::parse();
    let (model, louver) = setup.load().await?;
    let tools = travel();
    let history =
        setup.new_conversation(&louver, "Is it warmer in Lima or in Tokyo, and by how much?");

    println!("turn 1     reasoning of at most {REASONING_BUDGET} tokens, then calls");
    let plan = louver
        .tools(tools.definitions())
        .choice(ToolChoice::Required)
        .parallel(Parallel::AtMost(2.try_into()?));
    let generation = think(&setup, &model, plan, history.clone(), 1).await?;
    let history = act(history, generation, &tools).await?;

    println!("turn 2     reasoning of at most {REASONING_BUDGET} tokens, then the answer");
    let schema = json!({
        "type": "object",
        "properties": {
            "warmer": {"enum": ["Lima", "Tokyo", "neither"]},
            "degrees": {"type": "integer", "minimum": 0, "maximum": 60},
            "sure": {"type": "boolean"},
        },
        "required": ["warmer", "degrees", "sure"],
        "additionalProperties": false,
    });
    let answer = think(&setup, &model, louver.answer(&schema), history, 2).await?.turn.text;
    let answer: Value = serde_json::from_str(&answer)?;
    println!("answer     {answer}");
    Ok(())
}

/// Runs a turn that begins with reasoning.
async fn think(
    setup: &Setup,
    model: &Model,
    plan: PlanBuilder,
    history: RequestBuilder,
    step: u64,
) -> anyhow::Result<Generation> {
    let plan = plan
        .reasoning(Reasoning::Required)
        .reasoning_budget(ReasoningBudget::Tokens(REASONING_BUDGET))
        .schema_options(training_format())
        .build()?;
    let generation =
        plan.stream_with(model, history, setup.run_options(step)).await?.finish().await?;
    let (turn, report) = (&generation.turn, &generation.report);
    println!("reasoning  {} tokens: {}", generation.reasoning_tokens, printable(&turn.reasoning));
    println!(
        "enforced   {:?}, {:?}, {} tokens without a choice",
        report.level, report.completion, report.forced_tokens
    );
    Ok(generation)
}

/// Runs the turn's calls.
async fn act(
    history: RequestBuilder,
    generation: Generation,
    tools: &Toolbox,
) -> anyhow::Result<RequestBuilder> {
    let results = run_calls(&generation.turn.calls, tools).await;
    for (call, result) in generation.turn.calls.iter().zip(&results) {
        println!("call       {}({}) -> {result}", call.name, printable(&call.arguments));
    }
    Ok(append_turn(history, generation.turn, results))
}
