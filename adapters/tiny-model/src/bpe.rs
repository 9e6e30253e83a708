//! Byte-level BPE: training by pair counts, and the resulting `tokenizer.json`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Number of ordinary tokens: the 256 bytes, then one per merge.
const SIZE: usize = 768;

/// A trained vocabulary. Token `i` of `vocab` has id `i`; tokens are written in the byte alphabet
/// of [`letter`].
pub(crate) struct Bpe {
    pub(crate) vocab: Vec<String>,
    merges: Vec<(String, String)>,
}

/// The printable character for a byte in byte-level BPE files: the byte's own if Latin-1 has a
/// visible one, else the next free one from U+0100.
fn letter(byte: u8) -> char {
    let visible = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if visible(byte) {
        char::from(byte)
    } else {
        let rank = (0..byte).filter(|b| !visible(*b)).count() as u32;
        char::from_u32(0x100 + rank).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// Splits text like the byte-level pre-tokenizer: runs of letters, digits or punctuation with one
/// preceding space, or runs of white space.
fn words(text: &str) -> Vec<String> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Space,
        Letters,
        Digits,
        Marks,
    }
    let kind = |c: char| match c {
        c if c.is_whitespace() => Kind::Space,
        c if c.is_alphabetic() => Kind::Letters,
        c if c.is_numeric() => Kind::Digits,
        _ => Kind::Marks,
    };
    let mut out: Vec<(Kind, String)> = Vec::new();
    for c in text.chars() {
        let this = kind(c);
        match out.last_mut() {
            Some((last, word)) if *last == this => word.push(c),
            Some((last, word)) if *last == Kind::Space && word == " " => {
                *last = this;
                word.push(c);
            }
            _ => out.push((this, c.to_string())),
        }
    }
    out.into_iter().map(|(_, word)| word).collect()
}

/// Merges the most frequent pair (the first in order among equals) until there are [`SIZE`] tokens
/// or no pair repeats.
pub(crate) fn train(corpus: &str) -> Bpe {
    let mut vocab: Vec<String> = (0..=255).map(|b| letter(b).to_string()).collect();
    let mut merges = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in words(corpus) {
        *counts.entry(word).or_default() += 1;
    }
    let mut words: Vec<(Vec<usize>, usize)> =
        counts.into_iter().map(|(word, n)| (word.bytes().map(usize::from).collect(), n)).collect();
    while vocab.len() < SIZE {
        let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (word, n) in &words {
            for pair in word.windows(2) {
                *pairs.entry((pair[0], pair[1])).or_default() += n;
            }
        }
        let best = pairs.iter().max_by_key(|(pair, n)| (**n, std::cmp::Reverse(**pair)));
        let Some((&(left, right), _)) = best.filter(|(_, n)| **n > 1) else { break };
        let merged = vocab.len();
        merges.push((vocab[left].clone(), vocab[right].clone()));
        vocab.push(format!("{}{}", vocab[left], vocab[right]));
        for (word, _) in &mut words {
            let mut out = Vec::with_capacity(word.len());
            let mut at = 0;
            while at < word.len() {
                let pair = word.get(at) == Some(&left) && word.get(at + 1) == Some(&right);
                out.push(if pair { merged } else { word[at] });
                at += if pair { 2 } else { 1 };
            }
            *word = out;
        }
    }
    Bpe { vocab, merges }
}

impl Bpe {
    /// The `tokenizer.json`, with these added tokens (text, special) after the ordinary ones.
    pub(crate) fn to_json(&self, added: &[(&str, bool)]) -> Value {
        let added: Vec<Value> = added
            .iter()
            .enumerate()
            .map(|(at, (content, special))| {
                json!({
                    "id": self.vocab.len() + at, "content": content, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": special,
                })
            })
            .collect();
        let vocab: serde_json::Map<String, Value> =
            self.vocab.iter().enumerate().map(|(id, text)| (text.clone(), json!(id))).collect();
        let merges: Vec<String> =
            self.merges.iter().map(|(left, right)| format!("{left} {right}")).collect();
        let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added,
            "normalizer": null,
            "pre_tokenizer": byte_level,
            "post_processor": null,
            "decoder": byte_level,
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                "vocab": vocab, "merges": merges,
            },
        })
    }
}
