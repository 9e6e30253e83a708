//! An agent with several turns. A tool starts as soon as its call is complete, while the model is
//! still writing the next one; all tools run concurrently on tokio. The loop ends when the model
//! makes no call, or at a step limit.

use std::time::Instant;

use clap::Parser;
use louver_examples::{Setup, Toolbox, append_turn, printable, training_format, travel};
use louver_mistralrs::{Event, EventStream, Louver, Parallel, Plan, Reasoning, ToolChoice, Turn};
use mistralrs::{Model, RequestBuilder};
use serde_json::Value;
use tokio::task::JoinHandle;

/// Maximum number of turns.
const MAX_STEPS: u64 = 4;
/// Maximum number of calls per turn.
const MAX_CALLS: u32 = 3;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let setup = Setup::parse();
    let (model, louver) = setup.load().await?;
    let tools = travel();
    let mut history = setup.new_conversation(
        &louver,
        "Where is it warmer next week, Oslo or Lima, and what are 50 euros there?",
    );
    for step in 1..=MAX_STEPS {
        // The first turn must call a tool; later ones may answer.
        let choice = if step == 1 { ToolChoice::Required } else { ToolChoice::Auto };
        let plan = plan(&louver, &tools, choice)?;
        let stream = plan.stream_with(&model, history.clone(), setup.run_options(step)).await?;
        let (turn, results) = turn(step, stream, &tools).await?;
        if turn.calls.is_empty() {
            println!("done       after {step} of at most {MAX_STEPS} steps");
            return Ok(());
        }
        history = append_turn(history, turn, results);
    }
    answer(&setup, &model, &louver, history).await
}

fn plan(louver: &Louver, tools: &Toolbox, choice: ToolChoice) -> anyhow::Result<Plan> {
    let most = MAX_CALLS.try_into()?;
    let plan = louver.tools(tools.definitions()).choice(choice).parallel(Parallel::AtMost(most));
    Ok(plan.reasoning(Reasoning::Off).schema_options(training_format()).build()?)
}

/// Reads a turn and runs its calls as they arrive. The results are in the order of the calls.
async fn turn(
    step: u64,
    mut stream: EventStream,
    tools: &Toolbox,
) -> anyhow::Result<(Turn, Vec<Value>)> {
    let mut open: Option<(String, String)> = None;
    let mut running: Vec<JoinHandle<(Value, f64)>> = Vec::new();
    let begun = Instant::now();
    while let Some(event) = stream.next().await {
        match event {
            Event::CallStart { name, .. } => open = Some((name, String::new())),
            Event::ArgumentsDelta { delta, .. } => {
                open.iter_mut().for_each(|(_, arguments)| arguments.push_str(&delta));
            }
            Event::CallEnd { .. } => {
                let Some((name, arguments)) = open.take() else { continue };
                println!("step {step}     calls {name}({})", printable(&arguments));
                let tools = tools.clone();
                running.push(tokio::spawn(async move {
                    let begun = Instant::now();
                    (tools.call(&name, &arguments).await, begun.elapsed().as_secs_f64())
                }));
            }
            _ => {}
        }
    }
    let turn = stream.finish().await?.turn;
    if !turn.text.is_empty() {
        println!("step {step}     says  {}", printable(turn.text.trim()));
    }
    let (mut results, mut alone) = (Vec::new(), 0.0);
    for task in running {
        let (result, seconds) = task.await?;
        println!("step {step}     result {result}");
        results.push(result);
        alone += seconds;
    }
    if results.len() > 1 {
        let together = begun.elapsed().as_secs_f64();
        println!(
            "step {step}     {} tools side by side: {alone:.2} s of work in {together:.2} s",
            results.len()
        );
    }
    Ok((turn, results))
}

/// The last turn after the step limit, without tools.
async fn answer(
    setup: &Setup,
    model: &Model,
    louver: &Louver,
    history: RequestBuilder,
) -> anyhow::Result<()> {
    println!("limit      {MAX_STEPS} steps: the last turn may call nothing");
    let tools = travel();
    let plan = plan(louver, &tools, ToolChoice::None)?;
    let turn = plan
        .stream_with(model, history, setup.run_options(MAX_STEPS + 1))
        .await?
        .finish()
        .await?
        .turn;
    println!("answer     {}", printable(turn.text.trim()));
    Ok(())
}
