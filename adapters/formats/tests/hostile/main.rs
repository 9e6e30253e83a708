//! Hostile requests for tools, in every wire format: names that are delimiters, custom tools and
//! arguments whose grammars are expensive, long stop strings. The rules are those of the engine's
//! hostile inputs (`tests/hostile` of the crate `louver`).

#[path = "../../../../tests/hostile/harness.rs"]
mod harness;

use std::collections::BTreeSet;

use harness::{Input, PeakAlloc, Refused, Suite, family, refusals};
use louver::engine::{Constraint, Engine};
use louver::limits::Limits;
use louver::spec::json::Json;
use louver_formats::{Catalog, ConstraintError, RequestFault, ToolRequest, WireFormat};
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The bytes of output, enough for a call's header and a part of its arguments.
const STEPS: usize = 80;
/// One format for each argument style, for inputs that are not tried in all formats.
const STYLES: &[&str] = &[
    "qwen3",
    "harmony",
    "qwen3_coder",
    "glm4_5",
    "llama3",
    "mistral_v11",
    "kimi_k2",
    "cohere_xml",
];

fn refused(error: &dyn std::error::Error, faults: &[RequestFault]) -> Refused {
    let place =
        faults.first().map(|fault| format!("pointer {:?}", fault.pointer)).unwrap_or_default();
    Refused::new(error, place)
}

/// The request, lowered for a wire format with all markers as text.
fn compile(format: &WireFormat, engine: &Engine, body: &str) -> Result<Constraint, Refused> {
    let body = Json::parse(body, &Limits::default())
        .map_err(|error| Refused::new(&error, format!("{}:{}", error.line, error.column)))?;
    let request = ToolRequest::parse(&body).map_err(|error| refused(&error, &error.faults()))?;
    match request.compile(engine, format) {
        Ok((_, constraint)) => Ok(constraint),
        Err(ConstraintError::Lower(error)) => Err(refused(&error, &error.faults())),
        Err(ConstraintError::Compile(error)) => {
            Err(Refused::new(&error, refusals::of_compiling(&error)))
        }
    }
}

/// All texts of a format's description that delimit calls.
fn delimiters(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.values().for_each(|inner| delimiters(inner, out)),
        Value::Array(items) => items.iter().for_each(|item| delimiters(item, out)),
        Value::String(text) => {
            let text: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
            if text.contains(|c: char| !c.is_alphanumeric()) {
                out.insert(text);
            }
        }
        _ => {}
    }
}

fn function(name: impl Into<Value>, parameters: Value) -> Value {
    json!({"type": "function", "function": {"name": name.into(), "parameters": parameters}})
}

fn custom(syntax: &str, definition: &str) -> Value {
    let grammar = json!({"syntax": syntax, "definition": definition});
    json!({"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": grammar}}})
}

fn named(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

/// A request in some formats.
fn add(
    all: &mut Vec<Input>,
    name: &str,
    formats: &[&str],
    sizes: &[usize],
    body: impl Fn(usize) -> Value,
) {
    for format in formats {
        let spelled = Catalog::shipped().get(format).expect("a format").with_text_markers();
        let compile = move |engine: &Engine, body: &str| compile(&spelled, engine, body);
        let made =
            family(&format!("tools/{name}/{format}"), sizes, |n| body(n).to_string(), compile);
        all.extend(made.into_iter().map(|input| Input { steps: STEPS, ..input }));
    }
}

fn inputs() -> Vec<Input> {
    let mut all = Vec::new();
    let catalog = Catalog::shipped();
    for format in catalog.formats() {
        let mut names = BTreeSet::new();
        let value = serde_json::to_value(format).expect("JSON");
        for part in ["call", "text", "reasoning", "section", "frame", "messages", "builtin"] {
            value.get(part).iter().for_each(|part| delimiters(part, &mut names));
        }
        names.extend(
            ["\"", "\\", "\"}", "{\"name\": \"", "</", "<|", "a", "aa", "a\"", "\u{2581}"]
                .map(str::to_owned),
        );
        let name = |choice: &'static str| {
            let tools: Vec<Value> = names
                .iter()
                .map(|name| function(name.as_str(), json!({"properties": {"a": {}}})))
                .collect();
            json!({"tools": tools, "tool_choice": choice})
        };
        add(&mut all, "delimiters-auto", &[&format.name], &[1], |_| name("auto"));
        add(&mut all, "delimiters-required", &[&format.name], &[1], |_| name("required"));
    }
    add(
        &mut all,
        "names-in-each-other",
        STYLES,
        &[60],
        |n| json!({"tools": (1..=n).map(|i| function("a".repeat(i), json!({}))).collect::<Vec<_>>()}),
    );
    add(
        &mut all,
        "many",
        STYLES,
        &[1_000],
        |n| json!({"tools": (0..n).map(|i| function(format!("t{i}"), json!({"properties": {"a": {"enum": [i, "x"]}}}))).collect::<Vec<_>>()}),
    );
    bombs(&mut all);
    // F2: long stop strings.
    add(
        &mut all,
        "stops",
        STYLES,
        &[100, 5_000, 80_000],
        |n| json!({"stop": (0..4).map(|i| format!("{}{i}", "a".repeat(n / 4))).collect::<Vec<_>>()}),
    );
    add(
        &mut all,
        "stop-of-two-letters",
        &["qwen3", "harmony"],
        &[16_000, 300_000],
        |n| json!({"stop": "ab".repeat(n / 2), "tools": [function("t", json!({}))]}),
    );
    add(
        &mut all,
        "stops-that-are-markers",
        STYLES,
        &[1],
        |_| json!({"stop": ["<tool_call>", "<", "</tool_call>", "{", "\n", "<|"], "tools": [function("t", json!({}))]}),
    );
    all
}

