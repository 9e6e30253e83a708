//! Small vocabularies.

use std::sync::Arc;

use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// Texts of which tokens are made: all parts of up to five bytes that occur in them.
const TEXTS: [&str; 4] = [
    "{\"name\": \"Ann\", \"age\": 42, \"tags\": [\"a\", \"b\"], \"ok\": true, \"x\": null}",
    "{\"id\":\"7f\",\"kind\":\"on\",\"items\":[{\"k\":-1.5e3},{}],\"no\":false}",
    "let x = foo(1, 2) + (3 * y); if then else return \"str\\n\" é ü 12:30 2024-01-31",
    "sum 12 + 345 = 357 <tool> </tool> abc abab aabb \\u00e9 \\\" \\\\ 0.25 10.0.0.1",
];
/// Longest part.
const LONGEST: usize = 5;

/// Whether masks have one token where text is forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forcing {
    /// The tokenizer counts as canonical.
    Canonical,
    /// It does not.
    Off,
}

/// A tokenizer that takes the longest token at each position.
struct Greedy(TokTrie);

impl TokenizerEnv for Greedy {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.0.greedy_tokenize(bytes)
    }
}

/// The vocabulary: all bytes, parts of texts, and special tokens.
pub fn environment(forcing: Forcing) -> TokEnv {
    let mut words: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    for text in TEXTS {
        let bytes = text.as_bytes();
        for length in 2..=LONGEST {
            words.extend(bytes.windows(length).map(<[u8]>::to_vec));
        }
    }
    words.sort();
    words.dedup();
    // The byte that marks special tokens is none by itself.
    words.retain(|word| word[0] != TokTrie::SPECIAL_TOKEN_MARKER);
    let end = words.len() as TokenId;
    for name in ["<|end|>", "<|tool|>", "<|user|>"] {
        words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat());
    }
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words);
    match forcing {
        Forcing::Canonical => Arc::new(Greedy(trie)),
        Forcing::Off => Arc::new(ApproximateTokEnv::new(trie)),
    }
}
