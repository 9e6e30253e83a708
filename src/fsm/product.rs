//! Boolean operations on languages by the product construction.

use std::collections::hash_map::Entry;
use std::rc::Rc;

use super::alphabet::Alphabet;
use super::dfa::push_merged;
use super::{Csr, Dfa, Edge, TooLarge};
use crate::fuel;
use crate::hash::HashMap;

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

/// Pairs of states with their numbers, and a flag by number; see [`Dfa::common_prefix_pairs`].
type CommonPrefixPairs = (HashMap<(u32, u32), u32>, Vec<bool>);

/// The state after an automaton has rejected.
const DEAD: u32 = u32::MAX;

impl Dfa {
    /// Combines two languages. Minimal. Fails past `limit` product states.
    pub fn combine(&self, other: &Dfa, how: Combine, limit: usize) -> Result<Dfa, TooLarge> {
        let mut ids: HashMap<(u32, u32), u32> = HashMap::default();
        let mut order = vec![(0u32, 0u32)];
        ids.insert((0, 0), 0);
        let mut out = Dfa::from_parts(vec![0], Vec::new(), Vec::new());
        let mut cuts = Vec::new();
        let mut current = 0;
        while current < order.len() {
            let (a, b) = order[current];
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
            fuel::spend(1 + cuts.len())?;
            cuts.sort_unstable();
            cuts.dedup();
            let begin = out.edges.len();
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
                let to = match ids.entry((na, nb)) {
                    Entry::Occupied(e) => *e.get(),
                    Entry::Vacant(e) => {
                        if order.len() >= limit {
                            return Err(TooLarge::States { limit });
                        }
                        order.push((na, nb));
                        *e.insert((order.len() - 1) as u32)
                    }
                };
                push_merged(&mut out.edges, begin, Edge { lo, hi, to });
            }
            out.offsets.push(out.edges.len() as u32);
            current += 1;
        }
        Ok(out.minimize())
    }

    /// The words over `alphabet` (sorted disjoint ranges) that are in every language paired with
    /// `true` and in none paired with `false`. Minimal. Fails past `limit` product states. The
    /// product of all parts is built at once, so no intermediate result can grow large.
    pub fn all_of(
        parts: &[(&Dfa, bool)],
        alphabet: &[(u32, u32)],
        limit: usize,
    ) -> Result<Dfa, TooLarge> {
        let all = Dfa::counted(alphabet, 0, None, limit)?;
        let mut parts: Vec<(&Dfa, bool)> = parts.to_vec();
        if parts.iter().all(|(_, within)| !within) {
            parts.push((&all, true));
        }
        parts.sort_by_key(|(dfa, within)| (!within, dfa.len()));
        let Some(mut tuples) = Tuples::new(&parts, limit)? else {
            let mut joined = parts[0].0.clone();
            for (dfa, within) in &parts[1..] {
                joined = joined.combine(
                    dfa,
                    if *within { Combine::And } else { Combine::Minus },
                    limit,
                )?;
            }
            return Ok(joined);
        };
        tuples.dfa.finals = tuples
            .states
            .chunks(parts.len())
            .map(|tuple| {
                parts
                    .iter()
                    .zip(tuple)
                    .all(|((dfa, within), &state)| *within == accepts_at(dfa, state))
            })
            .collect();
        Ok(tuples.dfa.minimize())
    }

    /// Partitions this language by membership in the `others`: one class for each combination of
    /// answers that some word has, with that combination. Classes in the first of the others come
    /// first. An automaton is built only when asked for. Fails past `limit` product states.
    pub fn split(
        &self,
        others: &[&Dfa],
        limit: usize,
    ) -> Result<Vec<(Vec<bool>, LanguageClass)>, TooLarge> {
        let mut parts = vec![(self, true)];
        // The others do not restrict the words.
        parts.extend(others.iter().map(|dfa| (*dfa, false)));
        let Some(tuples) = Tuples::new(&parts, limit)? else {
            let mut classes = vec![(Vec::new(), self.clone())];
            for other in others {
                let mut next = Vec::new();
                for (answers, words) in classes {
                    for (answer, how) in [(true, Combine::And), (false, Combine::Minus)] {
                        let part = words.combine(other, how, limit)?;
                        if !part.is_empty() {
                            next.push(([&answers[..], &[answer]].concat(), part));
                        }
                    }
                }
                classes = next;
            }
            return Ok(classes
                .into_iter()
                .map(|(answers, dfa)| (answers, LanguageClass(Rc::new(dfa), None)))
                .collect());
        };
        let mut numbers: HashMap<Vec<bool>, u32> = HashMap::default();
        let mut class_of = Vec::with_capacity(tuples.dfa.offsets.len());
        for tuple in tuples.states.chunks(parts.len()) {
            let next = numbers.len() as u32;
            class_of.push(if accepts_at(self, tuple[0]) {
                let answers = others
                    .iter()
                    .zip(&tuple[1..])
                    .map(|(dfa, &state)| accepts_at(dfa, state))
                    .collect();
                *numbers.entry(answers).or_insert(next)
            } else {
                u32::MAX
            });
        }
        let (dfa, class_of): (Rc<Dfa>, Rc<[u32]>) = (tuples.dfa.into(), class_of.into());
        let mut classes: Vec<(Vec<bool>, u32)> = numbers.into_iter().collect();
        classes.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        let class = |number| LanguageClass(dfa.clone(), Some((class_of.clone(), number)));
        Ok(classes.into_iter().map(|(answers, number)| (answers, class(number))).collect())
    }

    /// Words of `min..=max` symbols. Trimmed, not minimal: states count the symbols read, as far as
    /// that matters. Fails past `limit` states.
    pub fn of_length(&self, min: u32, max: Option<u32>, limit: usize) -> Result<Dfa, TooLarge> {
        let mut ids: HashMap<(u32, u32), u32> = HashMap::default();
        let mut order = vec![(0u32, 0u32)];
        ids.insert((0, 0), 0);
        let mut out = Dfa::from_parts(vec![0], Vec::new(), Vec::new());
        let mut current = 0;
        while current < order.len() {
            let (state, read) = order[current];
            fuel::spend(1 + self.edges(state).len())?;
            out.finals.push(self.is_final(state) && read >= min);
            let next = match max {
                Some(max) if read >= max => None,
                Some(_) => Some(read + 1),
                None => Some((read + 1).min(min)),
            };
            for e in next.map_or(&[][..], |_| self.edges(state)) {
                let key = (e.to, next.unwrap_or(read));
                let to = match ids.entry(key) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        if order.len() >= limit {
                            return Err(TooLarge::States { limit });
                        }
                        order.push(key);
                        *new.insert((order.len() - 1) as u32)
                    }
                };
                out.edges.push(Edge { to, ..*e });
            }
            out.offsets.push(out.edges.len() as u32);
            current += 1;
        }
        Ok(out.trim())
    }

    /// The pairs of states that a common prefix of this language and `words` leads to, numbered,
    /// and by number whether a common word can be read from there. Fails past `limit` pairs.
    fn common_prefix_pairs(
        &self,
        words: &Dfa,
        limit: usize,
    ) -> Result<CommonPrefixPairs, TooLarge> {
        let mut ids: HashMap<(u32, u32), u32> = HashMap::default();
        let mut pairs = vec![(0u32, 0u32)];
        ids.insert((0, 0), 0);
        let mut steps: Vec<(u32, u32)> = Vec::new();
        let mut current = 0;
        while current < pairs.len() {
            let (a, b) = pairs[current];
            fuel::spend(1 + words.edges(b).len())?;
            let mut own_edges = self.edges(a);
            for e in words.edges(b) {
                own_edges = &own_edges[own_edges.partition_point(|mine| mine.hi < e.lo)..];
                for mine in own_edges.iter().take_while(|mine| mine.lo <= e.hi) {
                    let next = pairs.len() as u32;
                    let to = *ids.entry((mine.to, e.to)).or_insert(next);
                    if to == next {
                        if pairs.len() >= limit {
                            return Err(TooLarge::States { limit });
                        }
                        pairs.push((mine.to, e.to));
                    }
                    steps.push((to, current as u32));
                }
            }
            current += 1;
        }
        let common = |&pair: &u32| {
            let (a, b) = pairs[pair as usize];
            self.is_final(a) && words.is_final(b)
        };
        let leads_to_common = Csr::new(pairs.len(), || steps.iter().copied())
            .reached((0..pairs.len() as u32).filter(common));
        Ok((ids, leads_to_common))
    }

    /// This language without finitely many words, given as an acyclic automaton. Trimmed; minimal
    /// or nearly so if `self` is: after what is no prefix of an excluded word, states are those of
    /// `self`. Fails past `limit` states.
    pub fn without(&self, words: &Dfa, limit: usize) -> Result<Dfa, TooLarge> {
        let (ids, leads_to_common) = self.common_prefix_pairs(words, limit)?;
        // The second state is needed only while an excluded word may still be read.
        let state = |a: u32, b: u32| match ids.get(&(a, b)) {
            Some(&pair) if b != DEAD && leads_to_common[pair as usize] => (a, b),
            _ => (a, DEAD),
        };
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::default();
        let mut order = vec![state(0, 0)];
        numbers.insert(order[0], 0);
        let mut out = Dfa::from_parts(vec![0], Vec::new(), Vec::new());
        let mut current = 0;
        while current < order.len() {
            let (a, b) = order[current];
            fuel::spend(1 + self.edges(a).len())?;
            out.finals.push(self.is_final(a) && (b == DEAD || !words.is_final(b)));
            let begin = out.edges.len();
            let word_edges = if b == DEAD { &[][..] } else { words.edges(b) };
            for e in self.edges(a) {
                let mut lo = e.lo;
                let first = word_edges.partition_point(|other| other.hi < e.lo);
                // Intervals between edges of `words` lead where this edge leads; intervals under
                // them lead to pairs.
                let mut push_edge = |lo: u32, hi: u32, to: (u32, u32)| {
                    let next = order.len() as u32;
                    let id = *numbers.entry(to).or_insert(next);
                    if id == next {
                        order.push(to);
                    }
                    push_merged(&mut out.edges, begin, Edge { lo, hi, to: id });
                };
                let mut has_rest = true;
                for other in word_edges[first..].iter().take_while(|other| other.lo <= e.hi) {
                    if other.lo > lo {
                        push_edge(lo, other.lo - 1, (e.to, DEAD));
                    }
                    push_edge(other.lo.max(lo), other.hi.min(e.hi), state(e.to, other.to));
                    has_rest = other.hi < e.hi;
                    lo = other.hi.saturating_add(1);
                }
                if has_rest {
                    push_edge(lo, e.hi, (e.to, DEAD));
                }
            }
            if order.len() > limit {
                return Err(TooLarge::States { limit });
            }
            out.offsets.push(out.edges.len() as u32);
            current += 1;
        }
        Ok(out.trim())
    }

    /// Words over `alphabet` (sorted disjoint ranges) that are not in the language. Minimal. Fails
    /// past `limit` states.
    pub fn complement(&self, alphabet: &[(u32, u32)], limit: usize) -> Result<Dfa, TooLarge> {
        Dfa::counted(alphabet, 0, None, limit)?.combine(self, Combine::Minus, limit)
    }

    /// As [`Dfa::complement`], for a minimal automaton whose symbols all are in `alphabet`, whose
    /// ranges must not touch. Final states become non-final and vice versa, and missing edges lead
    /// to one new state. Minimal. Fails past `limit` states. Cost: linear.
    pub fn complement_of_minimal(
        &self,
        alphabet: &[(u32, u32)],
        limit: usize,
    ) -> Result<Dfa, TooLarge> {
        if self.is_empty() {
            return Dfa::counted(alphabet, 0, None, limit);
        }
        // The state from which every word is accepted; a minimal automaton has at most one.
        let all = (0..self.len() as u32).find(|&state| {
            let edges = self.edges(state);
            let back = edges.iter().all(|e| e.to == state);
            self.is_final(state)
                && back
                && edges.iter().map(|e| (e.lo, e.hi)).eq(alphabet.iter().copied())
        });
        if all == Some(0) {
            return Ok(Dfa::empty_language());
        }
        let mut numbers = vec![DEAD; self.len()];
        numbers[0] = 0;
        // The new state has the number after all others.
        let mut order = vec![0u32];
        let mut added = None;
        let mut out = Dfa::from_parts(vec![0], Vec::with_capacity(self.edges.len()), Vec::new());
        let mut current = 0;
        while current < order.len() {
            let state = order[current];
            let is_added = state as usize == self.len();
            out.finals.push(is_added || !self.is_final(state));
            let begin = out.edges.len();
            let mut own_edges = if is_added { &[][..] } else { self.edges(state) };
            fuel::spend(alphabet.len() + own_edges.len())?;
            for &(first, last) in alphabet {
                let mut lo = first;
                loop {
                    let (hi, to) = match own_edges.first() {
                        Some(edge) if edge.lo <= lo => (edge.hi, Some(edge.to)),
                        Some(edge) if edge.lo <= last => (edge.lo - 1, None),
                        _ => (last, None),
                    };
                    if to.is_some() {
                        own_edges = &own_edges[1..];
                    }
                    let number = match to {
                        Some(to) => &mut numbers[to as usize],
                        None => added.get_or_insert(DEAD),
                    };
                    if to.is_none() || to != all {
                        if *number == DEAD {
                            *number = order.len() as u32;
                            order.push(to.unwrap_or(self.len() as u32));
                        }
                        push_merged(&mut out.edges, begin, Edge { lo, hi, to: *number });
                    }
                    if hi >= last {
                        break;
                    }
                    lo = hi + 1;
                }
            }
            if order.len() > limit {
                return Err(TooLarge::States { limit });
            }
            out.offsets.push(out.edges.len() as u32);
            current += 1;
        }
        Ok(out)
    }
}

