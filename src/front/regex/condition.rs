//! Conditions on what stands around a place in a text: look-ahead and word boundaries. An automaton has marks for them; here they are
//! checked. Each place of the text may have any marks that the automaton reads there, and must satisfy their conditions: an
//! alternating automaton, made deterministic.

use super::SCALARS;
use crate::fsm::{Dfa, DfaBuilder, TooLarge};
use crate::fuel;
use crate::hash::HashMap;

/// The symbol of the first mark. No text has one of these: they are the halves of surrogate pairs.
pub(super) const FIRST_MARK: u32 = 0xD800;
/// Most marks.
pub(super) const MAX_MARKS: usize = 0x800;
/// Most steps from a state over symbols that are told apart, all together; most ways to go on in one state.
const MAX_STEPS: usize = 1 << 22;
const MAX_WAYS: usize = 1 << 10;

/// Fuel of a step of one automaton.
const STEP: usize = 4;

/// What a mark asks for.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// The rest of the text is one of these.
    Rest(Dfa),
    /// Of the characters before and behind, one belongs to a word and the other does not (`true`); or both or neither.
    Boundary(bool),
}

/// The characters of words in ECMA-262.
const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];

/// One way to go on: a state of the marked automaton, and what the rest of the text must be besides: which automaton, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Way {
    state: u32,
    rests: Vec<(u32, u32)>,
}

/// The texts without marks. Minimal. Fails past `limit` states.
pub(super) fn checked(
    marked: &Dfa,
    conditions: &[Condition],
    limit: usize,
) -> Result<Dfa, TooLarge> {
    let begins_with_word = begins_with_word();
    let others = begins_with_word.complement(&SCALARS, limit)?;
    // The first two are for boundaries.
    let mut rests = vec![&begins_with_word, &others];
    let mut asked = Vec::with_capacity(conditions.len());
    for condition in conditions {
        asked.push(match condition {
            Condition::Boundary(wanted) => Asked::Boundary(*wanted),
            Condition::Rest(dfa) => {
                rests.push(dfa);
                Asked::Rest(rests.len() as u32 - 1)
            }
        });
    }
    let free = rests
        .iter()
        .map(|dfa| (0..dfa.len() as u32).map(|state| is_free(dfa, state)).collect())
        .collect();
    let boundaries = asked.iter().any(|asked| matches!(asked, Asked::Boundary(_)));
    Check { marked, rests, asked, free, boundaries, limit }.run()
}

#[derive(Clone, Copy)]
enum Asked {
    Rest(u32),
    Boundary(bool),
}

struct Check<'a> {
    marked: &'a Dfa,
    rests: Vec<&'a Dfa>,
    asked: Vec<Asked>,
    /// Of each automaton's states, whether anything may follow.
    free: Vec<Vec<bool>>,
    /// Whether it matters what the last character was.
    boundaries: bool,
    limit: usize,
}

