//! Tests of refused schemas, and of the pointers of their errors.

use super::*;

fn errors(schema: &str) -> Vec<SchemaError> {
    let limits = Limits::default();
    let json = Json::parse(schema, &limits).unwrap();
    match lower(&json, &SchemaOptions::default(), &limits) {
        Ok(_) => panic!("{schema} was not refused"),
        Err(errors) => errors.0,
    }
}

#[track_caller]
fn refused(schema: &str, kind: &str, pointers: &[&str]) {
    let errors = errors(schema);
    let mut found: Vec<&str> = errors.iter().map(|e| e.pointer.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, pointers, "{schema}: {errors:?}");
    for error in &errors {
        let found_kind = match error.reason {
            SchemaErrorReason::Malformed(_) => "malformed",
            SchemaErrorReason::Unsupported(_) => "unsupported",
            SchemaErrorReason::Unenforced(_) => "unenforced",
            SchemaErrorReason::Unsatisfiable(_) => "unsatisfiable",
            SchemaErrorReason::Limit(_) => "limit",
            SchemaErrorReason::Policy => "policy",
        };
        assert_eq!(found_kind, kind, "{schema}: {error:?}");
    }
}

#[test]
fn unsupported_keywords() {
    for (schema, pointer) in [
        (
            r#"{"type":"array","contains":{"const":1},"minContains":2,"uniqueItems":true}"#,
            "/uniqueItems",
        ),
        (
            r#"{"prefixItems":[{},{"type":"boolean"},{"type":"boolean"}],"uniqueItems":true}"#,
            "/uniqueItems",
        ),
        (
            r#"{"items":{"type":"integer","minimum":0,"maximum":1e40,"multipleOf":3},"uniqueItems":true}"#,
            "/uniqueItems",
        ),
        (
            r#"{"not":{"allOf":[{"anyOf":[{},{"properties":{"a":{}}}]}],"unevaluatedProperties":false}}"#,
            "/not/unevaluatedProperties",
        ),
        (r#"{"not":{"uniqueItems":true}}"#, "/not/uniqueItems"),
        (r#"{"pattern":"(a)\\1"}"#, "/pattern"),
        (r#"{"patternProperties":{"(a)\\1":{}}}"#, "/patternProperties"),
        (r#"{"$ref":"http://json-schema.org/draft-03/schema#"}"#, "/$ref"),
        (
            r#"{"type":"object","minProperties":3,"additionalProperties":false,"patternProperties":{"^[a-z]{3}$":{}}}"#,
            "/minProperties",
        ),
    ] {
        refused(schema, "unsupported", &[pointer]);
    }
}

#[test]
fn keywords_without_effect_are_accepted() {
    check(
        r#"{"type":"string","uniqueItems":true,"unevaluatedProperties":false}"#,
        &["\"a\""],
        &["[]"],
    );
    check(
        r#"{"type":"array","uniqueItems":false,"minItems":0,"unevaluatedItems":true}"#,
        &["[1,1]"],
        &["1"],
    );
    check(r#"{"type":"array","contains":{},"minContains":0}"#, &["[]"], &["1"]);
}

#[test]
fn malformed_schemas() {
    for (schema, pointer) in [
        ("1", ""),
        (r#"{"properties":{"a":3}}"#, "/properties/a"),
        (r#"{"type":"any"}"#, "/type"),
        (r#"{"type":[1]}"#, "/type"),
        (r#"{"enum":1}"#, "/enum"),
        (r#"{"minLength":-1}"#, "/minLength"),
        (r#"{"minItems":"1"}"#, "/minItems"),
        (r#"{"pattern":"("}"#, "/pattern"),
        (r#"{"required":true}"#, "/required"),
        (r#"{"anyOf":[]}"#, "/anyOf"),
        (r#"{"properties":[]}"#, "/properties"),
        (r#"{"minimum":"1"}"#, "/minimum"),
        (r#"{"multipleOf":0}"#, "/multipleOf"),
        (r##"{"$ref":"#/$defs/none"}"##, "/$ref"),
        (r##"{"$ref":"#"}"##, ""),
        (r##"{"anyOf":[{"$ref":"#"},{"type":"null"}]}"##, ""),
    ] {
        refused(schema, "malformed", &[pointer]);
    }
}

#[test]
fn all_errors_are_reported() {
    refused(
        r##"{"properties":{"a":{"contains":{"const":1},"minContains":2,"uniqueItems":true},"b":{"items":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"contains":{"const":1},"minContains":2,"uniqueItems":true},"unused":{"uniqueItems":true}}}"##,
        "unsupported",
        &["/$defs/x/uniqueItems", "/properties/a/uniqueItems"],
    );
}

#[test]
fn unsatisfiable_schemas() {
    for (schema, pointer) in [
        ("false", ""),
        (r#"{"enum":[]}"#, "/enum"),
        (r#"{"type":"string","minLength":3,"maxLength":2}"#, ""),
        (
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":2}},"required":["a"]}"#,
            "/properties/a",
        ),
        (r#"{"type":"string","allOf":[{"pattern":"^a"},{"pattern":"^b"}]}"#, "/allOf/0/pattern"),
        (r#"{"type":"integer","minimum":0.2,"maximum":0.8}"#, ""),
        (r##"{"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]}"##, ""),
        (r#"{"type":"array","items":false,"minItems":1}"#, ""),
    ] {
        let errors = errors(schema);
        assert!(
            matches!(errors[0].reason, SchemaErrorReason::Unsatisfiable(_)),
            "{schema}: {errors:?}"
        );
        assert!(errors.iter().any(|e| e.pointer == pointer), "{schema}: {errors:?}");
    }
}

#[test]
fn limits_are_errors() {
    let many: Vec<String> = (0..60)
        .map(|i| {
            format!(r#"{{"anyOf":[{{"properties":{{"a{i}":{{"maxItems":1}}}}}},{{"required":["b{i}"]}}]}}"#)
        })
        .collect();
    refused(&format!("{{\"allOf\":[{}]}}", many.join(",")), "limit", &[""]);
    refused(r#"{"items": {"minLength": 2000000000}}"#, "limit", &["/items/minLength"]);
    refused(
        r#"{"type":"string","pattern":"^(?:a|b)*a(?:a|b){30}(?:a|bb)$","minLength":40}"#,
        "limit",
        &["/pattern"],
    );
    let deep = format!("{}true{}", "{\"items\":".repeat(500), "}".repeat(500));
    let limits = Limits { depth: 1_000, ..Limits::default() };
    let json = Json::parse(&deep, &limits).unwrap();
    let errors = lower(&json, &SchemaOptions::default(), &Limits::default()).unwrap_err();
    assert!(matches!(errors.0[0].reason, SchemaErrorReason::Limit(_)));
    assert!(lower(&json, &SchemaOptions::default(), &limits).is_ok());
}

#[test]
fn cached_numbers_keep_the_limit_on_states() {
    let json = Json::parse(r#"{"type": "number", "multipleOf": 977}"#, &Limits::default()).unwrap();
    let lower = |states| {
        let limits = Limits::default().with_automaton_states(states);
        lower(&json, &SchemaOptions::default(), &limits)
    };
    assert!(lower(100_000).is_ok());
    let errors = lower(500).unwrap_err();
    assert!(matches!(errors.0[0].reason, SchemaErrorReason::Limit(_)), "{errors}");
}

#[test]
fn deep_applicators_do_not_exhaust_the_stack() {
    // The smallest stack that a thread of a host is likely to have.
    let run = || {
        let limits = Limits::default();
        for (open, close) in [
            ("{\"allOf\":[{\"minLength\":1},", "]}"),
            ("{\"anyOf\":[{\"type\":\"null\"},", "]}"),
            ("{\"oneOf\":[{\"type\":\"object\",\"required\":[\"a\"]},", "]}"),
            ("{\"not\":", "}"),
            (
                "{\"properties\":{\"a\":{\"type\":\"integer\"}},\"if\":{\"required\":[\"a\"]},\"then\":",
                "}",
            ),
        ] {
            for depth in [20, 60, 200] {
                let text =
                    format!("{}{{\"type\":\"string\"}}{}", open.repeat(depth), close.repeat(depth));
                let json =
                    Json::parse(&text, &Limits { depth: 1_000, ..Limits::default() }).unwrap();
                // Accepted or refused: lowering returns.
                let _ = lower(&json, &SchemaOptions::default(), &limits);
                let references: Vec<String> = (0..depth)
                    .map(|i| {
                        format!("\"d{i}\":{{\"allOf\":[{{\"$ref\":\"#/$defs/d{}\"}}]}}", i + 1)
                    })
                    .collect();
                let text = format!(
                    "{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{},\"d{depth}\":true}}}}",
                    references.join(",")
                );
                let _ = lower(
                    &Json::parse(&text, &limits).unwrap(),
                    &SchemaOptions::default(),
                    &limits,
                );
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

#[test]
fn large_combinations_reach_a_limit_within_their_fuel() {
    const RESOURCES: usize = 2_200;
    let list =
        |n: usize, item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(",");
    let either = |i: usize| {
        format!(
            r#"{{"anyOf":[{{"properties":{{"a{i}":{{"maxItems":1}}}}}},{{"required":["b{i}"]}}]}}"#
        )
    };
    let object = |i: usize| format!(r#"{{"properties":{{"a{i}":{{"type":"null"}}}}}}"#);
    let pattern = |i: usize| format!(r#""^x{i}[0-9]*$":{{"maximum":{i}}}"#);
    // Each resource has the dynamic anchors of all before it in its scope.
    let resource = |i: usize| {
        let next = i + 1;
        format!(r#""{i}":{{"$id":"{i}","$dynamicAnchor":"a{i}","items":{{"$ref":"{next}"}}}}"#)
    };
    let last = format!(r#""{RESOURCES}":{{"items":{{"$dynamicRef":"0"}},"$id":"{RESOURCES}"}}"#);
    let resources = list(RESOURCES, &resource);
    let dynamic = format!(r#"{{"$ref":"0","$defs":{{{resources},{last}}}}}"#);
    let schemas = [
        dynamic,
        format!(r#"{{"allOf":[{}]}}"#, list(2_500, &either)),
        format!(r#"{{"allOf":[{}]}}"#, list(10_000, &object)),
        format!(r#"{{"not":{{"anyOf":[{}]}}}}"#, list(10_000, &object)),
        format!(r#"{{"patternProperties":{{{}}}}}"#, list(1_500, &pattern)),
        format!(r#"{{"pattern":"{}"}}"#, "a[bc]?".repeat(200_000)),
    ];
    for schema in schemas {
        let (errors, spent) = fuel::measure(|| errors(&schema));
        let is_limit = |error: &SchemaError| matches!(error.reason, SchemaErrorReason::Limit(_));
        assert!(errors.iter().any(is_limit), "{schema:.80}: {errors:?}");
        // The last charge may exceed the budget.
        let budget = Limits::default().compile_budget(schema.len());
        assert!(spent <= budget + budget / 100, "{schema:.80}: {spent} of {budget} units");
    }
}

#[test]
fn schemas_that_multiply_are_named() {
    let conditionals = |name: &str| {
        let all = (0..60).map(|i| {
            format!(
                r#"{{"if":{{"properties":{{"{name}":{{"const":{i}}}}},"required":["{name}"]}},"then":{{"required":["{name}{i}"]}}}}"#
            )
        });
        all.collect::<Vec<_>>().join(",")
    };
    let both = format!(
        r#"{{"properties":{{"x":{{"type":"object","allOf":[{},{}]}}}}}}"#,
        conditionals("a"),
        conditionals("b")
    );
    let errors = errors(&both);
    let text = errors[0].reason.to_string();
    assert_eq!(errors[0].pointer, "/properties/x", "{errors:?}");
    for part in ["/properties/x/allOf/0/if", "/properties/x/allOf/60/if"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Conditionals are expanded as conjunctions with what stands around them, which must notice that
/// they come back to themselves, however they are reached.
#[test]
fn conditionals_that_lead_back_to_themselves() {
    let ways_back = [
        r##""if": {"required": ["x"]}, "then": {"$ref": "#/$defs/d"}"##,
        r##""if": {"required": ["x"]}, "else": {"$ref": "#/$defs/d"}"##,
        r##""if": {"$ref": "#/$defs/d"}, "then": {"required": ["x"]}"##,
        r##""if": {"required": ["x"]}, "then": {"allOf": [{"$ref": "#/$defs/d"}]}"##,
        r##""dependentSchemas": {"x": {"$ref": "#/$defs/d"}}"##,
    ];
    let ways_in = [
        r##""$ref": "#/$defs/d""##,
        r##""$ref": "#/$defs/d", "title": "t""##,
        r##""anyOf": [{"$ref": "#/$defs/d"}]"##,
        r##""oneOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]"##,
        r##""properties": {"a": {"$ref": "#/$defs/d", "title": "t"}}, "required": ["a"]"##,
        r##""items": {"$ref": "#/$defs/d", "minLength": 1}, "minItems": 1"##,
    ];
    for back in ways_back {
        for way_in in ways_in {
            let schema = format!(r#"{{{way_in}, "$defs": {{"d": {{{back}}}}}}}"#);
            let errors = errors(&schema);
            assert!(
                errors.iter().any(|e| matches!(e.reason, SchemaErrorReason::Malformed(_))),
                "{schema}: {errors:?}"
            );
        }
    }
}

/// Chains of definitions without a value between them have a limit, whatever links them.
#[test]
fn long_chains_in_place() {
    for link in [
        r##"{"if": {"required": ["x"]}, "then": {"$ref": "#/$defs/NEXT"}}"##,
        r##"{"allOf": [{"$ref": "#/$defs/NEXT"}], "minLength": 1}"##,
        r##"{"oneOf": [{"$ref": "#/$defs/NEXT"}, {"type": "null"}]}"##,
        r##"{"not": {"$ref": "#/$defs/NEXT"}}"##,
    ] {
        let definitions: Vec<String> = (0..3_000)
            .map(|n| format!(r#""d{n}": {}"#, link.replace("NEXT", &format!("d{}", n + 1))))
            .collect();
        let schema = format!(
            r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d3000": {{}}}}}}"##,
            definitions.join(", ")
        );
        let errors = errors(&schema);
        assert!(
            errors.iter().all(|e| matches!(e.reason, SchemaErrorReason::Limit(_))),
            "{link}: {errors:?}"
        );
    }
}

#[test]
fn dependencies_that_multiply_are_named_by_their_keyword() {
    let dependency = |brings: fn(usize) -> String| {
        (0..12).map(|i| format!(r#""d{i}":{}"#, brings(i))).collect::<Vec<_>>().join(",")
    };
    for (keyword, brings) in [
        ("dependentRequired", (|i| format!(r#"["e{i}"]"#)) as fn(usize) -> String),
        ("dependentSchemas", |i| format!(r#"{{"required":["e{i}"]}}"#)),
        ("dependencies", |i| format!(r#"["e{i}"]"#)),
    ] {
        // Without an upper bound, they do not multiply.
        let schema = format!(r#"{{"maxProperties":20,"{keyword}":{{{}}}}}"#, dependency(brings));
        let found = errors(&schema);
        let named = format!("{:?}", format!("/{keyword}"));
        assert!(found[0].to_string().contains(&named), "{keyword}: {}", found[0]);
    }
}

/// Each of ten arrays has thousands of states of counting, which differ in their edges only.
#[test]
fn states_of_counting_are_bounded_in_the_whole_schema() {
    let arrays = |n: usize| {
        let array = |i: usize| {
            format!(
                r#""a{i}":{{"type":"array","contains":{{"const":{i}}},"minContains":20,"maxContains":{},"maxItems":90}}"#,
                60 + i % 10
            )
        };
        format!(
            r#"{{"type":"object","properties":{{{}}}}}"#,
            (0..n).map(array).collect::<Vec<_>>().join(",")
        )
    };
    let limits = Limits::default();
    let ten = Json::parse(&arrays(10), &limits).unwrap();
    let grammar = lower(&ten, &SchemaOptions::default(), &limits).unwrap();
    crate::Compiled::new(grammar, &limits).unwrap();
    let found = errors(&arrays(40));
    let names_array = |error: &SchemaError| error.pointer.ends_with("/contains");
    assert!(found.iter().any(names_array), "{found:?}");
    assert!(found[0].to_string().contains("lower `maxContains`"), "{}", found[0]);
}
