//! A running turn that goes on under another plan.

use louver_mistralrs::{
    Event, EventStream, ExtendError, Parallel, Plan, Reasoning, RunOptions, SchemaOptions,
    ToolChoice, Truncation, Whitespace,
};
use serde_json::{Value, json};

use crate::support::{Host, answer, ask, check_calls, host, id, stops, tools, wishing};

/// The first `count` tools.
fn some(count: usize) -> Value {
    Value::Array(tools().as_array().unwrap()[..count].to_vec())
}

fn plan(host: &Host, tools: Value) -> Plan {
    let options = SchemaOptions { whitespace: Whitespace::PythonLike, ..SchemaOptions::default() };
    let plan = host.louver.tools(tools).choice(ToolChoice::Required).parallel(Parallel::Any);
    plan.reasoning(Reasoning::Off).schema_options(options).build().unwrap()
}

/// A model that calls again and again.
async fn calling(host: &Host, plan: &Plan, seed: u64) -> EventStream {
    let eager = wishing(vec![id(&host.louver, "<tool_call>"), id(&host.louver, "\n")], 8.0);
    let request = ask("Go!").set_sampler_max_len(400).add_logits_processor(eager);
    let options =
        RunOptions { seed: Some(seed), truncation: Truncation::Safe, ..RunOptions::default() };
    plan.stream_with(&host.model, request, options).await.unwrap()
}

/// What was found joins the turn: calls of it come out of the same turn, whole, and everything before is said once.
#[tokio::test(flavor = "multi_thread")]
async fn tools_join_a_running_turn() {
    let host = host().await;
    let (one, both) = (plan(host, some(1)), plan(host, some(2)));
    let mut joined = 0;
    for seed in 0..6 {
        let mut stream = calling(host, &one, seed).await;
        let (mut at, mut before, mut after) = (None, Vec::new(), Vec::new());
        while let Some(event) = stream.next().await {
            let Event::CallStart { name, .. } = &event else { continue };
            if at.is_none() {
                // In the middle of a call.
                at = Some(stream.extend(&both).await.unwrap());
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
        // The tokens are a turn of the wider plan, read at once to the same.
        let whole = both.read(&generation.tokens);
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

/// What does not fit is refused, and the turn goes on as if nothing had been asked.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_changes_nothing() {
    let host = host().await;
    let (one, both) = (plan(host, some(1)), plan(host, some(2)));
    let other = Value::Array(vec![tools()[1].clone(), tools()[0].clone()]);
    let narrow = json!([{"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"zone": {"const": 1}}, "required": ["zone"], "additionalProperties": false}}}]);
    let alone = calling(host, &one, 1).await.finish().await.unwrap();
    let mut stream = calling(host, &one, 1).await;
    while let Some(event) = stream.next().await {
        if matches!(event, Event::CallEnd { index: 0 }) {
            assert_eq!(stream.extend(&plan(host, other.clone())).await, Err(ExtendError::Tools));
            let resumed = stream.extend(&plan(host, narrow.clone())).await;
            assert!(matches!(resumed, Err(ExtendError::Resume(_))), "{resumed:?}");
            let free = host.louver.unconstrained(Value::Null);
            assert_eq!(stream.extend(&free).await, Err(ExtendError::Unconstrained));
        }
    }
    assert_eq!(stream.extend(&both).await, Err(ExtendError::Over));
    assert_eq!(stream.finish().await.unwrap().tokens, alone.tokens);
    let mut free = host
        .louver
        .unconstrained(Value::Null)
        .stream(&host.model, ask("x").set_sampler_max_len(3))
        .await
        .unwrap();
    assert_eq!(free.extend(&both).await, Err(ExtendError::Unconstrained));
}

/// Who asks at the last moment gets an answer.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_turn_that_is_over() {
    let host = host().await;
    let plan = host.louver.answer(&answer()).reasoning(Reasoning::Off).build().unwrap();
    for length in 1..8 {
        let ending = wishing(stops(&host.louver), 20.0);
        let request = ask("x").set_sampler_max_len(length).add_logits_processor(ending);
        let options = RunOptions { truncation: Truncation::Off, ..RunOptions::default() };
        let mut stream = plan.stream_with(&host.model, request, options).await.unwrap();
        for _ in 0..length {
            let extended =
                tokio::time::timeout(std::time::Duration::from_secs(20), stream.extend(&plan))
                    .await;
            assert!(matches!(extended.expect("an answer"), Ok(_) | Err(ExtendError::Over)));
        }
    }
}
