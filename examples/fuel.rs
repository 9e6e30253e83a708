//! Measures a grammar's work in fuel and time. The default budgets were set with it.
//!
//! `cargo run --release -p louver --example fuel -- ebnf 'root ::= root root | "a"'` compiles the
//! grammar for a vocabulary of bytes and words, then repeatedly fills the mask and advances by an
//! allowed token.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::fuel;
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::mask::bit;
use louver::vocab::Vocabulary;

/// Number of steps.
const STEPS: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, text] = &arguments[..] else {
        return Err("usage: fuel ebnf|lark|regex|schema TEXT".into());
    };
    let unlimited = Limits::default()
        .with_compile_fuel(u64::MAX)
        .with_mask_fuel(u64::MAX)
        .with_sequence_fuel(u64::MAX);
    let vocab = Arc::new(Vocabulary::toy(&[b"the ", b"\", \"", b"aaaa", b"bbb", b" a"]));
    let engine = Engine::new(vocab, EngineOptions::default().with_limits(unlimited));
    let constraint = measured("compile", || compile(&engine, kind, text))?;
    let mut matcher = constraint.matcher();
    let mut mask = vec![0; engine.vocab().mask_words()];
    for step in 0..STEPS {
        measured(&format!("mask {step}"), || matcher.fill_mask(&mut mask));
        let allowed = (0..engine.vocab().width() as u32)
            .rev()
            .map(TokenId::from_raw)
            .filter(|&token| bit(&mask, token));
        let Some(token) = allowed.clone().find(|&token| !engine.vocab().is_stop(token)) else {
            break;
        };
        measured(&format!("token {step} {token}"), || matcher.advance(token))?;
    }
    Ok(())
}

fn compile(engine: &Engine, kind: &str, text: &str) -> Result<Constraint, Box<dyn Error>> {
    Ok(match kind {
        "ebnf" => engine.compile_ebnf(text, &Default::default())?,
        "lark" => engine.compile_lark(text, &Default::default())?,
        "regex" => engine.compile_regex(text, &Default::default())?,
        "schema" => engine.compile_json_schema(text, &Default::default())?,
        _ => return Err(format!("no kind of grammar: {kind}").into()),
    })
}

/// The processor time of this thread, where the system reports it; other processes do not count.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// Runs work and prints its time and fuel.
fn measured<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (begun, busy) = (Instant::now(), cpu_time());
    let (result, units) = fuel::measure(work);
    let time = match (busy, cpu_time()) {
        (Some(before), Some(after)) => after - before,
        _ => begun.elapsed(),
    };
    let ratio = time.as_nanos() as f64 / units.max(1) as f64;
    println!(
        "{what:<14} {:>10.1} us {units:>10} units {ratio:>8.1} ns a unit",
        time.as_secs_f64() * 1e6
    );
    result
}
