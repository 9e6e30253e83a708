//! Zero-width assertions: resolves the look-ahead and word boundaries of an automaton.
//!
//! The automaton of the pattern has an edge with a mark symbol for each assertion. A text matches
//! if the automaton accepts it with marks inserted, and the assertion of every mark holds at its
//! position. Look-ahead makes this an alternating automaton: each thread carries obligations on the
//! rest of the text. It is made deterministic by a subset construction over sets of threads.

use super::SCALARS;
use crate::fsm::{Dfa, DfaBuilder, TooLarge};
use crate::fuel;
use crate::hash::HashMap;

/// Symbol of the first mark. Marks use the surrogates, which occur in no text.
pub(super) const FIRST_MARK: u32 = 0xD800;
/// Maximum number of marks.
pub(super) const MAX_MARKS: usize = 0x800;
/// Maximum number of steps: states times distinguishable symbols.
const MAX_STEPS: usize = 1 << 22;
/// Maximum number of threads in a state.
const MAX_THREADS: usize = 1 << 10;

/// Fuel of one step of one automaton.
const STEP_FUEL: usize = 4;

/// The condition of a mark.
#[derive(Clone, Debug)]
pub(super) enum MarkCondition {
    /// The automaton accepts the rest of the text.
    Rest(Dfa),
    /// Whether exactly one of the characters before and behind is a word character: `true` requires
    /// it, `false` forbids it.
    Boundary(bool),
}

/// The word characters of ECMA-262.
const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];

/// A state of the marked automaton with obligations: pairs of an automaton and a state from which
/// it must accept the rest of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Thread {
    state: u32,
    obligations: Vec<(u32, u32)>,
}

/// Builds the minimal automaton of the texts, without marks, for which all assertions hold. Fails
/// past `limit` states.
pub(super) fn resolve(
    marked: &Dfa,
    conditions: &[MarkCondition],
    limit: usize,
) -> Result<Dfa, TooLarge> {
    let word_start_dfa = word_start_dfa();
    let not_word_start_dfa = word_start_dfa.complement(&SCALARS, limit)?;
    // The first two serve word boundaries: the rest begins with a word character, or does not.
    let mut obligations = vec![&word_start_dfa, &not_word_start_dfa];
    let mut marks = Vec::with_capacity(conditions.len());
    for condition in conditions {
        marks.push(match condition {
            MarkCondition::Boundary(wanted) => IndexedCondition::Boundary(*wanted),
            MarkCondition::Rest(dfa) => {
                obligations.push(dfa);
                IndexedCondition::Rest(obligations.len() as u32 - 1)
            }
        });
    }
    let universal = obligations
        .iter()
        .map(|dfa| (0..dfa.len() as u32).map(|state| is_universal(dfa, state)).collect())
        .collect();
    let boundaries = marks.iter().any(|mark| matches!(mark, IndexedCondition::Boundary(_)));
    Resolver { marked, obligations, marks, universal, boundaries, limit }.run()
}

/// As [`MarkCondition`], with the index of the automaton.
#[derive(Clone, Copy)]
enum IndexedCondition {
    /// The index of the automaton that must accept the rest.
    Rest(u32),
    /// Whether a word boundary is required or forbidden.
    Boundary(bool),
}

/// The subset construction over sets of threads.
struct Resolver<'a> {
    marked: &'a Dfa,
    /// The automata of obligations.
    obligations: Vec<&'a Dfa>,
    /// The condition of each mark.
    marks: Vec<IndexedCondition>,
    /// Per automaton and state, whether every text is accepted from there.
    universal: Vec<Vec<bool>>,
    /// Whether there are word boundaries, so that the last character matters.
    boundaries: bool,
    limit: usize,
}

