//! Zero-width assertions: resolves the look-around of an automaton.
//!
//! The automaton of a pattern has an edge with a mark symbol for each assertion. A text matches if
//! the automaton accepts it with marks inserted, and the assertion of every mark holds at its
//! position. The body of an assertion is an automaton with marks of its own.
//!
//! Look-ahead makes this an alternating automaton: a thread is a conjunction of obligations on the
//! rest of the text, positive and negative. Look-after is a run over the text from its beginning,
//! beside the run of the pattern; its assertion holds where the run can end. Both are made
//! deterministic by one subset construction, over lists of sets of threads.

use super::SCALARS;
use crate::fsm::{Dfa, DfaBuilder, TooLarge, symbol_classes};
use crate::fuel;
use crate::hash::{HashSet, IndexSet};

/// Symbol of the first mark. Marks use the surrogates, which occur in no text.
pub(super) const FIRST_MARK: u32 = 0xD800;
/// Maximum number of different marks.
pub(super) const MAX_MARKS: usize = 256;
/// Maximum number of steps: states times distinguishable symbols.
const MAX_STEPS: usize = 1 << 22;
/// Maximum number of threads in a state.
const MAX_THREADS: usize = 1 << 10;

/// Fuel of one step of one automaton.
const STEP_FUEL: usize = 4;

/// The condition of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkCondition {
    /// The automaton of the assertion's body, by its number in the list.
    pub(super) body: u32,
    /// Whether the assertion is negated.
    pub(super) negated: bool,
}

/// An automaton with marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkedDfa {
    /// The automaton.
    pub(super) dfa: Dfa,
    /// The condition of each mark. Bodies come before the automata that refer to them.
    pub(super) conditions: Vec<MarkCondition>,
    /// Whether it reads the text before a position, from the beginning; otherwise the text after
    /// it, to the end.
    pub(super) is_lookbehind: bool,
}

/// What must hold for the rest of the text: that an automaton accepts it from a state, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Obligation {
    automaton: u32,
    state: u32,
    accepts: bool,
}

impl Obligation {
    /// Whether no text meets both.
    fn is_contrary(self, other: Obligation) -> bool {
        Obligation { accepts: !self.accepts, ..self } == other
    }
}

/// A conjunction of obligations, sorted.
type Thread = Vec<Obligation>;

/// What is known about every text that is read from a state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Residual {
    /// All are accepted.
    All,
    /// None is accepted.
    None,
    /// Some may be accepted.
    Some,
}

/// A thread whose closure is being made: obligations whose marks were passed, and the others.
type OpenThread = (Thread, Thread);

/// Builds the minimal automaton of the texts, without marks, that the last automaton accepts. Fails
/// past `limit` states.
pub(super) fn resolve(automata: &[MarkedDfa], limit: usize) -> Result<Dfa, TooLarge> {
    let dfas: Vec<&Dfa> = automata.iter().map(|marked| &marked.dfa).collect();
    let runs =
        (0..automata.len()).filter(|&i| automata[i].is_lookbehind || i + 1 == automata.len());
    let each_state = |dfa: &Dfa| 0..dfa.len() as u32;
    Resolver {
        automata,
        residuals: dfas
            .iter()
            .map(|dfa| each_state(dfa).map(|state| residual(dfa, state)).collect())
            .collect(),
        marks: automata
            .iter()
            .map(|marked| each_state(&marked.dfa).map(|state| marked.marks(state)).collect())
            .collect(),
        runs: runs.map(|i| i as u32).collect(),
        symbols: symbol_classes(&dfas, &SCALARS),
        limit,
    }
    .run()
}

impl MarkedDfa {
    /// The marks that can be passed in a state: their conditions, and the states after them.
    fn marks(&self, state: u32) -> Vec<(MarkCondition, u32)> {
        let end = FIRST_MARK + self.conditions.len() as u32;
        let marks = self.dfa.edges(state).iter().flat_map(|e| {
            (e.lo.max(FIRST_MARK)..end.min(e.hi.saturating_add(1))).map(|mark| (mark, e.to))
        });
        marks.map(|(mark, to)| (self.conditions[(mark - FIRST_MARK) as usize], to)).collect()
    }
}

/// The subset construction.
struct Resolver<'a> {
    automata: &'a [MarkedDfa],
    /// By automaton and state.
    residuals: Vec<Vec<Residual>>,
    /// By automaton and state: see [`MarkedDfa::marks`].
    marks: Vec<Vec<Vec<(MarkCondition, u32)>>>,
    /// The automata that read the text from its beginning. The last one is the pattern's.
    runs: Vec<u32>,
    /// Classes of symbols that no automaton distinguishes.
    symbols: Vec<Vec<(u32, u32)>>,
    limit: usize,
}

