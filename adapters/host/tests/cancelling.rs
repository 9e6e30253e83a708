//! Cancellation while a row is made.

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "conformance/rig.rs"]
mod rig;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use louver::{Engine, EngineOptions, fuel};
use louver_host::{Finish, PreparedGeneration, TurnPlan};
use serde_json::json;

use rig::{AMPLE, LOUVER, PROMPT, STOP, STOPPED, WIDTH, direct, finish, prepare};

/// After each number any of so many rules may follow.
const RULES: usize = 3_000;
const TEXT: &[u8] = b"12";

fn plan(engine: &Engine) -> TurnPlan {
    let names: Vec<String> = (0..RULES).map(|rule| format!("r{rule}")).collect();
    let mut grammar = format!("root ::= ({})*\n", names.join(" | "));
    names.iter().for_each(|name| grammar.push_str(&format!("{name} ::= \"{}\"\n", &name[1..])));
    rig::plan_of_tag(engine, &json!({"type": "grammar", "grammar": grammar}), &[])
}

/// The tokens that may follow the text, when the generation is cancelled at this check of its
/// cancel token; the number of checks and the fuel; and how the generation ends.
fn cancelled_row(plan: &TurnPlan, at: usize) -> (Vec<u32>, usize, u64, Finish) {
    let PreparedGeneration { hook, events, task, .. } = prepare(plan, LOUVER, AMPLE);
    let (events, checks) = (Rc::new(events), Rc::new(Cell::new(0)));
    let (call, mut row) = (direct(hook), vec![0.0; WIDTH]);
    let context: Vec<u32> =
        PROMPT.iter().copied().chain(TEXT.iter().map(|&byte| byte.into())).collect();
    let observer = {
        let (events, checks) = (events.clone(), checks.clone());
        move || {
            if checks.replace(checks.get() + 1) == at {
                events.cancel();
            }
        }
    };
    let ((), spent) = fuel::measure(|| fuel::observe_checks(observer, || call(&mut row, &context)));
    let allowed = (0..WIDTH as u32).filter(|id| row[*id as usize].is_finite()).collect();
    let generation = finish((Rc::into_inner(events).unwrap(), task), STOPPED).unwrap();
    assert_eq!(generation.tokens.len(), TEXT.len());
    (allowed, checks.get(), spent, generation.finish)
}

/// A row that nobody waits for does not hold the host's thread.
#[test]
fn a_cancelled_row_ends_early_and_spoils_no_other() {
    let engine = || Engine::new(Arc::new(rig::vocabulary()), EngineOptions::default());
    let reference = engine();
    let (want, checks, whole, _) = cancelled_row(&plan(&reference), usize::MAX);
    assert!(checks > 8 && whole > 50_000, "{checks} checks, {whole} units");
    assert!(want.len() > 1);
    for at in [0, 1, checks / 4, checks / 2] {
        let engine = engine();
        let plan = plan(&engine);
        let (allowed, _, spent, end) = cancelled_row(&plan, at);
        assert_eq!((&allowed[..], end), (&[STOP][..], Finish::Cancelled), "at check {at}");
        assert!(spent < whole - whole / 4, "{spent} of {whole} units after check {at}");
        assert_eq!(engine.stats().limits_reached, 0, "a cancellation is no limit");
        assert_eq!(cancelled_row(&plan, usize::MAX).0, want, "another sequence");
    }
}
