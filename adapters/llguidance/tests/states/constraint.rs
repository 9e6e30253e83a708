//! Constraints and parsers: prompts, steps and commits.

use super::*;

#[test]
fn a_constraint_takes_forced_tokens() {
    let caps = InferenceCapabilities { ff_tokens: true, ..Default::default() };
    let factory = ParserFactory::new(&ApproximateTokEnv::single_byte_env(), caps, &[]).unwrap();
    let make = |text: &str| {
        Constraint::new(factory.create_parser(TopLevelGrammar::from_lark(text.into())).unwrap())
    };
    let mut constraint = make("start: \"ab\" /[cd]/ \"ef\"");
    assert_eq!(constraint.process_prompt(tokens("x")), tokens("xab"));
    assert_eq!(
        constraint.compute_mask().unwrap().sample_mask.as_ref().unwrap().to_list(),
        [99, 100]
    );
    let committed = constraint.commit_token(Some(99)).unwrap();
    assert_eq!((committed.stop, committed.ff_tokens), (false, tokens("cef")));
    assert!(constraint.has_pending_stop());
    assert!(constraint.compute_mask().unwrap().is_stop());
    assert!(constraint.commit_token(None).unwrap().stop);
    let after = error(constraint.compute_mask().map(drop));
    assert!(after.starts_with("compute_mask() called after stop"), "{after}");

    let mut constraint = make("start: /[cd]/");
    constraint.log_json_progress = true;
    constraint.compute_mask().unwrap();
    assert!(error(constraint.commit_token(None)).contains("sampled_token is required"));
    constraint.commit_token(Some(100)).unwrap();
    constraint.compute_mask().unwrap();
    let logs = constraint.flush_logs();
    assert!(logs.contains("JSON-OUT: {\"object\":\"final_text\",\"str\":\"d\""), "{logs}");
}

#[test]
fn a_constraint_never_drops_a_token() {
    let factory = factory();
    let make = |text: &str| {
        Constraint::new(factory.create_parser(TopLevelGrammar::from_lark(text.into())).unwrap())
    };
    let mut constraint = make("start: /[a-d]{3}/");
    assert!(error(constraint.commit_token(Some(97))).contains("without compute_mask()"));
    constraint.compute_mask().unwrap();
    assert_eq!(constraint.commit_token(Some(97)).unwrap().ff_tokens, [97]);
    assert!(error(constraint.commit_token(Some(98))).contains("without compute_mask()"));
    // After a validation a token can be taken without a mask.
    assert_eq!(constraint.validate_tokens_raw(&tokens("bx")).unwrap(), 1);
    assert_eq!(constraint.commit_token(Some(98)).unwrap().ff_tokens, [98]);
    assert_eq!(constraint.parser.final_bytes(), b"ab");
    assert!(!constraint.has_pending_stop());
    let mut constraint = make("start: \"\"");
    assert!(constraint.compute_mask().unwrap().is_stop());
    assert!(constraint.has_pending_stop());
}

#[test]
fn a_prompt_needs_no_canonical_tokenizer() {
    let make = |canonical| {
        let factory = ParserFactory::new_simple(&words(&[8], canonical)).unwrap();
        let text = "start: a \"c\"\na[temperature=0.5]: \"ab\"".to_owned();
        Constraint::new(factory.create_parser(TopLevelGrammar::from_lark(text)).unwrap())
    };
    let mut constraint = make(false);
    assert_eq!(constraint.process_prompt(vec![2]), [2]);
    assert_eq!(constraint.temperature, 0.5);
    let mask = constraint.compute_mask().unwrap().sample_mask.as_ref().unwrap();
    assert_eq!(mask.to_list(), [0, 3, 4, 6]);
    assert_eq!(make(true).process_prompt(vec![2]), [2, 4]);
}

#[test]
fn a_parser_is_started_once() {
    let mut parser = factory().create_parser(TopLevelGrammar::from_regex("ab")).unwrap();
    assert_eq!(error(parser.consume_token(97)), "process_prompt() not called in consume_token");
    parser.start_without_prompt();
    parser.consume_token(97).unwrap();
    assert_eq!(parser.final_bytes(), b"a");
    let mut matcher = Matcher::new(Ok(parser));
    assert_eq!(list(matcher.compute_mask()), [98]);
}

#[test]
fn parsers_cross_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Matcher>();
    check::<Constraint>();
    check::<ParserFactory>();
    check::<GrammarInit>();
}
