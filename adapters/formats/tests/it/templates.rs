//! Chat templates of models, if this machine has them: the turns that they write are accepted by
//! the family that is detected from them, and extracted again.

use louver_formats::{Call, Catalog, ModelHints, Reasoning, Turn};
use louver_test_support::text_if_present;
use minijinja::Environment;
use serde_json::{Value, json};

use crate::harness::request;
use crate::rig::{Rig, Specials};

const TOOLS: &str = r#"[
  {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}}
]"#;

/// The model; the family that is detected from its template, if the template writes calls; the
/// family that is tested; and the text that ends a turn.
const MODELS: [(&str, Option<&str>, &str, &str); 3] = [
    ("qwen3", Some("qwen3"), "qwen3", "<|im_end|>\n"),
    ("deepseek_v3", Some("deepseek_v3"), "deepseek_v3", "<｜end▁of▁sentence｜>"),
    ("llama3_1", None, "llama3", "<|eot_id|>"),
];

fn render(template: &str, messages: &Value, generation: bool) -> String {
    let mut environment = Environment::new();
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    // JSON as the library of the models writes it: no HTML escapes, spaces after commas and
    // colons.
    environment.add_filter("tojson", |value: minijinja::Value| {
        let value = serde_json::to_value(value).unwrap_or_default();
        minijinja::Value::from_safe_string(louver_formats::python_json(&value))
    });
    let tools: Value = serde_json::from_str(TOOLS).expect("tools");
    let context = json!({"messages": messages, "tools": tools, "add_generation_prompt": generation, "bos_token": "<bos>"});
    environment.render_str(template, context).expect("the template renders")
}

fn call(name: &str, arguments: &Value, as_text: bool) -> Value {
    let arguments = if as_text { json!(arguments.to_string()) } else { arguments.clone() };
    json!({"type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn turns_of_real_templates_if_present() {
    for (model, detected, family, stop) in MODELS {
        let Some(config) = text_if_present(format!("tokenizers/{model}/tokenizer_config.json"))
        else {
            continue;
        };
        let config: Value = serde_json::from_str(&config).expect("JSON");
        let template = config["chat_template"].as_str().expect("template");
        let catalog = Catalog::shipped();
        let found = catalog.detect(ModelHints::default().with_chat_template(template));
        assert_eq!(
            found.as_ref().map(|found| found.name.as_str()).ok(),
            detected,
            "{model}: {found:?}"
        );
        let rig = Rig::new(catalog.get(family).expect("family"), Specials::Most);
        let weather = json!({"city": "São <b> \"Paulo\"", "days": 3});
        let ask = json!({"role": "user", "content": "Weather and time?"});
        let mut turns: Vec<(Value, Turn)> = Vec::new();
        let of = |name: &str, arguments: &str| Call::new(name, arguments);
        let calls =
            vec![of("get_weather", &louver_formats::python_json(&weather)), of("get_time", "{}")];
        match model {
            "qwen3" => {
                let message = json!({"role": "assistant", "content": "So:", "reasoning_content": "Hm, {x}",
                    "tool_calls": [call("get_weather", &weather, false), call("get_time", &json!({}), false)]});
                let turn =
                    Turn::default().with_text("So:").with_reasoning("Hm, {x}").with_calls(calls);
                turns.push((message, turn));
            }
            "deepseek_v3" => {
                let message = json!({"role": "assistant", "content": null,
                    "tool_calls": [call("get_weather", &weather, true), call("get_time", &json!({}), true)]});
                let calls = vec![of("get_weather", &weather.to_string()), of("get_time", "{}")];
                turns.push((message, Turn::default().with_calls(calls)));
            }
            // This template writes no calls: they are given as text.
            _ => {
                let turn = Turn::default().with_calls(calls[..1].to_vec());
                let message = json!({"role": "assistant", "content": rig.format.render(&turn).expect("renders")});
                turns.push((message, turn));
            }
        }
        let text = json!({"role": "assistant", "content": "It is 5 < 7."});
        let turn = Turn::default().with_text("It is 5 < 7.");
        turns.push((text, turn));
        for (message, want) in turns {
            let prompt = render(template, &json!([ask]), true);
            let whole = render(template, &json!([ask, message]), false);
            let wire = whole.strip_prefix(&prompt).expect("the turn follows the prompt");
            let wire =
                wire.strip_suffix(stop).unwrap_or_else(|| panic!("{model}: {wire:?} has no end"));
            let opened = rig.format.prompt_opens_reasoning(&prompt);
            assert!(!opened, "{model}");
            let request = request(TOOLS, &json!("auto")).with_reasoning(Reasoning::Optional);
            let lowered = rig.format.lower(&request).expect("lowers");
            let units = rig.units(wire);
            let session = rig.session(&lowered, &units, &[0, 1, 2]);
            for seed in 0..3 {
                let run = session.run(&session.tokens(&units, seed), 3);
                assert_eq!((run.taken, run.complete), (Ok(()), true), "{model}: {wire:?}");
                let mut turn = run.turn;
                turn.calls.iter_mut().for_each(|call| call.id.clear());
                assert_eq!(turn, want, "{model}: {wire:?}");
            }
        }
    }
}

#[test]
fn prompts_that_open_reasoning() {
    let catalog = Catalog::shipped();
    let opens = |name: &str, prompt: &str| {
        catalog.get(name).expect("format").prompt_opens_reasoning(prompt)
    };
    assert!(opens("qwen3", "<|im_start|>assistant\n<think>\n"));
    assert!(opens("deepseek_r1", "<｜Assistant｜><think>\n"));
    assert!(opens("kimi_k3", "<|open|>think<|sep|>"));
    assert!(opens("k2_horizon", "<|ifm|im_start|>assistant\n<ifm|think_fast>\n"));
    assert!(!opens("k2_horizon", "<ifm|think></ifm|think>"));
    assert!(!opens("qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    assert!(!opens("qwen3", "say <think> please<|im_end|>\n<|im_start|>assistant\n"));
    assert!(!opens("hermes", "<think>"));
}
