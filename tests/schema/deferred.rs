//! Schemas that are put off until a parse gets to them are certain to be enforced.

use louver_test_support::text_if_present;
use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::json_schema::{
    AmbiguousText, MemberOrder, MemberPart, NestedStyle, ParameterStyle, PythonDialect,
    PythonValues, RawStrings, Registry, SchemaOptions, SchemaSource, Undeclared, ValueStyle,
    ValueSyntax, Whitespace, defer, lower, lower_into,
};
use louver::ir::{Expr, GrammarBuilder, SpecialToken, Trigger};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde_json::{Value, json};

use super::generate::Rng;
use super::number;

fn put_off(schema: &Value, options: &SchemaOptions) -> bool {
    let limits = Limits::default();
    let schema = Json::parse(&schema.to_string(), &limits).expect("JSON");
    let registry = Registry::new();
    let source =
        SchemaSource { schema: &schema, registry: &registry, options: *options, limits: &limits };
    let style = ValueStyle::Syntax(ValueSyntax::Json);
    let Some((deferred, _)) = defer(&GrammarBuilder::new(), source, &style) else { return false };
    let made = deferred.grammar().unwrap_or_else(|| panic!("cannot be made: {schema:?}"));
    let lowered =
        lower(&schema, options, &limits).unwrap_or_else(|error| panic!("{schema:?}: {error}"));
    assert_eq!(**made, lowered, "{schema:?}");
    Compiled::new(made.clone(), &limits).unwrap_or_else(|error| panic!("{schema:?}: {error}"));
    true
}

/// A schema of the keywords that may be put off, often with values that contradict each other.
fn schema(rng: &mut Rng, depth: usize) -> Value {
    let mut out = serde_json::Map::new();
    let types = ["string", "number", "integer", "boolean", "object", "array", "null"];
    if rng.chance(70) {
        let more = json!(["string", "null"]);
        out.insert("type".into(), if rng.chance(90) { json!(rng.pick(&types)) } else { more });
    }
    let names = ["a", "b", "é\"", "", "long name"];
    for keyword in 0..15 {
        if !rng.chance(12) {
            continue;
        }
        let small = |rng: &mut Rng| json!(rng.next(9) as i64 - 3);
        let (name, value) = match keyword {
            0 => ("minimum", small(rng)),
            1 => ("maximum", small(rng)),
            2 => ("minLength", small(rng)),
            3 => ("maxLength", small(rng)),
            4 => ("minItems", small(rng)),
            5 => ("maxItems", small(rng)),
            6 => ("enum", json!((0..rng.next(4)).map(|_| *rng.pick(&names)).collect::<Vec<_>>())),
            7 => ("enum", json!([1, "a", null])),
            8 => {
                ("required", json!((0..rng.next(3)).map(|_| *rng.pick(&names)).collect::<Vec<_>>()))
            }
            9 if depth > 0 => ("items", schema(rng, depth - 1)),
            10 if depth > 0 => (
                "additionalProperties",
                if rng.chance(50) { json!(rng.chance(50)) } else { schema(rng, depth - 1) },
            ),
            11 if depth > 0 => (
                "anyOf",
                json!((0..rng.next(3)).map(|_| schema(rng, depth - 1)).collect::<Vec<_>>()),
            ),
            12 if depth > 0 => {
                let members = (0..rng.next(4))
                    .map(|_| ((*rng.pick(&names)).to_owned(), schema(rng, depth - 1)));
                ("properties", Value::Object(members.collect()))
            }
            13 => {
                let number = |rng: &mut Rng| if rng.chance(90) { small(rng) } else { json!(0.5) };
                ("enum", json!((0..rng.next(4)).map(|_| number(rng)).collect::<Vec<_>>()))
            }
            14 => ("const", if rng.chance(50) { small(rng) } else { json!(rng.pick(&names)) }),
            _ => ("description", json!("text")),
        };
        out.insert(name.into(), value);
    }
    Value::Object(out)
}

