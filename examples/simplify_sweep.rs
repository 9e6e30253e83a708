//! Costs and benefits of simplification on a corpus of schemas: time per pass, compilation time,
//! time to read one instance before and after, and sizes.
//!
//! `cargo run --release --example simplify_sweep -- FILE.jsonl [--limit N] [--print ID]`. Each line
//! has a `schema`. Each time is the minimum of three, to reduce the effect of other processes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use louver::compile::Compiled;
use louver::front::json_schema::{SchemaOptions, lower};
use louver::ir::{Grammar, Pass, Simplify};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde_json::Value;

const LEVELS: [Simplify; 3] = [Simplify::Off, Simplify::Cheap, Simplify::Full];

fn min_time<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut timed = || {
        let begin = Instant::now();
        let out = work();
        (begin.elapsed(), out)
    };
    [timed(), timed()].into_iter().fold(timed(), |a, b| if b.0 < a.0 { b } else { a })
}

/// Time of a step that consumes a grammar, without the time of cloning it.
fn time_on_clone(
    grammar: &Grammar,
    mut work: impl FnMut(Grammar) -> Grammar,
) -> (Duration, Grammar) {
    let mut best: Option<(Duration, Grammar)> = None;
    for _ in 0..3 {
        let own = grammar.clone();
        let begin = Instant::now();
        let out = work(own);
        let time = begin.elapsed();
        if best.as_ref().is_none_or(|(t, _)| time < *t) {
            best = Some((time, out));
        }
    }
    best.expect("three runs")
}

#[derive(Default)]
struct Row {
    name: String,
    values: Vec<f64>,
}

#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    fn add(&mut self, name: &str, value: f64) {
        match self.0.iter_mut().find(|row| row.name == name) {
            Some(row) => row.values.push(value),
            None => self.0.push(Row { name: name.to_owned(), values: vec![value] }),
        }
    }

    fn print(&mut self) {
        println!(
            "{:<28} {:>10} {:>10} {:>10} {:>10} {:>12}",
            "", "mean", "p50", "p90", "p99", "max"
        );
        for row in &mut self.0 {
            row.values.sort_by(f64::total_cmp);
            let at = |q: usize| row.values[(row.values.len() - 1) * q / 1000];
            let mean = row.values.iter().sum::<f64>() / row.values.len() as f64;
            println!(
                "{:<28} {mean:>10.2} {:>10.1} {:>10.1} {:>10.1} {:>12.1}",
                row.name,
                at(500),
                at(900),
                at(990),
                at(1000)
            );
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which file?")?;
    let (mut limit, mut show) = (usize::MAX, None);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--limit" => limit = args.next().ok_or("how many?")?.parse()?,
            "--print" => show = args.next(),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let limits = Limits::default();
    let us = |d: Duration| d.as_secs_f64() * 1e6;
    let mut table = Table::default();
    for line in std::fs::read_to_string(path)?.lines().take(limit) {
        let line: Value = serde_json::from_str(line)?;
        let id = line["id"].as_str().unwrap_or_default();
        if show.as_ref().is_some_and(|s| s != id) {
            continue;
        }
        let Ok(grammar) = lower(&Json::from(&line["schema"]), &SchemaOptions::default(), &limits)
        else {
            continue;
        };
        let valid =
            line["tests"].as_array().into_iter().flatten().find(|test| test["valid"] == true);
        let instance = valid.map(|test| test["data"].to_string());
        table.add("clone us", us(min_time(|| grammar.clone()).0));
        table.add("validate us", us(min_time(|| grammar.validate()).0));
        let mut at = grammar.clone();
        for (i, pass) in Pass::ALL.into_iter().enumerate() {
            let (time, next) = time_on_clone(&at, |mut g| {
                pass.run(&mut g);
                g
            });
            table.add(&format!("pass {i} {pass:?} us"), us(time));
            table.add(&format!("pass {i} {pass:?} changes"), f64::from(u8::from(next != at)));
            at = next;
        }
        for level in LEVELS {
            let (time, simple) = min_time(|| grammar.simplify(level).expect("valid"));
            table.add(
                &format!("{level:?} changes nothing"),
                f64::from(u8::from(matches!(simple, Cow::Borrowed(_)))),
            );
            if show.is_some() {
                println!("{level:?}\n{simple}");
            }
            table.add(&format!("{level:?} simplify us"), us(time));
            table.add(&format!("{level:?} rules"), simple.rules.len() as f64);
            table.add(&format!("{level:?} size"), simple.size() as f64);
            let simple = Arc::new(simple.into_owned());
            let (time, compiled) = min_time(|| Compiled::new(simple.clone(), &limits));
            if compiled.is_ok() {
                table.add(&format!("{level:?} compile us"), us(time));
            }
            // Rules are compiled when a parse reaches them, so this cost shows when an instance is
            // read.
            let Some(text) = &instance else { continue };
            let (time, read) = min_time(|| {
                let compiled = Arc::new(Compiled::new(simple.clone(), &limits).ok()?);
                Recognizer::new(compiled).push(text.as_bytes()).ok()
            });
            if read.is_some() {
                table.add(&format!("{level:?} compile and read us"), us(time));
            }
        }
    }
    table.print();
    Ok(())
}
