//! Values between tags that have their names: `%<name>VALUE%</name>`.

use std::sync::Arc;

use super::super::{JsonTypes, NestedStyle, SchemaErrorReason, ValueTypes};
use super::*;
use crate::ir::{GrammarBuilder, Trigger};

fn style() -> NestedStyle {
    NestedStyle { mark: vec![Trigger::Text(b"%".to_vec())], item: "item".to_owned() }
}

fn lowered(schema: &str) -> Result<(Recognizer, ValueTypes), SchemaErrors> {
    let limits = Limits::default();
    let json = Json::parse(schema, &limits).unwrap_or_else(|error| panic!("{schema}: {error}"));
    let mut builder = GrammarBuilder::new();
    let (registry, options) = (Registry::new(), SchemaOptions::default());
    let style = ValueStyle::Syntax(ValueSyntax::Nested(Box::new(style())));
    let lowered = lower_into(&mut builder, source(&json, &registry, &options, &limits), &style)?;
    let grammar = builder.finish(lowered.rule).expect("valid");
    let compiled = Compiled::new(&grammar, &limits).unwrap_or_else(|e| panic!("{schema}: {e}"));
    Ok((Recognizer::new(Arc::new(compiled)), lowered.types))
}

#[track_caller]
fn check_nested(member: &str, valid: &[&str], invalid: &[&str]) {
    let schema = format!(
        r##"{{"type": "object", "properties": {{"v": {member}}}, "required": ["v"],
           "additionalProperties": false, "$defs": {{"node": {{"type": "object",
           "properties": {{"next": {{"$ref": "#/$defs/node"}}}}, "additionalProperties": false}}}}}}"##
    );
    let (mut recognizer, _) = lowered(&schema).unwrap_or_else(|e| panic!("{member}: {e:?}"));
    for (texts, is_valid) in [(valid, true), (invalid, false)] {
        for text in texts {
            let wire = format!("%<v>{text}%</v>");
            assert_eq!(accepts(&mut recognizer, &wire), is_valid, "{member}: {wire}");
        }
    }
}

