//! Conditions on which members are present, against the `jsonschema` crate on every set of members.
//! `LOUVER_PRESENCE` sets the number of schemas.

use std::sync::Arc;

use louver::compile::Compiled;
use louver::front::json_schema::{MemberOrder, SchemaOptions, Undeclared, lower};
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use serde_json::{Map, Value, json};

use super::generate::Rng;
use super::number;

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Some names, each once; mostly so many.
fn names(rng: &mut Rng, from: &[&'static str], count: usize) -> Vec<&'static str> {
    let mut out: Vec<&str> = (0..count).map(|_| from[rng.next(from.len())]).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// A schema that only says which of these members are present.
fn condition(rng: &mut Rng, from: &[&'static str]) -> Value {
    let count = 1 + rng.next(2);
    let required = json!({"required": names(rng, from, count)});
    if rng.chance(30) { json!({"not": required}) } else { required }
}

/// A constraint on the presence of these members.
fn constraint(rng: &mut Rng, from: &[&'static str]) -> Value {
    let name = from[rng.next(from.len())];
    let count = 1 + rng.next(2);
    match rng.next(9) {
        0 | 1 => json!({"dependentRequired": {name: names(rng, from, count)}}),
        2 => json!({"dependentSchemas": {name: condition(rng, from)}}),
        3 => {
            let branches: Vec<Value> = (0..1 + count).map(|_| condition(rng, from)).collect();
            json!({"anyOf": branches})
        }
        4 => {
            let branches = names(rng, from, 1 + count).into_iter();
            json!({"oneOf": branches.map(|name| json!({"required": [name]})).collect::<Vec<_>>()})
        }
        5 => json!({"not": {"required": names(rng, from, 2)}}),
        kind => {
            let [test, then, otherwise] = [(); 3].map(|()| condition(rng, from));
            match kind {
                6 => json!({"if": test, "then": then, "else": otherwise}),
                _ => json!({"if": test, "then": then}),
            }
        }
    }
}

fn schema(rng: &mut Rng) -> Value {
    // Constraints within a few members are of all kinds, those over all of them rather not: few
    // sets satisfy them.
    let constraints: Vec<Value> = (0..4 + rng.next(4))
        .map(|_| {
            let first = 2 * rng.next(NAMES.len() / 2);
            match rng.next(3) {
                0 => constraint(rng, &NAMES),
                1 => constraint(rng, &NAMES[first..first + 2]),
                _ => json!({"dependentRequired": {NAMES[first]: [NAMES[first + 1]]}}),
            }
        })
        .collect();
    let declared = NAMES.iter().filter(|_| rng.chance(80));
    let properties = declared.map(|name| ((*name).to_owned(), json!({"type": "integer"})));
    let mut out = Map::new();
    out.insert("properties".into(), properties.collect::<Map<_, _>>().into());
    out.insert("allOf".into(), constraints.into());
    if rng.chance(70) {
        out.insert("type".into(), json!("object"));
    }
    match rng.next(8) {
        0 => drop(out.insert("additionalProperties".into(), json!(false))),
        1 => drop(out.insert("minProperties".into(), json!(1 + rng.next(3)))),
        2 => drop(out.insert("maxProperties".into(), json!(3 + rng.next(4)))),
        3 => drop(out.insert("properties".into(), json!({"a": false, "b": {"type": "integer"}}))),
        4 => drop(out.insert("required".into(), json!([NAMES[rng.next(NAMES.len())]]))),
        5 => drop(out.insert("patternProperties".into(), json!({"^[ab]$": {"minimum": 0}}))),
        _ => {}
    }
    out.into()
}

/// The text of an object with these members.
fn text(members: &[&str]) -> String {
    let members: Vec<String> = members.iter().map(|name| format!("\"{name}\": 1")).collect();
    format!("{{{}}}", members.join(", "))
}

#[test]
fn conditions_on_presence_agree_with_jsonschema() {
    let limits = Limits::default();
    let schemas = number("LOUVER_PRESENCE", 150);
    let (mut valid, mut refused, mut accepted_sets) = (0, 0, 0);
    for seed in 0..schemas {
        let mut rng = Rng::new((seed + number("LOUVER_SEED", 1)) as u64);
        let schema = schema(&mut rng);
        let order = [MemberOrder::Declared, MemberOrder::Any, MemberOrder::Fixed][rng.next(3)];
        let undeclared = if rng.chance(30) { Undeclared::Forbidden } else { Undeclared::Allowed };
        let options = SchemaOptions::default().with_order(order).with_undeclared(undeclared);
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let subsets = (0..1usize << NAMES.len()).map(|bits| {
            let members = NAMES.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
            members.map(|(_, name)| *name).collect::<Vec<_>>()
        });
        let subsets: Vec<(Vec<&str>, bool)> = subsets
            .map(|members| {
                let instance: Value = serde_json::from_str(&text(&members)).expect("JSON");
                let is_valid = validator.is_valid(&instance);
                (members, is_valid)
            })
            .collect();
        let grammar = match lower(&Json::from(&schema), &options, &limits) {
            Ok(grammar) => grammar,
            Err(errors) if errors.is_unsatisfiable() => {
                assert!(subsets.iter().all(|(_, valid)| !valid), "{schema}: {errors}");
                continue;
            }
            Err(_) => {
                refused += 1;
                continue;
            }
        };
        let mut recognizer =
            Recognizer::new(Arc::new(Compiled::new(grammar, &limits).expect("compiles")));
        for (members, is_valid) in subsets {
            let mut members = members.clone();
            if order != MemberOrder::Fixed {
                (0..members.len()).for_each(|i| members.swap(i, rng.next(i + 1)));
            }
            recognizer.reset();
            let text = text(&members);
            let accepted = recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete();
            let is_exact = undeclared == Undeclared::Allowed
                && (order != MemberOrder::Fixed || members.is_sorted());
            assert!(is_valid || !accepted, "seed {seed} {options:?}\n{schema}: {text}");
            // With a fixed order, undeclared members come last.
            let must = is_exact && order != MemberOrder::Fixed;
            assert!(!must || accepted == is_valid, "seed {seed} {options:?}\n{schema}: {text}");
            valid += usize::from(is_valid);
            accepted_sets += usize::from(accepted);
        }
    }
    println!("{valid} valid, {accepted_sets} accepted, {refused} refused");
    assert!(accepted_sets > schemas * 10 && refused <= schemas / 10, "{refused} refused");
}

/// Values of members in instances, and schemas that tell some of them apart.
fn values() -> ([Value; 3], [Value; 4]) {
    let tests = [
        json!({"const": 1}),
        json!({"type": "string"}),
        json!({"minimum": 10}),
        json!({"enum": [1, "x"]}),
    ];
    ([json!(1), json!(20), json!("x")], tests)
}

/// A schema with more conditions on single values than are multiplied out.
fn schema_of_values(rng: &mut Rng, names: &[&str]) -> Value {
    let (_, tests) = values();
    let tests: Vec<&Value> = names.iter().map(|_| &tests[rng.next(tests.len())]).collect();
    let test = |rng: &mut Rng| {
        let i = rng.next(names.len());
        let mut out = json!({"properties": {names[i]: tests[i]}});
        match rng.next(4) {
            0 => out = json!({"required": [names[i]]}),
            1 => out["required"] = json!([names[i]]),
            2 => out = json!({"not": out}),
            _ => {}
        }
        out
    };
    let constraint = |rng: &mut Rng| match rng.next(4) {
        0 => json!({"dependentSchemas": {names[rng.next(names.len())]: test(rng)}}),
        1 => json!({"if": test(rng), "then": true, "else": test(rng)}),
        2 => json!({"anyOf": [test(rng), test(rng)]}),
        _ => json!({"if": test(rng), "then": test(rng)}),
    };
    let all: Vec<Value> = (0..9 + rng.next(4)).map(|_| constraint(rng)).collect();
    let mut out = json!({"allOf": all});
    for (chance, keyword, value) in [
        (70, "type", json!("object")),
        (30, "required", json!([names[0]])),
        (30, "properties", json!({names[0]: {"enum": [1, "x"]}, names[1]: {"type": "integer"}})),
        (15, "minProperties", json!(2)),
        (15, "maxProperties", json!(4)),
    ] {
        if rng.chance(chance) {
            out[keyword] = value;
        }
    }
    out
}

#[test]
fn conditions_on_values_agree_with_jsonschema() {
    let names = &NAMES[..5];
    let (values, _) = values();
    let mut instances = vec![json!({})];
    for name in names {
        for object in instances.clone() {
            for value in &values {
                let mut object = object.clone();
                object[name] = value.clone();
                instances.push(object);
            }
        }
    }
    let limits = Limits::default();
    let schemas = number("LOUVER_PRESENCE", 150) / 2;
    let (mut valid, mut refused) = (0, 0);
    for seed in 0..schemas {
        let mut rng = Rng::new((seed + number("LOUVER_SEED", 1)) as u64);
        let schema = schema_of_values(&mut rng, names);
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let grammar = match lower(&Json::from(&schema), &SchemaOptions::default(), &limits) {
            Ok(grammar) => grammar,
            Err(errors) => {
                let is_empty = errors.is_unsatisfiable();
                assert!(!is_empty || !instances.iter().any(|i| validator.is_valid(i)), "{schema}");
                refused += usize::from(!is_empty);
                continue;
            }
        };
        let mut recognizer =
            Recognizer::new(Arc::new(Compiled::new(grammar, &limits).expect("compiles")));
        for instance in &instances {
            let mut members: Vec<String> = instance
                .as_object()
                .map(|object| object.iter().map(|(name, value)| format!("{name:?}:{value}")))
                .into_iter()
                .flatten()
                .collect();
            (0..members.len()).for_each(|i| members.swap(i, rng.next(i + 1)));
            recognizer.reset();
            let text = format!("{{{}}}", members.join(","));
            let accepted = recognizer.push(text.as_bytes()).is_ok() && recognizer.is_complete();
            assert_eq!(accepted, validator.is_valid(instance), "seed {seed}\n{schema}: {text}");
            valid += usize::from(accepted);
        }
    }
    println!("{valid} valid, {refused} refused");
    assert!(valid > schemas * 10 && refused <= schemas / 10, "{valid} valid, {refused} refused");
}

/// n conditions on n pairs of members are n conditions of one object, not 2^n objects.
#[test]
fn conditions_on_presence_do_not_multiply() {
    let pair = |i: usize| [format!("a{i}"), format!("b{i}")];
    type Condition = dyn Fn(&str, &str) -> Value;
    fn is_set(name: &str) -> Value {
        json!({"properties": {name: {"const": true}}, "required": [name]})
    }
    let kinds: [(&str, &Condition); 12] = [
        ("value", &|a, b| json!({"dependentSchemas": {a: {"properties": {b: {"minimum": 10}}}}})),
        ("member with a value", &|a, b| json!({"dependentSchemas": {a: is_set(b)}})),
        ("if a value", &|a, b| json!({"if": is_set(a), "then": {"required": [b]}})),
        ("if a flag", &|a, b| {
            json!({"properties": {a: {"type": "boolean"}}, "required": [a],
                "if": {"properties": {a: {"const": true}}}, "then": {"required": [b]},
                "else": {"properties": {b: false}}})
        }),
        ("dependentRequired", &|a, b| json!({"dependentRequired": {a: [b]}})),
        ("both", &|a, b| json!({"dependentRequired": {a: [b], b: [a]}})),
        ("dependencies", &|a, b| json!({"dependencies": {a: [b]}})),
        ("dependentSchemas", &|a, b| json!({"dependentSchemas": {a: {"required": [b]}}})),
        ("excludes", &|a, b| json!({"dependentSchemas": {a: {"not": {"required": [b]}}}})),
        ("anyOf", &|a, b| json!({"anyOf": [{"required": [a]}, {"required": [b]}]})),
        ("oneOf", &|a, b| json!({"oneOf": [{"required": [a]}, {"required": [b]}]})),
        ("if", &|a, b| {
            let (a, b) = (json!({"required": [a]}), json!({"required": [b]}));
            json!({"if": a, "then": b, "else": {"not": b}})
        }),
    ];
    // What is declared beside the conditions is declared where members must be.
    let forbidden = SchemaOptions::default().with_undeclared(Undeclared::Forbidden);
    for ((name, condition), options) in
        kinds.iter().flat_map(|kind| [(kind, SchemaOptions::default()), (kind, forbidden)])
    {
        let rules = |n: usize| {
            let all: Vec<Value> = (0..n)
                .map(|i| {
                    let [a, b] = pair(i);
                    condition(&a, &b)
                })
                .collect();
            let declared: serde_json::Map<String, Value> =
                (0..n).flat_map(pair).map(|name| (name, json!({}))).collect();
            let schema = json!({"type": "object", "properties": declared, "allOf": all});
            let grammar = lower(&Json::from(&schema), &options, &Limits::default());
            grammar.unwrap_or_else(|errors| panic!("{name} {n}: {errors}")).rules.len()
        };
        let (few, more) = (rules(12), rules(48));
        assert!(more <= few * 4, "{name}: {few} rules of 12 conditions, {more} of 48");
    }
}
