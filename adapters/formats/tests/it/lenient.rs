//! The cases of `data/lenient.toml`: unconstrained outputs, the turns in them and their
//! differences.

use louver_formats::{BuiltinTool, Catalog, Difference, Reasoning, ReasoningBudget, Tool};
use serde::Deserialize;

use crate::harness::{data, request};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tools: String,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    format: String,
    wire: String,
    #[serde(default)]
    choice: Option<String>,
    #[serde(default)]
    opened: bool,
    /// Built-in tools.
    #[serde(default)]
    builtins: Vec<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    calls: Vec<(String, String)>,
    #[serde(default)]
    differences: Vec<Difference>,
}

fn builtin(name: &String) -> Tool {
    BuiltinTool::new(name, None).expect("a name").into()
}

#[test]
fn unconstrained_outputs() {
    let file: File = toml::from_str(&data("lenient.toml")).expect("lenient.toml");
    let catalog = Catalog::shipped();
    let mut wrong = Vec::new();
    for case in &file.case {
        let choice = case.choice.as_deref().unwrap_or("auto");
        let choice = serde_json::from_str(choice).unwrap_or_else(|_| choice.into());
        let mut request = request(&file.tools, &choice);
        request.tools.extend(case.builtins.iter().map(builtin));
        request.reasoning = if case.opened { Reasoning::Opened } else { Reasoning::Optional };
        let reading = catalog
            .get(&case.format)
            .expect("format")
            .read_unconstrained(&request, &case.wire)
            .expect("reads");
        let turn = &reading.turn;
        let calls: Vec<(String, String)> =
            turn.calls.iter().map(|c| (c.name.clone(), c.arguments.clone())).collect();
        let got = (&turn.text, &turn.reasoning, &calls, &reading.differences);
        if got != (&case.text, &case.reasoning, &case.calls, &case.differences) {
            wrong.push(format!("{}: {:?}\n    {got:?}", case.format, case.wire));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), file.case.len(), wrong.join("\n"));
    assert!(file.case.len() > 25);
}

/// Arguments in an alternative spelling are read in its style, with the types of the tool.
/// A text does not tell its tokens.
#[test]
fn budgets_of_tokens_do_not_cut_what_is_read() {
    let mut request = request(r#"[{"name": "f"}]"#, &"auto".into());
    request.reasoning = Reasoning::Optional;
    let request = request.with_reasoning_budget(ReasoningBudget::Tokens(3));
    let wire = "<think>\none two three four five\n</think>\n\n<tool_call>\n{\"name\": \"f\", \
                \"arguments\": {}}\n</tool_call>";
    let format = Catalog::shipped().get("qwen3").expect("format").clone();
    let reading = format.read_unconstrained(&request, wire).expect("reads");
    assert_eq!(reading.turn.reasoning, "one two three four five");
    assert_eq!(reading.turn.calls.len(), 1, "{reading:?}");
    assert_eq!(reading.differences, []);
}

#[test]
fn arguments_are_read_in_the_style_of_their_spelling() {
    let hermes = include_str!("../../families/hermes.toml");
    let json = "header = [{ name = \"raw\" }, \">\"]\narguments = \"json\"\n";
    let tagged = r#"header = [{ name = "raw" }, ">"]
arguments = { tagged = { open = ["<parameter=", { key = "raw" }, ">"], close = { text = "</parameter>" } } }
"#;
    assert_eq!(hermes.matches(json).count(), 1);
    let both = hermes.replace(json, tagged).replace("\"hermes\"", "\"two_styles\"");
    let mut catalog = Catalog::empty();
    catalog.add_toml(&both).expect("a format");
    let tools = r#"[{"name": "f", "parameters": {"type": "object",
        "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}}}]"#;
    let request = request(tools, &"auto".into());
    let format = catalog.get("two_styles").expect("added");
    for (wire, arguments) in [
        (
            "<function=f><parameter=text>5</parameter><parameter=count>5</parameter></function>",
            r#"{"text": "5", "count": 5}"#,
        ),
        (
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"count\": 5}}\n</tool_call>",
            r#"{"count": 5}"#,
        ),
    ] {
        let reading = format.read_unconstrained(&request, wire).expect("reads");
        let calls: Vec<&str> = reading.turn.calls.iter().map(|call| &*call.arguments).collect();
        assert_eq!(calls, [arguments], "{wire}");
    }
}

/// Prefixes, suffixes and mixtures of turns of every family are read without failing or hanging.
#[test]
fn any_text_is_read_without_panics() {
    let file: File = toml::from_str(&data("lenient.toml")).expect("lenient.toml");
    let request = request(&file.tools, &"auto".into());
    for format in Catalog::shipped().formats() {
        let wires: Vec<&str> =
            file.case.iter().filter(|c| c.format == format.name).map(|c| c.wire.as_str()).collect();
        for wire in wires {
            for at in (0..=wire.len()).filter(|&at| wire.is_char_boundary(at)).step_by(3) {
                for text in [&wire[..at], &wire[at..]] {
                    let reading = format.read_unconstrained(&request, text).expect("reads");
                    for call in &reading.turn.calls {
                        assert!(
                            serde_json::from_str::<serde_json::Value>(&call.arguments).is_ok(),
                            "{text:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Reading texts of begin markers alone takes time linear in their length, with a large factor.
#[test]
fn many_begin_markers_take_bounded_work() {
    let request = request(r#"[{"name": "f"}]"#, &"auto".into());
    for (format, piece) in [
        ("llama4", "[f("),
        ("qwen3", "<tool_call>{"),
        ("harmony", "<|start|>assistant"),
        ("glm4_7", "<tool_call>f"),
        ("qwen3_coder", "<tool_call>\n<function="),
        ("kimi_k2", "<|tool_calls_section_begin|>"),
        ("harmony", "<|channel|>commentary to=functions."),
        ("llama3", "{\"name\": \""),
    ] {
        let text = piece.repeat(40_000 / piece.len());
        let reading = Catalog::shipped()
            .get(format)
            .expect("format")
            .read_unconstrained(&request, &text)
            .expect("reads");
        assert!(!reading.differences.is_empty(), "{format}");
    }
}
