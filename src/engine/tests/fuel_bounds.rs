//! Fuel and limits bound masks, tokens, compilations and preparations; cancel tokens end them.

use super::super::*;
use crate::front::ebnf::EbnfOptions;
use crate::front::json_schema::SchemaOptions;
use crate::fsm::ByteSet;
use crate::fuel::{CancelToken, OutOfFuel};
use crate::ir::{Expr, GrammarBuilder};
use crate::limits::Limits;
use crate::{LarkOptions, RegexOptions};

/// So ambiguous that each further letter of a text costs more work than the one before.
const AMBIGUOUS: &str = "root ::= \"(\" x+ y\nx ::= [a-z]+ \" \"? | x x\ny ::= x* y? \".\" | x y\n";

fn engine(limits: Limits) -> Engine {
    let words: [&[u8]; 6] = [b"ab", b"abc ", b"the ", b"a b c", b" .", b"xyz"];
    Engine::new(
        Arc::new(Vocabulary::toy(&words)),
        EngineOptions { limits, ..EngineOptions::default() },
    )
}

fn ambiguous(engine: &Engine) -> Constraint {
    engine.compile_ebnf(AMBIGUOUS, &EbnfOptions::default()).unwrap()
}

fn byte(byte: u8) -> TokenId {
    TokenId::from_raw(u32::from(byte))
}

fn row(matcher: &mut Matcher) -> Vec<u32> {
    let mut row = vec![0; matcher.vocab().mask_words()];
    matcher.fill_mask(&mut row);
    row
}

#[test]
fn a_mask_past_its_fuel_ends_its_sequence_and_no_other() {
    let engine = engine(Limits { mask_fuel: 1_000, ..Limits::default() });
    let constraint = ambiguous(&engine);
    let mut matcher = constraint.matcher();
    let mut taken = 0;
    while matcher.limit().is_none() && taken < 200 {
        row(&mut matcher);
        if matcher.limit().is_none()
            && matcher.advance(byte(b"(abcdefg"[taken % 8].max(b'('))).is_err()
        {
            break;
        }
        taken += 1;
    }
    // The limit is reported for a mask as for a token, and the sequence can still be ended.
    let mut stops = vec![0; engine.vocab().mask_words()];
    write_stop_tokens(engine.vocab(), &mut stops);
    assert!(taken < 200, "the work of some mask is more than its fuel");
    assert_eq!(engine.stats().limits_reached, 1);
    if matcher.limit().is_some() {
        assert_eq!(matcher.limit(), Some("fuel for one mask or token"));
        assert_eq!(row(&mut matcher), stops);
        assert!(matches!(matcher.advance(byte(b'a')), Err(AdvanceError::Limit { .. })));
        assert_eq!(matcher.advance(engine.vocab().stops()[0]), Ok(()));
        assert!(matcher.is_terminated());
    }
    let mut other = constraint.matcher();
    assert_ne!(row(&mut other), stops, "another sequence of the constraint is not affected");
    assert!(other.advance(byte(b'(')).is_ok());
}

#[test]
fn sequences_past_their_fuel_end_and_no_other() {
    let limited = engine(Limits { sequence_fuel: 60_000, ..Limits::default() });
    let constraint = ambiguous(&limited);
    let text = b"(abcdefgabcdefgabcdefg";
    let walk = |matcher: &mut Matcher, first: usize| -> usize {
        let steps = text[first..].iter().take_while(|&&letter| {
            row(matcher);
            matcher.limit().is_none() && matcher.advance(byte(letter)).is_ok()
        });
        steps.count()
    };
    let mut matcher = constraint.matcher();
    let (taken, spent) = fuel::measure(|| walk(&mut matcher, 0));
    assert!((1..text.len()).contains(&taken) && spent >= 60_000, "{taken} tokens, {spent} units");
    assert_eq!(matcher.limit(), Some("fuel for the masks and tokens of one sequence"));
    let mut stops = vec![0; limited.vocab().mask_words()];
    write_stop_tokens(limited.vocab(), &mut stops);
    assert_eq!(row(&mut matcher), stops);
    // A fork has spent as much. What is cached costs nothing, also for another sequence.
    let mut fork = matcher.clone();
    fork.rollback(1);
    assert_eq!(walk(&mut fork, taken - 1), 1);
    assert!(walk(&mut constraint.matcher(), 0) >= taken);
}