impl Check<'_> {
    fn run(&self) -> Result<Dfa, TooLarge> {
        let symbols = self.symbols();
        let mut b = DfaBuilder::new();
        let mut known: HashMap<(bool, Vec<Way>), u32> = HashMap::default();
        let mut pending = Vec::new();
        let first = (false, self.closed(vec![Way { state: 0, rests: Vec::new() }], false)?);
        known.insert(first.clone(), b.state(self.is_final(&first.1)));
        pending.push((first, 0));
        let mut steps = 0usize;
        while let Some(((_, ways), from)) = pending.pop() {
            steps += symbols.len();
            let size: usize = ways.iter().map(|way| STEP * (1 + way.rests.len())).sum();
            fuel::spend(symbols.len() * (1 + size))?;
            if steps > MAX_STEPS {
                return Err(TooLarge::States { limit: self.limit });
            }
            for &(lo, hi) in &symbols {
                let next: Vec<Way> = ways.iter().filter_map(|way| self.step(way, lo)).collect();
                if next.is_empty() {
                    continue;
                }
                let word = self.boundaries
                    && WORD.iter().any(|&(first, last)| (first..=last).contains(&lo));
                let key = (word, self.closed(next, word)?);
                let to = match known.get(&key) {
                    Some(&to) => to,
                    None => {
                        if b.len() >= self.limit {
                            return Err(TooLarge::States { limit: self.limit });
                        }
                        let to = b.state(self.is_final(&key.1));
                        known.insert(key.clone(), to);
                        pending.push((key, to));
                        to
                    }
                };
                b.edge(from, lo, hi, to);
            }
        }
        Ok(b.finish().minimize())
    }

    /// Ranges of scalar values that no automaton tells apart.
    fn symbols(&self) -> Vec<(u32, u32)> {
        let automata = self.rests.iter().copied().chain([self.marked]);
        let mut cuts: Vec<u32> = SCALARS.iter().flat_map(|&(lo, hi)| [lo, hi + 1]).collect();
        for dfa in automata {
            for state in 0..dfa.len() as u32 {
                cuts.extend(dfa.edges(state).iter().flat_map(|e| [e.lo, e.hi.saturating_add(1)]));
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let ranges = cuts.windows(2).map(|pair| (pair[0], pair[1] - 1));
        ranges
            .filter(|&(lo, _)| SCALARS.iter().any(|&(first, last)| (first..=last).contains(&lo)))
            .collect()
    }

    fn is_final(&self, ways: &[Way]) -> bool {
        ways.iter().any(|way| {
            self.marked.is_final(way.state)
                && way
                    .rests
                    .iter()
                    .all(|&(which, state)| self.rests[which as usize].is_final(state))
        })
    }

    fn step(&self, way: &Way, symbol: u32) -> Option<Way> {
        let mut next = Way {
            state: self.marked.next(way.state, symbol)?,
            rests: Vec::with_capacity(way.rests.len()),
        };
        for &(which, state) in &way.rests {
            let state = self.rests[which as usize].next(state, symbol)?;
            if !self.free[which as usize][state as usize] {
                next.rests.push((which, state));
            }
        }
        next.rests.sort_unstable();
        next.rests.dedup();
        Some(next)
    }

    /// The ways, and those behind marks at this place, without such as others imply.
    fn closed(&self, ways: Vec<Way>, word: bool) -> Result<Vec<Way>, TooLarge> {
        let mut out: Vec<Way> = Vec::new();
        let mut pending = ways;
        while let Some(way) = pending.pop() {
            fuel::spend(2 + out.len() * (1 + way.rests.len()))?;
            let implies = |a: &Way, b: &Way| {
                a.state == b.state && a.rests.iter().all(|rest| b.rests.contains(rest))
            };
            if out.iter().any(|other| implies(other, &way)) {
                continue;
            }
            out.retain(|other| !implies(&way, other));
            for e in
                self.marked.edges(way.state).iter().filter(|e| (FIRST_MARK..0xE000).contains(&e.lo))
            {
                for mark in e.lo..=e.hi.min(FIRST_MARK + self.asked.len() as u32 - 1) {
                    let which = match self.asked[(mark - FIRST_MARK) as usize] {
                        Asked::Rest(which) => which,
                        // A character of a word must follow, or must not.
                        Asked::Boundary(wanted) => u32::from(word == wanted),
                    };
                    let mut next = Way { state: e.to, ..way.clone() };
                    if !self.free[which as usize][0] && !next.rests.contains(&(which, 0)) {
                        next.rests.push((which, 0));
                        next.rests.sort_unstable();
                    }
                    pending.push(next);
                }
            }
            out.push(way);
            if out.len() > MAX_WAYS {
                return Err(TooLarge::States { limit: self.limit });
            }
        }
        out.sort_unstable();
        Ok(out)
    }
}

fn begins_with_word() -> Dfa {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let behind = b.state(true);
    WORD.iter().for_each(|&(lo, hi)| b.edge(start, lo, hi, behind));
    SCALARS.iter().for_each(|&(lo, hi)| b.edge(behind, lo, hi, behind));
    b.finish()
}

fn is_free(dfa: &Dfa, state: u32) -> bool {
    dfa.is_final(state)
        && dfa.edges(state).iter().all(|e| e.to == state)
        && dfa.edges(state).iter().map(|e| (e.lo, e.hi)).eq(SCALARS)
}
