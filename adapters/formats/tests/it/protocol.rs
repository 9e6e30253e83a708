//! Constraints of the protocol on every call, regardless of its schema: arguments are an object,
//! ids are unique.

use louver::limits::Limits;
use louver_formats::{
    ArgumentStyle, Call, Catalog, LowerError, ParallelPolicy, Strictness, ToolRequest, Turn,
    WireFormat, WireId,
};
use serde_json::json;

use crate::harness::{SEED, request};
use crate::rig::{BOTH, Rig, Specials};

/// Schemas that allow other values than objects, and schemas that allow no object, with the pointer
/// of the error.
const LOOSE: [&str; 12] = [
    "{}",
    "true",
    r#"{"properties": {"x": {"type": "integer"}}}"#,
    r#"{"required": ["x"], "properties": {"x": {"type": "integer"}}}"#,
    r#"{"anyOf": [{"type": "object"}, {"type": "string"}, {"type": "integer"}]}"#,
    r##"{"$ref": "#/$defs/a", "$defs": {"a": {}}}"##,
    r##"{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {"minimum": 1}}}"##,
    r#"{"type": ["object", "null"], "additionalProperties": {"type": "integer"}}"#,
    r#"{"type": ["null", "object", "string", "number", "array", "boolean"]}"#,
    r#"{"title": "Args", "description": "Any", "minProperties": 0}"#,
    r#"{"not": {"type": "string"}}"#,
    r#"{"allOf": [{"properties": {"x": {"type": "integer"}}}]}"#,
];