#[test]
fn prefetches_end_with_the_fuel_of_a_sequence() {
    let limited = engine(Limits { sequence_fuel: 60_000, ..Limits::default() });
    let constraint = ambiguous(&limited);
    let mut matcher = constraint.matcher();
    let mut taken = 0;
    for &letter in b"(abcdefgabcdefgabcdefg" {
        if !matcher.prefetch(&[byte(letter)]) {
            break;
        }
        limited.runtime.background.settle();
        matcher.advance(byte(letter)).unwrap();
        taken += 1;
    }
    assert!((1..22).contains(&taken), "{taken} prefetches");
    assert!(matcher.limit().is_none() && matcher.fuel.left(&limited.options.limits) > 0);
}

#[test]
fn longer_sequences_have_more_fuel() {
    let limited = engine(Limits { sequence_fuel: 50_000, ..Limits::default() });
    let text = "root ::= ([a-z]+ \".\")+\n";
    let mut matcher = limited.compile_ebnf(text, &EbnfOptions::default()).unwrap().matcher();
    let before = matcher.fuel.left(&limited.options.limits);
    for _ in 0..256 {
        matcher.advance(byte(b'a')).unwrap();
    }
    let after = matcher.fuel.left(&limited.options.limits);
    assert!(before == 50_000 && after > 50_000, "{before} and {after} units");
    // Tokens that are taken again give no fuel.
    for _ in 0..300 {
        matcher.rollback(1);
        matcher.advance(byte(b'a')).unwrap();
    }
    assert_eq!(matcher.fuel.left(&limited.options.limits), after);
    matcher.rollback(256);
    assert_eq!(matcher.fuel.left(&limited.options.limits), 50_000, "as a new matcher");
}

#[test]
fn transitions_found_before_a_limit_are_cached() {
    let text = "root ::= root root | root root root | \"a\" | \"b\" | \"abc \" | \"\"\n";
    let matcher = |mask_fuel| {
        let engine = engine(Limits { mask_fuel, ..Limits::default() });
        engine.compile_ebnf(text, &EbnfOptions::default()).unwrap().matcher()
    };
    // Nearly the fuel of the costliest mask: each attempt caches some transitions.
    let (mut ample, mut dearest) = (matcher(u64::MAX), 0);
    for token in b"abababab" {
        dearest = dearest.max(fuel::measure(|| row(&mut ample)).1);
        ample.advance(byte(*token)).unwrap();
    }
    let (mut little, mut ample) = (matcher(dearest - dearest / 10), matcher(u64::MAX));
    let mut limited = 0;
    for token in b"abababab" {
        let want = row(&mut ample);
        while row(&mut little) != want {
            assert!(little.limit().is_some(), "a mask that is made is right");
            limited += 1;
            assert!(limited < 100, "each try gets further");
            little.rollback(0);
        }
        ample.advance(byte(*token)).unwrap();
        while little.advance(byte(*token)).is_err() {}
    }
    assert!(limited > 0, "some masks took more than one try");
}

#[test]
fn a_first_mask_past_its_fuel_is_refused_and_names_its_rule() {
    let text = "root ::= x \".\"\nx ::= [a-z]+ | \"(\" x* \")\" | \"[\" x x \"]\"\n";
    let engine = engine(Limits { mask_fuel: 30, ..Limits::default() });
    let constraint = engine.compile_ebnf(text, &EbnfOptions::default()).unwrap();
    let Err(CompileError::Fuel { rule, cause }) = constraint.make_first_mask() else {
        panic!("not refused")
    };
    assert_eq!((&*rule, cause), ("x", OutOfFuel::Spent { limit: 30 }));
    let ample = Engine::new(engine.vocab().clone(), EngineOptions::default());
    assert_eq!(
        ample.compile_ebnf(text, &EbnfOptions::default()).unwrap().make_first_mask(),
        Ok(())
    );
}

