//! Factor automata: all substrings of a word.
//!
//! Source: Blumer, Blumer, Haussler, Ehrenfeucht, Chen and Seiferas, "The Smallest Automaton
//! Recognizing the Subwords of a Text", Theoretical Computer Science 40, 1985.

use super::{Dfa, DfaBuilder};
use crate::hash::HashMap;

impl Dfa {
    /// All factors (substrings) of a word, the empty one included: the word's suffix automaton with
    /// every state final. At most twice as many states as symbols. Cost: linear, and sorting the
    /// edges of each state.
    pub fn factors(word: &[u32]) -> Dfa {
        /// A class of factors that end at the same positions.
        #[derive(Clone)]
        struct SuffixClass {
            /// Length of the longest factor.
            len: usize,
            /// The class of its longest suffix that is in another class.
            link: Option<usize>,
            next: HashMap<u32, usize>,
        }
        let mut classes = vec![SuffixClass { len: 0, link: None, next: HashMap::default() }];
        let mut last = 0;
        for &symbol in word {
            let new = classes.len();
            classes.push(SuffixClass {
                len: classes[last].len + 1,
                link: Some(0),
                next: HashMap::default(),
            });
            let mut cursor = Some(last);
            while let Some(from) = cursor.filter(|&from| !classes[from].next.contains_key(&symbol))
            {
                classes[from].next.insert(symbol, new);
                cursor = classes[from].link;
            }
            if let Some(from) = cursor {
                let to = classes[from].next[&symbol];
                if classes[to].len == classes[from].len + 1 {
                    classes[new].link = Some(to);
                } else {
                    // Only the shorter factors of that class end here, too: split it.
                    let split = classes.len();
                    let shorter = SuffixClass { len: classes[from].len + 1, ..classes[to].clone() };
                    classes.push(shorter);
                    let mut cursor = Some(from);
                    while let Some(from) =
                        cursor.filter(|&from| classes[from].next.get(&symbol) == Some(&to))
                    {
                        classes[from].next.insert(symbol, split);
                        cursor = classes[from].link;
                    }
                    classes[to].link = Some(split);
                    classes[new].link = Some(split);
                }
            }
            last = new;
        }
        let mut builder = DfaBuilder::new();
        for _ in &classes {
            builder.state(true);
        }
        for (from, class) in (0u32..).zip(&classes) {
            class
                .next
                .iter()
                .for_each(|(&symbol, &to)| builder.edge(from, symbol, symbol, to as u32));
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::fsm::Dfa;

    proptest! {
        #[test]
        fn factors_agree_with_windows(
            word in prop::collection::vec(0u32..3, 0..12),
            other in prop::collection::vec(0u32..3, 0..6),
        ) {
            let dfa = Dfa::factors(&word);
            prop_assert!(dfa.len() <= 2 * word.len() + 1);
            let is_factor = other.is_empty() || word.windows(other.len()).any(|w| w == other);
            prop_assert_eq!(dfa.accepts(other), is_factor);
            prop_assert!((0..=word.len()).all(|n| dfa.accepts(word[n..].iter().copied())));
        }
    }
}
