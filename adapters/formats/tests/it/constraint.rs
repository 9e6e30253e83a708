//! The constraint builder, request bodies of clients, and refused requests.

use std::sync::Arc;

use louver::engine::{Engine, EngineOptions};
use louver::spec::json::Json;
use louver::spec::tools::{ToolChoice, ToolChoiceError};
use louver::vocab::Vocabulary;
use louver_formats::{
    Catalog, ConstraintError, LowerError, Parallel, Reasoning, ReasoningBudget, RequestError,
    Strictness, ToolConstraint, ToolRequest,
};
use serde_json::{Value, json};

fn body(body: Value) -> Result<ToolRequest, RequestError> {
    ToolRequest::parse(&Json::from(body))
}

fn tools() -> Value {
    json!([{"name": "f"}, {"type": "function", "function": {"name": "g", "strict": true}}])
}

fn constraint() -> ToolConstraint {
    ToolConstraint::new().tools(&Json::from(tools())).expect("tools")
}

fn lower(constraint: &ToolConstraint, format: &str) -> Result<Vec<bool>, LowerError> {
    let plan = constraint.lower(&Catalog::shipped().get(format).expect("format").spelled())?;
    Ok(plan.tools().iter().map(|tool| tool.arguments.is_some()).collect())
}

#[test]
fn allowed_tools_in_both_forms() {
    for choice in [
        json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]}),
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
            {"type": "function", "function": {"name": "g"}}]}}),
    ] {
        let request = body(json!({"tools": tools(), "tool_choice": choice})).expect("parses");
        assert_eq!(request.tool_choice, ToolChoice::Required);
        assert_eq!(lower(&request.into(), "qwen3").expect("lowers"), [false, true]);
    }
    for bad in [
        json!({"type": "allowed_tools", "mode": "sometimes", "tools": []}),
        json!({"type": "allowed_tools", "mode": "auto"}),
        json!({"type": "allowed_tools", "mode": "auto", "tools": [1]}),
    ] {
        assert!(matches!(
            body(json!({"tools": tools(), "tool_choice": bad})),
            Err(RequestError::Malformed { .. })
        ));
    }
    let unknown = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "h"}]});
    let error = body(json!({"tools": tools(), "tool_choice": unknown}));
    assert!(
        matches!(error, Err(RequestError::Choice(ToolChoiceError::UnknownTool { name, .. })) if name == "h")
    );
    let none = json!({"type": "allowed_tools", "mode": "required", "tools": []});
    let error = body(json!({"tools": tools(), "tool_choice": none}));
    assert!(matches!(error, Err(RequestError::Choice(ToolChoiceError::NoTools))));
    assert!(lower(&constraint().allow(["f"]).named("g"), "qwen3").is_err());
}

#[test]
fn builtin_tools_are_parsed_and_lowered() {
    let list = json!([
        {"type": "python"}, {"type": "function", "function": {"name": "f", "parameters": {"type": "strin"}}},
        {"type": "browser.search", "parameters": {"type": "strin"}}
    ]);
    let request = body(json!({"tools": list, "tool_choice": {"type": "python"}})).expect("parses");
    assert_eq!(request.builtins.len(), 2);
    assert_eq!(lower(&request.clone().into(), "harmony").expect("lowers"), [false, true, false]);
    assert!(matches!(lower(&request.clone().into(), "qwen3"), Err(LowerError::NoBuiltins { .. })));
    // Pointers have indices among all tools of the request.
    let request = ToolRequest { tool_choice: ToolChoice::Auto, ..request };
    let Err(LowerError::Schemas(errors)) = lower(&request.into(), "harmony") else {
        panic!("lowers")
    };
    let pointers: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/tools/1/function/parameters/type", "/tools/2/parameters/type"]);
    // Code in the format of Llama does not name its tool.
    let request = body(json!({"tools": [{"type": "code_interpreter"}, {"type": "brave_search"}]}))
        .expect("parses");
    assert_eq!(lower(&request.into(), "llama3").expect("lowers"), [true, true]);
    let request =
        body(json!({"tools": [{"type": "code_interpreter"}, {"type": "python"}]})).expect("parses");
    assert!(matches!(
        lower(&request.clone().into(), "llama3"),
        Err(LowerError::Combination { .. })
    ));
    assert!(lower(&request.into(), "harmony").is_ok());
    let error = body(json!({"tools": [{"type": "python"}, {"type": "function", "function": {}}]}))
        .unwrap_err();
    assert!(error.to_string().contains("/tools/1/function"), "{error}");
    for bad in [
        json!([{"type": "x", "name": 1}]),
        json!([{"type": ""}]),
        json!([{"type": "x", "parameters": 1}]),
    ] {
        assert!(matches!(body(json!({"tools": bad})), Err(RequestError::Builtin { .. })), "{bad}");
    }
}

