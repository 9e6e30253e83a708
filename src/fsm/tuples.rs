//! Products of several automata at once: intersections, and partitions of a language.

use std::collections::hash_map::Entry;
use std::rc::Rc;

use super::alphabet::Alphabet;
use super::product::{Combine, DEAD};
use super::{Dfa, Edge, TooLarge};
use crate::fuel;
use crate::hash::HashMap;

impl Dfa {
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
        let Some(ClassifiedLanguage { dfa, classes, class_of }) = self.classify(others, limit)?
        else {
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
        let (dfa, class_of): (Rc<Dfa>, Rc<[Option<usize>]>) = (dfa.into(), class_of.into());
        let class = |number| LanguageClass(dfa.clone(), Some((class_of.clone(), number)));
        let mut classes: Vec<(Vec<bool>, LanguageClass)> =
            classes.into_iter().enumerate().map(|(i, answers)| (answers, class(i))).collect();
        classes.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        Ok(classes)
    }

    /// As [`Dfa::split`], as one automaton of this language. `None` if its tables would be too
    /// large.
    pub(crate) fn classify(
        &self,
        others: &[&Dfa],
        limit: usize,
    ) -> Result<Option<ClassifiedLanguage>, TooLarge> {
        let mut parts = vec![(self, true)];
        // The others do not restrict the words.
        parts.extend(others.iter().map(|dfa| (*dfa, false)));
        let Some(tuples) = Tuples::new(&parts, limit)? else { return Ok(None) };
        let mut numbers: HashMap<Vec<bool>, usize> = HashMap::default();
        let mut classes = Vec::new();
        let class_of = tuples.states.chunks(parts.len()).map(|tuple| {
            let answers = || others.iter().zip(&tuple[1..]).map(|(dfa, &s)| accepts_at(dfa, s));
            accepts_at(self, tuple[0]).then(|| {
                let answers: Vec<bool> = answers().collect();
                *numbers.entry(answers).or_insert_with_key(|answers| {
                    classes.push(answers.clone());
                    classes.len() - 1
                })
            })
        });
        let class_of: Vec<Option<usize>> = class_of.collect();
        Ok(Some(ClassifiedLanguage { dfa: tuples.dfa, classes, class_of }))
    }
}

/// A language as an automaton whose states tell in which other languages the words are that end
/// there.
pub(crate) struct ClassifiedLanguage {
    /// The automaton, without final states.
    pub(crate) dfa: Dfa,
    /// The classes: whether their words are in each of the other languages.
    pub(crate) classes: Vec<Vec<bool>>,
    /// By state: the class of the words that end there.
    pub(crate) class_of: Vec<Option<usize>>,
}

/// One class of a partition by membership in other languages; see [`Dfa::split`].
#[derive(Clone, Debug)]
pub struct LanguageClass(Rc<Dfa>, Option<(Rc<[Option<usize>]>, usize)>);

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
        let finals = class_of.iter().map(|of_state| *of_state == Some(*class)).collect();
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
        let mut dfa = Dfa::unfinished();
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
            for (interval, &lo) in symbols.starts.iter().enumerate() {
                let to = symbols.class(interval).map_or(DEAD, |class| targets[class as usize]);
                if to != DEAD {
                    dfa.push_edge(Edge { lo, hi: symbols.end(interval), to });
                }
            }
            dfa.end_state(false);
            offset += width;
        }
        Ok(Some(Tuples { dfa, states }))
    }
}
