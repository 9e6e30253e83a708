//! Columns of the test matrix: the ways in which a matcher can come to a prefix. The mask after a
//! prefix is the same in each.

use louver::engine::{Constraint, Matcher};
use louver::ids::TokenId;
use louver::vocab::Vocabulary;

/// How a matcher came to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A new matcher took the prefix, without masks on the way.
    Fresh,
    /// A fork of it took other tokens; the original must not change.
    Forked,
    /// It took other tokens, and rolled them back.
    RolledBack,
    /// It rolled back to the beginning, and took the prefix again.
    Replayed,
}

pub(crate) const COLUMNS: [Column; 4] =
    [Column::Fresh, Column::Forked, Column::RolledBack, Column::Replayed];

impl Column {
    /// A matcher after the prefix. `stray` are the other tokens that some columns take.
    pub(crate) fn matcher(
        self,
        constraint: &Constraint,
        prefix: &[TokenId],
        stray: &[TokenId],
    ) -> Matcher {
        let words = constraint.vocab().mask_words();
        let mut matcher = constraint.matcher();
        take(&mut matcher, prefix);
        match self {
            Column::Fresh => matcher,
            Column::Forked => {
                let mut fork = matcher.clone();
                take_stray(&mut fork, words, stray);
                fork.rollback(fork.tokens().len());
                matcher
            }
            Column::RolledBack => {
                let taken = take_stray(&mut matcher, words, stray);
                matcher.rollback(taken);
                matcher
            }
            Column::Replayed => {
                matcher.rollback(prefix.len() + 7);
                take(&mut matcher, prefix);
                matcher
            }
        }
    }
}

/// Takes tokens of a prefix that was taken before.
fn take(matcher: &mut Matcher, tokens: &[TokenId]) {
    for &token in tokens {
        assert_eq!(
            matcher.advance(token),
            Ok(()),
            "token {token} of a prefix that was taken before"
        );
    }
}

/// Takes those tokens that are allowed, asking for masks on the way. Returns how many it took.
fn take_stray(matcher: &mut Matcher, words: usize, tokens: &[TokenId]) -> usize {
    let mut mask = vec![0; words];
    let taken = |&token: &TokenId| {
        matcher.fill_mask(&mut mask);
        matcher.advance(token).is_ok()
    };
    tokens.iter().copied().filter(taken).count()
}

/// The matcher's mask, one flag a token. Bits beyond the vocabulary must be clear.
pub(crate) fn mask(matcher: &mut Matcher, vocab: &Vocabulary) -> Vec<bool> {
    let mut words = vec![u32::MAX; vocab.mask_words()];
    matcher.fill_mask(&mut words);
    let bit = |id: usize| words[id / 32] >> (id % 32) & 1 == 1;
    for id in vocab.width()..words.len() * 32 {
        assert!(!bit(id), "bit {id} beyond the vocabulary is set");
    }
    (0..vocab.width()).map(bit).collect()
}
