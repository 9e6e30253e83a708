//! Combinations of object schemas that overlap, against the `jsonschema` crate on every object
//! there is over a few names and values. `LOUVER_OVERLAPS` sets the number of schemas.

use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::json_schema::{SchemaErrorReason, SchemaOptions, lower};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde_json::{Map, Value, json};

use super::generate::{Rng, conditionals};
use super::number;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A schema of a member's value.
fn value(rng: &mut Rng) -> Value {
    match rng.next(7) {
        0 => json!({"const": 1}),
        1 => json!({"enum": [1, "x"]}),
        2 => json!({"enum": ["x", "y"]}),
        3 => json!({"type": "string"}),
        4 => json!({"type": "integer", "minimum": 2}),
        5 => json!({"type": "string", "pattern": "^x$"}),
        _ => json!({"type": ["integer", "string"], "not": {"const": "y"}}),
    }
}

/// A branch: some of the keywords of objects.
fn branch(rng: &mut Rng, depth: usize) -> Value {
    let mut out = Map::new();
    let some = |rng: &mut Rng, chance| {
        NAMES.into_iter().filter(|_| rng.chance(chance)).collect::<Vec<_>>()
    };
    let declared = some(rng, 50);
    if !declared.is_empty() {
        let properties: Map<String, Value> =
            declared.iter().map(|name| ((*name).to_owned(), value(rng))).collect();
        out.insert("properties".into(), properties.into());
    }
    let required = some(rng, 30);
    if !required.is_empty() {
        out.insert("required".into(), json!(required));
    }
    match rng.next(6) {
        0 => drop(out.insert("additionalProperties".into(), json!(false))),
        1 => drop(out.insert("additionalProperties".into(), value(rng))),
        2 => drop(out.insert("patternProperties".into(), json!({"^c$": value(rng)}))),
        _ => {}
    }
    if rng.chance(30) {
        out.insert("type".into(), json!("object"));
    }
    if depth > 0 && rng.chance(30) {
        combine(rng, &mut out, depth - 1);
    }
    out.into()
}

fn combine(rng: &mut Rng, out: &mut Map<String, Value>, depth: usize) {
    let branches =
        |rng: &mut Rng| (0..2 + rng.next(3)).map(|_| branch(rng, depth)).collect::<Vec<_>>();
    match rng.next(5) {
        0 => drop(out.insert("anyOf".into(), branches(rng).into())),
        1 => drop(out.insert("not".into(), branch(rng, depth))),
        2 => {
            out.insert("if".into(), branch(rng, depth));
            out.insert("then".into(), branch(rng, depth));
            out.insert("else".into(), branch(rng, depth));
        }
        _ => drop(out.insert("oneOf".into(), branches(rng).into())),
    }
}

/// All objects over the names, each absent or one of these values, and others than objects.
fn instances(values: &[Value]) -> Vec<Value> {
    let mut out = vec![json!({})];
    for name in NAMES {
        for object in out.clone() {
            for value in values {
                let mut object = object.clone();
                object[name] = value.clone();
                out.push(object);
            }
        }
    }
    out.extend([json!(1), json!("x"), json!([])]);
    out
}

/// Values of members in instances.
fn values() -> Vec<Value> {
    vec![json!(1), json!(2), json!("x"), json!("y"), Value::Null]
}

#[test]
fn overlapping_branches_are_told_apart() {
    agree_on_all(&values(), |rng| {
        let mut schema = Map::new();
        combine(rng, &mut schema, 1);
        schema.into()
    });
}

#[test]
fn conditionals_are_told_apart() {
    let mut values = values();
    values.extend([json!({"a": 1}), json!({"a": "x", "b": 2})]);
    let tested = [json!(1), json!(1.0), json!("x"), json!("y"), Value::Null, json!({"a": 1})];
    agree_on_all(&values, |rng| {
        conditionals(rng, (&NAMES, &tested), &mut |rng| {
            let depth = usize::from(rng.chance(20));
            branch(rng, depth)
        })
    });
}

