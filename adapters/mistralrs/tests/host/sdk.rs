//! The SDK extension: models, chats, length limits, recorded steps and reports.

use louver::limits::Limits;
use louver::spec::json::Json;
use louver_mistralrs::{
    Completion, EnforcementLevel, Finish, LimitPolicy, LoadError, Louver, LouverOptions, Overlap,
    Parallel, Phase, Prefetch, PrepareBudget, Reasoning, Record, RunOptions, SendError, Strictness,
    ToolChoice,
};
use mistralrs::{RequestBuilder, TextMessageRole, Tool};
use serde_json::json;

use crate::support::{
    PrefixCache, builder, check_calls, check_json, host, host_draws, load_host, plan, request,
    response_schema, run_request, seeded, tools, without_ids,
};

fn sdk_tool() -> Tool {
    let parameters = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["n"], "additionalProperties": false});
    let function = json!({"name": "count", "parameters": parameters});
    serde_json::from_value(json!({"type": "function", "function": function})).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_requests_need_few_lines() {
    let host = host().await;
    let request = RequestBuilder::new()
        .add_message(TextMessageRole::User, "Count.")
        .set_tools(vec![sdk_tool()]);
    let request = request.set_sampler_max_len(400);
    let chat = host.louver.chat(request).required();
    let chat = chat.with(|plan| plan.reasoning(Reasoning::Off).parallel(Parallel::One));
    let chat = chat.options(RunOptions::default().with_seed(7));
    let generation = chat.send().await.unwrap();
    let [call] = &generation.turn.calls[..] else { panic!("{:?}", generation.turn) };
    assert_eq!(call.name, "count");
    // An integer may be written as 3.0.
    let n =
        serde_json::from_str::<serde_json::Value>(&call.arguments).unwrap()["n"].as_f64().unwrap();
    assert!((1.0..=9.0).contains(&n) && n.fract() == 0.0);
    assert_eq!(
        (generation.report.level, generation.report.completion),
        (EnforcementLevel::Full, Completion::Complete)
    );
    assert!(generation.report.forced_tokens > 0 && generation.report.refused_tokens > 0);
}

/// Choices in OpenAI's JSON format give plans, and errors with pointers.
#[tokio::test(flavor = "multi_thread")]
async fn tool_choices_in_openai_format_are_read() {
    let host = host().await;
    let plan = |choice| host.louver.tools(&vec![sdk_tool()]).openai_choice(&choice).build();
    let error = plan(json!({"type": "function"})).unwrap_err().to_string();
    assert!(error.contains("/tool_choice"), "{error}");
    let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [{"name": "no"}]});
    let error = plan(allowed).unwrap_err().to_string();
    assert!(error.contains("no") && error.contains("count"), "{error}");
    let named = json!({"type": "function", "function": {"name": "count"}});
    for choice in [json!("required"), json!("none"), named] {
        plan(choice).unwrap();
    }
}

/// A choice in OpenAI's format does not undo `allow`, in either order.
#[tokio::test(flavor = "multi_thread")]
async fn choices_leave_what_is_allowed() {
    let host = host().await;
    let callable = |names: &[&str], choice: serde_json::Value| {
        let first = host.louver.tools(tools()).allow(names.to_vec()).openai_choice(&choice);
        let last = host.louver.tools(tools()).openai_choice(&choice).allow(names.to_vec());
        [first, last].map(|builder| {
            let plan = builder.build().unwrap();
            let tools = plan.turn_plan().lowered().unwrap().tools();
            let callable = tools.iter().filter(|tool| tool.is_callable());
            callable.map(|tool| tool.name.clone()).collect::<Vec<_>>()
        })
    };
    let allowed = json!({"type": "allowed_tools", "mode": "auto",
        "tools": [{"name": "book"}, {"name": "weather"}]});
    for choice in [json!("auto"), json!("required"), allowed] {
        assert_eq!(callable(&["weather"], choice), [["weather"], ["weather"]]);
    }
}

