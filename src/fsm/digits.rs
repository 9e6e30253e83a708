//! Minimal automata of numbers that are spelled digit by digit, the first digit first. UTF-8 and
//! escapes spell code points like this.
//!
//! A class of code points with a Unicode property has hundreds of ranges. As alternatives, each
//! range is several sequences of byte classes, and each set of a subset construction holds
//! thousands of them. Here the states are made from the last digit on and interned by their edges,
//! so equal parts of ranges are the same states.

use super::acyclic::AcyclicStates;
use super::dfa::push_merged;
use super::{Dfa, Edge};
use crate::fuel;

/// The digit at one position of a spelling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digit {
    /// The bits of the number that it spells; 0 for a digit that is always the same.
    bits: u32,
    /// The digit that spells 0; the others follow it.
    zero: Zero,
}

/// The first digit of a position.
#[derive(Clone, Copy, Debug)]
enum Zero {
    /// A byte.
    Byte(u8),
    /// A hexadecimal digit of this value, in either case.
    Hex(u32),
}

impl Digit {
    /// A digit of `bits` bits, spelled by the bytes from `zero` on.
    pub(crate) const fn byte(bits: u32, zero: u8) -> Digit {
        Digit { bits, zero: Zero::Byte(zero) }
    }

    /// A digit of `bits` bits, spelled by the hexadecimal digits from `zero` on, in either case.
    pub(crate) const fn hex(bits: u32, zero: u32) -> Digit {
        Digit { bits, zero: Zero::Hex(zero) }
    }

    /// Appends to `out` the edges over the spellings of the digits from `lo` to `hi`.
    pub(crate) fn spell(self, Edge { lo, hi, to }: Edge, out: &mut Vec<Edge>) {
        let mut push = |zero: u8, lo: u32, hi: u32| {
            out.push(Edge { lo: u32::from(zero) + lo, hi: u32::from(zero) + hi, to });
        };
        match self.zero {
            Zero::Byte(zero) => push(zero, lo, hi),
            Zero::Hex(zero) => {
                let (lo, hi) = (zero + lo, zero + hi);
                if lo < 10 {
                    push(b'0', lo, hi.min(9));
                }
                if hi >= 10 {
                    [b'A', b'a'].into_iter().for_each(|ten| push(ten, lo.max(10) - 10, hi - 10));
                }
            }
        }
    }
}

/// An automaton of spelled numbers, made from its end on.
pub(crate) struct NumeralBuilder {
    states: AcyclicStates,
    /// The final state, which has no edges.
    end: u32,
}

impl NumeralBuilder {
    /// A builder with the final state alone.
    pub(crate) fn new() -> NumeralBuilder {
        let mut states = AcyclicStates::new();
        let end = states.intern(&[], true);
        NumeralBuilder { states, end }
    }

    /// The final state.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// The state with these edges, which are disjoint.
    pub(crate) fn state(&mut self, mut edges: Vec<Edge>) -> u32 {
        fuel::charge(edges.len());
        edges.sort_unstable();
        let mut merged = Vec::with_capacity(edges.len());
        edges.into_iter().for_each(|edge| push_merged(&mut merged, 0, edge));
        self.states.intern(&merged, false)
    }

    /// The automaton that starts with these edges.
    pub(crate) fn finish(mut self, edges: Vec<Edge>) -> Dfa {
        let start = self.state(edges);
        self.states.finish(start)
    }

    /// Appends to `out` the edges over the first digit of the numbers of `ranges` that are from
    /// `lo` to `hi`, each less `zero`. Ranges are sorted and disjoint. Cost: linear in the ranges,
    /// times the digits.
    pub(crate) fn numerals(
        &mut self,
        ranges: &[(u32, u32)],
        lo: u32,
        hi: u32,
        zero: u32,
        digits: &[Digit],
        out: &mut Vec<Edge>,
    ) {
        let within = ranges.iter().filter(|range| range.0 <= hi && range.1 >= lo);
        let numbers: Vec<(u32, u32)> =
            within.map(|range| (range.0.max(lo) - zero, range.1.min(hi) - zero)).collect();
        self.digits(&numbers, digits, out);
    }

    /// Appends to `out` the edges over the first of the digits that spell `numbers`.
    fn digits(&mut self, numbers: &[(u32, u32)], digits: &[Digit], out: &mut Vec<Edge>) {
        let Some((digit, rest)) = digits.split_first() else { return };
        let width: u32 = rest.iter().map(|digit| digit.bits).sum();
        let last = (1 << width) - 1;
        // The digit that the last range ends in, and what may follow it.
        let (mut open, mut following) = (0, Vec::new());
        for &(mut lo, hi) in numbers {
            while lo <= hi {
                let first = lo >> width;
                if first != open {
                    self.digit(*digit, open, open, &following, rest, out);
                    (open, following) = (first, Vec::new());
                }
                let end = (hi + 1) >> width;
                if lo & last == 0 && first < end {
                    // Any number may follow these digits.
                    self.digit(*digit, first, end - 1, &[(0, last)], rest, out);
                    (lo, open) = (end << width, end);
                } else {
                    let to = hi.min(lo | last);
                    following.push((lo & last, to & last));
                    lo = to + 1;
                }
            }
        }
        self.digit(*digit, open, open, &following, rest, out);
    }

    /// Appends to `out` the edges over the digits from `lo` to `hi`, before the numbers
    /// `following`, if any.
    fn digit(
        &mut self,
        digit: Digit,
        lo: u32,
        hi: u32,
        following: &[(u32, u32)],
        rest: &[Digit],
        out: &mut Vec<Edge>,
    ) {
        if following.is_empty() {
            return;
        }
        let mut to = self.end;
        if !rest.is_empty() {
            let mut edges = Vec::new();
            self.digits(following, rest, &mut edges);
            to = self.state(edges);
        }
        digit.spell(Edge { lo, hi, to }, out);
    }
}
