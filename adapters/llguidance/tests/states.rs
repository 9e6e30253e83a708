//! What each call does in each state: running, stopped, failed, cancelled.

use std::sync::Arc;

use llguidance::api::{
    GrammarInit, GrammarWithLexer, ParserLimits, StopReason, TopLevelGrammar, ValidationResult,
};
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId,
    TokenizerEnv,
};
use llguidance::{Cancelled, Constraint, Matcher, ParserFactory};
use serde_json::{Value, json};

/// `<|end|>` of the single-byte environment.
const EOS: TokenId = 261;

/// A factory over single bytes, without a log and with short errors.
fn factory() -> ParserFactory {
    let mut factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    factory.limits_mut().verbose_errors = false;
    factory.quiet();
    factory
}

fn lark(text: &str) -> Matcher {
    let matcher = Matcher::new(factory().create_parser(TopLevelGrammar::from_lark(text.into())));
    assert_eq!(matcher.get_error(), None);
    matcher
}

fn schema(schema: Value) -> Matcher {
    let grammar = TopLevelGrammar::from_json_schema(schema);
    let matcher = Matcher::new(factory().create_parser(grammar));
    assert_eq!(matcher.get_error(), None);
    matcher
}

fn tokens(text: &str) -> Vec<TokenId> {
    text.bytes().map(TokenId::from).collect()
}

/// Whether a text is accepted as a whole.
fn accepts(matcher: &Matcher, text: &str) -> bool {
    let mut matcher = matcher.deep_clone();
    let all = tokens(text);
    matcher.try_consume_tokens(&all).unwrap() == all.len() && matcher.is_accepting().unwrap()
}

fn error<T: std::fmt::Debug>(result: anyhow::Result<T>) -> String {
    result.unwrap_err().to_string()
}

/// Greedy tokenization that counts as canonical.
struct Greedy(TokTrie);

impl TokenizerEnv for Greedy {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.0.greedy_tokenize(bytes)
    }
}

/// Tokens 0 to 6: a, b, c, ab, abc, bc, ab once more. 7: no text. 8 and 9: `<eos>`, `<eot>`.
/// 10: the text `</s>`.
fn words(eos: &[TokenId], canonical: bool) -> TokEnv {
    let texts = ["a", "b", "c", "ab", "abc", "bc", "ab", "", "\0<eos>", "\0<eot>", "</s>"];
    let bytes = |text: &&str| match text.strip_prefix('\0') {
        Some(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
        None => text.as_bytes().to_vec(),
    };
    let words: Vec<Vec<u8>> = texts.iter().map(bytes).collect();
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, eos[0]), &words);
    let trie = trie.with_eos_tokens(eos);
    if canonical { Arc::new(Greedy(trie)) } else { Arc::new(ApproximateTokEnv::new(trie)) }
}

fn matcher_of(env: &TokEnv, text: &str) -> Matcher {
    let factory = ParserFactory::new_simple(env).unwrap();
    Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(text.to_owned())))
}

