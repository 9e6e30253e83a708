//! Scaling: cost by schema size, depth, number of tools, vocabulary size and batch size, with one
//! figure each.

use std::path::Path;

use anyhow::{Context, Result};
use louver::spec::json::Json;
use louver_hf_tokenizers::Encoder;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{batch, hard};
use crate::cases::{Case, Schema, Task};
use crate::engine::{Engine, EngineKind};
use crate::options::Common;
use crate::plot::{self, Chart, Line};
use crate::setup::Setup;
use crate::table::{SortedTimes, micros};
use crate::{feed, output};

/// Number of rounds with new engines; the median counts.
const ROUNDS: usize = 3;
const PROPERTIES: [usize; 7] = [1, 3, 10, 30, 100, 300, 1000];
const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 48];
const TOOLS: [usize; 6] = [1, 4, 16, 64, 200, 400];
const WIDTHS: [usize; 6] = [1_000, 4_000, 16_000, 32_000, 64_000, 128_000];
const BATCHES: [usize; 5] = [1, 8, 64, 512, 2048];
const THREADS: usize = 2;

/// One measured point, in nanoseconds.
#[derive(Clone, Serialize)]
struct Point {
    dimension: &'static str,
    engine: &'static str,
    #[serde(skip)]
    kind: EngineKind,
    x: usize,
    /// Compile to first mask.
    ready_ns: Option<f64>,
    /// Average mask and advance, the first time.
    tbm_ns: Option<f64>,
    /// The same after the engine has run the task and text before.
    warm_ns: Option<f64>,
    /// The whole batch.
    batch_ns: Option<f64>,
}

/// Measures all dimensions and writes a figure of each to the folder.
pub(super) fn run(common: &Common, plots: &Path) -> Result<()> {
    let Some(setup) = Setup::load(common, &common.tokenizer)? else { return Ok(()) };
    let kinds = common.kinds();
    let encoder = setup.encoder();
    let mut all = Vec::new();

    let cases = PROPERTIES.iter().map(|&n| Ok((n, schema_case(properties(n), &encoder)?)));
    all.push((
        "properties",
        "properties",
        sweep("properties", &setup, &kinds, cases.collect::<Result<_>>()?)?,
    ));
    let cases = DEPTHS.iter().map(|&n| Ok((n, schema_case(nested(n), &encoder)?)));
    all.push((
        "depth",
        "nested objects",
        sweep("depth", &setup, &kinds, cases.collect::<Result<_>>()?)?,
    ));
    let tools = hard::tools(common, &setup, TOOLS[TOOLS.len() - 1])?;
    let sizes = TOOLS.iter().filter(|&&n| n <= tools.len());
    let cases = sizes.map(|&n| Ok((n, hard::tools_case(&tools[..n], &encoder)?)));
    all.push((
        "tools",
        "tools in one dispatch",
        sweep("tools", &setup, &kinds, cases.collect::<Result<_>>()?)?,
    ));
    all.push(("vocabulary", "tokens in the vocabulary", vocabulary(common, &setup, &kinds)?));
    all.push(("batch", "sequences in the batch", batches(common, &setup, &kinds)?));

    output::heading("How cost grows", &common.tokenizer, &kinds);
    println!("Medians of {ROUNDS} rounds with fresh engines, microseconds.\n");
    println!(
        "| what | how much | engine | compile to first mask | TBM avg | TBM avg, seen before | \
         batch |\n|:--|--:|:--|--:|--:|--:|--:|"
    );
    for (name, x, points) in &all {
        points.iter().for_each(print_row);
        let chart = |title, y, value: fn(&Point) -> Option<f64>| Chart {
            title,
            x,
            y,
            lines: lines(&kinds, points, value),
        };
        let charts = [
            chart("compile to first mask", "microseconds", |point| point.ready_ns),
            chart("mask and advance, average, cold", "microseconds a token", |point| point.tbm_ns),
            chart("mask and advance, average, seen before", "microseconds a token", |point| {
                point.warm_ns
            }),
            chart("masks of the whole batch, warm, 2 threads", "microseconds", |point| {
                point.batch_ns
            }),
        ];
        plot::write(&plots.join(format!("growth-{name}.svg")), &charts)?;
    }
    let points = all.iter().flat_map(|(_, _, points)| points);
    output::write_lines(&common.out, &format!("growth.{}.jsonl", common.tokenizer), points)
}

/// Prints a point as a row of the table.
fn print_row(point: &Point) {
    let times = [point.ready_ns, point.tbm_ns, point.warm_ns, point.batch_ns];
    let cells = times.map(micros).join(" | ");
    println!("| {} | {} | {} | {cells} |", point.dimension, point.x, point.engine);
}

fn lines(kinds: &[EngineKind], points: &[Point], value: fn(&Point) -> Option<f64>) -> Vec<Line> {
    let of = |kind: EngineKind| points.iter().filter(move |point| point.kind == kind);
    let line =
        |kind| of(kind).filter_map(|point| Some((point.x as f64, value(point)? / 1e3))).collect();
    kinds
        .iter()
        .map(|&kind| Line { kind, points: line(kind) })
        .filter(|line| !line.points.is_empty())
        .collect()
}

/// Measures each case on each engine; engines that reject a case or its text have no point there.
fn sweep(
    dimension: &'static str,
    setup: &Setup,
    kinds: &[EngineKind],
    cases: Vec<(usize, Case)>,
) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for (x, case) in &cases {
        for &kind in kinds {
            let engines = (0..ROUNDS).map(|_| setup.engine(kind)).collect::<Result<Vec<_>>>()?;
            let engines: Vec<&dyn Engine> = engines.iter().map(AsRef::as_ref).collect();
            points.extend(point(dimension, *x, case, &engines));
        }
        eprintln!("growth: {dimension} {x}");
    }
    Ok(points)
}

