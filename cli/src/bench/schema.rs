//! The command `louver bench schema`.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use louver::engine::SchemaCompileError;
use louver::front::json_schema::{Registry, SchemaOptions};
use louver::fuel;
use louver::spec::json::Json;
use louver_formats::validator_instance;
use louver_hf_tokenizers::Encoder;

use super::feeder::Feeder;
use super::record::{self, CaseRecord, NOT_COMPILED};
use super::{SchemaArgs, case_id, python, read_case, run_cases};
use crate::validator;

pub(super) fn run(args: &SchemaArgs) -> Result<ExitCode> {
    let (tokenizer, engine) = super::engine(&args.common)?;
    let encoder = Encoder::new(&tokenizer, engine.vocab());
    let registry = args.registry.read()?;
    let run_case =
        |feeder: &mut Feeder<'_>, number, line: &str| match SchemaCase::read(line, &encoder) {
            Ok(case) => case.run(feeder, &registry, &args.options),
            Err(error) => CaseRecord::invalid_line(number, &error),
        };
    run_cases(&args.common, "schemas", &engine, run_case)
}

struct SchemaCase {
    id: String,
    schema: Json,
    /// Token sequences, and whether they are valid instances.
    tests: Vec<(Vec<u32>, bool)>,
    /// The instances of the tests.
    instances: Vec<Json>,
}

impl SchemaCase {
    fn read(line: &str, encoder: &Encoder<'_>) -> Result<SchemaCase> {
        let line = read_case(line)?;
        let field = |name: &str| line.get(name).with_context(|| format!("`{name}` is missing"));
        let (mut tests, mut instances) = (Vec::new(), Vec::new());
        for test in line.get("tests").and_then(Json::as_array).unwrap_or_default() {
            let data = test.get("data").context("a test without `data`")?;
            tests.push((
                encoder.encode(&python::dumps(data))?,
                matches!(test.get("valid"), Some(Json::Bool(true))),
            ));
            instances.push(data.clone());
        }
        Ok(SchemaCase { id: case_id(&line)?, schema: field("schema")?.clone(), tests, instances })
    }

    fn run(
        self,
        feeder: &mut Feeder<'_>,
        registry: &Registry,
        options: &SchemaOptions,
    ) -> CaseRecord {
        let started = Instant::now();
        let (compiled, compile_fuel) = fuel::measure(|| {
            feeder.engine().compile_parsed_schema(&self.schema, registry, options)
        });
        let record = match compiled {
            Ok((constraint, relaxed)) => {
                let mut record = feeder.feed_all(self.id, started, &constraint, &self.tests);
                let engine = feeder.engine();
                feeder.count_other_spellings(&mut record, &self.tests, options, |options| {
                    let compiled = engine.compile_parsed_schema(&self.schema, registry, options);
                    Some(compiled.ok()?.0)
                });
                if !relaxed.is_empty() {
                    let reports = relaxed.iter().map(ToString::to_string);
                    record.relaxed = Some(reports.collect());
                    record.relaxed_keywords = record::reasons(relaxed.iter());
                    validate(&mut record, &self.schema, &self.instances, registry, options);
                }
                record
            }
            Err(error) => {
                let refused_for = match &error {
                    SchemaCompileError::Schema(errors) => record::reasons(errors.iter()),
                    _ => vec![NOT_COMPILED.to_owned()],
                };
                CaseRecord::refused(self.id, started.elapsed(), error, refused_for)
            }
        };
        CaseRecord { compile_fuel, ..record }
    }
}

/// With the policy `validate`, an instance that the grammar wrongly accepts is not a wrong result
/// if validation rejects it.
fn validate(
    record: &mut CaseRecord,
    schema: &Json,
    instances: &[Json],
    registry: &Registry,
    options: &SchemaOptions,
) {
    let text = schema.to_string();
    let Some(Ok(validator)) = validator::of_relaxed(&text, registry, options, true) else {
        return;
    };
    let Some(wrong) = &mut record.wrong else { return };
    let before = wrong.len();
    wrong.retain(|(i, valid, _)| {
        let instance = validator_instance(instances[*i].to_string().as_bytes());
        *valid || instance.is_ok_and(|instance| validator.is_valid(&instance))
    });
    record.invalidated = before - wrong.len();
}
