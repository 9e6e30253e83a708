//! The `louver` command: a demo agent on mistral.rs, a server, validation of inputs, explanation of
//! grammars, and benchmarks.

mod bench;
mod check;
mod counts;
#[cfg(feature = "host")]
mod demo;
mod explain;
#[cfg(feature = "host")]
mod foreign_flags;
mod formats;
mod jsonl;
#[cfg(feature = "host")]
mod model_flags;
mod registry;
#[cfg(feature = "host")]
mod serve;
mod spec;
#[cfg(feature = "host")]
mod telemetry;
#[cfg(feature = "host")]
mod tool_turn;
#[cfg(feature = "host")]
mod trained;
mod validator;

use std::process::ExitCode;

#[cfg(feature = "host")]
use clap::CommandFactory;
use clap::{Parser, Subcommand};

/// Structured generation for mistral.rs: tool calls and JSON that cannot be malformed.
#[derive(Debug, Parser)]
#[command(name = "louver", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a tool-calling agent on a small model, constrained by Louver.
    #[cfg(feature = "host")]
    Demo(demo::DemoArgs),
    /// Serve models with OpenAI's API.
    #[cfg(feature = "host")]
    Serve(serve::ServeArgs),
    /// Not in this build: `louver demo` and `louver serve` need the feature `host`.
    #[cfg(not(feature = "host"))]
    #[command(hide = true, aliases = ["serve"], disable_help_flag = true)]
    Demo {
        #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
        _arguments: Vec<String>,
    },
    /// Check inputs against JSON Schemas, regular expressions, grammars and tools.
    Check(check::CheckArgs),
    /// Show how a grammar is compiled, and what may follow a prefix.
    Explain(explain::ExplainArgs),
    /// Show wire formats, detect a checkpoint's format, and check a format against a chat template.
    #[command(subcommand)]
    Formats(formats::FormatsCommand),
    /// Measure mask times and correctness.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

impl Command {
    /// Whether the command goes on when nobody reads its output.
    fn is_server(&self) -> bool {
        match self {
            #[cfg(feature = "host")]
            Command::Serve(_) => true,
            _ => false,
        }
    }
}

/// Exit code for wrong usage and unusable specs, as in clap.
const USAGE: u8 = 2;

/// Exit code where the reader of the output is gone, as in `louver ... | head`: what shells report
/// for programs that the signal ends.
const BROKEN_PIPE: u8 = 141;

/// Ends the process without a message if printing panics because the reader is gone.
fn end_quietly_on_broken_pipe() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_broken_pipe = |message: &str| {
            message.starts_with("failed printing to stdout") && message.contains("Broken pipe")
        };
        if panic.payload().downcast_ref::<String>().is_some_and(|text| is_broken_pipe(text)) {
            std::process::exit(BROKEN_PIPE.into());
        }
        report(panic);
    }));
}

/// Parses the command line, or ends the process with a message. Flags of other servers get advice.
fn parse() -> Cli {
    #[cfg(feature = "host")]
    let cli = {
        let arguments: Vec<_> = std::env::args_os().collect();
        Cli::try_parse_from(&arguments)
            .map_err(|error| foreign_flags::advised(error, Cli::command(), &arguments))
    };
    #[cfg(not(feature = "host"))]
    let cli = Cli::try_parse();
    cli.unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    let command = parse().command;
    if !command.is_server() {
        end_quietly_on_broken_pipe();
    }
    let outcome = match command {
        #[cfg(feature = "host")]
        Command::Demo(args) => demo::run(args),
        #[cfg(feature = "host")]
        Command::Serve(args) => serve::run(args),
        #[cfg(not(feature = "host"))]
        Command::Demo { .. } => Err(anyhow::anyhow!(
            "this build has no `demo` and no `serve`: they need the feature `host`, \
             which is on by default (`cargo build -p louver-cli`)"
        )),
        Command::Check(args) => on_large_stack(|| check::run(&args)),
        Command::Explain(args) => explain::run(&args),
        Command::Formats(command) => formats::run(&command),
        Command::Bench(command) => bench::run(&command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{}", headed(describe(&error).trim_start()));
        ExitCode::from(USAGE)
    })
}

/// Validators recurse as deep as the references of a schema, which may have megabytes.
const STACK_BYTES: usize = 1 << 30;

/// Runs a command on a thread with a stack for [`STACK_BYTES`]; only what is used takes memory.
fn on_large_stack(
    run: impl FnOnce() -> anyhow::Result<ExitCode> + Send,
) -> anyhow::Result<ExitCode> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A message with its heading. Those about a text have their own, and may begin with warnings.
fn headed(text: &str) -> String {
    let has_heading = ["error: ", "warning: "].iter().any(|heading| text.starts_with(heading));
    if has_heading { text.to_owned() } else { format!("error: {text}") }
}

/// An error and its causes, each once: some errors name their cause themselves.
fn describe(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn causes_are_described_once() {
        let error = anyhow::anyhow!("no such file").context("cannot read: no such file");
        assert_eq!(super::describe(&error), "cannot read: no such file");
        let error = anyhow::anyhow!("no such file").context("cannot read");
        assert_eq!(super::describe(&error), "cannot read: no such file");
    }

    #[test]
    fn messages_have_one_heading() {
        for (text, headed) in [
            ("no such file", "error: no such file"),
            ("error: there is no rule", "error: there is no rule"),
            ("warning: no effect\n\nerror: no", "warning: no effect\n\nerror: no"),
        ] {
            assert_eq!(super::headed(text), headed);
        }
    }
}
