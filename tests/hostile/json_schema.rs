//! Hostile JSON Schemas: products of alternatives, cycles of references, negations, counts,
//! overlapping patterns, distinct values, size, depth.

mod types;

use louver::engine::{Constraint, Engine};
use louver::front::json_schema::SchemaOptions;
use serde_json::{Map, Value, json};

use crate::harness::{Input, Refused, family};

fn compile(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_json_schema(text, &SchemaOptions::default())?)
}

fn list(n: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..n).map(item).collect()
}

fn object(n: usize, name: impl Fn(usize) -> String, value: impl Fn(usize) -> Value) -> Value {
    (0..n).map(|i| (name(i), value(i))).collect::<Map<_, _>>().into()
}

fn nested(n: usize, innermost: Value, wrap: impl Fn(usize, Value) -> Value) -> Value {
    (0..n).fold(innermost, |inner, i| wrap(i, inner))
}

fn reference(to: impl std::fmt::Display) -> Value {
    json!({"$ref": format!("#/$defs/d{to}")})
}

/// Generated definitions; the schema is the first one.
fn definitions(n: usize, of: impl Fn(usize) -> Value) -> Value {
    json!({"$ref": "#/$defs/d0", "$defs": object(n, |i| format!("d{i}"), of)})
}

fn required(i: usize) -> Value {
    json!({"required": [format!("a{i}")]})
}

pub(crate) fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    shapes(&mut inputs);
    products(&mut inputs);
    cycles(&mut inputs);
    types::strings(&mut inputs);
    types::arrays(&mut inputs);
    types::objects(&mut inputs);
    types::long_names(&mut inputs);
    types::values(&mut inputs);
    inputs
}

fn add(inputs: &mut Vec<Input>, name: &str, sizes: &[usize], schema: impl Fn(usize) -> Value) {
    inputs.extend(family(&format!("schema/{name}"), sizes, |n| schema(n).to_string(), compile));
}

fn shapes(inputs: &mut Vec<Input>) {
    add(inputs, "deep-properties", &[30, 60, 100], |n| {
        nested(
            n,
            json!({"type": "string"}),
            |_, inner| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]}),
        )
    });
    add(inputs, "deep-items", &[60, 120], |n| {
        nested(n, json!({}), |_, inner| json!({"type": "array", "items": inner}))
    });
    for (name, open, close) in
        [("brackets", "[", "]"), ("members", "{\"items\":", "}"), ("nots", "{\"not\":", "}")]
    {
        let text = |n: usize| format!("{}{{}}{}", open.repeat(n), close.repeat(n));
        inputs.extend(family(&format!("schema/deep-{name}"), &[127, 200_000], text, compile));
    }
    add(
        inputs,
        "enum",
        &[1_000, 20_000, 200_000],
        |n| json!({"enum": list(n, |i| json!(format!("{:x}{i}", i * 2_654_435_761 % n)))}),
    );
    add(
        inputs,
        "enum-of-objects",
        &[100, 3_000],
        |n| json!({"enum": list(n, |i| json!({"k": i, "v": [i, {"w": format!("x{i}")}]}))}),
    );
    add(
        inputs,
        "enum-of-long-texts",
        &[30],
        |n| json!({"enum": list(n, |i| json!(format!("{}{i}", "ab".repeat(20_000))))}),
    );
    add(inputs, "enum-numbers", &[300, 20_000], |n| json!({"enum": list(n, |i| json!(i * i))}));
    add(
        inputs,
        "nested-const",
        &[100],
        |n| json!({"const": nested(n, json!(0), |i, inner| json!([inner, i]))}),
    );
    add(inputs, "counted-members-with-witnesses", &[4, 1_073_741_823], |n| {
        let unlike = |kind| json!({"not": {"additionalProperties": {"type": kind}}});
        let negated = [unlike("string"), unlike("number")];
        json!({"minProperties": n, "maxProperties": 4 * n as u64 + 3, "allOf": negated})
    });
    add(
        inputs,
        "multiple-of",
        &[1, 997, 99_999_989],
        |n| json!({"type": "integer", "multipleOf": n, "minimum": -5, "maximum": 1_000_000_000_000_u64}),
    );
    add(
        inputs,
        "products-of-multiples",
        &[2, 4, 7],
        |n| json!({"allOf": list(n, |i| json!({"multipleOf": ([7, 11, 13, 17, 19, 23, 29][i])}))}),
    );
    let digits = |n: usize| {
        format!(
            "{{\"type\": \"number\", \"minimum\": 1{}.5, \"maximum\": 3{}, \"multipleOf\": 0.{}1}}",
            "0".repeat(n),
            "0".repeat(n),
            "0".repeat(n)
        )
    };
    inputs.extend(family("schema/long-numbers", &[20, 1_000, 100_000], digits, compile));
    let exponents = |n: usize| {
        format!("{{\"type\": \"number\", \"minimum\": 1e-{n}, \"exclusiveMaximum\": 1e{n}}}")
    };
    inputs.extend(family("schema/exponents", &[30, 400, 1_000_000_000], exponents, compile));
    add(
        inputs,
        "formats",
        &[1, 20],
        |n| json!({"allOf": list(n, |i| json!({"format": (["uri", "email", "date-time", "ipv6", "uuid", "hostname"][i % 6])}))}),
    );
}

