//! Documents of structural tags: parsing and writing, errors and limits, response formats.

use louver_test_support::text_if_present;
use std::path::Path;

use louver::front::json_schema::MemberOrder;
use louver::front::structural_tag::{self, Format, StructuralTag, StructuralTagOptions};
use louver::limits::Limits;
use louver::spec::json::Json;
use serde_json::{Value, json};

fn root(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Documents with every format and every member, also in abbreviated forms.
fn samples() -> Vec<Value> {
    let text = json!({"type": "const_string", "value": "x"});
    let tag = json!({"type": "tag", "begin": "<a>", "content": text, "end": "</a>"});
    let short = json!({"begin": "<b>", "content": {"value": ""}, "end": ["</b>", "</c>"]});
    let token = json!({"type": "token", "token": 7});
    let token_tag = json!({"type": "tag", "begin": token, "content": {"type": "any_tokens"},
        "end": {"token": "<y>"}});
    let formats = [
        text.clone(),
        json!({"type": "json_schema", "json_schema": {"type": "number", "minimum": 0.10},
            "style": "json", "any_order": true,
            "max_whitespace_cnt": 2}),
        json!({"json_schema": true, "style": "glm_xml"}),
        json!({"type": "qwen_xml_parameter", "json_schema": {"type": "object"}}),
        json!({"type": "any_text", "excludes": ["q"], "max_tokens": 3, "max_chars": null}),
        json!({"excludes": []}),
        json!({"type": "grammar", "grammar": "root ::= \"a\""}),
        json!({"type": "regex", "pattern": "a.b"}),
        json!({"type": "sequence", "elements": [text, tag]}),
        json!({"type": "or", "elements": [text, tag]}),
        json!({"elements": [text]}),
        json!({"type": "optional", "content": text}),
        json!({"content": text}),
        json!({"type": "plus", "content": text}),
        json!({"type": "star", "content": text}),
        json!({"type": "repeat", "min": 1, "max": -1, "content": text}),
        json!({"min": 0, "max": 3, "content": text}),
        tag.clone(),
        token_tag.clone(),
        json!({"type": "triggered_tags", "triggers": ["<"], "tags": [tag, short],
            "excludes": ["&"], "at_least_one": true,
            "stop_after_first": true}),
        json!({"triggers": ["<"], "tags": [short]}),
        json!({"type": "tags_with_separator", "tags": [tag, short], "separator": "",
            "at_least_one": true}),
        json!({"tags": [tag], "separator": ";", "stop_after_first": true}),
        json!({"type": "dispatch", "rules": [["go", text]], "loop": false, "excludes": ["no"]}),
        json!({"rules": [["go", text]]}),
        token,
        json!({"type": "exclude_token", "exclude_tokens": [1, "<z>"]}),
        json!({"type": "any_tokens", "exclude_tokens": ["<z>"], "max_tokens": 4}),
        json!({"type": "token_triggered_tags", "trigger_tokens": [7], "tags": [token_tag],
            "exclude_tokens": [8],
            "at_least_one": false, "stop_after_first": true}),
        json!({"type": "token_dispatch", "rules": [["<x>", text], [9, text]], "loop": true,
            "exclude_tokens": [8]}),
        json!({"rules": [[9, text]], "exclude_tokens": [8]}),
        json!({"rules": [[9, text]]}),
    ];
    let mut out: Vec<Value> =
        formats.iter().map(|format| json!({"type": "structural_tag", "format": format})).collect();
    out.push(json!({"format": text}));
    out
}

/// The documents of other engines' tests, if they are present.
pub(super) fn recorded_if_present() -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for (file, member) in
        [("model-format-tags.jsonl", "structural_tag"), ("engine-vectors-dev.jsonl", "spec")]
    {
        // Without it: only the documents of this file.
        let Some(text) = text_if_present(file) else { continue };
        for line in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
            let document = match &line[member] {
                Value::String(_) if line["kind"] != "structural_tag" => continue,
                Value::String(text) => serde_json::from_str(text).expect("JSON"),
                value => value.clone(),
            };
            if !out.contains(&document) {
                out.push(document);
            }
        }
    }
    out
}

