//! `uniqueItems`.

use super::check;

#[test]
fn elements_differ_by_value() {
    let valid = [
        "[]",
        r#"["a"]"#,
        r#"["a", "b", "A", "", "aa"]"#,
        "[1, 2, 10, 0.1, -1, 1e1234]",
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
fn scopes_nest() {
    let schema = r#"{"type": "array", "uniqueItems": true, "items": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}"#;
    check(
        schema,
        &[r#"[["a", "b"], ["b", "a"], ["a"], []]"#],
        &[r#"[["a", "a"]]"#, r#"[["a", "b"], ["c"], ["a", "b"]]"#, r#"[[], []]"#, r#"[["a"], ["b", "c", "b"]]"#],
    );
    // Inside of an element that is no list, elements are not those of the list around.
    let schema = r#"{"type": "array", "uniqueItems": true, "items": {"type": "object", "properties": {"l": {"type": "array"}}}}"#;
    check(schema, &[r#"[{"l": [1, 1]}, {"l": [1]}, {"l": [1, 1, 1]}]"#], &[r#"[{"l": [1, 1]}, {"l": [1, 1]}]"#]);
    let schema = r##"{"type": "array", "uniqueItems": true, "items": {"type": ["array", "string"], "$ref": "#/$defs/x"}, "$defs": {"x": {"uniqueItems": true, "items": {"$ref": "#/$defs/x"}}}}"##;
    check(schema, &["[]", r#"[[], [[]], [[[]], []], "a"]"#], &["[[], []]", "[[[[], []]]]", "[[[], [[]]], [[], [[]]]]"]);
}

#[test]
fn there_are_no_more_elements_than_values() {
    let letters: Vec<String> = (b'a'..=b'z').map(|c| format!("\"{}\"", char::from(c))).collect();
    let all = format!("[{}]", letters.join(", "));
    let schema = format!(r#"{{"type": "array", "uniqueItems": true, "minItems": 26, "items": {{"enum": {all}}}}}"#);
    let (mut twice, mut backwards) = (letters.clone(), letters.clone());
    twice[25] = "\"a\"".to_owned();
    backwards.reverse();
    check(&schema, &[&all, &format!("[{}]", backwards.join(","))], &[&format!("[{}]", twice.join(", ")), r#"["a"]"#]);
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
}
