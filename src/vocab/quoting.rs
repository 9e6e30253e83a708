//! Tokens with quotes in them, which can hold whole strings.

use crate::ids::TokenId;

/// Tokens by the strings they can hold, each list sorted.
#[derive(Debug, Default)]
pub(crate) struct Quoting {
    whole: Vec<TokenId>,
    inner: Vec<TokenId>,
    behind_another: Vec<TokenId>,
    behind_text: Vec<TokenId>,
    twice: Vec<TokenId>,
}

impl Quoting {
    pub(super) fn of(entries: &[(&[u8], TokenId)]) -> Quoting {
        let mut out = Quoting::default();
        for &(bytes, id) in entries {
            let all = quotes(bytes, false).count();
            if all < 2 {
                continue;
            }
            out.whole.push(id);
            let unescaped = quotes(bytes, true).count();
            let lists = [
                (all > 2 || bytes[0] != b'"', &mut out.inner),
                (!begins_quoted(bytes) || unescaped >= 4, &mut out.behind_another),
                (unescaped >= 3, &mut out.behind_text),
                (all >= 4, &mut out.twice),
            ];
            lists.into_iter().filter(|(holds, _)| *holds).for_each(|(_, list)| list.push(id));
        }
        out
    }

    /// Those with a whole string.
    pub(crate) fn whole(&self) -> &[TokenId] {
        &self.whole
    }

    /// Those with one behind something else.
    pub(crate) fn inner(&self) -> &[TokenId] {
        &self.inner
    }

    /// Those with one that is not all they begin with.
    pub(crate) fn behind_another(&self) -> &[TokenId] {
        &self.behind_another
    }

    /// Those with one behind the end of the string in which they begin.
    pub(crate) fn behind_text(&self) -> &[TokenId] {
        &self.behind_text
    }

    /// Those with two.
    pub(crate) fn twice(&self) -> &[TokenId] {
        &self.twice
    }
}

/// Places of the quotes in a text; if `unescaped`, of those that end or begin a string in which, or with which, the text begins.
pub(crate) fn quotes(bytes: &[u8], unescaped: bool) -> impl Iterator<Item = usize> + '_ {
    let escaped = |at: usize| bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    (0..bytes.len()).filter(move |&at| bytes[at] == b'"' && !(unescaped && escaped(at)))
}

/// Whether a text begins with a string, white space apart.
pub(crate) fn begins_quoted(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'"')
}
