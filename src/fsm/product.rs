//! Boolean operations on two languages by the product construction.

use super::dfa::elementary_cuts;
use super::pairs::StatePairs;
use super::{Dfa, Edge, TooLarge};
use crate::fuel;

/// How two languages are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Words in both.
    And,
    /// Words in either.
    Or,
    /// Words in the first but not the second.
    Minus,
}

/// The state after an automaton has rejected.
pub(super) const DEAD: u32 = u32::MAX;

impl Dfa {
    /// Combines two languages. Minimal. Fails past `limit` product states.
    pub fn combine(&self, other: &Dfa, how: Combine, limit: usize) -> Result<Dfa, TooLarge> {
        let mut pairs = StatePairs::new((0, 0), limit);
        let mut out = Dfa::unfinished();
        let mut cuts = Vec::new();
        let mut current = 0;
        while let Some((a, b)) = pairs.get(current) {
            let (fa, fb) = (a != DEAD && self.is_final(a), b != DEAD && other.is_final(b));
            let is_final = match how {
                Combine::And => fa && fb,
                Combine::Or => fa || fb,
                Combine::Minus => fa && !fb,
            };
            let ea = if a == DEAD { &[][..] } else { self.edges(a) };
            let eb = if b == DEAD { &[][..] } else { other.edges(b) };
            fuel::spend(1 + 2 * (ea.len() + eb.len()))?;
            elementary_cuts(ea.iter().chain(eb), &mut cuts);
            let (mut i, mut j) = (0, 0);
            for (k, &lo) in cuts.iter().enumerate() {
                let hi = cuts.get(k + 1).map_or(u32::MAX, |&next| next - 1);
                let na = target_of_symbol(ea, &mut i, lo);
                let nb = target_of_symbol(eb, &mut j, lo);
                let live = match how {
                    Combine::And => na != DEAD && nb != DEAD,
                    Combine::Or => na != DEAD || nb != DEAD,
                    Combine::Minus => na != DEAD,
                };
                if !live {
                    continue;
                }
                let to = pairs.number((na, nb))?;
                out.push_edge(Edge { lo, hi, to });
            }
            out.end_state(is_final);
            current += 1;
        }
        Ok(out.minimize())
    }

    /// Words of `min..=max` symbols. Trimmed, not minimal: states count the symbols read, as far as
    /// that matters. Fails past `limit` states.
    pub fn of_length(&self, min: u32, max: Option<u32>, limit: usize) -> Result<Dfa, TooLarge> {
        let mut pairs = StatePairs::new((0, 0), limit);
        let mut out = Dfa::unfinished();
        let mut current = 0;
        while let Some((state, read)) = pairs.get(current) {
            fuel::spend(1 + self.edges(state).len())?;
            let next = match max {
                Some(max) if read >= max => None,
                Some(_) => Some(read + 1),
                None => Some((read + 1).min(min)),
            };
            for e in next.map_or(&[][..], |_| self.edges(state)) {
                let to = pairs.number((e.to, next.unwrap_or(read)))?;
                out.push_edge(Edge { to, ..*e });
            }
            out.end_state(self.is_final(state) && read >= min);
            current += 1;
        }
        Ok(out.trim())
    }
}

/// The state after symbol `lo`; `i` moves forward as symbols ascend.
fn target_of_symbol(edges: &[Edge], i: &mut usize, lo: u32) -> u32 {
    while *i < edges.len() && edges[*i].hi < lo {
        *i += 1;
    }
    match edges.get(*i) {
        Some(e) if e.lo <= lo => e.to,
        _ => DEAD,
    }
}
