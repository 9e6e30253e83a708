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
        assert_eq!(generation.report.completion, Completion::Limited);
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

/// Generates with a model that prefers, at each step, these tokens in this order.
fn scripted(plan: &TurnPlan, limit: usize, script: &[&[u32]]) -> Generation {
    let input = GenerationInput::new(&PROMPT, limit, LOUVER).with_limit_policy(LimitPolicy::Safe);
    let PreparedGeneration { hook, events, task, .. } = plan.generation(&input);
    let (call, mut context) = (direct(hook), PROMPT.to_vec());
    for preferred in script.iter().chain(std::iter::repeat(&script[script.len() - 1])) {
        let mut row = model_row(0);
        preferred.iter().zip([1e6, 1e5]).for_each(|(token, logit)| row[*token as usize] = logit);
        call(&mut row, &context);
        match largest(&row) {
            STOP => break,
            token => context.push(token),
        }
    }
    finish((events, task), STOPPED).unwrap()
}

/// A refused token does not make a later end of the model's one of the limit.
#[test]
fn turns_that_end_by_themselves_are_not_truncated() {
    const CALL: u32 = 256;
    let (a, b) = (u32::from(b'a'), u32::from(b'b'));
    let text = plan(json!({"tools": tools()}), Reasoning::Off);
    let limit = 20;
    for (script, tokens, finish, completion) in [
        (&[&[a][..], &[b], &[STOP]][..], 2, Finish::Stop, Completion::Complete),
        // A call would not fit, neither at first nor later.
        (&[&[CALL, a], &[b], &[STOP]], 2, Finish::Stop, Completion::Limited),
        (&[&[a], &[CALL, b], &[a], &[STOP]], 3, Finish::Stop, Completion::Limited),
        // The end in place of a call.
        (&[&[a], &[CALL, STOP]], 1, Finish::Length, Completion::Truncated),
        // No end before the limit.
        (&[&[a]], limit, Finish::Length, Completion::Truncated),
        (&[&[CALL, a]], limit, Finish::Length, Completion::Truncated),
    ] {
        let generation = scripted(&text, limit, script);
        let found = (generation.tokens.len(), generation.finish, generation.report.completion);
        assert_eq!(found, (tokens, finish, completion), "{script:?}");
    }
    // A response that the limit keeps from a long member, long before the limit.
    let long = json!({"type": "string", "minLength": 100});
    let schema = json!({"type": "object", "properties": {"a": long, "b": {"const": 1}},
        "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "r", "schema": schema}});
    let response = plan(json!({"response_format": format}), Reasoning::Off);
    for (script, completion) in [
        ([&b"{"[..], b"\"", b"b", b"\"", b":", b"1", b"}"], Completion::Complete),
        ([b"{", b"\"", b"ab", b"\"", b":", b"1", b"}"], Completion::Limited),
    ] {
        let mut script: Vec<Vec<u32>> =
            script.iter().map(|bytes| bytes.iter().map(|b| u32::from(*b)).collect()).collect();
        script.push(vec![STOP]);
        let script: Vec<&[u32]> = script.iter().map(Vec::as_slice).collect();
        let generation = scripted(&response, 60, &script);
        assert_eq!(generation.turn.text, r#"{"b":1}"#);
        let found = (generation.finish, generation.report.completion);
        assert_eq!(found, (Finish::Stop, completion));
    }
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