fn read(document: &Value) -> Result<StructuralTag, String> {
    StructuralTag::read(&Json::from(document), &Limits::default()).map_err(|e| e.to_string())
}

#[test]
fn written_documents_parse_to_the_same_value() {
    // Without recorded ones: only the samples.
    for document in samples().iter().chain(&recorded_if_present()) {
        let tag = read(document).unwrap_or_else(|e| panic!("{document}: {e}"));
        let written = tag.to_json();
        let again = StructuralTag::read(&written, &Limits::default())
            .unwrap_or_else(|e| panic!("{written}: {e}"));
        assert_eq!(again, tag, "{document}");
        assert_eq!(again.to_json(), written);
        let by_serde: StructuralTag =
            serde_json::from_str(&serde_json::to_string(&tag).expect("JSON")).expect("reads");
        assert_eq!(by_serde.format.kind(), tag.format.kind());
    }
}

#[test]
fn published_schema_agrees_with_the_parser_on_mutated_documents() {
    let text = std::fs::read_to_string(root("schemas/structural-tag.schema.json"))
        .expect("the schema is there");
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let own = samples();
    // Without recorded ones: only those of this file.
    for document in own.iter().chain(&recorded_if_present()) {
        assert!(validator.is_valid(document), "{document}");
        assert!(
            validator
                .is_valid(&serde_json::to_value(read(document).expect("reads")).expect("JSON")),
            "{document}"
        );
    }
    let mut refused = 0;
    for document in &own {
        for mutation in mutations(document) {
            // The schema and the parser agree on every mutation.
            let ours = read(&mutation);
            assert_eq!(validator.is_valid(&mutation), ours.is_ok(), "{mutation}: {ours:?}");
            refused += usize::from(ours.is_err());
        }
    }
    assert!(refused > 300, "only {refused} mutations are refused");
}

/// All copies of a document with one change, except inside schemas.
fn mutations(value: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let mut set = |changed: Option<Value>| {
                    let mut copy = members.clone();
                    match changed {
                        Some(changed) => copy.insert(name.clone(), changed),
                        None => copy.shift_remove(name),
                    };
                    out.push(Value::Object(copy));
                };
                set(None);
                let others = [json!(null), json!(-1), json!("?"), json!([]), json!({}), json!(1.5)];
                others.into_iter().for_each(|other| set(Some(other)));
                if name != "json_schema" {
                    mutations(member).into_iter().for_each(|changed| set(Some(changed)));
                }
            }
            let mut more = members.clone();
            more.insert("unknown".into(), json!(true));
            out.push(Value::Object(more));
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                for changed in mutations(item) {
                    let mut copy = items.clone();
                    copy[i] = changed;
                    out.push(Value::Array(copy));
                }
                let mut fewer = items.clone();
                fewer.remove(i);
                out.push(Value::Array(fewer));
            }
        }
        _ => {}
    }
    out
}

#[test]
fn reports_of_errors_are_bounded() {
    let mut format = json!({"type": "any_text"});
    for k in 0..2_000 {
        format[format!("member {k}")] = json!(1);
    }
    let error = read(&json!({"type": "structural_tag", "format": format})).unwrap_err();
    assert_eq!(error.matches("no such member").count(), 1_000);
}

