//! How generations end at and near the length limit.

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "conformance/rig.rs"]
mod rig;

use std::sync::Arc;

use louver::{Engine, EngineOptions, Json};
use louver_formats::{Catalog, Reasoning, ToolRequest};
use louver_host::{
    Completion, DrawnBy, Finish, Generation, GenerationError, GenerationInput, LimitPolicy,
    PreparedGeneration, Record, TurnPlan,
};
use serde_json::{Value, json};

use rig::{
    AMPLE, LOUVER, PROMPT, STOP, STOPPED, direct, finish, generate, largest, model_row, plan_of,
};

/// A plan in the format of Qwen 3.
fn plan(body: Value, reasoning: Reasoning) -> TurnPlan {
    let engine = Engine::new(Arc::new(rig::vocabulary()), EngineOptions::default());
    let format = Catalog::shipped().get("qwen3").unwrap().bind(engine.vocab());
    let mut request = ToolRequest::parse(&Json::from(&body)).unwrap();
    request.reasoning = reasoning;
    TurnPlan::compile(&engine, &format, request).unwrap()
}

fn tools() -> Value {
    let parameters = json!({
        "properties": {"city": {"enum": ["Oslo", "Lima"]}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let function = json!({"name": "weather", "strict": true, "parameters": parameters});
    json!([{"type": "function", "function": function}])
}

fn generation(plan: &TurnPlan, limit: usize, policy: LimitPolicy) -> Generation {
    let input = GenerationInput::new(&PROMPT, limit, LOUVER).with_limit_policy(policy);
    let PreparedGeneration { hook, events, task, .. } = plan.generation(&input);
    generate(&direct(hook), limit);
    finish((events, task), STOPPED).unwrap()
}

/// After a call another one could follow. If the limit leaves no room for it, the call that is
/// there is the result.
#[test]
fn calls_that_end_at_the_limit_are_not_truncated() {
    let plan = plan(json!({"tools": tools(), "tool_choice": "required"}), Reasoning::Off);
    let tokens = generation(&plan, AMPLE, LimitPolicy::Safe).tokens;
    let end = tokens.iter().position(|token| *token == 257).unwrap() + 1;
    for policy in [LimitPolicy::Safe, LimitPolicy::Off] {
        let generation = generation(&plan, end, policy);
        assert_eq!((generation.tokens.len(), generation.turn.calls.len()), (end, 1));
        assert_eq!(generation.report.completion, Completion::Pressed);
    }
}

/// Reasoning and text without a call are cut off at the limit, however the grammar lets them end.
#[test]
fn text_and_reasoning_are_truncated_at_the_limit() {
    let (mut tokens, bodies) =
        (0, [json!({"tools": tools()}), json!({"tools": tools(), "stop": ["zq"]})]);
    for (body, reasoning) in bodies.iter().flat_map(|body| {
        [Reasoning::Off, Reasoning::Required].map(|reasoning| (body.clone(), reasoning))
    }) {
        let plan = plan(body, reasoning);
        for limit in [5, 12, 30] {
            let generation = generation(&plan, limit, LimitPolicy::Safe);
            if generation.turn.calls.is_empty() && generation.tokens.len() == limit {
                assert!(generation.is_truncated(), "{limit}: {generation:?}");
                tokens += limit;
            }
        }
    }
    assert!(tokens > 100, "{tokens}");
}

/// What is drawn in place of a refused token has the odds that it has among the others.
#[test]
fn draws_in_place_of_refused_tokens_are_not_biased() {
    let plan = plan(json!({"tools": tools()}), Reasoning::Off);
    let counts = (0..3000).fold([0u32; 2], |mut counts, seed| {
        let drawn_by = DrawnBy::Louver { seed };
        let input = GenerationInput::new(&PROMPT, 20, drawn_by);
        let input = input.with_limit_policy(LimitPolicy::Safe);
        let PreparedGeneration { hook, events: _events, .. } = plan.generation(&input);
        let mut row = vec![f32::NEG_INFINITY; rig::WIDTH];
        // A call does not fit. It is drawn in two of four cases, and is behind the others.
        for (token, weight) in [(b'a', 1.0f32), (b'b', 1.0), (0, 2.0)] {
            let token = if token == 0 { 256 } else { usize::from(token) };
            row[token] = weight.ln();
        }
        direct(hook)(&mut row, &PROMPT);
        counts[(largest(&row) - u32::from(b'a')) as usize] += 1;
        counts
    });
    assert!(counts[0].abs_diff(counts[1]) < 200, "{counts:?}");
}

/// The guard has refused a token, and then the host is gone.
#[test]
fn a_dead_host_is_an_error_also_near_the_limit() {
    let note = json!({"type": "string", "minLength": 10, "maxLength": 150});
    let parameters = json!({"properties": {"note": note}, "required": ["note"]});
    let plan = plan_of(parameters, EngineOptions::default()).unwrap();
    let limit = 100;
    let tokens = |limit| {
        let PreparedGeneration { hook, events: _events, .. } = rig::prepare(&plan, LOUVER, limit);
        generate(&direct(hook), limit)
    };
    let (near, free) = (tokens(limit), tokens(10 * AMPLE));
    let refused = near.iter().zip(&free).position(|(near, free)| near != free).unwrap();
    assert!(refused + 2 < near.len());
    let PreparedGeneration { hook, events, task, .. } = rig::prepare(&plan, LOUVER, limit);
    let call = direct(hook);
    for generated in 0..refused + 2 {
        call(&mut model_row(generated), &[&PROMPT, &near[..generated]].concat());
    }
    assert_eq!(finish((events, task), None).unwrap_err(), GenerationError::HostGone);
}

/// A host may ask for a row twice, and choose after the second call.
#[test]
fn a_stop_token_counts_only_if_it_was_the_last_draw() {
    let plan = plan(json!({"tools": tools()}), Reasoning::Off);
    let input = GenerationInput::new(&PROMPT, AMPLE, LOUVER);
    let input = input.with_record(Record::Logprobs { top: 0 });
    let PreparedGeneration { hook, events, task, .. } = plan.generation(&input);
    let (call, mut context) = (direct(hook), PROMPT.to_vec());
    for byte in *b"abc" {
        for token in [STOP, u32::from(byte)] {
            let mut row = model_row(0);
            row[token as usize] = 1e6;
            call(&mut row, &context);
            assert_eq!(largest(&row), token);
        }
        context.push(byte.into());
    }
    call(&mut model_row(0), &context);
    let generation = finish((events, task), Some(Ok(Finish::Length))).unwrap();
    assert_eq!(generation.tokens, b"abc".map(u32::from));
    let positions: Vec<usize> = generation.steps.iter().map(|step| step.position).collect();
    assert_eq!(positions, [0, 1, 2]);
    assert_eq!(generation.report.completion, Completion::Truncated);
}
