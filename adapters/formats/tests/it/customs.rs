//! Custom tools in every format: the cases of `data/customs.toml`, requests with custom tools, and
//! refused requests.

use louver::spec::json::Json;
use louver_formats::{
    Call, CallKind, Catalog, Cut, Difference, LowerError, RenderOptions, Tool, ToolChoice,
    ToolRequest, Turn, WireFormat,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{as_text, data};
use crate::rig::{BOTH, Rig};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// JSON.
    format: Option<String>,
    accepts: Vec<String>,
    #[serde(default)]
    refuses: Vec<String>,
}

impl Case {
    /// Two functions and, between them, the custom tool.
    fn request(&self, choice: Value) -> ToolRequest {
        let mut custom = json!({"name": "write", "description": "Writes."});
        if let Some(format) = &self.format {
            custom["format"] = serde_json::from_str(format).expect("JSON");
        }
        let function = |name: &str| {
            json!({"type": "function", "function": {"name": name, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false}}})
        };
        let body = json!({
            "tools": [function("weather"), {"type": "custom", "custom": custom}, function("writer")],
            "tool_choice": choice,
        });
        ToolRequest::parse(&Json::from(body)).expect("a request")
    }
}

fn custom(input: &str) -> Call {
    Call::new("write", input).with_kind(CallKind::Custom)
}

fn turn(calls: Vec<Call>) -> Turn {
    Turn::default().with_calls(calls)
}

fn without_ids(mut turn: Turn) -> Turn {
    turn.calls.iter_mut().for_each(|call| call.id.clear());
    turn
}

fn formats() -> impl Iterator<Item = &'static WireFormat> {
    static CATALOG: std::sync::OnceLock<Catalog> = std::sync::OnceLock::new();
    CATALOG.get_or_init(Catalog::shipped).formats().iter()
}

/// The calls on the wire. `None` if an unescaped string of the format would contain a delimiter.
fn written(format: &WireFormat, calls: Vec<Call>) -> Option<String> {
    format.render_with(&turn(calls), RenderOptions::default()).ok()
}