/// One class of a partition by membership in other languages; see [`Dfa::split`].
#[derive(Clone, Debug)]
pub struct LanguageClass(Rc<Dfa>, Option<(Rc<[u32]>, u32)>);

impl LanguageClass {
    /// Its words. Minimal.
    pub fn automaton(&self) -> Dfa {
        self.unminimized().minimize()
    }

    /// Whether it has infinitely many words. Cost: linear.
    pub fn is_infinite(&self) -> bool {
        self.unminimized().trim().is_infinite()
    }

    /// Its words, as the product automaton with the final states of this class.
    fn unminimized(&self) -> Dfa {
        let Some((class_of, class)) = &self.1 else { return (*self.0).clone() };
        let finals = class_of.iter().map(|class_of_state| class_of_state == class).collect();
        Dfa::from_parts(self.0.offsets.clone(), self.0.edges.clone(), finals)
    }
}

/// Whether a word may end in a state; `false` for the dead one.
fn accepts_at(dfa: &Dfa, state: u32) -> bool {
    state != DEAD && dfa.is_final(state)
}

/// Interned tuples of states.
enum TupleIds {
    /// By the tuple as one number in mixed radix: the place value of each automaton, and the tuples
    /// met. A state's digit is its number plus 1, and 0 if dead.
    Packed(Vec<u128>, HashMap<u128, u32>),
    /// By the tuple itself, where packed numbers do not fit 128 bits.
    Whole(HashMap<Box<[u32]>, u32>),
}