#[test]
fn compilation_past_its_fuel_is_refused_with_a_json_pointer() {
    let branches: Vec<String> =
        (0..40).map(|i| format!(r#"{{"properties": {{"a{i}": {{"maxLength": {i}}}}}}}"#)).collect();
    let schema = format!(r#"{{"properties": {{"deep": {{"oneOf": [{}]}}}}}}"#, branches.join(","));
    let compile = |compile_fuel| {
        let engine = engine(Limits { compile_fuel, ..Limits::default() });
        engine.compile_json_schema(&schema, &SchemaOptions::default()).map(|_| ())
    };
    // Cached automata of the process cost nothing: they are made first.
    compile(Limits::default().compile_fuel).unwrap();
    let Err(SchemaCompileError::Schema(errors)) = compile(20_000) else { panic!("not refused") };
    let place =
        errors.iter().find(|error| error.reason.to_string().contains("20000 units of work"));
    assert!(place.is_some_and(|error| error.pointer.starts_with("/properties/deep")), "{errors}");
    // With any budget the error is typed, and a successful compilation is complete.
    for fuel in (0..14).map(|n| 1 << n) {
        assert!(compile(fuel).is_err(), "with {fuel}");
    }
    for (kind, text) in
        [("lark", "start: X\nX: /(a|b)*c{1,200}/ & /[a-c]+/\n"), ("regex", "(?:a|b|[^x]{3}){40}")]
    {
        for fuel in (0..30).map(|n| 1 << n) {
            let engine = engine(Limits { compile_fuel: fuel, ..Limits::default() });
            let made = match kind {
                "lark" => engine
                    .compile_lark(text, &Default::default())
                    .map_err(|error| error.to_string()),
                _ => engine
                    .compile_regex(text, &Default::default())
                    .map_err(|error| error.to_string()),
            };
            match made {
                Ok(constraint) => assert!(constraint.matcher().allows(byte(b'a')), "{kind}"),
                Err(error) => assert!(
                    error.contains("fuel") || error.contains("states"),
                    "{kind}, {fuel}: {error}"
                ),
            }
        }
    }
}

#[test]
fn preparations_end_with_their_fuel_or_their_cancel_token() {
    let text = "root ::= root root | root root root | \"a\" | \"b\" | \"c\" | \"\"\n";
    let prepared = |prepare_fuel, token: &CancelToken| {
        let engine = engine(Limits { prepare_fuel, ..Limits::default() });
        let constraint = engine.compile_ebnf(text, &EbnfOptions::default()).unwrap();
        let report = token.run(|| constraint.prepare(PrepareBudget::default())).wait();
        (report.candidates, engine.stats().preparations_exhausted)
    };
    let token = CancelToken::default();
    let ((little, _), (more, exhausted)) = (prepared(20_000, &token), prepared(2_000_000, &token));
    assert!(little > 0 && little < more, "{little} {more}");
    assert_eq!((exhausted, prepared(u64::MAX, &token).1), (1, 0));
    token.cancel();
    assert_eq!(prepared(2_000_000, &token), (0, 0), "nobody waits for it");
}

#[test]
fn running_sequences_are_served_before_preparations() {
    use background::Priority::{Prefetch, Preparation};
    let background = background::Background::new(1);
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    // The likelihoods of a job's further slices. Each slice logs the job's name.
    let job = |name: &'static str, likelihoods: &'static [f64]| {
        let (order, mut rest) = (order.clone(), likelihoods.iter());
        Box::new(move |_: &background::SliceSignal| {
            order.lock().push(name);
            rest.next().copied()
        })
    };
    let (begin, wait) = std::sync::mpsc::channel::<()>();
    let block = move |_: &background::SliceSignal| {
        wait.recv().unwrap();
        None
    };
    background.submit(Preparation, Box::new(block));
    background.submit(Preparation, job("older preparation", &[0.9, 0.2]));
    background.submit(Preparation, job("newer preparation", &[0.5, 0.4]));
    background.submit(Prefetch, job("older prefetch", &[]));
    background.submit(Prefetch, job("newer prefetch", &[]));
    begin.send(()).unwrap();
    background.settle();
    let want = [
        "newer prefetch",
        "older prefetch",
        // Both begin with the likelihood 1.
        "newer preparation",
        "older preparation",
        "older preparation",
        "newer preparation",
        "newer preparation",
        "older preparation",
    ];
    assert_eq!(*order.lock(), want);
}

#[test]
fn a_cancelled_request_leaves_the_constraint_to_others() {
    let runs: Vec<String> = ('a'..='z').map(|letter| format!("\"{letter}\"{{0,5000}}")).collect();
    let grammar = format!("root ::= ({}) \".\"\n", runs.join(" | "));
    let token = CancelToken::default();
    token.cancel();
    let mut is_emptied = false;
    // Which request meets full caches depends on the memory of a configuration.
    for parser_bytes in (16_000..24_000).step_by(1_000) {
        let engine = engine(Limits { parser_bytes, ..Limits::default() });
        let constraint = engine.compile_ebnf(&grammar, &EbnfOptions::default()).unwrap();
        for letter in b'a'..=b'z' {
            let mut matcher = constraint.matcher();
            (0..50).for_each(|_| matcher.advance(byte(letter)).unwrap());
            let epoch = constraint.masks.lock().epoch;
            // The caches are emptied while a request is cancelled.
            let mut cancelled = constraint.matcher();
            let _ = token.run(|| cancelled.advance(byte(letter)));
            is_emptied |= constraint.masks.lock().epoch > epoch;
            assert!(constraint.matcher().allows(byte(letter)));
        }
    }
    assert!(is_emptied, "no cancelled request met full caches");
}

#[test]
fn masks_cancelled_midway_leave_nothing_half_made() {
    let text = "root ::= root root | root root root | \"a\" | \"b\" | \"abc \" | \"\"\n";
    let engine = engine(Limits::default());
    let compile = || engine.compile_ebnf(text, &EbnfOptions::default()).unwrap();
    let at_text = |constraint: &Constraint| {
        let mut matcher = constraint.matcher();
        b"abababab".iter().for_each(|&letter| matcher.advance(byte(letter)).unwrap());
        matcher
    };
    let (want, whole) = fuel::measure(|| row(&mut at_text(&compile())));
    let mut cancelled = 0;
    for check in 0..whole {
        let (constraint, token) = (compile(), CancelToken::default());
        let mut matcher = at_text(&constraint);
        let (canceller, mut left) = (token.clone(), check);
        let cancel_in_time = move || match left {
            0 => canceller.cancel(),
            _ => left -= 1,
        };
        token.run(|| fuel::observe_checks(cancel_in_time, || row(&mut matcher)));
        assert_eq!(matcher.limit().is_some(), token.is_cancelled());
        assert_eq!(row(&mut at_text(&constraint)), want, "cancelled at check {check}");
        if !token.is_cancelled() {
            break;
        }
        cancelled += 1;
    }
    assert!(cancelled > 2, "{cancelled}");
    assert_eq!(engine.stats().limits_reached, 0, "a cancellation is no limit");
}

#[test]
fn keys_of_deeply_nested_objects_are_counted() {
    let engine = engine(Limits::default());
    let constraint = engine.compile_json_schema("{}", &SchemaOptions::default()).unwrap();
    let mut matcher = constraint.matcher();
    let mut open = |times: usize| {
        let text = "{\"a\":".repeat(times);
        let work = || text.bytes().for_each(|b| matcher.advance(byte(b)).unwrap());
        crate::fuel::measure(work).1
    };
    let shallow = open(10);
    open(1_000);
    let before = constraint.bytes().unwrap();
    let deep = open(10);
    assert!(deep > shallow + 10 * 1_000, "{shallow} {deep}");
    // A list with an entry of 8 bytes for each open object, for each key.
    assert!(constraint.bytes().unwrap() > before + 10 * 1_000 * 8);
}

/// The error of a cancelled compilation is no fault of its input.
#[test]
fn cancelled_compilations_say_so() {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let token = CancelToken::default();
    token.cancel();
    let is_cancelled = |error: CompileError| {
        matches!(error, CompileError::Fuel { cause: OutOfFuel::Cancelled, .. })
    };
    token.run(|| {
        let schema = r#"{"type": "array", "items": {"enum": [1, "a"]}}"#;
        match engine.compile_json_schema(schema, &SchemaOptions::default()) {
            Err(SchemaCompileError::Compile(error)) => assert!(is_cancelled(error)),
            other => panic!("{other:?}"),
        }
        let ebnf = engine.compile_ebnf("root ::= [a-z]+ root?", &EbnfOptions::default());
        let lark = engine.compile_lark("start: /[a-z]+/ start?", &LarkOptions::default());
        for compiled in [ebnf, lark] {
            match compiled {
                Err(TextCompileError::Compile(error)) => assert!(is_cancelled(error)),
                other => panic!("{other:?}"),
            }
        }
        match engine.compile_regex("[a-z]+", &RegexOptions::default()) {
            Err(RegexCompileError::Compile(error)) => assert!(is_cancelled(error)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn an_unbounded_sequence_ends_in_a_typed_limit() {
    let class = Expr::class(ByteSet::range(b'a', b'z'));
    let mut b = GrammarBuilder::new();
    let start =
        b.rule("start", Expr::seq([Expr::repeat(class, 0, Some(500_000)), Expr::text(".")]));
    let grammar = b.finish(start).unwrap();
    let limits = Limits { parser_bytes: 40_000, ..Limits::default() };
    let engine = Engine::new(
        Arc::new(Vocabulary::toy(&[])),
        EngineOptions { limits, ..EngineOptions::default() },
    );
    let constraint = engine.compile(&grammar).unwrap();
    let mut matcher = constraint.matcher();
    let end = (0..5_000).find_map(|_| matcher.advance(TokenId::from_raw(u32::from(b'a'))).err());
    assert!(matches!(end, Some(AdvanceError::Limit { .. })), "{end:?}");
    let mut mask = vec![0; engine.vocab().mask_words()];
    matcher.fill_mask(&mut mask);
    assert!(mask.iter().any(|w| *w != 0), "a mask is never empty");
}
