//! Robustness against unusual rows and models: the hook never fails, never leaves a row without a
//! finite logit, and never reaches a dead end.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use louver_mistralrs::{
    EnforcementError, Finish, GenerationError, HookProcessor, Reasoning, SchemaOptions, ToolChoice,
    Whitespace,
};
use mistralrs::CustomLogitsProcessor;
use serde_json::json;

use crate::conformance;
use crate::support::{
    check_calls, check_json, host, host_draws, plan, request, response_schema, run_request, seeded,
    stop_ids, tools,
};

fn finite_ids(row: &Tensor) -> Vec<usize> {
    let row = row.to_vec1::<f32>().unwrap();
    assert!(row.iter().all(|x| !x.is_nan() && *x != f32::INFINITY));
    (0..row.len()).filter(|i| row[*i].is_finite()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn irregular_rows_become_usable() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let width = host.louver.engine().vocab().width();
    for (len, value) in [1, 2, 100, width - 1, width, width + 1, 832, 5000]
        .into_iter()
        .flat_map(|len| [0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(|value| (len, value)))
    {
        let processor = plan.processor();
        let row = Tensor::from_vec(vec![value; len], len, &Device::Cpu).unwrap();
        let allowed = finite_ids(&processor.apply(&row, &[1, 2, 3]).unwrap());
        assert!(
            !allowed.is_empty()
                && allowed.len() < 40
                && allowed.iter().all(|token_id| *token_id < len),
            "{len} {value} {allowed:?}"
        );
        if len >= width {
            assert!(allowed.iter().all(|token_id| *token_id < width
                && !stop_ids(&host.louver).contains(&(*token_id as u32))));
        }
    }
    for row in [
        Tensor::zeros(832, DType::F16, &Device::Cpu).unwrap(),
        Tensor::zeros((1, 832), DType::F64, &Device::Cpu).unwrap(),
        Tensor::zeros((832, 2), DType::F32, &Device::Cpu).unwrap().narrow(1, 0, 1).unwrap(),
    ] {
        assert!(!finite_ids(&plan.processor().apply(&row, &[1]).unwrap()).is_empty());
    }
    assert!(
        plan.processor().apply(&Tensor::zeros(0, DType::F32, &Device::Cpu).unwrap(), &[]).is_ok()
    );
}

/// The state depends on the context's tokens only: calls may repeat, go back, and belong to other
/// sequences.
#[tokio::test(flavor = "multi_thread")]
async fn state_depends_on_the_context_only() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let whole = run_request(host, &plan, request("Walk!"), seeded(3)).await.tokens;
    let other = run_request(host, &plan, request("Walk!"), seeded(6)).await.tokens;
    let prompt = [7u32, 8, 9];
    let allowed = |processor: &Arc<dyn mistralrs::CustomLogitsProcessor>, tokens: &[u32]| {
        let row = Tensor::zeros(832, DType::F32, &Device::Cpu).unwrap();
        finite_ids(&processor.apply(&row, &[&prompt[..], tokens].concat()).unwrap())
    };
    let straight = plan.processor();
    let masks: Vec<Vec<usize>> =
        (0..=whole.len()).map(|n| allowed(&straight, &whole[..n])).collect();
    for (n, token) in whole.iter().enumerate() {
        assert!(masks[n].contains(&(*token as usize)));
    }
    let jumping = plan.processor();
    allowed(&jumping, &[]);
    allowed(&jumping, &whole[..1]);
    for n in [5, 5, 2, whole.len(), 0, 1, 9, 9] {
        assert_eq!(allowed(&jumping, &whole[..n]), masks[n], "{n}");
        allowed(&jumping, &other[..n.min(other.len())]);
    }
}

/// A token that was not allowed ends its generation only.
#[tokio::test(flavor = "multi_thread")]
async fn forbidden_tokens_end_their_generation_only() {
    let host = host().await;
    let processor = plan(&host.louver, ToolChoice::Required).processor();
    let row = || Tensor::zeros(832, DType::F32, &Device::Cpu).unwrap();
    let ends: Vec<usize> =
        stop_ids(&host.louver).iter().map(|token_id| *token_id as usize).collect();
    assert_ne!(finite_ids(&processor.apply(&row(), &[1, 2]).unwrap()), ends);
    for context in [&[1, 2, 831][..], &[1, 2, 831, 5], &[1, 2, u32::MAX]] {
        assert_eq!(finite_ids(&processor.apply(&row(), context).unwrap()), ends);
    }
}

/// The checks of any host's hook, through this host's tensors.
#[test]
fn the_hook_conforms_as_a_processor() {
    conformance::check_all(&|hook| {
        let processor = HookProcessor::new(hook);
        Box::new(move |row, context| {
            let width = row.len();
            let logits = Tensor::from_vec(std::mem::take(row), width, &Device::Cpu).unwrap();
            *row = processor.apply(&logits, context).unwrap().to_vec1().unwrap();
        })
    });
}

/// If the row is too narrow for every allowed token, the request fails with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn narrow_rows_fail_with_a_reason() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let narrow = |logits: &Tensor, _: &[u32]| logits.narrow(0, 0, 2)?.contiguous();
    for options in [seeded(1), host_draws()] {
        let request = request("x").add_logits_processor(Arc::new(narrow)).set_sampler_max_len(4);
        let stream = plan.stream_with(&host.model, request, options).await;
        let error = stream.unwrap().finish().await.unwrap_err();
        assert_eq!(
            error,
            GenerationError::Enforcement(EnforcementError::NothingAllowed { width: 2 })
        );
    }
    check_calls(&run_request(host, &plan, request("x"), seeded(0)).await.turn, &tools());
}

