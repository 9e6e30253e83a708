//! Runs a corpus of schemas and instances through lowering, compilation and recognition, and prints
//! the results.
//!
//! `cargo run --release -p louver --example schema_sweep -- FILE.jsonl [--verbose] [--options JSON]
//! [--lower N]`. With `--lower` every schema is only lowered, N times. Each line is `{"schema",
//! "tests": [{"valid", "data"}]}` (MaskBench, JSON-Schema-Test-Suite). Instances are written like
//! Python's `json.dumps`. Exit code 1 if an invalid instance was accepted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use louver::compile::Compiled;
use louver::front::json_schema::{SchemaErrorReason, SchemaOptions, lower};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde_json::Value;

#[derive(Default)]
struct Counts {
    schemas: usize,
    refused: BTreeMap<String, usize>,
    right: usize,
    wrongly_rejected: usize,
    wrongly_accepted: usize,
    lowering: Vec<Duration>,
    compiling: Vec<Duration>,
}

fn dumps(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                dumps(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(": ");
                dumps(item, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn case(
    line: &Value,
    options: &SchemaOptions,
    (verbose, lower_only): (bool, usize),
    counts: &mut Counts,
) {
    let limits = Limits::default();
    let name =
        line.get("id").or_else(|| line.get("group")).map(Value::to_string).unwrap_or_default();
    let Some(schema) = line.get("schema") else { return };
    let mut schema = schema.clone();
    if let (Some(true), Some(map)) =
        (line["file"].as_str().map(|f| f.starts_with("draft7")), schema.as_object_mut())
    {
        map.entry("$schema")
            .or_insert_with(|| Value::from("http://json-schema.org/draft-07/schema#"));
    }
    let json = Json::from(&schema);
    counts.schemas += 1;
    for _ in 0..lower_only {
        let begin = Instant::now();
        let _ = std::hint::black_box(lower(&json, options, &limits));
        counts.lowering.push(begin.elapsed());
    }
    if lower_only > 0 {
        return;
    }
    let begin = Instant::now();
    let grammar = match lower(&json, options, &limits) {
        Ok(grammar) => grammar,
        Err(errors) => {
            let first = &errors.0[0];
            let kind = match first.reason {
                SchemaErrorReason::Malformed(_) => "malformed",
                SchemaErrorReason::Unsupported(_) => "unsupported",
                SchemaErrorReason::Unsatisfiable(_) => "unsatisfiable",
                _ => "limit",
            };
            *counts.refused.entry(format!("{kind} {}", first.keyword)).or_default() += 1;
            let satisfiable =
                line["tests"].as_array().into_iter().flatten().any(|t| t["valid"] == true);
            if verbose && (kind != "unsatisfiable" || satisfiable) {
                println!("refused {name}: {first}");
            }
            return;
        }
    };
    counts.lowering.push(begin.elapsed());
    let begin = Instant::now();
    let compiled = match Compiled::new(&grammar, &limits) {
        Ok(compiled) => Arc::new(compiled),
        Err(error) => {
            *counts.refused.entry("compile".into()).or_default() += 1;
            println!("not compiled {name}: {error}");
            return;
        }
    };
    counts.compiling.push(begin.elapsed());
    if verbose
        && (counts.compiling.last() > Some(&Duration::from_millis(20))
            || counts.lowering.last() > Some(&Duration::from_millis(5)))
    {
        println!(
            "slow {name}: {:?} {:?} {:?}",
            counts.lowering.last(),
            counts.compiling.last(),
            compiled.size()
        );
    }
    let mut recognizer = Recognizer::new(compiled);
    for test in line["tests"].as_array().into_iter().flatten() {
        let mut text = String::new();
        dumps(&test["data"], &mut text);
        recognizer.reset();
        let pushed = recognizer.push(text.as_bytes());
        let accepted = pushed.is_ok() && recognizer.is_complete();
        match (accepted, test["valid"] == true) {
            (true, false) => {
                counts.wrongly_accepted += 1;
                println!("WRONGLY ACCEPTED {name}: {text:.300}");
            }
            (false, true) => {
                counts.wrongly_rejected += 1;
                if verbose {
                    let why = pushed.err().map(|e| e.to_string()).unwrap_or_default();
                    println!("rejected {name}: {why:.80} in {text:.300}");
                }
            }
            _ => counts.right += 1,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which file?")?;
    let (mut verbose, mut lower_only) = (false, 0);
    let mut options = SchemaOptions::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--verbose" => verbose = true,
            "--lower" => lower_only = args.next().ok_or("how often?")?.parse()?,
            "--options" => options = serde_json::from_str(&args.next().ok_or("which options?")?)?,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let mut counts = Counts::default();
    for line in std::fs::read_to_string(path)?.lines() {
        case(&serde_json::from_str(line)?, &options, (verbose, lower_only), &mut counts);
    }
    let spread = |name: &str, mut times: Vec<Duration>| {
        times.sort_unstable();
        let at = |q: usize| {
            times.get(times.len().saturating_sub(1) * q / 1000).copied().unwrap_or_default()
        };
        println!(
            "{name}: p50 {:?} p90 {:?} p99 {:?} max {:?}",
            at(500),
            at(900),
            at(990),
            at(1000)
        );
    };
    spread("lowering", std::mem::take(&mut counts.lowering));
    spread("compiling", std::mem::take(&mut counts.compiling));
    let refused: usize = counts.refused.values().sum();
    println!("schemas {} refused {refused}: {:?}", counts.schemas, counts.refused);
    println!(
        "instances: right {}, wrongly rejected {}, wrongly accepted {}",
        counts.right, counts.wrongly_rejected, counts.wrongly_accepted
    );
    if counts.wrongly_accepted > 0 {
        std::process::exit(1);
    }
    Ok(())
}