/// Compiling, rendering and tokenizing do not keep the thread of the runtime.
#[tokio::test]
async fn requests_are_prepared_on_threads_for_blocking_work() {
    let host = host().await;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let plan = plan(&host.louver, ToolChoice::Required);
    let mut stream = std::pin::pin!(plan.stream(&host.model, request("Well?")));
    assert!(stream.as_mut().poll(&mut context).is_pending());
    stream.await.unwrap().cancel();
    let chat = host.louver.chat(request("Well?")).tools(tools()).required();
    let mut stream = std::pin::pin!(chat.stream());
    assert!(stream.as_mut().poll(&mut context).is_pending());
    stream.await.unwrap().cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn loaded_models_are_supported() {
    // A separate host, because tokens must not depend on other sequences in a batch.
    let host = &load_host(PrefixCache::Off).await;
    let louver = Louver::for_model(&host.model).await.unwrap();
    assert_eq!(louver.format().unwrap(), "qwen3");
    assert_eq!(louver.engine().vocab().fingerprint(), host.louver.engine().vocab().fingerprint());
    assert_eq!(louver.max_context(), host.louver.max_context());
    let of = |louver: &Louver| {
        let chat = louver.chat(request("Well?")).tools(tools()).required();
        let chat = chat.with(|plan| plan.reasoning(Reasoning::Off));
        chat.options(RunOptions::default().with_seed(3))
    };
    let (a, b) = (of(&louver).send().await.unwrap(), of(&host.louver).send().await.unwrap());
    let [a, b] = [a, b].map(|x| (without_ids(x.turn), x.tokens, x.prompt_tokens));
    assert_eq!(a, b);
    // A chat without a model fails, and a model without files is not guessed.
    let (pipeline, ..) =
        mistralrs::AnyModelBuilder::from(builder()).build_pipeline().await.unwrap();
    let unbound = Louver::for_pipeline(&pipeline, LouverOptions::default()).await.unwrap();
    assert!(matches!(unbound.chat(request("Well?")).stream().await, Err(SendError::NoModel)));
    let unknown = Louver::for_model_with(
        &host.model,
        LouverOptions::default().with_format("nope".to_owned()),
    );
    assert!(matches!(unknown.await, Err(LoadError::Format(_))));
}

/// Near the length limit the mask narrows, so that a call that can be completed is complete at
/// every limit.
#[tokio::test(flavor = "multi_thread")]
async fn required_calls_are_complete_at_every_limit() {
    let host = host().await;
    let plan = plan(&host.louver, ToolChoice::Named("weather".to_owned()));
    let free = run_request(host, &plan, request("Well?"), seeded(1)).await;
    let (mut limited, mut truncated) = (0, 0);
    for limit in (8..free.tokens.len() + 8).step_by(7) {
        let safe =
            run_request(host, &plan, request("Well?").set_sampler_max_len(limit), seeded(1)).await;
        let off = seeded(1).with_limit_policy(LimitPolicy::Off);
        let off = run_request(host, &plan, request("Well?").set_sampler_max_len(limit), off).await;
        assert!(safe.tokens.len() <= limit && off.tokens.len() <= limit);
        match safe.report.completion {
            Completion::Complete => assert_eq!(safe.finish, Finish::Stop),
            Completion::Limited => limited += 1,
            completion => {
                truncated += 1;
                assert_eq!((completion, safe.finish), (Completion::Truncated, Finish::Length));
                assert!(safe.turn.calls.is_empty(), "a truncated call is not a call");
                assert_eq!(off.report.completion, Completion::Truncated, "{limit}");
                continue;
            }
        }
        assert_eq!(safe.turn.calls.len(), 1);
        check_calls(&safe.turn, &tools());
    }
    assert!(limited > 3 && truncated > 0, "{limited} {truncated}");
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_recorded() {
    // A separate host, because tokens must not depend on other sequences in a batch.
    let host = &load_host(PrefixCache::Off).await;
    let plan = host.louver.tools(tools()).choice(ToolChoice::Required).parallel(Parallel::One);
    let plan = plan.reasoning(Reasoning::Off).build().unwrap();
    let options = seeded(11).with_record(Record::Trace { top: 3, bytes: 1 << 20, logprobs: None });
    let mut stream = plan.stream_with(&host.model, request("Well?"), options).await.unwrap();
    let (mut steps, mut last) = (Vec::new(), 0);
    while stream.next().await.is_some() {
        assert!(stream.position() >= last);
        last = stream.position();
        steps.extend(stream.take_steps());
        assert!(steps.len() >= last, "a step is there before the events it leads to");
    }
    let generation = stream.finish().await.unwrap();
    steps.extend(generation.steps);
    let chosen: Vec<u32> = steps.iter().map(|step| step.token).collect();
    assert_eq!(chosen[..generation.tokens.len()], generation.tokens);
    // The stop token's step is the last.
    assert_eq!(chosen.len(), generation.tokens.len() + 1);
    for (at, step) in steps.iter().enumerate() {
        assert_eq!(step.position, at);
        assert!(step.allowed >= 1 && step.forced == (step.allowed == 1));
        assert!(step.logprob <= 1e-4 && (0.0..=1.0).contains(&step.removed_mass), "{step:?}");
        assert!(step.top.windows(2).all(|pair| pair[0].logprob >= pair[1].logprob));
        assert!(step.refused.iter().all(|c| {
            let shown = c.shown.as_ref().unwrap();
            shown.reason.as_ref().is_some_and(|why| !why.is_empty())
        }));
        assert!(!step.refused.iter().any(|c| c.token == step.token));
        if step.forced {
            assert!(
                step.logprob.abs() < 1e-4 && step.top.len() == 1 && step.top[0].token == step.token
            );
        }
    }
    let phases: std::collections::HashSet<Phase> = steps.iter().map(|step| step.phase).collect();
    assert!(
        phases.contains(&Phase::Header)
            && phases.contains(&Phase::Arguments)
            && phases.contains(&Phase::Marker)
    );
    assert!(!phases.contains(&Phase::Free));
    assert_eq!(generation.report.forced_tokens, steps.iter().filter(|step| step.forced).count());
    // Recording and prefetching do not change the output.
    for prefetch in [Prefetch::Always, Prefetch::Off] {
        let overlap = Overlap::default()
            .with_prepare((prefetch == Prefetch::Always).then(PrepareBudget::default))
            .with_prefetch(prefetch);
        let again =
            run_request(host, &plan, request("Well?"), seeded(11).with_overlap(overlap)).await;
        assert_eq!(again.tokens, generation.tokens);
        assert!(again.steps.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unenforced_constraints_are_reported() {
    let host = host().await;
    let mut mixed = tools();
    mixed[0]["function"]["strict"] = true.into();
    // The arguments of a required call still match their schema.
    let named = host.louver.tools(mixed.clone()).choice(ToolChoice::Named("book".to_owned()));
    let named = named.reasoning(Reasoning::Off).strictness(Strictness::AsFlagged).build().unwrap();
    let generation =
        run_request(host, &named, request("Well?").set_sampler_max_len(300), seeded(1)).await;
    assert_eq!(generation.report.level, EnforcementLevel::Full);
    check_calls(&generation.turn, &tools());
    let plan = host.louver.tools(mixed).choice(ToolChoice::Auto).reasoning(Reasoning::Off);
    let plan = plan.strictness(Strictness::AsFlagged).build().unwrap();
    let generation =
        run_request(host, &plan, request("Well?").set_sampler_max_len(300), seeded(1)).await;
    assert_eq!(generation.report.level, EnforcementLevel::Partial);
    let [relaxed] = &generation.report.relaxed[..] else { panic!("{:?}", generation.report) };
    assert_eq!(relaxed.pointer, "/tools/1/function/parameters");
    for call in &generation.turn.calls {
        // Unenforced numbers may have any number of digits; serde_json rejects those beyond 64
        // bits.
        let arguments = Json::parse(&call.arguments, &Limits::default()).unwrap();
        assert!(matches!(arguments, Json::Object(_)), "{}", call.arguments);
    }
    let free = host.louver.unconstrained(tools());
    let generation =
        run_request(host, &free, request("Well?").set_sampler_max_len(20), seeded(1)).await;
    assert_eq!(generation.report.level, EnforcementLevel::None);
}

/// Louver draws, and `top_k`, `top_p` and `min_p` apply.
#[tokio::test(flavor = "multi_thread")]
async fn top_k_one_is_greedy() {
    // A separate host, because tokens must not depend on other sequences in a batch.
    let host = &load_host(PrefixCache::Off).await;
    let plan = host.louver.answer(&response_schema()).reasoning(Reasoning::Off).build().unwrap();
    let greedy =
        run_request(host, &plan, request("Well?").set_sampler_temperature(0.0), seeded(1)).await;
    let top = run_request(host, &plan, request("Well?").set_sampler_topk(1), seeded(2)).await;
    let nucleus =
        run_request(host, &plan, request("Well?").set_sampler_topp(1e-9), seeded(3)).await;
    assert_eq!(greedy.tokens, top.tokens);
    assert_eq!(greedy.tokens, nucleus.tokens);
    check_json(&greedy.turn.text, &response_schema());
    // The host's greedy sampling agrees.
    let hosts =
        run_request(host, &plan, request("Well?").set_sampler_temperature(0.0), host_draws()).await;
    assert_eq!(greedy.tokens, hosts.tokens);
}
