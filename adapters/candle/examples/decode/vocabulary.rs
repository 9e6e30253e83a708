//! The vocabulary of the model with random weights.

use louver::{VocabError, Vocabulary};

/// The stop token; ids below it are bytes, ids above it words.
const STOP: u32 = 256;

/// Bytes, a stop token, and all words of up to three syllables, with and without a leading space.
pub(crate) fn words() -> Result<Vocabulary, VocabError> {
    let syllables = [
        "an", "be", "co", "du", "er", "fi", "go", "he", "in", "ka", "lo", "mi", "no", "re", "st",
        "ti",
    ];
    let mut words: Vec<String> = syllables.iter().map(|s| (*s).to_owned()).collect();
    for _ in 0..2 {
        words = words
            .iter()
            .flat_map(|word| syllables.iter().map(move |s| format!("{word}{s}")))
            .chain(words.clone())
            .collect();
        words.sort();
        words.dedup();
    }
    words.extend(words.iter().map(|word| format!(" {word}")).collect::<Vec<_>>());
    words.extend(["\":", "\",", "\": \"", "\"}", "{\"", "true", "false"].map(String::from));
    let mut builder = Vocabulary::builder(STOP as usize + 1 + words.len());
    for byte in 0..=255u8 {
        builder.token(u32::from(byte), &[byte]);
    }
    builder.special(STOP, "<|end|>").stop(STOP);
    for (id, word) in (STOP + 1..).zip(&words) {
        builder.token(id, word.as_bytes());
    }
    builder.build()
}