/// Compares random schemas with the `jsonschema` crate on all objects over these values.
fn agree_on_all(values: &[Value], schema: impl Fn(&mut Rng) -> Value) {
    let limits = Limits::default();
    let instances = instances(values);
    let schemas = number("LOUVER_OVERLAPS", 200);
    let (mut valid, mut refused) = (0, 0);
    for seed in 0..schemas {
        let mut rng = Rng::new((seed + number("LOUVER_SEED", 1)) as u64);
        let schema = schema(&mut rng);
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let grammar = match lower(&Json::from(&schema), &SchemaOptions::default(), &limits) {
            Ok(grammar) => grammar,
            Err(errors) => {
                if errors.is_unsatisfiable() {
                    assert!(!instances.iter().any(|i| validator.is_valid(i)), "{schema}: {errors}");
                } else {
                    let limit = |error: &louver::front::json_schema::SchemaError| {
                        matches!(error.reason, SchemaErrorReason::Limit(_))
                    };
                    assert!(errors.iter().all(limit), "{schema}: {errors}");
                    refused += 1;
                }
                continue;
            }
        };
        let mut recognizer =
            Recognizer::new(Arc::new(Compiled::new(grammar, &limits).expect("compiles")));
        for instance in &instances {
            recognizer.reset();
            let accepted = recognizer.push(instance.to_string().as_bytes()).is_ok()
                && recognizer.is_complete();
            assert_eq!(accepted, validator.is_valid(instance), "{schema}: {instance}");
            valid += usize::from(accepted);
        }
    }
    assert!(
        valid > schemas * 10 && refused <= schemas / 20,
        "{valid} valid instances, {refused} schemas refused"
    );
}

/// Commands that are told apart by one member: as many alternatives as there are commands, not as
/// many as sets of them.
#[test]
fn discriminated_branches_stay_few() {
    let branches = |n: usize| {
        let branch = |i: usize| {
            json!({"type": "object", "properties": {
                "command": {"enum": [format!("command-{i}")]},
                "parameters": {"type": "object", "properties": {"id": {"type": "string"}, format!("p{i}"): {"type": "integer"}}, "required": ["id"]},
            }})
        };
        json!({"type": "object", "oneOf": (0..n).map(branch).collect::<Vec<_>>()})
    };
    let rules = |n: usize| {
        let grammar =
            lower(&Json::from(&branches(n)), &SchemaOptions::default(), &Limits::default());
        grammar.unwrap_or_else(|errors| panic!("{n}: {errors}")).rules.len()
    };
    let (few, more) = (rules(4), rules(8));
    assert!(more < few * 6 && more < 500, "{few} rules of four branches, {more} of eight");
}

/// Conditionals over one member that exclude each other: one case for each, not one for each set.
#[test]
fn conditionals_over_one_member_stay_few() {
    let conditional = |i: usize, condition: Value| {
        json!({"if": condition, "then": {"properties": {format!("p{i}"): {"type": "integer"}},
            "required": [format!("p{i}")]}})
    };
    let kind = |i: usize| json!({"properties": {"kind": {"const": format!("k{i}")}}});
    let required = |i: usize| {
        let mut out = kind(i);
        out["required"] = json!(["kind"]);
        out
    };
    let nested = |i: usize| json!({"properties": {"meta": required(i)}, "required": ["meta"]});
    let optional = |i: usize| json!({"properties": {"meta": kind(i)}});
    let shapes: [(&str, &dyn Fn(usize) -> Value, Value); 5] = [
        ("optional at two levels", &optional, json!({})),
        ("required", &required, json!({"required": ["kind"]})),
        ("optional", &required, json!({})),
        ("vacuous", &kind, json!({"required": ["kind"]})),
        ("nested", &nested, json!({"properties": {"meta": {"type": "object"}}})),
    ];
    for (name, condition, base) in shapes {
        let rules = |n: usize| {
            let all: Vec<Value> = (0..n).map(|i| conditional(i, condition(i))).collect();
            let schema = json!({"type": "object", "allOf": all, "anyOf": [base]});
            let grammar =
                lower(&Json::from(&schema), &SchemaOptions::default(), &Limits::default());
            grammar.unwrap_or_else(|errors| panic!("{name} {n}: {errors}")).rules.len()
        };
        let (few, more) = (rules(20), rules(40));
        assert!(more < few * 3, "{name}: {few} rules of 20 conditionals, {more} of 40");
    }
}

/// Branches that a member of a member tells apart, if it is there.
#[test]
fn branches_with_an_inner_discriminator_stay_few() {
    let branches = |n: usize, required: &[&str]| {
        let branch = |i: usize| {
            let kind = json!({"properties": {"kind": {"const": i}}, "required": required});
            json!({"properties": {"meta": kind, format!("p{i}"): {"type": "integer"}}})
        };
        json!({"type": "object", "oneOf": (0..n).map(branch).collect::<Vec<_>>()})
    };
    for required in [&[][..], &["kind"]] {
        let rules = |n: usize| {
            let schema = Json::from(&branches(n, required));
            let grammar = lower(&schema, &SchemaOptions::default(), &Limits::default());
            grammar.unwrap_or_else(|errors| panic!("{n} {required:?}: {errors}")).rules.len()
        };
        let (few, more) = (rules(20), rules(40));
        assert!(more < few * 3, "{required:?}: {few} rules of 20 branches, {more} of 40");
    }
}

