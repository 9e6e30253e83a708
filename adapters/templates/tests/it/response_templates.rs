//! Formats from response templates, alone and beside chat templates.

use louver_formats::{Catalog, Marker, WireId};
use louver_templates::{ChatTemplate, Checkpoint, FormatSource, ResponseTemplate, resolve};
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
        FormatSource::ChatTemplate => ("chat template", &[][..]),
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

/// A member that is unknown or of another type.
#[test]
fn errors_point_to_the_member() {
    for (template, pointer) in [
        (r#""<x>""#, ""),
        (r#"{"start_anchor": "a", "more": 1, "fields": {}}"#, "/more"),
        (r#"{"start_anchor": "a", "version": "1", "fields": {}}"#, "/version"),
        (r#"{"start_anchor": "a"}"#, "/fields"),
        (r#"{"start_anchor": "a", "fields": {"a/b": {"opens": "x"}}}"#, "/fields/a~1b/opens"),
        (r#"{"start_anchor": "a", "fields": {"a": {"repeats": "x"}}}"#, "/fields/a/repeats"),
        (r#"{"start_anchor": "a", "fields": {"a": 1}}"#, "/fields/a"),
    ] {
        let value = serde_json::from_str(template).expect("JSON");
        let error = ResponseTemplate::from_value(&value).expect_err("ill-typed");
        assert_eq!(error.pointer, pointer, "{error}");
        assert!(!error.to_string().contains(": : "), "{error}");
    }
}

/// A format with one call is not told by what a template writes of several.
#[test]
fn formats_with_one_call_say_so() {
    let calls = r#"{"open": "<tool_call>", "close": "</tool_call>", "content": "json",
        "transform": {"function": "{content}"}}"#;
    let template = format!(
        r#"{{"start_anchor": "a", "fields": {{"tool_calls": {calls},
            "content": {{"close": "<|im_end|>"}}}}}}"#
    );
    let value = serde_json::from_str(&template).expect("JSON");
    let mut checkpoint = probing::checkpoint(&probing::case("an object in a tag"));
    checkpoint.response_template = Some(ResponseTemplate::from_value(&value));
    let found = resolve(&checkpoint, &Catalog::empty(), "test").expect("a format");
    let confirmation = found.confirmation.expect("a chat template");
    let two = confirmation.cases.iter().find(|case| case.name == "two calls").expect("two calls");
    assert_eq!(two.to_string(), "two calls: the format has one call");
}

/// Without a chat template, a description is not confirmed.
#[test]
fn a_missing_chat_template_is_told() {
    let value = serde_json::json!({"start_anchor": "a", "fields": {"tool_calls": {
        "open": "<c>", "close": "</c>", "content": "json",
        "transform": {"function": "{content}"}}}});
    let mut checkpoint =
        Checkpoint::default().with_response_template(ResponseTemplate::from_value(&value));
    let error = resolve(&checkpoint, &Catalog::empty(), "test").expect_err("no format");
    assert!(error.to_string().ends_with("; the model has no chat template"), "{error}");
    checkpoint.template = ChatTemplate::new("{% for", [None, None, None]);
    let error = resolve(&checkpoint, &Catalog::empty(), "test").expect_err("no format");
    assert!(error.to_string().starts_with("chat template: syntax error"), "{error}");
    checkpoint.model_type = Some("qwen3".to_owned());
    let found = resolve(&checkpoint, &Catalog::shipped(), "test").expect("a family");
    let error = found.confirmation.expect_err("no chat template").to_string();
    assert!(error.contains("syntax error"), "{error}");
}

/// Errors of lowering, whose pointers name the member that is there.
#[test]
fn errors_point_to_the_delimiter() {
    let lowered = |open: &str, close: &str| {
        let calls = format!(
            r#"{{{open}, {close}, "content": "json",
                "transform": {{"function": "{{content}}"}}}}"#
        );
        let template = format!(r#"{{"start_anchor": "a", "fields": {{"tool_calls": {calls}}}}}"#);
        let value = serde_json::from_str(&template).expect("JSON");
        ResponseTemplate::from_value(&value).expect("reads").lower("test")
    };
    for (open, close, expected) in [
        (r#""open": "<c>""#, r#""close_pattern": "(?P<x>a)""#, "close_pattern"),
        (r#""open_pattern": "(?i:<c>)""#, r#""close": "</c>""#, "open_pattern"),
        (r#""open_pattern": "(?P<x>a)""#, r#""close": "</c>""#, "open_pattern"),
    ] {
        let error = lowered(open, close).expect_err("no wire format");
        assert_eq!(error.pointer, format!("/fields/tool_calls/{expected}"));
    }
    // White space and empty alternatives within a delimiter belong to it.
    let (format, _) = lowered(r#""open": "<c>""#, r#""close_pattern": "</c(?: x|)>""#).unwrap();
    let Some(Marker::Any(ends)) = format.calls_end_marker() else { panic!("{format:?}") };
    let texts: Vec<String> = ends.iter().map(Marker::write).collect();
    assert_eq!(texts, ["</c x>", "</c>"]);
}

/// An id that the template does not read may be there, and is not the call's.
#[test]
fn ids_come_from_the_member_that_the_template_reads() {
    for (id, expected) in [(r#""id": "{id}","#, WireId::Id), ("", WireId::Made)] {
        let calls = format!(
            r#"{{"open": "<c>", "close": "</c>", "content": "json", "transform_each": true,
                "transform": {{{id} "function": {{"name": "{{n}}", "arguments": "{{a}}"}}}}}}"#
        );
        let template = format!(r#"{{"start_anchor": "a", "fields": {{"tool_calls": {calls}}}}}"#);
        let value = serde_json::from_str(&template).expect("JSON");
        let lowered = ResponseTemplate::from_value(&value).expect("reads").lower("test");
        assert_eq!(lowered.expect("a format").0.call.id, expected);
    }
}
