//! Memory: resident size after all schemas, with a separate process per engine.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::corpus::{Progress, SCHEMAS};
use crate::cases;
use crate::engine::EngineKind;
use crate::options::Common;
use crate::setup::Setup;
use crate::{feed, output};

/// The measurements of one process, in KiB.
#[derive(Debug, Serialize, Deserialize)]
struct MemoryUsage {
    engine: String,
    cases: usize,
    tokens: usize,
    /// With the tokenizer and the engine loaded.
    before_kib: u64,
    /// After all cases.
    after_kib: u64,
    /// The peak.
    peak_kib: u64,
}

/// Runs this program once per engine.
pub(super) fn run(common: &Common) -> Result<()> {
    if cases::lines(common, SCHEMAS.file)?.is_none() {
        return Ok(());
    }
    let program = std::env::current_exe().context("this program's own path is unknown")?;
    let kinds = common.kinds();
    let mut all = Vec::new();
    for kind in &kinds {
        let mut child = Command::new(&program);
        child.args(std::env::args_os().skip(1)).args(["--alone", kind.name()]);
        let output = child
            .stderr(std::process::Stdio::inherit())
            .output()
            .context("cannot start a process")?;
        ensure!(
            output.status.success(),
            "the process of {} failed: {}",
            kind.name(),
            output.status
        );
        let usage: MemoryUsage =
            serde_json::from_slice(&output.stdout).context("not what the process should print")?;
        all.push(usage);
    }
    output::heading("Resident memory after all schemas", &common.tokenizer, &kinds);
    println!(
        "MiB, each engine in a process of its own; the tokenizer that cuts the texts is part of \
         it.\n"
    );
    println!(
        "| engine | cases | tokens | tokenizer and engine | after all cases | difference | peak |"
    );
    println!("|:--|--:|--:|--:|--:|--:|--:|");
    let mib = |kib: u64| kib / 1024;
    for usage in &all {
        let (before, after, peak) =
            (mib(usage.before_kib), mib(usage.after_kib), mib(usage.peak_kib));
        let difference = after.saturating_sub(before);
        let (engine, cases, tokens) = (&usage.engine, usage.cases, usage.tokens);
        println!("| {engine} | {cases} | {tokens} | {before} | {after} | {difference} | {peak} |");
    }
    output::write_lines(&common.out, &format!("memory.{}.jsonl", common.tokenizer), all)
}

/// Measures one engine and prints the result.
pub(super) fn run_single(common: &Common, kind: EngineKind) -> Result<()> {
    let setup = Setup::load(common, &common.tokenizer)?.context("the tokenizer is not there")?;
    let encoder = setup.encoder();
    let engine = setup.engine(kind)?;
    let before_kib = status("VmRSS")?;
    let (mut cases, mut tokens) = (0, 0);
    let mut progress = Progress::new(kind.name());
    for (number, line) in
        cases::lines(common, SCHEMAS.file)?.context("the cases are not there")?.enumerate()
    {
        if kind == EngineKind::Xgrammar && number % common.xgr_every != 0 {
            continue;
        }
        let Ok(case) = cases::schema_case(&line?, &encoder) else { continue };
        tokens += feed::run(engine.as_ref(), &case).masks_ns.map_or(0, |masks| masks.len());
        cases += 1;
        progress.tell(cases);
    }
    let engine = kind.name().to_owned();
    let usage = MemoryUsage {
        engine,
        cases,
        tokens,
        before_kib,
        after_kib: status("VmRSS")?,
        peak_kib: status("VmHWM")?,
    };
    println!("{}", serde_json::to_string(&usage)?);
    Ok(())
}

/// A field of `/proc/self/status`, in KiB.
fn status(field: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")
        .context("resident memory is read from /proc")?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line
        .and_then(|line| line.split_whitespace().next())
        .with_context(|| format!("no {field}"))?;
    Ok(number.parse()?)
}
