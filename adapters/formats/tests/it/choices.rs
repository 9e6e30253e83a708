//! Refused requests, and the texts of their errors.

use louver::spec::json::Json;
use louver_formats::{
    Catalog, FormatError, LowerError, Parallel, Reasoning, RequestError, ResponseFormat,
    ToolChoice, ToolChoiceError, ToolRequest, WireFormat,
};
use serde_json::json;

use crate::harness::{as_text, bytes, extract, request};

#[test]
fn an_unknown_tool_is_refused_with_the_known_ones() {
    let named = json!({"type": "function", "name": "h"});
    let error =
        as_text("qwen3").lower(&request(r#"[{"name": "f"}, {"name": "g"}]"#, &named)).unwrap_err();
    let LowerError::Choice(ToolChoiceError::UnknownTool { name, known }) = error else {
        panic!("{error}")
    };
    assert_eq!((name.as_str(), known), ("h", vec!["f".to_owned(), "g".to_owned()]));
}

#[test]
fn required_without_tools_is_refused() {
    let error = as_text("qwen3").lower(&request("[]", &json!("required"))).unwrap_err();
    assert!(matches!(error, LowerError::Choice(ToolChoiceError::NoTools)), "{error}");
}

#[test]
fn every_fault_of_every_tool_is_reported() {
    let tools = r##"[
        {"type": "function", "function": {"name": "fine", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "a", "parameters": {
            "type": "object", "properties": {"x": {"type": "strin"}, "y": {"minLength": -1}}}}},
        {"name": "b", "parameters": {"type": "object", "properties": {"y/z": {"$ref": "#/$defs/nowhere"}}}}
    ]"##;
    let mut request = request(tools, &json!("auto"));
    request.response_format =
        Some(ResponseFormat::Schema(Json::from(json!({"type": "string", "pattern": "("}))));
    let error = as_text("qwen3").lower(&request).unwrap_err();
    let LowerError::Parts(faults) = &error else { panic!("{error}") };
    let pointers: Vec<&str> = faults.schemas.iter().map(|fault| fault.pointer.as_str()).collect();
    let want = [
        "/tools/1/function/parameters/properties/x/type",
        "/tools/1/function/parameters/properties/y/minLength",
        "/tools/2/parameters/properties/y~1z/$ref",
        "/response_format/json_schema/schema/pattern",
    ];
    assert_eq!(pointers, want);
    assert!(want.iter().all(|pointer| error.to_string().contains(pointer)), "{error}");
}

#[test]
fn tools_that_cannot_be_called_are_not_lowered() {
    let tools = r#"[{"name": "f"}, {"name": "g", "parameters": {"type": "strin"}}]"#;
    let format = as_text("qwen3");
    for choice in [json!("none"), json!({"type": "function", "name": "f"})] {
        let lowered =
            format.lower(&request(tools, &choice)).unwrap_or_else(|e| panic!("{choice}: {e}"));
        assert_eq!(lowered.tools()[0].is_callable(), choice.is_object());
        assert!(!lowered.tools()[1].is_callable());
    }
    assert!(format.lower(&request(tools, &json!("auto"))).is_err());
}

#[test]
fn reasoning_needs_a_family_that_has_it() {
    for reasoning in [Reasoning::Required, Reasoning::Opened] {
        let request = ToolRequest::default().with_reasoning(reasoning);
        let error = as_text("hermes").lower(&request).unwrap_err();
        assert!(
            matches!(error, LowerError::NoReasoning { .. }) && error.faults()[0].pointer.is_empty()
        );
        assert!(as_text("qwen3").lower(&request).is_ok());
    }
    for reasoning in [Reasoning::Optional, Reasoning::Off] {
        assert!(as_text("hermes").lower(&ToolRequest::default().with_reasoning(reasoning)).is_ok());
    }
}

#[test]
fn the_default_request_allows_text() {
    assert_eq!(ToolRequest::default().tool_choice, ToolChoice::Auto);
    let unknown = Catalog::shipped().get("gpt-9").unwrap_err().to_string();
    assert!(unknown.contains("harmony, hermes, hunyuan"), "{unknown}");
}

fn parse(body: serde_json::Value) -> Result<ToolRequest, Vec<RequestError>> {
    ToolRequest::parse(&Json::from(body)).map_err(|errors| errors.0)
}

#[test]
fn request_bodies() {
    let body = json!({
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": false,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}},
    });
    let request = parse(body.clone()).expect("reads");
    assert_eq!((request.tools.len(), request.parallel), (1, Parallel::One));
    assert_eq!(request.tool_choice, ToolChoice::Named("f".to_owned()));
    let schema = |schema| Some(ResponseFormat::Schema(Json::from(schema)));
    assert_eq!(request.response_format, schema(json!({"type": "integer"})));
    let request =
        parse(json!({"tools": null, "response_format": {"type": "json_object"}})).expect("reads");
    assert_eq!((request.tool_choice, request.parallel), (ToolChoice::Auto, Parallel::Any));
    assert_eq!(request.response_format, schema(json!({"type": "object"})));
    assert_eq!(
        parse(json!({"response_format": {"type": "text"}})).expect("reads").response_format,
        None
    );
    for (body, pointer) in [
        (json!([]), ""),
        (json!({"parallel_tool_calls": "no"}), "/parallel_tool_calls"),
        (json!({"response_format": {"type": "xml"}}), "/response_format/type"),
        (json!({"response_format": {}}), "/response_format/type"),
        (json!({"stop": 1}), "/stop"),
        (json!({"stop": ""}), "/stop"),
        (json!({"stop": ["a", 1]}), "/stop/1"),
        (json!({"stop": ["", "a"]}), "/stop/0"),
        (json!({"response_format": {"type": "json_schema"}}), "/response_format"),
    ] {
        match parse(body.clone()).expect_err("malformed").as_slice() {
            [RequestError::Member(error)] => assert_eq!(error.pointer, pointer),
            other => panic!("{body}: {other:?}"),
        }
    }
    let errors = parse(json!({"tool_choice": "required"})).expect_err("nothing to call");
    assert_eq!(errors, [RequestError::Choice(ToolChoiceError::NoTools)]);
    // All errors of a body, and none that follows from another.
    let body = json!({
        "tools": [{"name": ""}, {"name": "f", "strict": 1}],
        "tool_choice": {"type": "function", "name": "g"},
        "parallel_tool_calls": 1,
        "response_format": {"type": "json_schema", "a": 1, "b": 2},
        "stop": [1, ""],
    });
    let errors = ToolRequest::parse(&Json::from(body)).expect_err("errors");
    let pointers: Vec<String> = errors.faults().into_iter().map(|fault| fault.pointer).collect();
    let expected = [
        "/tools/0/name",
        "/tools/1/strict",
        "/parallel_tool_calls",
        "/response_format/a",
        "/response_format/b",
        "/response_format",
        "/stop/0",
        "/stop/1",
    ];
    assert_eq!(pointers, expected);
}

#[test]
fn invalid_descriptions_are_refused() {
    let good = include_str!("../../families/hermes.toml");
    for (from, to, pointer) in [
        ("{ name = \"json\" }, ", "", "/call/header"),
        ("trailer = [\"}\\n\"]", "trailer = [{ name = \"raw\" }]", "/call/trailer"),
        ("begin = { either = \"<tool_call>\" }", "begin = { token = \"\" }", "/call/begin"),
        ("excludes = [\"</tool_call>\"]", "excludes = [\"\"]", "/text/excludes"),
        ("name = \"hermes\"", "name = \"\"", "/name"),
        ("name = \"hermes\"", "name = \"n\"\nsuffix = \"\"", "/suffix"),
        ("name = \"hermes\"", "name = \"n\"\nsuffix = \":x\"", "/suffix"),
        ("begin = { either = \"<tool_call>\" }", "begin = { text = \"\\n\" }", "/call/begin"),
        ("parallel =", "id = \"id\"\nparallel =", "/call/id"),
        (
            "excludes = [\"</tool_call>\"]",
            "begin = { text = \"<t>\" }\nend = { text = \"</t>\" }",
            "/text/place",
        ),
        (
            "[call]\nbegin = { either = \"<tool_call>\" }",
            "[section]\nbegin = { either = \"<tool_call>\" }\n[call]",
            "/section/end",
        ),
        ("template = [\"<tool_call>\\n{\\\"name\\\": \"]", "", "/detect/0"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        match WireFormat::from_toml(&text) {
            Err(FormatError::Invalid { pointer: found, .. }) => assert_eq!(found, pointer),
            other => panic!("{pointer}: {other:?}"),
        }
    }
    for (from, to) in [
        ("name = \"json\"", "name = \"yaml\""),
        ("place =", "plaice ="),
        ("{ either =", "{ neither ="),
    ] {
        let error = WireFormat::from_toml(&good.replacen(from, to, 1)).unwrap_err();
        assert!(
            matches!(error, FormatError::Parse(_)) && error.to_string().contains("line"),
            "{error}"
        );
    }
    let begin = "{ either = \"<tool_call>\" }";
    for (from, to, says) in [
        (begin, "\"<c>\"", "expected a marker, such as { text = \"<call>\" }"),
        (begin, "{ text = \"<c>\", token = \"c\" }", "a marker has exactly one of `text`"),
        (begin, "{}", "a marker has exactly one of `text`"),
        ("{ name = \"json\" }", "{ name = \"rw\" }", "{ name = \"json\", \"xml\" or \"raw\" }"),
        ("{ name = \"json\" }", "{ name = \"raw\" }, { id = \"uuid\" }", "\"identifier\""),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = WireFormat::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("line"), "{to}: {error}");
    }
}

/// Readers search strings for the text of the marker that ends them: it has one text, which the
/// grammar excludes from strings.
#[test]
fn markers_that_end_strings_have_one_text_that_strings_lack() {
    let good = include_str!("../../families/hermes.toml");
    let styles = [
        ("{ delimited = MARK }", "/delimited", false),
        ("{ nested = { item = \"item\", mark = MARK } }", "/nested/mark", false),
        (
            "{ tagged = { open = [\"<p=\", { key = \"raw\" }, \">\"], close = MARK } }",
            "/tagged/close",
            true,
        ),
    ];
    // A marker, whether it may end a string, and whether it may stand for it alone.
    let marks = [
        ("{ text = \"%%\" }", true, true),
        ("{ either = \"%%\" }", true, true),
        ("{ token = \"%%\" }", false, false),
        ("{ any = [{ text = \"%%\" }, { text = \"##\" }] }", false, false),
        ("{ any = [{ token = \"%%\" }, { text = \"%%\" }] }", true, true),
        ("{ seq = [{ either = \"%%\" }, \"##\"] }", true, false),
        ("{ seq = [{ token = \"%%\" }, \"##\"] }", false, false),
    ];
    for (style, pointer, may_be_sequence) in styles {
        for (mark, ends, is_one) in marks {
            let style = format!("arguments = {}", style.replace("MARK", mark));
            let text = good.replacen("arguments = \"json\"", &style, 1);
            assert_ne!(text, good);
            match WireFormat::from_toml(&text) {
                Ok(_) => assert!(ends && (is_one || may_be_sequence), "{style}"),
                Err(FormatError::Invalid { pointer: found, .. }) => {
                    assert!(!(ends && (is_one || may_be_sequence)), "{style}");
                    assert_eq!(found, format!("/call/arguments{pointer}"), "{style}");
                }
                Err(error) => panic!("{style}: {error}"),
            }
        }
    }
}

#[test]
fn call_ids_depend_on_seed_and_number_alone() {
    let lowered =
        as_text("qwen3").lower(&request(r#"[{"name": "f"}]"#, &json!("auto"))).expect("lowers");
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
    let ids = |wire: &str| -> Vec<String> {
        extract(&lowered, &bytes(wire), 1)
            .expect("taken")
            .0
            .calls
            .into_iter()
            .map(|c| c.id)
            .collect()
    };
    let two = ids(&format!("{call}\n{call}"));
    assert_eq!(ids(&format!("text first{call} and {call}")), two);
    assert_ne!(two[0], two[1]);
    for id in &two {
        let letters = id.strip_prefix("call_").expect("prefix");
        assert!(letters.len() >= 9 && letters.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
    }
}
