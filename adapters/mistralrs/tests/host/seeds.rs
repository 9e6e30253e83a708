//! Calls are valid for many random seeds.

use louver_mistralrs::{Finish, Generation, ToolChoice};

use crate::support::{
    check_calls, force_first_then_prefer, load_with_template, plan, request, run_request, seeded,
    stop_ids, token_id, tools,
};

const SEEDS: u64 = 200;

/// Runs sequential requests on a host with a prefix cache. The prompts share a prefix, so that the
/// hook first sees only their ends.
async fn sweep(choice: ToolChoice, check: impl Fn(&Generation)) {
    let host = load_with_template("").await;
    let plan = plan(&host.louver, choice.clone());
    let call = token_id(&host.louver, "<tool_call>");
    let ends = stop_ids(&host.louver);
    for seed in 0..SEEDS {
        let mut request =
            request(&format!("Book room {seed:03} in Oslo, and how will the weather be?"));
        if choice == ToolChoice::Auto {
            request =
                request.add_logits_processor(force_first_then_prefer(call, ends.clone(), 8.0));
        }
        let generation = run_request(&host, &plan, request, seeded(seed)).await;
        assert_eq!((generation.finish, generation.repaired_rows), (Finish::Stop, 0));
        assert_eq!(generation.turn.incomplete, None);
        assert!(!generation.turn.calls.is_empty());
        check_calls(&generation.turn, &tools());
        check(&generation);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn required_calls_are_valid_for_all_seeds() {
    sweep(ToolChoice::Required, |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn named_calls_are_valid_for_all_seeds() {
    sweep(ToolChoice::Named("book".to_owned()), |generation| {
        let names: Vec<&str> =
            generation.turn.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["book"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn optional_calls_are_valid_after_a_forced_marker() {
    sweep(ToolChoice::Auto, |_| {}).await;
}
