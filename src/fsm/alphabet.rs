//! Alphabet compression: classes of symbols that no state of some automata tells apart, so that a
//! class of many ranges costs as much as one range.
//!
//! The bounds of all edges cut the symbols into intervals. Each interval is hashed to the sum of
//! its edges' hashes, and intervals with equal sums form a class. Classes are verified afterwards;
//! after a collision each interval is a class of its own.

use std::collections::hash_map::Entry;

use super::Dfa;
use crate::fuel;
use crate::hash::HashMap;
use crate::random::mix;

/// The interval has no class: no automaton has an edge over it.
const NO_CLASS: u32 = u32::MAX;

/// Symbols below this are looked up in a table.
const TABLE_SYMBOLS: usize = 256;

/// Intervals between the bounds of edges, and classes of intervals.
pub(super) struct Alphabet {
    /// First symbol of each interval. It ends before the next one; the last is unbounded.
    pub(super) starts: Vec<u32>,
    /// By symbol below [`TABLE_SYMBOLS`]: how many intervals start before it.
    starts_below: [u32; TABLE_SYMBOLS + 1],
    /// The class of each interval, or [`NO_CLASS`].
    class: Vec<u32>,
    /// Number of intervals of each class.
    sizes: Vec<u32>,
}

impl Alphabet {
    /// The classes of some automata. Cost: their edges, times the intervals under each.
    pub(super) fn new(automata: &[&Dfa]) -> Alphabet {
        let mut alphabet = Alphabet::without_classes(automata);
        alphabet.classify(automata);
        if !automata.iter().all(|dfa| alphabet.edges(dfa, |_, _, _| {})) {
            // A collision of sums.
            alphabet.class = (0..alphabet.starts.len() as u32).collect();
            alphabet.sizes = vec![1; alphabet.starts.len()];
        }
        alphabet
    }

    /// The intervals between the bounds of edges.
    fn without_classes(automata: &[&Dfa]) -> Alphabet {
        let (mut is_begin, mut high) = ([false; TABLE_SYMBOLS], Vec::new());
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
        let (mut starts, mut starts_below) =
            (Vec::with_capacity(TABLE_SYMBOLS + high.len()), [0; TABLE_SYMBOLS + 1]);
        for symbol in 0..TABLE_SYMBOLS {
            starts.extend(is_begin[symbol].then_some(symbol as u32));
            starts_below[symbol + 1] = starts.len() as u32;
        }
        starts.append(&mut high);
        Alphabet { starts, starts_below, class: Vec::new(), sizes: Vec::new() }
    }

    /// Forms classes of the intervals under equal sets of edges.
    fn classify(&mut self, automata: &[&Dfa]) {
        // For each interval, the sum of the hashes of the edges over it. Equal sets of edges have
        // equal sums; the caller detects collisions.
        let mut sums = vec![0u128; self.starts.len() + 1];
        for (number, dfa) in automata.iter().enumerate() {
            for state in 0..dfa.len() as u32 {
                for e in dfa.edges(state) {
                    let edge = hash(number as u64, state, e.to);
                    let (from, to) = self.span(e.lo, e.hi);
                    sums[from] = sums[from].wrapping_add(edge);
                    sums[to] = sums[to].wrapping_sub(edge);
                }
            }
        }
        let mut class_of_sum: HashMap<u128, u32> = HashMap::default();
        let mut sum = 0u128;
        for part in &sums[..self.starts.len()] {
            sum = sum.wrapping_add(*part);
            let class = match class_of_sum.entry(sum) {
                _ if sum == 0 => NO_CLASS,
                Entry::Occupied(class_of_sum) => *class_of_sum.get(),
                Entry::Vacant(new) => {
                    self.sizes.push(0);
                    *new.insert(self.sizes.len() as u32 - 1)
                }
            };
            if class != NO_CLASS {
                self.sizes[class as usize] += 1;
            }
            self.class.push(class);
        }
    }

    /// Number of classes.
    pub(super) fn classes(&self) -> usize {
        self.sizes.len()
    }

    /// The class of an interval.
    pub(super) fn class(&self, interval: usize) -> Option<u32> {
        Some(self.class[interval]).filter(|&class| class != NO_CLASS)
    }

    /// Last symbol of an interval.
    pub(super) fn end(&self, interval: usize) -> u32 {
        self.starts.get(interval + 1).map_or(u32::MAX, |&next| next - 1)
    }

    /// The intervals of a range of symbols whose bounds are bounds of intervals.
    fn span(&self, lo: u32, hi: u32) -> (usize, usize) {
        let (low, high) = self.starts.split_at(self.starts_below[TABLE_SYMBOLS] as usize);
        let count = |symbol: u32| match self.starts_below.get(symbol as usize) {
            Some(&count) => count as usize,
            None => low.len() + high.partition_point(|&begin| begin < symbol),
        };
        let to = match hi.checked_add(1) {
            Some(past) => count(past),
            None => self.starts.len(),
        };
        (count(lo), to)
    }

    /// Calls `edge` with `(state, class, target)` for all edges of an automaton, or some of them
    /// when out of [`fuel`]. `false` where a state tells symbols of one class apart.
    pub(super) fn edges(&self, dfa: &Dfa, mut edge: impl FnMut(u32, u32, u32)) -> bool {
        // For each class: the last state with an edge over it, the target, and the number of
        // intervals.
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

/// Classes of symbols within `ranges` (sorted and disjoint) that no state of the automata tells
/// apart and that some state has an edge over, as ranges.
pub(crate) fn symbol_classes(automata: &[&Dfa], ranges: &[(u32, u32)]) -> Vec<Vec<(u32, u32)>> {
    let alphabet = Alphabet::new(automata);
    let mut classes = vec![Vec::new(); alphabet.classes()];
    for (interval, &first) in alphabet.starts.iter().enumerate() {
        let Some(class) = alphabet.class(interval) else { continue };
        let last = alphabet.end(interval);
        let parts = ranges.iter().map(|&(lo, hi)| (lo.max(first), hi.min(last)));
        classes[class as usize].extend(parts.filter(|(lo, hi)| lo <= hi));
    }
    fuel::charge(alphabet.starts.len());
    classes.retain(|class| !class.is_empty());
    classes
}

/// The hash of an edge of one of the automata.
fn hash(automaton: u64, state: u32, to: u32) -> u128 {
    let edge = u64::from(state) << 32 | u64::from(to);
    let low = mix(edge.wrapping_add(automaton.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    u128::from(mix(low ^ edge.rotate_left(17))) << 64 | u128::from(low)
}