/// Compares a schema with the `jsonschema` crate on these instances.
#[track_caller]
fn agrees_on(schema: &Value, instances: &[Value]) {
    let grammar = lower(&Json::from(schema), &SchemaOptions::default(), &Limits::default());
    let grammar = grammar.unwrap_or_else(|errors| panic!("{errors}"));
    let compiled = Compiled::new(grammar, &Limits::default()).expect("compiles");
    let mut recognizer = Recognizer::new(Arc::new(compiled));
    let validator = jsonschema::draft202012::new(schema).expect("a schema");
    for instance in instances {
        recognizer.reset();
        let text = instance.to_string();
        let accepted = recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete();
        assert_eq!(accepted, validator.is_valid(instance), "{text}");
    }
}

#[test]
fn one_of_thousands_of_branches_may_overlap_others() {
    let object = |i: usize| {
        let properties = json!({"kind": {"const": format!("k{i}")}, "v": {"type": "integer"}});
        json!({"properties": properties, "required": ["kind"]})
    };
    let mut branches: Vec<Value> = (0..1_500).map(object).collect();
    branches.push(json!({"properties": {"kind": {"type": "string"}, "z": {"type": "string"}},
        "required": ["kind", "z"]}));
    let kinds = [json!("k0"), json!("k1499"), json!("k1500"), json!(1)].into_iter();
    let instances: Vec<Value> = kinds
        .flat_map(|kind| {
            [
                json!({"kind": kind}),
                json!({"kind": kind, "z": "a"}),
                json!({"kind": kind, "v": 1, "z": "a"}),
                json!({"kind": kind, "v": "b", "z": "a"}),
                json!({"kind": kind, "v": 1, "z": 1}),
            ]
        })
        .collect();
    agrees_on(&json!({"type": "object", "oneOf": branches}), &instances);
}

#[test]
fn hundreds_of_conditionals_may_have_an_else() {
    let conditional = |i: usize| {
        let kind = json!({"properties": {"kind": {"const": i}}});
        let name = format!("p{i}");
        json!({"if": kind, "then": {"required": [name]}, "else": {"properties": {name: false}}})
    };
    let all: Vec<Value> = (0..200).map(conditional).collect();
    let schema = json!({"properties": {"kind": {"type": "integer"}}, "required": ["kind"],
        "type": "object", "allOf": all});
    agrees_on(
        &schema,
        &[
            json!({"kind": 3, "p3": 1}),
            json!({"kind": 3}),
            json!({"p3": 1}),
            json!({"kind": 3, "p3": 1, "p4": 1}),
            json!({"kind": 200, "p200": 1}),
            json!({"kind": 200, "p199": 1}),
        ],
    );
}

/// Branches that constants, types or a required discriminator tell apart need no comparison in
/// pairs.
#[test]
fn thousands_of_disjoint_branches_are_taken() {
    const COUNT: usize = 3_000;
    let branches = |branch: &dyn Fn(usize) -> Value| (0..COUNT).map(branch).collect::<Vec<_>>();
    let object = |i: usize| json!({"properties": {"kind": {"const": i}}, "required": ["kind"]});
    let shapes = [
        json!({"oneOf": branches(&|i| json!({"const": i}))}),
        json!({"oneOf": branches(&|i| json!({"enum": [i, format!("v{i}")]}))}),
        json!({"oneOf": [{"type": "string"}, {"enum": (0..COUNT).collect::<Vec<_>>()}]}),
        json!({"type": "object", "oneOf": branches(&object)}),
    ];
    for (i, schema) in shapes.iter().enumerate() {
        let grammar = lower(&Json::from(schema), &SchemaOptions::default(), &Limits::default());
        let grammar = grammar.unwrap_or_else(|errors| panic!("shape {i}: {errors}"));
        let compiled = Compiled::new(grammar, &Limits::default()).expect("compiles");
        let mut recognizer = Recognizer::new(Arc::new(compiled));
        for (number, expected) in [(0, true), (2_999, true), (3_000, false)] {
            let text = if i == 3 { format!("{{\"kind\": {number}}}") } else { number.to_string() };
            recognizer.reset();
            let accepted = recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete();
            assert_eq!(accepted, expected, "shape {i}: {text}");
        }
    }
}

#[test]
fn a_grammar_with_too_many_states_names_a_place() {
    let members: Map<String, Value> =
        (0..300).map(|i| (format!("member-{i}"), json!({"type": "null"}))).collect();
    let schema = json!({"properties": {"a": {"properties": {"b": {"properties": members}}}}});
    let grammar = lower(&Json::from(&schema), &SchemaOptions::default(), &Limits::default());
    let limits = Limits::default().with_compiled_states(3_000);
    let lowered = lower(&Json::from(&schema), &SchemaOptions::default(), &limits);
    assert!(Compiled::new(grammar.expect("taken"), &Limits::default()).is_ok());
    let error = Compiled::new(lowered.expect("taken"), &limits).expect_err("too many states");
    assert!(error.to_string().contains("at \"/properties/a/properties/b\""), "{error}");
}