impl TupleIds {
    /// An empty set for tuples of these automata.
    fn new(automata: &[&Dfa]) -> TupleIds {
        let mut tuples = Some(1u128);
        let mut scale = |dfa: &&Dfa| {
            let scale = tuples?;
            tuples = scale.checked_mul(dfa.len() as u128 + 1);
            tuples.map(|_| scale)
        };
        match automata.iter().map(&mut scale).collect() {
            Some(scales) => TupleIds::Packed(scales, HashMap::default()),
            None => TupleIds::Whole(HashMap::default()),
        }
    }

    /// The number of a tuple; a new one gets `fresh()`. `None` if that is `None`.
    fn id(&mut self, tuple: &[u32], fresh: impl FnOnce() -> Option<u32>) -> Option<u32> {
        match self {
            TupleIds::Packed(scales, known) => {
                let states = tuple.iter().zip(&*scales);
                let number =
                    states.map(|(&state, scale)| u128::from(state.wrapping_add(1)) * scale).sum();
                Some(match known.entry(number) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => *new.insert(fresh()?),
                })
            }
            TupleIds::Whole(known) => match known.get(tuple) {
                Some(&known) => Some(known),
                None => {
                    let id = fresh()?;
                    known.insert(tuple.into(), id);
                    Some(id)
                }
            },
        }
    }
}

