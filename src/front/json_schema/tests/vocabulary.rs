//! Tests of `$vocabulary`.

use std::sync::Arc;

use super::accepts;
use crate::compile::Compiled;
use crate::front::json_schema::{Formats, Registry, SchemaOptions, lower_reported};
use crate::limits::Limits;
use crate::matcher::Recognizer;
use crate::spec::json::Json;

#[test]
fn keywords_outside_the_vocabularies_are_annotations() {
    let limits = Limits::default();
    let parse = |text: &str| Json::parse(text, &limits).unwrap();
    let mut registry = Registry::new();
    let vocabulary = |names: &[&str]| {
        let entries = names
            .iter()
            .map(|name| format!(r#""https://json-schema.org/draft/2020-12/vocab/{name}":true"#));
        entries.collect::<Vec<_>>().join(",")
    };
    let mut metaschema = |name: &str, vocabularies: String| {
        let text = format!(r#"{{"$vocabulary":{{{vocabularies},"http://x/optional":false}}}}"#);
        registry.insert(format!("http://x/{name}"), parse(&text));
    };
    metaschema("applicator", vocabulary(&["core", "applicator"]));
    metaschema("validation", vocabulary(&["core", "validation"]));
    metaschema("format", vocabulary(&["core", "validation", "format-assertion"]));
    metaschema("required", vocabulary(&["core"]) + r#","http://x/strange":true"#);
    let annotate = SchemaOptions { formats: Formats::Annotate, ..SchemaOptions::default() };
    let lower =
        |schema: &str| lower_reported(super::source(&parse(schema), &registry, &annotate, &limits));
    for (schema, valid, invalid) in [
        (
            r#"{"$schema":"http://x/applicator","type":"null","properties":{"a":{"minimum":1},"b":false},"contains":{},"minContains":2}"#,
            &[r#"{"a":0}"#, "1", "[1]"][..],
            &[r#"{"b":1}"#, "[]"][..],
        ),
        (
            r#"{"$schema":"http://x/validation","type":"object","properties":{"a":false},"not":{},"format":"ipv4","required":["a"]}"#,
            &[r#"{"a":1}"#],
            &["{}", "1"],
        ),
        (r#"{"$schema":"http://x/format","format":"ipv4"}"#, &["\"1.2.3.4\"", "1"], &["\"a\""]),
        // An embedded resource has its own vocabularies, and its subschemas have those.
        (
            r#"{"properties":{"a":{"$id":"http://x/inner","$schema":"http://x/applicator","items":{"type":"null"}},"b":{"type":"null"}}}"#,
            &[r#"{"a":[1],"b":null}"#],
            &[r#"{"b":1}"#],
        ),
        // A metaschema outside the registry has the vocabularies of its dialect.
        (
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"null"}"#,
            &["null"],
            &["1"],
        ),
    ] {
        let lowered = lower(schema).unwrap();
        let mut recognizer =
            Recognizer::new(Arc::new(Compiled::new(&lowered.grammar, &limits).unwrap()));
        valid.iter().for_each(|text| assert!(accepts(&mut recognizer, text), "{schema} {text}"));
        invalid.iter().for_each(|text| assert!(!accepts(&mut recognizer, text), "{schema} {text}"));
    }
    for (schema, pointer) in [
        (r#"{"$schema":"http://x/required","type":"null"}"#, "/$schema"),
        (r#"{"$schema":"http://x/format","format":"unheard-of"}"#, "/format"),
    ] {
        let errors = lower(schema).unwrap_err();
        assert_eq!(errors.0.iter().map(|e| &e.pointer[..]).collect::<Vec<_>>(), [pointer]);
    }
}
