//! Tokenizers of real models. Needs the shared data.

use std::path::PathBuf;

use louver::ids::TokenId;
use louver_hf_tokenizers::{Encoder, Loaded, VocabOptions, load};
use louver_test_support::data_if_present;
use tokenizers::Tokenizer;

const PROBES: &[&str] = &[
    "plain words, 1234567890 and \t tabs\n\n  lines  ",
    "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": [1, 2, 3], \"x\": -1.5e-7}}",
    "Gr\u{fc}\u{df}e, \u{4f60}\u{597d}, \u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{1f468}\u{200d}\u{1f469}, \u{fffd} and \u{10ffff}",
    " leading and trailing ",
    "\u{0}\u{1}\u{1b}\u{7f}",
];

fn tokenizer_if_present(name: &str) -> Option<PathBuf> {
    data_if_present(format!("tokenizers/{name}/tokenizer.json"))
}

fn check_if_present(name: &str, stop: &str) {
    let Some(path) = tokenizer_if_present(name) else { return };
    let Loaded { vocab, tokenizer, warnings, .. } =
        load(&path, &VocabOptions::default()).expect("loads");
    assert_eq!(warnings, [], "{name}");
    assert!(vocab.missing_bytes().is_empty(), "{name}");
    let stops: Vec<&str> = vocab.stops().iter().filter_map(|&id| vocab.special_name(id)).collect();
    assert_eq!(stops, [stop], "{name}");
    check_decoded_tokens(&tokenizer, &vocab);
    let encoder = Encoder::new(&tokenizer, &vocab);
    for text in PROBES {
        let ids = encoder.encode(text).expect("tokens");
        let bytes: Vec<u8> = ids
            .iter()
            .flat_map(|&id| vocab.bytes(TokenId::from_raw(id)).expect("text").to_vec())
            .collect();
        assert_eq!(String::from_utf8_lossy(&bytes), *text, "{name}: {ids:?}");
    }
}

/// Each token after each of two other tokens: decoding adds exactly the token's bytes.
fn check_decoded_tokens(tokenizer: &Tokenizer, vocab: &louver::vocab::Vocabulary) {
    let mut texts = 0;
    for front in ["x", "\""] {
        let front_id = tokenizer.token_to_id(front).expect("a token for an ASCII character");
        for id in 0..vocab.width() as u32 {
            let Some(bytes) = vocab.bytes(TokenId::from_raw(id)) else { continue };
            let shown = tokenizer.decode(&[front_id, id], false).expect("decodes");
            assert_eq!(shown, format!("{front}{}", String::from_utf8_lossy(bytes)), "token {id}");
            texts += 1;
        }
    }
    assert!(texts > 2 * 31_000);
}

#[test]
fn llama3_1_tokens_have_their_decoded_bytes_if_present() {
    check_if_present("llama3_1", "<|eot_id|>");
}

#[test]
fn qwen3_tokens_have_their_decoded_bytes_if_present() {
    check_if_present("qwen3", "<|im_end|>");
    let Some(path) = tokenizer_if_present("qwen3") else { return };
    let loaded = load(path, &VocabOptions::default().with_width(151_936)).expect("loads");
    let id = loaded.tokenizer.token_to_id("<tool_call>").expect("an added token");
    // Without the flag `special` it is text.
    assert_eq!(loaded.vocab.bytes(TokenId::from_raw(id)), Some(&b"<tool_call>"[..]));
    assert!(!loaded.vocab.is_used(TokenId::from_raw(151_935)));
}

#[test]
fn deepseek_v3_tokens_have_their_decoded_bytes_if_present() {
    check_if_present("deepseek_v3", "<｜end▁of▁sentence｜>");
}

#[test]
fn llama2_tokens_have_their_decoded_bytes_if_present() {
    check_if_present("llama2", "</s>");
}