#[test]
fn custom_inputs_round_trip_in_every_format() {
    let file: File = toml::from_str(&data("customs.toml")).expect("cases");
    let (mut wrong, mut accepted, mut refused) = (Vec::new(), 0, 0);
    let choice = json!({"type": "custom", "custom": {"name": "write"}});
    for case in &file.case {
        for (format, which) in formats().flat_map(|format| BOTH.map(|which| (format, which))) {
            let rig = Rig::new(format, which);
            let at = |text: &str| format!("{}: {text:?} in {}, {which:?}", case.name, format.name);
            let lowered = match rig.format.lower(&case.request(choice.clone())) {
                Ok(lowered) => lowered,
                Err(error) => {
                    wrong.push(at(&error.to_string()));
                    continue;
                }
            };
            for input in &case.accepts {
                let wire = written(&rig.format, vec![custom(input)]).expect("writable");
                let units = rig.units(&wire);
                let seeds = [0, 1];
                let session = rig.session(&lowered, &units, &seeds);
                for seed in seeds {
                    let run = session.run(&session.tokens(&units, seed), 1 + seed as usize);
                    if run.taken.is_err() || !run.complete {
                        wrong.push(format!("{} is refused: {wire:?}", at(input)));
                    } else if without_ids(run.turn.clone()) != turn(vec![custom(input)]) {
                        wrong.push(format!("{} is read as {:?}", at(input), run.turn));
                    }
                    accepted += 1;
                }
            }
            for input in &case.refuses {
                let Some(wire) = written(&rig.format, vec![custom(input)]) else { continue };
                let units = rig.units(&wire);
                let session = rig.session(&lowered, &units, &[0]);
                let run = session.run(&session.tokens(&units, 0), 1);
                if run.taken.is_ok() && run.complete {
                    wrong.push(format!("{} is accepted: {wire:?}", at(input)));
                }
                refused += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(accepted > 2_000 && refused > 1_000, "{accepted} and {refused}");
}

/// Names of members that are not declared are compared as they are written. Where the text is
/// escaped, they cannot be compared, and the grammar is refused.
#[test]
fn repeated_names_are_accepted_in_no_format() {
    let grammar = json!({"syntax": "lark", "definition": "start: %json {\"type\": \"object\"}"});
    let format = json!({"type": "grammar", "grammar": grammar}).to_string();
    let (name, none) = ("open objects".to_owned(), Vec::new());
    let case = Case { name, format: Some(format), accepts: none.clone(), refuses: none };
    let choice = json!({"type": "custom", "custom": {"name": "write"}});
    let (mut escaped, mut raw) = (0, 0);
    for format in formats() {
        let rig = Rig::new(format, BOTH[0]);
        let lowered = match rig.format.lower(&case.request(choice.clone())) {
            Ok(lowered) => lowered,
            Err(error) => {
                assert!(error.to_string().contains("unique keys"), "{}: {error}", format.name);
                escaped += 1;
                continue;
            }
        };
        let accepts = |input: &str| {
            let wire = written(&rig.format, vec![custom(input)]).expect("writable");
            let units = rig.units(&wire);
            let session = rig.session(&lowered, &units, &[0]);
            let run = session.run(&session.tokens(&units, 0), 1);
            run.taken.is_ok() && run.complete
        };
        assert!(accepts(r#"{"a":1,"b":1}"#), "{}", format.name);
        assert!(!accepts(r#"{"a":1,"a":1}"#), "{}", format.name);
        raw += 1;
    }
    assert!(escaped > 20 && raw > 5, "{escaped} and {raw}");
}

/// Functions and custom tools in one turn, in either order, where the family makes several calls.
#[test]
fn custom_tools_beside_functions() {
    let file: File = toml::from_str(&data("customs.toml")).expect("cases");
    let case = file.case.iter().find(|case| case.name == "a Lark grammar").expect("the case");
    let function = |city: &str| Call::new("weather", format!("{{\"city\": \"{city}\"}}"));
    let mut checked = 0;
    for format in formats() {
        let rig = Rig::new(format, BOTH[1]);
        let lowered = rig.format.lower(&case.request(json!("required"))).expect("lowers");
        let kinds: Vec<(&str, CallKind)> =
            lowered.tools().iter().map(|tool| (&*tool.name, tool.kind)).collect();
        let (function_kind, custom_kind) = (CallKind::Function, CallKind::Custom);
        assert_eq!(
            kinds,
            [("weather", function_kind), ("write", custom_kind), ("writer", function_kind)]
        );
        for calls in [
            vec![function("Rome"), custom("1+1")],
            vec![custom("(2)"), function("Ω"), custom("3*4")],
        ] {
            let wire = written(&rig.format, calls.clone()).expect("writable");
            let units = rig.units(&wire);
            let session = rig.session(&lowered, &units, &[0]);
            let run = session.run(&session.tokens(&units, 0), 1);
            if rig.format.call.parallel == louver_formats::ParallelPolicy::One {
                assert!(run.taken.is_err(), "{}: {wire:?}", format.name);
            } else {
                assert!(run.taken.is_ok() && run.complete, "{}: {wire:?}", format.name);
                assert_eq!(without_ids(run.turn), turn(calls), "{}", format.name);
            }
            checked += 1;
        }
    }
    assert!(checked >= 50, "{checked}");
}

/// As those of structural tags: masks of a chain of rules are costly.
#[test]
fn grammars_are_simplified() {
    let lark = "start: sum\nsum: product | sum \"+\" product\nproduct: \"x\"\n";
    let tool = json!({"type": "custom", "custom": {"name": "write", "format":
        {"type": "grammar", "grammar": {"syntax": "lark", "definition": lark}}}});
    let body = Json::from(json!({"tools": [tool], "tool_choice": "required"}));
    for format in formats() {
        let request = ToolRequest::parse(&body).expect("a request");
        let lowered = format.lower(&request).expect("enforceable");
        let names: Vec<&str> = lowered.grammar().rules.iter().map(|rule| &*rule.name).collect();
        assert!(!names.contains(&"product"), "{}: {names:?}", format.name);
    }
}

/// A call that is cut off inside its input has the beginning of the decoded input.
#[test]
fn cut_off_input_is_decoded() {
    let case = Case { name: String::new(), format: None, accepts: Vec::new(), refuses: Vec::new() };
    let rig = Rig::new(Catalog::shipped().get("qwen3").expect("format"), BOTH[0]);
    let lowered = rig.format.lower(&case.request(json!("auto"))).expect("lowers");
    let wire = "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"input\": \"a\\nb\\\"c\\";
    let units = rig.units(wire);
    let session = rig.session(&lowered, &units, &[0]);
    let run = session.run(&session.tokens(&units, 0), 1);
    assert_eq!(run.taken, Ok(()));
    let incomplete = run.turn.incomplete.expect("cut off");
    let call = incomplete.call.expect("a call");
    assert_eq!(
        (incomplete.why, &*call.arguments, call.kind),
        (Cut::CallArguments, "a\nb\"c", CallKind::Custom)
    );
    assert!(run.turn.calls.is_empty());
}

#[test]
fn faults_have_pointers_into_the_request() {
    let parse = |tools: Value| ToolRequest::parse(&Json::from(json!({"tools": tools})));
    let errors = parse(json!([
        {"type": "custom"},
        {"type": "custom", "custom": 1},
        {"type": "custom", "custom": {"name": "", "description": 1, "format": {"type": "gramar"}}},
        {"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "lark"}},
        {"type": "custom", "name": "b", "format": {"type": "grammar", "grammar": {"syntax": "peg", "definition": ""}}},
        {"type": "custom", "name": "c", "format": []},
        {"type": "function", "name": "d"},
        {"type": "custom", "custom": {"name": "d"}},
        {"type": "custom", "custom": {"name": "e"}},
        {"type": "function", "name": "f", "strict": 1},
        {"type": "function", "name": "e"},
    ]))
    .unwrap_err();
    let faults = errors.faults();
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    let want = [
        "/tools/0",
        "/tools/1/custom",
        "/tools/2/custom/name",
        "/tools/2/custom/description",
        "/tools/2/custom/format/type",
        "/tools/3/format/definition",
        "/tools/4/format/grammar/syntax",
        "/tools/5/format",
        "/tools/7/custom/name",
        "/tools/9/strict",
        "/tools/10/name",
    ];
    assert_eq!(pointers, want);
    let error = parse(json!([
        {"type": "function", "name": "d"},
        {"type": "custom", "custom": {"name": "d"}},
        {"type": "custom", "name": "e"},
        {"type": "function", "name": "e"},
    ]));
    let faults: Vec<String> = error.unwrap_err().faults().iter().map(ToString::to_string).collect();
    let want = [
        "/tools/1/custom/name: \"d\" is already the name of /tools/0",
        "/tools/3/name: \"e\" is already the name of /tools/2",
    ];
    assert_eq!(faults, want);
}

/// Invalid grammars, and grammars that arguments cannot have: all errors are reported at once, with
/// those of schemas.
#[test]
fn grammars_that_cannot_be_enforced() {
    let custom = |name: &str, syntax: &str, text: &str| {
        json!({"type": "custom", "custom": {"name": name, "format":
        {"type": "grammar", "grammar": {"syntax": syntax, "definition": text}}}})
    };
    let body = json!({"tools": [
        custom("a", "lark", "start: \"x\" oter\nother: \"y\"\n"),
        {"type": "function", "function": {"name": "s", "parameters": {"type": "objet"}}},
        custom("b", "regex", "a(b"),
        custom("c", "lark", "start: <|image|>\n"),
        custom("d", "lark", "start[max_tokens=3]: /[a-z]+/\n"),
        custom("e", "regex", "a\\bb"),
        custom("f", "lark", "start: NEVER\nNEVER: \"a\" & \"b\"\n"),
        custom("fine", "regex", "[0-9]+"),
    ]});
    let request = ToolRequest::parse(&Json::from(body)).expect("a request");
    let error = as_text("qwen3").lower(&request).unwrap_err();
    assert!(matches!(error, LowerError::Parts(_)), "{error}");
    let faults = error.faults();
    let of = |k: usize, what: &str| {
        let at = format!("/tools/{k}/custom/format/grammar/definition");
        let found = faults.iter().any(|fault| fault.pointer == at && fault.message.contains(what));
        assert!(found, "{k}: {what} in {faults:?}");
    };
    of(0, "line 1, column 12: ");
    of(0, "oter");
    of(2, "");
    of(3, "special token");
    of(4, "budget");
    of(5, "");
    of(6, "");
    assert!(!faults.iter().any(|fault| fault.pointer.starts_with("/tools/7")), "{faults:?}");
    let schema = faults
        .iter()
        .find(|fault| fault.pointer == "/tools/1/function/parameters/type")
        .expect("the schema's");
    assert_eq!(schema.keyword.as_deref(), Some("type"));
    // Tools that cannot be called are not lowered.
    let request = request.with_tool_choice(ToolChoice::Named("fine".to_owned()));
    as_text("qwen3").lower(&request).expect("lowers");
}

#[test]
fn choices_name_custom_tools() {
    let tools =
        json!([{"type": "custom", "custom": {"name": "w"}}, {"type": "function", "name": "f"}]);
    let parse = |choice: Value| {
        ToolRequest::parse(&Json::from(json!({"tools": tools, "tool_choice": choice})))
    };
    for choice in
        [json!({"type": "custom", "custom": {"name": "w"}}), json!({"type": "custom", "name": "w"})]
    {
        assert_eq!(
            parse(choice).expect("a request").tool_choice,
            ToolChoice::Named("w".to_owned())
        );
    }
    let nested = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
        {"type": "custom", "custom": {"name": "w"}}, {"type": "function", "function": {"name": "f"}}]}});
    let flat = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "w"}]});
    assert_eq!(
        parse(nested).expect("a request").allowed,
        Some(vec!["w".to_owned(), "f".to_owned()])
    );
    assert_eq!(parse(flat).expect("a request").allowed, Some(vec!["w".to_owned()]));
    for choice in [json!({"type": "custom"}), json!({"type": "custom", "name": "x"})] {
        let faults = parse(choice).unwrap_err().faults();
        assert_eq!(faults[0].pointer, "/tool_choice");
    }
}