/// Parameters between tags that may be no text, and keyword arguments.
fn styles() -> [ParameterStyle; 2] {
    let text = |text: &str| MemberPart::Fixed(Expr::text(text));
    let tagged = ParameterStyle {
        open: Expr::optional(Expr::text("\n")),
        between: Expr::Empty,
        close: Expr::Empty,
        member: vec![text("<"), MemberPart::Name, text(">"), MemberPart::Value],
        raw: Some(RawStrings {
            end: vec![(Trigger::Text(b"</a".to_vec()), Expr::text(">"))],
            lead: b"\n".to_vec(),
            trail: b"\n".to_vec(),
            excludes: vec![b"a\"".to_vec()],
            spaced: false,
            reading: AmbiguousText::Json,
            python: PythonValues::None,
            quotes: None,
        }),
        syntax: ValueSyntax::Json,
        other_type_names: Vec::new(),
        name: Arc::new(|name| (!name.is_empty()).then(|| name.to_owned())),
    };
    let keywords = ParameterStyle {
        between: Expr::text(", "),
        member: vec![MemberPart::Name, text("="), MemberPart::Value],
        raw: None,
        syntax: ValueSyntax::Python(PythonDialect::Literals),
        name: Arc::new(|name| (!name.contains(' ')).then(|| name.to_owned())),
        ..tagged.clone()
    };
    [tagged, keywords]
}

/// As [`put_off`], in all other styles; the number of them.
fn put_off_in_styles(schema: &Value, options: &SchemaOptions) -> usize {
    let limits = Limits::default();
    let (json, registry) =
        (Json::parse(&schema.to_string(), &limits).expect("JSON"), Registry::new());
    let mut empty = GrammarBuilder::new();
    let special = empty.special(SpecialToken::Name("<|mark|>".into()));
    let mark = || vec![Trigger::Special(special), Trigger::Text(b"a".to_vec())];
    let nested = NestedStyle { mark: mark(), item: "b".to_owned() };
    let mut all = vec![
        ValueStyle::Syntax(ValueSyntax::Delimited(mark())),
        ValueStyle::Syntax(ValueSyntax::Nested(Box::new(nested))),
    ];
    all.extend(styles().map(|style| ValueStyle::Parameters(Box::new(style))));
    let mut deferred = Vec::new();
    for style in &all {
        let source =
            SchemaSource { schema: &json, registry: &registry, options: *options, limits: &limits };
        if let Some((body, types)) = defer(&empty, source, style) {
            let mut builder = empty.clone();
            let lowered = lower_into(&mut builder, source, style);
            let lowered = lowered.unwrap_or_else(|error| panic!("{schema}: {error}"));
            assert_eq!(**types, lowered.types, "{schema}");
            deferred.push((body, builder.finish(lowered.rule).expect("valid")));
        }
    }
    for (body, lowered) in &deferred {
        let made = body.grammar().unwrap_or_else(|| panic!("cannot be made: {schema}"));
        assert_eq!(**made, *lowered, "{schema}");
        let compiled = Compiled::new(made.clone(), &limits);
        let compiled = compiled.unwrap_or_else(|error| panic!("{schema}: {error}"));
        let is_nullable = Recognizer::new(Arc::new(compiled)).is_complete();
        assert_eq!(body.is_nullable(), is_nullable, "{schema}");
    }
    deferred.len()
}

#[test]
fn what_is_put_off_can_be_enforced() {
    let fixed = SchemaOptions::default()
        .with_order(MemberOrder::Fixed)
        .with_whitespace(Whitespace::Pretty { indent: 2 });
    let any = SchemaOptions::default()
        .with_order(MemberOrder::Any)
        .with_undeclared(Undeclared::Forbidden);
    let mut rng = Rng::new(7);
    let (cases, mut off, mut in_styles) = (number("LOUVER_DEFERRED", 3_000), 0, 0);
    for case in 0..cases {
        let options = [SchemaOptions::default(), fixed, any][case % 3];
        let schema = schema(&mut rng, 3);
        off += usize::from(put_off(&schema, &options));
        in_styles += put_off_in_styles(&schema, &options);
        // Most objects of the generator are not the outermost value.
        let wrapped = json!({
            "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": schema},
            "required": ["a"],
            "$defs": {"a": schema, "b": {"$ref": "#/nowhere"}, "unused": {"type": "list"}}
        });
        off += usize::from(put_off(&wrapped, &options));
        in_styles += put_off_in_styles(&wrapped, &options);
    }
    assert!(off * 10 > cases, "only {off} of {cases} are put off");
    assert!(in_styles * 4 > cases, "only {in_styles} of {cases} are put off in other styles");
}

/// Real schemas and all parts of them.
#[test]
fn real_schemas_that_are_put_off_can_be_enforced_if_present() {
    let Some(text) = text_if_present("toolcalls-dev.jsonl") else { return };
    let (mut off, mut all) = (0, 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        for tool in case["tools"].as_array().expect("tools") {
            let schema = tool
                .get("parameters")
                .or_else(|| tool["function"].get("parameters"))
                .expect("parameters");
            all += 1;
            off += usize::from(put_off(schema, &SchemaOptions::default()));
        }
    }
    assert!(off * 2 > all, "only {off} of {all} are put off");
    println!("{off} of {all} tools' schemas are put off");
}
