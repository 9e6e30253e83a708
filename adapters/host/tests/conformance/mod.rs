//! What a hook must do in any host: driven through rows and contexts, so that the shim of a host
//! can run the same checks on the hook as that host calls it. A shim gives [`check_all`] a function
//! that turns a hook into a call through its own types.

pub(crate) mod rig;

use std::sync::Arc;

use louver_host::{
    DrawnBy, EnforcementError, EventStream, ExtendError, Finish, GenerationError, LogitsHook,
    PreparedGeneration, TurnPlan,
};
use rig::{
    AMPLE, Call, LOUVER, PROMPT, STOP, STOPPED, WIDTH, finish, generate, largest, model_row, plan,
    prepare, vocabulary,
};
use tokio::runtime::Runtime;

/// Makes such a function for a hook.
pub(crate) type Wrap<'a> = &'a dyn Fn(Arc<LogitsHook>) -> Call;

/// A call of a hook, with the events, which cancel the generation when they are dropped.
fn start(wrap: Wrap<'_>, plan: &TurnPlan, drawn_by: DrawnBy) -> (Call, EventStream) {
    let PreparedGeneration { hook, events, .. } = prepare(plan, drawn_by, AMPLE);
    (wrap(hook), events)
}

/// The tokens of a turn that Louver draws or the host chooses.
fn turn_tokens(wrap: Wrap<'_>, plan: &TurnPlan, drawn_by: DrawnBy) -> Vec<u32> {
    let (call, _events) = start(wrap, plan, drawn_by);
    generate(&call, AMPLE)
}

fn finite_ids(row: &[f32]) -> Vec<u32> {
    assert!(row.iter().all(|x| !x.is_nan() && *x != f32::INFINITY), "irregular logits are left");
    (0..row.len() as u32).filter(|id| row[*id as usize].is_finite()).collect()
}

/// The tokens that a hook allows.
fn allowed(call: &Call, prompt: &[u32], generated: &[u32]) -> Vec<u32> {
    let mut row = vec![0.0; WIDTH];
    call(&mut row, &[prompt, generated].concat());
    finite_ids(&row)
}

/// Runs all checks.
pub(crate) fn check_all(wrap: Wrap<'_>) {
    calls_are_repeatable(wrap);
    repeated_calls_count_once(wrap);
    the_state_depends_on_the_context_only(wrap);
    suffix_contexts_change_nothing(wrap);
    contexts_past_the_limit_are_no_fault(wrap);
    irregular_rows_become_usable(wrap);
    infinite_logits_win(wrap);
    the_last_token_is_a_stop_token(wrap);
    cancelled_generations_end(wrap);
    faults_end_their_generation(wrap);
    bypassed_hooks_are_faults(wrap);
    dropped_extensions_change_nothing(wrap);
}

/// A generation follows its seed, and is the same whether rows are drawn from or masked, if the
/// host takes the largest logit.
fn calls_are_repeatable(wrap: Wrap<'_>) {
    let plan = plan();
    let run = |drawn_by: DrawnBy| {
        let PreparedGeneration { hook, events, task, .. } = prepare(&plan, drawn_by, AMPLE);
        let tokens = generate(&wrap(hook), AMPLE);
        let generation = finish((events, task), STOPPED).unwrap();
        assert_eq!(generation.report.drawn_by, drawn_by);
        assert_eq!((&generation.tokens, generation.finish), (&tokens, Finish::Stop));
        assert_eq!(plan.read(&tokens).calls[0].arguments, generation.turn.calls[0].arguments);
        let arguments = &generation.turn.calls[0].arguments;
        let value: serde_json::Value = serde_json::from_str(arguments).unwrap();
        assert!(["Oslo", "Lima"].contains(&value["city"].as_str().unwrap()), "{arguments}");
        tokens
    };
    assert_eq!(run(LOUVER), run(LOUVER));
    run(DrawnBy::Host);
    let others: Vec<Vec<u32>> = (0..8).map(|seed| run(DrawnBy::Louver { seed })).collect();
    assert!(others.iter().any(|other| *other != others[0]), "the seed has no influence");
}

