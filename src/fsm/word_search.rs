//! Words in which none of several words occurs.
//!
//! Source: Aho and Corasick, "Efficient String Matching: An Aid to Bibliographic Search",
//! Communications of the ACM 18(6), 1975.

use std::collections::VecDeque;

use super::{Dfa, DfaBuilder};
use crate::fuel;

/// A search for several words: a node for each prefix of one, the first for the empty prefix. The
/// node after a word stands for its longest suffix that is a prefix of a searched word.
///
/// ```
/// use louver::fsm::WordSearch;
///
/// let search = WordSearch::new(["ab", "b"].map(str::bytes));
/// let without = search.without(&[(0, 255)], |_| true);
/// assert!(without.accepts("cac".bytes().map(u32::from)));
/// assert!(!without.accepts("cbc".bytes().map(u32::from)));
/// ```
pub struct WordSearch {
    /// The symbols of the searched words, ascending; any other symbol leads to the first node.
    symbols: Vec<u32>,
    /// The next node by node and symbol.
    next: Vec<Vec<usize>>,
    /// By node: whether an occurrence of a searched word ends there.
    is_end: Vec<bool>,
}

impl WordSearch {
    /// The search for these words; for none if the fuel does not suffice. Cost: the number of their
    /// symbols, times that of different ones.
    pub fn new<W>(words: impl IntoIterator<Item = W>) -> WordSearch
    where
        W: IntoIterator<Item: Into<u32>>,
    {
        let symbols = |word: W| word.into_iter().map(Into::into).collect();
        let mut words: Vec<Vec<u32>> = words.into_iter().map(symbols).collect();
        let mut symbols = words.concat();
        let most_nodes = 1 + symbols.len();
        symbols.sort_unstable();
        symbols.dedup();
        if fuel::spend(most_nodes * symbols.len()).is_err() {
            (words, symbols) = (Vec::new(), Vec::new());
        }
        let (mut children, mut is_end) = (vec![vec![None; symbols.len()]], vec![false]);
        for word in &words {
            let mut at = 0;
            for symbol in word {
                let column = symbols.partition_point(|known| known < symbol);
                at = children[at][column].unwrap_or_else(|| {
                    children.push(vec![None; symbols.len()]);
                    is_end.push(false);
                    let new = children.len() - 1;
                    children[at][column] = Some(new);
                    new
                });
            }
            is_end[at] = true;
        }
        let mut next: Vec<Vec<usize>> = vec![vec![0; symbols.len()]; children.len()];
        // By node: that of its longest proper suffix.
        let mut suffix = vec![0; children.len()];
        let mut todo = VecDeque::from([0]);
        while let Some(at) = todo.pop_front() {
            for (column, child) in children[at].iter().enumerate() {
                let other = if at == 0 { 0 } else { next[suffix[at]][column] };
                next[at][column] = child.unwrap_or(other);
                if let Some(child) = *child {
                    suffix[child] = other;
                    is_end[child] |= is_end[other];
                    todo.push_back(child);
                }
            }
        }
        WordSearch { symbols, next, is_end }
    }

    /// The node after one more symbol; `None` if a searched word ends with it.
    pub fn step(&self, node: usize, symbol: u32) -> Option<usize> {
        let column = self.symbols.binary_search(&symbol);
        let next = column.map_or(0, |column| self.next[node][column]);
        (!self.is_end[next]).then_some(next)
    }

    /// The words over `alphabet` (sorted disjoint ranges) in which no searched word occurs and that
    /// lead to an accepting node. Minimal.
    pub fn without(&self, alphabet: &[(u32, u32)], accepts: impl Fn(usize) -> bool) -> Dfa {
        let mut builder = DfaBuilder::new();
        for (node, is_end) in self.is_end.iter().enumerate() {
            builder.state(!is_end && accepts(node));
        }
        for (node, next) in (0u32..).zip(&self.next) {
            for &(lo, hi) in alphabet {
                let mut from = lo;
                let steps = self.symbols.iter().zip(next);
                for (&symbol, &to) in steps.filter(|(symbol, _)| (lo..=hi).contains(*symbol)) {
                    if from < symbol {
                        builder.edge(node, from, symbol - 1, 0);
                    }
                    if !self.is_end[to] {
                        builder.edge(node, symbol, symbol, to as u32);
                    }
                    from = symbol + 1;
                }
                if from <= hi {
                    builder.edge(node, from, hi, 0);
                }
            }
        }
        builder.finish().minimize()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::WordSearch;
    use crate::fuel;

    #[test]
    fn tables_are_not_made_without_fuel() {
        fuel::with_budget(1_000_000, || {
            let search = WordSearch::new(std::iter::once(0..20_000u32));
            assert_eq!((search.next.len(), fuel::is_exhausted()), (1, true));
        });
    }

    proptest! {
        #[test]
        fn word_search_agrees_with_windows(
            words in prop::collection::vec(prop::collection::vec(0u32..3, 1..4), 1..4),
            text in prop::collection::vec(0u32..4, 0..8),
        ) {
            let search = WordSearch::new(words.iter().map(|word| word.iter().copied()));
            let occurs = |word: &Vec<u32>| text.windows(word.len()).any(|window| window == word);
            let accepts = search.without(&[(0, 3)], |_| true).accepts(text.iter().copied());
            prop_assert_eq!(accepts, !words.iter().any(occurs));
        }
    }
}
