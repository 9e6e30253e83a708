//! Tests of objects written as parameters (without braces), and of values in other syntaxes than
//! JSON.

use std::sync::Arc;

use super::super::{
    AmbiguousText, JsonTypes, MemberPart, ParameterStyle, PythonDialect, PythonValues, RawQuotes,
    RawStrings, Registry, SchemaOptions, ValueStyle, ValueSyntax, ValueTypes, lower_into,
};
use super::source;
use crate::compile::Compiled;
use crate::ir::{Expr, GrammarBuilder, Trigger};
use crate::limits::Limits;
use crate::matcher::Recognizer;
use crate::spec::json::Json;

fn recognizer(builder: GrammarBuilder, rule: crate::ids::RuleId) -> Recognizer {
    let grammar = builder.finish(rule).unwrap();
    Recognizer::new(Arc::new(Compiled::new(&grammar, &Limits::default()).unwrap()))
}

fn takes(recognizer: &mut Recognizer, text: &str) -> bool {
    recognizer.reset();
    recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete()
}

fn json(text: &str) -> Json {
    Json::parse(text, &Limits::default()).unwrap()
}

/// A recognizer of members written as `<NAME>VALUE;`, and the kinds of their values.
fn tagged(schema: &str) -> (Recognizer, ValueTypes) {
    tagged_in(schema, PythonValues::None, None)
}

/// The same, with values that may be Python literals, and strings that may stand in quotes.
fn tagged_in(
    schema: &str,
    python: PythonValues,
    quotes: Option<RawQuotes>,
) -> (Recognizer, ValueTypes) {
    let style = ParameterStyle {
        open: Expr::Empty,
        between: Expr::Empty,
        close: Expr::Empty,
        member: vec![
            MemberPart::Fixed(Expr::text("<")),
            MemberPart::Name,
            MemberPart::Fixed(Expr::text(">")),
            MemberPart::Value,
        ],
        raw: Some(RawStrings {
            end: vec![(Trigger::Text(b";".to_vec()), Expr::Empty)],
            lead: b" ".to_vec(),
            trail: b" ".to_vec(),
            excludes: Vec::new(),
            spaced: false,
            reading: AmbiguousText::Json,
            python,
            quotes,
        }),
        syntax: ValueSyntax::Json,
        other_type_names: Vec::new(),
        name: Arc::new(|name| (!name.contains('>')).then(|| name.to_owned())),
    };
    lowered(schema, &ValueStyle::Parameters(Box::new(style)))
}

/// A recognizer of values in a style, and their types.
fn lowered(schema: &str, style: &ValueStyle) -> (Recognizer, ValueTypes) {
    let mut builder = GrammarBuilder::new();
    let (schema, registry) = (json(schema), Registry::new());
    let (options, limits) = (SchemaOptions::default(), Limits::default());
    let source = source(&schema, &registry, &options, &limits);
    let lowered = lower_into(&mut builder, source, style).unwrap();
    (recognizer(builder, lowered.rule), lowered.types)
}

#[test]
fn raw_strings_and_other_values() {
    let schema = r#"{"type": "object", "additionalProperties": false, "required": ["s"], "properties": {
        "s": {"type": "string"}, "n": {"type": ["string", "integer", "null"]}, "e": {"enum": ["on", 3]},
        "l": {"type": "string", "minLength": 2, "maxLength": 3}}}"#;
    let (mut recognizer, types) = tagged(schema);
    assert_eq!(types.of_member("undeclared"), JsonTypes::default());
    let types_of = |name: &str| types.of_member(name);
    assert_eq!(types_of("s"), JsonTypes::STRING);
    assert_eq!(types_of("n"), JsonTypes::STRING.union(JsonTypes::INTEGER).union(JsonTypes::NULL));
    assert_eq!(types_of("e"), JsonTypes::STRING.union(JsonTypes::NUMBER));
    for good in [
        "<s>;",
        "<s>5;",
        "<s> a ;<n>5;",
        "<s>a;<n>five;",
        "<s>a;<n>null;",
        "<s>a;<n>5.5;",
        "<s>a;<e>on;<l>ab;",
        "<s>a;<e> 3 ;",
    ] {
        assert!(takes(&mut recognizer, good), "{good}");
    }
    // A whole number in a spelling that the options exclude would be read as a number.
    for bad in [
        "",
        "<n>5;",
        "<s>a",
        "<s>a;;",
        "<s>a;<n>5.0;",
        "<s>a;<n>5e2;",
        "<s>a;<e>off;",
        "<s>a;<l>a;",
        "<s>a;<l>abcd;",
        "<s>a;<x>1;",
    ] {
        assert!(!takes(&mut recognizer, bad), "{bad}");
    }
    // With a space on either side, the text is what is between the spaces.
    for (text, taken) in [
        ("<s>a;<l> ab ;", true),
        ("<s>a;<l> a;", false),
        ("<s>a;<l>  a;", true),
        ("<s>a;<l>a ;", false),
    ] {
        assert_eq!(takes(&mut recognizer, text), taken, "{text}");
    }
}

