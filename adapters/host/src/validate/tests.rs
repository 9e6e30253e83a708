use louver::front::json_schema::{Policy, SchemaOptions, UniqueItems};
use louver::spec::json::Json;
use louver_formats::{
    Call, Catalog, LoweredRequest, ResponseFormat, Strictness, Tool, ToolRequest, Turn,
};
use serde_json::{Value, json};

use super::*;

fn lowered(mut request: ToolRequest) -> LoweredRequest {
    // Elements that may be arrays are not compared, so there is something to validate.
    request.schema_options = SchemaOptions::default()
        .with_policy(Policy::Validate)
        .with_unique_items(UniqueItems::Scalars);
    Catalog::shipped().get("qwen3").unwrap().lower(&request).unwrap()
}

fn with_tools(tools: Value) -> ToolRequest {
    let tools = Tool::parse_list(&Json::from(tools)).unwrap();
    ToolRequest::default().with_tools(tools)
}

fn response_validators(schema: Value) -> SchemaValidators {
    let response_format = Some(ResponseFormat::Schema(Json::from(schema)));
    let lowered = lowered(ToolRequest::default().with_response_format(response_format));
    SchemaValidators::new(lowered, SchemaOptions::default())
}

fn text_turn(text: &str) -> Turn {
    Turn::default().with_text(text)
}

/// The violations as (kind, pointer, message).
fn violations(validators: &SchemaValidators, text: &str) -> Vec<(ViolationKind, String, String)> {
    validators
        .violations(&text_turn(text), true)
        .into_iter()
        .map(|v| (v.kind, v.pointer, v.message))
        .collect()
}

