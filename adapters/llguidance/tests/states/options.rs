//! Every option that the original knows is honoured, refused, or warned of.

use std::collections::BTreeSet;

use super::*;
use llguidance::JsonCompileOptions;

/// What an option does.
enum Effect {
    /// The first text is accepted and the second one is not; without the option it is different.
    Honoured(&'static str, &'static str),
    /// An error with this text.
    Refused(&'static str),
    /// A warning with this text, and one or no text that is accepted all the same.
    Warned(&'static str, Option<&'static str>),
    /// Nothing: it is the default, or it says how to work and not what is allowed.
    Nothing,
}
use Effect::{Honoured, Nothing, Refused, Warned};

/// Checks an option by the grammars without and with it.
fn check(name: &str, without: TopLevelGrammar, with: TopLevelGrammar, effect: &Effect) {
    let made = factory().create_parser(with);
    if let Refused(part) = effect {
        let message = Matcher::new(made).get_error().expect("an error");
        assert!(message.contains(part), "{name}: {message:?}");
        return;
    }
    let mut with = Matcher::new(made);
    assert_eq!(with.get_error(), None, "{name}");
    let without = Matcher::new(factory().create_parser(without));
    let warnings = with.grammar_warnings();
    match effect {
        Honoured(right, wrong) => {
            assert!(accepts(&with, right) && !accepts(&with, wrong), "{name}");
            assert!(!accepts(&without, right) || accepts(&without, wrong), "{name} has no effect");
            assert!(warnings.is_empty(), "{name}: {warnings:?}");
        }
        Warned(part, text) => {
            assert!(warnings.iter().any(|warning| warning.contains(part)), "{name}: {warnings:?}");
            assert!(text.is_none_or(|text| accepts(&with, text)), "{name}");
        }
        _ => assert!(warnings.is_empty(), "{name}: {warnings:?}"),
    }
}

/// The names in a table are these, and each of them is there.
fn names_are(expected: impl IntoIterator<Item = String>, rows: impl Iterator<Item = String>) {
    let (expected, rows): (BTreeSet<_>, BTreeSet<_>) =
        (expected.into_iter().collect(), rows.collect());
    assert_eq!(rows, expected);
}

fn members(value: Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn options_of_schemas() {
    let (array, object) = (json!({"enum": [[1, 2]]}), json!({"enum": [{"a": 1}]}));
    let one_of = json!({"oneOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]});
    let named = |name: &str, value: Value| (name.to_owned(), json!({ name: value }));
    let beside = |name: &str, value: Value, more: Value| {
        let (name, mut options) = named(name, value);
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (name, options)
    };
    let compact = || json!({"whitespace_flexible": false});
    let free = json!({"type": "string"});
    let rows = [
        (beside("item_separator", json!(", "), compact()), &array, Honoured("[1, 2]", "[1,2]")),
        (
            beside("item_separator", json!(",( |\\n)"), compact()),
            &array,
            Warned("item_separator: only \", \"", Some("[1, 2]")),
        ),
        (
            named("item_separator", json!(", ")),
            &array,
            Warned("whitespace_flexible", Some("[1, 2]")),
        ),
        (named("item_separator", json!(";")), &array, Refused("separator")),
        (named("item_separator", json!(",(")), &array, Refused("")),
        (
            beside("key_separator", json!(": "), compact()),
            &object,
            Honoured("{\"a\": 1}", "{\"a\":1}"),
        ),
        (
            beside("key_separator", json!(" *: *"), compact()),
            &object,
            Warned("key_separator: only \":\"", Some("{\"a\":1}")),
        ),
        (named("key_separator", json!("=")), &object, Refused("separator")),
        (named("whitespace_flexible", json!(false)), &array, Honoured("[1,2]", "[1, 2]")),
        (named("whitespace_flexible", json!(true)), &array, Nothing),
        (named("whitespace_pattern", json!(null)), &array, Nothing),
        (named("whitespace_pattern", json!("[ \\t\\n\\r]*")), &array, Nothing),
        (
            named("whitespace_pattern", json!("[ \\t\\n\\r]{0,2}")),
            &array,
            Honoured("[1,  2]", "[1,   2]"),
        ),
        (
            named("whitespace_pattern", json!("[ \\t\\n\\r]?")),
            &array,
            Honoured("[1,\n2 ]", "[1,\n 2]"),
        ),
        (
            named("whitespace_pattern", json!("( |\\t|\\n|\\r|//x\\n)?")),
            &array,
            Warned("whitespace_pattern: only up to 1 ", Some("[1, 2]")),
        ),
        (
            named("whitespace_pattern", json!(" *")),
            &array,
            Warned("whitespace_pattern: only up to 0 ", Some("[1,2]")),
        ),
        (
            beside("whitespace_pattern", json!(" *"), compact()),
            &array,
            Warned("whitespace_pattern: only up to 0", Some("[1,2]")),
        ),
        (
            beside("whitespace_pattern", json!("[ \\t\\n\\r]?"), json!({"key_separator": ": "})),
            &object,
            Warned("whitespace_flexible", Some("{\"a\": 1}")),
        ),
        (named("whitespace_pattern", json!("(")), &array, Refused("")),
        (named("coerce_one_of", json!(true)), &one_of, Warned("coerce_one_of", Some("3"))),
        (named("coerce_one_of", json!(true)), &array, Nothing),
        (named("coerce_one_of", json!(false)), &one_of, Nothing),
        (named("lenient", json!(true)), &json!({"enum": [1], "type": "number"}), Nothing),
        (
            named("lenient", json!(true)),
            &json!({"pattern": "(a)\\1"}),
            Warned("/pattern", Some("\"b\"")),
        ),
        (named("json_allowed_escapes", json!("nrt")), &free, Refused("json_allowed_escapes")),
        (named("json_allowed_escapes", json!(null)), &free, Nothing),
        // Honoured: free text has these escapes, also without the option.
        (named("json_allow_general_unicode_escapes", json!(true)), &free, Nothing),
        (named("json_allow_general_unicode_escapes", json!(false)), &free, Nothing),
    ];
    for ((name, options), schema, effect) in &rows {
        let mut with = (*schema).clone();
        with["x-guidance"] = options.clone();
        let [without, with] = [(*schema).clone(), with].map(TopLevelGrammar::from_json_schema);
        check(&format!("{name} {options}"), without, with, effect);
    }
    let known = members(serde_json::to_value(JsonCompileOptions::default()).unwrap());
    names_are(known, rows.iter().map(|((name, _), ..)| name.clone()));
    let mut unknown = array.clone();
    unknown["x-guidance"] = json!({"foo": 1});
    let grammar = TopLevelGrammar::from_json_schema;
    check("foo", grammar(array.clone()), grammar(unknown), &Refused("unknown field `foo`"));
    let below = json!({"items": {"x-guidance": {"lenient": true}, "enum": [1]}});
    let warned = Warned("below the root", Some("[1, 1]"));
    check("below", grammar(array.clone()), grammar(below), &warned);
}

#[test]
fn options_of_lark_texts() {
    let ignored = "start: \"a\" \"b\"\n%ignore \" \"";
    for (options, text, effect) in [
        (json!({"allow_initial_skip": true}), ignored, Honoured(" ab", "x")),
        (json!({"allow_initial_skip": false}), ignored, Nothing),
        (json!({"ignore_once": true}), ignored, Honoured("a b", "a  b")),
        (json!({"skip_repetition": "once"}), ignored, Honoured("a b", "a  b")),
        (json!({"skip_repetition": "unbounded"}), ignored, Nothing),
        (json!({"skip_repetition": "often"}), ignored, Refused("skip_repetition")),
        (json!({"allow_invalid_utf8": true}), ignored, Refused("allow_invalid_utf8")),
        (json!({"allow_invalid_utf8": false}), ignored, Nothing),
        // Forced tokens, not texts: see `forced_text_has_the_mask_of_one_token`.
        (json!({"no_forcing": true}), ignored, Nothing),
        (json!({"no_forcing": false}), ignored, Nothing),
        (json!({"ignore_once": 1}), ignored, Refused("ignore_once")),
        (json!({"foo": 1}), ignored, Refused("foo")),
    ] {
        let with = format!("%llguidance {options}\n{text}");
        let [without, with] = [text.to_owned(), with].map(TopLevelGrammar::from_lark);
        check(&options.to_string(), without, with, &effect);
    }
}

#[test]
fn options_of_rules() {
    let rest = "start: w \"!\"\n";
    for (attribute, pattern, effect) in [
        ("", ".*", Nothing),
        ("[capture]", "a*", Nothing),
        ("[capture=\"x\"]", "a*", Nothing),
        ("[temperature=0.5]", "a*", Nothing),
        ("[lazy]", "a*b?", Honoured("!", "ab!")),
        ("[max_tokens=1]", "a*", Honoured("a!", "aa!")),
        ("[stop=\";\"]", "a*", Honoured("a;!", "a!")),
        ("[suffix=\";\"]", "a*", Honoured("a;!", "a!")),
        ("[stop=\";\", stop_capture=\"x\"]", "a*", Honoured("a;!", "a!")),
        ("[foo]", "a*", Refused("foo")),
    ] {
        let texts = ["", attribute].map(|attribute| format!("{rest}w{attribute}: /{pattern}/"));
        let [without, with] = texts.map(TopLevelGrammar::from_lark);
        check(attribute, without, with, &effect);
    }
}

/// Each limit that counts something refuses or stops what is within its default; the others say how
/// to work.
#[test]
fn limits_of_parsers() {
    let schema = json!({"anyOf": [{"pattern": "(a|b){3,90}c.*d", "minLength": 5}, {"enum": [1]}]});
    let rule = |at: usize| format!("r{at}: \"x\" r{at} \"{at}\" | \"\"");
    let names: Vec<String> = (0..200).map(|at| format!("r{at}")).collect();
    let rules: Vec<String> = (0..200).map(rule).collect();
    let nested = format!("start: {}\n{}", names.join(" | "), rules.join("\n"));
    let grammars = [TopLevelGrammar::from_json_schema(schema), TopLevelGrammar::from_lark(nested)];
    // The masks before and after a token, or the first error.
    let walk = |limits: ParserLimits| -> Result<Vec<Vec<TokenId>>, String> {
        let mut factory = factory();
        *factory.limits_mut() = limits;
        let mut masks = Vec::new();
        for (grammar, token) in grammars.iter().zip(*b"\"x") {
            let mut matcher = Matcher::new(factory.create_parser(grammar.clone()));
            let mut mask = |matcher: &mut Matcher| -> anyhow::Result<()> {
                masks.push(matcher.compute_mask()?.to_list());
                Ok(())
            };
            let all = mask(&mut matcher)
                .and_then(|()| matcher.consume_token(token.into()))
                .and_then(|()| mask(&mut matcher));
            assert_eq!(all.is_err(), matcher.is_error());
            all.map_err(|error| error.to_string())?;
        }
        Ok(masks)
    };
    let default = serde_json::to_value(ParserLimits::default()).unwrap();
    let expected = walk(ParserLimits::default());
    assert!(expected.is_ok(), "{expected:?}");
    for name in members(default.clone()) {
        let mut limits = default.clone();
        limits[&name] = match &default[&name] {
            Value::Bool(value) => json!(!value),
            _ => json!(1),
        };
        let found = walk(serde_json::from_value(limits).unwrap());
        match ["precompute_large_lexemes", "verbose_errors"].contains(&&*name) {
            true => assert_eq!(found, expected, "{name}"),
            false => assert!(found.is_err(), "{name} has no effect"),
        }
    }
}
