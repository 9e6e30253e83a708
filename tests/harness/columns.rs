//! The ways to drive the engine. Whatever the way, the mask behind a prefix is the same.

use louver::engine::{Constraint, Matcher};
use louver::ids::TokenId;
use louver::vocab::Vocabulary;

/// How a matcher came to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A new matcher took the prefix, no mask asked on the way.
    Fresh,
    /// A fork of another went astray; this one did not notice.
    Forked,
    /// It went on, and came back.
    RolledBack,
    /// It came back to the beginning, and took the prefix again.
    Replayed,
}

pub(crate) const COLUMNS: [Column; 4] =
    [Column::Fresh, Column::Forked, Column::RolledBack, Column::Replayed];

impl Column {
    /// A matcher behind the prefix. `astray` are tokens to wander off with where the column does.
    pub(crate) fn matcher(
        self,
        constraint: &Constraint,
        prefix: &[TokenId],
        astray: &[TokenId],
    ) -> Matcher {
        let words = constraint.vocab().mask_words();
        let mut matcher = constraint.matcher();
        take(&mut matcher, prefix);
        match self {
            Column::Fresh => matcher,
            Column::Forked => {
                let mut fork = matcher.clone();
                wander(&mut fork, words, astray);
                fork.rollback(fork.tokens().len());
                matcher
            }
            Column::RolledBack => {
                let taken = wander(&mut matcher, words, astray);
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

fn take(matcher: &mut Matcher, tokens: &[TokenId]) {
    for &token in tokens {
        assert_eq!(
            matcher.advance(token),
            Ok(()),
            "token {token} of a prefix that was taken before"
        );
    }
}

/// Takes what can be taken; returns how many that was. Asks for masks on the way.
fn wander(matcher: &mut Matcher, words: usize, tokens: &[TokenId]) -> usize {
    let mut mask = vec![0; words];
    let taken = |&token: &TokenId| {
        matcher.fill_mask(&mut mask);
        matcher.advance(token).is_ok()
    };
    tokens.iter().copied().filter(taken).count()
}

/// The matcher's mask, one flag a token. Words beyond the vocabulary must come out empty.
pub(crate) fn mask(matcher: &mut Matcher, vocab: &Vocabulary) -> Vec<bool> {
    let mut words = vec![u32::MAX; vocab.mask_words()];
    matcher.fill_mask(&mut words);
    let bit = |id: usize| words[id / 32] >> (id % 32) & 1 == 1;
    for id in vocab.width()..words.len() * 32 {
        assert!(!bit(id), "bit {id} beyond the vocabulary is set");
    }
    (0..vocab.width()).map(bit).collect()
}
