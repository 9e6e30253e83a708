//! Requests: bodies of clients, what is refused, and compilation.

use std::sync::Arc;

use louver::engine::{Engine, EngineOptions};
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{
    Catalog, ConstraintError, LowerError, Parallel, Reasoning, ReasoningBudget, RequestError,
    RequestErrors, Strictness, ToolChoice, ToolChoiceError, ToolRequest,
};
use serde_json::{Value, json};

fn body(body: Value) -> Result<ToolRequest, RequestErrors> {
    ToolRequest::parse(&Json::from(body))
}

fn tools() -> Value {
    json!([{"name": "f"}, {"type": "function", "function": {"name": "g", "strict": true}}])
}

fn request() -> ToolRequest {
    body(json!({"tools": tools()})).expect("tools")
}

/// The request with changes.
fn with(change: impl FnOnce(&mut ToolRequest)) -> ToolRequest {
    let mut request = request();
    change(&mut request);
    request
}

fn named(name: &str) -> ToolChoice {
    ToolChoice::Named(name.to_owned())
}

fn lower(request: &ToolRequest, format: &str) -> Result<Vec<bool>, LowerError> {
    let lowered =
        Catalog::shipped().get(format).expect("format").with_text_markers().lower(request)?;
    Ok(lowered.tools().iter().map(|tool| tool.is_callable()).collect())
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
        assert_eq!(lower(&request, "qwen3").expect("lowers"), [false, true]);
    }
    for bad in [
        json!({"type": "allowed_tools", "mode": "sometimes", "tools": []}),
        json!({"type": "allowed_tools", "mode": "auto"}),
        json!({"type": "allowed_tools", "mode": "auto", "tools": [1]}),
    ] {
        let errors = body(json!({"tools": tools(), "tool_choice": bad})).unwrap_err().0;
        assert!(matches!(errors[0], RequestError::Choice(ToolChoiceError::Member(_))));
    }
    let unknown = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "h"}]});
    let errors = body(json!({"tools": tools(), "tool_choice": unknown})).unwrap_err().0;
    let [RequestError::Choice(ToolChoiceError::UnknownTool { name, .. })] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert_eq!(name, "h");
    let none = json!({"type": "allowed_tools", "mode": "required", "tools": []});
    let errors = body(json!({"tools": tools(), "tool_choice": none})).unwrap_err().0;
    assert_eq!(errors, [RequestError::Choice(ToolChoiceError::NoTools)]);
    let contradictory = with(|request| {
        (request.allowed, request.tool_choice) = (Some(vec!["f".to_owned()]), named("g"));
    });
    assert!(lower(&contradictory, "qwen3").is_err());
}

