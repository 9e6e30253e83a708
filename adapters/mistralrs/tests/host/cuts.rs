//! Truncated and cancelled generations.

use std::time::Duration;

use louver::{EngineOptions, Limits};
use louver_mistralrs::{
    Cut, Event, Finish, Louver, LouverOptions, Overlap, PrepareBudget, RunOptions, ToolChoice,
};
use serde_json::{Value, json};

use crate::support::{
    PrefixCache, builder, check_calls, host, load_host, plan, prefer_tokens, request, run_request,
    seeded, seeded_truncating, tools,
};

/// Truncation at all lengths near both ends of a turn and some between: exactly the limit's tokens
/// are reported, including the last one, and a truncated call is reported as incomplete, not as a
/// call.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_truncated_wherever_the_limit_is() {
    // A separate host, because results must not depend on other sequences in a batch.
    let host = load_host(PrefixCache::Off).await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let whole = run_request(&host, &plan, request("Cut!"), seeded(4)).await;
    assert_eq!(whole.finish, Finish::Stop);
    let mut cuts = Vec::new();
    let last = whole.tokens.len();
    for limit in (1..=last).filter(|limit| *limit < 24 || limit + 12 > last || limit % 6 == 0) {
        let part = run_request(
            &host,
            &plan,
            request("Cut!").set_sampler_max_len(limit),
            seeded_truncating(4),
        )
        .await;
        assert_eq!(part.tokens, whole.tokens[..limit], "limit {limit}");
        assert_eq!(part.finish, Finish::Length);
        check_calls(&part.turn, &tools());
        assert!(part.turn.calls.len() <= whole.turn.calls.len());
        assert!(
            whole.turn.calls.iter().zip(&part.turn.calls).all(|(a, b)| a.arguments == b.arguments)
        );
        match &part.turn.incomplete {
            Some(incomplete) => cuts.push(incomplete.why),
            None => assert!(!part.turn.calls.is_empty(), "neither a call nor a cut at {limit}"),
        }
    }
    for why in [Cut::CallArguments, Cut::Turn] {
        assert!(cuts.contains(&why), "{why:?} not in {cuts:?}");
    }
    assert!(cuts.contains(&Cut::CallHeader) || cuts.contains(&Cut::CallTrailer), "{cuts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_calls_are_reported_as_incomplete() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Named("book".to_owned()));
    let whole = run_request(host, &plan, request("Cut!"), seeded(2)).await;
    assert_eq!(whole.turn.calls.len(), 1);
    let request = request("Cut!").set_sampler_max_len(whole.tokens.len() - 1);
    let mut stream = plan.stream_with(&host.model, request, seeded_truncating(2)).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    assert!(
        matches!(events[..], [.., Event::Incomplete { call: Some(0), .. }, Event::End]),
        "{events:?}"
    );
    assert!(!events.iter().any(|event| matches!(event, Event::CallEnd { .. })));
    assert_eq!(stream.finish().await.unwrap().turn.calls, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_and_dropped_generations_end() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::None);
    let verbose = || {
        let vocab = host.louver.engine().vocab();
        let letters = (0..vocab.width() as u32).filter(|token_id| {
            vocab
                .bytes(louver::ids::TokenId::from_raw(*token_id))
                .is_some_and(|b| b.iter().all(u8::is_ascii_alphabetic))
        });
        request("Talk!").add_logits_processor(prefer_tokens(letters.collect(), 50.0))
    };
    let mut stream = plan.stream_with(&host.model, verbose(), seeded(1)).await.unwrap();
    assert!(matches!(stream.next().await, Some(Event::TextDelta { .. })));
    stream.cancel();
    let generation = stream.finish().await.unwrap();
    assert_eq!(generation.finish, Finish::Cancelled);
    assert!(generation.tokens.len() < 1999, "{}", generation.tokens.len());
    drop(plan.stream_with(&host.model, verbose(), seeded(1)).await.unwrap());
    // The host still works.
    let generation = run_request(host, &plan, verbose().set_sampler_max_len(10), seeded(1)).await;
    assert_eq!((generation.finish, generation.tokens.len()), (Finish::Length, 10));
}

/// The host sends nothing while its text ends inside a character, not even the end of the
/// generation.
#[tokio::test(flavor = "multi_thread")]
async fn generations_may_end_inside_a_character() {
    let host = host().await;
    let vocab = host.louver.engine().vocab();
    let lead = (0..vocab.width() as u32)
        .find(|token_id| vocab.bytes(louver::ids::TokenId::from_raw(*token_id)) == Some(&[0xe4]));
    let request = request("Tear!")
        .add_logits_processor(prefer_tokens(vec![lead.unwrap()], 1e6))
        .set_sampler_max_len(3);
    let generation =
        run_request(host, &host.louver.unconstrained(tools()), request, seeded(1)).await;
    assert_eq!((generation.finish, generation.tokens.len()), (Finish::Length, 3));
    assert_eq!(generation.turn.text, "\u{fffd}\u{fffd}\u{fffd}");
}

/// The cache of grammars keeps the constraint, so that only the request ends its preparation.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_requests_end_their_preparation() {
    let limits = Limits::default()
        .with_sequence_fuel(u64::MAX)
        .with_prepare_fuel(u64::MAX)
        .with_parser_bytes(usize::MAX)
        .with_mask_bytes(usize::MAX);
    let engine = EngineOptions::default().with_limits(limits);
    let options = LouverOptions::default().with_engine(engine);
    let (model, louver) = Louver::load_with(builder(), options).await.unwrap();
    // Some 120,000 characters, of which most begin no other word: seconds of preparation.
    let word = |n: u64| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(2);
    let words: Vec<Value> = (0..4000).map(|n| word(n).into()).collect();
    let plan = louver.answer(&json!({"enum": words})).build().unwrap();
    let budget =
        PrepareBudget::default().with_masks(1 << 20).with_steps(1 << 24).with_candidates(1 << 20);
    let overlap = Overlap::default().with_prepare(budget);
    let options = RunOptions::default().with_overlap(overlap);
    let explored = || louver.engine().stats().candidates_explored;

    let stream = plan.stream_with(&model, request("Say a word."), options).await.unwrap();
    while explored() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(stream);
    let mut before = u64::MAX;
    while explored() != before {
        before = explored();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let constraint = plan.turn_plan().constraint().unwrap();
    constraint.prepare(budget).wait();
    assert!(explored() > before, "the request's preparation came to its end");
}
