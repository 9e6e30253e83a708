//! A strict tool call in ten lines: the arguments match the schema, whatever the model.

use clap::Parser;
use louver_examples::{Setup, training_format};
use louver_mistralrs::{Reasoning, ToolChoice};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let setup = Setup::parse();
    let (model, louver) = setup.load().await?;
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Lima"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "days"], "additionalProperties": false,
    });
    let tools =
        json!([{"type": "function", "function": {"name": "weather", "parameters": parameters}}]);

    let plan = louver.tools(&tools).choice(ToolChoice::Required).reasoning(Reasoning::Off);
    let plan = plan.schema_options(training_format()).build()?;
    let stream = plan
        .stream_with(
            &model,
            setup.new_conversation(&louver, "Will it rain in Oslo?"),
            setup.run_options(1),
        )
        .await?;
    for call in stream.finish().await?.turn.calls {
        println!("call       {}({})", call.name, call.arguments);
    }
    Ok(())
}
