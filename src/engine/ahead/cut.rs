//! Where a tokenizer cuts a word. Tokenizers merge what their vocabulary has, earliest token first, and so cut not always behind the
//! longest token: `n` and `ights`, though there is `night`. Vocabularies number tokens in the order in which they were merged.

use crate::vocab::Trie;

/// Longest word that is looked at.
pub(super) const LONGEST: usize = 32;

/// Length of the first token of a word, if words are cut as vocabularies are made. Cost: some look-ups for each byte.
pub(super) fn first(trie: &Trie, word: &[u8]) -> usize {
    let mut ends: Vec<usize> = (0..=word.len()).collect();
    // Of each two neighbours, the token that both make.
    let pair = |ends: &[usize], at: usize| match (ends.get(at), ends.get(at + 2)) {
        (Some(&from), Some(&to)) => number(trie, &word[from..to]),
        _ => u32::MAX,
    };
    let mut pairs: Vec<u32> = (0..word.len()).map(|at| pair(&ends, at)).collect();
    while let Some((at, &least)) = pairs.iter().enumerate().min_by_key(|(_, number)| **number)
        && least < u32::MAX
    {
        ends.remove(at + 1);
        pairs.remove(at + 1);
        pairs[at] = pair(&ends, at);
        if at > 0 {
            pairs[at - 1] = pair(&ends, at - 1);
        }
    }
    ends.get(1).copied().unwrap_or(0)
}

/// The number of a token; the greatest where there is none.
fn number(trie: &Trie, bytes: &[u8]) -> u32 {
    let mut node = Some(0);
    for &byte in bytes {
        node = node.and_then(|node| trie.child(node, byte));
    }
    let tokens = node.map_or(&[][..], |node| trie.words_at(node));
    tokens.iter().map(|token| token.raw()).min().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TokenId;

    #[test]
    fn words_are_cut_as_they_are_merged() {
        let tokens: &[&[u8]] = &[
            b"n",
            b"i",
            b"g",
            b"h",
            b"t",
            b"s",
            b"ht",
            b"ig",
            b"ight",
            b"ights",
            b"ni",
            b"night",
            b"_n",
            b"\xC3\xA9",
        ];
        let entries =
            tokens.iter().zip(0..).map(|(bytes, id)| (*bytes, TokenId::from_raw(id))).collect();
        let trie = Trie::build(entries);
        for (word, want) in [
            ("nights", 1),
            ("night", 5),
            ("ni", 2),
            ("_ni", 1),
            ("_n", 2),
            ("", 0),
            ("x", 1),
            ("é", 2),
            ("éx", 2),
        ] {
            assert_eq!(first(&trie, word.as_bytes()), want, "{word}");
        }
    }
}
