//! Typical requests.

use std::sync::{Arc, Mutex};

use candle_core::Tensor;
use louver_mistralrs::{
    Event, Finish, Louver, Plan, PlanError, Reasoning, RequestParams, SendError, ToolChoice, Turn,
};
use mistralrs::{
    Constraint, CustomLogitsProcessor, RequestBuilder, SamplingParams, StopTokens, TextMessageRole,
    Tool,
};
use serde_json::json;

use crate::support::{
    Host, PrefixCache, check_calls, check_json, host, load_host, load_with_template, plan,
    prefer_tokens, request, response_schema, run_request, seeded, seeded_truncating, stop_ids,
    token_id, tools,
};

#[tokio::test(flavor = "multi_thread")]
async fn events_add_up_to_the_turn() {
    let host = host().await;
    assert_eq!(host.louver.format().unwrap(), "qwen3");
    assert_eq!(host.louver.warnings(), [""; 0]);
    // One call, so that random output ends.
    let plan = plan(&host.louver, ToolChoice::Named("weather".to_owned()));
    let mut stream =
        plan.stream(&host.model, request("What is the weather in Oslo?")).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    let generation = stream.finish().await.unwrap();
    assert_eq!(events.last(), Some(&Event::End));
    assert!(
        events.iter().filter(|e| matches!(e, Event::ArgumentsDelta { .. })).count() > 1,
        "arguments stream"
    );
    assert_eq!(Turn::collect(&events), generation.turn);
    assert_eq!((generation.turn.calls.len(), generation.finish), (1, Finish::Stop));
    check_calls(&generation.turn, &tools());
    // One mask per token, and one for the stop token.
    assert_eq!(generation.timing.masks.len(), generation.tokens.len() + 1);
    assert!(generation.timing.louver < generation.timing.steps);
}

/// Runs a request. Returns the length of the hook's first context, the prompt's length, and the
/// output.
async fn observe_first_context(host: &Host, question: &str) -> (usize, usize, Vec<u32>) {
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let seen = lengths.clone();
    let spy = move |logits: &Tensor, context: &[u32]| {
        seen.lock().unwrap().push(context.len());
        Ok(logits.clone())
    };
    let plan = plan(&host.louver, ToolChoice::Required);
    let request = request(question).add_logits_processor(Arc::new(spy));
    let generation = run_request(host, &plan, request, seeded(5)).await;
    check_calls(&generation.turn, &tools());
    assert!(!generation.turn.calls.is_empty());
    let lengths = lengths.lock().unwrap();
    assert_eq!(lengths[1], generation.prompt_tokens + 1, "the second context is whole");
    (lengths[0], generation.prompt_tokens, generation.tokens)
}

/// After a hit in the host's prefix cache, the hook's first context is only the prompt's end.
#[tokio::test(flavor = "multi_thread")]
async fn prefix_cache_hits_are_handled() {
    let (cold, warm) = (load_host(PrefixCache::On).await, load_host(PrefixCache::On).await);
    let (context, prompt, expected) =
        observe_first_context(&cold, "What is the weather in Lima?").await;
    assert_eq!(context, prompt, "nothing is cached yet");
    observe_first_context(&warm, "What is the weather in Oslo?").await;
    let (context, prompt, output) =
        observe_first_context(&warm, "What is the weather in Lima?").await;
    assert!(context < prompt, "the cache was not hit: {context} of {prompt}");
    assert_eq!(output, expected, "a hit changes nothing");
}

/// The same through the host's own chat route, where the prompt's length is learned.
#[tokio::test(flavor = "multi_thread")]
async fn host_chat_route_learns_the_prompt_length() {
    let host = load_host(PrefixCache::On).await;
    let plan = host.louver.answer(&response_schema()).reasoning(Reasoning::Off).build().unwrap();
    for question in ["How are you?", "How is she?", "How are they?"] {
        let request =
            request(question).enable_thinking(false).add_logits_processor(plan.processor());
        let response = host.model.send_chat_request(request).await.unwrap();
        check_json(response.choices[0].message.content.as_deref().unwrap(), &response_schema());
        assert_eq!(response.choices[0].finish_reason, "stop");
    }
}

