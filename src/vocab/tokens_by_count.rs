//! Tokens by a number, such as that of their code points.

use crate::ids::TokenId;

/// Tokens sorted by a number of each, the greatest first.
#[derive(Debug)]
pub(crate) struct TokensByCount {
    tokens: Box<[TokenId]>,
    /// By a number: how many tokens have a greater one. The last is 0.
    greater: Box<[u32]>,
}

impl TokensByCount {
    /// From lists of tokens with one number each, by a stable counting sort: numbers are small.
    pub(crate) fn new<'t>(lists: impl Iterator<Item = (u32, &'t [TokenId])> + Clone) -> Self {
        let max = lists.clone().map(|(count, _)| count as usize).max().unwrap_or(0);
        let mut numbers = vec![0; max + 1];
        lists.clone().for_each(|(count, tokens)| numbers[count as usize] += tokens.len());
        let mut greater = vec![0; max + 1];
        for count in (0..max).rev() {
            greater[count] = greater[count + 1] + numbers[count + 1];
        }
        let mut next = greater.clone();
        let mut tokens = vec![TokenId::from_raw(0); greater[0] + numbers[0]];
        for (count, list) in lists {
            let at = &mut next[count as usize];
            tokens[*at..*at + list.len()].copy_from_slice(list);
            *at += list.len();
        }
        TokensByCount {
            tokens: tokens.into(),
            greater: greater.into_iter().map(|number| number as u32).collect(),
        }
    }

    /// From tokens with a number each.
    pub(super) fn from_pairs(pairs: &[(u32, TokenId)]) -> Self {
        TokensByCount::new(pairs.iter().map(|(count, id)| (*count, std::slice::from_ref(id))))
    }

    /// All tokens.
    pub(crate) fn all(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The tokens with a number greater than `count`, and the others.
    pub(crate) fn split(&self, count: u32) -> (&[TokenId], &[TokenId]) {
        self.tokens.split_at(self.greater.get(count as usize).map_or(0, |&number| number as usize))
    }

    /// The tokens with a number greater than `count`.
    pub(crate) fn more_than(&self, count: u32) -> &[TokenId] {
        self.split(count).0
    }

    /// The tokens with a number of at least `count`.
    pub(crate) fn at_least(&self, count: u32) -> &[TokenId] {
        count.checked_sub(1).map_or(self.all(), |below| self.more_than(below))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_are_found_by_their_numbers(counts in prop::collection::vec(0u32..9, 0..60)) {
            let pairs: Vec<_> = counts.iter().copied().zip((0..).map(TokenId::from_raw)).collect();
            let tokens_by_count = TokensByCount::from_pairs(&pairs);
            for least in 0..12 {
                let mut expected: Vec<_> =
                    pairs.iter().copied().filter(|&(count, _)| count >= least).collect();
                expected.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
                let expected: Vec<TokenId> = expected.into_iter().map(|(_, id)| id).collect();
                prop_assert_eq!(tokens_by_count.at_least(least), &expected[..]);
                let (greater, others) = tokens_by_count.split(least);
                prop_assert_eq!(greater, tokens_by_count.at_least(least + 1));
                prop_assert_eq!(greater.len() + others.len(), pairs.len());
            }
        }
    }
}
