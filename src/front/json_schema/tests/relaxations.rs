//! Tests of what a policy relaxes where a limit is reached.

use super::*;
use crate::fuel::CancelToken;

/// A schema, with `PATTERN` for a pattern whose automaton has 2,048 states.
fn lower_relaxed(schema: &str, limits: &Limits) -> Result<LoweredSchema, SchemaErrors> {
    let schema = schema.replace("PATTERN", r#""^(?!z)[xy]*x[xy]{10}$""#);
    let json = Json::parse(&schema, &Limits::default()).unwrap();
    let strict = lower(&json, &SchemaOptions::default(), limits);
    assert!(strict.is_err(), "{schema} reaches no limit");
    let options = SchemaOptions::default().with_policy(Policy::BestEffort);
    lower_reported(source(&json, &Registry::new(), &options, limits))
}

#[track_caller]
fn relaxed(schema: &str, limits: &Limits, pointers: &[&str], valid: &[&str], invalid: &[&str]) {
    let LoweredSchema { grammar, relaxed } =
        lower_relaxed(schema, limits).unwrap_or_else(|errors| panic!("{schema}: {errors}"));
    let mut found: Vec<&str> = relaxed.iter().map(|error| &*error.pointer).collect();
    found.sort_unstable();
    assert_eq!(found, pointers, "{schema}: {relaxed:?}");
    let mut recognizer =
        Recognizer::new(Arc::new(Compiled::new(&grammar, &Limits::default()).unwrap()));
    for text in valid {
        assert!(accepts(&mut recognizer, text), "{schema} should accept {text}");
    }
    for text in invalid {
        assert!(!accepts(&mut recognizer, text), "{schema} should not accept {text}");
    }
}

/// Limits that JSON fits into, and `PATTERN` does not.
fn few_states() -> Limits {
    Limits::default().with_automaton_states(1_000)
}

/// A schema that is lowered on little fuel is refused, relaxed with a report, or what it says. The
/// last automaton is made when little is left.
#[test]
fn lowering_on_little_fuel_accepts_nothing_else() {
    let (mut refused, mut whole) = (0, 0);
    for (at, budget) in (1_000..200_000).step_by(331).enumerate() {
        // Automata of other bounds are not in the caches yet.
        let schema = format!(r#"{{"type":"integer","multipleOf":97,"minimum":-{}}}"#, 2_282 + at);
        let json = Json::parse(&schema, &Limits::default()).unwrap();
        for policy in [Policy::Strict, Policy::BestEffort] {
            let options = SchemaOptions::default().with_policy(policy);
            let limits = Limits::default();
            let lowered = crate::fuel::with_budget(budget, || {
                lower_reported(source(&json, &Registry::new(), &options, &limits))
            });
            match lowered {
                Err(errors) => {
                    let is_limit =
                        |e: &SchemaError| matches!(e.reason, SchemaErrorReason::Limit(_));
                    assert!(errors.0.iter().all(is_limit), "{schema} with {budget}: {errors}");
                    refused += 1;
                }
                Ok(LoweredSchema { grammar, relaxed }) if relaxed.is_empty() => {
                    let compiled = Compiled::new(&grammar, &Limits::default()).unwrap();
                    let mut recognizer = Recognizer::new(Arc::new(compiled));
                    for (text, expected) in [("97", true), ("10", false), ("1-0", false)] {
                        assert_eq!(accepts(&mut recognizer, text), expected, "{schema}: {text}");
                    }
                    whole += 1;
                }
                Ok(_) => {}
            }
        }
    }
    assert!(refused > 0 && whole > 0, "{refused} refused, {whole} whole");
}

#[test]
fn a_keyword_is_relaxed_where_it_stands() {
    let limits = few_states();
    relaxed(r#"{"type":"string","pattern":PATTERN}"#, &limits, &["/pattern"], &["\"a\""], &["1"]);
    relaxed(
        r#"{"properties":{"a":{"type":"string","pattern":PATTERN,"maxLength":3},"b":{"type":"null"}},
            "required":["a"],"additionalProperties":false}"#,
        &limits,
        &["/properties/a/pattern"],
        &[r#"{"a":"abc"}"#, r#"{"a":"","b":null}"#],
        &["{}", r#"{"a":1}"#, r#"{"a":"abcd"}"#, r#"{"a":"","b":1}"#, r#"{"a":"","c":1}"#],
    );
    let branches = |n: usize| -> String {
        let branch = |i| format!(r#"{{"required":["m{i}"],"properties":{{"k":{{"const":{i}}}}}}}"#);
        (0..n).map(branch).collect::<Vec<_>>().join(",")
    };
    relaxed(
        &format!(r#"{{"type":"object","oneOf":[{}]}}"#, branches(600)),
        &Limits::default(),
        &["/oneOf"],
        &[r#"{"m1":0,"k":1}"#, r#"{"m1":0,"m2":0}"#],
        &["{}", r#"{"m1":0,"k":2}"#, "[]"],
    );
}

#[test]
fn a_relaxation_allows_more_under_any_negation() {
    let limits = few_states();
    let any = ["1", "\"a\"", "\"xxxxxxxxxxx\""];
    relaxed(
        r#"{"not":{"type":"string","pattern":PATTERN}}"#,
        &limits,
        &["/not/pattern"],
        &any,
        &[],
    );
    relaxed(r#"{"not":{"not":{"pattern":PATTERN}}}"#, &limits, &["/not/not/pattern"], &any, &[]);
    relaxed(
        r#"{"if":{"pattern":PATTERN},"then":{"type":"string","maxLength":11},"else":{"type":"number"}}"#,
        &limits,
        &["/if/pattern"],
        &["\"xxxxxxxxxxx\"", "\"a\"", "1"],
        &["\"aaaaaaaaaaaa\"", "null"],
    );
    relaxed(
        r#"{"oneOf":[{"type":"string","pattern":PATTERN},{"type":"string","maxLength":2},{"type":"null"}]}"#,
        &limits,
        &["/oneOf/0/pattern"],
        &["\"a\"", "\"xxxxxxxxxxx\"", "null"],
        &["1"],
    );
    // A name that the pattern matches may have any value.
    relaxed(
        r#"{"patternProperties":{PATTERN:{"type":"null"}},"additionalProperties":false}"#,
        &limits,
        &["/additionalProperties", "/patternProperties"],
        &[r#"{"xxxxxxxxxxx":null}"#, r#"{"a":1}"#],
        &[],
    );
    relaxed(
        r#"{"not":{"patternProperties":{PATTERN:false}}}"#,
        &limits,
        &["/not/patternProperties"],
        &["{}", r#"{"xxxxxxxxxxx":1}"#],
        &[],
    );
}

#[test]
fn counts_and_evaluation_do_not_rely_on_what_is_relaxed() {
    let limits = few_states();
    // Which elements count is unknown, so the upper bound is not enforced.
    let count = |unique: bool| {
        format!(
            r#"{{"type":"array","items":{{"enum":["a","b","c"]}},"uniqueItems":{unique},
                "contains":{{"pattern":PATTERN}},"minContains":0,"maxContains":0}}"#
        )
    };
    for unique in [true, false] {
        relaxed(
            &count(unique),
            &limits,
            &["/contains/pattern"],
            &["[]", r#"["a","b"]"#],
            &[r#"["d"]"#],
        );
    }
    relaxed(
        r#"{"enum":[["a"],["a","b"],1],"contains":{"pattern":PATTERN},"minContains":0,"maxContains":0}"#,
        &limits,
        &["/contains/pattern"],
        &[r#"["a"]"#, r#"["a","b"]"#, "1"],
        &["2"],
    );
    relaxed(
        r#"{"allOf":[{"patternProperties":{PATTERN:true}}],"unevaluatedProperties":false}"#,
        &limits,
        &["/allOf/0/patternProperties"],
        &[r#"{"xxxxxxxxxxx":1}"#],
        &[],
    );
    let branches: Vec<String> =
        (0..9).map(|i| format!(r#"{{"properties":{{"p{i}":{{"const":{i}}}}}}}"#)).collect();
    relaxed(
        &format!(
            r#"{{"required":["p1"],"anyOf":[{}],"unevaluatedProperties":false}}"#,
            branches.join(",")
        ),
        &Limits::default(),
        &["/anyOf"],
        &[r#"{"p1":1}"#, r#"{"p1":0,"p2":2}"#],
        &["{}"],
    );
}

#[test]
fn unknown_references_and_patterns_allow_more_under_negation() {
    let limits = Limits::default();
    let unknown = r#"{"$ref":"https://example.org/unknown"}"#;
    relaxed(&format!(r#"{{"not":{unknown}}}"#), &limits, &["/not/$ref"], &["1"], &[]);
    relaxed(r#"{"pattern":"(?P<a>x"}"#, &limits, &["/pattern"], &["\"y\""], &[]);
    relaxed(
        r#"{"not":{"patternProperties":{"(a)\\1":false}}}"#,
        &limits,
        &["/not/patternProperties"],
        &["{}", r#"{"aa":1}"#],
        &[],
    );
}

#[test]
fn limits_on_the_whole_schema_relax_what_is_costly() {
    let members: Vec<String> =
        (0..200).map(|i| format!(r#""m{i}":{{"type":"array","items":{{"const":{i}}}}}"#)).collect();
    let costly = members.join(",");
    let schema = format!(
        r#"{{"type":"object","required":["cheap"],
            "properties":{{"cheap":{{"type":"null"}},"costly":{{"properties":{{{costly}}}}}}}}}"#
    );
    for limits in [Limits::default().with_nodes(100), Limits::default().with_compile_fuel(4_000)] {
        let lowered = lower_relaxed(&schema, &limits).unwrap();
        assert!(!lowered.relaxed.is_empty());
        let compiled = Compiled::new(&lowered.grammar, &Limits::default()).unwrap();
        let mut recognizer = Recognizer::new(Arc::new(compiled));
        assert!(accepts(&mut recognizer, r#"{"cheap":null,"costly":{"m1":[1]}}"#));
        assert!(!accepts(&mut recognizer, "1"), "the root keeps its type");
    }
    // References that nest too deeply.
    let defs: Vec<String> = (0..200)
        .map(|i| format!(r##""d{i}":{{"allOf":[{{"$ref":"#/$defs/d{}"}}]}}"##, i + 1))
        .collect();
    let schema = format!(
        r##"{{"$defs":{{{},"d200":{{"type":"null"}}}},"properties":{{"a":{{"$ref":"#/$defs/d0"}},"b":{{"type":"null"}}}}}}"##,
        defs.join(",")
    );
    let lowered = lower_relaxed(&schema, &Limits::default()).unwrap();
    let compiled = Compiled::new(&lowered.grammar, &Limits::default()).unwrap();
    let mut recognizer = Recognizer::new(Arc::new(compiled));
    assert!(accepts(&mut recognizer, r#"{"a":null}"#));
    assert!(!accepts(&mut recognizer, r#"{"b":1}"#), "only the references are relaxed");
}

#[test]
fn other_errors_are_not_relaxed() {
    let limits = few_states();
    let refused = |schema: &str| lower_relaxed(schema, &limits).unwrap_err().0;
    let errors = refused(r#"{"pattern":PATTERN,"items":{"type":"text"},"allOf":[]}"#);
    let malformed = |error: &&SchemaError| matches!(error.reason, SchemaErrorReason::Malformed(_));
    assert_eq!(errors.iter().filter(malformed).count(), 2, "{errors:?}");
    let errors = refused(r#"{"allOf":[{"type":"null"},{"type":"string","pattern":PATTERN}]}"#);
    assert!(SchemaErrors(errors).is_unsatisfiable());
    let token = CancelToken::default();
    token.cancel();
    let errors = token.run(|| refused(r#"{"properties":{"a":{"type":"null"}}}"#));
    assert!(errors[0].reason.to_string().contains("cancelled"), "{errors:?}");
}

#[test]
fn all_errors_before_a_limit_are_reported() {
    let wide: Vec<String> = (0..3_000).map(|i| format!(r#""m{i}":{{"const":{i}}}"#)).collect();
    let schema = format!(
        r#"{{"properties":{{"z":{{"type":"strin"}},"y":{{"minimum":"1"}},{}}}}}"#,
        wide.join(",")
    );
    let json = Json::parse(&schema, &Limits::default()).unwrap();
    let limits = Limits::default().with_compile_fuel(24_000);
    let errors = lower(&json, &SchemaOptions::default(), &limits).unwrap_err();
    let has = |pointer: &str| errors.iter().any(|error| error.pointer == pointer);
    assert!(has("/properties/z/type") && has("/properties/y/minimum"), "{errors}");
    assert!(errors.to_string().contains("units of work"), "{errors}");
}
