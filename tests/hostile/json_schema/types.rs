//! Schemas of strings, arrays and objects, and values in schemas.

use serde_json::{Value, json};

use super::{add, list, nested, object};
use crate::harness::Input;

pub(super) fn strings(inputs: &mut Vec<Input>) {
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

pub(super) fn arrays(inputs: &mut Vec<Input>) {
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
pub(super) fn long_names(inputs: &mut Vec<Input>) {
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

pub(super) fn objects(inputs: &mut Vec<Input>) {
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
pub(super) fn values(inputs: &mut Vec<Input>) {
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
