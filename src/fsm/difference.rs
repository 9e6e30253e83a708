//! Complements, and languages without some words.

use super::pairs::StatePairs;
use super::product::{Combine, DEAD};
use super::{Csr, Dfa, Edge, TooLarge};
use crate::fuel;

impl Dfa {
    /// The pairs of states that a common prefix of this language and `words` leads to, numbered,
    /// and by number whether a common word can be read from there. Fails past `limit` pairs.
    fn common_prefix_pairs(
        &self,
        words: &Dfa,
        limit: usize,
    ) -> Result<(StatePairs, Vec<bool>), TooLarge> {
        let mut pairs = StatePairs::new((0, 0), limit);
        let mut steps: Vec<(u32, u32)> = Vec::new();
        let mut current = 0;
        while let Some((a, b)) = pairs.get(current) {
            fuel::spend(1 + words.edges(b).len())?;
            let mut own_edges = self.edges(a);
            for e in words.edges(b) {
                own_edges = &own_edges[own_edges.partition_point(|mine| mine.hi < e.lo)..];
                for mine in own_edges.iter().take_while(|mine| mine.lo <= e.hi) {
                    steps.push((pairs.number((mine.to, e.to))?, current as u32));
                }
            }
            current += 1;
        }
        let all = pairs.all();
        let is_common = |&pair: &u32| {
            let (a, b) = all[pair as usize];
            self.is_final(a) && words.is_final(b)
        };
        let leads_to_common = Csr::new(all.len(), || steps.iter().copied())
            .reached((0..all.len() as u32).filter(is_common));
        Ok((pairs, leads_to_common))
    }

    /// This language without finitely many words, given as an acyclic automaton. Trimmed; minimal
    /// or nearly so if `self` is: after what is not a prefix of an excluded word, states are those
    /// of `self`. Fails past `limit` states.
    pub fn without(&self, words: &Dfa, limit: usize) -> Result<Dfa, TooLarge> {
        let (common, leads_to_common) = self.common_prefix_pairs(words, limit)?;
        // The second state is needed only while an excluded word may still be read.
        let state = |a: u32, b: u32| match common.find((a, b)) {
            Some(pair) if b != DEAD && leads_to_common[pair as usize] => (a, b),
            _ => (a, DEAD),
        };
        let mut pairs = StatePairs::new(state(0, 0), limit);
        let mut out = Dfa::unfinished();
        let mut current = 0;
        while let Some((a, b)) = pairs.get(current) {
            fuel::spend(1 + self.edges(a).len())?;
            let word_edges = if b == DEAD { &[][..] } else { words.edges(b) };
            for e in self.edges(a) {
                let mut lo = e.lo;
                let first = word_edges.partition_point(|other| other.hi < e.lo);
                // Intervals between edges of `words` lead where this edge leads; intervals under
                // them lead to pairs.
                let mut push_edge = |lo: u32, hi: u32, to: (u32, u32)| {
                    out.push_edge(Edge { lo, hi, to: pairs.number(to)? });
                    Ok::<(), TooLarge>(())
                };
                let mut has_rest = true;
                for other in word_edges[first..].iter().take_while(|other| other.lo <= e.hi) {
                    if other.lo > lo {
                        push_edge(lo, other.lo - 1, (e.to, DEAD))?;
                    }
                    push_edge(other.lo.max(lo), other.hi.min(e.hi), state(e.to, other.to))?;
                    has_rest = other.hi < e.hi;
                    lo = other.hi.saturating_add(1);
                }
                if has_rest {
                    push_edge(lo, e.hi, (e.to, DEAD))?;
                }
            }
            out.end_state(self.is_final(a) && (b == DEAD || !words.is_final(b)));
            current += 1;
        }
        Ok(out.trim())
    }

    /// Words over `alphabet` (sorted disjoint ranges) that are not in the language. Minimal. Fails
    /// past `limit` states.
    pub fn complement(&self, alphabet: &[(u32, u32)], limit: usize) -> Result<Dfa, TooLarge> {
        Dfa::counted(alphabet, 0, None, limit)?.combine(self, Combine::Minus, limit)
    }
}
