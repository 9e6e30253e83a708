//! Hostile JSON Schemas: products of alternatives, cycles of references, negations, counts,
//! overlapping patterns, distinct values, size, depth.

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
    strings(&mut inputs);
    arrays(&mut inputs);
    objects(&mut inputs);
    long_names(&mut inputs);
    values(&mut inputs);
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

fn strings(inputs: &mut Vec<Input>) {
    let pattern = |pattern: String| json!({"type": "string", "pattern": pattern});
    // F4.
    add(inputs, "class-product", &[1, 8, 20], move |n| {
        pattern(format!("^{}", r"([^\p{L}]*\P{Greek}{1,500})".repeat(n)))
    });
    add(
        inputs,
        "class-product-with-length",
        &[8],
        |n| json!({"type": "string", "pattern": r"([^\p{L}]*\P{Greek}{1,500})".repeat(n), "maxLength": 1_000}),
    );
    add(
        inputs,
        "pattern-with-length",
        &[20, 500, 100_000],
        |n| json!({"type": "string", "pattern": r"^(\w+ ?)+[.!]$", "minLength": n / 2, "maxLength": n}),
    );
    add(inputs, "dot-before-count", &[10, 20, 200], move |n| pattern(format!("a.{{{n}}}$")));
    add(
        inputs,
        "patterns-in-all-of",
        &[2, 5, 12],
        |n| json!({"type": "string", "allOf": list(n, |i| json!({"pattern": format!("{}.{{{}}}x", char::from(b'a' + i as u8), i + 2)}))}),
    );
    add(
        inputs,
        "excluded-patterns",
        &[2, 6],
        |n| json!({"type": "string", "allOf": list(n, |i| json!({"not": {"pattern": format!("a.{{{}}}b", i + 4)}}))}),
    );
    add(inputs, "lookaheads", &[2, 8], move |n| {
        pattern(format!(
            "^{}.*$",
            (0..n).map(|i| format!("(?=.*{})", char::from(b'a' + i as u8))).collect::<String>()
        ))
    });
    add(
        inputs,
        "huge-lengths",
        &[4_000_000_000],
        |n| json!({"type": "string", "minLength": n, "maxLength": n}),
    );
    add(
        inputs,
        "length-then-format",
        &[300],
        |n| json!({"type": "string", "format": "uri", "maxLength": n, "minLength": n - 1}),
    );
}

fn arrays(inputs: &mut Vec<Input>) {
    add(inputs, "counts", &[2, 4, 8], |n| {
        nested(
            n,
            json!({"type": "boolean"}),
            |_, inner| json!({"type": "array", "items": inner, "minItems": 1, "maxItems": 500}),
        )
    });
    add(
        inputs,
        "huge-counts",
        &[1_000_000, 4_000_000_000],
        |n| json!({"type": "array", "items": {"type": "string", "maxLength": n}, "minItems": n, "maxItems": n}),
    );
    add(
        inputs,
        "tuple",
        &[100, 10_000],
        |n| json!({"type": "array", "prefixItems": list(n, |i| json!({"type": ["integer", "string"], "maximum": i})), "items": false}),
    );
    add(
        inputs,
        "contains",
        &[1, 3, 8],
        |n| json!({"type": "array", "contains": {"type": "integer"}, "minContains": n, "maxContains": n * 100, "maxItems": 500}),
    );
    add(
        inputs,
        "contains-in-many",
        &[10, 1_000],
        |n| json!({"type": "object", "properties": object(n, |i| format!("a{i}"), |i| json!({"type": "array", "contains": {"const": i}, "minContains": 20, "maxContains": 60 + i % 10, "minItems": 5, "maxItems": 90}))}),
    );
    add(
        inputs,
        "contains-products",
        &[2, 5],
        |n| json!({"type": "array", "allOf": list(n, |i| json!({"contains": {"const": i}, "minContains": 2, "maxContains": 3}))}),
    );
    add(
        inputs,
        "unique-enum",
        &[8, 60, 1_000],
        |n| json!({"type": "array", "items": {"enum": list(n, |i| json!(i))}, "uniqueItems": true, "minItems": n / 2}),
    );
    add(inputs, "unique-in-unique", &[2, 4, 8], |n| {
        nested(
            n,
            json!({"enum": [1, 2, 3, "a"]}),
            |_, inner| json!({"type": "array", "items": inner, "uniqueItems": true, "minItems": 2}),
        )
    });
    add(
        inputs,
        "unique-texts",
        &[10, 500],
        |n| json!({"type": "array", "items": {"type": "string", "pattern": "^[ab]{1,3}$"}, "uniqueItems": true, "minItems": n}),
    );
    add(
        inputs,
        "unique-objects",
        &[2, 30],
        |n| json!({"type": "array", "items": {"type": "object", "properties": object(n, |i| format!("a{i}"), |_| json!({"type": ["number", "string", "null"]}))}, "uniqueItems": true}),
    );
    add(
        inputs,
        "unique-numbers",
        &[3, 500],
        |n| json!({"type": "array", "items": {"type": "number", "minimum": 0, "maximum": n}, "uniqueItems": true, "minItems": n}),
    );
    add(
        inputs,
        "unique-products",
        &[2, 5, 10],
        |n| json!({"type": "array", "allOf": list(n, |i| json!({"anyOf": [{"uniqueItems": true, "minItems": i}, {"items": {"type": "integer"}}]}))}),
    );
}

