//! Random schemas over all keywords, random instances, and instances like others.

use louver::internals::SplitMix64;
use serde_json::{Map, Value, json};

/// Random numbers: the same cases on every machine.
pub(crate) struct Rng(SplitMix64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self, below: usize) -> usize {
        self.0.below(below)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.next(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.next(list.len())]
    }
}

const NAMES: &[&str] = &["a", "b", "ab", "é\"", ""];
const TEXTS: &[&str] = &["", "a", "b", "ab", "ba", "abc", "é", "\"\\\n", "😀x"];
const PATTERNS: &[&str] = &["^a", "b$", "^a$|^b", "a.*b", "[^a]", "^(a|b){2,3}$", "^$", "\\W"];

fn scalar(rng: &mut Rng) -> Value {
    match rng.next(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3..=4 => json!(rng.next(7) as i64 - 2),
        5 => rng.pick(&[json!(0.5), json!(1.0), json!(2.5), json!(-1.5)]).clone(),
        _ => json!(*rng.pick(TEXTS)),
    }
}

pub(crate) fn instance(rng: &mut Rng, depth: usize) -> Value {
    match rng.next(if depth == 0 { 4 } else { 10 }) {
        0..=3 => scalar(rng),
        4..=5 => Value::Array((0..rng.next(4)).map(|_| instance(rng, depth - 1)).collect()),
        _ => {
            let mut map = Map::new();
            for _ in 0..rng.next(4) {
                map.insert((*rng.pick(NAMES)).to_owned(), instance(rng, depth - 1));
            }
            Value::Object(map)
        }
    }
}

fn names(rng: &mut Rng) -> Value {
    let mut names: Vec<&str> = (0..1 + rng.next(2)).map(|_| *rng.pick(NAMES)).collect();
    names.dedup();
    json!(names)
}

