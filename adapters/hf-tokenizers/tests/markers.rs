//! Call markers on real tokenizers: as special tokens, as added tokens that are not special, and
//! spelled in ordinary tokens, they have the same meaning. Needs the shared data.

use std::path::Path;
use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::ids::TokenId;
use louver::limits::Limits;
use louver::mask::bit;
use louver::matcher::Tracer;
use louver_formats::{Catalog, LoweredRequest, Reasoning, Tool, ToolRequest, Turn};
use louver_hf_tokenizers::{Encoder, Loaded, VocabOptions, load};
use louver_test_support::data_if_present;

/// Tokenizers, and the model families whose calls are tested on them.
const FAMILIES: [(&str, &[&str]); 4] = [
    ("qwen3", &["qwen3", "qwen3_coder", "qwen2_5", "glm4_7", "phi4_mini", "minimax_m2"]),
    ("deepseek_v3", &["deepseek_v3", "deepseek_r1", "deepseek_v3_1", "deepseek_v3_2"]),
    ("llama3_1", &["llama3", "llama3_function", "llama4"]),
    ("llama2", &["hermes", "mistral_v3", "mistral_v11", "granite"]),
];

const TOOLS: &str = r#"[
  {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"], "additionalProperties": false}},
  {"name": "get_time", "parameters": {}}
]"#;

/// The spellings of a family: valid calls, and rejected texts.
fn spellings(family: &str) -> (Vec<String>, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data/spellings.toml");
    let file: toml::Table =
        std::fs::read_to_string(path).expect("spellings.toml").parse().expect("TOML");
    let families = file["family"].as_array().expect("families");
    let has = |value: &&toml::Value| {
        value["formats"].as_array().expect("formats").iter().any(|f| f.as_str() == Some(family))
    };
    let found = families.iter().find(has).unwrap_or_else(|| panic!("{family}"));
    let text = |value: &toml::Value| value.as_str().expect("text").to_owned();
    let calls = found["calls"].as_array().expect("calls").iter().map(|call| text(&call[0]));
    let refused = found
        .get("refused")
        .and_then(toml::Value::as_array)
        .map(|all| all.iter().map(text).collect());
    (calls.collect(), refused.unwrap_or_default())
}

struct TestSetup<'a> {
    encoder: Encoder<'a>,
    lowered: LoweredRequest,
    constraint: Constraint,
}

impl TestSetup<'_> {
    /// The tokens of a text as the tokenizer splits it, and of pieces that are too short for any
    /// marker.
    fn tokens(&self, wire: &str) -> Vec<Vec<u32>> {
        let chars: Vec<char> = wire.chars().collect();
        let cut = |size: usize| {
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
            pieces.flat_map(|piece| self.encoder.encode(&piece).expect("tokens")).collect()
        };
        vec![cut(chars.len().max(1)), cut(5), cut(1)]
    }

    /// Parses tokens, if they are a complete turn.
    fn read(&self, tokens: &[u32], masks: bool) -> Option<Turn> {
        let mut matcher = self.constraint.matcher();
        let mut mask = vec![0; self.constraint.vocab().mask_words()];
        let (mut tracer, mut extractor, mut events) =
            (Tracer::new(), self.lowered.extractor(0), Vec::new());
        for &token in tokens {
            let token = TokenId::from_raw(token);
            let allowed = masks.then(|| {
                matcher.fill_mask(&mut mask);
                bit(&mask, token)
            });
            let accepted = matcher.advance_traced(token, &mut tracer).is_ok();
            assert!(allowed.is_none_or(|allowed| allowed == accepted), "{token:?}");
            if !accepted {
                return None;
            }
            events.extend(extractor.push(tracer.drain()));
        }
        let complete = matcher.is_complete();
        events.extend(extractor.push(tracer.finish()));
        events.extend(extractor.finish(complete));
        complete.then(|| Turn::collect(&events))
    }
}

#[test]
fn markers_are_independent_of_tokenization_if_present() {
    let mut checked = 0;
    for (name, families) in FAMILIES {
        let Some(path) = data_if_present(format!("tokenizers/{name}")) else { continue };
        let Loaded { vocab, tokenizer, .. } =
            load(path.join("tokenizer.json"), &VocabOptions::default()).expect("loads");
        let vocab = Arc::new(vocab);
        let engine = Engine::new(vocab.clone(), EngineOptions::default());
        for family in families {
            let catalog = Catalog::shipped();
            let format = catalog.get(family).expect("format").bind(&vocab);
            let setup = |reasoning| {
                let tools = Tool::parse_text(TOOLS, &Limits::default()).expect("tools");
                let request = ToolRequest::default().with_tools(tools).with_reasoning(reasoning);
                let lowered = format.lower(&request).expect("lowers");
                let constraint = engine.compile(lowered.grammar().clone()).expect("compiles");
                TestSetup { encoder: Encoder::new(&tokenizer, &vocab), lowered, constraint }
            };
            let (plain, thinking) = (
                setup(Reasoning::Off),
                format.reasoning.as_ref().map(|_| setup(Reasoning::Opened)),
            );
            let (calls, refused) = spellings(family);
            for (n, wire) in calls.iter().enumerate() {
                for tokens in plain.tokens(wire) {
                    let turn = plain
                        .read(&tokens, n == 0)
                        .unwrap_or_else(|| panic!("{name}, {family}: {wire:?} {tokens:?}"));
                    assert_eq!(turn.calls.len(), 1, "{name}, {family}: {wire:?}: {turn:?}");
                    assert_eq!(
                        turn.calls[0].arguments, "{\"city\": \"Oslo\"}",
                        "{name}, {family}: {wire:?}"
                    );
                    checked += 1;
                }
                for tokens in plain.tokens(&wire.replace("get_weather", "get_wether")) {
                    assert_eq!(plain.read(&tokens, false), None, "{name}, {family}: {wire:?}");
                }
                // A call within reasoning does not count; JSON there is a draft.
                let thinking = thinking.as_ref().filter(|_| wire.trim_start().starts_with('<'));
                for (setup, tokens) in thinking.into_iter().flat_map(|s| {
                    s.tokens(&format!("Hm, {}", wire.trim_start())).into_iter().map(move |t| (s, t))
                }) {
                    let read = setup.read(&tokens, false);
                    assert!(read.is_none(), "{name}, {family}: {wire:?}: {read:?}");
                    let mut matcher = setup.constraint.matcher();
                    let whole = tokens
                        .iter()
                        .all(|&token| matcher.advance(TokenId::from_raw(token)).is_ok());
                    assert!(
                        !whole || wire.starts_with("<tools>"),
                        "{name}, {family}: {wire:?} in reasoning"
                    );
                    checked += 1;
                }
            }
            for wire in &refused {
                for tokens in plain.tokens(wire) {
                    assert_eq!(plain.read(&tokens, false), None, "{name}, {family}: {wire:?}");
                    checked += 1;
                }
            }
        }
    }
    println!("{checked} readings");
}