const NONE: [(&str, &str); 8] = [
    (r#"{"type": "string"}"#, "/tools/0/parameters/type"),
    (r#"{"type": ["string", "null"]}"#, "/tools/0/parameters/type"),
    (r#"{"const": 5}"#, "/tools/0/parameters"),
    (r#"{"enum": ["a", 1]}"#, "/tools/0/parameters"),
    (r#"{"anyOf": [{"type": "string"}, {"type": "array"}]}"#, "/tools/0/parameters"),
    (r##"{"$ref": "#/$defs/a", "$defs": {"a": {"type": "number"}}}"##, "/tools/0/parameters"),
    (r#"{"not": {"type": "object"}}"#, "/tools/0/parameters"),
    ("false", "/tools/0/parameters"),
];

const NO_OBJECTS: [&str; 8] = ["5", "false", "null", r#""x""#, "[]", "[{}]", "1.5", r#""{}""#];

fn with(schema: &str, choice: &str, strictness: Strictness) -> ToolRequest {
    let tools = format!(r#"[{{"name": "ping", "parameters": {schema}}}]"#);
    request(&tools, &json!(choice)).with_strictness(strictness)
}

fn calls(arguments: &[&str]) -> Turn {
    let call = |arguments: &&str| Call::new("ping", *arguments);
    Turn::default().with_calls(arguments.iter().map(call).collect())
}

#[test]
fn arguments_are_an_object_in_every_format() {
    let (mut wrong, mut taken, mut refused) = (Vec::new(), 0, 0);
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        for (schema, choice) in
            LOOSE.iter().flat_map(|schema| ["auto", "required"].map(|choice| (schema, choice)))
        {
            for strictness in [Strictness::All, Strictness::AsFlagged] {
                let at = format!("{}, {choice}, {strictness:?}, {schema}", format.name);
                let lowered = match rig.format.lower(&with(schema, choice, strictness)) {
                    Ok(lowered) => lowered,
                    // Styles that are not JSON refuse schemas that they cannot write.
                    Err(LowerError::Parts(_)) if format.call.arguments != ArgumentStyle::Json => {
                        continue;
                    }
                    Err(error) => panic!("{at}: {error}"),
                };
                let session = rig.session(&lowered, &[], &[]);
                let good = rig.format.render(&calls(&[r#"{"x": 1}"#])).expect("renders");
                let run = session.run(&session.tokens(&rig.units(&good), 0), 1);
                if run.taken.is_err() || run.turn.calls.len() != 1 {
                    wrong.push(format!("{at}: {good:?} is refused: {run:?}"));
                }
                taken += 1;
                if format.call.arguments != ArgumentStyle::Json {
                    continue;
                }
                for arguments in NO_OBJECTS {
                    let wire = good.replace(r#"{"x": 1}"#, arguments);
                    let run = session.run(&session.tokens(&rig.units(&wire), 0), 1);
                    if run.taken.is_ok() || !run.turn.calls.is_empty() {
                        wrong.push(format!("{at}: {wire:?} is taken: {run:?}"));
                    }
                    refused += 1;
                }
            }
        }
        for (schema, pointer) in NONE {
            let error = rig.format.lower(&with(schema, "auto", Strictness::All)).expect_err(schema);
            let faults = error.faults();
            if faults.is_empty() || faults.iter().any(|fault| !fault.pointer.starts_with(pointer)) {
                wrong.push(format!("{}: {schema}: {faults:?}", format.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert!(taken > 1_000 && refused > 3_000, "{taken} {refused}");
}

/// All tools share the rule of ids, so that an id before the name is parsed once.
#[test]
fn tools_share_the_rule_of_ids() {
    let id_rules = |format: &WireFormat, tools: &str| {
        let lowered = format.lower(&request(tools, &json!("required"))).expect("lowers");
        lowered.grammar().rules.iter().filter(|rule| rule.name == "id").count()
    };
    let mut with_ids = 0;
    for format in Catalog::shipped().formats() {
        let rig = Rig::new(format, Specials::Fewest);
        let one = id_rules(&rig.format, r#"[{"name": "a"}]"#);
        let three = id_rules(&rig.format, r#"[{"name": "a"}, {"name": "b"}, {"name": "c"}]"#);
        assert_eq!(one, three, "{}", format.name);
        with_ids += usize::from(one > 0);
    }
    assert!(with_ids > 5, "{with_ids}");
}

/// Ids are unique in a turn and in a conversation, even if the model writes the same id twice.
#[test]
fn call_ids_are_unique() {
    let mut written = Vec::new();
    for (format, specials) in
        Catalog::shipped().formats().iter().flat_map(|f| BOTH.map(|specials| (f, specials)))
    {
        let rig = Rig::new(format, specials);
        let lowered = rig
            .format
            .lower(&request(r#"[{"name": "ping"}]"#, &json!("required")))
            .expect("lowers");
        let count = if format.call.parallel == ParallelPolicy::One { 1 } else { 3 };
        let wire = rig.format.render(&calls(&["{}"; 3][..count])).expect("renders");
        // Every call has the number of the first.
        let same = ["ping:N", "tool_call_id\": \"N", "<cofl:tool_call id=\"N", "index=\"N"];
        let same = same.iter().fold(wire.clone(), |wire, place| {
            let first = if place.starts_with("index") { "1" } else { "0" };
            ["0", "1", "2", "3"].iter().fold(wire, |wire, n| {
                wire.replace(&place.replace('N', n), &place.replace('N', first))
            })
        });
        let units = rig.units(&same);
        let session = rig.session(&lowered, &units, &[]);
        let tokens = session.tokens(&units, 0);
        let run = session.run(&tokens, 1);
        let mut ids: Vec<String> = run.turn.calls.iter().map(|call| call.id.clone()).collect();
        assert_eq!(ids.len(), count, "{}: {same:?}", format.name);
        if same != wire && format.call.id != WireId::Made {
            written.push(ids.join(" "));
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "{}: {ids:?}", format.name);
        // Ids of earlier turns are not given again.
        let mut matcher = session.matcher();
        let (mut tracer, mut extractor, mut events) =
            (louver::matcher::Tracer::new(), lowered.extractor(SEED), Vec::new());
        extractor.reserve_ids(ids.iter().cloned());
        for token in tokens {
            matcher.advance_traced(token, &mut tracer).expect("allowed");
            events.extend(extractor.push(tracer.drain()));
        }
        events.extend(extractor.push(tracer.finish()));
        events.extend(extractor.finish(true));
        let later = Turn::collect(&events);
        assert!(
            later.calls.iter().all(|call| !ids.contains(&call.id)),
            "{}: {:?}",
            format.name,
            later.calls
        );
    }
    written.sort();
    written.dedup();
    assert_eq!(written, ["0 1 2", "functions.ping:0 functions.ping:1 functions.ping:2"]);
}

/// Mistral's templates refuse other ids than nine letters and digits, also where the model writes
/// none.
#[test]
fn made_up_ids_have_the_form_of_the_format() {
    let is_nine = |id: &str| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    for name in ["mistral_v3", "mistral_v7", "mistral_v11"] {
        let rig = Rig::new(Catalog::shipped().get(name).expect("format"), Specials::Most);
        let request = request(r#"[{"name": "ping"}]"#, &json!("required"));
        let lowered = rig.format.lower(&request).expect("lowers");
        let wire = rig.format.render(&calls(&["{}"; 3])).expect("renders");
        let units = rig.units(&wire);
        let session = rig.session(&lowered, &units, &[]);
        let run = session.run(&session.tokens(&units, 0), 1);
        assert_eq!(run.turn.calls.len(), 3, "{name}");
        for call in &run.turn.calls {
            assert!(is_nine(&call.id), "{name}: {:?}", call.id);
        }
    }
}

/// Ids of other programs take the form that a family's ids have.
#[test]
fn foreign_ids_take_the_form_of_the_format() {
    let foreign = ["", "1", "call_abcdefgh12345678", "call_abcdefgh12345679", "toolu_01Ab-c", "é"];
    for (name, len, own) in [
        ("mistral_v3", 9, "aZ3456789"),
        ("mistral_v11", 9, "aZ3456789"),
        ("solar_open", 16, "abcdefgh"),
    ] {
        let catalog = Catalog::shipped();
        let format = catalog.get(name).expect("format");
        let mut ids: Vec<String> = foreign.map(|id| format.conforming_id(id)).to_vec();
        assert_eq!(ids, foreign.map(|id| format.conforming_id(id)), "{name}");
        for id in &ids {
            let is_word = id.bytes().all(|b| b.is_ascii_alphanumeric());
            assert!(id.len() == len && is_word, "{name}: {id:?}");
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), foreign.len(), "{name}");
        assert_eq!(format.conforming_id(own), own, "{name}");
    }
    for name in ["qwen3", "kimi_k2", "kimi_k3", "cohere"] {
        let catalog = Catalog::shipped();
        let format = catalog.get(name).expect("format");
        for id in foreign {
            assert_eq!(format.conforming_id(id), id, "{name}");
        }
    }
}

/// For each family with arguments in tags: texts at which parsers of the format split a value, and
/// similar texts.
const IN_VALUES: &[(&str, &[&str], &[&str])] = &[
    (
        "qwen3_coder",
        &["<parameter=", "</function>", "<function=", "<tool_call>", "</tool_call>"],
        &["<parameter", "</parameters>", "</param", "<b>", "<function"],
    ),
    ("glm4_5", &["<arg_key>", "<tool_call>", "</tool_call>"], &["<arg_", "<key>", "</arg_values>"]),
    ("glm4_7", &["<arg_key>", "<tool_call>", "</tool_call>"], &["<arg_", "<key>", "</arg_values>"]),
    (
        "minimax_m2",
        &[
            "<parameter name=\"",
            "</invoke>",
            "<invoke name=\"",
            "<minimax:tool_call>",
            "</minimax:tool_call>",
        ],
        &["<parameter value=\"", "<parameters>", "</parameters>", "<invoke>"],
    ),
    (
        "deepseek_v3_2",
        &[
            "<｜DSML｜parameter",
            "<｜DSML｜invoke",
            "</｜DSML｜invoke>",
            "</｜DSML｜function_calls>",
            "<｜DSML｜tool_calls>",
        ],
        &["<｜DSML", "DSML", "<parameter name=\"b\">"],
    ),
    (
        "deepseek_v4",
        &[
            "<｜DSML｜parameter",
            "<｜DSML｜invoke",
            "</｜DSML｜invoke>",
            "</｜DSML｜tool_calls>",
            "<｜DSML｜function_calls>",
        ],
        &["<｜DSML", "DSML", "<parameter name=\"b\">"],
    ),
    (
        "cohere_xml",
        &[
            "<cofl:value name=\"",
            "<cofl:value ",
            "</cofl:tool_call>",
            "</cofl:tool_calls>",
            "<cofl:tool_call id=\"",
        ],
        &["<cofl:val", "<value name=\"", "</cofl:"],
    ),
    (
        "kimi_k3",
        &[
            "<|open|>argument key=\"",
            "<|open|>call tool=\"",
            "<|close|>call<|sep|>",
            "<|close|>tools<|sep|>",
        ],
        &["<|open", "argument key=\"b\""],
    ),
    (
        "hy_v3",
        &["<arg_key:opensource>", "<tool_calls:opensource>", "</tool_call:opensource>"],
        &["<arg_key>", "<tool_call>", "</tool_calls>", "<arg_key:open"],
    ),
    (
        "k2_horizon",
        &["<ifm|arg_key>", "<ifm|tool_calls>", "</ifm|tool_call>"],
        &["<ifm|arg", "<arg_key>", "</ifm|arg_values>"],
    ),
    (
        "hy_v4",
        &["<arg_key:opensource>", "<tool_calls:opensource>", "</tool_call:opensource>"],
        &["<arg_key>", "<tool_call>", "</tool_calls>", "<arg_key:open"],
    ),
    (
        "beam",
        &["<rfl:parameter name=\"", "</rfl:parameter>"],
        &["<rfl:param", "<parameter name=\"", "</parameter>", "<rfl:parameter>"],
    ),
    (
        "muse_glimmer",
        &["<atem:parameter name=\"", "</atem:invoke>"],
        &["<atem:param", "<parameter name=\"", "</invoke>"],
    ),
    (
        "seed_oss",
        &["<parameter=", "</function>", "<function=", "<seed:tool_call>", "</seed:tool_call>"],
        &["<parameter", "</parameters>", "</param", "<tool_call>", "<function"],
    ),
    (
        "minicpm5",
        &["<param name=\"", "</function>", "<function name=\""],
        &["<param", "</parameter>", "<b>", "<![CDATA[", "]]>", "<function"],
    ),
    (
        "step3_5",
        &["<parameter=", "</function>", "<function=", "<tool_call>", "</tool_call>"],
        &["<parameter", "</parameters>", "</param", "<b>", "<function"],
    ),
    (
        "nemotron_v3",
        &["<parameter=", "</function>", "<function=", "<tool_call>", "</tool_call>"],
        &["<parameter", "</parameters>", "</param", "<b>", "<function"],
    ),
    (
        "deepseek_v4_1",
        &[
            "<｜DSML｜ parameter",
            "<｜DSML｜ invoke",
            "</｜DSML｜ invoke>",
            "</｜DSML｜ calls>",
            "<｜DSML｜ calls>",
        ],
        &["<｜DSML", "DSML", "<parameter name=\"b\">"],
    ),
    ("laguna", &["<arg_key>", "<tool_call>", "</tool_call>"], &["<arg_", "<key>", "</arg_values>"]),
    ("ling3", &["<arg_key>", "<tool_call>", "</tool_call>"], &["<arg_", "<key>", "</arg_values>"]),
    (
        "iquest_q1",
        &["<arg_key>", "<iquest_tool_call>", "</iquest_tool_call>"],
        &["<arg_", "<key>", "<tool_call>"],
    ),
    (
        "longcat_keyed",
        &["<longcat_arg_key>", "<longcat_tool_call>", "</longcat_tool_call>"],
        &["<longcat_arg_", "<arg_key>", "<tool_call>"],
    ),
    (
        "gigachat3_5",
        &[
            "<｜GCML｜parameter",
            "<｜GCML｜invoke",
            "</｜GCML｜invoke>",
            "</｜GCML｜tool_calls>",
            "<｜GCML｜tool_calls>",
        ],
        &["<｜GCML", "GCML", "<parameter name=\"b\">"],
    ),
    (
        "step3",
        &[
            "<steptml:parameter name=\"",
            "</steptml:invoke>",
            "<｜tool_call_begin｜>",
            "<｜tool_call_end｜>",
            "<｜tool_calls_end｜>",
        ],
        &["<steptml:", "<parameter name=\"b\">", "</invoke>"],
    ),
    (
        "mimo_v2",
        &["<parameter=", "</function>", "<tool_call>", "</tool_call>"],
        &["<parameter", "</parameters>", "</param", "<b>", "<function"],
    ),
    (
        "dots3",
        &["<parameter name=\"", "</invoke>", "<dots_function_call>", "</dots_function_call>"],
        &["<parameter value=\"", "<parameters>", "</parameters>", "<invoke>"],
    ),
    (
        "solar_open2",
        &["<|tool_arg:start|>", "<|tool_call:start|>", "<|tool_call:end|>"],
        &["<|tool_arg", "<|tool_call|>", "tool_arg:end"],
    ),
    (
        "telechat3_coder",
        &["<param_key>", "<tool_call>", "</tool_call>"],
        &["<param_", "<key>", "</param_values>"],
    ),
    (
        "hyperclovax_think",
        &["<arg_key>", "<tool_call>", "</tool_call>"],
        &["<arg_", "<key>", "</arg_values>"],
    ),
];

#[test]
fn argument_values_contain_no_markers() {
    let tools = r#"[
      {"name": "free", "parameters": {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}},
      {"name": "either", "parameters": {"type": "object", "properties": {"a": {"type": ["string", "integer"]}}, "required": ["a"]}},
      {"name": "short", "parameters": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 90}}, "required": ["a"]}},
      {"name": "other", "parameters": {"type": "object"}}
    ]"#;
    let (mut wrong, mut checked, mut tagged) = (Vec::new(), 0, Vec::new());
    for format in Catalog::shipped().formats() {
        if !matches!(format.call.arguments, ArgumentStyle::Tagged(_)) {
            continue;
        }
        tagged.push(format.name.clone());
        let (_, markers, others) =
            IN_VALUES.iter().find(|(name, ..)| *name == format.name).expect("in the table");
        for (specials, name) in
            BOTH.iter().flat_map(|s| ["free", "either", "short", "other"].map(|name| (*s, name)))
        {
            let rig = Rig::new(format, specials);
            let lowered = rig.format.lower(&request(tools, &json!("required"))).expect("lowers");
            let mut turn = calls(&[r#"{"a": "x VALUE y"}"#]);
            turn.calls[0].name = name.to_owned();
            let wire = rig.format.render(&turn).expect("renders");
            for (text, right) in
                markers.iter().map(|m| (m, false)).chain(others.iter().map(|o| (o, true)))
            {
                // As text, even if the vocabulary has a special token.
                let wire = wire.replace("VALUE", &format!("\0{text}"));
                let units = rig.units(&wire);
                let session = rig.session(&lowered, &units, &[]);
                let run = session.run(&session.tokens(&units, 0), 1);
                if (run.taken.is_ok() && run.complete) != right {
                    wrong.push(format!(
                        "{}, {specials:?}, {name}: {wire:?} is taken: {}",
                        format.name, !right
                    ));
                }
                checked += 1;
            }
            // The renderer refuses values that could not be read back, or writes them in quotes.
            let ArgumentStyle::Tagged(style) = &rig.format.call.arguments else { continue };
            let end = style.quotes.as_ref().map_or("", |quotes| &quotes.end);
            turn.calls[0].arguments = json!({"a": format!("{}{end}", markers[0])}).to_string();
            assert!(rig.format.render(&turn).is_err(), "{}", format.name);
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 300 && tagged.len() == IN_VALUES.len(), "{checked} {tagged:?}");
}

#[test]
fn a_custom_format_file_is_read_within_a_budget() {
    let format = Catalog::shipped().get("qwen3").expect("format").clone();
    let request = request(r#"[{"name": "ping"}]"#, &json!("auto"));
    let mut costly = format.clone();
    costly.spellings[0].text_unless = Some("(a|b)*a(a|b){40}".to_owned());
    let error = costly.check().expect_err("too large");
    assert!(error.to_string().contains("/spellings/0/text_unless"), "{error}");
    let request = request.with_limits(Limits::default().with_compile_fuel(10));
    assert!(format.read_unconstrained(&request, "Hello").is_err());
}
