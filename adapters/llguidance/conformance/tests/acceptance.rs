//! Small grammars on both sides: each differs as its probe says, or not at all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use llguidance_conformance::{compare_acceptance, probes};

#[test]
fn small_grammars_accept_the_same_or_differ_for_a_reason() {
    let (probes, instances) = probes();
    let documented = include_str!("../../../../docs/LLGUIDANCE.md");
    let (mut wrong, mut compared, mut accepting) = (Vec::new(), 0, 0);
    for probe in &probes {
        assert_eq!(probe.outcome.is_some(), probe.why.is_some(), "{:?}", probe.texts);
        let row = probe.why.as_ref().map(|why| format!("\n| {why} |"));
        assert!(row.is_none_or(|row| documented.contains(&row)), "no row: {:?}", probe.why);
        for text in &probe.texts {
            compared += 1;
            let instances = probe.instances.as_ref().unwrap_or(&instances);
            let compare = || compare_acceptance(probe.notation, text, instances);
            let Ok(found) = catch_unwind(AssertUnwindSafe(compare)) else {
                wrong.push(format!("{:?} {text:?}: panic", probe.notation));
                continue;
            };
            accepting += usize::from(found.accepted > 0);
            if found.outcome != probe.outcome {
                let (notation, expected) = (probe.notation, probe.outcome);
                let (found, evidence) = (found.outcome, found.evidence);
                wrong.push(format!(
                    "{notation:?} {text:?}: {found:?}, expected {expected:?}: {evidence}"
                ));
            }
        }
    }
    println!("{compared} grammars, {accepting} of which accept some text that is tried");
    assert!(compared > 800 && accepting > 450, "only {compared} grammars, {accepting} accepting");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
