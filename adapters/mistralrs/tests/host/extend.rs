//! Plan changes of a running turn.

use louver_mistralrs::{
    Event, EventStream, ExtendError, LimitPolicy, Parallel, Plan, Reasoning, RunOptions,
    SchemaOptions, ToolChoice, Whitespace,
};
use serde_json::{Value, json};

use crate::support::{
    Host, PrefixCache, check_calls, host, load_host, prefer_tokens, request, response_schema,
    stop_ids, token_id, tools,
};

/// The first `count` tools.
fn first_tools(count: usize) -> Value {
    Value::Array(tools().as_array().unwrap()[..count].to_vec())
}

fn plan(host: &Host, tools: Value) -> Plan {
    let options = SchemaOptions::default().with_whitespace(Whitespace::PythonLike);
    let plan = host.louver.tools(tools).choice(ToolChoice::Required).parallel(Parallel::Any);
    plan.reasoning(Reasoning::Off).schema_options(options).build().unwrap()
}

/// Streams a simulated model that makes many calls.
async fn stream_with_many_calls(host: &Host, plan: &Plan, seed: u64) -> EventStream {
    let eager = prefer_tokens(
        vec![token_id(&host.louver, "<tool_call>"), token_id(&host.louver, "\n")],
        8.0,
    );
    let request = request("Go!").set_sampler_max_len(400).add_logits_processor(eager);
    let options = RunOptions::default().with_seed(seed).with_limit_policy(LimitPolicy::Safe);
    plan.stream_with(&host.model, request, options).await.unwrap()
}

/// Tools added to a running turn can be called within it, and no event is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn tools_can_be_added_to_a_running_turn() {
    let host = host().await;
    let (one, both) = (plan(host, first_tools(1)), plan(host, first_tools(2)));
    let mut joined = 0;
    for seed in 0..6 {
        let mut stream = stream_with_many_calls(host, &one, seed).await;
        let (mut at, mut before, mut after) = (None, Vec::new(), Vec::new());
        while let Some(event) = stream.next().await {
            let Event::CallStart { name, .. } = &event else { continue };
            if at.is_none() {
                // In the middle of a call.
                at = Some(stream.extend(both.turn_plan()).await.unwrap());
                before.push(name.clone());
            } else {
                after.push(name.clone());
            }
        }
        let generation = stream.finish().await.unwrap();
        assert_eq!(before, ["weather"]);
        check_calls(&generation.turn, &tools());
        let names: Vec<String> =
            generation.turn.calls.iter().map(|call| call.name.clone()).collect();
        assert!([before, after].concat().starts_with(&names));
        joined += names.iter().filter(|name| *name == "book").count();
        // The tokens parse to the same turn under the wider plan.
        let whole = both.turn_plan().read(&generation.tokens);
        let arguments = |turn: &louver_mistralrs::Turn| {
            turn.calls.iter().map(|c| c.arguments.clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            (arguments(&whole), &whole.text),
            (arguments(&generation.turn), &generation.turn.text)
        );
    }
    assert!(joined > 0, "no call of a tool that joined");
}

/// An incompatible plan is rejected, and the turn continues unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn incompatible_plans_change_nothing() {
    // A separate host, because tokens must not depend on other sequences in a batch.
    let host = &load_host(PrefixCache::Off).await;
    let (one, both) = (plan(host, first_tools(1)), plan(host, first_tools(2)));
    let other = Value::Array(vec![tools()[1].clone(), tools()[0].clone()]);
    let narrow = json!([{"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"zone": {"const": 1}}, "required": ["zone"], "additionalProperties": false}}}]);
    let alone = stream_with_many_calls(host, &one, 1).await.finish().await.unwrap();
    let mut stream = stream_with_many_calls(host, &one, 1).await;
    while let Some(event) = stream.next().await {
        if matches!(event, Event::CallEnd { index: 0 }) {
            assert_eq!(
                stream.extend(plan(host, other.clone()).turn_plan()).await,
                Err(ExtendError::Tools)
            );
            let resumed = stream.extend(plan(host, narrow.clone()).turn_plan()).await;
            assert!(matches!(resumed, Err(ExtendError::Resume(_))), "{resumed:?}");
            let free = host.louver.unconstrained(Value::Null);
            assert_eq!(stream.extend(free.turn_plan()).await, Err(ExtendError::Unconstrained));
        }
    }
    assert_eq!(stream.extend(both.turn_plan()).await, Err(ExtendError::Over));
    assert_eq!(stream.finish().await.unwrap().tokens, alone.tokens);
    let mut free = host
        .louver
        .unconstrained(Value::Null)
        .stream(&host.model, request("x").set_sampler_max_len(3))
        .await
        .unwrap();
    assert_eq!(free.extend(both.turn_plan()).await, Err(ExtendError::Unconstrained));
}

/// A plan change requested at the end of a turn gets a reply.
#[tokio::test(flavor = "multi_thread")]
async fn plan_changes_at_the_end_of_a_turn_get_a_reply() {
    let host = host().await;
    let plan = host.louver.answer(&response_schema()).reasoning(Reasoning::Off).build().unwrap();
    for length in 1..8 {
        let ending = prefer_tokens(stop_ids(&host.louver), 20.0);
        let request = request("x").set_sampler_max_len(length).add_logits_processor(ending);
        let options = RunOptions::default().with_limit_policy(LimitPolicy::Off);
        let mut stream = plan.stream_with(&host.model, request, options).await.unwrap();
        for _ in 0..length {
            let extended = tokio::time::timeout(
                std::time::Duration::from_secs(20),
                stream.extend(plan.turn_plan()),
            )
            .await;
            assert!(matches!(extended.expect("an answer"), Ok(_) | Err(ExtendError::Over)));
        }
    }
}