#[test]
fn responses_are_validated() {
    let list =
        json!({"type": "array", "items": {"type": ["integer", "array"]}, "uniqueItems": true});
    let validators = response_validators(
        json!({"type": "object", "properties": {"list": list}, "required": ["list"]}),
    );
    assert_eq!(violations(&validators, r#"{"list": [1, 2, 3]}"#), []);
    let [(kind, pointer, message)] = &violations(&validators, r#"{"list": [1, 2, 1]}"#)[..] else {
        panic!()
    };
    assert_eq!((*kind, pointer.as_str()), (ViolationKind::Violated, "/list"));
    assert!(message.contains("non-unique"), "{message}");
    // Truncated output, or none: nothing to report.
    assert_eq!(validators.violations(&text_turn(r#"{"list": [1, 1"#), false), []);
    // A number outside every number type is not reported as wrong.
    let [(kind, ..)] = &violations(&validators, r#"{"list": [1e999]}"#)[..] else { panic!() };
    assert_eq!(*kind, ViolationKind::Unchecked);
    // An enforced schema needs no validator.
    assert!(response_validators(json!({"type": "array", "items": {"type": "integer"}})).is_empty());
}

#[test]
fn call_arguments_are_validated() {
    let ids =
        json!({"type": "array", "items": {"type": ["integer", "array"]}, "uniqueItems": true});
    let loose = json!({"type": "object", "properties": {"ids": ids}});
    let tools = json!([{"name": "first", "parameters": {"type": "object"}}, {"name": "pick", "parameters": loose}]);
    let lowered = lowered(with_tools(tools));
    let validators = SchemaValidators::new(lowered, SchemaOptions::default());
    let call = |name: &str, arguments: &str| Call::new(name, arguments);
    let turn = Turn::default().with_calls(vec![
        call("first", r#"{"ids": [1, 1]}"#),
        call("pick", r#"{"ids": [1, 2]}"#),
        call("pick", r#"{"ids": [2, 2]}"#),
    ]);
    let violations = validators.violations(&turn, true);
    let [violation] = &violations[..] else { panic!("{violations:?}") };
    assert_eq!(violation.part, CheckedPart::Call { index: 2, tool: "pick".to_owned() });
    assert_eq!((violation.kind, violation.pointer.as_str()), (ViolationKind::Violated, "/ids"));
    let json = serde_json::to_value(violation).unwrap();
    assert_eq!(
        (&json["part"], &json["index"], &json["tool"]),
        (&json!("call"), &json!(2), &json!("pick"))
    );
    assert_eq!(serde_json::from_value::<Violation>(json).unwrap(), *violation);
}

/// Non-strict tools accept any object; their schema is validated.
#[test]
fn non_strict_tools_are_validated() {
    let parameters =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let tools = json!([
        {"type": "function", "function": {"name": "strict", "parameters": parameters, "strict": true}},
        {"type": "function", "function": {"name": "loose", "parameters": parameters}},
    ]);
    let request = with_tools(tools).with_strictness(Strictness::AsFlagged);
    let validators = SchemaValidators::new(lowered(request), SchemaOptions::default());
    let relaxed = validators.lowered.relaxed_schemas();
    assert_eq!(relaxed.iter().map(|relaxed| relaxed.tool).collect::<Vec<_>>(), [Some(1)]);
    let calls = |arguments: &str| {
        let call = Call::new("loose", arguments);
        validators.violations(&Turn::default().with_calls(vec![call]), true).len()
    };
    assert_eq!((calls(r#"{"n": 1}"#), calls(r#"{"n": "1"}"#), calls("{}")), (0, 1, 1));
}

/// A validator is compiled for the first text that needs it, and once.
#[test]
fn validators_are_compiled_when_they_are_needed() {
    let ids =
        json!({"type": "array", "items": {"type": ["integer", "array"]}, "uniqueItems": true});
    let tool = |name: &str| json!({"name": name, "parameters": {"type": "object", "properties": {"ids": ids}}});
    let lowered = lowered(with_tools(json!([tool("first"), tool("second")])));
    let validators = SchemaValidators::new(lowered, SchemaOptions::default());
    let compiled = || validators.compiled.iter().map(|c| c.get().is_some()).collect::<Vec<_>>();
    assert_eq!(compiled(), [false, false]);
    let turn = Turn::default().with_calls(vec![Call::new("second", r#"{"ids": [1, 1]}"#)]);
    assert_eq!(validators.violations(&turn, true).len(), 1);
    assert_eq!(compiled(), [false, true]);
}

#[test]
fn messages_and_violations_are_bounded() {
    let validators = response_validators(
        json!({"type": "array", "items": {"uniqueItems": true, "type": "array"}}),
    );
    let twice = format!("[{0}, {0}]", json!("x".repeat(1000)));
    let violations = violations(&validators, &format!("[{}]", vec![twice; 100].join(", ")));
    assert_eq!(violations.len(), MAX_VIOLATIONS);
    assert!(violations.iter().all(|(_, _, message)| message.chars().count() <= MAX_MESSAGE_CHARS));
}

/// Schemas for which a validator would not end, or not soon.
#[test]
fn hostile_schemas_are_not_validated() {
    let many = |n: usize, each: Value| vec![each; n];
    let mut doubling = serde_json::Map::new();
    for n in 0..64 {
        doubling.insert(
            format!("d{n}"),
            json!({"allOf": many(2, json!({"$ref": format!("#/$defs/d{}", n + 1)}))}),
        );
    }
    doubling.insert("d64".to_owned(), json!({"uniqueItems": true}));
    let mut deep = json!({"uniqueItems": true});
    for _ in 0..1000 {
        deep = json!({"not": deep});
    }
    let twice = json!({"properties": {"a": {"$ref": "#"}}});
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    for (schema, text) in [
        (json!({"$ref": "#"}), "1".to_owned()),
        (json!({"anyOf": [{"$ref": "#"}, {"uniqueItems": true}]}), "1".to_owned()),
        (
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            "1".to_owned(),
        ),
        (json!({"$defs": doubling, "$ref": "#/$defs/d0"}), "1".to_owned()),
        (deep, "1".to_owned()),
        (json!({"allOf": many(2, twice)}), nested(60)),
        (json!({"$ref": "http://127.0.0.1:1/schema.json"}), "1".to_owned()),
        (json!({"$dynamicRef": "#a"}), "1".to_owned()),
        (
            json!({"items": {"$id": "http://x/", "$ref": "#/$defs/a"}, "$defs": {"a": {}}}),
            "[1]".to_owned(),
        ),
        (json!({"uniqueItems": true, "type": "array"}), format!("[{}1]", "1,".repeat(5000))),
        (json!({"type": "strange"}), "1".to_owned()),
    ] {
        let shown: String = schema.to_string().chars().take(80).collect();
        let options = SchemaOptions::default();
        let schema = CompiledSchema::new(&Json::from(schema), &options);
        let mut violations = Vec::new();
        check_text(&schema, &text, &CheckedPart::ResponseFormat, &mut violations);
        assert!(
            violations.len() == 1 && violations[0].kind == ViolationKind::Unchecked,
            "{shown}: {violations:?}"
        );
    }
}

/// Accepted schemas are validated on a stack of the usual size; recursion over the value is fine.
#[test]
fn recursive_and_deep_schemas_are_validated() {
    let tree = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "l": {"uniqueItems": true}}, "additionalProperties": false});
    let mut deep = json!({"uniqueItems": true});
    for _ in 0..50 {
        deep = json!({"allOf": [deep]});
    }
    // The maximum depth, with references.
    let mut chain = serde_json::Map::new();
    for n in 0..90 {
        chain.insert(
            format!("d{n}"),
            json!({"anyOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"const": 0}]}),
        );
    }
    chain.insert("d90".to_owned(), json!({"uniqueItems": true}));
    let chain = json!({"$defs": chain, "$ref": "#/$defs/d0"});
    let wrap = |inner: &str, depth: usize| {
        format!("{}{inner}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
    };
    for (schema, good, bad) in [
        (tree, wrap(r#"{"l": [1, 2]}"#, 60), wrap(r#"{"l": [1, 1]}"#, 60)),
        (deep, "[1, 2]".to_owned(), "[1, 1]".to_owned()),
        (chain, "[1, 2]".to_owned(), "[1, 1]".to_owned()),
    ] {
        let options = SchemaOptions::default();
        let schema = CompiledSchema::new(&Json::from(schema), &options);
        let mut violations = Vec::new();
        check_text(&schema, &good, &CheckedPart::ResponseFormat, &mut violations);
        assert_eq!(violations, []);
        check_text(&schema, &bad, &CheckedPart::ResponseFormat, &mut violations);
        assert!(
            !violations.is_empty() && violations.iter().all(|v| v.kind == ViolationKind::Violated),
            "{violations:?}"
        );
    }
}
