//! Stop strings in constrained responses.

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "conformance/rig.rs"]
mod rig;

use std::sync::Arc;

use louver::{Engine, EngineOptions};
use louver_formats::{Catalog, Reasoning, ReasoningBudget, ToolRequest};
use louver_host::{
    Completion, EnforcementLevel, ExtendError, Finish, Generation, PreparedGeneration, TurnPlan,
};
use serde_json::json;
use tokio::runtime::Runtime;

use rig::{
    AMPLE, Call, LOUVER, PROMPT, STOP, STOPPED, direct, finish, largest, model_row, prepare,
};

/// A plan with a regular expression for the response, and stop strings.
fn plan(pattern: &str, stop: &[&str]) -> TurnPlan {
    let engine = Engine::new(Arc::new(rig::vocabulary()), EngineOptions::default());
    rig::plan_of_tag(&engine, &json!({"type": "regex", "pattern": pattern}), stop)
}

/// Generates this text, as a host that is ahead of the reading of events.
fn generate(plan: &TurnPlan, text: &str) -> Generation {
    let PreparedGeneration { hook, events, task, .. } = prepare(plan, LOUVER, AMPLE);
    let (call, mut context) = (direct(hook), PROMPT.to_vec());
    for byte in text.bytes().map(Some).chain([None]) {
        call(&mut model_row(context.len()), &context);
        context.extend(byte.map(u32::from));
    }
    finish((events, task), STOPPED).unwrap()
}

#[test]
fn a_stop_string_ends_the_response_and_the_report_says_what_was_cut() {
    let address = r"[a-z]+@[a-z]+\.com\n";
    let lines = r"[a-z]+(\n[a-z]+)*";
    for (pattern, stop, text, answer, is_complete) in [
        // vLLM's example.
        (address, &["\n"][..], "ab@cd.com\n", "ab@cd.com", false),
        (address, &["x", "\n"], "axb@cd.com\n", "a", false),
        (address, &["zz"], "ab@cd.com\n", "ab@cd.com\n", true),
        (lines, &["\n"], "one\ntwo\nthree", "one", true),
        (lines, &["e\ntw"], "one\ntwo", "on", true),
        (lines, &["two"], "one\ntwo\nthree", "one\n", false),
    ] {
        let generation = generate(&plan(pattern, stop), text);
        assert_eq!(generation.turn.text, answer, "{pattern}: {stop:?}");
        assert_eq!(generation.finish, Finish::Stop);
        let report = &generation.report;
        let cut: Vec<&str> = report.relaxed.iter().map(|cut| &*cut.pointer).collect();
        let (level, completion, pointers) = match is_complete {
            true => (EnforcementLevel::Full, Completion::Complete, vec![]),
            false => (EnforcementLevel::Partial, Completion::Stopped, vec!["/stop"]),
        };
        assert_eq!((report.level, report.completion, cut), (level, completion, pointers), "{text}");
        assert_eq!(report.warnings[0].pointer, "/stop");
        // Later tokens do not count, however far ahead the host is.
        let ends = stop.iter().filter_map(|stop| Some(text.find(stop)? + stop.len()));
        assert_eq!(generation.tokens.len(), ends.min().unwrap_or(text.len()));
    }
}

/// A host that chooses letters in turn, as long as it gets no stop token only.
async fn choose_letters(call: Call) -> Option<Result<Finish, String>> {
    let mut context = PROMPT.to_vec();
    loop {
        let mut row = model_row(context.len());
        call(&mut row, &context);
        if largest(&row) == STOP {
            return STOPPED;
        }
        assert!(context.len() < PROMPT.len() + 90, "the generation goes on");
        context.push(u32::from(b"abcd"[context.len() % 4]));
        tokio::task::yield_now().await;
    }
}

/// After a stop string, the host gets stop tokens only, whatever the grammar allows.
#[test]
fn a_stop_string_ends_the_generation() {
    let PreparedGeneration { hook, events, task, .. } =
        prepare(&plan("[a-z]{90}", &["c"]), LOUVER, 99);
    let generation = Runtime::new().unwrap().block_on(async {
        task.run(choose_letters(direct(hook))).await;
        events.finish().await.unwrap()
    });
    assert_eq!(generation.report.completion, Completion::Stopped);
    assert!(generation.turn.text.len() < 4 && !generation.turn.text.contains('c'));
}

/// Another plan of a running turn brings its own stop strings.
#[test]
fn changed_plans_end_responses_at_their_stop_strings() {
    let (one, other) = (plan("[a-z]{90}", &["x", "yz"]), plan("[a-z]{90}", &["dab"]));
    let PreparedGeneration { hook, mut events, task, .. } = prepare(&one, LOUVER, 99);
    let generation = Runtime::new().unwrap().block_on(async {
        let consumer = async {
            events.extend(&other).await.unwrap();
            events.finish().await.unwrap()
        };
        tokio::join!(task.run(choose_letters(direct(hook))), consumer).1
    });
    assert_eq!(generation.stop_string.as_deref(), Some("dab"));
    assert!(generation.turn.text.ends_with('c'), "{}", generation.turn.text);
}

/// The reader cannot change between reasoning with and without a budget.
#[test]
fn plans_that_differ_in_having_a_budget_are_refused() {
    let budgeted = |budget: Option<u32>| {
        let engine = Engine::new(Arc::new(rig::vocabulary()), EngineOptions::default());
        let format = Catalog::shipped().get("qwen3").unwrap().bind(engine.vocab());
        let budget = budget.map(ReasoningBudget::Tokens);
        let request = ToolRequest::default()
            .with_reasoning(Reasoning::Optional)
            .with_reasoning_budget(budget);
        TurnPlan::compile(&engine, &format, request).unwrap()
    };
    for (from, to, expected) in [
        (None, Some(5), ExtendError::Budget),
        (Some(5), None, ExtendError::Budget),
        (Some(5), Some(9), ExtendError::Over),
        (None, None, ExtendError::Over),
    ] {
        let PreparedGeneration { mut events, task, .. } = prepare(&budgeted(from), LOUVER, AMPLE);
        drop(task);
        let result = Runtime::new().unwrap().block_on(events.extend(&budgeted(to)));
        assert_eq!(result, Err(expected), "{from:?} {to:?}");
    }
}
