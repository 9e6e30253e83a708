//! Operations on languages: prefix-free part, union, concatenation, exclusion of prefixes.

use std::collections::VecDeque;

use super::{Combine, Dfa, DfaBuilder, Nfa, TooLarge};

impl Dfa {
    /// The words of which no proper prefix is a word: what a match reads that stops as early as
    /// possible. Minimal.
    pub fn shortest(&self) -> Dfa {
        let mut builder = DfaBuilder::new();
        for state in 0..self.len() as u32 {
            builder.state(self.is_final(state));
        }
        for state in 0..self.len() as u32 {
            if !self.is_final(state) {
                self.edges(state).iter().for_each(|e| builder.edge(state, e.lo, e.hi, e.to));
            }
        }
        builder.finish().minimize()
    }

    /// A word with the fewest symbols, of those the first in lexicographic order; `None` if there
    /// is none.
    pub fn shortest_word(&self) -> Option<Vec<u32>> {
        let mut from: Vec<Option<(u32, u32)>> = vec![None; self.len()];
        let mut queue = VecDeque::from([0u32]);
        while let Some(state) = queue.pop_front() {
            if self.is_final(state) {
                let (mut word, mut at) = (Vec::new(), state);
                while let Some((previous, symbol)) = from[at as usize] {
                    word.push(symbol);
                    at = previous;
                }
                word.reverse();
                return Some(word);
            }
            for e in self.edges(state) {
                if e.to != 0 && from[e.to as usize].is_none() {
                    from[e.to as usize] = Some((state, e.lo));
                    queue.push_back(e.to);
                }
            }
        }
        None
    }

    /// The union of several languages. Minimal; fails past `limit` states.
    pub fn union<'d>(
        languages: impl IntoIterator<Item = &'d Dfa>,
        limit: usize,
    ) -> Result<Dfa, TooLarge> {
        let mut nfa = Nfa::new();
        let start = nfa.state();
        for language in languages {
            let (begin, end) = nfa.embed(language);
            nfa.epsilon(start, begin);
            nfa.set_final(end);
        }
        Ok(nfa.determinize(limit)?.minimize())
    }

    /// Words of this language followed by words of another. Minimal; fails past `limit` states.
    pub fn concat(&self, other: &Dfa, limit: usize) -> Result<Dfa, TooLarge> {
        let mut nfa = Nfa::new();
        let start = nfa.state();
        let (first, between) = nfa.embed(self);
        let (second, end) = nfa.embed(other);
        nfa.epsilon(start, first);
        nfa.epsilon(between, second);
        nfa.set_final(end);
        Ok(nfa.determinize(limit)?.minimize())
    }

    /// Words of this language that have no prefix in `other`, themselves included. `alphabet`
    /// contains all symbols of both. Minimal; fails past `limit` states.
    pub fn without_prefix(
        &self,
        other: &Dfa,
        alphabet: &[(u32, u32)],
        limit: usize,
    ) -> Result<Dfa, TooLarge> {
        let longer = other.shortest().concat(&Dfa::counted(alphabet, 0, None, limit)?, limit)?;
        self.combine(&longer, Combine::Minus, limit)
    }
}