fn products(inputs: &mut Vec<Input>) {
    add(
        inputs,
        "all-of-any-of",
        &[4, 8, 12, 20],
        |n| json!({"allOf": list(n, |i| json!({"anyOf": [{"properties": {format!("p{i}"): {"type": "integer"}}, "required": [format!("p{i}")]}, {"properties": {format!("q{i}"): {"type": "string"}}, "required": [format!("q{i}")]}]}))}),
    );
    add(
        inputs,
        "all-of-one-of",
        &[3, 6, 10],
        |n| json!({"allOf": list(n, |i| json!({"oneOf": list(3, |j| json!({"required": [format!("a{i}{j}")]}))}))}),
    );
    add(
        inputs,
        "one-of-overlaps",
        &[5, 12, 30, 100],
        |n| json!({"oneOf": list(n, |i| json!({"type": "object", "properties": {format!("a{i}"): {"type": "integer"}}}))}),
    );
    add(
        inputs,
        "one-of-numbers",
        &[10, 60],
        |n| json!({"oneOf": list(n, |i| json!({"type": "integer", "minimum": i * 7, "maximum": i * 13 + 50}))}),
    );
    add(
        inputs,
        "one-of-patterns",
        &[2, 4, 8],
        |n| json!({"type": "string", "oneOf": list(n, |i| json!({"pattern": format!("a.{{{}}}b", i + 3)}))}),
    );
    add(inputs, "one-of-in-one-of", &[2, 4, 6, 12], |n| {
        nested(
            n,
            json!({"type": "string"}),
            |i, inner| json!({"oneOf": [inner, {"properties": {format!("a{i}"): {"minLength": i}}}, required(i)]}),
        )
    });
    add(
        inputs,
        "discriminated",
        &[50, 800],
        |n| json!({"oneOf": list(n, |i| json!({"type": "object", "properties": {"kind": {"const": format!("k{i}")}, "value": {"type": "integer"}}, "required": ["kind"]}))}),
    );
    add(inputs, "not-tower", &[2, 5, 20, 100], |n| {
        nested(
            n,
            json!({"required": ["a"], "properties": {"a": {"type": "integer"}}}),
            |_, inner| json!({"not": inner}),
        )
    });
    add(
        inputs,
        "not-of-all",
        &[4, 10, 30],
        |n| json!({"not": {"allOf": list(n, |i| json!({"anyOf": [required(i), required(i + 1)]}))}}),
    );
    add(
        inputs,
        "not-of-object",
        &[4, 20, 200],
        |n| json!({"type": "object", "not": {"properties": object(n, |i| format!("a{i}"), |i| json!({"maximum": i})), "required": ["a0"]}}),
    );
    add(inputs, "not-of-one-of", &[3, 6, 10], |n| json!({"not": {"oneOf": list(n, required)}}));
    add(
        inputs,
        "nots-in-all-of",
        &[5, 20, 60],
        |n| json!({"type": "object", "allOf": list(n, |i| json!({"not": {"properties": {format!("a{i}"): {"type": "string"}}, "required": [format!("a{i}")]}}))}),
    );
    add(inputs, "if-then-else", &[4, 10, 20], |n| {
        nested(
            n,
            json!({"type": "object"}),
            |i, inner| json!({"if": required(i), "then": {"properties": {format!("b{i}"): {"type": "integer"}}}, "else": inner}),
        )
    });
    add(
        inputs,
        "ifs-in-all-of",
        &[4, 10, 30],
        |n| json!({"type": "object", "allOf": list(n, |i| json!({"if": {"properties": {format!("a{i}"): {"const": i}}}, "then": {"required": [format!("b{i}")]}, "else": {"required": [format!("c{i}")]}}))}),
    );
    let flag = |i: usize| json!({"properties": {format!("f{i}"): {"const": true}}, "required": [format!("f{i}")]});
    add(
        inputs,
        "flags",
        &[8, 200, 2_000],
        |n| json!({"allOf": list(n, |i| json!({"if": flag(i), "then": {"required": [format!("g{i}")]}}))}),
    );
    add(
        inputs,
        "not-of-pairs",
        &[12, 200, 2_000],
        |n| json!({"not": {"anyOf": list(n, |i| json!({"required": [format!("a{i}"), format!("b{i}")]}))}}),
    );
    add(
        inputs,
        "nested-optional-ifs",
        &[5, 20, 100],
        |n| json!({"type": "object", "allOf": list(n, |i| json!({"if": {"properties": {"spec": {"properties": {"type": {"const": i}}}}}, "then": {"properties": {"spec": {"required": [format!("m{i}")]}}}}))}),
    );
    add(
        inputs,
        "dependent-schemas",
        &[4, 12, 30],
        |n| json!({"type": "object", "dependentSchemas": object(n, |i| format!("a{i}"), |i| json!({"properties": {format!("b{i}"): {"type": "integer"}}, "required": [format!("a{}", (i + 1) % n)]}))}),
    );
    add(
        inputs,
        "dependent-required",
        &[5, 16, 40],
        |n| json!({"type": "object", "properties": object(n, |i| format!("a{i}"), |_| json!({})), "dependentRequired": object(n, |i| format!("a{i}"), |i| json!([format!("a{}", (i * 3 + 1) % n)]))}),
    );
    // Each member requires the next one; the last ones come first.
    let chain = |n: usize| {
        let rows = (0..n).rev().map(|i| (format!("a{i}"), json!([format!("a{}", i + 1)])));
        rows.collect::<serde_json::Map<_, _>>()
    };
    add(
        inputs,
        "dependency-chain",
        &[50, 1_000, 5_000],
        |n| json!({"dependentRequired": chain(n)}),
    );
    add(
        inputs,
        "required-dependency-chain",
        &[50, 1_000, 5_000],
        |n| json!({"required": ["a0"], "dependentRequired": chain(n)}),
    );
    add(
        inputs,
        "excluding-dependency-chain",
        &[50, 1_000, 5_000],
        |n| json!({"dependentRequired": chain(n), "not": {"required": ["a0", format!("a{n}")]}}),
    );
    add(
        inputs,
        "unevaluated",
        &[4, 8, 14],
        |n| json!({"type": "object", "anyOf": list(n, |i| json!({"properties": {format!("a{i}"): {"type": "integer"}}, "required": [format!("a{i}")]})), "unevaluatedProperties": false}),
    );
    add(
        inputs,
        "unevaluated-items",
        &[3, 8],
        |n| json!({"type": "array", "anyOf": list(n, |i| json!({"prefixItems": list(i + 1, |_| json!({"type": "integer"}))})), "unevaluatedItems": {"type": "string"}}),
    );
}