impl Resolver<'_> {
    /// Builds the automaton.
    fn run(&self) -> Result<Dfa, TooLarge> {
        let mut b = DfaBuilder::new();
        let mut states: IndexSet<Vec<Vec<Thread>>> = IndexSet::default();
        let begin = |&automaton| vec![vec![Obligation { automaton, state: 0, accepts: true }]];
        states.insert(self.closure(self.runs.iter().map(begin).collect())?);
        let mut steps = 0usize;
        let edges: usize = self.symbols.iter().map(Vec::len).sum();
        while let Some(runs) = states.get_index(b.len()).cloned() {
            let from = b.state(self.is_final(&runs));
            steps += self.symbols.len();
            let size: usize = runs.iter().flatten().map(|thread| 1 + thread.len()).sum();
            fuel::spend(self.symbols.len() * (1 + STEP_FUEL * size) + edges)?;
            if steps > MAX_STEPS {
                return Err(self.too_large());
            }
            for class in &self.symbols {
                let step = |threads: &Vec<Thread>| -> Vec<Thread> {
                    threads.iter().filter_map(|thread| self.step(thread, class[0].0)).collect()
                };
                let next = self.closure(runs.iter().map(step).collect())?;
                if next.last().is_none_or(Vec::is_empty) {
                    continue;
                }
                let to = states.insert_full(next).0;
                if states.len() > self.limit {
                    return Err(self.too_large());
                }
                class.iter().for_each(|&(lo, hi)| b.edge(from, lo, hi, to as u32));
            }
        }
        Ok(b.finish().minimize())
    }

    /// The error of a construction that grows past the limit.
    fn too_large(&self) -> TooLarge {
        TooLarge::States { limit: self.limit }
    }

    /// Whether the text may end here.
    fn is_final(&self, runs: &[Vec<Thread>]) -> bool {
        let holds =
            |o: &Obligation| self.automata[o.automaton as usize].dfa.is_final(o.state) == o.accepts;
        runs.last().is_some_and(|threads| threads.iter().any(|thread| thread.iter().all(holds)))
    }

    /// The thread after a symbol; `None` if it dies.
    fn step(&self, thread: &Thread, symbol: u32) -> Option<Thread> {
        let mut next = Thread::with_capacity(thread.len());
        for o in thread {
            match self.automata[o.automaton as usize].dfa.next(o.state, symbol) {
                Some(state) => next.push(Obligation { state, ..*o }),
                None if o.accepts => return None,
                None => {}
            }
        }
        Some(next)
    }

    /// The closure of all runs over marks at the current position.
    fn closure(&self, runs: Vec<Vec<Thread>>) -> Result<Vec<Vec<Thread>>, TooLarge> {
        let mut closed: Vec<Vec<Thread>> = Vec::with_capacity(runs.len());
        for threads in runs {
            let run = self.close(threads, &closed)?;
            if closed.len() + 1 == self.runs.len() && (run.is_empty() || run[0].is_empty()) {
                // The text is decided: the other runs no longer matter.
                closed.iter_mut().for_each(Vec::clear);
            }
            closed.push(run);
        }
        Ok(closed)
    }

    /// The closure of the threads of one run, without threads that others subsume. `closed` has the
    /// runs before it.
    fn close(&self, threads: Vec<Thread>, closed: &[Vec<Thread>]) -> Result<Vec<Thread>, TooLarge> {
        let mut out: Vec<Thread> = Vec::new();
        let mut pending: Vec<OpenThread> = Vec::new();
        for mut thread in threads {
            if thread.iter().any(|o| !self.marks[o.automaton as usize][o.state as usize].is_empty())
            {
                pending.push((Thread::new(), thread));
            } else if !thread.iter().any(|o| self.residual(o) == Residual::None) {
                thread.retain(|o| self.residual(o) == Residual::Some);
                let thread = sorted(thread);
                if !thread.windows(2).any(|pair| pair[0].is_contrary(pair[1])) {
                    self.insert(&mut out, thread)?;
                }
            }
        }
        let mut seen: HashSet<OpenThread> = HashSet::default();
        while let Some((mut done, mut open)) = pending.pop() {
            fuel::spend(2 + done.len() + open.len())?;
            let Some(o) = open.pop() else {
                self.insert(&mut out, sorted(done))?;
                continue;
            };
            let residual = self.residual(&o);
            if residual == Residual::None || done.iter().any(|other| other.is_contrary(o)) {
                continue;
            }
            if residual == Residual::All || done.contains(&o) {
                pending.push((done, open));
            } else if self.marks[o.automaton as usize][o.state as usize].is_empty() {
                done.push(o);
                pending.push((done, open));
            } else {
                let next = self.pass_marks(o, (done, open), closed)?;
                pending.extend(next.into_iter().filter(|next| seen.insert(next.clone())));
            }
            if pending.len() > MAX_THREADS {
                return Err(self.too_large());
            }
        }
        out.sort_unstable();
        Ok(out)
    }

    /// How many texts meet an obligation.
    fn residual(&self, o: &Obligation) -> Residual {
        match self.residuals[o.automaton as usize][o.state as usize] {
            Residual::All if !o.accepts => Residual::None,
            Residual::None if !o.accepts => Residual::All,
            residual => residual,
        }
    }

    /// Inserts a thread unless another one subsumes it; removes those that it subsumes.
    fn insert(&self, out: &mut Vec<Thread>, thread: Thread) -> Result<(), TooLarge> {
        let within = |a: &Thread, b: &Thread| a.iter().all(|o| b.binary_search(o).is_ok());
        fuel::spend(out.len() * (1 + thread.len()))?;
        if !out.iter().any(|other| within(other, &thread)) {
            out.retain(|other| !within(&thread, other));
            out.push(thread);
        }
        if out.len() > MAX_THREADS { Err(self.too_large()) } else { Ok(()) }
    }

    /// Replaces an obligation by the obligations before and after the marks in its state. The text
    /// is accepted if it is without passing a mark or after one whose condition holds.
    fn pass_marks(
        &self,
        o: Obligation,
        (done, open): OpenThread,
        closed: &[Vec<Thread>],
    ) -> Result<Vec<OpenThread>, TooLarge> {
        let unmarked = [&done[..], &[o]].concat();
        let mut ways_of_marks = Vec::new();
        for &(condition, to) in &self.marks[o.automaton as usize][o.state as usize] {
            let obligation = Obligation { state: to, ..o };
            let mut ways = self.condition(condition, o.accepts, closed)?;
            if o.accepts {
                ways.iter_mut().for_each(|way| way.push(obligation));
            } else {
                ways.push(vec![obligation]);
            }
            ways_of_marks.push(ways);
        }
        let with = |done: &Thread, way: &Thread| {
            (sorted(done.clone()), sorted([&open[..], &way[..]].concat()))
        };
        Ok(if o.accepts {
            let passed = ways_of_marks.iter().flatten().map(|way| with(&done, way));
            passed.chain([with(&unmarked, &Thread::new())]).collect()
        } else {
            self.all_of(&ways_of_marks)?.iter().map(|way| with(&unmarked, way)).collect()
        })
    }

    /// The ways in which a condition holds at the current position, or does not: obligations of
    /// which all must be met.
    fn condition(
        &self,
        MarkCondition { body, negated }: MarkCondition,
        holds: bool,
        closed: &[Vec<Thread>],
    ) -> Result<Vec<Thread>, TooLarge> {
        let accepts = holds != negated;
        let MarkedDfa { dfa, is_lookbehind, .. } = &self.automata[body as usize];
        if !is_lookbehind {
            return Ok(vec![vec![Obligation { automaton: body, state: 0, accepts }]]);
        }
        // The run of the body can end in any of its threads whose other obligations are met.
        let run = self.runs.iter().position(|&run| run == body).and_then(|i| closed.get(i));
        let mut ends: Vec<Thread> = Vec::new();
        for thread in run.into_iter().flatten() {
            let (own, others): (Thread, Thread) = thread.iter().partition(|o| o.automaton == body);
            if own.iter().all(|o| dfa.is_final(o.state)) {
                ends.push(others);
            }
        }
        if accepts {
            return Ok(ends);
        }
        let failed = |o: &Obligation| vec![Obligation { accepts: !o.accepts, ..*o }];
        let ways: Vec<Vec<Thread>> =
            ends.iter().map(|end| end.iter().map(failed).collect()).collect();
        self.all_of(&ways)
    }

    /// The ways to go one of the ways of each list.
    fn all_of(&self, lists: &[Vec<Thread>]) -> Result<Vec<Thread>, TooLarge> {
        let mut out = vec![Thread::new()];
        for ways in lists {
            fuel::spend(out.len() * ways.len())?;
            if out.len() * ways.len() > MAX_THREADS {
                return Err(self.too_large());
            }
            let pairs = out.iter().flat_map(|a| ways.iter().map(move |b| (a, b)));
            out = pairs.map(|(a, b)| [&a[..], &b[..]].concat()).collect();
        }
        Ok(out)
    }
}

/// A thread in the order that makes equal threads equal lists.
fn sorted(mut thread: Thread) -> Thread {
    thread.sort_unstable();
    thread.dedup();
    thread
}

/// What is known about the texts that are read from a state.
fn residual(dfa: &Dfa, state: u32) -> Residual {
    let edges = dfa.edges(state);
    let loops =
        |&(lo, hi): &(u32, u32)| edges.iter().any(|e| e.to == state && e.lo <= lo && hi <= e.hi);
    match dfa.is_final(state) {
        true if SCALARS.iter().all(loops) => Residual::All,
        false if edges.is_empty() => Residual::None,
        _ => Residual::Some,
    }
}
