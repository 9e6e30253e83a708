//! Tests of references to other documents: those of the registry, and metaschemas.

use super::*;

#[test]
fn references_resolve_in_the_registry() {
    let limits = Limits::default();
    let parse = |text: &str| Json::parse(text, &limits).unwrap();
    let mut registry = Registry::new();
    registry.insert(
        "http://x/a.json#",
        parse(r##"{"$defs":{"n":{"$anchor":"n","type":"integer"}},"items":{"$ref":"b.json"}}"##),
    );
    registry.insert("http://x/b.json", parse(r##"{"$ref":"a.json#n"}"##));
    let check = |schema: &str, valid: &[&str], invalid: &[&str]| {
        let lowered =
            lower_reported(source(&parse(schema), &registry, &SchemaOptions::default(), &limits));
        let lowered = lowered.unwrap();
        let mut recognizer =
            Recognizer::new(Arc::new(Compiled::new(&lowered.grammar, &limits).unwrap()));
        valid.iter().for_each(|text| assert!(accepts(&mut recognizer, text), "{schema} {text}"));
        invalid.iter().for_each(|text| assert!(!accepts(&mut recognizer, text), "{schema} {text}"));
    };
    check(r#"{"$ref":"http://x/a.json"}"#, &["[1,2]", "\"\""], &["[null]"]);
    check(r#"{"$id":"http://x/y/z","$ref":"../a.json#/$defs/n"}"#, &["1"], &["[]"]);
    let broken = parse(r#"{"items":{"$ref":"http://x/c.json"}}"#);
    let errors = lower_reported(source(&broken, &registry, &SchemaOptions::default(), &limits));
    assert_eq!(errors.unwrap_err().0[0].pointer, "/items/$ref");
}

#[test]
fn metaschemas_are_known() {
    let old = ["http://json-schema.org/draft-04/schema", "http://json-schema.org/draft-06/schema"];
    let recent = [
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ];
    for uri in old.iter().chain(&recent) {
        check(
            &format!(r##"{{"properties": {{"a": {{"$ref": "{uri}#"}}}}}}"##),
            &[
                r#"{"a": {"type": ["string", "null"], "maxLength": 3}}"#,
                r#"{"a": {"properties": {"b": {"not": {"enum": [1]}}}, "x": 7, "required": ["b"]}}"#,
            ],
            &[
                r#"{"a": 1}"#,
                r#"{"a": {"type": "str"}}"#,
                r#"{"a": {"maxLength": -1}}"#,
                r#"{"a": {"properties": {"b": {"anyOf": [{"minimum": "0"}]}}}}"#,
                r#"{"a": {"allOf": [{"type": ["string", "string"]}]}}"#,
            ],
        );
    }
    let draft4 = format!(r##"{{"$ref": "{}#/definitions/simpleTypes"}}"##, old[0]);
    check(&draft4, &[r#""integer""#], &[r#""any""#]);
    let exclusive = r#"{"minimum": 1, "exclusiveMinimum": true}"#;
    check(&format!(r#"{{"$ref": "{}"}}"#, old[0]), &[exclusive, "{}"], &["true"]);
    for uri in &recent {
        check(&format!(r#"{{"$ref": "{uri}"}}"#), &["true", r#"{"if": false}"#], &[exclusive]);
    }
    let pattern = r#"{"patternProperties": {"^a$": {"pattern": "[0-9]+"}}}"#;
    let broken = r#"{"items": {"pattern": "[0-9"}}"#;
    check(&format!(r#"{{"$ref": "{}"}}"#, recent[2]), &[pattern], &[broken]);
    // The caller's document of the same name comes first.
    let limits = Limits::default();
    let mut registry = Registry::new();
    registry.insert(old[0], Json::Bool(true));
    let schema = Json::parse(&format!(r#"{{"$ref": "{}"}}"#, old[0]), &limits).unwrap();
    let lowered =
        lower_reported(source(&schema, &registry, &SchemaOptions::default(), &limits)).unwrap();
    let compiled = Compiled::new(&lowered.grammar, &limits).unwrap();
    assert!(accepts(&mut Recognizer::new(Arc::new(compiled)), "7"));
}