/// The product of several automata.
struct Tuples {
    /// The product automaton, without final states.
    dfa: Dfa,
    /// The tuples, state by state.
    states: Vec<u32>,
}

impl Tuples {
    /// The product of automata. A part's flag says that words end where it dies. `None` if the
    /// tables would be too large.
    fn new(parts: &[(&Dfa, bool)], limit: usize) -> Result<Option<Tuples>, TooLarge> {
        /// Most entries of the tables of transitions by symbol class.
        const MAX_TABLE: usize = 1 << 22;
        let automata: Vec<&Dfa> = parts.iter().map(|(dfa, _)| *dfa).collect();
        let symbols = Alphabet::new(&automata);
        let classes = symbols.classes();
        if automata.iter().map(|dfa| dfa.len()).sum::<usize>().saturating_mul(classes) > MAX_TABLE {
            return Ok(None);
        }
        let tables: Vec<Vec<u32>> = automata
            .iter()
            .map(|dfa| {
                let mut table = vec![DEAD; dfa.len() * classes];
                symbols.edges(dfa, |state, class, to| {
                    table[state as usize * classes + class as usize] = to
                });
                table
            })
            .collect();
        fuel::check()?;
        let width = parts.len();
        // A state takes as much memory as there are automata.
        let limit = limit.min(MAX_TABLE / width.max(1));
        let mut ids = TupleIds::new(&automata);
        let mut states = vec![0u32; width];
        ids.id(&states, || Some(0));
        let mut dfa = Dfa::from_parts(vec![0], Vec::new(), Vec::new());
        let mut targets = vec![DEAD; classes];
        let mut next = vec![0u32; width];
        let mut offset = 0;
        while offset < states.len() {
            fuel::spend(classes * width)?;
            'classes: for (class, target) in targets.iter_mut().enumerate() {
                *target = DEAD;
                for (i, table) in tables.iter().enumerate() {
                    let s = states[offset + i];
                    next[i] = if s == DEAD { DEAD } else { table[s as usize * classes + class] };
                    if next[i] == DEAD && parts[i].1 {
                        continue 'classes;
                    }
                }
                let fresh = || {
                    let id = states.len() / width;
                    states.extend_from_slice(&next);
                    (id < limit).then_some(id as u32)
                };
                *target = ids.id(&next, fresh).ok_or(TooLarge::States { limit })?;
            }
            let begin = dfa.edges.len();
            for (interval, &lo) in symbols.starts.iter().enumerate() {
                let to = symbols.class(interval).map_or(DEAD, |class| targets[class as usize]);
                if to != DEAD {
                    push_merged(&mut dfa.edges, begin, Edge { lo, hi: symbols.end(interval), to });
                }
            }
            dfa.offsets.push(dfa.edges.len() as u32);
            offset += width;
        }
        Ok(Some(Tuples { dfa, states }))
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
