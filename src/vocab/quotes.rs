//! Tokens by the number of `"` in them. A token with two quotes can contain a whole JSON string,
//! and one with four can contain two, such as two member names.

use crate::ids::TokenId;

/// Tokens with at least two and with at least four quotes, each in ascending order.
#[derive(Debug)]
pub(crate) struct QuotedTokens {
    with_two: Vec<TokenId>,
    with_four: Vec<TokenId>,
}

impl QuotedTokens {
    /// From the tokens with text.
    pub(super) fn new(tokens: &[(&[u8], TokenId)]) -> QuotedTokens {
        let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
        let [with_two, with_four] = [2, 4].map(|least| {
            let mut ids: Vec<TokenId> = tokens
                .iter()
                .filter(|(bytes, _)| quotes(bytes) >= least)
                .map(|(_, id)| *id)
                .collect();
            ids.sort_unstable();
            ids
        });
        QuotedTokens { with_two, with_four }
    }

    /// Tokens that can contain a whole string.
    pub(crate) fn with_two_quotes(&self) -> &[TokenId] {
        &self.with_two
    }

    /// Tokens that can contain two whole strings.
    pub(crate) fn with_four_quotes(&self) -> &[TokenId] {
        &self.with_four
    }
}
