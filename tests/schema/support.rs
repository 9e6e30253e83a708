//! The tables of docs/JSON_SCHEMA.md are generated from data that is checked.
//! `LOUVER_UPDATE_BASELINES=1` writes them.

use louver_test_support::text_if_present;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use louver::compile::Compiled;
use louver::front::json_schema::{
    Exponents, Formats, Integers, SchemaErrorReason, SchemaErrors, SchemaOptions, lower,
};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct Table<R> {
    row: Vec<R>,
}

/// The rows of a TOML table; the path is from the crate's root.
pub(super) fn rows<R: DeserializeOwned>(path: &str) -> Vec<R> {
    let text = std::fs::read_to_string(root(path)).expect("the table is read");
    let table: Table<R> = toml::from_str(&text).expect("the table is TOML");
    table.row
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    keyword: String,
    status: Status,
    note: String,
    llguidance: String,
    xgrammar: String,
    schema: String,
    accepts: Vec<String>,
    rejects: Vec<String>,
    refused: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Enforced,
    Conditions,
    Annotations,
}

pub(super) fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Numbers in every spelling that JSON Schema calls one of theirs.
pub(super) fn any_spelling() -> SchemaOptions {
    let (integers, exponents) = (Integers::ZeroFraction, Exponents::Allowed);
    SchemaOptions::default().with_integers(integers).with_exponents(exponents)
}

fn lowered(schema: &str) -> Result<Recognizer, SchemaErrors> {
    lowered_with(schema, &any_spelling())
}

fn lowered_with(schema: &str, options: &SchemaOptions) -> Result<Recognizer, SchemaErrors> {
    let limits = Limits::default();
    let json = Json::parse(schema, &limits).unwrap_or_else(|e| panic!("{e}: {schema}"));
    let grammar = lower(&json, options, &limits)?;
    Ok(Recognizer::new(Arc::new(
        Compiled::new(&grammar, &limits).unwrap_or_else(|e| panic!("{e}: {schema}")),
    )))
}

/// Compares a part of the document with what it should be, or writes it.
pub(super) fn part_is(name: &str, wanted: &str) {
    // Tests run side by side.
    static WRITING: Mutex<()> = Mutex::new(());
    let _one = WRITING.lock();
    let path = root("docs/JSON_SCHEMA.md");
    let text = std::fs::read_to_string(&path).expect("the document is read");
    let (begin, end) = (format!("<!-- {name}: generated from "), format!("<!-- {name}: end -->\n"));
    let begin = text.find(&begin).expect("the part begins");
    let from = begin + text[begin..].find('\n').expect("the rest of the line") + 1;
    let to = text.find(&end).expect("the part ends");
    if text[from..to] == *wanted {
        return;
    }
    if std::env::var_os("LOUVER_UPDATE_BASELINES").is_some() {
        let new = format!("{}{wanted}{}", &text[..from], &text[to..]);
        return std::fs::write(&path, new).expect("the document is written");
    }
    panic!(
        "the part {name:?} of docs/JSON_SCHEMA.md is not up to date (LOUVER_UPDATE_BASELINES=1 writes it); now:\n{wanted}"
    );
}

#[test]
fn the_keyword_table_is_true() {
    let rows: Vec<Row> = rows("tests/schema/support.toml");
    let mut out =
        "| keyword | Louver | conditions | llguidance 1.9.1 | xgrammar 0.2.8 |\n|---|---|---|---|---|\n".to_owned();
    for row in &rows {
        let mut recognizer =
            lowered(&row.schema).unwrap_or_else(|e| panic!("{}: {e}", row.keyword));
        for (texts, want) in [(&row.accepts, true), (&row.rejects, false)] {
            assert!(!texts.is_empty(), "{}: nothing is checked", row.keyword);
            for text in texts {
                recognizer.reset();
                let accepted = recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete();
                assert_eq!(accepted, want, "{}: {} {text}", row.keyword, row.schema);
            }
        }
        if let Some(schema) = &row.refused {
            assert!(lowered(schema).is_err(), "{}: {schema} is not refused", row.keyword);
        }
        let status = match row.status {
            Status::Enforced => "enforced",
            Status::Conditions => "with conditions",
            Status::Annotations => "annotations",
        };
        assert!(
            row.status != Status::Conditions || !row.note.is_empty(),
            "{}: which conditions?",
            row.keyword
        );
        let _ = writeln!(
            out,
            "| {} | {status} | {} | {} | {} |",
            row.keyword, row.note, row.llguidance, row.xgrammar
        );
    }
    part_is("keywords", &out);
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Format {
    name: String,
    first: String,
    standard: String,
    narrower: String,
    accepts: Vec<String>,
    rejects: Vec<String>,
}

#[test]
fn the_format_table_is_true() {
    let options = any_spelling().with_formats(Formats::RefuseUnknown);
    let mut out =
        "| format | first defined | as in | narrower than that |\n|---|---|---|---|\n".to_owned();
    for format in rows::<Format>("tests/schema/formats.toml") {
        let name = &format.name;
        let mut recognizer = lowered_with(&format!(r#"{{"format":"{name}"}}"#), &options)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        for (texts, want) in [(&format.accepts, true), (&format.rejects, false)] {
            assert!(!texts.is_empty(), "{name}: nothing is checked");
            for text in texts {
                recognizer.reset();
                let json = serde_json::to_string(text).expect("JSON");
                let accepted = recognizer.push(json.as_bytes()).is_ok() && recognizer.is_complete();
                assert_eq!(accepted, want, "{name}: {text:?}");
            }
        }
        let Format { first, standard, narrower, .. } = &format;
        let _ = writeln!(out, "| `{name}` | {first} | {standard} | {narrower} |");
    }
    part_is("formats", &out);
}

#[test]
fn refusals_on_real_schemas_are_listed_if_present() {
    let Some(text) = text_if_present("maskbench-dev.jsonl") else { return };
    let limits = Limits::default();
    let mut refused: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let (mut schemas, mut total) = (0, 0);
    for line in text.lines() {
        let case =
            Json::parse(line, &Limits::default().with_source_bytes(64 << 20).with_depth(1_000))
                .expect("JSON");
        schemas += 1;
        let Err(errors) =
            lower(case.get("schema").expect("a schema"), &SchemaOptions::default(), &limits)
        else {
            continue;
        };
        total += 1;
        let first = &errors.0[0];
        let kind = match first.reason {
            SchemaErrorReason::Malformed(_) => "malformed",
            SchemaErrorReason::Unsupported(_) => "not supported",
            SchemaErrorReason::Unsatisfiable(_) => "unsatisfiable",
            _ => "limit",
        };
        *refused.entry((first.keyword.clone(), kind)).or_default() += 1;
    }
    let mut rows: Vec<_> = refused.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut out = format!(
        "{total} of {schemas} schemas are refused:\n\n| keyword | why | schemas |\n|---|---|---|\n"
    );
    for ((keyword, kind), count) in rows {
        let keyword = if keyword.is_empty() {
            "the schema as a whole".to_owned()
        } else {
            format!("`{keyword}`")
        };
        let _ = writeln!(out, "| {keyword} | {kind} | {count} |");
    }
    part_is("refusals", &out);
}
