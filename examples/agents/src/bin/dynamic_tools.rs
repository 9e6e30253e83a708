//! An agent that finds its tools while the model is speaking. At first there is one tool, which loads others. The moment
//! its call is whole, the loaded tools join the turn that is still running: the model may call them in the same breath.

use clap::Parser;
use louver_examples::{Setup, Toolbox, desk, one_spelling, printable, remember, run_calls};
use louver_mistralrs::{
    Event, EventStream, ExtendError, Louver, Parallel, Plan, Reasoning, ToolChoice, Turn,
};
use serde_json::{Value, json};

/// Most turns.
const STEPS: u64 = 3;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let setup = Setup::parse();
    let (model, louver) = setup.load().await?;
    let mut found = Toolbox::default();
    let mut history = setup.ask(&louver, "Add 17 and 25, and write a note about it.");
    for step in 1..=STEPS {
        let choice = if step == 1 { ToolChoice::Required } else { ToolChoice::Auto };
        let plan = plan(&louver, &found, choice.clone())?;
        let stream = plan.stream_with(&model, history.clone(), setup.step(step)).await?;
        let turn = listen(&louver, &mut found, choice, stream).await?;
        if turn.calls.is_empty() {
            println!("done       after {step} of at most {STEPS} steps");
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
        history = remember(history, turn, results);
    }
    println!("limit      {STEPS} steps");
    Ok(())
}

/// The tool that loads tools, in OpenAI's form.
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

/// A turn with the loader and what it has loaded.
fn plan(louver: &Louver, found: &Toolbox, choice: ToolChoice) -> anyhow::Result<Plan> {
    let mut tools = vec![loader()];
    tools.extend(found.definitions().as_array().cloned().unwrap_or_default());
    let plan =
        louver.tools(Value::Array(tools)).choice(choice).parallel(Parallel::AtMost(4.try_into()?));
    Ok(plan.reasoning(Reasoning::Off).schema_options(one_spelling()).build()?)
}

/// Reads a turn. Tools that are loaded in it are added to it.
async fn listen(
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
                    at = match stream.extend(&more).await {
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

/// Loads what a call asks for. Whether there is anything new.
fn load(found: &mut Toolbox, arguments: &str) -> bool {
    let topic = serde_json::from_str::<Value>(arguments).unwrap_or_default();
    let wanted = if topic["topic"] == "notes" { "note" } else { "add" };
    let before = found.names().len();
    found.add(desk().only(wanted));
    found.names().len() > before
}
