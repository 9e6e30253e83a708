//! Hostile structural tags: nesting, many and long markers, markers within each other, counts,
//! nested formats.

use louver::engine::{Constraint, Engine};
use louver::front::structural_tag::StructuralTagOptions;
use serde_json::{Value, json};

use crate::harness::{Input, Refused, family};

fn compile(engine: &Engine, text: &str) -> Result<Constraint, Refused> {
    Ok(engine.compile_structural_tag(text, &StructuralTagOptions::default())?)
}

fn text() -> Value {
    json!({"type": "any_text"})
}

fn tag(begin: &str, content: Value, end: &str) -> Value {
    json!({"type": "tag", "begin": begin, "content": content, "end": end})
}

fn nested(n: usize, innermost: Value, wrap: impl Fn(usize, Value) -> Value) -> Value {
    (0..n).fold(innermost, |inner, i| wrap(i, inner))
}

pub(crate) fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut add = |name: &str, sizes: &[usize], format: &dyn Fn(usize) -> Value| {
        let text = |n: usize| json!({"type": "structural_tag", "format": format(n)}).to_string();
        inputs.extend(family(&format!("tag/{name}"), sizes, text, compile));
    };
    // F2: long triggers, ends and excludes.
    add("long-trigger", &[100, 16_000, 80_000], &|n| {
        let begin = "ab".repeat(n / 2);
        json!({"type": "triggered_tags", "triggers": [begin], "tags": [tag(&begin, text(), "</t>")]})
    });
    add(
        "long-exclude",
        &[100, 16_000, 80_000],
        &|n| json!({"type": "any_text", "excludes": [format!("{}b", "a".repeat(n))]}),
    );
    add("long-end", &[100, 16_000, 80_000], &|n| {
        tag("<t>", text(), &format!("{}b", "a".repeat(n)))
    });
    add("many-triggers", &[10, 300, 3_000], &|n| {
        let begins: Vec<String> = (0..n).map(|i| format!("<t{i}>")).collect();
        let tags: Vec<Value> = begins.iter().map(|begin| tag(begin, text(), "</t>")).collect();
        json!({"type": "triggered_tags", "triggers": begins, "tags": tags})
    });
    add(
        "many-excludes",
        &[10, 300, 5_000],
        &|n| json!({"type": "any_text", "excludes": (0..n).map(|i| format!("{:x}!", i * 7919)).collect::<Vec<_>>()}),
    );
    add(
        "excludes-in-each-other",
        &[20, 300],
        &|n| json!({"type": "any_text", "excludes": (1..=n).map(|i| format!("{}b{}", "a".repeat(i), "a".repeat(n - i))).collect::<Vec<_>>()}),
    );
    add("triggers-in-each-other", &[20, 200], &|n| {
        let begins: Vec<String> = (1..=n).map(|i| format!("{}b", "a".repeat(i))).collect();
        let tags: Vec<Value> = begins.iter().map(|begin| tag(begin, text(), "a")).collect();
        json!({"type": "triggered_tags", "triggers": begins, "tags": tags})
    });
    add(
        "ends-in-each-other",
        &[20, 200],
        &|n| json!({"type": "tag", "begin": "<", "content": text(), "end": (1..=n).map(|i| format!("{}b", "a".repeat(i))).collect::<Vec<_>>()}),
    );
    add("tags-in-tags", &[10, 60, 300], &|n| {
        nested(n, text(), |i, inner| tag(&format!("<t{i}>"), inner, &format!("</t{i}>")))
    });
    add("same-tags-in-tags", &[10, 60], &|n| {
        nested(n, text(), |_, inner| tag("<t>", inner, "</t>"))
    });
    add("triggered-in-triggered", &[5, 20, 50], &|n| {
        nested(
            n,
            text(),
            |_, inner| json!({"type": "triggered_tags", "triggers": ["<"], "tags": [tag("<t>", inner, "</t>")]}),
        )
    });
    add("sequences", &[10, 100, 300], &|n| {
        nested(n, text(), |_, inner| json!({"type": "sequence", "elements": [inner, text()]}))
    });
    add("alternatives", &[10, 60], &|n| {
        nested(n, text(), |_, inner| json!({"type": "or", "elements": [inner, text()]}))
    });
    add(
        "texts-in-a-row",
        &[20, 400],
        &|n| json!({"type": "sequence", "elements": vec![json!({"type": "any_text", "max_chars": 50}); n]}),
    );
    add(
        "texts-with-budgets",
        &[5, 60],
        &|n| json!({"type": "sequence", "elements": (0..n).map(|i| json!({"type": "any_text", "max_tokens": i + 1})).collect::<Vec<_>>()}),
    );
    add("stars", &[5, 50], &|n| {
        nested(
            n,
            json!({"type": "regex", "pattern": "[a-z]*"}),
            |i, inner| json!({"type": (if i % 2 == 0 { "star" } else { "plus" }), "content": inner}),
        )
    });
    add("optionals", &[5, 50], &|n| {
        nested(n, text(), |_, inner| json!({"type": "optional", "content": inner}))
    });
    add("counts", &[2, 3, 6], &|n| {
        nested(
            n,
            json!({"type": "regex", "pattern": "[a-z]{0,9}"}),
            |_, inner| json!({"type": "repeat", "min": 1, "max": 500, "content": inner}),
        )
    });
    add(
        "huge-count",
        &[1_000_000, 4_000_000_000],
        &|n| json!({"type": "repeat", "min": n, "max": -1, "content": {"type": "const_string", "value": "ab"}}),
    );
    add(
        "patterns",
        &[2, 12],
        &|n| json!({"type": "sequence", "elements": vec![json!({"type": "regex", "pattern": "^([^\\p{L}]*\\P{Greek}{1,500})"}); n]}),
    );
    add(
        "grammars",
        &[1, 30],
        &|n| json!({"type": "sequence", "elements": vec![json!({"type": "grammar", "grammar": "root ::= root root | root root root | \"a\" | \"\""}); n]}),
    );
    add(
        "dispatches",
        &[5, 300],
        &|n| json!({"type": "dispatch", "rules": (0..n).map(|i| json!([format!("k{i}="), {"type": "regex", "pattern": "[a-z]{1,50}"}])).collect::<Vec<_>>()}),
    );
    add("dispatches-in-each-other", &[5, 40], &|n| {
        nested(
            n,
            text(),
            |i, inner| json!({"type": "dispatch", "rules": [[format!("k{i}"), inner]], "excludes": ["zz"]}),
        )
    });
    add("separators", &[5, 300], &|n| {
        let tags: Vec<Value> = (0..n).map(|i| tag(&"a".repeat(i % 50 + 1), text(), "")).collect();
        json!({"type": "tags_with_separator", "tags": tags, "separator": "a", "at_least_one": true})
    });
    for style in ["json", "qwen_xml", "cohere_xml", "kimi_k3_xml"] {
        add(&format!("schema-{style}"), &[12, 300], &|n| {
            let properties: serde_json::Map<String, Value> = (0..n)
                .map(|i| (format!("</parameter>{i}"), json!({"anyOf": [{"type": "string", "maxLength": 500}, {"type": "object", "additionalProperties": {"type": "string"}}]})))
                .collect();
            json!({"type": "json_schema", "style": style, "any_order": true, "json_schema": {"type": "object", "properties": properties}})
        });
    }
    add(
        "schema-cycles",
        &[1],
        &|_| json!({"type": "json_schema", "json_schema": {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}]}, "b": {"$ref": "#/$defs/a"}}}}),
    );
    add(
        "tokens",
        &[100, 20_000, 200_000],
        &|n| json!({"type": "any_tokens", "exclude_tokens": (0..n).collect::<Vec<_>>()}),
    );
    inputs
}
