//! The published schemas in `schemas/` agree with the code: examples that both accept, and examples
//! that both refuse.

use louver_test_support::text_if_present;
use std::path::PathBuf;

use jsonschema::Validator;
use louver::limits::Limits;
use louver_formats::{Catalog, Tool, WireFormat};
use serde::Deserialize;
use serde_json::Value;

use crate::harness::data;

fn schema(name: &str) -> Validator {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(jsonschema::meta::is_valid(&schema), "{name} is not a schema");
    jsonschema::validator_for(&schema).expect("schema")
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    tool_list: Examples,
    wire_format: Examples,
    check_case: Examples,
}

#[derive(Deserialize)]
struct Examples {
    good: Vec<String>,
    bad: Vec<String>,
}

fn examples() -> File {
    toml::from_str(&data("schemas.toml")).expect("schemas.toml")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn tool_lists() {
    let (schema, examples) = (schema("tool-list.schema.json"), examples().tool_list);
    for text in &examples.good {
        assert!(
            schema.is_valid(&json(text)) && Tool::parse_text(text, &Limits::default()).is_ok(),
            "{text}"
        );
    }
    for text in &examples.bad {
        assert!(
            !schema.is_valid(&json(text)) && Tool::parse_text(text, &Limits::default()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn wire_formats() {
    let (schema, examples) = (schema("wire-format.schema.json"), examples().wire_format);
    let value =
        |text: &str| -> Value { toml::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}")) };
    for text in &examples.good {
        WireFormat::from_toml(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(schema.is_valid(&value(text)), "{text}");
    }
    for text in &examples.bad {
        assert!(WireFormat::from_toml(text).is_err(), "read: {text}");
        assert!(!schema.is_valid(&value(text)), "valid: {text}");
    }
    let catalog = Catalog::shipped();
    assert!(catalog.formats().len() >= 2);
    for format in catalog.formats() {
        let errors: Vec<String> = schema
            .iter_errors(&serde_json::to_value(format).expect("JSON"))
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", format.name);
        let again =
            WireFormat::from_toml(&toml::to_string(format).expect("TOML")).expect("reads back");
        assert_eq!(&again, format);
    }
}

#[test]
fn embedded_families_are_the_files() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("families");
    let schema = schema("wire-format.schema.json");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("families") {
        let path = entry.expect("entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let value: Value = toml::from_str(&text).expect("TOML");
        assert!(schema.is_valid(&value), "{}", path.display());
        assert_eq!(value["name"].as_str(), path.file_stem().and_then(|s| s.to_str()));
        names.extend(value["name"].as_str().map(str::to_owned));
    }
    names.sort();
    assert_eq!(Catalog::shipped().names(), names);
}

#[test]
fn check_cases() {
    let (schema, examples) = (schema("check-case.schema.json"), examples().check_case);
    for text in &examples.good {
        assert!(schema.is_valid(&json(text)), "{text}");
    }
    for text in &examples.bad {
        assert!(!schema.is_valid(&json(text)), "{text}");
    }
    // Without it: only the examples.
    let Some(vectors) = text_if_present("engine-vectors-dev.jsonl") else { return };
    for line in vectors.lines() {
        assert!(schema.is_valid(&json(line)), "{line}");
    }
}