/// Calls are valid even if all logits are NaN.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_valid_with_nan_rows() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Named("weather".to_owned()));
    let mad = |logits: &Tensor, _: &[u32]| logits.affine(f64::NAN, 0.0);
    for options in [seeded(1), host_draws()] {
        let request = request("x").add_logits_processor(Arc::new(mad));
        let generation = run_request(host, &plan, request, options).await;
        assert_eq!(generation.finish, Finish::Stop);
        assert_eq!(generation.repaired_rows, generation.tokens.len() + 1);
        assert_eq!(generation.turn.calls.len(), 1);
        check_calls(&generation.turn, &tools());
    }
}

/// For models with unusual preferences and a schema with corner cases, some token is always allowed
/// and the result is valid JSON.
#[tokio::test(flavor = "multi_thread")]
async fn unusual_preferences_reach_no_dead_end() {
    let host = host().await;
    let schema = json!({
        "type": "object",
        "properties": {
            "α\"key": {"type": "string", "minLength": 3, "maxLength": 5},
            "code": {"type": "string", "pattern": "^(ab|cd){2,3}[^a-z]$"},
            "pair": {"type": "array", "prefixItems": [{"const": "ⅸ"}, {"$ref": "#/$defs/node"}], "items": false,
                "minItems": 2, "maxItems": 2},
        },
        "required": ["α\"key", "code", "pair"],
        "additionalProperties": false,
        "$defs": {"node": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": -12, "maximum": 12},
            {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}]}},
    });
    let options = SchemaOptions::default().with_whitespace(Whitespace::Flexible { max: 2 });
    let plan = host
        .louver
        .answer(&schema)
        .reasoning(Reasoning::Off)
        .schema_options(options)
        .build()
        .unwrap();
    for taste in 0..24u64 {
        // An order of preference over all tokens, strong enough to override everything else.
        let strange = move |logits: &Tensor, _: &[u32]| {
            let width = logits.elem_count();
            let liking = |token_id: usize| {
                ((token_id as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * taste) >> 40) as f32
            };
            Tensor::from_vec((0..width).map(liking).collect::<Vec<f32>>(), width, &Device::Cpu)
        };
        let request =
            request("x").add_logits_processor(Arc::new(strange)).set_sampler_temperature(0.0);
        let generation = run_request(host, &plan, request, host_draws()).await;
        assert_eq!(generation.finish, Finish::Stop, "taste {taste}");
        check_json(&generation.turn.text, &schema);
    }
    let stubborn = |_: &Tensor, _: &[u32]| Tensor::full(f32::NEG_INFINITY, 832, &Device::Cpu);
    let plan = host.louver.answer(&response_schema()).reasoning(Reasoning::Off).build().unwrap();
    let request = request("x").add_logits_processor(Arc::new(stubborn));
    check_json(&run_request(host, &plan, request, seeded(2)).await.turn.text, &response_schema());
}
