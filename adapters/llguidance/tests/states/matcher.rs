//! States of a matcher: running, stopped, failed, cancelled.

use super::*;

#[test]
fn a_text_without_continuation_stops_without_an_end_token() {
    let mut matcher = lark("start: \"ab\"");
    assert_eq!(matcher.validate_tokens(&[97, 98, EOS]).unwrap(), 3);
    assert_eq!(matcher.validate_tokens(&[EOS]).unwrap(), 0);
    matcher.consume_tokens(&tokens("ab")).unwrap();
    assert_eq!(matcher.stop_reason(), StopReason::NoExtension);
    assert!(matcher.is_accepting().unwrap());
    assert_eq!(matcher.validate_tokens(&[EOS]).unwrap(), 0);
    assert_eq!(matcher.try_consume_tokens(&[EOS]).unwrap(), 0);
    assert_eq!(list(matcher.compute_mask_or_eos()), [EOS]);
    assert!(matcher.compute_ff_bytes().is_empty() && matcher.compute_ff_tokens().is_empty());
    let mut fork = matcher.clone();
    assert_eq!(
        error(fork.consume_token(EOS)).lines().next(),
        Some("parser stopped in consume_token; no error message")
    );
    matcher.rollback(1).unwrap();
    assert!(!matcher.is_stopped());
    assert_eq!(list(matcher.compute_mask()), [98]);
}

#[test]
fn a_mask_of_a_stopped_matcher_is_an_error_for_good() {
    let mut matcher = lark("start: \"a\"");
    matcher.consume_token(97).unwrap();
    let first = error(matcher.compute_mask());
    assert!(first.starts_with("parser stopped in compute_mask; no error message"), "{first}");
    assert!(matcher.is_stopped() && matcher.is_error());
    assert_eq!(matcher.stop_reason(), StopReason::InternalError);
    assert_eq!(error(matcher.compute_mask_or_eos()), first);
    assert_eq!(error(matcher.reset()), first);
    assert_eq!(error(matcher.rollback(0)), first);
    assert_eq!(error(matcher.validate_tokens(&[97])), first);
    assert_eq!(matcher.get_error(), Some(first));
}

#[test]
fn an_end_token_ends_the_text_where_it_may_end() {
    let mut matcher = lark("start: /[a-z]+/");
    assert_eq!(matcher.try_consume_tokens(&[EOS]).unwrap(), 0);
    matcher.consume_token(97).unwrap();
    assert_eq!(matcher.compute_mask().unwrap().num_set(), 27);
    assert_eq!(matcher.validate_tokens(&[97, EOS, 97]).unwrap(), 2);
    matcher.consume_token(EOS).unwrap();
    assert_eq!(matcher.stop_reason(), StopReason::EndOfSentence);
    assert!(matcher.is_accepting().unwrap());
    assert_eq!(matcher.try_consume_tokens(&[EOS]).unwrap(), 0);
    assert_eq!(list(matcher.compute_mask_or_eos()), [EOS]);
    matcher.rollback(1).unwrap();
    assert_eq!(matcher.stop_reason(), StopReason::NotStopped);
    matcher.consume_token(122).unwrap();
    assert!(lark("start: /[a-z]+/").consume_token(EOS).is_err());
}

#[test]
fn an_empty_text_is_not_stopped_at_first() {
    let mut matcher = lark("start: \"\"");
    assert!(!matcher.is_stopped());
    assert_eq!(list(matcher.compute_mask()), [EOS]);
}

#[test]
fn a_wrong_token_ends_the_matcher_and_a_tried_one_does_not() {
    let mut matcher = lark("start: /[a-z]+/");
    assert_eq!(matcher.try_consume_tokens(&tokens("a1")).unwrap(), 1);
    assert!(!matcher.is_stopped());
    let message = error(matcher.clone().consume_tokens(&tokens("a1")));
    let expected = "Parser Error: token \"1\" doesn't satisfy the grammar; its byte 0 (1) is not \
                    allowed; expected [a-z], or the end of the text\n<non-verbose/>";
    assert_eq!(message, expected);
    let mut forced = lark("start: \"a\"");
    let first = error(forced.consume_token(98));
    assert!(first.contains("its byte 0 (b) is not allowed; expected [a]"), "{first}");
    assert_eq!(error(forced.consume_token(97)), first);
    // A host may have sampled an id beyond the tokenizer's, and ask before it takes it.
    assert_eq!(matcher.validate_tokens(&[97, 300]).unwrap(), 1);
    assert!(!matcher.compute_mask().unwrap().is_allowed(300));
    assert!(!lark("start: \"a\"").compute_mask().unwrap().is_allowed(300));
    assert!(error(matcher.consume_token(9_999)).starts_with("token id 9999 out of range"));
}

#[test]
fn errors_have_the_state_if_asked_for() {
    let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    let mut matcher =
        Matcher::new(factory.create_parser(TopLevelGrammar::from_lark("start: \"a\"".into())));
    let message = error(matcher.consume_token(98));
    assert!(message.contains("<state>") && message.contains("Tokens:"), "{message}");
}

