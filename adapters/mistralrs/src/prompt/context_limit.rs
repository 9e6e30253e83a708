//! The longest text that can fit into a model's context, known without tokenizing it.
//!
//! A text of `n` bytes has at least `n / b` tokens, where `b` bounds the bytes that one token stands
//! for. That holds for tokenizers that keep all of a text: every byte ends up in a token, and a token
//! stands for no more bytes than it is written with. Others have no such bound.

use serde_json::Value;
use tokenizers::Tokenizer;
use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// How many times shorter a text can become in UTF-8 by one of Unicode's normal forms: a mathematical
/// letter has four bytes, the letter it is folded to one.
const NORMAL_FORM: usize = 4;

/// Most bytes of a text that has at most so many tokens, if there is a bound.
pub(crate) fn longest_text(tokenizer: &Tokenizer, tokens: usize) -> Option<usize> {
    let normalizer = tokenizer.get_normalizer().map(serde_json::to_value).transpose().ok()?;
    let pre_tokenizer = tokenizer.get_pre_tokenizer().map(serde_json::to_value).transpose().ok()?;
    let shrinks = factor(normalizer.as_ref())?.checked_mul(factor(pre_tokenizer.as_ref())?)?;
    let added = tokenizer.get_added_tokens_decoder();
    // These swallow any amount of white space around them.
    if added.values().any(|token| token.lstrip || token.rstrip) || !is_covering(tokenizer) {
        return None;
    }
    let longest = tokenizer.get_vocab(true).keys().map(String::len).max()?;
    longest.checked_mul(shrinks)?.checked_mul(tokens)
}

/// How many times shorter a step of the tokenizer makes a text at most, by the step's JSON form.
fn factor(step: Option<&Value>) -> Option<usize> {
    let Some(step) = step else { return Some(1) };
    let text = |name: &str| step[name].as_str();
    match text("type")? {
        "Sequence" => {
            let steps =
                step.get("normalizers").or_else(|| step.get("pretokenizers"))?.as_array()?;
            steps.iter().try_fold(1_usize, |all, step| all.checked_mul(factor(Some(step))?))
        }
        "NFC" | "NFD" | "NFKC" | "NFKD" => Some(NORMAL_FORM),
        "Prepend" | "ByteLevel" | "Metaspace" | "Digits" => Some(1),
        "Replace" => {
            let replaced = step["pattern"]["String"].as_str()?;
            (text("content")?.len() >= replaced.len()).then_some(1)
        }
        "Split" | "Punctuation" => (text("behavior")? != "Removed").then_some(1),
        _ => None,
    }
}

/// Whether there is a token for every byte, so that nothing is dropped or becomes an unknown token.
fn is_covering(tokenizer: &Tokenizer) -> bool {
    let has = |text: String| tokenizer.token_to_id(&text).is_some();
    let falls_back = match tokenizer.get_model() {
        ModelWrapper::BPE(model) => model.byte_fallback,
        ModelWrapper::Unigram(model) => model.byte_fallback(),
        _ => return false,
    };
    if falls_back {
        return (0..=u8::MAX).all(|byte| has(format!("<0x{byte:02X}>")));
    }
    let is_bytes =
        |step: Option<&Value>| step.is_some_and(|step| step.to_string().contains("\"ByteLevel\""));
    let pre_tokenizer =
        tokenizer.get_pre_tokenizer().and_then(|step| serde_json::to_value(step).ok());
    let normalizer = tokenizer.get_normalizer().and_then(|step| serde_json::to_value(step).ok());
    (is_bytes(pre_tokenizer.as_ref()) || is_bytes(normalizer.as_ref()))
        && ByteLevel::alphabet().into_iter().all(|letter| has(letter.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A tokenizer of bytes in GPT-2's letters, and a token of eight letters.
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
    fn texts_are_bounded_where_nothing_is_lost() {
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
            assert_eq!(longest_text(&tokenizer, 10), bound, "{normalizer} {pre_tokenizer}");
        }
    }
}
