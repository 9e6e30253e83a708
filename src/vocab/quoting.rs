//! Tokens with quotes in them, which can hold whole strings.

use crate::ids::TokenId;

/// Tokens by the strings they can hold, each list sorted.
#[derive(Debug)]
pub(crate) struct Quoting {
    whole: Vec<TokenId>,
    inner: Vec<TokenId>,
    twice: Vec<TokenId>,
}

impl Quoting {
    pub(super) fn of(entries: &[(&[u8], TokenId)]) -> Quoting {
        let quotes = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'"').count();
        let mut out = Quoting { whole: Vec::new(), inner: Vec::new(), twice: Vec::new() };
        for &(bytes, id) in entries {
            let found = quotes(bytes);
            let lists = [
                (found >= 2, &mut out.whole),
                (found > 2 || found == 2 && bytes[0] != b'"', &mut out.inner),
                (found >= 4, &mut out.twice),
            ];
            lists.into_iter().filter(|(holds, _)| *holds).for_each(|(_, list)| list.push(id));
        }
        out
    }

    /// Those with two quotes or more: a whole string.
    pub(crate) fn whole(&self) -> &[TokenId] {
        &self.whole
    }

    /// Those of them that can hold a whole string behind something else.
    pub(crate) fn inner(&self) -> &[TokenId] {
        &self.inner
    }

    /// Those with two whole strings.
    pub(crate) fn twice(&self) -> &[TokenId] {
        &self.twice
    }
}