#[test]
fn rollback_takes_back_what_was_taken() {
    let mut matcher = lark("start: /[a-z]+/ \"!\"");
    let masks = |matcher: &mut Matcher| list(matcher.compute_mask());
    let first = masks(&mut matcher);
    matcher.consume_tokens(&tokens("abc!")).unwrap();
    assert!(matcher.is_stopped());
    matcher.rollback(2).unwrap();
    assert!(matcher.compute_mask().unwrap().is_allowed(33));
    matcher.reset().unwrap();
    assert_eq!(masks(&mut matcher), first);
    matcher.reset().unwrap();
    matcher.consume_token(97).unwrap();
    assert!(error(matcher.rollback(2)).starts_with("rollback: 2 > 1"));
    assert!(matcher.is_error());
}

#[test]
fn forced_text_has_the_mask_of_one_token() {
    let env = words(&[8], true);
    assert_eq!(list(matcher_of(&env, "start: \"abc\"").compute_mask()), [4]);
    let mut matcher = matcher_of(&env, "start: \"abc\"");
    assert_eq!(matcher.validate_tokens(&[0, 5]).unwrap(), 2);
    assert_eq!(matcher.compute_ff_tokens(), [4]);
    matcher.consume_token(0).unwrap();
    assert_eq!(list(matcher.compute_mask()), [5]);
    // Each of these tokens could become `abc`.
    assert_eq!(list(matcher_of(&env, "start: \"ab\" \"c\"?").compute_mask()), [0, 3, 4, 6]);
    let unforced = "%llguidance {\"no_forcing\": true}\nstart: \"abc\"";
    let mut matcher = matcher_of(&env, unforced);
    assert_eq!(list(matcher.compute_mask()), [0, 3, 4, 6]);
    assert_eq!(
        (matcher.compute_ff_tokens(), matcher.compute_ff_bytes()),
        (vec![], b"abc".to_vec())
    );
    assert!(matcher.grammar_warnings().is_empty());
    // The option, and not its name elsewhere.
    let named = "// \"no_forcing\": true\n%llguidance {\"no_forcing\": false}\nstart: \"abc\"";
    assert_eq!(matcher_of(&env, named).compute_ff_tokens(), [4]);
    let approximate = words(&[8], false);
    let mut matcher = matcher_of(&approximate, "start: \"abc\"");
    assert_eq!(list(matcher.compute_mask()), [0, 3, 4, 6]);
    assert!(matcher.compute_ff_tokens().is_empty());
}

#[test]
fn every_end_token_ends_a_text() {
    let env = words(&[8, 9], true);
    let mut matcher = matcher_of(&env, "start: /a+/");
    matcher.consume_token(0).unwrap();
    assert_eq!(list(matcher.compute_mask()), [0, 8, 9]);
    for eos in [8, 9] {
        assert_eq!(matcher.validate_tokens(&[eos]).unwrap(), 1);
        let mut fork = matcher.clone();
        fork.consume_token(eos).unwrap();
        assert_eq!(fork.stop_reason(), StopReason::EndOfSentence);
        assert_eq!(list(fork.compute_mask_or_eos()), [8, 9]);
    }
}

#[test]
fn an_end_token_can_be_text_or_named_by_the_grammar() {
    let text = words(&[10], true);
    let mut matcher = matcher_of(&text, "start: \"</s>\" \"a\"");
    assert_eq!(list(matcher.compute_mask()), [10]);
    matcher.consume_token(10).unwrap();
    assert!(!matcher.is_stopped());
    assert_eq!(list(matcher.compute_mask()), [0]);
    let mut matcher = matcher_of(&text, "start: /a+/");
    matcher.consume_token(0).unwrap();
    assert_eq!(list(matcher.compute_mask()), [0, 10]);

    let mut matcher = lark("start: \"a\" <|end|> \"b\"");
    matcher.consume_token(97).unwrap();
    assert_eq!(list(matcher.compute_mask()), [EOS]);
    matcher.consume_token(EOS).unwrap();
    assert!(!matcher.is_stopped());
    assert_eq!(list(matcher.compute_mask()), [98]);
    let mut matcher = lark("start: \"a\" <|end|>");
    matcher.consume_tokens(&[97, EOS]).unwrap();
    assert_eq!(matcher.stop_reason(), StopReason::EndOfSentence);
}

#[test]
fn an_end_token_that_does_not_exist_is_never_allowed() {
    let words: Vec<Vec<u8>> = ["a", "b"].iter().map(|text| text.as_bytes().to_vec()).collect();
    let trie = TokTrie::from(&TokRxInfo::new(2, llguidance::toktrie::INVALID_TOKEN), &words);
    let env: TokEnv = Arc::new(Greedy(trie));
    let mut matcher = matcher_of(&env, "start: /a+b/");
    assert_eq!(list(matcher.compute_mask()), [0]);
    matcher.consume_tokens(&[0, 1]).unwrap();
    assert!(list(matcher.compute_mask_or_eos()).is_empty());
    let mut open = matcher_of(&env, "start: /a?/");
    open.consume_token(0).unwrap();
    assert!(open.is_stopped());
}

