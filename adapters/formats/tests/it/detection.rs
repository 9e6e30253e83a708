//! Detection of a model's family.

use louver_formats::{Catalog, DetectError, ModelHints};
use louver_test_support::text_if_present;

use serde::Deserialize;

use crate::harness::data;

fn detect(template: &str) -> Result<String, DetectError> {
    let hints = ModelHints::default().with_chat_template(template);
    Catalog::shipped().detect(hints).map(|found| found.name)
}

#[test]
fn templates() {
    let calls = "{{- '<tool_call>\\n{\"name\": \"' + tool_call.name + '\", \"arguments\": ' }}";
    assert_eq!(detect(calls).as_deref(), Ok("hermes"));
    let escaped =
        "{{- \"<tool_call>\\n{\\\"name\\\": <function-name>, \\\"arguments\\\": <args-dict>}\" }}";
    assert_eq!(detect(escaped).as_deref(), Ok("hermes"));
    assert_eq!(detect(&format!("{calls} '</think>'")).as_deref(), Ok("qwen3"));
    for other in ["{{ messages }}", "<tool_call>\\n<function=f>", &format!("{calls}<function=f>")] {
        assert!(matches!(detect(other), Err(DetectError::Unknown { .. })), "{other}");
    }
}

#[test]
fn ambiguous_models_name_all_families() {
    let mut catalog = Catalog::shipped();
    let twin = include_str!("../../families/hermes.toml").replacen("\"hermes\"", "\"twin\"", 1);
    let twin = format!("{twin}\n[[detect]]\ntokens = [\"<twin>\"]\n");
    assert_eq!(catalog.add_toml(&twin).expect("format"), "twin");
    let template = "<tool_call>\n{\"name\": ";
    match catalog.detect(ModelHints::default().with_chat_template(template)) {
        Err(DetectError::Ambiguous { candidates }) => {
            let names: Vec<&str> = candidates.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(names, ["hermes", "twin"]);
        }
        other => panic!("{other:?}"),
    }
    let by_token =
        catalog.detect(ModelHints::default().with_tokens(&["<s>", "<twin>"])).expect("found");
    assert_eq!(
        (by_token.name.as_str(), by_token.reason.as_str()),
        ("twin", "the tokenizer has \"<twin>\"")
    );
    let none = catalog.detect(ModelHints::default()).unwrap_err().to_string();
    assert!(
        none.contains("a chat template, tokens and a configuration the model fits none of "),
        "{none}"
    );
}

/// A type that several families list names none of them.
#[test]
fn a_configuration_names_one_family() {
    let template = "<tool_call>\n{\"name\": ";
    let is_configured = |model_type| {
        let hints = ModelHints::default().with_chat_template(template).with_model_type(model_type);
        let found = Catalog::shipped().detect(hints).expect("a family");
        assert_eq!(found.name, "hermes");
        found.is_configured
    };
    assert!(!is_configured("llama"));
    let mut hermes = Catalog::shipped().get("hermes").expect("hermes").clone();
    hermes.detect.iter_mut().for_each(|rule| {
        rule.model_type.iter_mut().for_each(|name| *name = "only-hermes".to_owned());
    });
    let mut catalog = Catalog::shipped();
    catalog.add(hermes);
    let hints = ModelHints::default().with_chat_template(template).with_model_type("only-hermes");
    assert!(catalog.detect(hints).expect("a family").is_configured);
}

#[test]
fn unknown_names_have_the_nearest_known() {
    let error = |name| Catalog::shipped().get(name).expect_err("unknown").to_string();
    assert!(error("qwen33").ends_with("`qwen33`; the nearest name is `qwen3`"));
    assert!(error("Hermes").ends_with("`hermes`"));
    assert!(error("something else").contains("known: "));
}

#[test]
fn real_templates_are_detected_if_present() {
    for (model, want) in [
        ("qwen3", Some("qwen3")),
        ("llama3_1", None),
        ("deepseek_v3", Some("deepseek_v3")),
        ("llama2", None),
    ] {
        let Some(config) = text_if_present(format!("tokenizers/{model}/tokenizer_config.json"))
        else {
            continue;
        };
        let config: serde_json::Value = serde_json::from_str(&config).expect("JSON");
        let template = config["chat_template"].as_str();
        let found = Catalog::shipped().detect(ModelHints::default().with_chat_template(template));
        assert_eq!(found.as_ref().map(|f| f.name.as_str()).ok(), want, "{model}: {found:?}");
    }
}

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The detected family, or all families that fit.
    family: Option<String>,
    #[serde(default)]
    candidates: Vec<String>,
    template: Option<String>,
    #[serde(default)]
    tokens: Vec<String>,
    model_type: Option<String>,
    #[serde(default)]
    architectures: Vec<String>,
}

#[test]
fn every_family_is_detected() {
    let file: File = toml::from_str(&data("detection.toml")).expect("detection.toml");
    let catalog = Catalog::shipped();
    for case in &file.case {
        let tokens: Vec<&str> = case.tokens.iter().map(String::as_str).collect();
        let architectures: Vec<&str> = case.architectures.iter().map(String::as_str).collect();
        let found = catalog.detect(
            ModelHints::default()
                .with_chat_template(case.template.as_deref())
                .with_tokens(&tokens)
                .with_model_type(case.model_type.as_deref())
                .with_architectures(&architectures),
        );
        match (&case.family, found) {
            (Some(family), Ok(found)) => {
                assert!(found.name == *family && !found.reason.is_empty(), "{family}: {found:?}");
            }
            (None, Err(DetectError::Ambiguous { candidates })) => {
                assert!(
                    candidates.iter().all(|candidate| !candidate.reason.is_empty()),
                    "{candidates:?}"
                );
                let names: Vec<String> =
                    candidates.into_iter().map(|candidate| candidate.name).collect();
                assert_eq!(names, case.candidates);
            }
            (family, found) => panic!("{family:?}: {found:?}"),
        }
    }
    for name in catalog.names() {
        assert!(
            file.case.iter().any(|case| case.family.as_ref() == Some(&name)),
            "{name} has no case"
        );
    }
}
