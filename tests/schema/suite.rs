//! The official JSON-Schema-Test-Suite, as far as it is at hand: every outcome is compared with the
//! baseline, and none may get worse. `LOUVER_UPDATE_BASELINES=1` writes a new baseline.

use louver_test_support::text_if_present;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::json_schema::{Dialect, Formats, Registry, SchemaSource, lower_reported};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde::{Deserialize, Serialize};

use super::support::{any_spelling, part_is};

/// From good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Right,
    Refused,
    WronglyRejected,
    WronglyAccepted,
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn parse(text: &str) -> Json {
    Json::parse(text, &Limits::default().with_source_bytes(64 << 20).with_depth(1_000))
        .expect("JSON")
}

fn registry(text: &str) -> Registry {
    let mut registry = Registry::new();
    for (uri, document) in parse(text).as_object().expect("an object of documents").iter() {
        registry.insert(uri, document.clone());
    }
    registry
}

/// The outcome of every instance of a file of cases, by file, group and description.
fn outcomes(cases: &str, registry: &Registry) -> BTreeMap<String, Outcome> {
    let limits = Limits::default();
    let mut out = BTreeMap::new();
    for line in cases.lines() {
        let case = parse(line);
        let text =
            |name: &str| case.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let (file, group) = (text("file"), text("group"));
        let options = any_spelling()
            .with_dialect(if file.starts_with("draft7") {
                Dialect::Draft7
            } else {
                Dialect::Draft202012
            })
            .with_formats(if file.contains("optional") {
                Formats::Assert
            } else {
                Formats::Annotate
            });
        let schema = case.get("schema").expect("a schema");
        let source = SchemaSource { schema, registry, options, limits: &limits };
        let lowered = lower_reported(source);
        let nothing = lowered.as_ref().is_err_and(|errors| errors.is_unsatisfiable());
        let mut recognizer = lowered.ok().map(|lowered| {
            let compiled = Compiled::new(&lowered.grammar, &limits)
                .unwrap_or_else(|e| panic!("{file} {group}: {e}"));
            Recognizer::new(Arc::new(compiled))
        });
        for test in case.get("tests").and_then(Json::as_array).unwrap_or_default() {
            let valid = test.get("valid") == Some(&Json::Bool(true));
            let description = test.get("description").and_then(Json::as_str).unwrap_or_default();
            let accepted = recognizer.as_mut().map(|recognizer| {
                let data = test.get("data").expect("data").to_string();
                recognizer.reset();
                recognizer.push(data.as_bytes()).is_ok() && recognizer.is_complete()
            });
            let outcome = match accepted.or(nothing.then_some(false)) {
                None => Outcome::Refused,
                Some(accepted) if accepted == valid => Outcome::Right,
                Some(true) => Outcome::WronglyAccepted,
                Some(false) => Outcome::WronglyRejected,
            };
            let mut name = format!("{file} | {group} | {description}");
            while out.contains_key(&name) {
                name.push_str(" (again)");
            }
            out.insert(name, outcome);
        }
    }
    out
}

fn summary(outcomes: &BTreeMap<String, Outcome>) -> BTreeMap<String, [usize; 4]> {
    let mut out: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for (name, outcome) in outcomes {
        let draft = name.split('/').next().unwrap_or_default();
        let kind = if name.split(" | ").next().unwrap_or_default().contains("optional") {
            " optional"
        } else {
            ""
        };
        out.entry(format!("{draft}{kind}")).or_default()[*outcome as usize] += 1;
    }
    out
}

/// The counts for the document.
fn table(counts: &BTreeMap<String, [usize; 4]>) -> String {
    let mut out =
        "| files | instances | decided rightly | refused | wrongly rejected | wrongly accepted |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for (part, [right, refused, rejected, accepted]) in counts {
        let all = right + refused + rejected + accepted;
        writeln!(out, "| {part} | {all} | {right} | {refused} | {rejected} | {accepted} |")
            .expect("a string");
    }
    out
}

#[test]
fn the_official_suite_gets_no_worse_if_present() {
    // The keyword table is the sample that always runs.
    let (Some(cases), Some(remotes)) = (
        text_if_present("json-schema-test-suite.jsonl"),
        text_if_present("json-schema-test-suite-remotes.json"),
    ) else {
        return;
    };
    let now = outcomes(&cases, &registry(&remotes));
    let counts = summary(&now);
    for (part, [right, refused, rejected, accepted]) in &counts {
        println!(
            "{part}: right {right}, refused {refused}, wrongly rejected {rejected}, wrongly accepted {accepted}"
        );
    }
    part_is("suite", &table(&counts));
    for draft in ["draft2020-12", "draft7"] {
        assert_eq!(counts[draft][Outcome::WronglyAccepted as usize], 0, "{draft}");
    }
    let path = root("tests/baselines/json_schema_suite.json");
    let worse_than_right: BTreeMap<&String, Outcome> = now
        .iter()
        .filter(|(_, outcome)| **outcome != Outcome::Right)
        .map(|(name, outcome)| (name, *outcome))
        .collect();
    if std::env::var_os("LOUVER_UPDATE_BASELINES").is_some() {
        let text = serde_json::to_string_pretty(&worse_than_right).expect("JSON");
        std::fs::write(&path, text + "\n").expect("the baseline is written");
        return;
    }
    let text = std::fs::read_to_string(&path).expect("the baseline is read");
    let baseline: BTreeMap<String, Outcome> =
        serde_json::from_str(&text).expect("the baseline is JSON");
    let before = |name: &str| baseline.get(name).copied().unwrap_or(Outcome::Right);
    let worse: Vec<String> = now
        .iter()
        .filter(|(name, outcome)| **outcome > before(name))
        .map(|(name, outcome)| format!("{name}: {outcome:?}, was {:?}", before(name)))
        .collect();
    assert!(worse.is_empty(), "{} instances got worse:\n{}", worse.len(), worse.join("\n"));
    let better = now.iter().filter(|(name, outcome)| **outcome < before(name)).count();
    if better > 0 {
        println!(
            "{better} instances got better: write a new baseline with LOUVER_UPDATE_BASELINES=1"
        );
    }
}