/// Measures one round per engine.
fn point(dimension: &'static str, x: usize, case: &Case, engines: &[&dyn Engine]) -> Option<Point> {
    let kind = engines.first()?.kind();
    let (mut ready, mut tbm, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for engine in engines {
        let record = feed::run(*engine, case);
        if !record.wrong.as_ref().is_some_and(Vec::is_empty) {
            eprintln!("growth: {dimension} {x}: not with {}: {:?}", kind.name(), record.error);
            return None;
        }
        ready.push(record.ttfm_ns + record.first_mask_ns?);
        tbm.push(SortedTimes::new(record.masks_ns?).average()? as u64);
        warm.push(SortedTimes::new(feed::run(*engine, case).masks_ns?).average()? as u64);
    }
    let median = |values: Vec<u64>| SortedTimes::new(values).percentile(50.0);
    let (ready_ns, tbm_ns, warm_ns) = (median(ready), median(tbm), median(warm));
    Some(Point {
        dimension,
        engine: kind.name(),
        kind,
        x,
        ready_ns,
        tbm_ns,
        warm_ns,
        batch_ns: None,
    })
}

fn schema_case(pair: (Value, Value), encoder: &Encoder<'_>) -> Result<Case> {
    let (schema, instance) = pair;
    let tokens = encoder.encode(&louver_formats::python_json(&instance))?;
    let task = Task::Schema(Schema::new(Json::from(schema))?);
    Ok(Case { id: String::new(), task, instances: vec![(tokens, true)] })
}

/// An object with `n` required properties of six kinds, and an instance.
fn properties(n: usize) -> (Value, Value) {
    let (mut schemas, mut values) = (Map::new(), Map::new());
    for i in 0..n {
        let (schema, value) = match i % 6 {
            0 => (json!({"type": "string"}), json!("some words of text")),
            1 => (json!({"type": "integer", "minimum": 0}), json!(i * 17)),
            2 => (json!({"enum": ["red", "green", "blue"]}), json!("green")),
            3 => (json!({"type": "array", "items": {"type": "number"}}), json!([1.5, 2, -3])),
            4 => (json!({"type": ["boolean", "null"]}), json!(true)),
            _ => (json!({"type": "string", "format": "date"}), json!("2024-02-29")),
        };
        schemas.insert(format!("property_{i}"), schema);
        values.insert(format!("property_{i}"), value);
    }
    let required: Vec<&String> = schemas.keys().collect();
    let schema = json!({"type": "object", "properties": schemas, "required": required, "additionalProperties": false});
    (schema, Value::Object(values))
}

/// An object nested `depth` levels, and an instance.
fn nested(depth: usize) -> (Value, Value) {
    let start = (json!({"type": "string"}), json!("at the bottom"));
    (0..depth).fold(start, |(schema, value), i| {
        let (name, count) = (format!("inner_{i}"), format!("count_{i}"));
        let properties = json!({&count: {"type": "integer"}, &name: schema});
        let schema = json!({"type": "object", "properties": properties, "required": [count, name]});
        (schema, json!({&count: i, &name: value}))
    })
}

/// Vocabularies of the first tokens of the tokenizer, whose merges are ordered by frequency.
fn vocabulary(common: &Common, setup: &Setup, kinds: &[EngineKind]) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for width in WIDTHS.into_iter().filter(|&width| width <= setup.vocab.width()) {
        let folder = common.out.join(format!("tokenizer-{width}"));
        std::fs::create_dir_all(&folder)?;
        let path = folder.join("tokenizer.json");
        std::fs::write(&path, truncated(&std::fs::read_to_string(setup.path())?, width)?)?;
        let setup = Setup::of_file(path, "truncated")?;
        let case = schema_case(properties(30), &setup.encoder())?;
        points.extend(sweep("vocabulary", &setup, kinds, vec![(width, case)])?);
    }
    Ok(points)
}

/// A BPE tokenizer truncated to its first tokens, with a stop token as the last.
fn truncated(tokenizer: &str, width: usize) -> Result<String> {
    let mut tokenizer: Value = serde_json::from_str(tokenizer)?;
    let vocab =
        tokenizer["model"]["vocab"].as_object_mut().context("the tokenizer has no vocabulary")?;
    vocab.retain(|_, id| id.as_u64().is_some_and(|id| id < width as u64 - 1));
    let vocab = vocab.clone();
    let merges =
        tokenizer["model"]["merges"].as_array_mut().context("the tokenizer has no merges")?;
    merges.retain(|merge| {
        let parts: Vec<&str> = match merge {
            Value::String(text) => text.split(' ').collect(),
            other => other.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
        };
        parts.iter().all(|part| vocab.contains_key(*part)) && vocab.contains_key(&parts.concat())
    });
    let stop = json!({
        "id": width - 1, "content": "<|eot_id|>", "special": true,
        "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
    });
    tokenizer["added_tokens"] = json!([stop]);
    tokenizer["post_processor"] = Value::Null;
    Ok(tokenizer.to_string())
}

/// Batches of growing size.
fn batches(common: &Common, setup: &Setup, kinds: &[EngineKind]) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    let Some(cases) = batch::schemas(common, setup, kinds)? else { return Ok(points) };
    for x in BATCHES {
        for &kind in kinds {
            let fill = batch::measure(setup, kind, &cases, x, THREADS)?;
            let batch_ns = fill.moving.percentile(50.0);
            points.push(Point {
                dimension: "batch",
                engine: kind.name(),
                kind,
                x,
                ready_ns: None,
                tbm_ns: None,
                warm_ns: None,
                batch_ns,
            });
        }
    }
    Ok(points)
}
