//! Upper bound on the bytes of a text that fits a model's context, without tokenizing it.
//!
//! A text of `n` bytes has at least `n / b` tokens, where `b` bounds the bytes that one token
//! represents. This holds for tokenizers that preserve the text: every byte becomes part of a
//! token, and a token represents at most as many bytes as its own text has. For other tokenizers
//! there is no bound.

use serde_json::Value;
use tokenizers::Tokenizer;
use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// Maximum factor by which a Unicode normal form shortens a UTF-8 text: a mathematical letter has
/// four bytes, the letter that it is folded to has one.
const NORMAL_FORM_FACTOR: usize = 4;

/// Maximum bytes of a text of at most `tokens` tokens, if there is a bound.
pub(crate) fn max_text_bytes(tokenizer: &Tokenizer, tokens: usize) -> Option<usize> {
    let normalizer = tokenizer.get_normalizer().map(serde_json::to_value).transpose().ok()?;
    let pre_tokenizer = tokenizer.get_pre_tokenizer().map(serde_json::to_value).transpose().ok()?;
    let steps: Vec<Value> = normalizer.into_iter().chain(pre_tokenizer).collect();
    let shrink = total_shrink_factor(&steps)?;
    let added = tokenizer.get_added_tokens_decoder();
    // These absorb any amount of surrounding white space.
    if added.values().any(|token| token.lstrip || token.rstrip)
        || !covers_all_bytes(tokenizer, &steps)
    {
        return None;
    }
    let longest = tokenizer.get_vocab(true).keys().map(String::len).max()?;
    longest.checked_mul(shrink)?.checked_mul(tokens)
}

/// Maximum factor by which tokenizer steps together shorten a text.
fn total_shrink_factor(steps: &[Value]) -> Option<usize> {
    steps.iter().try_fold(1_usize, |all, step| all.checked_mul(shrink_factor(step)?))
}

/// Maximum factor by which a tokenizer step shortens a text, from the step's JSON.
fn shrink_factor(step: &Value) -> Option<usize> {
    let text = |name: &str| step[name].as_str();
    match text("type")? {
        "Sequence" => {
            let steps = step.get("normalizers").or_else(|| step.get("pretokenizers"));
            total_shrink_factor(steps?.as_array()?)
        }
        "NFC" | "NFD" | "NFKC" | "NFKD" => Some(NORMAL_FORM_FACTOR),
        "Prepend" | "ByteLevel" | "Metaspace" | "Digits" => Some(1),
        "Replace" => {
            let replaced = step["pattern"]["String"].as_str()?;
            (text("content")?.len() >= replaced.len()).then_some(1)
        }
        "Split" | "Punctuation" => (text("behavior")? != "Removed").then_some(1),
        _ => None,
    }
}

/// Whether every byte has a token, so that nothing is dropped or replaced by an unknown token.
/// `steps` are the normalizer and the pre-tokenizer.
fn covers_all_bytes(tokenizer: &Tokenizer, steps: &[Value]) -> bool {
    let has = |text: String| tokenizer.token_to_id(&text).is_some();
    let has_byte_fallback = match tokenizer.get_model() {
        ModelWrapper::BPE(model) => model.byte_fallback,
        ModelWrapper::Unigram(model) => model.byte_fallback(),
        _ => return false,
    };
    if has_byte_fallback {
        return (0..=u8::MAX).all(|byte| has(format!("<0x{byte:02X}>")));
    }
    steps.iter().any(|step| step.to_string().contains("\"ByteLevel\""))
        && ByteLevel::alphabet().into_iter().all(|letter| has(letter.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A byte-level tokenizer (GPT-2's alphabet) with one token of eight letters.
    fn tokenizer(normalizer: Value, pre_tokenizer: Value, added: Value) -> Tokenizer {
        let mut letters: Vec<char> = ByteLevel::alphabet().into_iter().collect();
        letters.sort_unstable();
        let mut vocab: serde_json::Map<String, Value> =
            letters.iter().zip(0..).map(|(letter, id)| (letter.to_string(), json!(id))).collect();
        vocab.insert("abcdefgh".to_owned(), json!(256));
        let text = json!({
            "version": "1.0", "truncation": null, "padding": null, "post_processor": null, "decoder": null,
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "added_tokens": added,
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                      "vocab": vocab, "merges": []},
        });
        text.to_string().parse().expect("a tokenizer")
    }

    #[test]
    fn text_preserving_tokenizers_have_a_bound() {
        let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
        let split = |behavior: &str| {
            let split = json!({"type": "Split", "pattern": {"String": "x"}, "behavior": behavior, "invert": false});
            json!({"type": "Sequence", "pretokenizers": [split, bytes]})
        };
        let replace = |content: &str| json!({"type": "Replace", "pattern": {"String": "  "}, "content": content});
        let added = |rstrip: bool| {
            json!([{"id": 257, "content": "<|end|>", "special": true, "single_word": false, "lstrip": false,
                    "rstrip": rstrip, "normalized": false}])
        };
        for (normalizer, pre_tokenizer, added, bound) in [
            (json!(null), bytes.clone(), json!([]), Some(80)),
            (json!(null), bytes.clone(), added(false), Some(80)),
            (json!(null), bytes.clone(), added(true), None),
            (json!({"type": "NFC"}), bytes.clone(), json!([]), Some(320)),
            (replace("__"), bytes.clone(), json!([]), Some(80)),
            (replace("_"), bytes.clone(), json!([]), None),
            (json!({"type": "Lowercase"}), bytes.clone(), json!([]), None),
            (json!(null), split("Isolated"), json!([]), Some(80)),
            (json!(null), split("Removed"), json!([]), None),
            (json!(null), json!(null), json!([]), None),
        ] {
            let tokenizer = tokenizer(normalizer.clone(), pre_tokenizer.clone(), added);
            assert_eq!(max_text_bytes(&tokenizer, 10), bound, "{normalizer} {pre_tokenizer}");
        }
    }
}
