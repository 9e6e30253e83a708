//! Word cuts: the length of the first token that a BPE tokenizer makes of a word.
//!
//! Byte-pair encoding merges neighbours in the order in which the vocabulary learned its tokens. It
//! therefore does not always cut off the longest token: `nights` may become `n` and `ights`
//! although `night` is a token. Token ids follow the order of learning, so an id serves as the rank
//! of a merge.
//!
//! Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
//! Units", ACL 2016.

use crate::vocab::Trie;

/// Longest word that is cut, in bytes.
pub(super) const MAX_WORD_BYTES: usize = 32;

/// Length in bytes of the first token of a word, if ids are merge ranks. Cost: O(n²) trie look-ups
/// for a word of n bytes.
pub(super) fn first_token_length(trie: &Trie, word: &[u8]) -> usize {
    let mut ends: Vec<usize> = (0..=word.len()).collect();
    // The rank of the token that two neighbouring pieces would merge into.
    let pair = |ends: &[usize], at: usize| match (ends.get(at), ends.get(at + 2)) {
        (Some(&from), Some(&to)) => merge_rank(trie, &word[from..to]),
        _ => u32::MAX,
    };
    let mut pairs: Vec<u32> = (0..word.len()).map(|at| pair(&ends, at)).collect();
    while let Some((at, &least)) =
        pairs.iter().enumerate().min_by_key(|(_, merge_rank)| **merge_rank)
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

/// The smallest id of the tokens with these bytes; `u32::MAX` if there is none.
fn merge_rank(trie: &Trie, bytes: &[u8]) -> u32 {
    let tokens = trie.find(bytes).map_or(&[][..], |node| trie.tokens_at(node));
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
            assert_eq!(first_token_length(&trie, word.as_bytes()), want, "{word}");
        }
    }
}
