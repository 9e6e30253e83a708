//! Tests of `uniqueItems`, and of distinct names of members.

use super::{accepts, check, check_with, recognizer_with};
use crate::front::json_schema::{
    AdditionalNames, MemberOrder, SchemaErrorReason, SchemaOptions, UniqueItems, lower,
};
use crate::limits::Limits;
use crate::spec::json::Json;

#[test]
fn unique_items_option_can_refuse_containers() {
    let limits = Limits::default();
    for (items, scalars) in [
        ("{}", false),
        (r#"{"type": ["string", "array"]}"#, false),
        (r#"{"type": ["string", "null", "number"]}"#, true),
    ] {
        let schema = format!(r#"{{"type": "array", "uniqueItems": true, "items": {items}}}"#);
        let schema = Json::parse(&schema, &limits).unwrap();
        let only_scalars =
            SchemaOptions { unique_items: UniqueItems::Scalars, ..SchemaOptions::default() };
        let refused = lower(&schema, &only_scalars, &limits).err();
        assert_eq!(
            refused.as_ref().map(|e| e.0[0].pointer.as_str()),
            (!scalars).then_some("/uniqueItems")
        );
        assert!(lower(&schema, &SchemaOptions::default(), &limits).is_ok());
    }
}

#[test]
fn elements_differ_by_value() {
    let valid = [
        "[]",
        r#"["a"]"#,
        r#"["a", "b", "A", "", "aa"]"#,
        "[1, 2, 10, 0.1, -1, 1e123]",
        r#"[1, "1", true, null, [], {}, [1], ["1"], {"a": 1}, {"a": "1"}]"#,
        r#"[{"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}]"#,
        "[[1, 2], [2, 1], [1], [[1]], [[2]]]",
        r#"[{"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}]"#,
        r#"["é", "e\u0301"]"#,
    ];
    let invalid = [
        r#"["a", "b", "a"]"#,
        r#"["a", "\u0061"]"#,
        r#"["/", "\/"]"#,
        r#"["😀", "\ud83d\ude00"]"#,
        "[1, 1.0]",
        "[100, 2, 100.00]",
        "[0, -0]",
        "[0, 0.0]",
        "[true, true]",
        "[null, 1, null]",
        "[[], []]",
        "[[1, 2], [1,2.0]]",
        r#"[{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]"#,
        r#"[{}, {}]"#,
        r#"[["a"], [ "a" ]]"#,
    ];
    check(r#"{"type": "array", "uniqueItems": true}"#, &valid, &invalid);
    check(r#"{"type": "array", "uniqueItems": true, "items": {}}"#, &valid, &invalid);
}

#[test]
fn unique_arrays_nest() {
    let schema = r#"{"type": "array", "uniqueItems": true, "items": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}"#;
    check(
        schema,
        &[r#"[["a", "b"], ["b", "a"], ["a"], []]"#],
        &[
            r#"[["a", "a"]]"#,
            r#"[["a", "b"], ["c"], ["a", "b"]]"#,
            r#"[[], []]"#,
            r#"[["a"], ["b", "c", "b"]]"#,
        ],
    );
    // Lists inside an object are not compared with the elements of the outer list.
    let schema = r#"{"type": "array", "uniqueItems": true, "items": {"type": "object", "properties": {"l": {"type": "array"}}}}"#;
    check(
        schema,
        &[r#"[{"l": [1, 1]}, {"l": [1]}, {"l": [1, 1, 1]}]"#],
        &[r#"[{"l": [1, 1]}, {"l": [1, 1]}]"#],
    );
    let schema = r##"{"type": "array", "uniqueItems": true, "items": {"type": ["array", "string"], "$ref": "#/$defs/x"}, "$defs": {"x": {"uniqueItems": true, "items": {"$ref": "#/$defs/x"}}}}"##;
    check(
        schema,
        &["[]", r#"[[], [[]], [[[]], []], "a"]"#],
        &["[[], []]", "[[[[], []]]]", "[[[], [[]]], [[], [[]]]]"],
    );
}

#[test]
fn unique_arrays_have_at_most_as_many_elements_as_values() {
    let letters: Vec<String> = (b'a'..=b'z').map(|c| format!("\"{}\"", char::from(c))).collect();
    let all = format!("[{}]", letters.join(", "));
    let schema = format!(
        r#"{{"type": "array", "uniqueItems": true, "minItems": 26, "items": {{"enum": {all}}}}}"#
    );
    let (mut twice, mut backwards) = (letters.clone(), letters.clone());
    twice[25] = "\"a\"".to_owned();
    backwards.reverse();
    check(
        &schema,
        &[&all, &format!("[{}]", backwards.join(","))],
        &[&format!("[{}]", twice.join(", ")), r#"["a"]"#],
    );
    check(
        r#"{"type": "array", "uniqueItems": true, "items": {"type": "integer", "minimum": 1, "maximum": 20}}"#,
        &["[1, 2, 3]", "[20, 2, 1, 10, 11]"],
        &["[1, 1]", "[1, 1.0]", "[21]", "[2, 10, 2]"],
    );
    check(
        r#"{"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^[a-d]{2}$"}, "minItems": 2}"#,
        &[r#"["aa", "ab"]"#],
        &[r#"["aa", "aa"]"#, r#"["aa"]"#],
    );
    check(
        r#"{"prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": {"type": ["boolean", "integer"]}, "uniqueItems": true, "type": "array"}"#,
        &[r#"["a", true, 1, false, 2]"#],
        &[r#"["a", true, 1, true]"#, "[true]", r#"["a", true, 1, 1]"#],
    );
    // The first elements may be some of the values of the others, but there are enough of these.
    let schema = r#"{"type": "array", "uniqueItems": true, "maxItems": 100,
        "prefixItems": [{"type": ["string", "integer"]}],
        "items": {"type": "integer", "minimum": 1, "maximum": 100}}"#;
    check(
        schema,
        &["[]", "[5, 1, 2]", r#"["a", 5, 100]"#],
        &["[5, 5]", r#"["a", 5, 5]"#, r#"["a", "b"]"#],
    );
    // Advice on `maxItems` is given where it helps, with the number.
    let more = schema.replacen("\"maxItems\": 100", "\"maxItems\": 101", 1);
    let inner = r#"{"type": "array", "items": {"type": "boolean"}, "maxItems": 2}"#;
    let unknown = format!(r#"{{"items": {inner}, "uniqueItems": true, "maxItems": 5}}"#);
    for (schema, advice) in [(more, "`maxItems` of this array to at most 100"), (unknown, "list")] {
        let schema = Json::parse(&schema, &Limits::default()).unwrap();
        let error = lower(&schema, &SchemaOptions::default(), &Limits::default()).err().unwrap();
        let text = error.0[0].to_string();
        assert!(text.contains(advice), "{text}");
        assert!(advice != "list" || !text.contains("maxItems"), "{text}");
    }
}

#[test]
fn parts_without_a_value_leave_few_distinct_elements() {
    let valueless = r#"{"type": "object", "required": ["a"], "properties": {"a": false}}"#;
    let of_itself =
        r##"{"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/x"}}}"##;
    for part in [
        valueless,
        of_itself,
        r##"{"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 1}"##,
    ] {
        for (items, elements) in [
            (r#"{"type": "array", "items": PART}"#, &["[]"][..]),
            (r#"{"type": ["array", "boolean"], "items": PART}"#, &["[]", "true", "false"]),
            (r#"{"type": "array", "prefixItems": [PART], "items": true}"#, &["[]"]),
            (r#"{"type": "object", "additionalProperties": PART}"#, &["{}"]),
            (
                r#"{"type": "object", "properties": {"b": PART, "c": {"const": 1}}, "additionalProperties": PART}"#,
                &["{}", r#"{"c":1}"#],
            ),
            (
                r#"{"type": "array", "items": {"anyOf": [PART, {"type": "array", "items": PART, "minItems": 2}]}}"#,
                &["[]"],
            ),
        ] {
            let items = items.replace("PART", r##"{"$ref": "#/$defs/x"}"##);
            let schema = format!(
                r#"{{"type": "array", "uniqueItems": true, "items": {items}, "$defs": {{"x": {part}}}}}"#
            );
            let mut recognizer = recognizer_with(&schema, &SchemaOptions::default());
            let all = format!("[{}", elements.join(","));
            assert!(accepts(&mut recognizer, &format!("{all}]")), "{schema}");
            recognizer.reset();
            recognizer.push(all.as_bytes()).unwrap();
            assert!(!recognizer.allowed().contains(b','), "{all}, {schema}");
        }
    }
}

#[test]
fn values_of_overlapping_texts_are_counted_once() {
    check(
        r#"{"type": "array", "uniqueItems": true, "items": {"anyOf": [
            {"enum": ["ES5", "DOM"]}, {"type": "string", "pattern": "^[Ee][Ss][56]$"}]}}"#,
        &[r#"["ES5","DOM","es5","eS6"]"#, "[]", r#"["DOM"]"#],
        &[r#"["ES5","DOM","ES5"]"#, r#"["es6","es6"]"#, r#"["es7"]"#],
    );
    check(
        r#"{"type": "array", "uniqueItems": true, "minItems": 3, "items": {"anyOf": [
            {"enum": ["a", "b"]}, {"type": "string", "pattern": "^[bc]$"}]}}"#,
        &[r#"["a","b","c"]"#, r#"["c","a","b"]"#],
        &[r#"["a","b"]"#, r#"["a","b","b"]"#, r#"["a","b","c","b"]"#],
    );
}

#[test]
fn additional_names_are_distinct() {
    let differ = SchemaOptions::default();
    for order in [MemberOrder::Declared, MemberOrder::Any, MemberOrder::Fixed] {
        let options = SchemaOptions { order, ..differ };
        check_with(
            r#"{"properties": {"a": {}, "b": {}}, "type": "object"}"#,
            &options,
            &[r#"{"a": 1, "b": 1, "c": {"c": 1, "d": 1}, "d": {"c": 1}, "cc": 1, "": 1}"#, "{}"],
            &[
                r#"{"c": 1, "c": 1}"#,
                r#"{"c": 1, "d": [{}], "\u0063": 2}"#,
                r#"{"c": {"x": 1, "x": 2}}"#,
                r#"{"a": 1, "": 1, "": 2}"#,
            ],
        );
        check_with(
            r#"{"type": "object", "additionalProperties": {"type": ["integer", "object"]}, "maxProperties": 3, "minProperties": 1}"#,
            &options,
            &[r#"{"a": 1, "b": {"a": 1, "b": 2}, "c": 2}"#],
            &["{}", r#"{"a": 1, "b": 1, "c": 1, "d": 1}"#, r#"{"a": 1, "b": 2, "a": 3}"#],
        );
    }
    // Names that match patterns; one pattern has only two names.
    check_with(
        r#"{"type": "object", "additionalProperties": false, "patternProperties": {"^[ab]$": {}, "^x": {}}}"#,
        &differ,
        &[r#"{"a": 1, "b": 1, "x": 1, "xx": 1, "xa": 2}"#],
        &[r#"{"a": 1, "a": 1}"#, r#"{"x": 1, "xx": 1, "x": 1}"#, r#"{"c": 1}"#],
    );
    // With finitely many names, no comma follows the last one.
    let schema =
        r#"{"type": "object", "additionalProperties": false, "patternProperties": {"^[ab]$": {}}}"#;
    check_with(schema, &differ, &[r#"{"a": 1, "b": 1}"#], &[r#"{"c": 1}"#, r#"{"a": 1, "a": 1}"#]);
    let mut recognizer = recognizer_with(schema, &differ);
    assert!(recognizer.push(br#"{"a": 1, "b": 1"#).is_ok());
    assert!(recognizer.push(b",").is_err());
    // Too many names to declare each. A lower bound that cannot be guaranteed is refused.
    let many = r#"{"type": "object", "additionalProperties": false, "patternProperties": {"^[a-z]{2}$": {}}}"#;
    check_with(
        many,
        &differ,
        &[r#"{"aa": 1, "ab": 1, "zz": {}}"#],
        &[r#"{"ab": 1, "zz": 1, "ab": 1}"#, r#"{"abc": 1}"#],
    );
    let bounded =
        many.replace("{\"type\"", "{\"minProperties\": 3, \"type\"").replace("{2}", "{3}");
    let schema = Json::parse(&bounded, &Limits::default()).expect("JSON");
    let errors =
        lower(&schema, &differ, &Limits::default()).expect_err("a bound that is not reached");
    assert_eq!(errors.iter().map(|error| &*error.pointer).collect::<Vec<_>>(), ["/minProperties"]);
    let repeating = SchemaOptions { additional_names: AdditionalNames::MayRepeat, ..differ };
    check_with(many, &repeating, &[r#"{"ab": 1, "zz": 1, "ab": 1}"#], &[r#"{"abc": 1}"#]);
    check_with("{}", &repeating, &[r#"{"a": 1, "a": 1}"#], &[]);
    // Elements that are objects are compared by their members.
    check_with(
        r#"{"type": "array", "uniqueItems": true, "items": {"type": "object"}}"#,
        &SchemaOptions::default(),
        &[r#"[{"a": 1, "b": 2}, {"a": 1}, {"b": 1, "a": 2}]"#],
        &[r#"[{"a": 1, "b": 2}, {"b": 2, "a": 1}]"#, r#"[{"a": 1, "a": 2}]"#],
    );
}

#[test]
fn min_properties_counts_distinct_names() {
    // Whatever is declared beside them, and in whatever order.
    check(
        r#"{"properties": {"a": {}, "b": {}}, "required": ["a"], "minProperties": 3}"#,
        &[r#"{"a": 1, "x": 1, "y": 1}"#, r#"{"x": 1, "y": 1, "a": 1}"#],
        &[
            r#"{"a": 1, "x": 1}"#,
            r#"{"a": 1, "x": 1, "x": 1}"#,
            r#"{"a": 1, "x": 1, "\u0078": 1}"#,
            r#"{"x": 1, "y": 1, "z": 1}"#,
        ],
    );
    check(
        r#"{"type": "object", "minProperties": 3, "additionalProperties": false, "patternProperties": {"^[a-d]$": {}}}"#,
        &[r#"{"a": 1, "c": 1, "b": 1}"#, r#"{"a": 1, "b": 1, "c": 1, "d": 1}"#],
        &[
            "{}",
            r#"{"a": 1, "b": 1}"#,
            r#"{"a": 1, "b": 1, "a": 1}"#,
            r#"{"a": 1, "b": 1, "c": 1, "e": 1}"#,
        ],
    );
    for order in [MemberOrder::Declared, MemberOrder::Any, MemberOrder::Fixed] {
        let options = SchemaOptions { order, ..SchemaOptions::default() };
        check_with(
            r#"{"type": "object", "minProperties": 3}"#,
            &options,
            &[r#"{"a": 1, "b": 1, "c": 1}"#, r#"{"a": 1, "b": 1, "c": 1, "d": {"a": 1}}"#],
            &[
                "{}",
                r#"{"a": 1, "b": 1}"#,
                r#"{"a": 1, "b": 1, "a": 1}"#,
                r#"{"a": 1, "b": 1, "\u0062": 1}"#,
            ],
        );
        check_with(
            r#"{"type": "object", "properties": {"p": {}, "q": {}}, "required": ["q"], "minProperties": 4, "maxProperties": 5}"#,
            &options,
            &[
                r#"{"p": 1, "q": 1, "a": 1, "b": 1}"#,
                r#"{"q": 1, "a": 1, "b": 1, "c": 1}"#,
                r#"{"q": 1, "a": 1, "b": 1, "c": 1, "d": 1}"#,
            ],
            &[
                r#"{"p": 1, "q": 1, "a": 1}"#,
                r#"{"p": 1, "q": 1, "a": 1, "a": 1}"#,
                r#"{"p": 1, "a": 1, "b": 1, "c": 1}"#,
                r#"{"q": 1, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1}"#,
            ],
        );
    }
}

#[test]
fn contains_combines_with_unique_items() {
    check(
        r#"{"type": "array", "items": {"type": "string"}, "contains": {"minLength": 2}, "uniqueItems": true}"#,
        &[r#"["aa"]"#, r#"["a", "bb", "b", "cc"]"#],
        &["[]", r#"["a"]"#, r#"["aa", "aa"]"#, r#"["a", "bb", "a"]"#],
    );
    // The only value that is counted can occur once.
    let one = r#"{"type": "array", "contains": {"const": 1}, "uniqueItems": true, "minItems": 3}"#;
    check(
        one,
        &["[1, 2, 3]", "[2, [1], {}, 1]"],
        &["[1, 2]", "[2, 3, 4]", "[1, 2, 1]", "[1, 2, 1.0]"],
    );
    check(
        r#"{"type": "array", "contains": {"enum": [1, 2, 3]}, "minContains": 2, "maxContains": 2, "uniqueItems": true, "maxItems": 4}"#,
        &["[1, 2]", "[4, 3, 1, 0]", "[1, 4, 5, 2]"],
        &["[1]", "[1, 1]", "[1, 2, 3]", "[4, 5, 6, 1]", "[4, 4, 1, 2]", "[1, 2, 4, 5, 6]"],
    );
    check(
        r#"{"type": "array", "items": {"type": "object"}, "contains": {"required": ["a"]}, "minContains": 2, "uniqueItems": true}"#,
        &[r#"[{"a": 1}, {"a": 2}]"#, r#"[{}, {"a": 1}, {"b": 1}, {"b": 1, "a": 1}]"#],
        &[r#"[{"a": 1}]"#, r#"[{"a": 1}, {"a": 1.0}]"#, r#"[{"a": 1}, {"b": 1}]"#],
    );
    // Too many values for a graph of sets.
    let values: Vec<String> = (0..40).map(|i| i.to_string()).collect();
    check(
        &format!(
            r#"{{"type": "array", "items": {{"enum": [{}]}}, "contains": {{"enum": [3, 4, 5]}}, "minContains": 3, "uniqueItems": true}}"#,
            values.join(", ")
        ),
        &["[3, 4, 5]", "[1, 5, 4, 2, 3]", "[3, 4, 6, 5, 7]"],
        &["[3, 4]", "[3, 4, 4]", "[3, 4, 5, 5]", "[3, 3, 3]", "[1, 2, 6]", "[3, 4, 5, 40]"],
    );
    // None may be counted: a constraint on each element, so that only one kind is counted.
    let kinds: Vec<String> = (0..18).map(|i| format!("\"k{i}\"")).collect();
    let none = [
        r#""not": {"contains": {"const": "k2"}}"#,
        r#""allOf": [{"contains": {"const": "k2"}, "minContains": 0, "maxContains": 0}]"#,
    ];
    for none in none {
        check(
            &format!(
                r#"{{"type": "array", "items": {{"enum": [{}]}}, "contains": {{"const": "k1"}}, "uniqueItems": true, {none}}}"#,
                kinds.join(", ")
            ),
            &[r#"["k1"]"#, r#"["k17", "k0", "k1", "k3"]"#],
            &["[]", r#"["k3"]"#, r#"["k1", "k1"]"#, r#"["k1", "k2"]"#, r#"["k1", "x"]"#],
        );
    }
    let limits = Limits::default();
    for few in [
        r#"{"type": "array", "contains": {"const": 1}, "minContains": 2, "uniqueItems": true}"#,
        r#"{"type": "array", "allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}], "maxItems": 3, "uniqueItems": true}"#,
    ] {
        let schema = Json::parse(few, &limits).unwrap();
        let errors = lower(&schema, &SchemaOptions::default(), &limits).expect_err(few);
        assert_eq!(errors.0[0].pointer, "/uniqueItems", "{few}");
    }
}

#[test]
fn eight_values_are_counted_together() {
    let contains = |n: u32| {
        let all: Vec<String> =
            (0..n).map(|i| format!("{{\"contains\":{{\"const\":{i}}}}}")).collect();
        format!("{{\"type\":\"array\",\"allOf\":[{}]}}", all.join(","))
    };
    check(
        &contains(8),
        &["[7, 6, 5, 4, 3, 2, 1, 0]", "[0, 0, 1, 2, 9, 3, 4, 5, 6, 7, []]"],
        &["[]", "[0, 1, 2, 3, 4, 5, 6]", "[0, 1, 2, 3, 4, 5, 6, 8]"],
    );
    let limits = Limits::default();
    let schema = Json::parse(&contains(9), &limits).unwrap();
    let errors = lower(&schema, &SchemaOptions::default(), &limits).expect_err("too many");
    assert!(matches!(errors.0[0].reason, SchemaErrorReason::Limit(_)), "{errors}");
}

#[test]
fn no_comma_follows_the_last_possible_element() {
    // The number of objects is not counted, but no comma follows the last possible one.
    let schema = r#"{"type": "array", "uniqueItems": true, "items": {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": false}}"#;
    check(
        schema,
        &["[]", r#"[{}, {"a": true}, {"a": false}]"#, r#"[{"a": false}, {}]"#],
        &[r#"[{}, {}]"#, r#"[{"a": true}, {"a" : true}]"#],
    );
    let mut recognizer = recognizer_with(schema, &SchemaOptions::default());
    assert!(recognizer.push(br#"[{}, {"a": true}, "#).is_ok());
    assert!(recognizer.push(br#"{"a": false}"#).is_ok());
    assert!(recognizer.push(b",").is_err());
}

/// `uniqueItems` negated: elements from a small set, and beside `uniqueItems`.
#[test]
fn negated_unique_items_need_two_equal_elements() {
    check(
        r#"{"type": "array", "items": {"enum": [1, "a", null]}, "not": {"uniqueItems": true}}"#,
        &["[1, 1]", r#"["a", 1, "a"]"#, r#"[null, null, 1, "a"]"#, "[1, 1, 1, 1, 1]"],
        &["[]", "[1]", r#"[1, "a"]"#, r#"[1, "a", null]"#, "[1, 2, 2]", "[2, 2]"],
    );
    check(
        r#"{"type": "array", "items": {"enum": [1, 2, 3]}, "contains": {"const": 3}, "maxContains": 1, "maxItems": 3, "not": {"uniqueItems": true}}"#,
        &["[1, 3, 1]", "[3, 2, 2]", "[1, 1, 3]"],
        &["[3, 3, 1]", "[1, 1]", "[1, 1, 2]", "[1, 2, 3]", "[1, 1, 3, 2]"],
    );
    check(
        r#"{"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 2}, "minItems": 4, "not": {"uniqueItems": true}}"#,
        &["[1, 2, 2, 2]", "[1, 2, 2, 2, 2]"],
        &["[1, 2]", "[1, 2, 2]", "[1, 1, 2, 2]", "[1, 2, 2, 1]"],
    );
    check(
        r#"{"oneOf": [{"type": "array", "minItems": 1, "uniqueItems": true, "items": {"type": "integer"}},
            {"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": true, "items": {"type": ["integer", "string"]}}]}"#,
        &["[1]", "[1, 2, 3]", r#"[1, "a"]"#, r#"["a", "b"]"#],
        &["[]", "[1, 2]", "[1, 1]", r#"["a"]"#, r#"["a", "a"]"#, "[1, 2, 1]"],
    );
    // No two positions have a common value.
    check(
        r#"{"if": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "items": false, "not": {"uniqueItems": true}}, "then": false}"#,
        &["[]", r#"["a", null]"#, "[1, 1]", "2"],
        &[],
    );
}

#[test]
fn bounded_multiples_are_counted() {
    // Eleven values: all of them, and no more.
    let schema = r#"{"type": "array", "uniqueItems": true,
        "items": {"type": "integer", "multipleOf": 3, "minimum": 0, "maximum": 30}}"#;
    let all = "[0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30]";
    let more = all.replace(']', ", 33]");
    check(
        schema,
        &["[]", "[3]", "[30, 0, 27]", all],
        &["[3, 3]", "[4]", "[33]", "[0, 0.0]", &more],
    );
    for (items, count) in [
        (r#""multipleOf": 0.5, "minimum": 0.25, "exclusiveMaximum": 2"#, 3),
        (r#""multipleOf": 2, "allOf": [{"multipleOf": 3}], "minimum": -9, "maximum": 9"#, 3),
        (r#""type": "integer", "minimum": 0.5, "maximum": 2000.5"#, 2000),
        (r#""type": "integer", "multipleOf": 1e3, "minimum": 0, "maximum": 1e4"#, 11),
        (r#""multipleOf": 100, "minimum": -100, "exclusiveMaximum": 1e2"#, 2),
        (r#""type": "integer", "multipleOf": 0.3, "minimum": -7, "maximum": 7"#, 5),
    ] {
        // No array has more elements than there are values.
        for (min, is_possible) in [(count, true), (count + 1, false)] {
            let schema = format!(
                r#"{{"type": "array", "uniqueItems": true, "minItems": {min},
                    "items": {{"type": "number", {items}}}}}"#
            );
            let schema = schema.replace(r#""type": "number", "type""#, r#""type""#);
            let schema = Json::parse(&schema, &Limits::default()).unwrap();
            let lowered = lower(&schema, &SchemaOptions::default(), &Limits::default());
            assert_eq!(lowered.is_ok(), is_possible, "{items} {min}: {:?}", lowered.err());
        }
    }
}