#[test]
fn all_errors_are_reported_with_pointers() {
    let document = json!({"type": "structural_tag", "format": {"type": "sequence", "elements": [
        {"type": "const_strin", "value": "x"},
        {"type": "json_schema", "json_schema": {"type": "object",
            "properties": {"a": {"type": "nothing"}}}},
        {"type": "regex", "pattern": "(a)\\1"},
        {"type": "triggered_tags", "triggers": ["a", "ab"], "tags": [
            {"begin": "abc", "content": {"type": "any_text"}, "end": "."}, {"begin": "b",
                "content": {"type": "any_text"}, "end": "."}]},
        {"type": "tag", "begin": "a", "content": {"type": "any_text"}, "end": ["", ""]},
        {"type": "triggered_tags", "triggers": ["abc"], "tags": [{"begin": "abcd",
            "content": {"value": ""}, "end": ""}], "excludes": ["b"]},
        {"type": "token_dispatch", "rules": [[3, {"value": "x"}]], "exclude_tokens": [3]},
    ]}});
    let shape = read(&document).unwrap_err();
    assert!(shape.contains("/format/elements/0/type") && shape.contains("const_string"), "{shape}");
    let mut valid = document.clone();
    valid["format"]["elements"][0]["type"] = json!("const_string");
    let errors = read(&valid)
        .expect("reads")
        .lower(&StructuralTagOptions::default(), &Limits::default())
        .unwrap_err();
    let pointers: Vec<&str> = errors.iter().map(|error| &error.pointer[..]).collect();
    assert_eq!(
        pointers,
        [
            "/format/elements/1/json_schema/properties/a/type",
            "/format/elements/2/pattern",
            "/format/elements/3/tags/0/begin",
            "/format/elements/3/tags/1/begin",
            "/format/elements/4/end/0",
            "/format/elements/5/triggers/0",
            "/format/elements/6/rules/0",
        ],
        "{errors}"
    );
}

#[test]
fn dispatch_texts_are_limited() {
    let limits = Limits::default().with_dispatch_bytes(40);
    let text = |len: usize| "x".repeat(len);
    let any = |excludes: usize| json!({"type": "any_text", "excludes": [text(excludes)]});
    let tag = |end: usize| {
        json!({"type": "tag", "begin": "<", "content": {"type": "any_text"},
        "end": text(end)})
    };
    let triggered = |trigger: usize, exclude: usize| {
        let begin = "y".repeat(trigger);
        let tag = json!({"begin": begin, "content": {"value": "z"}, "end": "."});
        json!({"type": "triggered_tags", "triggers": [begin], "tags": [tag],
            "excludes": [text(exclude)]})
    };
    let dispatch = |len: usize| {
        json!({"type": "dispatch", "rules": [["y".repeat(len),
        {"value": "z"}]], "excludes": ["n"]})
    };
    for (fits, over) in [
        (any(40), any(41)),
        (tag(40), tag(41)),
        (triggered(20, 20), triggered(20, 21)),
        (dispatch(39), dispatch(40)),
    ] {
        let lower = |format: &Value| {
            let document = json!({"type": "structural_tag", "format": {"type": "sequence",
                "elements": [{"value": "a"}, format]}});
            read(&document).expect("reads").lower(&StructuralTagOptions::default(), &limits)
        };
        assert!(lower(&fits).is_ok(), "{fits}: {:?}", lower(&fits).err());
        let errors = lower(&over).unwrap_err();
        let pointers: Vec<&str> = errors.iter().map(|error| &error.pointer[..]).collect();
        assert!(
            matches!(pointers[..], [at] if at.starts_with("/format/elements/1")),
            "{over}: {errors}"
        );
        assert!(errors.to_string().contains("more than 40 bytes"), "{errors}");
    }
}

#[test]
fn nesting_and_malformed_input_are_errors() {
    let deep = (0..2_000).fold(json!({"value": "x"}), |inner, _| json!({"content": inner}));
    assert!(read(&json!({"format": deep})).unwrap_err().contains("nested deeper"));
    // Dropped level by level, because the destructor of the value is recursive.
    let mut rest = deep;
    while let Value::Object(mut members) = rest {
        rest = members.shift_remove("content").unwrap_or_default();
    }
    let nested = (0..1_000).fold(
        Format::AnyText { excludes: Vec::new(), max_tokens: None, max_chars: None },
        |inner, _| Format::Optional { content: Box::new(inner) },
    );
    let errors = StructuralTag { format: nested }
        .lower(&StructuralTagOptions::default(), &Limits::default())
        .unwrap_err();
    assert!(errors.to_string().contains("limit reached"), "{errors}");
    let text = format!("{{\"format\":{}{}", "{\"content\":".repeat(5_000), "1");
    assert!(StructuralTag::parse(&text, &Limits::default()).is_err());
    for text in [
        "",
        "[]",
        "1",
        "{}",
        "{\"format\":null}",
        "{\"format\":{}}",
        "{\"type\":\"tag\",\"format\":{\"value\":\"\"}}",
    ] {
        assert!(StructuralTag::parse(text, &Limits::default()).is_err(), "{text}");
    }
}