#[test]
fn kinds_of_a_name_are_those_of_all_alternatives() {
    let schema = r#"{"oneOf": [
        {"type": "object", "properties": {"a": {"type": "string"}, "k": {"const": 1}}, "required": ["a", "k"],
         "additionalProperties": false},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}]}"#;
    let (mut recognizer, types) = tagged(schema);
    assert_eq!(types.of_member("a"), JsonTypes::STRING.union(JsonTypes::INTEGER));
    assert!(takes(&mut recognizer, "<a>x;<k>1;") && takes(&mut recognizer, "<a>5;"));
    // In the first alternative, the text `5` would be read as a number.
    assert!(!takes(&mut recognizer, "<a>5;<k>1;") && !takes(&mut recognizer, "<a>x;"));
}

#[test]
fn additional_names_are_written_bare() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"},
        "patternProperties": {"^n_": {"type": "number"}}}"#;
    let (mut recognizer, types) = tagged(schema);
    assert_eq!(types.of_member("undeclared"), JsonTypes::STRING.union(JsonTypes::NUMBER));
    for (text, taken) in [
        ("<b>x;", true),
        ("<n_x>5;", true),
        ("<n_x>x;", false),
        ("<a>x;", false),
        ("<b c>x;", false),
    ] {
        assert_eq!(takes(&mut recognizer, text), taken, "{text}");
    }
}

