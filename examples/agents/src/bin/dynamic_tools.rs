//! An agent that loads tools during a turn. It starts with one tool, which loads others. As soon as
//! its call is complete, the loaded tools join the running turn, and the model may call them in the
//! same turn.

use clap::Parser;
use louver_examples::{Setup, Toolbox, append_turn, desk, printable, run_calls, training_format};
use louver_mistralrs::{
    Event, EventStream, ExtendError, Louver, Parallel, Plan, Reasoning, ToolChoice, Turn,
};
use serde_json::{Value, json};

/// Maximum number of turns.
const MAX_STEPS: u64 = 3;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let setup = Setup::parse();
    let (model, louver) = setup.load().await?;
    let mut found = Toolbox::default();
    let mut history = setup.new_conversation(&louver, "Add 17 and 25, and write a note about it.");
    for step in 1..=MAX_STEPS {
        let choice = if step == 1 { ToolChoice::Required } else { ToolChoice::Auto };
        let plan = plan(&louver, &found, choice.clone())?;
        let stream = plan.stream_with(&model, history.clone(), setup.run_options(step)).await?;
        let turn = read_turn(&louver, &mut found, choice, stream).await?;
        if turn.calls.is_empty() {
            println!("done       after {step} of at most {MAX_STEPS} steps");
            return Ok(());
        }
        let mut results = run_calls(&turn.calls, &found).await;
        for (call, result) in
            turn.calls.iter().zip(&mut results).filter(|(call, _)| call.name == "load_tools")
        {
            *result = json!({"loaded": found.names(), "for": call.arguments});
        }
        for (call, result) in
            turn.calls.iter().zip(&results).filter(|(call, _)| call.name != "load_tools")
        {
            println!("result     {} -> {result}", call.name);
        }
        history = append_turn(history, turn, results);
    }
    println!("limit      {MAX_STEPS} steps");
    Ok(())
}

/// The tool that loads tools, in OpenAI's format.
fn loader() -> Value {
    let parameters = json!({
        "type": "object",
        "properties": {"topic": {"enum": ["notes", "sums"]}},
        "required": ["topic"],
        "additionalProperties": false,
    });
    let description = "Loads the tools for a topic. There are `note` for notes and `add` for sums.";
    let function = json!({"name": "load_tools", "description": description, "parameters": parameters, "strict": true});
    json!({"type": "function", "function": function})
}

/// Plans a turn with the loader and the loaded tools.
fn plan(louver: &Louver, found: &Toolbox, choice: ToolChoice) -> anyhow::Result<Plan> {
    let mut tools = vec![loader()];
    tools.extend(found.definitions().as_array().cloned().unwrap_or_default());
    let plan =
        louver.tools(Value::Array(tools)).choice(choice).parallel(Parallel::AtMost(4.try_into()?));
    Ok(plan.reasoning(Reasoning::Off).schema_options(training_format()).build()?)
}

/// Reads a turn. Tools loaded in it are added to it.
async fn read_turn(
    louver: &Louver,
    found: &mut Toolbox,
    choice: ToolChoice,
    mut stream: EventStream,
) -> anyhow::Result<Turn> {
    let (mut name, mut arguments, mut at) = (String::new(), String::new(), 0);
    while let Some(event) = stream.next().await {
        match event {
            Event::CallStart { name: called, .. } => (name, arguments) = (called, String::new()),
            Event::ArgumentsDelta { delta, .. } => arguments.push_str(&delta),
            Event::CallEnd { .. } => {
                println!(
                    "calls      {name}({}) up to token {}",
                    printable(&arguments),
                    stream.position()
                );
                if at > 0 && name != "load_tools" {
                    println!("live       {name} joined this turn at token {at}");
                }
                if name == "load_tools" && load(found, &arguments) {
                    let more = plan(louver, found, choice.clone())?;
                    at = match stream.extend(more.turn_plan()).await {
                        Ok(token) => {
                            println!(
                                "added      {} from token {token} on",
                                found.names().join(", ")
                            );
                            token
                        }
                        Err(ExtendError::Over) => {
                            println!(
                                "added      {} for the next turn: this one is over",
                                found.names().join(", ")
                            );
                            0
                        }
                        Err(error) => return Err(error.into()),
                    };
                }
            }
            _ => {}
        }
    }
    Ok(stream.finish().await?.turn)
}

/// Loads the tools that a call requests. Returns whether any are new.
fn load(found: &mut Toolbox, arguments: &str) -> bool {
    let topic = serde_json::from_str::<Value>(arguments).unwrap_or_default();
    let wanted = if topic["topic"] == "notes" { "note" } else { "add" };
    let before = found.names().len();
    found.add(desk().only(wanted));
    found.names().len() > before
}