fn cycles(inputs: &mut Vec<Input>) {
    let mut fixed = |name: &str, schema: Value| add(inputs, name, &[1], move |_| schema.clone());
    fixed("itself", json!({"$ref": "#"}));
    fixed("itself-in-all-of", json!({"allOf": [{"$ref": "#"}], "type": "object"}));
    fixed("itself-in-any-of", json!({"anyOf": [{"$ref": "#"}, {"type": "integer"}]}));
    fixed("itself-in-one-of", json!({"oneOf": [{"$ref": "#"}, {"type": "integer"}]}));
    fixed("itself-in-not", json!({"not": {"$ref": "#"}}));
    fixed(
        "itself-in-if",
        json!({"if": {"$ref": "#"}, "then": {"type": "object"}, "else": {"$ref": "#"}}),
    );
    fixed(
        "endless-object",
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
    );
    fixed("endless-array", json!({"type": "array", "items": {"$ref": "#"}, "minItems": 1}));
    fixed(
        "array-of-itself",
        json!({"type": "array", "items": {"$ref": "#"}, "uniqueItems": true, "maxItems": 500}),
    );
    fixed(
        "dynamic",
        json!({"$dynamicAnchor": "n", "type": "object", "properties": {"a": {"$dynamicRef": "#n"}}, "unevaluatedProperties": {"$dynamicRef": "#n"}}),
    );
    // Each resource has the dynamic anchors of all before it in its scope.
    add(inputs, "dynamic-anchors", &[10, 2_000, 10_000], |n| {
        let resource = |i: usize| {
            let (id, next) = (i.to_string(), json!({"$ref": (i + 1).to_string()}));
            let schema = json!({"$id": id, "$dynamicAnchor": format!("a{i}"), "items": next});
            (id, schema)
        };
        let last = (n.to_string(), json!({"$id": n.to_string(), "items": {"$dynamicRef": "0"}}));
        let all: Map<String, Value> = (0..n).map(resource).chain([last]).collect();
        json!({"$ref": "0", "$defs": all})
    });
    add(inputs, "cycle", &[2, 500, 20_000], |n| definitions(n, |i| reference((i + 1) % n)));
    add(inputs, "cycle-of-any-of", &[3, 40, 200], |n| {
        definitions(
            n,
            |i| json!({"anyOf": [reference((i + 1) % n), reference((i * 7 + 3) % n), {"const": i}]}),
        )
    });
    add(inputs, "cycle-of-all-of", &[3, 40], |n| {
        definitions(n, |i| json!({"allOf": [reference((i + 1) % n), {"minimum": i}]}))
    });
    add(inputs, "cycle-of-nots", &[3, 41], |n| {
        definitions(n, |i| json!({"not": {"anyOf": [reference((i + 1) % n), {"const": i}]}}))
    });
    add(inputs, "chain", &[100, 20_000], |n| {
        definitions(n, |i| if i + 1 == n { json!({"type": "integer"}) } else { reference(i + 1) })
    });
    add(inputs, "doubling", &[10, 24, 60], |n| {
        definitions(n, |i| {
            if i + 1 == n {
                json!({"type": "integer"})
            } else {
                json!({"type": "array", "prefixItems": [reference(i + 1), reference(i + 1)], "items": false, "minItems": 2})
            }
        })
    });
    add(inputs, "doubling-all-of", &[10, 24, 60], |n| {
        definitions(n, |i| {
            if i + 1 == n {
                json!({"type": "integer"})
            } else {
                json!({"allOf": [reference(i + 1), reference(i + 1)]})
            }
        })
    });
    add(inputs, "doubling-any-of", &[10, 24], |n| {
        definitions(n, |i| {
            if i + 1 == n {
                json!({"type": "integer"})
            } else {
                json!({"anyOf": [reference(i + 1), {"type": "array", "items": reference(i + 1)}]})
            }
        })
    });
    add(inputs, "intersected-recursion", &[2, 5, 12], |n| {
        let item = |i: usize| json!({"type": "object", "properties": {format!("a{i}"): reference(i), "next": reference(i)}});
        json!({"allOf": list(n, reference), "$defs": object(n, |i| format!("d{i}"), item)})
    });
    add(
        inputs,
        "pointers-into-pointers",
        &[50],
        |n| json!({"$ref": format!("#{}", "/properties/a".repeat(n)), "properties": {"a": {"$ref": "#"}}}),
    );
    add(
        inputs,
        "unused",
        &[20_000],
        |n| json!({"type": "integer", "$defs": object(n, |i| format!("d{i}"), |i| json!({"pattern": format!("a{{{i}}}")}))}),
    );
}