#[test]
fn python_and_delimited_syntax() {
    let schema = r#"{"type": "object", "properties": {"s": {"type": "string"}, "e": {"enum": ["it's", null, true]},
            "p": {"type": "string", "pattern": "^[a-c]+$"}}, "required": ["s"], "additionalProperties": false}"#;
    let lower = |syntax| lowered(schema, &ValueStyle::Syntax(syntax)).0;
    let mut python = lower(ValueSyntax::Python(PythonDialect::Literals));
    for (text, taken) in [
        (r#"{'s': "it's", "e": None, 'p': 'abc'}"#, true),
        (r#"{'s': 'a\'b\n\x41\u00e9', 'e': "it's"}"#, true),
        (r#"{'s': 'x', 'e': 'it\'s'}"#, true),
        (r#"{'s': 'x', 'e': True}"#, true),
        (r#"{'s': 'x', 'e': null}"#, false),
        (r#"{'s': 'x", 'e': None}"#, false),
        (r#"{'s': 'x', 'p': 'abd'}"#, false),
        ("{'s': 'a\nb'}", false),
    ] {
        assert_eq!(takes(&mut python, text), taken, "{text}");
    }
    let mut delimited = lower(ValueSyntax::Delimited(vec![Trigger::Text(b"''".to_vec())]));
    for (text, taken) in [
        ("{s:''a \"b\" ' c'',e:null,p:''abc''}", true),
        ("{s:''a\nb''}", true),
        ("{s:''a''b''}", false),
        ("{'s':''a''}", false),
        ("{s:\"a\"}", false),
        ("{s:''x'',e:''it's''}", true),
        ("{s:''x'',p:''d''}", false),
    ] {
        assert_eq!(takes(&mut delimited, text), taken, "{text}");
    }
}

/// No spelling of a declared name is an undeclared one.
#[test]
fn undeclared_names_in_python_and_delimited_syntax() {
    let schema = r#"{"type": "object", "properties": {"key": {"type": "integer"}, "keys": {"type": "null"}}}"#;
    let lower = |syntax| lowered(schema, &ValueStyle::Syntax(syntax)).0;
    let mut python = lower(ValueSyntax::Python(PythonDialect::Literals));
    for (text, taken) in [
        ("{'key': 1, \"keys\": None}", true),
        ("{'key': 's'}", false),
        ("{\"key\": 's'}", false),
        ("{\"keys\": 's'}", false),
        (r"{'ke\x79': 's'}", false),
        (r"{'\u006bey': 's'}", false),
        ("{'': 's', 'k': 's', 'keyst': 's', 'x': 's', 'kéy': 's'}", true),
        (r"{'key\n': 's', 'x\x41': 's', 'keys\t': 's'}", true),
        (r#"{"it's": 's', 'it\'s': 's', 'a"b': 's', "a\"b": 's'}"#, true),
        (r#"{'a'b': 's'}"#, false),
    ] {
        assert_eq!(takes(&mut python, text), taken, "{text}");
    }
    let mut delimited = lower(ValueSyntax::Delimited(vec![Trigger::Text(b"''".to_vec())]));
    for (text, taken) in [
        ("{key:1,keys:null}", true),
        ("{key:''s''}", false),
        ("{keys:''s''}", false),
        ("{k:''s'',keyst:''s'',_x:''s'',ke.y-1:''s''}", true),
        ("{1:''s''}", false),
        ("{:''s''}", false),
    ] {
        assert_eq!(takes(&mut delimited, text), taken, "{text}");
    }
}

/// The texts that Python prints are values beside JSON, and what cannot be enforced there is JSON
/// only.
#[test]
fn values_as_python_prints_them() {
    let schema = r#"{"type": "object", "additionalProperties": false, "properties": {
        "b": {"type": ["boolean", "null"]}, "u": {"type": ["string", "null"]},
        "a": {"type": "array", "items": {"type": ["string", "null"], "maxLength": 2}},
        "o": {"type": "object", "properties": {"k": {"enum": [true, "it's"]}, "l": {"type": "number"}}},
        "any": {}}}"#;
    let accepted = [
        ("<b>true;", [true, true, true]),
        ("<b>True;<u>None;", [false, true, true]),
        ("<a>[\"x\",null];", [true, true, true]),
        ("<a>['x', None];", [false, false, true]),
        ("<a>[];<o>{};", [true, true, true]),
        ("<o>{'l': 1.5, 'k': True};", [false, false, true]),
        ("<o>{'k': \"it's\"};", [false, false, true]),
        ("<o>{\"x\": 1, \"y\": 2};", [true, true, true]),
        ("<any>['x', {}];", [false, false, true]),
        ("<any>{'k': 1};", [false; 3]),
        ("<any>{\"k\": 1};", [true; 3]),
        // Undeclared names are compared, which takes JSON.
        ("<o>{\"x\": 1, \"x\": 2};", [false; 3]),
        ("<o>{'x': 1};", [false; 3]),
        ("<o>{'k': 'it'};", [false; 3]),
        ("<o>{'k': true};", [false; 3]),
        ("<o>{'l': 1, 'l': 1};", [false; 3]),
        ("<a>['xyz'];", [false; 3]),
        ("<a>['x',None];", [false; 3]),
        ("<a>['x\"];", [false; 3]),
        ("<b>'x';", [false; 3]),
    ];
    for (k, python) in
        [PythonValues::None, PythonValues::Words, PythonValues::All].iter().enumerate()
    {
        let (mut recognizer, ..) = tagged_in(schema, *python, None);
        for (text, taken) in accepted {
            // A word is a string where one may stand.
            assert_eq!(takes(&mut recognizer, text), taken[k], "{text} {python:?}");
        }
        assert!(takes(&mut recognizer, "<u>None;"));
    }
    // `uniqueItems` compares JSON.
    let unique = r#"{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"},
        "uniqueItems": true}, "b": {"type": "boolean"}}, "additionalProperties": false}"#;
    let (mut recognizer, ..) = tagged_in(unique, PythonValues::All, None);
    for (text, taken) in [
        ("<a>[\"x\",\"y\"];<b>True;", true),
        ("<a>[\"x\",\"x\"];", false),
        ("<a>['x', 'x'];", false),
        ("<a>['x', 'y'];", false),
    ] {
        assert_eq!(takes(&mut recognizer, text), taken, "{text}");
    }
}

#[test]
fn raw_strings_in_quotes() {
    let schema = r#"{"type": "object", "additionalProperties": false, "properties": {
        "s": {"type": "string"}, "n": {"type": ["string", "integer"]}, "e": {"enum": ["on", 3]},
        "l": {"type": "string", "minLength": 2, "maxLength": 3}, "i": {"type": "integer"}}}"#;
    let quotes = RawQuotes { begin: b"<[".to_vec(), end: b"]>".to_vec() };
    let (mut recognizer, ..) = tagged_in(schema, PythonValues::None, Some(quotes));
    for (text, taken) in [
        ("<s>a;<n>5;", true),
        ("<s><[a;b]]>;", true),
        ("<s> <[]> ;", true),
        ("<s>a<[b]>;", true),
        ("<n><[5]>;<e><[on]>;<l><[ab]>;", true),
        ("<s><[a;", false),
        ("<s><[a]>b;", false),
        ("<s><[a]>b]>;", false),
        ("<l><[a]>;", false),
        ("<l><[abcd]>;", false),
        ("<e><[off]>;", false),
        ("<e><[3]>;", false),
        ("<i><[3]>;", false),
    ] {
        assert_eq!(takes(&mut recognizer, text), taken, "{text}");
    }
}

/// Words of JSON and of Python are the same values.
#[test]
fn python_syntax_with_the_words_of_json() {
    let schema = r#"{"type": "object", "properties": {"e": {"enum": ["null", null, true]}, "a": {"type": "array", "items": {"type": "boolean"}},
            "any": {}}, "additionalProperties": false}"#;
    let style = ValueStyle::Syntax(ValueSyntax::Python(PythonDialect::JsonWords));
    let (mut recognizer, _) = lowered(schema, &style);
    for (text, taken) in [
        ("{'e': null, \"a\": [true, False, True, false]}", true),
        ("{'e': None, 'any': [null, None, {'x': true}]}", true),
        ("{'e': 'null'}", true),
        ("{'e': 'None'}", false),
        ("{'e': false}", false),
        ("{'e': NULL}", false),
        ("{'a': [null]}", false),
        ("{'a': [tru]}", false),
    ] {
        assert_eq!(takes(&mut recognizer, text), taken, "{text}");
    }
}
