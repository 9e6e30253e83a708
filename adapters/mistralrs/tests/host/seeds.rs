//! Many seeds: whatever the model says, calls are valid.

use louver_mistralrs::{Finish, Generation, ToolChoice};

use crate::support::{
    ask, check_calls, first_then, id, load_with_template, plan, run, seeded, stops, tools,
};

const SEEDS: u64 = 200;

/// One request after the other, on a host with a prefix cache: the prompts begin alike, so their ends are all that the
/// hook sees at first.
async fn sweep(choice: ToolChoice, check: impl Fn(&Generation)) {
    let host = load_with_template("").await;
    let plan = plan(&host.louver, choice.clone());
    let call = id(&host.louver, "<tool_call>");
    let ends = stops(&host.louver);
    for seed in 0..SEEDS {
        let mut request =
            ask(&format!("Book room {seed:03} in Oslo, and how will the weather be?"));
        if choice == ToolChoice::Auto {
            request = request.add_logits_processor(first_then(call, ends.clone(), 8.0));
        }
        let generation = run(&host, &plan, request, seeded(seed)).await;
        assert_eq!((generation.finish, generation.repaired_rows), (Finish::Stop, 0));
        assert_eq!(generation.turn.incomplete, None);
        assert!(!generation.turn.calls.is_empty());
        check_calls(&generation.turn, &tools());
        check(&generation);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn required() {
    sweep(ToolChoice::Required, |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn named() {
    sweep(ToolChoice::Named("book".to_owned()), |generation| {
        let names: Vec<&str> =
            generation.turn.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["book"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_after_a_forced_prefix() {
    sweep(ToolChoice::Auto, |_| {}).await;
}
