//! The strict profile of OpenAI: its table in docs/JSON_SCHEMA.md, row by row.

use std::fmt::Write;

use louver::front::json_schema::openai_strict;
use louver::limits::Limits;
use louver::spec::json::Json;
use serde::Deserialize;

use super::support::{part_is, rows};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    what: String,
    rule: String,
    /// Schemas of one property, called `p`.
    #[serde(default)]
    taken: Vec<String>,
    /// Such schemas, where something is wrong, and what.
    #[serde(default)]
    refused: Vec<(String, String, String)>,
    /// Whole schemas.
    #[serde(default)]
    taken_root: Vec<String>,
    #[serde(default)]
    refused_root: Vec<(String, String, String)>,
}

fn around(schema: &str) -> String {
    format!(
        r#"{{"type": "object", "properties": {{"p": {schema}}}, "required": ["p"], "additionalProperties": false}}"#
    )
}

fn errors(schema: &str) -> Vec<(String, String)> {
    let json = Json::parse(schema, &Limits::default()).unwrap_or_else(|e| panic!("{e}: {schema}"));
    openai_strict(&json).into_iter().map(|error| (error.pointer, error.message)).collect()
}

#[test]
fn the_table_of_the_strict_profile_is_true() {
    let rows: Vec<Row> = rows("tests/schema/profile.toml");
    let mut out = "| | strict mode |\n|---|---|\n".to_owned();
    for row in &rows {
        let taken =
            row.taken.iter().map(|schema| around(schema)).chain(row.taken_root.iter().cloned());
        let taken: Vec<String> = taken.collect();
        let inner = row
            .refused
            .iter()
            .map(|(schema, at, why)| (around(schema), format!("/properties/p{at}"), why));
        let whole =
            row.refused_root.iter().map(|(schema, at, why)| (schema.clone(), at.clone(), why));
        let refused: Vec<_> = inner.chain(whole).collect();
        assert!(taken.len() + refused.len() > 0, "{}: nothing is checked", row.what);
        for schema in &taken {
            assert_eq!(errors(schema), [], "{}: {schema}", row.what);
        }
        for (schema, pointer, message) in &refused {
            let found = errors(schema);
            let is = |(at, what): &(String, String)| at == pointer && what == *message;
            assert!(found.iter().any(is), "{}: {schema}: {found:?}", row.what);
        }
        let _ = writeln!(out, "| {} | {} |", row.what, row.rule);
    }
    part_is("profile", &out);
}

#[test]
fn limits_of_the_strict_profile_are_counted() {
    let nested =
        |n: usize| (0..n).fold(r#"{"type": "null"}"#.to_owned(), |inner, _| around(&inner));
    assert_eq!(errors(&nested(10)), []);
    assert!(errors(&nested(11))[0].1.contains("11 levels of nesting exceeds limit of 10"));
    let object = |names: &[String]| {
        let properties: Vec<String> =
            names.iter().map(|name| format!(r#""{name}": {{"type": "null"}}"#)).collect();
        let required: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        format!(
            r#"{{"type": "object", "properties": {{{}}}, "required": [{}], "additionalProperties": false}}"#,
            properties.join(","),
            required.join(",")
        )
    };
    let names =
        |n: usize, length: usize| (0..n).map(|i| format!("{i:0length$}")).collect::<Vec<_>>();
    assert_eq!(errors(&object(&names(5_000, 5))), []);
    assert_eq!(
        errors(&object(&names(5_001, 5)))[0].1,
        "schema has 5001 properties; at most 5000 are permitted."
    );
    assert_eq!(errors(&object(&names(100, 1_200))), []);
    assert!(errors(&object(&names(100, 1_201)))[0].1.starts_with("schema has 120100 characters"));
    let list = |n: usize, length: usize| {
        around(&format!(r#"{{"type": "string", "enum": {:?}}}"#, names(n, length)))
    };
    assert_eq!(errors(&list(1_000, 15)), []);
    assert!(errors(&list(1_001, 4))[0].1.starts_with("schema has 1001 enum values"));
    assert_eq!(errors(&list(250, 400)), []);
    assert!(errors(&list(251, 60))[0].1.contains("at most 15000 characters"));
    let shown =
        Json::parse(&around(r#"{"not": {}, "type": "null"}"#), &Limits::default()).expect("JSON");
    let shown: Vec<String> = openai_strict(&shown).iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["Invalid schema: In context=('properties', 'p'), 'not' is not permitted."]);
}
