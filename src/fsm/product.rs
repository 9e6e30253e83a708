//! Boolean algebra by the product construction.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::dfa::push_merged;
use super::{Dfa, Edge, TooLarge};

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

/// The state after the automaton has died.
const DEAD: u32 = u32::MAX;

impl Dfa {
    /// Combines two languages; minimal. Fails past `limit` product states.
    pub fn combine(&self, other: &Dfa, how: Combine, limit: usize) -> Result<Dfa, TooLarge> {
        let mut ids: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut order = vec![(0u32, 0u32)];
        ids.insert((0, 0), 0);
        let mut out = Dfa { offsets: vec![0], edges: Vec::new(), finals: Vec::new() };
        let mut cuts = Vec::new();
        let mut at = 0;
        while at < order.len() {
            let (a, b) = order[at];
            let (fa, fb) = (a != DEAD && self.is_final(a), b != DEAD && other.is_final(b));
            out.finals.push(match how {
                Combine::And => fa && fb,
                Combine::Or => fa || fb,
                Combine::Minus => fa && !fb,
            });
            let ea = if a == DEAD { &[][..] } else { self.edges(a) };
            let eb = if b == DEAD { &[][..] } else { other.edges(b) };
            cuts.clear();
            for e in ea.iter().chain(eb) {
                cuts.push(e.lo);
                if let Some(past) = e.hi.checked_add(1) {
                    cuts.push(past);
                }
            }
            cuts.sort_unstable();
            cuts.dedup();
            let begin = out.edges.len();
            let (mut i, mut j) = (0, 0);
            for (k, &lo) in cuts.iter().enumerate() {
                let hi = cuts.get(k + 1).map_or(u32::MAX, |&next| next - 1);
                let na = step(ea, &mut i, lo);
                let nb = step(eb, &mut j, lo);
                let live = match how {
                    Combine::And => na != DEAD && nb != DEAD,
                    Combine::Or => na != DEAD || nb != DEAD,
                    Combine::Minus => na != DEAD,
                };
                if !live {
                    continue;
                }
                let to = match ids.entry((na, nb)) {
                    Entry::Occupied(e) => *e.get(),
                    Entry::Vacant(e) => {
                        if order.len() >= limit {
                            return Err(TooLarge { limit });
                        }
                        order.push((na, nb));
                        *e.insert((order.len() - 1) as u32)
                    }
                };
                push_merged(&mut out.edges, begin, Edge { lo, hi, to });
            }
            out.offsets.push(out.edges.len() as u32);
            at += 1;
        }
        Ok(out.minimize())
    }

    /// Words over `alphabet` (sorted disjoint ranges) that are not in the language.
    pub fn complement(&self, alphabet: &[(u32, u32)], limit: usize) -> Result<Dfa, TooLarge> {
        Dfa::counted(alphabet, 0, None, limit)?.combine(self, Combine::Minus, limit)
    }
}

/// Where symbol `lo` leads; `i` walks forward with ascending symbols.
fn step(edges: &[Edge], i: &mut usize, lo: u32) -> u32 {
    while *i < edges.len() && edges[*i].hi < lo {
        *i += 1;
    }
    match edges.get(*i) {
        Some(e) if e.lo <= lo => e.to,
        _ => DEAD,
    }
}