/// A step whose row a host asks for twice is one step of the report.
fn repeated_calls_count_once(wrap: Wrap<'_>) {
    let plan = plan();
    for drawn_by in [LOUVER, DrawnBy::Host] {
        let report = |calls: usize| {
            let PreparedGeneration { hook, events, task, .. } = prepare(&plan, drawn_by, AMPLE);
            let call = wrap(hook);
            let repeated = move |row: &mut Vec<f32>, context: &[u32]| {
                (1..calls).for_each(|_| call(&mut row.clone(), context));
                call(row, context);
            };
            let repeated: Call = Box::new(repeated);
            generate(&repeated, AMPLE);
            finish((events, task), STOPPED).unwrap().report
        };
        assert_eq!(report(1), report(2));
    }
}

/// Calls may repeat, go back, and belong to other sequences.
fn the_state_depends_on_the_context_only(wrap: Wrap<'_>) {
    let plan = plan();
    let whole = turn_tokens(wrap, &plan, LOUVER);
    let other = turn_tokens(wrap, &plan, DrawnBy::Host);
    for learned in [false, true] {
        let call = || match learned {
            true => (wrap(Arc::new(plan.hook())), None),
            false => {
                let (call, events) = start(wrap, &plan, DrawnBy::Host);
                (call, Some(events))
            }
        };
        let (straight, _events) = call();
        let masks: Vec<Vec<u32>> =
            (0..=whole.len()).map(|n| allowed(&straight, &PROMPT, &whole[..n])).collect();
        assert!(whole.iter().zip(&masks).all(|(token, mask)| mask.contains(token)));
        assert_eq!(masks[whole.len()], [STOP]);
        let (jumping, _events) = call();
        allowed(&jumping, &PROMPT, &[]);
        allowed(&jumping, &PROMPT, &whole[..1]);
        for n in [5, 5, 2, whole.len(), 0, 1, 9, 9] {
            assert_eq!(allowed(&jumping, &PROMPT, &whole[..n]), masks[n], "{n}");
            allowed(&jumping, &PROMPT, &other[..n.min(other.len())]);
        }
    }
}

/// A host may ask for a row after more tokens than the generation has room for.
fn contexts_past_the_limit_are_no_fault(wrap: Wrap<'_>) {
    let plan = plan();
    let whole = turn_tokens(wrap, &plan, DrawnBy::Host);
    assert!(whole.len() > 3);
    let PreparedGeneration { hook, events, task, .. } = prepare(&plan, DrawnBy::Host, 3);
    let call = wrap(hook);
    allowed(&call, &PROMPT, &[]);
    assert_eq!(allowed(&call, &PROMPT, &whole), [STOP]);
    let finished = finish((events, task), STOPPED);
    assert!(!matches!(finished, Err(GenerationError::Enforcement(_))), "{finished:?}");
}

/// After a hit in a prefix cache the first context is only the end of the prompt.
fn suffix_contexts_change_nothing(wrap: Wrap<'_>) {
    let plan = plan();
    let expected = turn_tokens(wrap, &plan, LOUVER);
    for from in 1..PROMPT.len() {
        let (call, _events) = start(wrap, &plan, LOUVER);
        let mut row = model_row(0);
        call(&mut row, &PROMPT[from..]);
        assert_eq!(largest(&row), expected[0]);
        assert_eq!(generate(&call, AMPLE), expected);
        let learning = wrap(Arc::new(plan.hook()));
        let first = allowed(&learning, &PROMPT[from..], &[]);
        assert_eq!(first, allowed(&wrap(Arc::new(plan.hook())), &PROMPT, &[]));
        assert!(allowed(&learning, &PROMPT, &expected[..1]).contains(&expected[1]));
    }
}