/// Names and bases that many pointers or URIs repeat.
fn long_names(inputs: &mut Vec<Input>) {
    let base = |n: usize| format!("http://x/{}", "a/".repeat(n));
    add(
        inputs,
        "long-base-identifiers",
        &[1_000, 100_000],
        |n| json!({"$id": base(n), "$defs": object(1_500, |i| format!("d{i}"), |i| json!({"$id": format!("b{i}"), "type": "string"})), "$ref": "b3"}),
    );
    add(
        inputs,
        "long-base-references",
        &[1_000, 100_000],
        |n| json!({"$id": base(n), "anyOf": list(3_000, |i| json!({"$ref": format!("b{i}")}))}),
    );
    add(
        inputs,
        "faults-below-a-long-name",
        &[1_000, 100_000],
        |n| json!({"properties": {"n".repeat(n): {"properties": object(2_000, |i| format!("a{i}"), |_| json!({"type": 5}))}}}),
    );
    add(
        inputs,
        "identifiers-below-a-long-name",
        &[1_000, 100_000],
        |n| json!({"properties": {"n".repeat(n): {"properties": object(2_000, |i| format!("a{i}"), |i| json!({"$anchor": format!("x{i}")}))}}, "$ref": "#x3"}),
    );
}

fn objects(inputs: &mut Vec<Input>) {
    add(
        inputs,
        "properties",
        &[64, 65, 2_000, 20_000],
        |n| json!({"type": "object", "properties": object(n, |i| format!("a{i}"), |i| json!({"type": "integer", "maximum": i})), "additionalProperties": false}),
    );
    add(
        inputs,
        "required",
        &[64, 500, 20_000],
        |n| json!({"type": "object", "required": list(n, |i| json!(format!("{:x}", i * 7919)))}),
    );
    add(
        inputs,
        "long-names",
        &[60],
        |n| json!({"type": "object", "properties": object(n, |i| format!("{}{i}", "a".repeat(5_000)), |_| json!({})), "required": [format!("{}0", "a".repeat(5_000))]}),
    );
    add(
        inputs,
        "names-in-each-other",
        &[60, 400],
        |n| json!({"type": "object", "properties": object(n, |i| "a".repeat(i + 1), |i| json!({"const": i})), "additionalProperties": {"type": "string"}}),
    );
    add(
        inputs,
        "pattern-properties",
        &[2, 5, 10, 30],
        |n| json!({"type": "object", "patternProperties": object(n, |i| format!("a.{{{}}}b", i + 1), |i| json!({"minimum": i, "multipleOf": i + 1}))}),
    );
    add(
        inputs,
        "pattern-properties-of-letters",
        &[4, 10, 16],
        |n| json!({"type": "object", "patternProperties": object(n, |i| char::from(b'a' + i as u8).to_string(), |i| json!({"maxLength": i + 5})), "properties": {"abcdef": {"type": "integer"}}}),
    );
    add(
        inputs,
        "pattern-properties-bomb",
        &[8],
        |n| json!({"type": "object", "patternProperties": {(r"([^\p{L}]*\P{Greek}{1,500})".repeat(n)): {"type": "integer"}}, "additionalProperties": false}),
    );
    add(
        inputs,
        "property-names",
        &[2, 8],
        |n| json!({"type": "object", "propertyNames": {"allOf": list(n, |i| json!({"pattern": format!("a.{{{}}}b", i + 2), "maxLength": 60}))}}),
    );
    add(
        inputs,
        "property-names-enum",
        &[50, 5_000],
        |n| json!({"type": "object", "propertyNames": {"enum": list(n, |i| json!(format!("n{i}")))}, "minProperties": 20}),
    );
    add(
        inputs,
        "counted-members",
        &[5, 40, 1_000],
        |n| json!({"type": "object", "properties": object(n, |i| format!("a{i}"), |_| json!({"type": "integer"})), "minProperties": n / 2, "maxProperties": n / 2 + 1}),
    );
    add(
        inputs,
        "huge-counts-of-members",
        &[4_000_000_000],
        |n| json!({"type": "object", "minProperties": n}),
    );
    add(inputs, "additional-objects", &[5, 40], |n| {
        nested(
            n,
            json!({"type": "integer"}),
            |_, inner| json!({"type": "object", "additionalProperties": inner, "minProperties": 2}),
        )
    });
    // F9: many forms that share most members, each with conditions.
    add(inputs, "pipelines", &[10, 60, 200], |n| {
        let step = |i: usize| json!({"type": "object", "properties": {"name": {"type": "string"}, "type": {"enum": [format!("T{i}"), "Any"]}, "configuration": {"allOf": [{"$ref": "#/$defs/base"}, {"properties": object(12, |j| format!("c{}", (i * 5 + j) % 40), |_| json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "uniqueItems": true}]}))}], "unevaluatedProperties": false}}, "required": ["name", "type"]});
        let base = json!({"type": "object", "properties": object(20, |i| format!("c{i}"), |_| json!({})), "patternProperties": {"^x_[a-z]+$": {}}});
        json!({"type": "array", "items": {"oneOf": list(n, step)}, "$defs": {"base": base}})
    });
}

