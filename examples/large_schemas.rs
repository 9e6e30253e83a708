//! Schemas of about two megabytes with different shapes. Each is parsed, lowered and compiled up to
//! its first mask, or rejected, in a separate process. Prints the time and the peak memory.
//!
//! `cargo run --release -p louver --example large_schemas [-- SHAPE]`. Exit code 1 if one takes 2 s
//! or 500 MB.

use std::fmt::Write;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use louver::engine::{Engine, EngineOptions};
use louver::front::json_schema::SchemaOptions;
use louver::vocab::Vocabulary;

const BYTES: usize = 2_000_000;
const SECONDS: f64 = 2.0;
const MEGABYTES: f64 = 500.0;

type Shape = (&'static str, fn() -> String);

const SHAPES: &[Shape] = &[
    ("properties", || object(|i| format!("\"name{i}\":{}", scalar(i)))),
    ("required properties", || {
        let names: Vec<String> = (0..40_000).map(|i| format!("\"name{i}\"")).collect();
        let members: Vec<String> =
            names.iter().enumerate().map(|(i, name)| format!("{name}:{}", scalar(i))).collect();
        format!("{{\"properties\":{{{}}},\"required\":[{}]}}", members.join(","), names.join(","))
    }),
    ("small objects", || object(|i| format!("\"n{i}\":{}", member(i)))),
    ("tree", || tree(7)),
    ("deep", || format!("{}true{}", "{\"items\":".repeat(BYTES / 10), "}".repeat(BYTES / 10))),
    ("references to others", || {
        defs(|i, n| {
            format!(
                "{{\"properties\":{{\"a\":{},\"b\":{},\"c\":{{\"items\":{}}}}}}}",
                refer(i * 7 + 1, n),
                refer(i * i + 3, n),
                refer(i + 1, n)
            )
        })
    }),
    ("references in a ring", || {
        defs(|i, n| {
            format!(
                "{{\"type\":\"object\",\"properties\":{{\"next\":{},\"v{i}\":{}}},\"required\":[\"v{i}\"]}}",
                refer(i + 1, n),
                scalar(i)
            )
        })
    }),
    ("references in a chain", || {
        defs(|i, n| if i + 1 < n { refer(i + 1, n) } else { "{}".into() })
    }),
    ("references together", || {
        defs(|i, n| {
            format!(
                "{{\"allOf\":[{},{}],\"properties\":{{\"p{i}\":{}}}}}",
                refer((i * 2 + 1).min(n - 1), n),
                "{\"type\":\"object\"}",
                refer(i * 3 + 1, n)
            )
        })
    }),
    ("enum of texts", || {
        list("{\"enum\":[", 100_000, |i| format!("\"value {}\"", i * 7_919), "]}")
    }),
    ("enum of other texts", || {
        list("{\"enum\":[", 100_000, |i| format!("\"Ünï{}é\"", i * 7_919), "]}")
    }),
    ("enum of numbers", || {
        list("{\"enum\":[", 100_000, |i| format!("{}.{}", i * 7_919, i % 97), "]}")
    }),
    ("enum of objects", || {
        list("{\"enum\":[", 40_000, |i| format!("{{\"a\":{i},\"b\":[\"{i}\",{}]}}", i % 7), "]}")
    }),
    ("oneOf told apart", || list("{\"oneOf\":[", 500, |i| branch(i, 60, true), "]}")),
    ("oneOf that overlaps", || list("{\"oneOf\":[", 500, |i| branch(i, 60, false), "]}")),
    ("large oneOf", || list("{\"oneOf\":[", 20_000, |i| branch(i, 1, true), "]}")),
    ("anyOf", || list("{\"anyOf\":[", 1_500, |i| branch(i, 20, false), "]}")),
    ("large anyOf", || list("{\"anyOf\":[", 20_000, |i| branch(i, 1, true), "]}")),
    ("anyOf together", || {
        list(
            "{\"allOf\":[",
            20_000,
            |i| format!("{{\"anyOf\":[{{\"required\":[\"a{i}\"]}},{{\"required\":[\"b{i}\"]}}]}}"),
            "]}",
        )
    }),
    ("anyOf together, often", || {
        let either = |i: usize, j: usize| {
            format!(
                "{{\"anyOf\":[{{\"required\":[\"a{i}_{j}\"]}},{{\"required\":[\"b{j}_{i}\"]}}]}}"
            )
        };
        object(|i| {
            let all: Vec<String> = (0..11).map(|j| either(i, j)).collect();
            format!("\"n{i}\":{{\"allOf\":[{}]}}", all.join(","))
        })
    }),
    ("allOf", || list("{\"allOf\":[", 15_000, |i| branch(i, 1, false), "]}")),
    ("if", || {
        list(
            "{\"allOf\":[",
            10_000,
            |i| {
                format!(
                    "{{\"if\":{{\"properties\":{{\"k\":{{\"const\":{i}}}}}}},\"then\":{{\"required\":[\"m{i}\"]}},\"else\":{}}}",
                    member(i)
                )
            },
            "]}",
        )
    }),
    ("not", || list("{\"not\":{\"anyOf\":[", 20_000, |i| branch(i, 1, false), "]}}")),
    ("patterns", || {
        object(|i| {
            format!(
                "\"p{i}\":{{\"type\":\"string\",\"pattern\":\"^[a-f]{{1,{}}}x{i}(\\\\\\\\d+|[^,]*)$\",\"maxLength\":{}}}",
                i % 30 + 1,
                i % 90 + 40
            )
        })
    }),
    ("patternProperties", || {
        let list = list(
            "{\"patternProperties\":{",
            20_000,
            |i| format!("\"^x{i}[0-9]*$\":{}", scalar(i)),
            "}}",
        );
        format!("{{\"properties\":{{\"a\":{list}}}}}")
    }),
    ("bounds", || {
        object(|i| {
            format!(
                "\"n{i}\":{{\"type\":\"number\",\"minimum\":{}.5,\"exclusiveMaximum\":{}e3}}",
                i,
                i + 1
            )
        })
    }),
    ("lengths", || {
        object(|i| {
            format!(
                "\"n{i}\":{{\"type\":\"string\",\"minLength\":{},\"maxLength\":{}}}",
                i % 1_000,
                i + 1_000
            )
        })
    }),
    ("prefixItems", || list("{\"prefixItems\":[", 40_000, scalar, "],\"minItems\":9}")),
    ("dependentSchemas", || {
        list("{\"dependentSchemas\":{", 20_000, |i| format!("\"d{i}\":{}", member(i)), "}}")
    }),
    ("one long text", || format!("{{\"const\":\"{}\"}}", "long ".repeat(BYTES / 5))),
    ("one long number", || format!("{{\"minimum\":{}}}", "7".repeat(BYTES))),
    ("one long pattern", || format!("{{\"pattern\":\"{}\"}}", "a[bc]?".repeat(BYTES / 6))),
    ("annotations", || list("{\"x-notes\":[", 40_000, member, "],\"type\":\"object\"}")),
];

fn scalar(i: usize) -> String {
    match i % 5 {
        0 => "{\"type\":\"string\",\"description\":\"a text\"}".into(),
        1 => format!("{{\"type\":\"integer\",\"minimum\":{}}}", i % 100),
        2 => "{\"enum\":[\"red\",\"green\",\"blue\"]}".into(),
        3 => "{\"type\":[\"boolean\",\"null\"]}".into(),
        _ => "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}".into(),
    }
}

fn member(i: usize) -> String {
    format!(
        "{{\"type\":\"object\",\"properties\":{{\"a{i}\":{},\"b\":{}}},\"required\":[\"b\"],\"additionalProperties\":false}}",
        scalar(i),
        scalar(i + 1)
    )
}

/// An object with some properties, with a discriminating one if `apart`.
fn branch(i: usize, size: usize, apart: bool) -> String {
    let kind = if apart { format!("\"kind\":{{\"const\":\"k{i}\"}},") } else { String::new() };
    let members: Vec<String> =
        (0..size).map(|j| format!("\"m{i}_{j}\":{}", scalar(i + j))).collect();
    let required = if apart { "\"required\":[\"kind\"]," } else { "" };
    format!("{{\"type\":\"object\",{required}\"properties\":{{{kind}{}}}}}", members.join(","))
}

/// A list of at most `most` items and [`BYTES`] bytes.
fn list(open: &str, most: usize, item: impl Fn(usize) -> String, close: &str) -> String {
    let mut out = String::from(open);
    for i in 0..most {
        let item = item(i);
        if out.len() + item.len() + close.len() > BYTES {
            break;
        }
        let _ = write!(out, "{}{item}", if i > 0 { "," } else { "" });
    }
    out + close
}

fn object(member: impl Fn(usize) -> String) -> String {
    list("{\"type\":\"object\",\"properties\":{", usize::MAX, member, "}}")
}

fn tree(depth: usize) -> String {
    if depth == 0 {
        return scalar(depth);
    }
    let child = tree(depth - 1);
    let members: Vec<String> = (0..6).map(|i| format!("\"m{depth}{i}\":{child}")).collect();
    format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", members.join(","))
}

fn refer(i: usize, n: usize) -> String {
    format!("{{\"$ref\":\"#/$defs/d{}\"}}", i % n)
}

/// Definitions that refer to each other, starting with the first.
fn defs(definition: impl Fn(usize, usize) -> String) -> String {
    let n = BYTES / (definition(54_321, 98_765).len() + 12);
    let all: Vec<String> = (0..n).map(|i| format!("\"d{i}\":{}", definition(i, n))).collect();
    format!("{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{}}}}}", all.join(","))
}

/// A memory value of this process from the kernel, in megabytes.
fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| {
        rest.trim_start_matches(':').split_whitespace().next()?.parse::<f64>().ok()
    })
    .unwrap_or(0.0)
        / 1e3
}

