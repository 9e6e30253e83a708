//! Rows and models of every kind: the hook never fails, never leaves a row without a finite logit, never runs into a
//! dead end.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use louver_mistralrs::{
    Fault, Finish, GenerationError, Reasoning, SchemaOptions, ToolChoice, Whitespace,
};
use serde_json::json;

use crate::support::{answer, ask, check_calls, check_json, host, plan, run, seeded, stops, tools};

fn finite(row: &Tensor) -> Vec<usize> {
    let row = row.to_vec1::<f32>().unwrap();
    assert!(row.iter().all(|x| !x.is_nan() && *x != f32::INFINITY));
    (0..row.len()).filter(|i| row[*i].is_finite()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_every_width_and_kind() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let width = host.louver.engine().vocab().width();
    for (len, value) in [1, 2, 100, width - 1, width, width + 1, 832, 5000]
        .into_iter()
        .flat_map(|len| [0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(|value| (len, value)))
    {
        let processor = plan.processor();
        let row = Tensor::from_vec(vec![value; len], len, &Device::Cpu).unwrap();
        let left = finite(&processor.apply(&row, &[1, 2, 3]).unwrap());
        assert!(
            !left.is_empty() && left.len() < 40 && left.iter().all(|id| *id < len),
            "{len} {value} {left:?}"
        );
        if len >= width {
            assert!(
                left.iter().all(|id| *id < width && !stops(&host.louver).contains(&(*id as u32)))
            );
        }
    }
    for row in [
        Tensor::zeros(832, DType::F16, &Device::Cpu).unwrap(),
        Tensor::zeros((1, 832), DType::F64, &Device::Cpu).unwrap(),
        Tensor::zeros((832, 2), DType::F32, &Device::Cpu).unwrap().narrow(1, 0, 1).unwrap(),
    ] {
        assert!(!finite(&plan.processor().apply(&row, &[1]).unwrap()).is_empty());
    }
    assert!(
        plan.processor().apply(&Tensor::zeros(0, DType::F32, &Device::Cpu).unwrap(), &[]).is_ok()
    );
}

/// State follows the context's tokens: calls may repeat, go back, and belong to other sequences.
#[tokio::test(flavor = "multi_thread")]
async fn contexts_in_any_order() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let whole = run(host, &plan, ask("Walk!"), seeded(3)).await.tokens;
    let other = run(host, &plan, ask("Walk!"), seeded(6)).await.tokens;
    let prompt = [7u32, 8, 9];
    let allowed = |processor: &Arc<dyn mistralrs::CustomLogitsProcessor>, tokens: &[u32]| {
        let row = Tensor::zeros(832, DType::F32, &Device::Cpu).unwrap();
        finite(&processor.apply(&row, &[&prompt[..], tokens].concat()).unwrap())
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

/// A token that was not allowed ends the generation, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn forbidden_token_in_the_context() {
    let host = host().await;
    let processor = plan(&host.louver, ToolChoice::Required).processor();
    let row = || Tensor::zeros(832, DType::F32, &Device::Cpu).unwrap();
    let ends: Vec<usize> = stops(&host.louver).iter().map(|id| *id as usize).collect();
    assert_ne!(finite(&processor.apply(&row(), &[1, 2]).unwrap()), ends);
    for context in [&[1, 2, 831][..], &[1, 2, 831, 5], &[1, 2, u32::MAX]] {
        assert_eq!(finite(&processor.apply(&row(), context).unwrap()), ends);
    }
}

/// A row too narrow for anything that is allowed: the request fails, and says why.
#[tokio::test(flavor = "multi_thread")]
async fn narrow_rows_in_the_host() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let narrow = |logits: &Tensor, _: &[u32]| logits.narrow(0, 0, 2)?.contiguous();
    let stream = plan
        .stream(&host.model, ask("x").add_logits_processor(Arc::new(narrow)).set_sampler_max_len(4))
        .await;
    let error = stream.unwrap().finish().await.unwrap_err();
    assert_eq!(error, GenerationError::Fault(Fault::NothingAllowed { width: 2 }));
    check_calls(&run(host, &plan, ask("x"), seeded(0)).await.turn, &tools());
}

/// A model that has gone mad still makes valid calls.
#[tokio::test(flavor = "multi_thread")]
async fn nan_rows_in_the_host() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Named("weather".to_owned()));
    let mad = |logits: &Tensor, _: &[u32]| logits.affine(f64::NAN, 0.0);
    for options in [seeded(1), Default::default()] {
        let request = ask("x").add_logits_processor(Arc::new(mad));
        let generation = run(host, &plan, request, options).await;
        assert_eq!(generation.finish, Finish::Stop);
        assert_eq!(generation.repaired_rows, generation.tokens.len() + 1);
        assert_eq!(generation.turn.calls.len(), 1);
        check_calls(&generation.turn, &tools());
    }
}

/// Models with strange tastes, through a schema with corners: there is always a way on, and it leads to valid JSON.
#[tokio::test(flavor = "multi_thread")]
async fn no_dead_ends() {
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
    let options =
        SchemaOptions { whitespace: Whitespace::Flexible { max: 2 }, ..SchemaOptions::default() };
    let plan = host
        .louver
        .answer(&schema)
        .reasoning(Reasoning::Off)
        .schema_options(options)
        .build()
        .unwrap();
    for taste in 0..24u64 {
        // An order of preference over all tokens, so strong that nothing else counts.
        let strange = move |logits: &Tensor, _: &[u32]| {
            let width = logits.elem_count();
            let liking = |id: usize| {
                ((id as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * taste) >> 40) as f32
            };
            Tensor::from_vec((0..width).map(liking).collect::<Vec<f32>>(), width, &Device::Cpu)
        };
        let request = ask("x").add_logits_processor(Arc::new(strange)).set_sampler_temperature(0.0);
        let generation = run(host, &plan, request, Default::default()).await;
        assert_eq!(generation.finish, Finish::Stop, "taste {taste}");
        check_json(&generation.turn.text, &schema);
    }
    let stubborn = |_: &Tensor, _: &[u32]| Tensor::full(f32::NEG_INFINITY, 832, &Device::Cpu);
    let plan = host.louver.answer(&answer()).reasoning(Reasoning::Off).build().unwrap();
    let request = ask("x").add_logits_processor(Arc::new(stubborn));
    check_json(&run(host, &plan, request, seeded(2)).await.turn.text, &answer());
}
