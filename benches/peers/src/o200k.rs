//! The tokenizer of gpt-oss as a `tokenizer.json`, written from the ranks of the tiktoken-rs crate,
//! so that all engines read the same file.
//!
//! tiktoken merges the neighbours whose union has the least rank. A `tokenizer.json` lists merges.
//! A token's merge are the two parts that the lower ranks leave of it:
//!
//! ```text
//! ranks   ... er 263 ... oth 1100 ... other 1323
//! other   o t h e r  ->  o t h er  ->  oth er         the merge of 1323: oth + er
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The tokenizer's name on the command line.
pub(crate) const NAME: &str = "o200k_harmony";

/// Number of ordinary tokens, which come before the special ones.
const ORDINARY: u32 = 199_998;

/// Words, numbers, punctuation and white space, as this encoding splits text before merging.
const WORDS: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Writes the file, unless it exists, and returns its path.
pub(crate) fn tokenizer_file(folder: &Path) -> Result<PathBuf> {
    let folder = folder.join(NAME);
    let path = folder.join("tokenizer.json");
    if !path.is_file() {
        let text = serde_json::to_string(&tokenizer_json()?)?;
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}

fn tokenizer_json() -> Result<Value> {
    let bpe = tiktoken_rs::o200k_harmony()?;
    let tokens: Vec<Vec<u8>> = bpe._decode_native_and_split((0..ORDINARY).collect()).collect();
    let ranks: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
    let letters = byte_letters();
    let spell =
        |bytes: &[u8]| -> String { bytes.iter().map(|&b| letters[usize::from(b)]).collect() };
    let vocab: serde_json::Map<String, Value> =
        tokens.iter().zip(0..).map(|(bytes, id)| (spell(bytes), Value::from(id))).collect();
    let longer = tokens.iter().zip(0..).filter(|(bytes, _)| bytes.len() > 1);
    let merges: Vec<Value> = longer
        .filter_map(|(bytes, rank)| merge(bytes, rank, &ranks))
        .map(|(left, right)| json!([spell(left), spell(right)]))
        .collect();
    let mut specials: Vec<(u32, &str)> = Vec::new();
    for name in bpe.special_tokens() {
        let ids = bpe.encode_with_special_tokens(name);
        specials.push((*ids.first().context("a special token without an id")?, name));
    }
    specials.sort_unstable();
    let added: Vec<Value> = specials
        .iter()
        .map(|(id, name)| {
            json!({
                "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true
            })
        })
        .collect();
    let byte_level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false
    });
    let split = json!({
        "type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": false
    });
    Ok(json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": null, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": true, "vocab": vocab, "merges": merges
        }
    }))
}

/// The two parts that merges of lower ranks leave of a token; `None` if they leave more.
fn merge<'b>(
    bytes: &'b [u8],
    rank: u32,
    ranks: &HashMap<&[u8], u32>,
) -> Option<(&'b [u8], &'b [u8])> {
    // Positions between the parts.
    let mut cuts: Vec<usize> = (0..=bytes.len()).collect();
    while cuts.len() > 3 {
        let merged = |i: usize| ranks.get(&bytes[cuts[i]..cuts[i + 2]]).copied();
        let pairs = (0..cuts.len() - 2).filter_map(|i| Some((merged(i)?, i)));
        let (_, i) = pairs.filter(|(merged, _)| *merged < rank).min()?;
        cuts.remove(i + 1);
    }
    Some((&bytes[..cuts[1]], &bytes[cuts[1]..]))
}

/// The letters that stand for bytes in a `tokenizer.json`: printable Latin-1 for itself, all other
/// bytes in ascending order from U+0100 on.
fn byte_letters() -> [char; 256] {
    let mut others = '\u{100}'..;
    std::array::from_fn(|byte| match char::from(byte as u8) {
        letter @ ('!'..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{ff}') => letter,
        _ => others.next().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_encodes_as_tiktoken_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = tokenizer_file(folder.path()).unwrap();
        let tokenizer = tokenizers::Tokenizer::from_file(path).unwrap();
        let bpe = tiktoken_rs::o200k_harmony().unwrap();
        for text in [
            "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
            r#"{"city": "Besançon", "days": 12345, "units": ["°C", "km/h"], "note": "it's"}"#,
            "  two  spaces\n\n\tand a tab 日本語 🦀 NaïveCamelCase don't",
        ] {
            let ids = tokenizer.encode(text, false).unwrap();
            assert_eq!(ids.get_ids(), bpe.encode_with_special_tokens(text), "{text}");
        }
    }
}