#[test]
fn the_order_of_members_overrides_the_options() {
    let lowered = |any_order: Option<bool>, order: MemberOrder| {
        let mut format = json!({"type": "json_schema", "json_schema":
            {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}}});
        if let Some(any_order) = any_order {
            format["any_order"] = any_order.into();
        }
        let mut options = StructuralTagOptions::default();
        options.schema.order = order;
        let document = json!({"format": format}).to_string();
        structural_tag::lower(&document, &options, &Limits::default()).expect("lowers").grammar
    };
    let (fixed, any) = (lowered(None, MemberOrder::Fixed), lowered(None, MemberOrder::Any));
    assert_ne!(fixed, any);
    for order in [MemberOrder::Fixed, MemberOrder::Any] {
        assert_eq!(lowered(Some(false), order), fixed);
        assert_eq!(lowered(Some(true), order), any);
    }
}

#[test]
fn response_formats_are_parsed() {
    let parse =
        |value: Value| StructuralTag::from_response_format(&Json::from(&value), &Limits::default());
    let format = json!({"type": "const_string", "value": "x"});
    let plain = read(&json!({"format": format})).expect("reads");
    assert_eq!(parse(json!({"type": "structural_tag", "format": format})).as_ref(), Ok(&plain));
    assert_eq!(
        parse(
            json!({"model": "m", "response_format": {"type": "structural_tag", "format": format}})
        ),
        Ok(plain.clone())
    );
    assert_eq!(parse(serde_json::to_value(&plain).expect("JSON")), Ok(plain));
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let read_schema = |schema: &Value| {
        read(&json!({"format": {"type": "json_schema", "json_schema": schema}})).expect("reads")
    };
    let wrapped = json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true,
        "schema": schema}});
    assert_eq!(parse(wrapped), Ok(read_schema(&schema)));
    assert_eq!(parse(json!({"type": "json_object"})), Ok(read_schema(&json!({"type": "object"}))));
    assert_eq!(
        parse(json!({"type": "text"})),
        Ok(read(&json!({"format": {"type": "any_text"}})).expect("reads"))
    );
    let older = json!({"type": "structural_tag", "triggers": ["<f="],
        "structures": [{"begin": "<f=g>", "schema": schema, "end": "</f>"}]});
    let newer = json!({"format": {"type": "triggered_tags", "triggers": ["<f="],
        "tags": [{"begin": "<f=g>", "content": {"json_schema": schema}, "end": "</f>"}]}});
    assert_eq!(parse(older), Ok(read(&newer).expect("reads")));
    let wrong = json!({"type": "json_schema", "json_schema": {"name": 1, "description": [],
        "strict": "yes", "schema": schema}});
    let errors = parse(wrong).unwrap_err();
    let pointers: Vec<&str> = errors.iter().map(|error| &error.pointer[..]).collect();
    let members = ["name", "description", "strict"].map(|name| format!("/json_schema/{name}"));
    assert_eq!(pointers, members);
    let wrong = json!({"response_format": {"type": "structural_tag", "structures": [{"begin": "a",
        "schema": 3, "end": "b"}], "triggers": []}});
    let errors = parse(wrong).unwrap_err();
    let pointers: Vec<&str> = errors.iter().map(|error| &error.pointer[..]).collect();
    assert_eq!(pointers, ["/response_format/structures/0", "/response_format/triggers"]);
    assert!(parse(json!({"type": "xml"})).is_err());
}
