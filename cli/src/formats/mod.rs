//! The command `louver formats`: wire formats by name, of checkpoints, and against chat templates.

mod annotate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use louver_formats::Catalog;
use louver_templates::{
    Checkpoint, Confirmation, FamilyError, FormatSource, Outcome, ResolveError, Resolved,
    SourceError, confirm, resolve,
};

/// Wire formats of model families.
#[derive(Debug, Subcommand)]
pub(crate) enum FormatsCommand {
    /// List the families that Louver knows.
    List,
    /// Print the description of a family, or of a file, as TOML.
    Show {
        /// A family's name, or a description (*.toml).
        name: String,
    },
    /// Find the wire format of a checkpoint and print it as TOML, with where each part came from.
    ///
    /// Sources: a family that Louver knows, the checkpoint's `response_template`, and what its chat
    /// template writes. A derived description that the chat template does not confirm is printed,
    /// too, to be corrected. Exit code: 0 the chat template confirms the format, 1 it does not or
    /// there is no format (the reason is on stderr), 2 the checkpoint cannot be read.
    Detect(DetectArgs),
    /// Check a wire format against a chat template: what the template writes is accepted by the
    /// grammar and read back.
    ///
    /// Exit code: 0 confirmed, 1 not confirmed, 2 the files cannot be read.
    Check {
        /// A family's name, or a description (*.toml).
        format: String,
        /// The folder of a checkpoint, its tokenizer_config.json, or a chat template (*.jinja).
        checkpoint: PathBuf,
    },
}

/// The arguments of `louver formats detect`.
#[derive(Debug, Args)]
pub(crate) struct DetectArgs {
    /// Folders of checkpoints, their tokenizer_config.json, or chat templates (*.jinja).
    #[arg(required = true, value_name = "DIR|FILE")]
    checkpoints: Vec<PathBuf>,
    /// Print a table with one row per checkpoint instead: format, source, confirmed or not, time.
    #[arg(long)]
    table: bool,
    /// Do not look at the families that Louver ships.
    #[arg(long)]
    no_families: bool,
    /// A description (*.toml) beside those that Louver ships; repeatable.
    #[arg(long, value_name = "FILE.toml")]
    format_file: Vec<PathBuf>,
}

/// Exit code of a format that is not confirmed.
const UNCONFIRMED: u8 = 1;

pub(crate) fn run(command: &FormatsCommand) -> Result<ExitCode> {
    match command {
        FormatsCommand::List => list(),
        FormatsCommand::Show { name } => show(name),
        FormatsCommand::Detect(args) => detect(args),
        FormatsCommand::Check { format, checkpoint } => check(format, checkpoint),
    }
}