/// Rows of any width with NaN and infinities become usable, and the turn is still valid.
fn irregular_rows_become_usable(wrap: Wrap<'_>) {
    let plan = plan();
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        for width in [1, 2, 100, 260, 261, WIDTH, 5000] {
            let mut row = vec![value; width];
            wrap(Arc::new(plan.hook()))(&mut row, &PROMPT);
            assert!(!finite_ids(&row).is_empty(), "{width} {value}");
            // Without a constraint a row is repaired, too.
            for drawn_by in [LOUVER, DrawnBy::Host] {
                let free = TurnPlan::unconstrained(Arc::new(vocabulary()));
                let (call, _events) = start(wrap, &free, drawn_by);
                let mut row = vec![value; width];
                call(&mut row, &PROMPT);
                assert!(!finite_ids(&row).is_empty(), "{width} {value}");
            }
        }
        for drawn_by in [LOUVER, DrawnBy::Host] {
            let PreparedGeneration { hook, events, task, .. } = prepare(&plan, drawn_by, AMPLE);
            let call = wrap(hook);
            let mut context = PROMPT.to_vec();
            loop {
                let mut row = vec![value; WIDTH];
                call(&mut row, &context);
                // A row that Louver drew from may keep values that lose to the drawn one.
                match largest(&row) {
                    STOP => break,
                    token => context.push(token),
                }
            }
            let generation = finish((events, task), STOPPED).unwrap();
            assert_eq!((generation.turn.calls.len(), generation.finish), (1, Finish::Stop));
            let repaired = if value == f32::MAX { 0 } else { generation.tokens.len() + 1 };
            assert_eq!(generation.repaired_rows, repaired, "{value}");
        }
    }
}

/// An infinite logit wins, also over those before it.
fn infinite_logits_win(wrap: Wrap<'_>) {
    let plan = plan();
    for drawn_by in [LOUVER, DrawnBy::Host] {
        let (call, _events) = start(wrap, &plan, drawn_by);
        let first = allowed(&wrap(Arc::new(plan.hook())), &PROMPT, &[]);
        for token in first {
            let mut row = model_row(0);
            row[token as usize] = f32::INFINITY;
            call(&mut row, &PROMPT);
            assert_eq!(largest(&row), token);
        }
    }
}

/// The host never shows the last token, so it is a stop token: also at the limit.
fn the_last_token_is_a_stop_token(wrap: Wrap<'_>) {
    let plan = plan();
    for limit in 1..40 {
        for drawn_by in [LOUVER, DrawnBy::Host] {
            let PreparedGeneration { hook, events, task, .. } = prepare(&plan, drawn_by, limit);
            let call = wrap(hook);
            let tokens = generate(&call, limit);
            assert!(tokens.len() <= limit, "{limit}");
            if tokens.len() == limit {
                assert_eq!(allowed(&call, &PROMPT, &tokens), [STOP]);
            }
            let generation = finish((events, task), STOPPED).unwrap();
            assert_eq!(generation.tokens, tokens);
            if generation.is_truncated() {
                assert_eq!((tokens.len(), generation.finish), (limit, Finish::Length));
                assert!(generation.turn.calls.is_empty(), "a call that was cut off");
            } else {
                assert_eq!(generation.turn.calls.len(), 1);
            }
        }
    }
}

fn cancelled_generations_end(wrap: Wrap<'_>) {
    let plan = plan();
    let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
    let (call, tokens) = (wrap(hook), turn_tokens(wrap, &plan, LOUVER));
    assert_ne!(allowed(&call, &PROMPT, &tokens[..3]), [STOP]);
    events.cancel();
    assert_eq!(allowed(&call, &PROMPT, &tokens[..4]), [STOP]);
    let generation = finish((events, task), STOPPED).unwrap();
    assert_eq!((generation.tokens.len(), generation.finish), (4, Finish::Cancelled));
    assert!(generation.turn.calls.is_empty());
    // Dropping the events cancels, too, and a cancelled generation may end before its first row.
    let PreparedGeneration { hook, events, task: _task, .. } = prepare(&plan, LOUVER, AMPLE);
    drop(events);
    assert_eq!(allowed(&wrap(hook), &PROMPT, &[]), [STOP]);
    let PreparedGeneration { events, task, .. } = prepare(&plan, LOUVER, AMPLE);
    events.cancel();
    let generation = finish((events, task), Some(Ok(Finish::Cancelled))).unwrap();
    assert_eq!(generation.finish, Finish::Cancelled);
}

