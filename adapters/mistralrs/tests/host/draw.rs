//! Who draws the tokens: Louver by default, or the host.

use std::collections::HashSet;
use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use louver_mistralrs::{DrawnBy, Generation, RunOptions, SendError, ToolChoice};
use mistralrs::{CustomLogitsProcessor, RequestBuilder};
use serde_json::Value;

use crate::support::{
    check_calls, host, host_draws, plan, request, run_request, seeded, tools, without_ids,
};

/// The ids of the tokens that [`fixed_rows`] permits.
const IDS: [usize; 4] = [40, 41, 42, 43];
/// Their probabilities.
const SHARES: [f32; 4] = [0.4, 0.3, 0.2, 0.1];

/// A processor that replaces each row by the same one. What the model computes, and with it what
/// other requests do, has no influence then.
fn fixed_rows() -> Arc<dyn CustomLogitsProcessor> {
    Arc::new(|logits: &Tensor, _: &[u32]| -> Result<Tensor> {
        let mut row = vec![f32::NEG_INFINITY; logits.elem_count()];
        IDS.iter().zip(SHARES).for_each(|(id, share)| row[*id] = share.ln());
        Tensor::new(row, &Device::Cpu)
    })
}

async fn generate(request: RequestBuilder, options: RunOptions) -> Generation {
    let host = host().await;
    run_request(host, &host.louver.unconstrained(Value::Null), request, options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn louver_draws_by_default_and_reports_the_seed() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Named("weather".to_owned()));
    let level = |logits: &Tensor, _: &[u32]| logits.zeros_like();
    let request = || request("Well?").add_logits_processor(Arc::new(level));
    let mut seeds = HashSet::new();
    for _ in 0..3 {
        let stream = plan.stream(&host.model, request()).await.unwrap();
        let drawn_by = stream.drawn_by();
        let first = stream.finish().await.unwrap();
        assert_eq!(first.report.drawn_by, drawn_by);
        let seed = drawn_by.seed().expect("Louver draws");
        // The report is enough to repeat the generation, but for its call ids.
        let again = run_request(host, &plan, request(), seeded(seed)).await;
        assert_eq!((again.report.drawn_by, again.tokens), (drawn_by, first.tokens));
        assert_eq!(without_ids(again.turn), without_ids(first.turn));
        assert!(seed < 1 << 53, "a JSON number");
        seeds.insert(seed);
    }
    assert_eq!(seeds.len(), 3, "each request has a seed of its own");
    let choices = request().set_sampler_n_choices(3);
    let streams = plan.stream_choices(&host.model, choices, RunOptions::default()).await.unwrap();
    let seeds: Vec<u64> = streams.iter().map(|stream| stream.drawn_by().seed().unwrap()).collect();
    assert_eq!(seeds, [seeds[0], seeds[0] + 1, seeds[0] + 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_draws_on_request() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Named("weather".to_owned()));
    let generation = run_request(host, &plan, request("Well?"), host_draws()).await;
    assert_eq!(generation.report.drawn_by, DrawnBy::Host);
    check_calls(&generation.turn, &tools());
    let seeded = host_draws().with_seed(1);
    let refused = plan.stream_with(&host.model, request("Well?"), seeded).await;
    assert!(matches!(refused, Err(SendError::HostSeed)));
}

/// Temperature, `top_k`, `top_p` and `min_p` mean the same whoever draws, and so do their defaults.
#[tokio::test(flavor = "multi_thread")]
async fn sampling_parameters_mean_the_same_whoever_draws() {
    type Setting = fn(RequestBuilder) -> RequestBuilder;
    let settings: [(&str, Setting, [f32; 4]); 8] = [
        ("none", |r| r, SHARES),
        ("temperature 0", |r| r.set_sampler_temperature(0.0), [1.0, 0.0, 0.0, 0.0]),
        ("temperature 0.5", |r| r.set_sampler_temperature(0.5), [16.0, 9.0, 4.0, 1.0]),
        ("top_k 1", |r| r.set_sampler_topk(1), [1.0, 0.0, 0.0, 0.0]),
        ("top_k 2", |r| r.set_sampler_topk(2), [4.0, 3.0, 0.0, 0.0]),
        ("top_p 0.6", |r| r.set_sampler_topp(0.6), [4.0, 3.0, 0.0, 0.0]),
        (
            "top_k 2, top_p 0.5",
            |r| r.set_sampler_topk(2).set_sampler_topp(0.5),
            [4.0, 3.0, 0.0, 0.0],
        ),
        (
            "top_p 0.95, min_p 0.6",
            |r| r.set_sampler_topp(0.95).set_sampler_minp(0.6),
            [4.0, 3.0, 0.0, 0.0],
        ),
    ];
    for (name, setting, weights) in settings {
        for options in [host_draws(), seeded(5)] {
            let request = setting(request("x").add_logits_processor(fixed_rows()));
            let tokens = generate(request.set_sampler_max_len(200), options).await.tokens;
            assert_eq!(tokens.len(), 200);
            let total: f32 = weights.iter().sum();
            for (id, weight) in IDS.iter().zip(weights) {
                let count = tokens.iter().filter(|token| **token as usize == *id).count();
                let difference = count as f32 / 200.0 - weight / total;
                // More than four standard deviations.
                let most = if weight == 0.0 { 0.0 } else { 0.15 };
                assert!(difference.abs() <= most, "{name}, {:?}: {id} {count}", options.draw);
            }
        }
    }
    // The host ignores `min_p` without `top_p`.
    let min_p = request("x").add_logits_processor(fixed_rows()).set_sampler_minp(0.6);
    let tokens = generate(min_p.set_sampler_max_len(100), seeded(1)).await.tokens;
    assert!(tokens.iter().all(|token| IDS[..2].contains(&(*token as usize))));
}

/// The host's penalties come before the draw.
#[tokio::test(flavor = "multi_thread")]
async fn penalties_apply_whoever_draws() {
    for options in [seeded(5), host_draws()] {
        let request = request("x").set_sampler_frequency_penalty(1000.0).set_sampler_max_len(60);
        let tokens = generate(request, options).await.tokens;
        let distinct: HashSet<&u32> = tokens.iter().collect();
        assert_eq!(distinct.len(), tokens.len(), "{:?} repeats a token", options.draw);
    }
}

/// The log probabilities that a request asks for are those of the row before the draw.
#[tokio::test(flavor = "multi_thread")]
async fn requested_log_probabilities_are_right_whoever_draws() {
    for options in [seeded(5), host_draws()] {
        let request = request("x").add_logits_processor(fixed_rows()).set_sampler_max_len(50);
        let request = request.return_logprobs(true).set_sampler_topn_logprobs(2);
        let generation = generate(request, options).await;
        assert_eq!(generation.tokens.len(), 50);
        for (step, token) in generation.steps.iter().zip(&generation.tokens) {
            assert_eq!(step.token, *token);
            let share = SHARES[IDS.iter().position(|id| *id == *token as usize).unwrap()];
            assert!((step.logprob - share.ln()).abs() < 1e-5, "{step:?}");
            let top: Vec<usize> = step.top.iter().map(|top| top.token as usize).collect();
            assert_eq!(top, IDS[..2]);
        }
        assert!(generation.steps.len() >= 50);
    }
    let silent = generate(request("x").set_sampler_max_len(5), seeded(1)).await;
    assert!(silent.steps.is_empty(), "recorded unasked");
}
