//! Tests of the keywords: texts that a schema accepts and rejects.

use std::sync::Arc;

use super::*;
use crate::compile::Compiled;
use crate::fuel;
use crate::matcher::Recognizer;

mod nested;
mod objects;
mod parameters;
mod references;
mod refusals;
mod relaxations;
mod spelling;
mod strings;
mod unique;
mod vocabulary;
mod witnesses;

fn options(whitespace: Whitespace) -> SchemaOptions {
    SchemaOptions { whitespace, ..SchemaOptions::default() }
}

/// A schema to lower.
fn source<'s>(
    schema: &'s Json,
    registry: &'s Registry,
    options: &SchemaOptions,
    limits: &'s Limits,
) -> SchemaSource<'s> {
    SchemaSource { schema, registry, options: *options, limits }
}

/// Adds the JSON text that a schema allows to a grammar.
fn lower_json_into(
    builder: &mut GrammarBuilder,
    schema: &Json,
    options: &SchemaOptions,
    limits: &Limits,
) -> Result<RuleId, SchemaErrors> {
    let style = ValueStyle::Syntax(ValueSyntax::Json);
    lower_strict_into(builder, schema, options, limits, &style)
}

fn recognizer_with(schema: &str, options: &SchemaOptions) -> Recognizer {
    let limits = Limits::default();
    let json = Json::parse(schema, &limits).unwrap();
    let grammar = lower(&json, options, &limits).unwrap_or_else(|e| panic!("{schema}: {e}"));
    Recognizer::new(Arc::new(
        Compiled::new(&grammar, &limits).unwrap_or_else(|e| panic!("{schema}: {e}")),
    ))
}

fn accepts(recognizer: &mut Recognizer, text: &str) -> bool {
    recognizer.reset();
    recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete()
}

#[track_caller]
fn check_with(schema: &str, options: &SchemaOptions, valid: &[&str], invalid: &[&str]) {
    let mut recognizer = recognizer_with(schema, options);
    for text in valid {
        assert!(accepts(&mut recognizer, text), "{schema} should accept {text}");
    }
    for text in invalid {
        assert!(!accepts(&mut recognizer, text), "{schema} should not accept {text}");
    }
}

/// Options that allow every spelling of numbers.
fn any_spelling() -> SchemaOptions {
    let (integers, exponents) = (Integers::ZeroFraction, Exponents::Allowed);
    SchemaOptions { integers, exponents, ..SchemaOptions::default() }
}

#[track_caller]
fn check(schema: &str, valid: &[&str], invalid: &[&str]) {
    check_with(schema, &SchemaOptions::default(), valid, invalid);
}

#[track_caller]
fn check_any(schema: &str, valid: &[&str], invalid: &[&str]) {
    check_with(schema, &any_spelling(), valid, invalid);
}

#[test]
fn unconstrained_schemas_accept_exactly_json() {
    for schema in [
        "true",
        "{}",
        r#"{"title":"x","description":"y","default":1,"x-custom":{"type":"string"}}"#,
    ] {
        check(
            schema,
            &[
                "null",
                "true",
                "-0",
                "0.5e+3",
                r#""a\u00e9\ud83d\ude00é😀\/""#,
                "[]",
                "[1, [ ] ,{}]",
                r#"{"a":{"b":[null]}}"#,
            ],
            &[
                "",
                "nul",
                "01",
                "1.",
                ".5",
                "+1",
                "'a'",
                "[1,]",
                "{\"a\":1,}",
                "{a:1}",
                "\"\n\"",
                r#""\ud800""#,
                r#""\udc00""#,
                r#""\x""#,
                " 1",
                "[1] ",
            ],
        );
    }
}

