//! Grammars and schemas: what is compiled, refused and warned of.

use super::*;

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

/// Captures of an ambiguous text, with less fuel than they need.
#[test]
fn a_limit_of_captures_stops_the_parser() {
    const FUEL: u64 = 200;
    let text = "start: a \"!\"\na[capture]: b+\nb: c | c c\nc: \"x\" | \"x\" c";
    let grammar = TopLevelGrammar::from_lark(text.to_owned());
    let parser = |initial_lexer_fuel| {
        let mut factory = factory();
        factory.limits_mut().initial_lexer_fuel = initial_lexer_fuel;
        let mut parser = factory.create_parser(grammar.clone()).unwrap();
        parser.start_without_prompt();
        parser
    };
    let taken = "x".repeat(300);
    let mut rich = parser(ParserLimits::default().initial_lexer_fuel);
    tokens(&taken).iter().for_each(|&t| assert_eq!(rich.consume_token(t).unwrap(), 0));
    assert_eq!(rich.get_capture("a"), Some(taken.as_bytes()));
    assert_eq!(rich.stop_reason(), StopReason::NotStopped);
    let mut poor = parser(FUEL);
    tokens(&taken).iter().for_each(|&t| assert_eq!(poor.consume_token(t).unwrap(), 0));
    let mut whole = poor.clone();
    assert!(poor.captures().is_empty());
    assert_eq!(poor.stop_reason(), StopReason::LexerTooComplex);
    assert!(poor.stopped() && poor.error_message().unwrap().contains("fuel"));
    assert!(error(poor.compute_mask()).contains("fuel"));
    assert!(poor.rollback(1).is_err());
    // At the end of the text, also where the host does not ask for captures.
    whole.consume_token(b'!'.into()).unwrap();
    assert!(error(whole.check_stop()).contains("fuel"));
    assert_eq!(whole.stop_reason(), StopReason::LexerTooComplex);
    let mut matcher = Matcher::new(Ok(parser(FUEL)));
    matcher.consume_tokens(&tokens(&taken)).unwrap();
    assert!(!matcher.is_error() && matcher.captures().is_empty());
    assert!(matcher.is_stopped() && matcher.get_error().unwrap().contains("fuel"));
    assert_eq!(matcher.stop_reason(), StopReason::LexerTooComplex);
    assert!(error(matcher.consume_token(b'!'.into())).contains("fuel"));
}