fn measure((name, schema): &Shape) -> bool {
    let schema = schema();
    let before = memory("VmRSS");
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let begin = Instant::now();
    let outcome = match engine.compile_json_schema(&schema, &SchemaOptions::default()) {
        Ok(constraint) => {
            let mut words = vec![0; engine.vocab().mask_words()];
            constraint.matcher().fill_mask(&mut words);
            String::from("compiled")
        }
        Err(error) => {
            let text = error.to_string();
            format!("refused: {:.180}", text.lines().next().unwrap_or_default())
        }
    };
    let (seconds, megabytes) = (begin.elapsed().as_secs_f64(), memory("VmHWM") - before);
    println!("{name:22} {:>9} {seconds:>7.3} s {megabytes:>6.0} MB  {outcome}", schema.len());
    seconds < SECONDS && megabytes < MEGABYTES
}

fn main() -> ExitCode {
    let chosen = std::env::args().nth(1);
    let fine = match chosen {
        Some(name) => SHAPES.iter().filter(|shape| shape.0 == name).all(measure),
        None => {
            let program = std::env::current_exe().expect("this program has a file");
            let run = |shape: &Shape| {
                Command::new(&program).arg(shape.0).status().is_ok_and(|status| status.success())
            };
            SHAPES.iter().map(run).fold(true, |all, fine| all & fine)
        }
    };
    ExitCode::from(u8::from(!fine))
}
