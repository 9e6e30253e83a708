//! Automata of patterns, with anchors at any position and marks in place of assertions.

use regex_syntax::hir::{Hir, HirKind, Look};

use super::assertions::FIRST_MARK;
use super::hir::{class_ranges, literal_chars};
use super::{Pattern, SCALARS};
use crate::fsm::{Dfa, Nfa, Thompson, TooLarge};
use crate::fuel;

/// Layers of the automaton. In this one, nothing has been read. After `$`, nothing more may be
/// read.
const FRESH: u32 = 0;
/// Something has been read.
const READ: u32 = 1;
/// Nothing has been read, and `$` was passed.
const FRESH_ENDED: u32 = 2;
/// Something has been read, and `$` was passed.
const READ_ENDED: u32 = 3;

/// The minimal automaton of a pattern, with marks. `open` says whether any text may come before and
/// after a match.
pub(super) fn marked_dfa(
    pattern: &Pattern,
    open: (bool, bool),
    limit: usize,
) -> Result<Dfa, TooLarge> {
    let hir = &pattern.hir;
    let anchored = !hir.properties().look_set().is_empty();
    let layers = if anchored { 4 } else { 1 };
    let mut builder = PatternNfaBuilder { pattern, nfa: Nfa::new(), layers, edges: 0, limit };
    let start = builder.state()?;
    let end = builder.state()?;
    let mut from = start;
    if open.0 {
        // A new state, so that the loop does not re-enter `^`.
        builder.any_loop(start);
        from = builder.state()?;
        builder.epsilon(start, from);
    }
    let to = builder.append(from, hir)?;
    builder.epsilon(to, end);
    if open.1 {
        builder.any_loop(end);
    }
    for layer in 0..builder.layers {
        // After a match any text may follow, unless `$` was passed or an assertion constrains it.
        if open.1 && layer < FRESH_ENDED && pattern.assertions.is_empty() {
            builder.nfa.set_universal(end + layer);
        } else {
            builder.nfa.set_final(end + layer);
        }
    }
    builder.nfa.set_start(start);
    Ok(builder.nfa.determinize(limit)?.minimize())
}

/// Builds a layered NFA, in which anchors are exact at any position. Each state exists once for
/// each combination of "nothing read yet" and "the end was asserted". Patterns without anchors need
/// one layer.
struct PatternNfaBuilder<'p> {
    pattern: &'p Pattern,
    nfa: Nfa,
    /// Number of layers: one or four.
    layers: u32,
    /// Number of ranges of code points on all edges so far.
    edges: usize,
    /// Limit on the states of the automaton.
    limit: usize,
}

impl Thompson<Hir> for PatternNfaBuilder<'_> {
    type Error = TooLarge;

    fn states(&self) -> usize {
        self.nfa.len()
    }

    /// Adds a state in all layers.
    fn state(&mut self) -> Result<u32, TooLarge> {
        if self.nfa.len() >= self.limit.saturating_mul(4)
            || self.edges >= self.limit.saturating_mul(40)
        {
            return Err(TooLarge::States { limit: self.limit });
        }
        fuel::spend(self.layers as usize)?;
        let first = self.nfa.state();
        for _ in 1..self.layers {
            self.nfa.state();
        }
        Ok(first)
    }

    /// Adds an epsilon edge in all layers.
    fn epsilon(&mut self, from: u32, to: u32) {
        for layer in 0..self.layers {
            self.nfa.epsilon(from + layer, to + layer);
        }
    }

    fn append(&mut self, from: u32, hir: &Hir) -> Result<u32, TooLarge> {
        Ok(match hir.kind() {
            HirKind::Empty => from,
            HirKind::Literal(literal) => {
                let mut at = from;
                for c in literal_chars(&literal.0) {
                    let to = self.state()?;
                    self.symbols(at, &[(c, c)], to);
                    at = to;
                }
                at
            }
            HirKind::Class(class) => {
                let to = self.state()?;
                self.symbols(from, &class_ranges(class), to);
                to
            }
            HirKind::Look(look) => self.anchor(from, *look)?,
            HirKind::Capture(capture) => match self.pattern.mark(capture) {
                Some(number) => {
                    let to = self.state()?;
                    let mark = FIRST_MARK + number;
                    for layer in 0..self.layers {
                        self.nfa.edge(from + layer, mark, mark, to + layer);
                    }
                    to
                }
                None => self.append(from, &capture.sub)?,
            },
            HirKind::Concat(parts) => self.append_sequence(from, parts)?,
            HirKind::Alternation(parts) => self.append_alternatives(from, parts)?,
            HirKind::Repetition(r) => self.append_repeat(from, &r.sub, r.min, r.max)?,
        })
    }
}

impl PatternNfaBuilder<'_> {
    /// Adds edges that read one code point of the ranges.
    fn symbols(&mut self, from: u32, ranges: &[(u32, u32)], to: u32) {
        self.edges += ranges.len();
        fuel::charge(ranges.len());
        for &(lo, hi) in ranges {
            if self.layers == 1 {
                self.nfa.edge(from, lo, hi, to);
            } else {
                self.nfa.edge(from + FRESH, lo, hi, to + READ);
                self.nfa.edge(from + READ, lo, hi, to + READ);
            }
        }
    }

    /// Adds a loop that reads any code point.
    fn any_loop(&mut self, state: u32) {
        self.symbols(state, &SCALARS, state);
    }

    /// Appends an anchor; returns its last state.
    fn anchor(&mut self, from: u32, look: Look) -> Result<u32, TooLarge> {
        let to = self.state()?;
        if look == Look::Start {
            self.nfa.epsilon(from + FRESH, to + FRESH);
            self.nfa.epsilon(from + FRESH_ENDED, to + FRESH_ENDED);
        } else {
            for (layer, ended) in [
                (FRESH, FRESH_ENDED),
                (FRESH_ENDED, FRESH_ENDED),
                (READ, READ_ENDED),
                (READ_ENDED, READ_ENDED),
            ] {
                self.nfa.epsilon(from + layer, to + ended);
            }
        }
        Ok(to)
    }
}