#[test]
fn leaves_are_scalars_and_unescaped_strings() {
    check_nested(r#"{"type": "string"}"#, &["", "5", "null", "a <b>\n\"", "</v>"], &["a%", "%<v>"]);
    check_nested(r#"{"type": "integer", "maximum": 9}"#, &["5", "-12"], &["", "10", "a", "1.5"]);
    check_nested(r#"{"type": ["boolean", "null"]}"#, &["true", "null"], &["", "yes", "\"\""]);
    // A text that reads as another value is that value.
    check_nested(
        r#"{"type": ["string", "integer"], "minimum": 3}"#,
        &["5", "a", "", "1.5"],
        &["2", "2.0", "5.0"],
    );
    check_nested(
        r#"{"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 4}]}"#,
        &["null", "nul", "5"],
        &["nulls"],
    );
    check_nested(r#"{"enum": ["on", "3", 4, null]}"#, &["on", "4", "null"], &["3", "", "off"]);
    check_nested(r#"{"enum": ["on", "3"]}"#, &["on", "3"], &["4"]);
    check_nested(r#"{"type": "string", "pattern": "^[a-z%]*$"}"#, &["ab", ""], &["A", "a%b"]);
}

#[test]
fn objects_and_arrays_are_tags() {
    let array = r#"{"type": "array", "items": {"type": "integer"}, "maxItems": 2}"#;
    check_nested(
        array,
        &["", "%<item>1%</item>", "%<item>1%</item>%<item>2%</item>"],
        &[
            "%<item>a%</item>",
            "%<item>1%</item>%<item>1%</item>%<item>1%</item>",
            "%<i>1%</i>",
            "[]",
        ],
    );
    check_nested(r#"{"type": "array", "minItems": 1, "items": {}}"#, &["%<item>%</item>"], &[""]);
    let object = r#"{"type": "object", "properties": {"a": {"type": "string"}, "item": {}}, "required": ["a"]}"#;
    check_nested(
        object,
        &["%<a>1%</a>", "%<item>1%</item>%<a>1%</a>", "%<a>%</a>%<b_c>x%</other>"],
        &["", "%<item>1%</item>", "%<a>1%</b>", "%<a>1</a>", "%<a>%</a>%<b c>x%</b c>", "{}"],
    );
    // Nothing is an empty array rather than an empty object, and a string rather than both.
    check_nested(
        r#"{"type": ["array", "object"], "maxItems": 0, "maxProperties": 0}"#,
        &[""],
        &["x"],
    );
    check_nested(r#"{"type": ["object", "string"], "maxLength": 0}"#, &["", "%<a>%</a>"], &["x"]);
    check_nested(r#"{"type": ["object", "string"], "minLength": 1}"#, &["x", "%<a>%</a>"], &[""]);
    // An undeclared member does not have the name of elements.
    check_nested(r#"{"type": "object"}"#, &["", "%<a>%</a>"], &["%<item>1%</item>"]);
    check_nested(
        "{}",
        &["x", "1", "", "%<item>%<a>%<item>1%</item>%</a>%</item>"],
        &["%<a>%</a>%<item>%</item>", "%</item>"],
    );
    check_nested(
        r##"{"$ref": "#/$defs/node"}"##,
        &["", "%<next>%<next>%</next>%</next>"],
        &["%<next>1%</next>", "%<next>%<next>%</next>"],
    );
    check_nested(
        r#"{"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true}"#,
        &["%<item>b%</item>%<item>a%</item>"],
        &["%<item>b%</item>%<item>b%</item>"],
    );
}

#[test]
fn types_are_known_by_place() {
    let schema = r##"{"type": "object", "properties": {
        "s": {"type": "string"},
        "t": {"type": "array", "prefixItems": [{"type": "null"}], "items": {"$ref": "#"}},
        "u": {"anyOf": [{"type": "integer"}, {"type": "object", "additionalProperties": {"type": "boolean"}}]}}}"##;
    let (_, types) = lowered(schema).expect("lowers");
    let member = |place, name| types.member(place, name);
    let root = ValueTypes::ROOT;
    assert_eq!(types.types(root), JsonTypes::OBJECT);
    assert_eq!(types.types(member(root, "s")), JsonTypes::STRING);
    assert_eq!(types.types(member(root, "other")), JsonTypes::ALL);
    let tuple = member(root, "t");
    assert_eq!(types.types(types.element(tuple, 0)), JsonTypes::NULL);
    assert_eq!(types.element(tuple, 1), root);
    assert_eq!(types.element(tuple, 2), root);
    let union = member(root, "u");
    assert_eq!(types.types(union), JsonTypes::INTEGER.union(JsonTypes::OBJECT));
    assert_eq!(types.types(member(union, "any")), JsonTypes::BOOLEAN);
    assert_eq!(types.types(member(member(root, "other"), "any")), JsonTypes::ALL);
}

#[test]
fn what_tags_do_not_tell_apart_is_refused() {
    for (member, pointer) in [
        (r#"{"const": {"a": 1}}"#, "/properties/v"),
        (r#"{"enum": [1, []]}"#, "/properties/v"),
        (r#"{"type": ["array", "object"], "properties": {"item": {}}}"#, "/properties/v"),
        (r#"{"type": "object", "properties": {"a b": {}}}"#, "/properties/v"),
        (r#"{"type": "object", "properties": {"": {}}}"#, "/properties/v"),
    ] {
        let schema = format!(r#"{{"type": "object", "properties": {{"v": {member}}}}}"#);
        let Err(SchemaErrors(errors)) = lowered(&schema) else { panic!("{member} is lowered") };
        assert!(errors.iter().any(|error| error.pointer == pointer), "{member}: {errors:?}");
        let is_refused =
            |error: &SchemaError| matches!(error.reason, SchemaErrorReason::Unsupported(_));
        assert!(errors.iter().all(is_refused), "{member}: {errors:?}");
    }
}

#[test]
fn undeclared_members_have_the_types_of_their_schemas() {
    let patterns = r#""patternProperties": {"^x": {"type": "string"}}, "additionalProperties""#;
    check_nested(
        &format!(r#"{{"type": "object", {patterns}: false}}"#),
        &["%<x1>5%</x1>", "%<x>a%</x>"],
        &["%<y>a%</y>"],
    );
    // A reader expects the types of all undeclared members.
    check_nested(
        &format!(r#"{{"type": "object", {patterns}: {{"type": "integer"}}}}"#),
        &["%<x1>a%</x1>", "%<y>5%</y>"],
        &["%<x1>5%</x1>", "%<y>a%</y>"],
    );
}

/// A reader knows the types of a place, not the alternative: it expects the types of all.
#[test]
fn alternatives_may_differ_in_types() {
    let branch = |constant: &str, x: &str| {
        format!(
            r#"{{"type": "object", "properties": {{"k": {{"const": "{constant}"}}, "x": {x}}},
               "required": ["k", "x"], "additionalProperties": false}}"#
        )
    };
    let check = |[a, b]: [&str; 2], valid: &[&str], invalid: &[&str]| {
        let member = format!(r#"{{"oneOf": [{}, {}]}}"#, branch("a", a), branch("b", b));
        let wire = |text: &&str| {
            let (k, x) = text.split_at(1);
            format!("%<k>{k}%</k>%<x>{x}%</x>")
        };
        let [valid, invalid] =
            [valid, invalid].map(|texts| texts.iter().map(wire).collect::<Vec<_>>());
        let texts = [&valid, &invalid].map(|texts| texts.iter().map(|t| &**t).collect::<Vec<_>>());
        check_nested(&member, &texts[0], &texts[1]);
    };
    let string = r#"{"type": "string"}"#;
    check([string, r#"{"type": "string", "maxLength": 1}"#], &["a12", "b1"], &["b12"]);
    check([string, r#"{"type": "integer"}"#], &["ay", "a", "a1x", "b5"], &["a5", "by", "b"]);
    // No text is the empty string, so the empty object cannot be written.
    let object = r#"{"type": "object", "additionalProperties": {"type": "boolean"}}"#;
    check([string, object], &["a", "a{}", "b%<z>true%</z>"], &["b", "b{}", "a%<z>true%</z>"]);
    // No text is the empty array here.
    let array = r#"{"type": "array", "items": {"type": "null"}}"#;
    check([array, object], &["a", "a%<item>null%</item>", "b%<z>true%</z>"], &["b"]);
    check(["true", array], &["ay", "a5", "b%<item>null%</item>"], &["b", "b5"]);
    let enumeration = r#"{"enum": ["on", "3"]}"#;
    check([enumeration, r#"{"type": ["integer", "null"]}"#], &["aon", "b3"], &["a3", "bon"]);
    // The same schema elsewhere does not expect numbers.
    check_nested(
        &format!(
            r#"{{"type": "array", "minItems": 1, "prefixItems": [{string}], "items": false}}"#
        ),
        &["%<item>5%</item>"],
        &[],
    );
    // Elements that must or must not be a string are read alike.
    check_nested(
        r#"{"type": "array", "contains": {"type": "string"}}"#,
        &["%<item>a%</item>", "%<item>5%</item>%<item>a%</item>", "%<item>%</item>"],
        &["", "%<item>5%</item>"],
    );
}