#[test]
fn type_keyword() {
    check_any(r#"{"type":"null"}"#, &["null"], &["1", "\"null\""]);
    check_any(r#"{"type":"boolean"}"#, &["true", "false"], &["null", "1"]);
    check_any(
        r#"{"type":"integer"}"#,
        &["0", "-7", "12", "1.0", "3.00", "1e2", "-1.0E+02"],
        &["1.5", "1e-2", "1.5e1", "01", "-", "1.", "null"],
    );
    check_any(r#"{"type":"number"}"#, &["0", "-7.25", "1e9", "1.5E-3"], &["1.", "\"1\"", "1e"]);
    check_any(r#"{"type":["string","null"]}"#, &["\"a\"", "null"], &["1", "[]"]);
    check_any(r#"{"type":["object","array"]}"#, &["{}", "[1]", r#"{"a":1}"#], &["1", "\"\""]);
    check_any(r#"{"type":["integer","number"]}"#, &["1", "1.5"], &["true"]);
    check_any(
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"}"#,
        &["1"],
        &["1.0"],
    );
}

#[test]
fn keywords_constrain_their_own_type_only() {
    check(r#"{"minLength":3}"#, &["1", "[]", "\"abc\"", "null"], &["\"ab\""]);
    check(
        r#"{"required":["a"]}"#,
        &["1", "[]", r#"{"a":1}"#, r#"{"a":1,"b":2}"#],
        &["{}", r#"{"b":1}"#],
    );
    check(r#"{"items":{"type":"integer"}}"#, &["\"x\"", "[1,2]", "{}"], &["[\"x\"]"]);
    check(r#"{"minimum":5}"#, &["\"x\"", "5", "5.5", "null"], &["4", "4.99"]);
    check(
        r#"{"properties":{"a":{"type":"null"}}}"#,
        &["3", "{}", r#"{"a":null}"#],
        &[r#"{"a":1}"#],
    );
}

#[test]
fn enum_and_const() {
    check_any(
        r#"{"enum":["on","only","\"q\"",1,2.50,null,true,[1,"x"],{"k":[]}]}"#,
        &[
            "\"on\"",
            "\"only\"",
            r#""\"q\"""#,
            "1",
            "1.0",
            "2.5",
            "2.50",
            "null",
            "true",
            "[1, \"x\"]",
            r#"{ "k": [ ] }"#,
        ],
        &["\"o\"", "\"onl\"", "false", "2", "[1]", "[\"x\",1]", "{}"],
    );
    check_any(r#"{"const":"a"}"#, &["\"a\""], &["\"b\"", "null"]);
    check_any(r#"{"type":"string","enum":["a",1,null]}"#, &["\"a\""], &["1", "null"]);
    check_any(
        r#"{"enum":["a","bb","ccc"],"minLength":2,"pattern":"b|c"}"#,
        &["\"bb\"", "\"ccc\""],
        &["\"a\""],
    );
    check_any(r#"{"enum":[1,5,9.5],"minimum":4,"type":"integer"}"#, &["5"], &["1", "9.5"]);
    check_any(r#"{"enum":[1,2],"const":1.0}"#, &["1"], &["2"]);
    check_any(
        r#"{"enum":[{"a":1},{"a":2}],"properties":{"a":{"minimum":2}}}"#,
        &[r#"{"a":2}"#],
        &[r#"{"a":1}"#],
    );
}

#[test]
fn items_prefix_items_and_lengths() {
    check(
        r#"{"type":"array","items":{"type":"integer"}}"#,
        &["[]", "[1]", "[ 1 ,2 ]"],
        &["[1,]", "[,1]", "[\"\"]", "[1 2]"],
    );
    check(
        r#"{"type":"array","minItems":2,"maxItems":3}"#,
        &["[1,2]", "[1,2,3]"],
        &["[]", "[1]", "[1,2,3,4]"],
    );
    check(r#"{"type":"array","minItems":1}"#, &["[1]", "[1,2,3]"], &["[]"]);
    check(r#"{"type":"array","maxItems":0}"#, &["[]", "[ ]"], &["[1]"]);
    check(
        r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1}"#,
        &["[1]", "[1,\"a\"]", "[1,\"a\",null,null]"],
        &["[]", "[\"a\"]", "[1,null]", "[1,\"a\",1]"],
    );
    check(
        r#"{"type":"array","prefixItems":[{"type":"integer"}],"items":false}"#,
        &["[]", "[1]"],
        &["[1,2]", "[\"\"]"],
    );
    check(
        r#"{"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"string"},"maxItems":2}"#,
        &["[]", "[1]", "[1,\"\"]"],
        &["[\"\"]", "[1,2]", "[1,\"\",\"\"]"],
    );
    check(
        r#"{"type":"array","prefixItems":[{"type":"integer"},false]}"#,
        &["[]", "[1]"],
        &["[1,2]"],
    );
    check(r#"{"type":"array","items":false}"#, &["[]"], &["[1]"]);
    check(r#"{"type":"array","contains":{"const":1}}"#, &["[1]", "[2,1,3]"], &["[]", "[2]"]);
    check(
        r#"{"type":"array","items":{"maximum":5},"maxItems":100,"minItems":60}"#,
        &[&format!("[{}1]", "1,".repeat(70))],
        &["[1]"],
    );
}

#[test]
fn number_bounds() {
    check_any(
        r#"{"type":"integer","minimum":-5,"maximum":120}"#,
        &["-5", "0", "-0", "99", "120", "7.0"],
        &["-6", "121", "1000", "-10", "007"],
    );
    check_any(
        r#"{"type":"integer","exclusiveMinimum":0}"#,
        &["1", "10", "99999999999999999999"],
        &["0", "-1", "-0"],
    );
    check_any(
        r#"{"type":"integer","minimum":123456789012345678901234567890}"#,
        &["123456789012345678901234567890", "123456789012345678901234567891"],
        &["123456789012345678901234567889", "5"],
    );
    check_any(
        r#"{"type":"number","minimum":0,"maximum":1}"#,
        &["0", "0.5", "1", "1.000", "-0"],
        &["1.01", "-0.1", "2"],
    );
    check_any(r#"{"type":"number","minimum":0}"#, &["0", "1e5", "2.5e-7"], &["-1", "-1e-9"]);
    check_any(
        r#"{"type":"number","exclusiveMaximum":-1.5}"#,
        &["-1.51", "-2"],
        &["-1.5", "-1", "0"],
    );
    check_any(r#"{"type":"integer","minimum":1.2,"maximum":3.7}"#, &["2", "3"], &["1", "4"]);
    check_any(r#"{"type":"integer","multipleOf":5}"#, &["0", "-10", "15"], &["1", "12"]);
    check_any(
        r#"{"type":"number","multipleOf":0.25,"maximum":1}"#,
        &["0.75", "1", "-3.5", "0.250"],
        &["0.3", "1.25"],
    );
    check_any(
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":0,"exclusiveMinimum":true}"#,
        &["1"],
        &["0"],
    );
}

#[test]
fn references() {
    check(r##"{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"integer"}}}"##, &["1"], &["\"\""]);
    check(
        r##"{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"],"additionalProperties":false}"##,
        &[r#"{"v":1}"#, r#"{"v":1,"next":{"v":2,"next":{"v":3}}}"#],
        &["{}", r#"{"v":1,"next":{}}"#, r#"{"v":1,"next":1}"#],
    );
    check(
        r##"{"$ref":"#/$defs/s","minLength":2,"$defs":{"s":{"type":"string","maxLength":3}}}"##,
        &["\"ab\"", "\"abc\""],
        &["\"a\"", "\"abcd\"", "1"],
    );
    check(
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/s","minLength":2,"definitions":{"s":{"type":"string"}}}"##,
        &["\"a\""],
        &["1"],
    );
    check(
        r##"{"$defs":{"t":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/t"}}]}},"$ref":"#/$defs/t"}"##,
        &["null", "[]", "[[],[null]]"],
        &["1", "[1]"],
    );
    check(
        r##"{"$id":"http://x.test/root","$ref":"inner","$defs":{"i":{"$id":"inner","$ref":"#/$defs/j","$defs":{"j":{"type":"null"}}},"j":{"type":"string"}}}"##,
        &["null"],
        &["\"\""],
    );
    check(
        r##"{"$ref":"#name","$defs":{"x":{"$anchor":"name","type":"null"}}}"##,
        &["null"],
        &["1"],
    );
}

#[test]
fn all_of_any_of_and_one_of() {
    check(
        r#"{"anyOf":[{"type":"string"},{"type":"integer","minimum":3}]}"#,
        &["\"\"", "3"],
        &["2", "null"],
    );
    check(
        r#"{"type":"object","properties":{"a":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":{"type":"null"}}"#,
        &[r#"{"a":1}"#, r#"{"b":null}"#, r#"{"a":1,"b":null}"#],
        &["{}", r#"{"c":null}"#, r#"{"b":1}"#],
    );
    check(
        r#"{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":3}},"required":["a"]}],"type":"object"}"#,
        &[r#"{"a":3}"#],
        &["{}", r#"{"a":2}"#, r#"{"a":"x"}"#],
    );
    check(
        r#"{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"x":{"type":"string"}},"required":["k"]}]}"#,
        &[r#"{"k":"a","x":1}"#, r#"{"k":"b","x":""}"#],
        &[r#"{"k":"a","x":""}"#, r#"{"k":"c"}"#, "{}"],
    );
    check(r#"{"oneOf":[{"type":"integer"},{"minimum":5}]}"#, &["1", "5.5", "\"x\""], &["7", "1.5"]);
    check(
        r#"{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &[r#"{"a":1}"#, r#"{"b":1,"c":2}"#],
        &["{}", r#"{"a":1,"b":2}"#, r#"{"b":1,"a":2}"#, r#"{"b":1,"\u0061":2}"#],
    );
}

#[test]
fn negation() {
    check(r#"{"not":{"type":"string"}}"#, &["1", "null"], &["\"\""]);
    check(
        r#"{"type":"string","not":{"enum":["a","b"]}}"#,
        &["\"c\"", "\"ab\"", "\"\""],
        &["\"a\"", "\"b\"", "1"],
    );
    check(r#"{"type":"string","not":{"pattern":"^x"}}"#, &["\"a\"", "\"\""], &["\"x\"", "\"xa\""]);
    check(r#"{"type":"number","not":{"type":"integer"}}"#, &["1.5"], &["1", "1.0"]);
    check(r#"{"not":{"const":null}}"#, &["1", "\"\"", "{}"], &["null"]);
    check(r#"{"not":{"const":true}}"#, &["false", "1"], &["true"]);
    check(r#"{"type":"object","not":{"required":["a"]}}"#, &["{}", r#"{"b":1}"#], &[r#"{"a":1}"#]);
    check(
        r#"{"type":"object","properties":{"t":{"enum":["x","y"]},"v":{}},"required":["t"],"additionalProperties":false,"if":{"properties":{"t":{"const":"x"}}},"then":{"required":["v"]},"else":{"not":{"required":["v"]}}}"#,
        &[r#"{"t":"x","v":1}"#, r#"{"t":"y"}"#],
        &[r#"{"t":"x"}"#, r#"{"t":"y","v":1}"#],
    );
    check(
        r#"{"type":"object","properties":{"a":{}},"not":{"properties":{"a":{},"b":{"type":"null"}},"additionalProperties":false}}"#,
        &[r#"{"c":1}"#, r#"{"a":1,"b":null,"c":1}"#, r#"{"b":2}"#],
        &["{}", r#"{"a":1}"#, r#"{"a":1,"b":null}"#],
    );
    check(
        r#"{"type":"object","not":{"patternProperties":{"^x":{"type":"integer"}}}}"#,
        &[r#"{"x":""}"#, r#"{"a":1,"x":1,"xy":""}"#],
        &["{}", r#"{"a":""}"#, r#"{"x":1}"#],
    );
    check(
        r#"{"type":"integer","not":{"enum":[1,20,-3.0]}}"#,
        &["0", "2", "-1", "200", "3"],
        &["1", "1.0", "20", "-3"],
    );
    check(
        r#"{"type":"integer","not":{"multipleOf":3}}"#,
        &["1", "-2", "10"],
        &["0", "3", "-6", "9.0"],
    );
    check(
        r#"{"not":{"oneOf":[{"type":"integer"},{"minimum":5}]}}"#,
        &["7", "1.5"],
        &["1", "5.5", "\"x\""],
    );
    check(
        r#"{"type":"array","not":{"items":{"type":"integer"}}}"#,
        &["[\"\"]", "[1,null]"],
        &["[]", "[1]"],
    );
    check(
        r#"{"type":"array","not":{"contains":{"type":"integer"}}}"#,
        &["[]", "[\"\"]"],
        &["[1]", "[\"\",1]"],
    );
}

#[test]
fn dependent_required_and_dependencies() {
    check(
        r#"{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false,"dependentRequired":{"a":["b"]}}"#,
        &["{}", r#"{"b":1}"#, r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#],
    );
    check(
        r#"{"type":"object","dependencies":{"a":{"properties":{"b":{"type":"integer"}}}}}"#,
        &["{}", r#"{"b":""}"#, r#"{"b":1,"a":1}"#],
        &[r#"{"b":"","a":1}"#],
    );
}

#[test]
fn whitespace_policies() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{}},"additionalProperties":false}"#;
    let (compact, python) = (r#"{"a":[1,2],"b":{"c":1}}"#, r#"{"a": [1, 2], "b": {"c": 1}}"#);
    let spread = "{\n  \"a\" :\t[ 1 ,\r\n2 ] , \"b\": {}\n}";
    check_with(schema, &options(Whitespace::Compact), &[compact, "{}"], &[python, spread, "{ }"]);
    check_with(
        schema,
        &options(Whitespace::PythonLike),
        &[python, "{}", "{\"a\": []}"],
        &[compact, spread, "{ }"],
    );
    let wide = format!("{{\"a\":{}[]}}", " ".repeat(40));
    let wider = format!("{{\"a\":{}[]}}", " ".repeat(41));
    check(schema, &[compact, python, spread, "{ }", &wide], &[&wider, "{\u{b}}"]);
    check_with(schema, &options(Whitespace::Flexible { max: 0 }), &[compact], &[python]);
    let exact = Whitespace::Exact { after_comma: 1, after_colon: 0 };
    check_with(
        schema,
        &options(exact),
        &[r#"{"a":[1, 2], "b":{"c":1}}"#, "{}"],
        &[compact, python, spread],
    );
    // Numbers of spaces without bound are not texts.
    let (wide, wider) = (format!("{{\"a\":{}[]}}", " ".repeat(300)), "{\"a\": []}");
    let exact = Whitespace::Exact { after_comma: 0, after_colon: 300 };
    check_with(schema, &options(exact), &[&wide], &[wider]);
    let lines = "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}";
    let odd = "{\n \"a\": []\n}";
    check_with(
        schema,
        &options(Whitespace::Pretty { indent: 2 }),
        &[lines],
        &[compact, python, spread, odd],
    );
}

#[test]
fn policies_relax_and_report() {
    let limits = Limits::default();
    let schema = r#"{"properties":{"a":{"type":"array","contains":{"const":1},"minContains":2,"uniqueItems":true},"b":{"pattern":"(a)\\1"}},"not":{"not":{"unevaluatedItems":false}},"$ref":"http://elsewhere/x"}"#;
    let json = Json::parse(schema, &limits).unwrap();
    let lowered = |policy| {
        let options = SchemaOptions { policy, ..SchemaOptions::default() };
        lower_reported(source(&json, &Registry::new(), &options, &limits))
    };
    let mut pointers = vec![
        "/$ref",
        "/not/not/unevaluatedItems",
        "/properties/a/uniqueItems",
        "/properties/b/pattern",
    ];
    pointers.remove(1); // Negated twice it is enforced.
    let sorted = |errors: &[SchemaError]| {
        let mut out: Vec<String> = errors.iter().map(|e| e.pointer.clone()).collect();
        out.sort_unstable();
        out
    };
    assert_eq!(sorted(&lowered(Policy::Strict).unwrap_err().0), pointers);
    for policy in [Policy::Validate, Policy::BestEffort] {
        let LoweredSchema { grammar, relaxed } = lowered(policy).unwrap();
        assert_eq!(sorted(&relaxed), pointers);
        let mut recognizer = Recognizer::new(Arc::new(Compiled::new(&grammar, &limits).unwrap()));
        assert!(accepts(&mut recognizer, r#"{"a":[1,1],"b":"x"}"#));
        assert!(!accepts(&mut recognizer, r#"{"a":1}"#));
    }
}

#[test]
fn functions_without_a_report_refuse_policies_that_relax() {
    let limits = Limits::default();
    let enforceable = Json::parse("{}", &limits).unwrap();
    for policy in [Policy::Strict, Policy::Validate, Policy::BestEffort] {
        let options = SchemaOptions::default().with_policy(policy);
        let mut builder = GrammarBuilder::new();
        let outcomes = [
            lower(&enforceable, &options, &limits).map(|_| ()),
            lower_json_into(&mut builder, &enforceable, &options, &limits).map(|_| ()),
        ];
        for outcome in outcomes {
            match policy {
                Policy::Strict => assert_eq!(outcome, Ok(())),
                _ => assert_eq!(outcome.unwrap_err().0[0].reason, SchemaErrorReason::Policy),
            }
        }
    }
}

#[test]
fn unsatisfiable_optional_members_are_omitted() {
    check(
        r#"{"type":"object","properties":{"a":false,"b":{"type":"string","minLength":3,"maxLength":2},"c":{"enum":["x"],"minLength":2},"d":{"allOf":[{"type":"null"},{"type":"string"}]}},"additionalProperties":{"type":"null"}}"#,
        &["{}", r#"{"e":null}"#],
        &[r#"{"a":null}"#, r#"{"b":null}"#, r#"{"c":null}"#, r#"{"d":null}"#],
    );
}

#[test]
fn large_objects_and_enums_are_lowered() {
    let members: Vec<String> =
        (0..400).map(|i| format!("\"property_{i}\":{{\"type\":\"string\"}}")).collect();
    let schema = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", members.join(","));
    check(
        &schema,
        &[r#"{"property_399":"","property_3":"","x":1}"#],
        &[r#"{"property_399":"","property_3":"","property_399":""}"#],
    );
    let words: Vec<String> = (0..10_000).map(|i| format!("\"word{i}\"")).collect();
    check(
        &format!("{{\"enum\":[{}]}}", words.join(",")),
        &["\"word77\"", "\"word9999\""],
        &["\"word10000\"", "\"word\""],
    );
}

#[test]
fn embeds_into_a_grammar_under_construction() {
    let mut builder = GrammarBuilder::new();
    let limits = Limits::default();
    let schema = Json::parse(r#"{"type":"integer"}"#, &limits).unwrap();
    let first = lower_json_into(&mut builder, &schema, &SchemaOptions::default(), &limits).unwrap();
    let schema = Json::parse(r#"{"const":"x"}"#, &limits).unwrap();
    let second =
        lower_json_into(&mut builder, &schema, &SchemaOptions::default(), &limits).unwrap();
    let start = builder.rule(
        "both",
        crate::ir::Expr::Seq(vec![crate::ir::Expr::Ref(first), crate::ir::Expr::Ref(second)]),
    );
    let grammar = builder.finish(start).unwrap();
    let mut recognizer = Recognizer::new(Arc::new(Compiled::new(&grammar, &limits).unwrap()));
    assert!(accepts(&mut recognizer, "12\"x\""));
    assert!(!accepts(&mut recognizer, "12"));
}

#[test]
fn equal_rules_of_multiplied_alternatives_are_merged() {
    // Each combination of negated branches makes a rule of its own for every position, although no
    // text tells five of them apart.
    let text = r##"{"oneOf":[
        {"$ref":"#/$defs/leaf"},{"$ref":"#/$defs/not"},{"$ref":"#/$defs/all"},{"$ref":"#/$defs/any"},{"$ref":"#/$defs/none"}],
      "$defs":{
        "leaf":{"type":"object","properties":{"leaf":{"type":"string"}},"required":["leaf"]},
        "not":{"type":"object","properties":{"not":{"$ref":"#"}},"required":["not"]},
        "all":{"type":"object","properties":{"all":{"type":"array","items":{"$ref":"#"}}},"required":["all"]},
        "any":{"type":"object","properties":{"any":{"type":"array","items":{"$ref":"#"}}},"required":["any"]},
        "none":{"type":"object","properties":{"none":{"type":"array","items":{"$ref":"#"}}},"required":["none"]}}}"##;
    let limits = Limits::default();
    let json = Json::parse(text, &limits).unwrap();
    let options = SchemaOptions::default();
    let one = lower(&json, &options, &limits).unwrap().rules.len();
    let mut builder = GrammarBuilder::new();
    let start = lower_json_into(&mut builder, &json, &options, &limits).unwrap();
    let as_made = builder.into_grammar(start).rules.len();
    assert!(one * 3 < as_made, "{one} of {as_made}");
    check(
        text,
        &[
            r#"{"leaf":"a"}"#,
            r#"{"not":{"leaf":"a","x":1}}"#,
            r#"{"all":[{"not":{"any":[]}},{"leaf":""}]}"#,
        ],
        &[
            r#"{}"#,
            r#"{"leaf":1}"#,
            r#"{"leaf":"a","not":{"leaf":"a"}}"#,
            r#"{"not":{"leaf":"a","all":[]}}"#,
            r#"{"any":[{}]}"#,
        ],
    );
}