fn list(mask: anyhow::Result<SimpleVob>) -> Vec<u32> {
    mask.unwrap().to_list()
}

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
fn the_tokens_of_a_whole_grammar_are_counted() {
    let mut grammar = TopLevelGrammar::from_lark("start: /[a-z]+/".into());
    grammar.max_tokens = Some(2);
    let mut matcher = Matcher::new(factory().create_parser(grammar));
    matcher.consume_tokens(&tokens("ab")).unwrap();
    assert_eq!(matcher.validate_tokens(&tokens("cde")).unwrap(), 3);
    assert!(error(matcher.clone().consume_token(EOS)).starts_with("max_tokens_total reached"));
    matcher.rollback(1).unwrap();
    matcher.consume_token(97).unwrap();
    assert!(error(matcher.consume_token(97)).starts_with("max_tokens_total reached"));
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
fn captures_have_the_last_text_of_a_name() {
    let mut matcher = lark("start: a b\na[capture]: /[0-9]+/\nb[capture=\"bb\"]: \"x\"\n");
    matcher.consume_tokens(&tokens("12x")).unwrap();
    assert_eq!(matcher.get_capture("a"), Some(&b"12"[..]));
    assert_eq!(matcher.get_capture("bb"), Some(&b"x"[..]));
    matcher.rollback(1).unwrap();
    assert_eq!(matcher.get_capture("bb"), None);
}

#[test]
fn limits_are_scaled() {
    let grammar = || TopLevelGrammar::from_json_schema(json!({"pattern": "(a|b){3,90}c.*d"}));
    let mut factory = factory();
    factory.limits_mut().initial_lexer_fuel = 1;
    assert!(factory.create_parser(grammar()).is_err());
    *factory.limits_mut() = ParserLimits { step_lexer_fuel: 1, ..ParserLimits::default() };
    let made = factory.create_parser(grammar());
    assert!(made.is_err() || Matcher::new(made).compute_mask().is_err());
}

#[test]
fn lists_of_grammars_are_checked() {
    let error = |list: Value| -> String {
        let list: TopLevelGrammar = serde_json::from_value(json!({"grammars": list})).unwrap();
        error(factory().create_parser(list).map(drop))
    };
    let a = json!({"name": "a", "lark_grammar": "start: \"a\""});
    assert_eq!(error(json!([])), "empty grammars array");
    assert_eq!(error(json!([{}])), "grammar must have either lark_grammar or json_schema");
    assert_eq!(error(json!([a, a])), "duplicate grammar name: @a");
    let both = json!([{"lark_grammar": "start: \"a\"", "json_schema": {}}]);
    assert_eq!(error(both), "cannot have both lark_grammar and json_schema");
    assert!(error(json!([{"lark_grammar": "start: @zz"}])).contains("zz"));
    // Also in grammars that nothing refers to, whatever the first one is.
    let wrong = json!({"name": "w", "lark_grammar": "start: zz"});
    let nameless = json!({"lark_grammar": "start: zz"});
    for first in [a.clone(), json!({"name": "s", "json_schema": {"type": "null"}})] {
        assert!(error(json!([first, wrong])).contains("@w"));
        assert!(error(json!([first, nameless])).contains("grammar"));
        assert!(error(json!([first, {"json_schema": {"type": 5}}])).contains("grammar"));
    }
    let list: TopLevelGrammar = serde_json::from_value(json!({"grammars": [
        {"lark_grammar": "start: \"a\" @n", "unknown": 1},
        {"name": "n", "json_schema": {"type": "null"}}
    ]}))
    .unwrap();
    assert!(accepts(&Matcher::new(factory().create_parser(list)), "anull"));
}

#[test]
fn the_first_grammar_of_a_list_has_a_name() {
    let of = |list: Value| {
        let list: TopLevelGrammar = serde_json::from_value(json!({"grammars": list})).unwrap();
        Matcher::new(factory().create_parser(list))
    };
    let pair = of(json!([
        {"name": "g0", "lark_grammar": "start: \"a\" @g1 | \"b\""},
        {"name": "g1", "lark_grammar": "start: \"c\" @g0"}
    ]));
    assert!(accepts(&pair, "acacb") && !accepts(&pair, "acac"));
    let schema = json!({"name": "s", "json_schema": {"type": "null"}});
    assert!(accepts(&of(json!([schema, {"name": "l", "lark_grammar": "start: @s"}])), "null"));
    assert!(accepts(&lark("start: \"a\" @lark_grammar | \"b\""), "aab"));
}

#[test]
fn what_constrains_nothing_is_warned_of() {
    let object = json!({"properties": {"a": {"format": "telephone"}}, "requried": ["a"]});
    let expected = ["\"/requried\": no keyword", "\"/properties/a/format\": an unknown format"];
    let inside = format!("start: %json {object}");
    let relaxed = format!("start: %json {}", json!({"requried": [], "x-guidance": {}}));
    let mut list = TopLevelGrammar::from_lark("start: \"a\"".to_owned());
    list.grammars.push(GrammarWithLexer::from_json_schema(object.clone()));
    for (mut matcher, expected) in [
        (schema(object), &expected[..]),
        (lark(&inside), &expected),
        (lark(&relaxed), &expected[..1]),
        (Matcher::new(factory().create_parser(list.clone())), &expected),
    ] {
        let warnings = matcher.grammar_warnings();
        assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
        assert!(warnings.iter().zip(expected).all(|(warning, part)| warning.contains(part)));
    }
    let checked = GrammarInit::Serialized(list).validate(None, ParserLimits::default());
    assert!(matches!(checked, ValidationResult::Warnings(warnings) if warnings.len() == 2));
}

#[test]
fn what_follows_a_stop_reads_its_text_where_nothing_else_can_follow() {
    let mut matcher = lark("start: w \"<e>\"\nw[stop=\"<e>\", capture]: /.*/");
    assert!(accepts(&matcher, "foo<e>") && !accepts(&matcher, "foo<e><e>"));
    matcher.consume_tokens(&tokens("foo<e>")).unwrap();
    assert_eq!(matcher.stop_reason(), StopReason::NoExtension);
    assert_eq!(matcher.get_capture("w"), Some(&b"foo"[..]));
    let matcher = lark("start: w \"!\"\nw[stop=\"<e>\"]: /.*/");
    assert!(accepts(&matcher, "foo<e>!") && !accepts(&matcher, "foo!"));
    let matcher = lark("start: \"a\" w \"!\"\nw[max_tokens=0]: /[a-z]+/");
    assert!(accepts(&matcher, "a!") && !accepts(&matcher, "ab!"));
}

#[test]
fn grammars_are_json() {
    let text = serde_json::to_value(TopLevelGrammar::from_json_schema(json!({}))).unwrap();
    let grammars = json!([{"name": "json_schema", "json_schema": {}, "lark_grammar": null}]);
    assert_eq!(text, json!({"grammars": grammars, "max_tokens": null}));
    let read = |tag: &str, data: &str| TopLevelGrammar::from_tagged_str(tag, data);
    assert_eq!(error(read("foo", "")), "unknown constraint type: foo");
    assert_eq!(error(read("guidance", " ")), "Empty grammar");
    assert!(read("json", "{").is_err());
    assert!(read("json_object", "").unwrap().grammars[0].json_schema.is_some());
    let limits: ParserLimits = serde_json::from_value(json!({"step_max_items": 7})).unwrap();
    assert_eq!(limits, ParserLimits { step_max_items: 7, ..ParserLimits::default() });
    assert_eq!(serde_json::to_value(StopReason::NoExtension).unwrap(), "NoExtension");
}

#[test]
fn validation_needs_no_tokenizer() {
    let check = |grammar| GrammarInit::Serialized(grammar).validate(None, ParserLimits::default());
    let named = check(TopLevelGrammar::from_lark("start: <foo> <[1-3]>".into()));
    let expected = "WARNING: no tokenizer - can't validate <foo>\n\
                    WARNING: no tokenizer - can't validate ([1], [2], [3])";
    assert_eq!(named.render(true), expected);
    assert!(matches!(check(TopLevelGrammar::from_regex("a")), ValidationResult::Valid));
    let wrong = check(TopLevelGrammar::from_json_schema(json!({"type": "zzz"})));
    assert!(wrong.render(false).starts_with("ERROR: "));
    let env = ApproximateTokEnv::single_byte_env();
    let lark = TopLevelGrammar::from_lark("start: <nope>".into());
    let known = GrammarInit::Serialized(lark).validate(Some(env), ParserLimits::default());
    assert!(known.into_error().unwrap().contains("<nope>"));
}

#[test]
fn options_in_a_schema() {
    let object = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": [[1, 2]]}},
        "required": ["a", "b"], "additionalProperties": false,
    });
    let with = |options: Value| {
        let mut object = object.clone();
        object["x-guidance"] = options;
        object
    };
    let flexible = schema(object.clone());
    assert!(accepts(&flexible, r#"{"a":1,"b":[1,2]}"#));
    assert!(accepts(&flexible, "{ \"a\" : 1,\n\"b\":[1, 2]}"));
    // Members are in the order of the schema.
    assert!(!accepts(&flexible, r#"{"b":[1,2],"a":1}"#));
    let compact = schema(with(json!({"whitespace_flexible": false})));
    assert!(accepts(&compact, r#"{"a":1,"b":[1,2]}"#));
    assert!(!accepts(&compact, r#"{"a": 1,"b":[1,2]}"#));
    let spaced = json!({
        "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": ",
    });
    assert!(accepts(&schema(with(spaced)), r#"{"a": 1, "b": [1, 2]}"#));
    let lark = format!("start: \"<\" %json {} \">\"", with(json!({"whitespace_flexible": false})));
    assert!(accepts(&self::lark(&lark), r#"<{"a":1,"b":[1,2]}>"#));
    assert!(!accepts(&self::lark(&lark), r#"<{"a": 1,"b":[1,2]}>"#));
    let refused = |options: Value| {
        let grammar = TopLevelGrammar::from_json_schema(with(options));
        error(factory().create_parser(grammar).map(drop))
    };
    assert!(refused(json!({"foo": 1})).contains("unknown field `foo`"));
    assert!(refused(json!({"item_separator": "-"})).contains("separator"));
    assert!(refused(json!({"lenient": 1})).contains("invalid type"));
}

#[test]
fn lenient_schemas_relax_with_a_warning() {
    let strict = json!({"type": "string", "pattern": "(a)\\1"});
    let grammar = TopLevelGrammar::from_json_schema(strict.clone());
    assert!(factory().create_parser(grammar).is_err());
    let mut lenient = strict;
    lenient["x-guidance"] = json!({"lenient": true});
    let mut matcher = schema(lenient);
    assert!(matcher.grammar_warnings()[0].contains("/pattern"));
    assert!(accepts(&matcher, "\"x\""));
}

#[test]
fn errors_in_named_grammars_have_their_cause() {
    let mut grammar = TopLevelGrammar::from_lark("start: @x".into());
    let mut named = GrammarWithLexer::from_json_schema(json!({"type": 5}));
    named.name = Some("x".to_owned());
    grammar.grammars.push(named);
    let error = Matcher::new(factory().create_parser(grammar.clone())).get_error().unwrap();
    assert!(error.contains("@x") && error.contains("/type"), "{error}");
    let checked = GrammarInit::Serialized(grammar).validate(None, ParserLimits::default());
    let error = checked.into_error().unwrap();
    assert!(error.contains("@x") && error.contains("/type"), "{error}");
}

#[test]
fn limits_hold_without_a_tokenizer() {
    let grammar = || TopLevelGrammar::from_json_schema(json!({"enum": [1, 2, "a", "b"]}));
    let validate = |max_grammar_size| {
        let limits = ParserLimits { max_grammar_size, ..ParserLimits::default() };
        GrammarInit::Serialized(grammar()).validate(None, limits).into_error()
    };
    assert_eq!(validate(ParserLimits::default().max_grammar_size), None);
    assert!(validate(1).is_some());
}

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