async fn run_mixed_batch(count: usize) {
    let host = host().await;
    let louver = &host.louver;
    let plans: Vec<(Plan, &str)> = vec![
        (plan(louver, ToolChoice::Required), "calls"),
        (louver.answer(&response_schema()).reasoning(Reasoning::Off).build().unwrap(), "answer"),
        (plan(louver, ToolChoice::Named("book".to_owned())), "book"),
        (plan(louver, ToolChoice::Named("weather".to_owned())), "weather"),
        (
            louver
                .answer(&json!({"type": "integer", "minimum": 10, "maximum": 99}))
                .build()
                .unwrap(),
            "number",
        ),
        (plan(louver, ToolChoice::None), "text"),
        (
            louver
                .answer(&json!({"enum": ["yes", "no"]}))
                .reasoning(Reasoning::Off)
                .build()
                .unwrap(),
            "yes",
        ),
        (plan(louver, ToolChoice::Auto), "auto"),
    ];
    let mut running = Vec::new();
    for (at, (plan, kind)) in plans.iter().take(count).enumerate() {
        // All prompts have equal length, so that the host batches them, except where tools are not
        // shown.
        let request = request("Well?").set_sampler_max_len(300);
        running
            .push((plan.stream_with(&host.model, request, seeded(at as u64)).await.unwrap(), kind));
    }
    for (stream, kind) in running {
        let generation = stream.finish().await.unwrap();
        let turn = &generation.turn;
        check_calls(turn, &tools());
        match *kind {
            "calls" => assert!(!turn.calls.is_empty()),
            "book" | "weather" => {
                assert_eq!(turn.calls.iter().map(|c| &*c.name).collect::<Vec<_>>(), [*kind])
            }
            "answer" => check_json(&turn.text, &response_schema()),
            // Reasoning may come first and may use the whole length.
            "number" if turn.incomplete.is_none() => {
                check_json(&turn.text, &json!({"type": "integer", "minimum": 10, "maximum": 99}));
            }
            "yes" => assert!(["\"yes\"", "\"no\""].contains(&&*turn.text), "{turn:?}"),
            "text" => assert!(turn.calls.is_empty() && !turn.text.contains("<tool_call>")),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_requests() {
    run_mixed_batch(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_concurrent_requests() {
    run_mixed_batch(8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_choices() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Required);
    let request = request("What is the weather in Oslo?").set_sampler_n_choices(3);
    let streams = plan.stream_choices(&host.model, request.clone(), seeded(1)).await.unwrap();
    let mut outputs = Vec::new();
    let mut ids = Vec::new();
    for stream in streams {
        let generation = stream.finish().await.unwrap();
        assert!(!generation.turn.calls.is_empty());
        check_calls(&generation.turn, &tools());
        ids.extend(generation.turn.calls.iter().map(|call| call.id.clone()));
        outputs.push(generation.tokens);
    }
    assert_eq!(outputs.len(), 3);
    assert!(outputs[0] != outputs[1] || outputs[1] != outputs[2], "three equal choices");
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "call ids repeat");
    let refused = plan.stream(&host.model, request).await.unwrap_err();
    assert!(matches!(refused, SendError::Unsupported(_)));
}

/// A model that prefers a stop token at every step.
#[tokio::test(flavor = "multi_thread")]
async fn early_stop_tokens_are_masked() {
    let host = host().await;
    let eager = prefer_tokens(stop_ids(&host.louver), 1e6);
    for seed in 0..5 {
        let plan = plan(&host.louver, ToolChoice::Required);
        let request = request("Stop!").add_logits_processor(eager.clone());
        let generation = run_request(host, &plan, request, seeded(seed)).await;
        assert_eq!((generation.turn.calls.len(), generation.finish), (1, Finish::Stop));
        check_calls(&generation.turn, &tools());
    }
    // If an empty turn is allowed, the result is empty: Louver ends at the first stop token,
    // although the host continues after one at the first position.
    let plan = plan(&host.louver, ToolChoice::Auto);
    let generation =
        run_request(host, &plan, request("Stop!").add_logits_processor(eager), seeded(1)).await;
    assert_eq!(
        (generation.turn, generation.finish, generation.tokens.len()),
        (Turn::default(), Finish::Stop, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_include_tool_results() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Named("weather".to_owned()));
    let first = run_request(host, &plan, request("How is Oslo?"), seeded(8)).await;
    let call = &first.turn.calls[0];
    let response = mistralrs::ToolCallResponse {
        index: 0,
        id: call.id.clone(),
        tp: mistralrs::ToolCallType::Function,
        function: mistralrs::CalledFunction {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    };
    let question = request("How is Oslo?");
    let request = request("How is Oslo?")
        .add_message_with_tool_call(TextMessageRole::Assistant, "", vec![response])
        .add_tool_message("{\"rain\": 3}", &call.id);
    let reply = host.louver.answer(&response_schema()).reasoning(Reasoning::Off).build().unwrap();
    let second = run_request(host, &reply, request, seeded(9)).await;
    check_json(&second.turn.text, &response_schema());
    // The second prompt contains the call and its result, and no tools.
    let bare = run_request(host, &reply, question, seeded(9)).await;
    assert!(second.prompt_tokens > bare.prompt_tokens + 20);
}

/// If the chat template opens the reasoning block, the turn begins inside it.
#[tokio::test(flavor = "multi_thread")]
async fn templates_may_open_reasoning() {
    let Host { model, louver } = load_with_template("<think>\n").await;
    let plan = louver.tools(tools()).choice(ToolChoice::Named("book".to_owned())).build().unwrap();
    let close = prefer_tokens(vec![token_id(&louver, "</think>")], 4.0);
    let stream = plan
        .stream_with(&model, request("x").add_logits_processor(close), seeded(1))
        .await
        .unwrap();
    let turn = stream.finish().await.unwrap().turn;
    assert!(
        !turn.reasoning.is_empty() && turn.calls.len() == 1 && turn.text.is_empty(),
        "{turn:?}"
    );
    check_calls(&turn, &tools());
    let off = louver.tools(tools()).reasoning(Reasoning::Off).build();
    assert!(matches!(off, Err(PlanError::AlwaysReasons)));
}

/// Whether the turn begins with reasoning depends on the prompt: some templates open the block
/// after messages of the user only, others after results.
#[tokio::test(flavor = "multi_thread")]
async fn templates_may_open_reasoning_in_some_conversations() {
    let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let conversation = json!([
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
    ]);
    let conversation = conversation.as_array().unwrap();
    let answer = r#"{"answer": "a", "score": 1, "tags": []}"#;
    for opening_role in ["user", "tool"] {
        let prompt =
            format!("{{% if messages[-1].role == '{opening_role}' %}}<think>{{% endif %}}");
        let Host { model, louver } = load_with_template(&prompt).await;
        let builder = louver.answer(&response_schema());
        let plan = builder.clone().build().unwrap();
        for messages in [&conversation[..1], &conversation[..]] {
            let is_opened = messages.last().unwrap()["role"] == opening_role;
            let (plan, prompt) = plan.for_messages(messages).unwrap();
            let read = plan.turn_plan().read(&plan.text_prompt(answer).unwrap());
            let expected = if is_opened { (answer, "") } else { ("", answer) };
            assert_eq!((read.reasoning.as_str(), read.text.as_str()), expected, "{opening_role}");
            let params = RequestParams::default().with_options(seeded_truncating(1));
            let sampling = SamplingParams { max_len: Some(3), ..SamplingParams::neutral() };
            let params = params.with_sampling(sampling);
            let stream = plan.start(&model, prompt, params).await.unwrap().pop().unwrap();
            assert!(stream.finish().await.unwrap().tokens.len() <= 3);
        }
        let off = builder.reasoning(Reasoning::Off).build();
        match opening_role {
            "user" => assert!(matches!(off, Err(PlanError::AlwaysReasons))),
            _ => {
                let (off, error) = (off.unwrap(), "reasoning cannot be off");
                assert!(off.for_messages(&conversation[..1]).is_ok());
                let refused = off.for_messages(conversation).unwrap_err().to_string();
                assert!(refused.starts_with(error), "{refused}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sdk_tools_are_accepted() {
    let host = host().await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 3}},
        "required": ["n"], "additionalProperties": false});
    let tool = json!({"type": "function",
        "function": {"name": "roll", "description": "Rolls.", "parameters": schema}});
    let tools: Vec<Tool> = vec![serde_json::from_value(tool).unwrap()];
    let plan = host
        .louver
        .tools(&tools)
        .choice(ToolChoice::Required)
        .reasoning(Reasoning::Off)
        .build()
        .unwrap();
    let generation = run_request(host, &plan, request("Roll!"), seeded(1)).await;
    assert!(!generation.turn.calls.is_empty());
    generation.turn.calls.iter().for_each(|call| check_json(&call.arguments, &schema));
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_requests_are_rejected_before_generation() {
    let host = host().await;
    let louver: &Louver = &host.louver;
    let bad = json!([{"name": "f", "parameters": {"type": "object", "properties": {"x": {"minLength": "two"}}}}]);
    let error = louver.tools(&bad).build().unwrap_err().to_string();
    assert!(error.contains("/tools/0/parameters/properties/x/minLength"), "{error}");
    assert!(louver.tools(tools()).choice(ToolChoice::Named("nope".to_owned())).build().is_err());
    let plan = plan(louver, ToolChoice::Auto);
    let long = "word ".repeat(10_000);
    let requests: Vec<RequestBuilder> = vec![
        request("x").set_constraint(Constraint::Regex("a".to_owned())),
        request("x").set_sampler_stop_toks(StopTokens::Seqs(vec!["}".to_owned()])),
        request("x").set_sampler_max_len(0),
        request(&long),
    ];
    for request in requests {
        assert!(plan.stream_with(&host.model, request, seeded(1)).await.is_err());
    }
    let generous = request("x").set_sampler_topp(0.9).set_sampler_topk(20).set_sampler_max_len(5);
    let generation = plan.stream(&host.model, generous).await.unwrap().finish().await.unwrap();
    assert!(generation.tokens.len() <= 5);
}

#[test]
fn processors_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Plan>();
    shared::<Louver>();
    shared::<Arc<dyn CustomLogitsProcessor>>();
}