impl Resolver<'_> {
    /// Builds the automaton.
    fn run(&self) -> Result<Dfa, TooLarge> {
        let symbols = self.symbols();
        let mut b = DfaBuilder::new();
        let mut states: HashMap<(bool, Vec<Thread>), u32> = HashMap::default();
        let mut pending = Vec::new();
        let first =
            (false, self.closure(vec![Thread { state: 0, obligations: Vec::new() }], false)?);
        states.insert(first.clone(), b.state(self.is_final(&first.1)));
        pending.push((first, 0));
        let mut steps = 0usize;
        while let Some(((_, threads), from)) = pending.pop() {
            steps += symbols.len();
            let size: usize =
                threads.iter().map(|thread| STEP_FUEL * (1 + thread.obligations.len())).sum();
            fuel::spend(symbols.len() * (1 + size))?;
            if steps > MAX_STEPS {
                return Err(TooLarge::States { limit: self.limit });
            }
            for &(lo, hi) in &symbols {
                let next: Vec<Thread> =
                    threads.iter().filter_map(|thread| self.step(thread, lo)).collect();
                if next.is_empty() {
                    continue;
                }
                let word = self.boundaries
                    && WORD.iter().any(|&(first, last)| (first..=last).contains(&lo));
                let key = (word, self.closure(next, word)?);
                let to = match states.get(&key) {
                    Some(&to) => to,
                    None => {
                        if b.len() >= self.limit {
                            return Err(TooLarge::States { limit: self.limit });
                        }
                        let to = b.state(self.is_final(&key.1));
                        states.insert(key.clone(), to);
                        pending.push((key, to));
                        to
                    }
                };
                b.edge(from, lo, hi, to);
            }
        }
        Ok(b.finish().minimize())
    }

    /// Ranges of scalar values that no automaton distinguishes.
    fn symbols(&self) -> Vec<(u32, u32)> {
        let automata = self.obligations.iter().copied().chain([self.marked]);
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

    /// Whether a thread may end here.
    fn is_final(&self, threads: &[Thread]) -> bool {
        threads.iter().any(|thread| {
            self.marked.is_final(thread.state)
                && thread
                    .obligations
                    .iter()
                    .all(|&(which, state)| self.obligations[which as usize].is_final(state))
        })
    }

    /// The thread after a symbol; `None` if it dies.
    fn step(&self, thread: &Thread, symbol: u32) -> Option<Thread> {
        let mut next = Thread {
            state: self.marked.next(thread.state, symbol)?,
            obligations: Vec::with_capacity(thread.obligations.len()),
        };
        for &(which, state) in &thread.obligations {
            let state = self.obligations[which as usize].next(state, symbol)?;
            if !self.universal[which as usize][state as usize] {
                next.obligations.push((which, state));
            }
        }
        next.obligations.sort_unstable();
        next.obligations.dedup();
        Some(next)
    }

    /// The closure of threads over marks at the current position, without threads that others
    /// subsume.
    fn closure(&self, threads: Vec<Thread>, word: bool) -> Result<Vec<Thread>, TooLarge> {
        let mut out: Vec<Thread> = Vec::new();
        let mut pending = threads;
        while let Some(thread) = pending.pop() {
            fuel::spend(2 + out.len() * (1 + thread.obligations.len()))?;
            let subsumes = |a: &Thread, b: &Thread| {
                a.state == b.state && a.obligations.iter().all(|rest| b.obligations.contains(rest))
            };
            if out.iter().any(|other| subsumes(other, &thread)) {
                continue;
            }
            out.retain(|other| !subsumes(&thread, other));
            for e in self
                .marked
                .edges(thread.state)
                .iter()
                .filter(|e| (FIRST_MARK..0xE000).contains(&e.lo))
            {
                for mark in e.lo..=e.hi.min(FIRST_MARK + self.marks.len() as u32 - 1) {
                    let which = match self.marks[(mark - FIRST_MARK) as usize] {
                        IndexedCondition::Rest(which) => which,
                        // The next character must be a word character, or must not be one.
                        IndexedCondition::Boundary(wanted) => u32::from(word == wanted),
                    };
                    let mut next = Thread { state: e.to, ..thread.clone() };
                    if !self.universal[which as usize][0] && !next.obligations.contains(&(which, 0))
                    {
                        next.obligations.push((which, 0));
                        next.obligations.sort_unstable();
                    }
                    pending.push(next);
                }
            }
            out.push(thread);
            if out.len() > MAX_THREADS {
                return Err(TooLarge::States { limit: self.limit });
            }
        }
        out.sort_unstable();
        Ok(out)
    }
}

/// The automaton of texts that begin with a word character.
fn word_start_dfa() -> Dfa {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let behind = b.state(true);
    WORD.iter().for_each(|&(lo, hi)| b.edge(start, lo, hi, behind));
    SCALARS.iter().for_each(|&(lo, hi)| b.edge(behind, lo, hi, behind));
    b.finish()
}

/// Whether every text is accepted from a state.
fn is_universal(dfa: &Dfa, state: u32) -> bool {
    dfa.is_final(state)
        && dfa.edges(state).iter().all(|e| e.to == state)
        && dfa.edges(state).iter().map(|e| (e.lo, e.hi)).eq(SCALARS)
}