fn list() -> Result<ExitCode> {
    for format in Catalog::shipped().formats() {
        println!("{:<18} {}", format.name, format.title);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(name: &str) -> Result<ExitCode> {
    let format = Catalog::shipped().named_or_file(name)?;
    print!("{}", annotate::description(&format, &[])?);
    Ok(ExitCode::SUCCESS)
}

fn check(format: &str, checkpoint: &Path) -> Result<ExitCode> {
    let format = Catalog::shipped().named_or_file(format)?;
    let checkpoint_path = checkpoint;
    let checkpoint = Checkpoint::read(checkpoint)?;
    let template = checkpoint.template.as_ref().map_err(Clone::clone);
    let template = template.with_context(|| checkpoint_path.display().to_string())?;
    let confirmation = confirm(&format, template, &checkpoint.special_tokens);
    for line in confirmation.lines() {
        println!("{line}");
    }
    Ok(exit_code(&confirmation))
}

fn exit_code(confirmation: &Confirmation) -> ExitCode {
    ExitCode::from(if confirmation.is_full() { 0 } else { UNCONFIRMED })
}

fn detect(args: &DetectArgs) -> Result<ExitCode> {
    let mut catalog = if args.no_families { Catalog::empty() } else { Catalog::shipped() };
    for file in &args.format_file {
        catalog.add_file(file)?;
    }
    if args.table {
        println!("| checkpoint | format | source | confirmed | ms |\n|---|---|---|---|---|");
    }
    let mut all_confirmed = true;
    for path in &args.checkpoints {
        let name = name_of(path);
        let start = Instant::now();
        let checkpoint = match Checkpoint::read(path) {
            Ok(checkpoint) => checkpoint,
            Err(error) if args.table => {
                println!("| {name} | - | none | unreadable: {error} | - |");
                all_confirmed = false;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let found = resolve(&checkpoint, &catalog, &name);
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        all_confirmed &= found.as_ref().is_ok_and(Resolved::is_confirmed);
        match (&found, args.table) {
            (_, true) => println!("{}", row(&name, &found, elapsed)),
            (Ok(found), false) => print!("{}", annotate::annotated(found)?),
            (Err(error), false) => {
                eprintln!("{}: {error}", path.display());
                if let Some(found) = unconfirmed(error) {
                    print!("{}", annotate::annotated(found)?);
                }
            }
        }
    }
    Ok(ExitCode::from(if all_confirmed { 0 } else { UNCONFIRMED }))
}

/// A description that the chat template does not confirm: of the last source that gives one.
fn unconfirmed(error: &ResolveError) -> Option<&Resolved> {
    let sources = [Some(&error.chat_template), error.response_template.as_ref()];
    sources.into_iter().flatten().find_map(|source| match &**source {
        SourceError::Unconfirmed(found) => Some(&**found),
        _ => None,
    })
}

/// The name of a checkpoint: that of its folder, or of its chat template.
fn name_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_config = path.file_name().is_some_and(|name| name == "tokenizer_config.json");
    let named = if is_config { path.parent().unwrap_or(&path) } else { &path };
    let name = if named.is_dir() { named.file_name() } else { named.file_stem() };
    name.map_or_else(|| "checkpoint".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A row of the table.
fn row(name: &str, found: &Result<Resolved, ResolveError>, elapsed: f64) -> String {
    let (format, source, confirmed) = match found {
        Err(error) => ("-", "none", format!("refused: {}", reasons(error))),
        Ok(found) => {
            let source = match found.source {
                FormatSource::Operator => "operator",
                FormatSource::Family(_) => "family",
                FormatSource::ResponseTemplate(_) => "response_template",
                FormatSource::ChatTemplate => "chat template",
            };
            let confirmed = match &found.confirmation {
                Err(error) => format!("no: {error}"),
                Ok(confirmation) if confirmation.is_full() => "yes".to_owned(),
                Ok(confirmation) => format!("no: {}", turns(confirmation)),
            };
            (found.format.name.as_str(), source, confirmed)
        }
    };
    let confirmed = confirmed.replace('|', "\\|");
    format!("| {name} | {format} | {source} | {confirmed} | {elapsed:.1} |")
}

/// The turns that are not confirmed, by what is wrong with them.
fn turns(confirmation: &Confirmation) -> String {
    let mut problems: Vec<(&str, Vec<&str>)> = Vec::new();
    for case in confirmation.unconfirmed() {
        let problem = match &case.outcome {
            Outcome::Confirmed | Outcome::Unescaped | Outcome::OneCall => continue,
            Outcome::NotShown => "not written",
            Outcome::Refused(_) => "not tried",
            Outcome::Invalid(_) => "the format fails",
            Outcome::Mismatch { .. } => "other than the format",
            _ => "not confirmed",
        };
        match problems.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, names)) => names.push(case.name),
            None => problems.push((problem, vec![case.name])),
        }
    }
    let problems = problems.iter().map(|(what, names)| format!("{what}: {}", names.join(", ")));
    problems.collect::<Vec<_>>().join("; ")
}

/// Why there is no format, in short.
fn reasons(error: &ResolveError) -> String {
    let family = match &*error.family {
        FamilyError::Undetected(_) => "no family".to_owned(),
        FamilyError::Contradicted { name, confirmation, .. } => {
            format!("{name} by its marks, but {}", turns(confirmation))
        }
    };
    let sources = error.response_template.iter().chain([&error.chat_template]);
    let sources = sources.map(|source| match &**source {
        SourceError::ResponseTemplate(error) => error.to_string(),
        SourceError::Probe(error) => error.to_string(),
        SourceError::NoTemplate(error) => error.to_string(),
        SourceError::Unconfirmed(found) => {
            format!("derived: {}", found.confirmation.as_ref().map(turns).unwrap_or_default())
        }
    });
    std::iter::once(family).chain(sources).collect::<Vec<_>>().join("; ")
}