#[test]
fn contradictory_requests_are_refused() {
    let schema = || Json::from(json!({"type": "integer"}));
    let refused: [(&str, ToolConstraint, &str); 8] = [
        (
            "a budget without reasoning",
            constraint().reasoning(Reasoning::Off).reasoning_budget(ReasoningBudget::Tokens(5)),
            "qwen3",
        ),
        (
            "a budget in a family without",
            constraint().reasoning_budget(ReasoningBudget::Tokens(5)),
            "llama3",
        ),
        ("stop strings and an answer", constraint().stop("x").response_format(schema()), "qwen3"),
        ("an empty stop string", constraint().stop(""), "qwen3"),
        ("an empty ban", constraint().ban(""), "qwen3"),
        ("a ban of a marker", constraint().ban("<tool_call>"), "qwen3"),
        ("a stop string within a marker", constraint().stop("_call>"), "qwen3"),
        ("reasoning in a family without", constraint().reasoning(Reasoning::Required), "hermes"),
    ];
    for (what, constraint, format) in refused {
        assert!(lower(&constraint, format).is_err(), "{what}");
    }
    let most = Parallel::AtMost(1_000.try_into().expect("positive"));
    assert!(matches!(
        lower(&constraint().parallel(most), "qwen3"),
        Err(LowerError::TooManyCalls { .. })
    ));
    assert!(lower(&constraint().parallel(most).required(), "qwen3").is_ok());
}

#[test]
fn stop_strings_and_bans_are_bounded() {
    let over = |body: Value, format: &str| {
        let mut request = ToolRequest::parse(&body.into()).expect("parses");
        request.limits.dispatch_bytes = 200;
        match Catalog::shipped().get(format).expect("format").lower(&request) {
            Err(error @ LowerError::TooMuchText { limit: 200, .. }) => {
                error.faults()[0].pointer.clone()
            }
            Err(error) => panic!("{error}"),
            Ok(_) => "fits".to_owned(),
        }
    };
    let stop = |len: usize| Value::from("x".repeat(len));
    assert_eq!(over(json!({"stop": stop(201)}), "qwen3"), "/stop");
    assert_eq!(over(json!({"stop": [stop(100), stop(90), stop(20)]}), "qwen3"), "/stop/2");
    assert_eq!(over(json!({"stop": [stop(50), stop(50)]}), "qwen3"), "fits");
    let banned = |limit: usize| {
        let (stop, bans) = (vec!["y".repeat(50)], vec!["x".repeat(150)]);
        let mut request = ToolRequest { stop, bans, ..ToolRequest::default() };
        request.limits.dispatch_bytes = limit;
        lower(&request.into(), "qwen3")
    };
    assert!(banned(200).is_ok());
    assert!(
        matches!(banned(199), Err(LowerError::TooMuchText { pointer, limit: 199 }) if pointer.is_empty())
    );
}

#[test]
fn a_constraint_compiles_for_a_vocabulary() {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let constraint = constraint().required().strictness(Strictness::AsFlagged);
    let format = Catalog::shipped().get("qwen3").expect("format").clone();
    let (plan, bound) = constraint.compile(&engine, &format).expect("compiles");
    assert_eq!((plan.format(), plan.tools().len()), ("qwen3", 2));
    assert!(!bound.matcher().is_complete());
    // Harmony's markers are special tokens that this vocabulary lacks.
    let harmony = Catalog::shipped().get("harmony").expect("format").clone();
    assert!(matches!(constraint.compile(&engine, &harmony), Err(ConstraintError::Compile(_))));
}

#[test]
fn format_files_are_read() {
    let path = std::env::temp_dir().join(format!("louver-format-{}.toml", std::process::id()));
    let text = include_str!("../../families/hermes.toml").replacen("\"hermes\"", "\"mine\"", 1);
    std::fs::write(&path, text).expect("written");
    let mut catalog = Catalog::shipped();
    let name = catalog.add_file(&path);
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(name.expect("read"), "mine");
    assert!(catalog.get("mine").is_ok());
    let missing = catalog.add_file(&path).unwrap_err().to_string();
    assert!(missing.contains("louver-format-"), "{missing}");
}

#[test]
fn equal_requests_are_compiled_once() {
    let engine =
        Engine::new(Arc::new(Vocabulary::toy(&[b"<tool_call>"])), EngineOptions::default());
    let catalog = Catalog::shipped();
    let (qwen3, hermes) =
        (catalog.get("qwen3").expect("format"), catalog.get("hermes").expect("format"));
    let compile = |constraint: ToolConstraint, format| {
        let before = engine.stats().grammars;
        let (plan, _) = constraint.compile(&engine, format).expect("compiles");
        let after = engine.stats().grammars;
        assert_eq!(
            (after.hits + after.misses, plan.tools().len()),
            (before.hits + before.misses + 1, 2)
        );
        (plan.to_owned(), after.hits > before.hits)
    };
    let (first, known) = compile(constraint(), qwen3);
    assert!(!known);
    let (again, known) = compile(constraint(), qwen3);
    assert!(known);
    assert_eq!((again.tools(), again.grammar()), (first.tools(), first.grammar()));
    // Whatever is asked for otherwise is something else.
    let described = json!([{"name": "f", "parameters": {"properties": {"a": {"type": "null"}}}}, {"name": "g"}]);
    let others = [
        (constraint().required(), qwen3),
        (constraint().named("f"), qwen3),
        (constraint().parallel(Parallel::One), qwen3),
        (constraint().reasoning(Reasoning::Off), qwen3),
        (constraint().stop("end"), qwen3),
        (constraint().allow(["g"]), qwen3),
        (constraint(), hermes),
        (ToolConstraint::new().tools(&Json::from(described)).expect("tools"), qwen3),
    ];
    for (constraint, format) in others {
        assert!(!compile(constraint.clone(), format).1, "{constraint:?}");
        assert!(compile(constraint, format).1);
    }
    // Errors are not cached.
    for _ in 0..2 {
        assert!(constraint().named("h").compile(&engine, qwen3).is_err());
    }
}