/// Expensive schemas and grammars, in each place that a request has for them.
fn bombs(all: &mut Vec<Input>) {
    let product = |n: usize| format!("^{}", r"([^\p{L}]*\P{Greek}{1,500})".repeat(n));
    let pattern = move |n: usize| json!({"properties": {"a": {"type": "string", "pattern": product(n)}}, "required": ["a"]});
    add(
        all,
        "arguments",
        STYLES,
        &[8, 20],
        move |n| json!({"tools": [function("t", pattern(n))], "tool_choice": named("t")}),
    );
    // With two tools, the schema is lowered when the call begins.
    add(
        all,
        "deferred-arguments",
        STYLES,
        &[20],
        move |n| json!({"tools": [function("t", pattern(n)), function("u", json!({}))], "tool_choice": named("t")}),
    );
    add(all, "products", &["qwen3", "qwen3_coder", "glm4_5"], &[6, 14], |n| {
        let parts: Vec<Value> = (0..n)
            .map(|i| json!({"anyOf": [{"required": [format!("a{i}")]}, {"required": [format!("b{i}")]}]}))
            .collect();
        json!({"tools": [function("t", json!({"type": "object", "allOf": parts})), function("u", json!({}))], "tool_choice": named("t")})
    });
    add(
        all,
        "answer",
        &["qwen3", "harmony"],
        &[8, 20],
        move |n| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": pattern(n)}}}),
    );
    add(
        all,
        "custom-pattern",
        STYLES,
        &[8, 20],
        move |n| json!({"tools": [custom("regex", &product(n))]}),
    );
    add(
        all,
        "custom-counts",
        STYLES,
        &[3],
        |n| json!({"tools": [custom("regex", &format!("{}[a-z]{}", "(".repeat(n), "){1,500}".repeat(n)))]}),
    );
    add(
        all,
        "custom-ambiguous",
        STYLES,
        &[1],
        |_| json!({"tools": [custom("lark", "start: start start | start start start | \"a\" | \n")], "tool_choice": "required"}),
    );
    add(
        all,
        "custom-words",
        STYLES,
        &[1],
        |_| json!({"tools": [custom("lark", "start: x+ y\nx: /[a-z]+/ \" \"? | x x\ny: x* y? \".\" | x y\n")], "tool_choice": "required"}),
    );
    add(all, "custom-patterns", &["qwen3", "qwen3_coder"], &[300], |n| {
        let names = (0..n).map(|i| format!("T{i}")).collect::<Vec<_>>().join(" | ");
        let lines: String =
            (0..n).map(|i| format!("T{i}: /[a-z]*k{i}[^a-z]{{1,{}}}/\n", 20 + i)).collect();
        json!({"tools": [custom("lark", &format!("start: {names}\n{lines}"))]})
    });
    add(all, "custom-intersections", &["qwen3", "glm4_5"], &[4, 12], |n| {
        let parts =
            (0..n).map(|i| format!("/(.*a.{{{}}}b.*)/", i + 2)).collect::<Vec<_>>().join(" & ");
        json!({"tools": [custom("lark", &format!("start: T\nT: {parts}\n"))]})
    });
}

#[test]
fn hostile_requests_end_within_fuel_and_memory() {
    let inputs = inputs();
    assert!(inputs.len() >= 100, "{} inputs", inputs.len());
    let test = "hostile_requests_end_within_fuel_and_memory";
    Suite::new(&MEMORY).run(test, &inputs, Suite::compile_and_walk);
}

#[test]
fn cancelled_compilations_of_hostile_requests_end_soon() {
    let test = "cancelled_compilations_of_hostile_requests_end_soon";
    Suite::new(&MEMORY).run(test, &inputs(), Suite::cancel_compilations);
}

#[test]
fn names_of_hostile_requests_differ() {
    harness::check_names(&inputs());
}