pub(crate) fn schema(rng: &mut Rng, depth: usize) -> Value {
    if rng.chance(6) {
        return json!(rng.chance(70));
    }
    if depth == 0 || rng.chance(10) {
        return match rng.next(5) {
            0 => json!({"$ref": "#/$defs/d"}),
            1 => json!({"const": scalar(rng)}),
            2 => json!({"enum": [scalar(rng), scalar(rng), scalar(rng)]}),
            _ => {
                json!({"type": *rng.pick(&["null", "boolean", "integer", "number", "string", "array", "object"])})
            }
        };
    }
    let mut map = Map::new();
    if rng.chance(50) {
        // Not `integer` in a list: there jsonschema 0.33 does not count 1.0 as one.
        let types = ["integer", "number", "string", "array", "object", "object"];
        map.insert(
            "type".into(),
            if rng.chance(70) {
                json!(rng.pick(&types))
            } else {
                json!(["number", "array", "string"])
            },
        );
    }
    for _ in 0..1 + rng.next(3) {
        let (keyword, value) = match rng.next(37) {
            0..=3 => {
                let mut properties = Map::new();
                for _ in 0..1 + rng.next(3) {
                    properties.insert((*rng.pick(NAMES)).to_owned(), schema(rng, depth - 1));
                }
                ("properties", Value::Object(properties))
            }
            4..=5 => ("required", names(rng)),
            6..=7 => ("additionalProperties", schema(rng, depth - 1)),
            8 => ("patternProperties", json!({*rng.pick(PATTERNS): schema(rng, depth - 1)})),
            9 => ("propertyNames", json!({"maxLength": rng.next(3)})),
            10 => ("maxProperties", json!(rng.next(3))),
            11 => ("minProperties", json!(rng.next(2))),
            12 => ("items", schema(rng, depth - 1)),
            13 => ("prefixItems", json!([schema(rng, depth - 1), schema(rng, depth - 1)])),
            14 => (*rng.pick(&["minItems", "maxItems"]), json!(rng.next(4))),
            15 => ("contains", schema(rng, depth - 1)),
            16 => (*rng.pick(&["minLength", "maxLength"]), json!(rng.next(3))),
            17 => ("pattern", json!(rng.pick(PATTERNS))),
            18 => (
                *rng.pick(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
                scalar_number(rng),
            ),
            19 => ("multipleOf", rng.pick(&[json!(2), json!(3)]).clone()),
            20 => ("anyOf", json!([schema(rng, depth - 1), schema(rng, depth - 1)])),
            21 => ("allOf", json!([schema(rng, depth - 1), schema(rng, depth - 1)])),
            22 => ("oneOf", json!([schema(rng, depth - 1), schema(rng, depth - 1)])),
            23 => ("not", schema(rng, depth - 1)),
            24 => {
                map.insert("then".into(), schema(rng, depth - 1));
                ("if", schema(rng, depth - 1))
            }
            25 => ("dependentRequired", json!({*rng.pick(NAMES): names(rng)})),
            26 => ("dependentSchemas", json!({*rng.pick(NAMES): schema(rng, depth - 1)})),
            27 => (
                "unevaluatedProperties",
                if rng.chance(60) { json!(false) } else { schema(rng, depth - 1) },
            ),
            28 => (
                "unevaluatedItems",
                if rng.chance(60) { json!(false) } else { schema(rng, depth - 1) },
            ),
            29 => {
                map.insert("contains".into(), schema(rng, depth - 1));
                (*rng.pick(&["minContains", "maxContains"]), json!(rng.next(3)))
            }
            30 => {
                let few: Vec<Value> = (0..1 + rng.next(4)).map(|_| scalar(rng)).collect();
                map.insert(
                    "items".into(),
                    match rng.next(4) {
                        0 => json!({"enum": few}),
                        1 => json!({"type": "boolean"}),
                        _ => schema(rng, depth - 1),
                    },
                );
                ("uniqueItems", json!(true))
            }
            31 => {
                map.insert("else".into(), schema(rng, depth - 1));
                ("if", schema(rng, depth - 1))
            }
            32 => ("propertyNames", json!({"pattern": rng.pick(PATTERNS)})),
            33 => ("const", instance(rng, 1)),
            34 => ("enum", json!([instance(rng, 1), instance(rng, 1), scalar(rng)])),
            35 => {
                let tested = [scalar(rng), scalar(rng), scalar(rng), json!(true)];
                let set =
                    conditionals(rng, (&NAMES[..3], &tested), &mut |rng| schema(rng, depth - 1));
                ("allOf", json!([set]))
            }
            _ => (
                "oneOf",
                json!([schema(rng, depth - 1), schema(rng, depth - 1), schema(rng, depth - 1)]),
            ),
        };
        map.insert(keyword.into(), value);
    }
    Value::Object(map)
}

/// Conditions over a few members: on values or presence, by `if`, `oneOf` and dependencies, with or
/// without a declaration of the members. `then` makes what a condition brings.
pub(crate) fn conditionals(
    rng: &mut Rng,
    (names, values): (&[&str], &[Value]),
    then: &mut dyn FnMut(&mut Rng) -> Value,
) -> Value {
    let tested = |rng: &mut Rng| match rng.next(8) {
        0 => json!({"enum": [rng.pick(values), rng.pick(values)]}),
        1 => json!({"not": {"const": rng.pick(values)}}),
        2 => json!({"type": "string"}),
        3 => json!({"properties": {names[0]: {"const": rng.pick(values)}}, "required": [names[0]]}),
        _ => json!({"const": rng.pick(values)}),
    };
    let condition = |rng: &mut Rng| {
        let name = names[usize::from(rng.chance(25))];
        let mut out = json!({"properties": {name: tested(rng)}});
        if rng.chance(15) {
            let other = *rng.pick(names);
            out["properties"][other] = tested(rng);
        }
        if rng.chance(50) {
            out["required"] = json!([name]);
        }
        if rng.chance(15) { json!({"not": out}) } else { out }
    };
    let count = 3 + rng.next(4);
    let mut all: Vec<Value> = Vec::new();
    match rng.next(5) {
        0 => {
            let branch = |rng: &mut Rng| json!({"allOf": [condition(rng), then(rng)]});
            let mut branch = branch;
            all.push(json!({"oneOf": (0..count).map(|_| branch(rng)).collect::<Vec<_>>()}));
        }
        1 => {
            let chain = (0..count).fold(
                json!(true),
                |otherwise, _| json!({"if": condition(rng), "then": then(rng), "else": otherwise}),
            );
            all.push(chain);
        }
        2 => {
            for name in names {
                let brought = if rng.chance(50) { then(rng) } else { condition(rng) };
                all.push(json!({"dependentSchemas": {*name: brought}}));
            }
            all.push(json!({"if": condition(rng), "then": then(rng)}));
        }
        _ => all.extend((0..count).map(|_| {
            let mut out = json!({"if": condition(rng), "then": then(rng)});
            if rng.chance(20) {
                out["else"] = then(rng);
            }
            out
        })),
    }
    let mut out = json!({});
    for (chance, keyword, value) in [
        (70, "type", json!("object")),
        (40, "properties", json!({names[0]: {"enum": values}})),
        (40, "required", json!([names[0]])),
        (15, "unevaluatedProperties", json!(false)),
    ] {
        if rng.chance(chance) {
            out[keyword] = value;
        }
    }
    if rng.chance(30) {
        all.push(out);
        out = json!({});
    }
    out["allOf"] = json!(all);
    out
}

/// A schema with a definition that refers to itself through members and elements.
pub(crate) fn document(rng: &mut Rng) -> Value {
    let mut root = schema(rng, 3);
    if let Value::Object(map) = &mut root {
        let (member, element) = (schema(rng, 1), schema(rng, 1));
        map.insert("$defs".into(), json!({"d": {"properties": {"a": member}, "items": element}}));
    }
    root
}

/// The value with one thing changed.
pub(crate) fn mutation(rng: &mut Rng, value: &Value) -> Value {
    match value {
        Value::Array(items) if !items.is_empty() && rng.chance(80) => {
            let (mut items, at) = (items.clone(), rng.next(items.len()));
            match rng.next(4) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, instance(rng, 1)),
                2 => items.push(items[at].clone()),
                _ => items[at] = mutation(rng, &items[at]),
            }
            Value::Array(items)
        }
        Value::Object(map) if !map.is_empty() && rng.chance(80) => {
            let mut map = map.clone();
            let name = map.keys().nth(rng.next(map.len())).cloned().unwrap_or_default();
            match rng.next(3) {
                0 => drop(map.shift_remove(&name)),
                1 => drop(map.insert((*rng.pick(NAMES)).to_owned(), instance(rng, 1))),
                _ => {
                    let changed = mutation(rng, &map[&name]);
                    map.insert(name, changed);
                }
            }
            Value::Object(map)
        }
        _ => instance(rng, 1),
    }
}

fn scalar_number(rng: &mut Rng) -> Value {
    rng.pick(&[json!(0), json!(1), json!(-1), json!(2.5), json!(0.5), json!(3)]).clone()
}
