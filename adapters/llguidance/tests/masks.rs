//! Masks of a vocabulary of thousands of tokens: each bit is what validation says.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie, TokenId};
use llguidance::{Matcher, ParserFactory};
use serde_json::json;

/// All bytes, all pairs of printable characters, `padding` words that no grammar below allows, and
/// an end-of-sequence token.
fn environment(padding: usize) -> TokEnv {
    let mut words: Vec<Vec<u8>> = (0..=254u8).map(|byte| vec![byte]).collect();
    words.extend((32..127u8).flat_map(|a| (32..127u8).map(move |b| vec![a, b])));
    words.extend((0..padding).map(|at| format!("\n{at}").into_bytes()));
    let end = words.len() as TokenId;
    words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], &b"<end>"[..]].concat());
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words);
    Arc::new(ApproximateTokEnv::new(trie))
}

/// Walks over a text; returns how many tokens the masks had.
fn walk(factory: &ParserFactory, grammar: TopLevelGrammar, text: &str) -> Vec<usize> {
    let mut matcher = Matcher::new(factory.create_parser(grammar));
    let size = factory.tok_env().tok_trie().vocab_size() as TokenId;
    let mut sizes = Vec::new();
    for byte in text.bytes() {
        let mask = matcher.compute_mask().unwrap().to_list();
        let valid = |token: &TokenId| matcher.validate_tokens(&[*token]).unwrap() == 1;
        assert_eq!(mask, (0..size).filter(valid).collect::<Vec<_>>(), "before {byte} of {text}");
        sizes.push(mask.len());
        matcher.consume_token(byte.into()).unwrap();
    }
    sizes
}

#[test]
fn masks_are_what_validation_says() {
    // The last words of the masks have 0, 1 and 31 bits in use.
    for padding in [0, 1, 31] {
        let size = environment(0).tok_trie().vocab_size();
        let env = environment((32 - size % 32) + padding);
        assert_eq!(env.tok_trie().vocab_size() % 32, padding);
        let factory = ParserFactory::new_simple(&env).unwrap();
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"},
            "age": {"type": "integer"}}, "additionalProperties": {"type": "string"}});
        let schema = || TopLevelGrammar::from_json_schema(schema.clone());
        let mut sizes = walk(&factory, schema(), r#"{"name": "a\n~", "age": 12, "x":"#);
        sizes.extend(walk(&factory, TopLevelGrammar::from_regex("[a-y]+(:[^x]*)?"), "ab:cd"));
        sizes.extend(walk(&factory, TopLevelGrammar::from_regex("(.|\n)*"), "a\nb"));
        // Some are sparse, some dense, and some are copied from others.
        assert!(sizes.iter().any(|&size| size < 50) && sizes.iter().any(|&size| size > 8_000));
    }
}
