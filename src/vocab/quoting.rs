//! Tokens with quotes in them, which can hold whole strings.

use crate::ids::TokenId;

/// Tokens by the quotes they have, each kind in ascending order.
#[derive(Debug)]
pub(crate) struct Quoting {
    two: Vec<TokenId>,
    four: Vec<TokenId>,
}

impl Quoting {
    /// Of tokens with text.
    pub(super) fn of(tokens: &[(&[u8], TokenId)]) -> Quoting {
        let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
        let [two, four] = [2, 4].map(|least| {
            let mut ids: Vec<TokenId> = tokens
                .iter()
                .filter(|(bytes, _)| quotes(bytes) >= least)
                .map(|(_, id)| *id)
                .collect();
            ids.sort_unstable();
            ids
        });
        Quoting { two, four }
    }

    /// Those that can hold a whole string.
    pub(crate) fn two(&self) -> &[TokenId] {
        &self.two
    }

    /// Those that can hold two.
    pub(crate) fn four(&self) -> &[TokenId] {
        &self.four
    }
}