/// Values of the schema that are compared, negated, read by automata or written out many times.
fn values(inputs: &mut Vec<Input>) {
    let constants = |n: usize| list(n, |i| json!({"const": i}));
    add(
        inputs,
        "constants-of-elements",
        &[300, 3_000],
        |n| json!({"const": list(n, |i| json!(i)), "items": {"anyOf": constants(n)}}),
    );
    add(inputs, "long-constant-among-elements", &[2_000, 40_000], |n| {
        let long: Value = list(n, |_| json!(1));
        json!({"const": [long], "items": {"anyOf": constants(n / 20)}})
    });
    add(inputs, "products-of-long-constants", &[30, 300], |n| {
        let long = |i: usize| {
            let ones = (0..n / 2).map(|_| json!(1));
            Value::from(ones.chain([json!(i)]).collect::<Vec<Value>>())
        };
        let any = json!({"anyOf": list(n, |i| json!({"enum": [long(i)]}))});
        json!({"allOf": [any, any]})
    });
    add(
        inputs,
        "not-a-long-constant",
        &[500, 30_000],
        |n| json!({"not": {"const": list(n, |_| json!(1))}}),
    );
    add(
        inputs,
        "not-long-prefix-items",
        &[500, 20_000],
        |n| json!({"not": {"prefixItems": list(n, |_| json!(false))}}),
    );
    add(
        inputs,
        "one-of-long-prefix-items",
        &[100, 4_000],
        |n| json!({"oneOf": list(4, |k| json!({"prefixItems": list(n, |_| json!({"const": k}))}))}),
    );
    add(inputs, "long-text-and-formats", &[1_000, 200_000], |n| {
        let formats = ["uri", "email", "uuid", "date-time"];
        let all = list(60, |i| json!({"not": {"format": formats[i % 4]}}));
        json!({"const": "ab".repeat(n), "allOf": all})
    });
    add(inputs, "constants-in-each-alternative", &[50, 3_000], |n| {
        let constants = list(n, |i| json!({"a": i, "b": {"c": [i]}}));
        let prefixes = list(8, |i| json!({"prefixItems": list(i + 1, |_| json!({}))}));
        json!({"const": constants, "anyOf": prefixes, "unevaluatedItems": {"type": ["object"]}})
    });
}