fn faults_end_their_generation(wrap: Wrap<'_>) {
    let plan = plan();
    // A token that was not allowed, within the vocabulary, beyond it and beyond the row.
    for foreign in [STOP - 1, WIDTH as u32 - 1, u32::MAX] {
        let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
        let call = wrap(hook);
        allowed(&call, &PROMPT, &[]);
        for generated in [&[foreign][..], &[foreign, 5], &[]] {
            assert_eq!(allowed(&call, &PROMPT, generated), [STOP], "{foreign}");
        }
        let error = finish((events, task), STOPPED).unwrap_err();
        let GenerationError::Enforcement(EnforcementError::Rejected { token, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!(token, foreign);
    }
    // A row without any allowed token, and one that a shim cannot read.
    let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
    wrap(hook)(&mut vec![0.0; 2], &PROMPT);
    let nothing = GenerationError::Enforcement(EnforcementError::NothingAllowed { width: 2 });
    assert_eq!(finish((events, task), STOPPED).unwrap_err(), nothing);
    let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
    let mut row = vec![0.0; WIDTH];
    hook.refuse(&mut row, "on the moon".to_owned());
    assert_eq!(finite_ids(&row), [STOP]);
    assert_eq!(allowed(&wrap(hook), &PROMPT, &[]), [STOP]);
    let unreadable =
        GenerationError::Enforcement(EnforcementError::Logits("on the moon".to_owned()));
    assert_eq!(finish((events, task), STOPPED).unwrap_err(), unreadable);
    // Faults of the host.
    let failed = Some(Err("out of memory".to_owned()));
    for (end, expected) in [
        (failed, GenerationError::Host("out of memory".to_owned())),
        (None, GenerationError::HostGone),
    ] {
        let PreparedGeneration { hook, events, task, .. } = prepare(&plan, LOUVER, AMPLE);
        allowed(&wrap(hook), &PROMPT, &[]);
        assert_eq!(finish((events, task), end).unwrap_err(), expected);
    }
}

/// A host that generates without calling the hook gets no success.
fn bypassed_hooks_are_faults(wrap: Wrap<'_>) {
    let plan = plan();
    let free = TurnPlan::unconstrained(Arc::new(vocabulary()));
    for plan in [&plan, &free] {
        for end in [Finish::Stop, Finish::Length] {
            let PreparedGeneration { events, task, .. } = prepare(plan, LOUVER, AMPLE);
            let result = finish((events, task), Some(Ok(end)));
            assert!(
                matches!(result, Err(GenerationError::Enforcement(EnforcementError::Bypassed(_)))),
                "never called, and yet {result:?}"
            );
        }
    }
    // Called at first, and then no more.
    let tokens = turn_tokens(wrap, &plan, LOUVER);
    for drawn_by in [LOUVER, DrawnBy::Host] {
        for seen in 0..tokens.len() {
            let PreparedGeneration { hook, events, task, .. } = prepare(&plan, drawn_by, AMPLE);
            let call = wrap(hook);
            (0..=seen).for_each(|n| drop(allowed(&call, &PROMPT, &tokens[..n])));
            let result = finish((events, task), STOPPED);
            assert!(
                matches!(result, Err(GenerationError::Enforcement(EnforcementError::Bypassed(_)))),
                "seen {seen} of {}, and yet {result:?}",
                tokens.len()
            );
        }
    }
}

/// A request for another plan whose future is dropped has no effect, also if the host's next step
/// comes later; and nobody waits for a reading that is gone.
fn dropped_extensions_change_nothing(wrap: Wrap<'_>) {
    let plan = plan();
    let drop_at_first_poll = |events: &mut EventStream| {
        Runtime::new().unwrap().block_on(async {
            tokio::select! {
                biased;
                result = events.extend(&plan) => panic!("no step has passed: {result:?}"),
                () = std::future::ready(()) => {}
            }
        });
    };
    let PreparedGeneration { hook, mut events, task, .. } = prepare(&plan, LOUVER, AMPLE);
    let call = wrap(hook);
    drop_at_first_poll(&mut events);
    generate(&call, AMPLE);
    assert_eq!(finish((events, task), STOPPED).unwrap().turn.calls.len(), 1);
    let PreparedGeneration { mut events, task, .. } = prepare(&plan, LOUVER, AMPLE);
    drop(task);
    let result = Runtime::new().unwrap().block_on(events.extend(&plan));
    assert_eq!(result, Err(ExtendError::Over));
}
