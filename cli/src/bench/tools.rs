//! The command `louver bench tools`.

mod forced;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use louver::engine::{Constraint, Engine};
use louver::front::json_schema::SchemaOptions;
use louver::fuel;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{
    Call, Catalog, LowerError, ParallelPolicy, RenderError, Tool, ToolRequest, Turn, WireFormat,
};

use super::feeder::Feeder;
use super::record::{self, CaseRecord, NOT_COMPILED};
use super::summary::SummaryRow;
use super::tokenizer::{TextEncoder, TokenizerSource};
use super::workers::{self, RunCase};
use super::{ToolsArgs, case_id, python, read_case, run_cases};
use crate::jsonl;

pub(super) fn run(args: &ToolsArgs) -> Result<ExitCode> {
    let (source, vocab) = TokenizerSource::load(&args.common)?;
    let encoder = source.encoder(&vocab);
    if args.forced {
        return forced::run(args, &encoder, &vocab);
    }
    if args.format == "all" {
        return run_all_families(args, &encoder, &vocab);
    }
    let engine = super::engine_on(&args.common, vocab);
    let format = Catalog::shipped().named_or_file(&args.format)?.bind(engine.vocab());
    run_cases(&args.common, "tool sets", &engine, run_case(args, &format, &encoder))
}

/// The function that runs a case.
fn run_case<'a>(
    args: &'a ToolsArgs,
    format: &'a WireFormat,
    encoder: &'a TextEncoder<'a>,
) -> impl RunCase + 'a {
    move |feeder: &mut Feeder<'_>, number, line: &str| match ToolsCase::read(line, format, encoder)
    {
        Ok(case) => case.run(feeder, format, &args.options),
        Err(error) => CaseRecord::invalid_line(number, &error),
    }
}

/// Runs all families in sequence, each on its own engine, and prints a table with one row each.
fn run_all_families(
    args: &ToolsArgs,
    encoder: &TextEncoder<'_>,
    vocab: &Arc<Vocabulary>,
) -> Result<ExitCode> {
    ensure!(args.common.ablation.is_none(), "--ablation runs one format: name it with --format");
    let cases = workers::cases(&args.common)?;
    let mut out = jsonl::JsonlWriter::create(&args.common.out)?;
    let mut consistent = Ok(());
    for (k, family) in Catalog::shipped().formats().iter().enumerate() {
        let (engine, format) = bind(args, family, vocab)?;
        let run_case = run_case(args, &format, encoder);
        let mut records = workers::records(&args.common, &engine, &cases, run_case)?;
        for record in &mut records {
            record.format = Some(family.name.clone());
            out.write(record)?;
        }
        if k == 0 {
            workers::report_invalid(&args.common, &records)?;
            eprintln!("{}", SummaryRow::HEADING);
        }
        eprintln!("{}", SummaryRow::new(&family.name, &records));
        consistent = consistent.and_then(|()| workers::check_consistency(&records));
    }
    out.finish()?;
    consistent.map(|()| ExitCode::SUCCESS)
}

/// An engine for a family, and the family's format on its vocabulary. Special tokens that the
/// vocabulary lacks are treated as text.
pub(super) fn bind(
    args: &ToolsArgs,
    family: &WireFormat,
    vocab: &Arc<Vocabulary>,
) -> Result<(Arc<Engine>, WireFormat)> {
    let engine = super::engine_on(&args.common, vocab.clone());
    let format = family.bind(vocab);
    let lowered = format.lower(&ToolRequest::default())?;
    let format = match engine.compile(lowered.grammar().clone()) {
        Ok(_) => format,
        Err(_) => family.with_text_markers(),
    };
    Ok((engine, format))
}

/// A recorded answer: tools, and calls of them.
pub(super) struct RecordedCalls {
    pub(super) id: String,
    pub(super) tools: Json,
    question: String,
    /// Names and arguments.
    calls: Vec<(String, Json)>,
}