/// A call of the tool `all` would begin as text does.
#[test]
fn names_that_begin_text_are_refused() {
    let request = body(json!({"tools": [{"name": "f"}, {"name": "all"}]})).expect("parses");
    let error = lower(&request, "functionary_v3_2").unwrap_err();
    assert_eq!(error.faults()[0].pointer, "/tools", "{error}");
    assert!(error.to_string().contains(r#""all""#), "{error}");
    for (name, format) in [("all", "harmony"), ("all", "qwen3"), ("alls", "functionary_v3_2")] {
        let request = body(json!({"tools": [{"name": name}]})).expect("parses");
        assert!(lower(&request, format).is_ok(), "{format}");
    }
}

#[test]
fn builtin_tools_are_parsed_and_lowered() {
    let list = json!([
        {"type": "python"}, {"type": "function", "function": {"name": "f", "parameters": {"type": "strin"}}},
        {"type": "browser.search", "parameters": {"type": "strin"}}
    ]);
    let request = body(json!({"tools": list, "tool_choice": {"type": "python"}})).expect("parses");
    assert_eq!(request.tools.iter().filter(|tool| tool.is_builtin()).count(), 2);
    assert_eq!(lower(&request, "harmony").expect("lowers"), [true, false, false]);
    let Err(error @ LowerError::NoBuiltins { .. }) = lower(&request, "qwen3") else {
        panic!("lowers")
    };
    assert_eq!(error.faults()[0].pointer, "/tools/0/type");
    // Pointers have indices among all tools of the request.
    let request = request.with_tool_choice(ToolChoice::Auto);
    let Err(LowerError::Parts(errors)) = lower(&request, "harmony") else { panic!("lowers") };
    let pointers: Vec<&str> = errors.schemas.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/tools/1/function/parameters/type", "/tools/2/parameters/type"]);
    // Code in the format of Llama does not name its tool.
    let request = body(json!({"tools": [{"type": "code_interpreter"}, {"type": "brave_search"}]}))
        .expect("parses");
    assert_eq!(lower(&request, "llama3").expect("lowers"), [true, true]);
    let request =
        body(json!({"tools": [{"type": "code_interpreter"}, {"type": "python"}]})).expect("parses");
    assert!(matches!(lower(&request, "llama3"), Err(LowerError::Combination { .. })));
    assert!(lower(&request, "harmony").is_ok());
    let error = body(json!({"tools": [{"type": "python"}, {"type": "function", "function": {}}]}))
        .unwrap_err();
    assert!(error.to_string().contains("/tools/1/function"), "{error}");
    // Code is an automaton, which has a limit.
    let mut request = body(json!({"tools": [{"name": "f"}, {"type": "python"}]})).expect("parses");
    request.limits.automaton_states = 2;
    let error = lower(&request, "harmony").unwrap_err();
    assert_eq!(error.faults()[0].pointer, "/tools/1", "{error}");
    for bad in [
        json!([{"type": "x", "name": 1}]),
        json!([{"type": ""}]),
        json!([{"type": "x", "parameters": 1}]),
    ] {
        let errors = body(json!({"tools": bad})).unwrap_err().0;
        assert!(matches!(errors[..], [RequestError::Tool(_)]), "{bad}");
    }
}

#[test]
fn contradictory_requests_are_refused() {
    let budget = Some(ReasoningBudget::Tokens(5));
    let stop = |text: &str| with(|request| request.stop.push(text.to_owned()));
    let ban = |text: &str| with(|request| request.bans.push(text.to_owned()));
    let refused: [(&str, ToolRequest, &str); 8] = [
        (
            "a budget without reasoning",
            with(|request| {
                (request.reasoning, request.reasoning_budget) = (Reasoning::Off, budget);
            }),
            "qwen3",
        ),
        (
            "a budget in a family without",
            with(|request| request.reasoning_budget = budget),
            "llama3",
        ),
        ("an empty stop string", stop(""), "qwen3"),
        ("an empty ban", ban(""), "qwen3"),
        ("a ban of a marker", ban("<tool_call>"), "qwen3"),
        ("a stop string within a marker", stop("_call>"), "qwen3"),
        (
            "reasoning in a family without",
            with(|request| request.reasoning = Reasoning::Required),
            "hermes",
        ),
        (
            "two tools of the same name",
            with(|request| request.tools.push(request.tools[0].clone())),
            "qwen3",
        ),
    ];
    for (what, request, format) in refused {
        assert!(lower(&request, format).is_err(), "{what}");
    }
    let most = |choice: ToolChoice| {
        let parallel = Parallel::AtMost(1_000.try_into().expect("positive"));
        request().with_parallel(parallel).with_tool_choice(choice)
    };
    assert!(matches!(
        lower(&most(ToolChoice::Auto), "qwen3"),
        Err(LowerError::TooManyCalls { .. })
    ));
    assert!(lower(&most(ToolChoice::Required), "qwen3").is_ok());
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
        let mut request = ToolRequest::default().with_stop(stop).with_bans(bans);
        request.limits.dispatch_bytes = limit;
        lower(&request, "qwen3")
    };
    assert!(banned(200).is_ok());
    assert!(
        matches!(banned(199), Err(LowerError::TooMuchText { pointer, limit: 199 }) if pointer.is_empty())
    );
}

#[test]
fn a_constraint_compiles_for_a_vocabulary() {
    let engine = Engine::new(Arc::new(Vocabulary::toy(&[])), EngineOptions::default());
    let request = with(|request| {
        request.tool_choice = ToolChoice::Required;
        request.strictness = Strictness::AsFlagged;
    });
    let format = Catalog::shipped().get("qwen3").expect("format").clone();
    let (lowered, bound) = request.clone().compile(&engine, &format).expect("compiles");
    assert_eq!((&*lowered.wire_format().name, lowered.tools().len()), ("qwen3", 2));
    assert!(!bound.matcher().is_complete());
    // Harmony's markers are special tokens that this vocabulary lacks.
    let harmony = Catalog::shipped().get("harmony").expect("format").clone();
    assert!(matches!(request.compile(&engine, &harmony), Err(ConstraintError::Compile(_))));
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
    std::fs::write(&path, "name = 1").expect("written");
    let invalid = catalog.add_file(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).expect("removed");
    let named = format!("{}: not a wire format: TOML parse error", path.display());
    assert!(invalid.starts_with(&named), "{invalid}");
}

#[test]
fn equal_requests_are_compiled_once() {
    let engine =
        Engine::new(Arc::new(Vocabulary::toy(&[b"<tool_call>"])), EngineOptions::default());
    let catalog = Catalog::shipped();
    let (qwen3, hermes) =
        (catalog.get("qwen3").expect("format"), catalog.get("hermes").expect("format"));
    let compile = |request: ToolRequest, format| {
        let before = engine.stats().grammars;
        let (lowered, _) = request.compile(&engine, format).expect("compiles");
        let after = engine.stats().grammars;
        assert_eq!(
            (after.hits + after.misses, lowered.tools().len()),
            (before.hits + before.misses + 1, 2)
        );
        (lowered.to_owned(), after.hits > before.hits)
    };
    let (first, known) = compile(request(), qwen3);
    assert!(!known);
    let (again, known) = compile(request(), qwen3);
    assert!(known);
    assert!(std::ptr::eq(again.tools(), first.tools()));
    assert_eq!(again.grammar(), first.grammar());
    // Whatever is asked for otherwise is something else.
    let described = json!([{"name": "f", "parameters": {"properties": {"a": {"type": "null"}}}}, {"name": "g"}]);
    let others = [
        (with(|request| request.tool_choice = ToolChoice::Required), qwen3),
        (with(|request| request.tool_choice = named("f")), qwen3),
        (with(|request| request.parallel = Parallel::One), qwen3),
        (with(|request| request.reasoning = Reasoning::Off), qwen3),
        (with(|request| request.stop.push("end".to_owned())), qwen3),
        (with(|request| request.allowed = Some(vec!["g".to_owned()])), qwen3),
        (request(), hermes),
        (body(json!({"tools": described})).expect("tools"), qwen3),
    ];
    for (request, format) in others {
        assert!(!compile(request.clone(), format).1, "{request:?}");
        assert!(compile(request, format).1);
    }
    // Errors are not cached.
    for _ in 0..2 {
        let unknown = with(|request| request.tool_choice = named("h"));
        assert!(unknown.compile(&engine, qwen3).is_err());
    }
}