/// The function that stands for a custom tool in a template has the arguments of the wire grammar.
#[test]
fn template_functions_describe_the_wire_arguments() {
    let file: File = toml::from_str(&data("customs.toml")).expect("cases");
    for case in &file.case {
        let request = case.request(json!("auto"));
        let Tool::Custom(custom) = &request.tools[1] else { panic!("no custom tool") };
        let shown = custom.as_function();
        let schema = &shown["function"]["parameters"];
        let validator = jsonschema::validator_for(schema).expect("a schema");
        assert!(case.accepts.iter().all(|input| validator.is_valid(&json!({"input": input}))));
        assert!(!validator.is_valid(&json!({})) && !validator.is_valid(&json!({"input": 1})));
        assert_eq!(shown["function"]["name"], "write");
        if let Some(format) = &case.format {
            let format: Value = serde_json::from_str(format).expect("JSON");
            let definition = format.pointer("/grammar/definition").or(format.get("definition"));
            let description =
                schema["properties"]["input"]["description"].as_str().unwrap_or_default();
            assert!(
                definition.is_none_or(|text| description.contains(text.as_str().expect("text"))),
                "{shown}"
            );
        }
    }
}

/// Calls of custom tools are read from unconstrained output, and faults of their input are
/// reported.
#[test]
fn unconstrained_calls_of_custom_tools_are_read() {
    let format = Some(
        r#"{"type": "grammar", "grammar": {"syntax": "regex", "definition": "[0-9]+"}}"#.to_owned(),
    );
    let case = Case { name: String::new(), format, accepts: Vec::new(), refuses: Vec::new() };
    let request = case.request(json!("auto"));
    let read = |arguments: &str| {
        let text = format!(
            "<tool_call>\n{{\"name\": \"write\", \"arguments\":   {arguments}}}\n</tool_call>"
        );
        Catalog::shipped()
            .get("qwen3")
            .expect("format")
            .read_unconstrained(&request, &text)
            .expect("readable")
    };
    let reading = read(r#"{"input": "12"}"#);
    assert_eq!(without_ids(reading.turn), turn(vec![custom("12")]));
    assert!(
        !reading.differences.iter().any(|d| matches!(d, Difference::Arguments { .. })),
        "{:?}",
        reading.differences
    );
    let reading = read(r#"{"input": "1x"}"#);
    assert_eq!(without_ids(reading.turn), turn(vec![custom("1x")]));
    assert!(
        reading.differences.contains(&Difference::Arguments { call: 0, at: 1 }),
        "{:?}",
        reading.differences
    );
    let reading = read(r#"{"text": "1"}"#);
    assert_eq!(reading.turn.calls[0].kind, CallKind::Function);
    assert!(
        reading.differences.contains(&Difference::Arguments { call: 0, at: 0 }),
        "{:?}",
        reading.differences
    );
}
