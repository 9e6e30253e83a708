//! Automata of patterns, with anchors and word boundaries at any position, and marks in place of
//! other assertions.

use regex_syntax::hir::{Hir, HirKind, Look};

use super::assertions::FIRST_MARK;
use super::hir::{class_ranges, literal_chars};
use super::{Pattern, SCALARS};
use crate::fsm::{Dfa, Nfa, Thompson, TooLarge};
use crate::fuel;

/// What was read before a position: nothing.
const FRESH: u32 = 0;
/// Before a position: any character; with word boundaries, one that is not of a word.
const READ: u32 = 1;
/// Before a position: a character of a word. Only with word boundaries.
const WORD_READ: u32 = 2;

/// What may be read after a position: anything.
const ANY: u32 = 0;
/// After a position: nothing, as `$` was passed.
const END: u32 = 1;
/// After a position: a character of a word, as a word begins there. Only with word boundaries.
const WORD: u32 = 2;
/// After a position: no character of a word, as a word ends there. Only with word boundaries.
const NO_WORD: u32 = 3;

/// The minimal automaton of a pattern, with marks. `open` says whether any text may come before and
/// after a match.
pub(super) fn marked_dfa(
    pattern: &Pattern,
    open: (bool, bool),
    limit: usize,
) -> Result<Dfa, TooLarge> {
    let hir = &pattern.hir;
    let contexts = Contexts::new(hir);
    let mut builder = PatternNfaBuilder { pattern, nfa: Nfa::new(), contexts, edges: 0, limit };
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
    for (before, after) in builder.contexts.all() {
        let end = builder.at(end, before, after);
        match after {
            // After a match any text may follow, unless an assertion constrains it.
            ANY if open.1 && pattern.assertions.is_empty() => builder.nfa.set_universal(end),
            ANY | END | NO_WORD => builder.nfa.set_final(end),
            _ => {}
        }
    }
    builder.nfa.set_start(start);
    Ok(builder.nfa.determinize(limit)?.minimize())
}

/// The contexts of a position: pairs of what was read before it and what may be read after it.
struct Contexts {
    before: u32,
    after: u32,
    /// The characters of words, and all others. Empty without word boundaries.
    words: [Vec<(u32, u32)>; 2],
}

impl Contexts {
    /// The contexts that a pattern distinguishes: one without anchors and word boundaries.
    fn new(hir: &Hir) -> Contexts {
        let looks = hir.properties().look_set();
        let without = |before, after| Contexts { before, after, words: Default::default() };
        match (looks.contains(Look::WordAscii), looks.is_empty()) {
            (true, _) => Contexts {
                before: 3,
                after: 4,
                words: ["[0-9A-Za-z_]", "[^0-9A-Za-z_]"].map(ranges_of),
            },
            (false, false) => without(2, 2),
            (false, true) => without(1, 1),
        }
    }

    /// Whether the pattern has word boundaries.
    fn has_words(&self) -> bool {
        !self.words[0].is_empty()
    }

    /// All contexts.
    fn all(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let before = self.before;
        (0..self.after).flat_map(move |after| (0..before).map(move |before| (before, after)))
    }
}

/// The ranges of a class in the syntax of `regex-syntax`.
fn ranges_of(class: &str) -> Vec<(u32, u32)> {
    match regex_syntax::parse(class).map(Hir::into_kind) {
        Ok(HirKind::Class(class)) => class_ranges(&class),
        _ => Vec::new(),
    }
}

/// What may be read after a position where both conditions hold; `None` if that is contradictory.
fn both_after(one: u32, other: u32) -> Option<u32> {
    match (one, other) {
        (ANY, after) | (after, ANY) => Some(after),
        (END, NO_WORD) | (NO_WORD, END) => Some(END),
        _ => Some(one).filter(|_| one == other),
    }
}