#[test]
fn tokens_by_id() {
    let env = words(&[8], true);
    assert_eq!(list(matcher_of(&env, "start: <[7]> | <[0-2]>").compute_mask()), [0, 1, 2, 7]);
    assert_eq!(list(matcher_of(&env, "start: <eot>").compute_mask()), [9]);
}

#[test]
fn the_error_of_a_parser_is_the_matchers() {
    let mut matcher = Matcher::new(Err(anyhow::anyhow!("boom")));
    assert_eq!(matcher.get_error().as_deref(), Some("boom"));
    assert!(matcher.is_error() && matcher.is_stopped() && matcher.tok_env().is_err());
    assert!(matcher.captures().is_empty() && matcher.grammar_warnings().is_empty());
    assert_eq!(error(matcher.compute_mask()), "boom");
    let message = error(lark("start: \"a\"").test_trigger_lexer_error());
    assert!(message.contains("synthetic error"), "{message}");
}

#[test]
fn capabilities_are_checked() {
    let make = |env: &TokEnv, ff_tokens, backtrack| {
        let caps = InferenceCapabilities { ff_tokens, backtrack, ..Default::default() };
        let factory = ParserFactory::new(env, caps, &[]).unwrap();
        factory.create_parser(TopLevelGrammar::from_regex("a"))
    };
    let (canonical, approximate) = (words(&[8], true), words(&[8], false));
    assert!(make(&canonical, true, false).is_ok());
    let refused = make(&approximate, true, false).map(drop);
    assert_eq!(error(refused), "ff_tokens requires canonical tokenization");
    assert_eq!(error(make(&canonical, false, true).map(drop)), "backtrack requires ff_tokens");
    let matcher = Matcher::new(make(&canonical, true, true));
    assert_eq!(matcher.get_error().as_deref(), Some("backtracking not supported"));
}

#[test]
fn cancelled_work_fails_for_good() {
    let mut matcher = lark("start: /[a-z]+/");
    assert!(matcher.cancellation_handle().is_none());
    matcher = matcher.into_cancellable();
    matcher.consume_token(97).unwrap();
    let handle = matcher.cancellation_handle().unwrap();
    handle.cancel();
    assert!(matcher.is_cancelled() && matcher.is_error() && matcher.is_stopped());
    assert_eq!(matcher.stop_reason(), StopReason::Cancelled);
    assert_eq!(matcher.get_error().as_deref(), Some("operation cancelled"));
    assert!(matcher.compute_mask().unwrap_err().is::<Cancelled>());
    assert!(matcher.compute_ff_bytes().is_empty());
}

#[test]
fn clones_are_cancelled_on_their_own() {
    let matcher = lark("start: /[a-z]+/").into_cancellable();
    let (mut clone, deep) = (matcher.clone(), matcher.deep_clone());
    matcher.cancellation_handle().unwrap().cancel();
    assert!(matcher.is_cancelled() && !clone.is_cancelled() && !deep.is_cancelled());
    clone.consume_token(97).unwrap();
    clone.cancellation_handle().unwrap().cancel();
    assert!(clone.is_cancelled() && !deep.is_cancelled());
    // A clone of what is cancelled is cancelled, too.
    assert!(matcher.clone().is_cancelled());

    let mut parser = factory().create_parser(TopLevelGrammar::from_regex("ab")).unwrap();
    let handle = parser.enable_cancellation();
    let mut clone = parser.clone();
    handle.cancel();
    parser.start_without_prompt();
    clone.start_without_prompt();
    assert!(parser.compute_mask().unwrap_err().is::<Cancelled>());
    assert_eq!(list(clone.compute_mask()), [97]);
}

#[test]
fn a_failed_matcher_has_a_handle() {
    let failed = Matcher::new(Err(anyhow::anyhow!("boom"))).into_cancellable();
    failed.cancellation_handle().unwrap().cancel();
    assert!(!failed.is_cancelled());
    assert_eq!(failed.get_error().as_deref(), Some("boom"));
    let mut failing = lark("start: \"a\"").into_cancellable();
    failing.consume_token(98).unwrap_err();
    assert!(failing.is_error() && failing.cancellation_handle().is_some());
}

#[test]
fn a_token_by_id_may_stand_beside_text() {
    let env = words(&[8], true);
    let mut matcher = matcher_of(&env, "start: <[3]> <[0]> (<[5]> | \"c\") <[0]> <[3]>");
    assert_eq!(matcher.compute_ff_tokens(), [3, 0]);
    matcher.consume_tokens(&[3, 0]).unwrap();
    assert_eq!(matcher.validate_tokens(&[5, 0, 3]).unwrap(), 3);
    assert_eq!(matcher.validate_tokens(&[2, 0, 3]).unwrap(), 3);
    matcher.consume_token(2).unwrap();
    assert_eq!(matcher.compute_ff_tokens(), [0, 3]);
}
