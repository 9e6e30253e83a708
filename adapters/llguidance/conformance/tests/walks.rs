//! Masks of both on random walks. `LOUVER_STEPS` is the number of masks (default 20,000), and
//! `LOUVER_SEED` where the walks begin.

use llguidance_conformance::{
    Case, Forcing, Report, bench_cases, corpus, data, environment, reason_of_refusal, walk,
};

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Schemas of MaskBench, where it is found.
fn bench() -> Vec<Case> {
    let Some(data) = data() else { return Vec::new() };
    let schema = |case: llguidance_conformance::BenchCase| Case {
        name: case.id,
        schema: Some(case.schema.to_string()),
        ..Case::default()
    };
    bench_cases(&data, 25).into_iter().map(schema).collect()
}

fn compare(forcing: Forcing, cases: &[Case], steps: usize) -> Report {
    let env = environment(forcing);
    let mut report = Report::default();
    let seed = number("LOUVER_SEED", 1) as u64;
    for (at, case) in cases.iter().enumerate() {
        let rest = steps.saturating_sub(report.masks);
        walk(case, &env, rest / (cases.len() - at), seed + at as u64, &mut report);
    }
    println!(
        "{forcing:?}: {} masks of {} grammars, {} equal; {} tokens outside of both masks",
        report.masks,
        cases.len(),
        report.equal,
        report.refusals
    );
    println!("{:#?}", report.classes);
    check_refusals(cases, &report);
    assert!(report.unexplained.is_empty(), "{}", report.unexplained.join("\n"));
    assert!(report.masks >= steps / 2, "{} masks", report.masks);
    assert!(report.refusals > report.masks / 10, "{} refusals", report.refusals);
    report
}

/// Exactly the grammars that only one side is known to compile are compiled by one side only; those
/// of MaskBench have messages with a known reason.
fn check_refusals(cases: &[Case], report: &Report) {
    for case in cases.iter().filter(|case| case.only.is_some()) {
        assert!(case.why.is_some(), "{}: `only` needs `why`", case.name);
        let is_refused = report.refused.iter().any(|(name, ..)| *name == case.name);
        assert!(is_refused, "both compile {}", case.name);
    }
    let mut unknown = Vec::new();
    for (name, side, message) in &report.refused {
        let line = message.lines().next().unwrap_or_default();
        let case = cases.iter().find(|case| case.name == *name).expect("a case");
        let known = case.why.as_deref().filter(|_| case.only == Some(*side));
        let reason = known.or_else(|| reason_of_refusal(*side, message));
        println!("only {side:?} compiles {name}: {line} ({reason:?})");
        if reason.is_none() {
            unknown.push(format!("only {side:?} compiles {name}: {line}"));
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn masks_of_the_corpus_are_equal_or_differ_for_a_reason() {
    let steps = number("LOUVER_STEPS", 20_000);
    for forcing in [Forcing::Off, Forcing::Canonical] {
        let report = compare(forcing, &corpus(), steps * 2 / 5);
        assert!(report.refused_by_both.is_empty(), "{:?}", report.refused_by_both);
    }
}

#[test]
fn masks_of_real_schemas_are_equal_or_differ_for_a_reason() {
    let cases = bench();
    if cases.is_empty() {
        println!("MaskBench is not there: skipped");
        return;
    }
    compare(Forcing::Off, &cases, number("LOUVER_STEPS", 20_000) / 5);
}