/// Builds a layered NFA, in which anchors and word boundaries are exact at any position: each state
/// exists once for each context.
struct PatternNfaBuilder<'p> {
    pattern: &'p Pattern,
    nfa: Nfa,
    contexts: Contexts,
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

    /// Adds a state, once for each context.
    fn state(&mut self) -> Result<u32, TooLarge> {
        // Few of the contexts that word boundaries add are reached.
        let contexts = self.contexts.all().count();
        if self.nfa.len() / contexts * contexts.min(4) >= self.limit.saturating_mul(4)
            || self.edges >= self.limit.saturating_mul(40)
        {
            return Err(TooLarge::States { limit: self.limit });
        }
        fuel::spend(contexts)?;
        let first = self.nfa.len() as u32;
        (0..contexts).for_each(|_| _ = self.nfa.state());
        Ok(first)
    }

    /// Adds an epsilon edge in all contexts.
    fn epsilon(&mut self, from: u32, to: u32) {
        for (before, after) in self.contexts.all() {
            self.nfa.epsilon(self.at(from, before, after), self.at(to, before, after));
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
            HirKind::Look(look) => self.look(from, *look)?,
            HirKind::Capture(capture) => match self.pattern.mark(capture) {
                Some(number) => {
                    let to = self.state()?;
                    let mark = FIRST_MARK + number;
                    for (before, after) in self.contexts.all() {
                        let (from, to) = (self.at(from, before, after), self.at(to, before, after));
                        self.nfa.edge(from, mark, mark, to);
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
    /// A state in a context.
    fn at(&self, state: u32, before: u32, after: u32) -> u32 {
        state + after * self.contexts.before + before
    }

    /// Adds edges that read one code point of the ranges.
    fn symbols(&mut self, from: u32, ranges: &[(u32, u32)], to: u32) {
        self.edges += ranges.len();
        fuel::charge(ranges.len());
        if !self.contexts.has_words() {
            let read = READ.min(self.contexts.before - 1);
            self.edges_of(from, ANY, ranges, self.at(to, read, ANY));
            return;
        }
        for (words, before, after) in [(0, WORD_READ, WORD), (1, READ, NO_WORD)] {
            let of_words = common_ranges(ranges, &self.contexts.words[words]);
            self.edges += of_words.len();
            fuel::charge(of_words.len());
            let to = self.at(to, before, ANY);
            self.edges_of(from, ANY, &of_words, to);
            self.edges_of(from, after, &of_words, to);
        }
    }

    /// Adds edges from a state, whatever was read before it, over ranges of code points.
    fn edges_of(&mut self, from: u32, after: u32, ranges: &[(u32, u32)], to: u32) {
        for before in 0..self.contexts.before {
            let from = self.at(from, before, after);
            ranges.iter().for_each(|&(lo, hi)| self.nfa.edge(from, lo, hi, to));
        }
    }

    /// Adds a loop that reads any code point.
    fn any_loop(&mut self, state: u32) {
        self.symbols(state, &SCALARS, state);
    }

    /// Appends an anchor or a word boundary; returns its last state.
    fn look(&mut self, from: u32, look: Look) -> Result<u32, TooLarge> {
        let to = self.state()?;
        for (before, after) in self.contexts.all() {
            let needed = match look {
                Look::Start if before == FRESH => ANY,
                Look::Start => continue,
                Look::WordAscii if before == WORD_READ => NO_WORD,
                Look::WordAscii => WORD,
                _ => END,
            };
            if let Some(both) = both_after(after, needed) {
                self.nfa.epsilon(self.at(from, before, after), self.at(to, before, both));
            }
        }
        Ok(to)
    }
}

/// The code points in both of two lists of sorted, disjoint ranges.
fn common_ranges(mut a: &[(u32, u32)], mut b: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    while let (Some(&(lo_a, hi_a)), Some(&(lo_b, hi_b))) = (a.first(), b.first()) {
        let (lo, hi) = (lo_a.max(lo_b), hi_a.min(hi_b));
        if lo <= hi {
            out.push((lo, hi));
        }
        match hi_a < hi_b {
            true => a = &a[1..],
            false => b = &b[1..],
        }
    }
    out
}
