//! `louver bench tools`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use louver::engine::{Constraint, Engine};
use louver::fuel;
use louver::spec::json::Json;
use louver::spec::tools::Tool;
use louver::vocab::Vocabulary;
use louver_formats::{
    Call, CallKind, Catalog, LowerError, RenderError, ToolRequest, Turn, WireFormat,
};

use super::encode::{Encode, Source};
use super::feed::{Feeder, nanos};
use super::record::{self, Record};
use super::summary::Row;
use super::{CommonArgs, ToolsArgs, python, read_case, workers};
use crate::lines;

pub(super) fn run(args: &ToolsArgs) -> Result<ExitCode> {
    let (source, vocab) = Source::load(&args.common)?;
    let encoder = source.encoder(&vocab);
    if args.format == "all" {
        return every_family(args, &encoder, &vocab);
    }
    let engine = super::engine_on(&args.common, vocab);
    let format = wire_format(&args.format)?.bind(engine.vocab());
    workers::run(&args.common, "tool sets", worker(&args.common, &engine, &format, &encoder))?;
    Ok(ExitCode::SUCCESS)
}

/// What a thread runs each case with.
fn worker<'a>(
    common: &'a CommonArgs,
    engine: &'a Engine,
    format: &'a WireFormat,
    encoder: &'a Encode<'a>,
) -> impl Fn() -> Box<dyn FnMut(usize, &str) -> Record + 'a> + Sync {
    move || {
        let mut feeder = Feeder::new(engine, common);
        Box::new(move |number, line| match Case::read(line, format, encoder) {
            Ok(case) => case.run(&mut feeder, format),
            Err(error) => Record::no_case(number, &error),
        })
    }
}

/// All families one after the other, each on an engine of its own, and a table with a line for each. What a family writes
/// as a special token that this vocabulary lacks is text here.
fn every_family(
    args: &ToolsArgs,
    encoder: &Encode<'_>,
    vocab: &Arc<Vocabulary>,
) -> Result<ExitCode> {
    let cases = workers::cases(&args.common)?;
    let mut out = lines::Writer::create(&args.common.out)?;
    for (k, family) in Catalog::builtin().formats().iter().enumerate() {
        let engine = super::engine_on(&args.common, vocab.clone());
        let mut format = family.bind(vocab);
        if engine.compile(format.lower(&ToolRequest::default())?.grammar().clone()).is_err() {
            format = family.spelled();
        }
        let mut records = workers::records(
            &args.common,
            &cases,
            worker(&args.common, &engine, &format, encoder),
        )?;
        for record in &mut records {
            record.format = Some(family.name.clone());
            out.write(record)?;
        }
        if k == 0 {
            eprintln!("{}", Row::HEADING);
        }
        eprintln!("{}", Row::of(&family.name, &records));
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// A family by its name, or a file that describes one.
fn wire_format(name: &str) -> Result<WireFormat> {
    if name.ends_with(".toml") {
        return Ok(WireFormat::from_file(Path::new(name))?);
    }
    Ok(Catalog::builtin().get(name)?.clone())
}

struct Case {
    id: String,
    tools: Json,
    tokens: Vec<u32>,
}

impl Case {
    fn read(line: &str, format: &WireFormat, encoder: &Encode<'_>) -> Result<Case> {
        let line = read_case(line)?;
        let text = |value: &Json, name: &str| -> Result<String> {
            let text = value
                .get(name)
                .and_then(Json::as_str)
                .with_context(|| format!("`{name}` is missing"))?;
            Ok(text.to_owned())
        };
        let call = |call: &Json| -> Result<Call> {
            let arguments =
                python::dumps(call.get("arguments").context("a call without `arguments`")?);
            Ok(Call {
                id: String::new(),
                name: text(call, "name")?,
                arguments,
                kind: CallKind::Function,
            })
        };
        let calls = line.get("calls").and_then(Json::as_array).context("`calls` is missing")?;
        let calls: Vec<Call> = calls.iter().map(call).collect::<Result<_>>()?;
        let question = line.get("question").and_then(Json::as_str).unwrap_or_default();
        let turn =
            Turn { text: format!("I will look into this: {question}"), calls, ..Turn::default() };
        let output =
            turn_text(format, turn).context("the calls cannot be written in this format")?;
        let tools = line.get("tools").context("`tools` is missing")?.clone();
        Ok(Case { id: text(&line, "id")?, tools, tokens: encoder.encode(&output)? })
    }

    fn run(self, feeder: &mut Feeder<'_>, format: &WireFormat) -> Record {
        let tools = self.tools.as_array().map(<[Json]>::len);
        let begin = Instant::now();
        let (made, compile_fuel) = fuel::measure(|| compile(feeder.engine(), format, &self.tools));
        let record = match made {
            Ok(constraint) => feeder.feed_all(self.id, begin, &constraint, &[(self.tokens, true)]),
            Err((error, refused_for)) => Record::refused(self.id, nanos(begin), error, refused_for),
        };
        Record { tools, compile_fuel, ..record }
    }
}

/// The turn as the format writes it; without its text, where calls stand alone.
fn turn_text(format: &WireFormat, turn: Turn) -> Result<String, RenderError> {
    match format.render(&turn) {
        Err(RenderError::TextBesideCalls) => format.render(&Turn { text: String::new(), ..turn }),
        other => other,
    }
}

/// Reads, lowers and compiles the tools, to be called or not as the model likes.
fn compile(
    engine: &Engine,
    format: &WireFormat,
    tools: &Json,
) -> Result<Constraint, (String, Vec<String>)> {
    let refused =
        |error: &dyn std::fmt::Display, why: &str| (error.to_string(), vec![why.to_owned()]);
    let tools = Tool::parse_list(tools).map_err(|e| refused(&e, "lists of tools with faults"))?;
    let limits = engine.options().limits.clone();
    let request = ToolRequest { tools, limits, ..ToolRequest::default() };
    let plan = format.lower(&request).map_err(|error| match &error {
        LowerError::Schemas(errors) => (error.to_string(), record::reasons(errors.iter())),
        _ => refused(&error, "requests that cannot be lowered"),
    })?;
    engine.compile(plan.grammar().clone()).map_err(|e| refused(&e, "grammars that do not compile"))
}
