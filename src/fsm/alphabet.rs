//! Symbols that automata never tell apart, so that a class of many ranges costs as much as one range.

use std::collections::hash_map::Entry;

use super::Dfa;
use crate::fuel;
use crate::hash::HashMap;

/// No class: no automaton has an edge over the interval.
const NONE: u32 = u32::MAX;

/// So many symbols are looked up in a table.
const LOW: usize = 256;

/// Intervals between the bounds of edges, and classes of intervals.
pub(super) struct Alphabet {
    /// Where intervals begin; each ends before the next, the last nowhere.
    pub(super) begins: Vec<u32>,
    /// How many begin before each of the first symbols.
    before: [u32; LOW + 1],
    /// The class of each interval, or [`NONE`].
    class: Vec<u32>,
    /// Intervals of each class.
    sizes: Vec<u32>,
}

impl Alphabet {
    /// Of some automata. Cost: their edges, times the intervals under each.
    pub(super) fn of(automata: &[&Dfa]) -> Alphabet {
        let (mut is_begin, mut high) = ([false; LOW], Vec::new());
        let mut begin = |symbol: u32| match is_begin.get_mut(symbol as usize) {
            Some(is_begin) => *is_begin = true,
            None if high.last() == Some(&symbol) => {}
            None => high.push(symbol),
        };
        for e in automata.iter().flat_map(|dfa| &dfa.edges) {
            begin(e.lo);
            if let Some(past) = e.hi.checked_add(1) {
                begin(past);
            }
        }
        high.sort_unstable();
        high.dedup();
        let (mut begins, mut before) = (Vec::with_capacity(LOW + high.len()), [0; LOW + 1]);
        for symbol in 0..LOW {
            begins.extend(is_begin[symbol].then_some(symbol as u32));
            before[symbol + 1] = begins.len() as u32;
        }
        begins.append(&mut high);
        // Of each interval: the sum of what the edges over it hash to. Equal edges have equal sums; that unequal ones differ
        // is looked at below.
        let mut sums = vec![0u128; begins.len() + 1];
        let mut alphabet = Alphabet { begins, before, class: Vec::new(), sizes: Vec::new() };
        for (number, dfa) in automata.iter().enumerate() {
            for state in 0..dfa.len() as u32 {
                for e in dfa.edges(state) {
                    let edge = hash(number as u64, state, e.to);
                    let (from, to) = alphabet.span(e.lo, e.hi);
                    sums[from] = sums[from].wrapping_add(edge);
                    sums[to] = sums[to].wrapping_sub(edge);
                }
            }
        }
        let mut known: HashMap<u128, u32> = HashMap::default();
        let mut sum = 0u128;
        for part in &sums[..alphabet.begins.len()] {
            sum = sum.wrapping_add(*part);
            let class = match known.entry(sum) {
                _ if sum == 0 => NONE,
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    alphabet.sizes.push(0);
                    *new.insert(alphabet.sizes.len() as u32 - 1)
                }
            };
            if class != NONE {
                alphabet.sizes[class as usize] += 1;
            }
            alphabet.class.push(class);
        }
        if !automata.iter().all(|dfa| alphabet.edges(dfa, |_, _, _| {})) {
            // Sums that are equal by chance.
            alphabet.class = (0..alphabet.begins.len() as u32).collect();
            alphabet.sizes = vec![1; alphabet.begins.len()];
        }
        alphabet
    }

    /// Number of classes.
    pub(super) fn classes(&self) -> usize {
        self.sizes.len()
    }

    /// The class of an interval.
    pub(super) fn class(&self, interval: usize) -> Option<u32> {
        Some(self.class[interval]).filter(|&class| class != NONE)
    }

    /// Last symbol of an interval.
    pub(super) fn end(&self, interval: usize) -> u32 {
        self.begins.get(interval + 1).map_or(u32::MAX, |&next| next - 1)
    }

    /// The intervals of a range of symbols whose bounds are bounds of intervals.
    fn span(&self, lo: u32, hi: u32) -> (usize, usize) {
        let (low, high) = self.begins.split_at(self.before[LOW] as usize);
        let count = |before: u32| match self.before.get(before as usize) {
            Some(&count) => count as usize,
            None => low.len() + high.partition_point(|&begin| begin < before),
        };
        let to = match hi.checked_add(1) {
            Some(past) => count(past),
            None => self.begins.len(),
        };
        (count(lo), to)
    }

    /// All edges by class: `(state, class, target)`; some of them out of [`fuel`]. False where a state tells symbols of one class apart.
    pub(super) fn edges(&self, dfa: &Dfa, mut edge: impl FnMut(u32, u32, u32)) -> bool {
        // Of each class: the last state that has an edge over it, where it leads, over how many intervals.
        let mut last = vec![(u32::MAX, 0u32, 0u32); self.classes()];
        let mut met: Vec<u32> = Vec::new();
        for state in 0..dfa.len() as u32 {
            met.clear();
            if fuel::spend(dfa.edges(state).len()).is_err() {
                return true;
            }
            for e in dfa.edges(state) {
                let (from, to) = self.span(e.lo, e.hi);
                fuel::charge(to - from);
                for &class in &self.class[from..to] {
                    let Some(last) = last.get_mut(class as usize) else { return false };
                    if last.0 != state {
                        *last = (state, e.to, 1);
                        met.push(class);
                    } else if last.1 == e.to {
                        last.2 += 1;
                    } else {
                        return false;
                    }
                }
            }
            for &class in &met {
                let (_, to, count) = last[class as usize];
                if count != self.sizes[class as usize] {
                    return false;
                }
                edge(state, class, to);
            }
        }
        true
    }
}

fn hash(automaton: u64, state: u32, to: u32) -> u128 {
    let mix = |mut z: u64| {
        // Steele, Lea and Flood, "Fast splittable pseudorandom number generators": its finaliser.
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let edge = u64::from(state) << 32 | u64::from(to);
    let low = mix(edge.wrapping_add(automaton.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    u128::from(mix(low ^ edge.rotate_left(17))) << 64 | u128::from(low)
}
