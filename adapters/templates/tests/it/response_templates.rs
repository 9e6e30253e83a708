//! Formats from response templates, alone and beside chat templates.

use louver_formats::Catalog;
use louver_templates::{FormatSource, ResponseTemplate, resolve};
use serde::Deserialize;

use crate::probing;

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Case {
    name: String,
    chat: String,
    source: String,
    warnings: Vec<String>,
    notes: Vec<String>,
    error: String,
    response: String,
}

/// What is wrong with the outcome of a case.
fn problem(case: &Case) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(&case.response).expect("JSON");
    let response = match ResponseTemplate::from_value(&value) {
        Ok(response) if case.error.is_empty() => response,
        Ok(_) => return Some("no error".to_owned()),
        Err(error) => {
            let is_expected = !case.error.is_empty() && error.to_string().contains(&case.error);
            return (!is_expected).then(|| error.to_string());
        }
    };
    let mut checkpoint = probing::checkpoint(&probing::case(&case.chat));
    checkpoint.response_template = Some(Ok(response));
    let found = match resolve(&checkpoint, &Catalog::empty(), "test") {
        Ok(found) => found,
        Err(error) => return Some(error.to_string()),
    };
    let (source, warnings) = match &found.source {
        FormatSource::ResponseTemplate(warnings) => ("response_template", warnings.as_slice()),
        FormatSource::ChatTemplate(_) => ("chat template", &[][..]),
        other => return Some(format!("{other:?}")),
    };
    let pointers: Vec<&str> = warnings.iter().map(|warning| warning.pointer.as_str()).collect();
    let notes = found.notes.join("\n");
    let is_right = found.is_confirmed()
        && source == case.source
        && pointers == case.warnings
        && case.notes.iter().all(|note| notes.contains(note))
        && notes.is_empty() == case.notes.is_empty();
    (!is_right).then(|| format!("{source}, {pointers:?}, {notes}\n{:#?}", found.confirmation))
}

#[test]
fn formats_come_from_response_templates() {
    let file: File = toml::from_str(include_str!("../data/response_templates.toml")).expect("TOML");
    let problems = file.case.iter().filter_map(|case| Some((problem(case)?, &case.name)));
    let problems: Vec<String> =
        problems.map(|(problem, name)| format!("{name}: {problem}")).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
