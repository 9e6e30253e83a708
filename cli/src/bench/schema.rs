//! The command `louver bench schema`.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use louver::engine::{Constraint, Engine};
use louver::front::json_schema::{self, Registry, SchemaOptions};
use louver::fuel;
use louver::spec::json::Json;
use louver_hf_tokenizers::Encoder;

use super::feeder::{Feeder, nanos};
use super::record::{self, CaseRecord};
use super::{SchemaArgs, python, read_case, workers};

pub(super) fn run(args: &SchemaArgs) -> Result<ExitCode> {
    let (mut tokenizer, engine) = super::engine(&args.common)?;
    // Instances are plain text: special tokens are not recognised.
    tokenizer.set_encode_special_tokens(true);
    let encoder = Encoder::new(&tokenizer, engine.vocab());
    workers::run(&args.common, "schemas", || {
        let mut feeder = Feeder::new(&engine, &args.common);
        let encoder = &encoder;
        move |number, line: &str| match SchemaCase::read(line, encoder) {
            Ok(case) => case.run(&mut feeder, &args.options),
            Err(error) => CaseRecord::invalid_line(number, &error),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

struct SchemaCase {
    id: String,
    schema: Json,
    /// Token sequences, and whether they are valid instances.
    tests: Vec<(Vec<u32>, bool)>,
}

impl SchemaCase {
    fn read(line: &str, encoder: &Encoder<'_>) -> Result<SchemaCase> {
        let line = read_case(line)?;
        let field = |name: &str| line.get(name).with_context(|| format!("`{name}` is missing"));
        let mut tests = Vec::new();
        for test in line.get("tests").and_then(Json::as_array).unwrap_or_default() {
            let data = test.get("data").context("a test without `data`")?;
            tests.push((
                encoder.encode(&python::dumps(data))?,
                matches!(test.get("valid"), Some(Json::Bool(true))),
            ));
        }
        let id = field("id")?.as_str().unwrap_or_default().to_owned();
        Ok(SchemaCase { id, schema: field("schema")?.clone(), tests })
    }

    fn run(self, feeder: &mut Feeder<'_>, options: &SchemaOptions) -> CaseRecord {
        let started = Instant::now();
        let (compiled, compile_fuel) =
            fuel::measure(|| compile(feeder.engine(), &self.schema, options));
        let record = match compiled {
            Ok(constraint) => feeder.feed_all(self.id, started, &constraint, &self.tests),
            Err((error, refused_for)) => {
                CaseRecord::refused(self.id, nanos(started), error, refused_for)
            }
        };
        CaseRecord { compile_fuel, ..record }
    }
}

/// Lowers, compiles and binds a schema. An error includes its keywords.
fn compile(
    engine: &Engine,
    schema: &Json,
    options: &SchemaOptions,
) -> Result<Constraint, (String, Vec<String>)> {
    let limits = &engine.options().limits;
    let lowered = json_schema::lower_reported(schema, &Registry::default(), options, limits)
        .map_err(|errors| (errors.to_string(), record::reasons(errors.iter())))?;
    engine
        .compile(lowered.grammar)
        .map_err(|error| (error.to_string(), vec!["grammars that do not compile".to_owned()]))
}
