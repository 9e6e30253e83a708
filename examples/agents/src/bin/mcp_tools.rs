//! An agent whose tools come from an MCP server: the schemas that the server lists are enforced,
//! and the calls run there. By default the server is the example `mcp_server`, beside this program.

use clap::Parser;
use louver_examples::{Setup, append_turn, printable, training_format};
use louver_mistralrs::{McpTools, Parallel, Reasoning, ToolChoice};
use mistralrs::{McpClientConfig, McpServerConfig, McpServerSource};

#[derive(Debug, clap::Parser)]
struct Arguments {
    #[command(flatten)]
    setup: Setup,
    /// The command of an MCP server that reads standard input.
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Maximum number of turns.
    #[arg(long, value_name = "N", default_value_t = 3)]
    turns: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { setup, server, turns } = Arguments::parse();
    let (model, louver) = setup.load().await?;
    let command = match server {
        Some(command) => command,
        None => std::env::current_exe()?.with_file_name("mcp_server").display().to_string(),
    };
    let source = McpServerSource::Process { command, args: Vec::new(), work_dir: None, env: None };
    let server = McpServerConfig { name: "units".to_owned(), source, ..Default::default() };
    let config = McpClientConfig { servers: vec![server], ..Default::default() };
    let mcp = McpTools::connect(config).await?;
    println!("tools      {}", mcp.names().join(", "));

    let mut history = setup.new_conversation(&louver, "Was 1900 a leap year? How far is 5 km?");
    for step in 1..=turns {
        let choice = if step == 1 { ToolChoice::Required } else { ToolChoice::Auto };
        let plan = louver.tools(mcp.definitions()).choice(choice).reasoning(Reasoning::Off);
        let plan = plan.parallel(Parallel::AtMost(4.try_into()?));
        let plan = plan.schema_options(training_format()).build()?;
        let stream = plan.stream_with(&model, history.clone(), setup.run_options(step)).await?;
        let turn = stream.finish().await?.turn;
        if turn.calls.is_empty() {
            println!("answer     {}", printable(&turn.text));
            break;
        }
        let mut results = Vec::new();
        for call in &turn.calls {
            // An error is a result, too, so that the model sees it.
            let result = mcp.call(call).await.unwrap_or_else(|error| error.to_string());
            println!("call       {}({}) -> {}", call.name, call.arguments, printable(&result));
            results.push(result.into());
        }
        history = append_turn(history, turn, results);
    }
    Ok(())
}