impl RecordedCalls {
    pub(super) fn read(line: &str) -> Result<RecordedCalls> {
        let line = read_case(line)?;
        let text = |value: &Json, name: &str| -> Result<String> {
            let text = value
                .get(name)
                .and_then(Json::as_str)
                .with_context(|| format!("`{name}` is missing"))?;
            Ok(text.to_owned())
        };
        let call = |call: &Json| -> Result<(String, Json)> {
            let arguments = call.get("arguments").context("a call without `arguments`")?;
            Ok((text(call, "name")?, arguments.clone()))
        };
        let calls = line.get("calls").and_then(Json::as_array).context("`calls` is missing")?;
        Ok(RecordedCalls {
            id: case_id(&line)?,
            tools: line.get("tools").context("`tools` is missing")?.clone(),
            question: line.get("question").and_then(Json::as_str).unwrap_or_default().to_owned(),
            calls: calls.iter().map(call).collect::<Result<_>>()?,
        })
    }

    /// The calls in a format, after a text; the first only, if a turn of the format has one call.
    /// `write` serialises arguments.
    pub(super) fn render(
        &self,
        format: &WireFormat,
        text: String,
        write: impl Fn(&Json) -> String,
    ) -> Result<String> {
        let call = |(name, arguments): &(String, Json)| Call::new(name, write(arguments));
        let most = match format.call.parallel {
            ParallelPolicy::Many => self.calls.len(),
            ParallelPolicy::One => 1,
        };
        let calls = self.calls.iter().take(most).map(call).collect();
        let turn = Turn::default().with_text(text).with_calls(calls);
        turn_text(format, turn).context("the calls cannot be written in this format")
    }
}

struct ToolsCase {
    id: String,
    tools: Json,
    tokens: Vec<u32>,
}

impl ToolsCase {
    fn read(line: &str, format: &WireFormat, encoder: &TextEncoder<'_>) -> Result<ToolsCase> {
        let recorded = RecordedCalls::read(line)?;
        let text = format!("I will look into this: {}", recorded.question);
        let tokens = encoder.encode(&recorded.render(format, text, python::dumps)?)?;
        Ok(ToolsCase { id: recorded.id, tools: recorded.tools, tokens })
    }

    fn run(
        self,
        feeder: &mut Feeder<'_>,
        format: &WireFormat,
        options: &SchemaOptions,
    ) -> CaseRecord {
        let tools = self.tools.as_array().map(<[Json]>::len);
        let started = Instant::now();
        let (compiled, compile_fuel) =
            fuel::measure(|| compile(feeder.engine(), format, &self.tools, options));
        let record = match compiled {
            Ok(constraint) => {
                let tests = [(self.tokens, true)];
                let mut record = feeder.feed_all(self.id, started, &constraint, &tests);
                let engine = feeder.engine();
                feeder.count_other_spellings(&mut record, &tests, options, |options| {
                    compile(engine, format, &self.tools, options).ok()
                });
                record
            }
            Err((error, refused_for)) => {
                CaseRecord::refused(self.id, started.elapsed(), error, refused_for)
            }
        };
        CaseRecord { tools, compile_fuel, ..record }
    }
}

/// Renders a turn in the format; without its text if the format allows calls only.
fn turn_text(format: &WireFormat, turn: Turn) -> Result<String, RenderError> {
    match format.render(&turn) {
        Err(RenderError::TextBesideCalls) => format.render(&turn.with_text(String::new())),
        other => other,
    }
}

/// Parses, lowers and compiles the tools, with the tool choice `auto`.
pub(super) fn compile(
    engine: &Engine,
    format: &WireFormat,
    tools: &Json,
    options: &SchemaOptions,
) -> Result<Constraint, (String, Vec<String>)> {
    let refused =
        |error: &dyn std::fmt::Display, reason: &str| (error.to_string(), vec![reason.to_owned()]);
    let tools = Tool::parse_list(tools).map_err(|e| refused(&e, "lists of tools with faults"))?;
    let limits = engine.options().limits.clone();
    let schema_options = *options;
    let request = ToolRequest::default()
        .with_tools(tools)
        .with_limits(limits)
        .with_schema_options(schema_options);
    let lowered = format.lower(&request).map_err(|error| match &error {
        LowerError::Parts(errors) if !errors.schemas.is_empty() => {
            (error.to_string(), record::reasons(errors.schemas.iter()))
        }
        _ => refused(&error, "requests that cannot be lowered"),
    })?;
    engine.compile(lowered.grammar().clone()).map_err(|e| refused(&e, NOT_COMPILED))
}
