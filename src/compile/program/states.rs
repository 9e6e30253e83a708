//! The states of rules' automata, made as they are met: each is a set of states of what its rule was made of.

use std::hash::Hasher;
use std::sync::Arc;

use super::super::members::MemberStates;
use super::super::residuals;
use super::super::units::Unit;
use super::super::{Behind, Mark, NO_BLOCK, RuleFacts};
use super::{Instance, Program, Source, Span, State, UNKNOWN};
use crate::fuel;
use crate::hash::hasher;

/// Fuel of a state, beside one unit for each member of its set.
const STATE: usize = 4;

fn hash_set(instance: u32, set: &[u32]) -> u64 {
    let mut hasher = hasher();
    hasher.write_u32(instance);
    set.iter().for_each(|&s| hasher.write_u32(s));
    hasher.finish()
}

impl Program {
    pub(super) fn source(&mut self, unit: Arc<Unit>) -> Source {
        if unit.counts.is_some() {
            Source::Counted(unit)
        } else if !unit.members.is_empty() {
            self.members.push(MemberStates::new(&unit, self.is_shape));
            Source::Members(unit, self.members.len() as u32 - 1)
        } else {
            Source::Sets(unit, 0)
        }
    }

    pub(super) fn instance(&mut self, source: Source, (rule, from): (u32, u32), block: u32) -> u32 {
        let left = match &source {
            Source::Dfa(_) | Source::Dispatch(_) | Source::Counted(_) => u32::MAX,
            Source::Sets(unit, part) => unit.part(*part).nfa.len() as u32 * 4 + 256,
            // More with every set that is met.
            Source::Members(..) => 256,
        };
        let merged = match &source {
            Source::Dfa(dfa) => self.says_nothing_of(rule) && residuals::of(dfa).is_some(),
            _ => false,
        };
        self.instances.push(Instance { source, rule, block, from, merged, left });
        (self.instances.len() - 1) as u32
    }

    /// Whether a rule is its language and nothing else.
    fn says_nothing_of(&self, rule: u32) -> bool {
        let (compiled, from) = self.home(rule);
        let plain = compiled
            .parsed
            .rules
            .get((rule - from) as usize)
            .is_some_and(|rule| rule.attributes.is_empty());
        plain && self.compiled.keeps_no_account() && !self.facts(rule).kept && !self.is_shape
    }

    /// The start of an instance.
    pub(super) fn first(&mut self, instance: u32) -> u32 {
        let mut set = std::mem::take(&mut self.scratch.set);
        match self.instances[instance as usize].source.clone() {
            Source::Dfa(_) => {
                set.clear();
                set.push(0);
            }
            Source::Dispatch(dispatch) => {
                set.clear();
                set.push(dispatch.start());
            }
            Source::Sets(unit, part) => {
                self.close(instance, &[unit.part(part).nfa.start()], &mut set)
            }
            Source::Members(unit, number) => {
                let start = self.members[number as usize].start(&unit);
                self.close(instance, &[start], &mut set);
            }
            Source::Counted(unit) => {
                if let Some(counts) = &unit.counts {
                    counts.close(&unit.main, &[(counts.start, 0)], &mut set);
                }
            }
        }
        let start = self.intern(instance, &set);
        self.scratch.set = set;
        start
    }

    /// The state of a set. Nothing but a return is [`Program::RETURN`].
    pub(super) fn intern(&mut self, instance: u32, set: &[u32]) -> u32 {
        if let Instance { source: Source::Dfa(dfa), merged: true, .. } =
            &self.instances[instance as usize]
            && let Some(residuals) = residuals::of(dfa)
        {
            let residual = residuals[set[0] as usize];
            return self.merge(instance, set, residual);
        }
        let hash = hash_set(instance, set);
        let (states, sets) = (&self.states, &self.sets);
        let same = |id: u32| {
            let s = &states[id as usize];
            s.instance == instance && sets[s.set.range()] == *set
        };
        if let Some(id) = self.known.find(hash, same) {
            return id;
        }
        fuel::charge(STATE + set.len());
        let looks = self.look(instance, set);
        let id = self.push(instance, set, looks);
        if id != Program::RETURN {
            let Instance { left, source, .. } = &mut self.instances[instance as usize];
            *left = left.saturating_sub(1);
            if let Source::Members(..) = source {
                self.member_states += set.len();
            }
            self.known.insert(hash, id);
        }
        id
    }

    /// The state of all rules from which the same can be read.
    fn merge(&mut self, instance: u32, set: &[u32], residual: u32) -> u32 {
        if let Some(&known) = self.residuals.get(&residual) {
            return known;
        }
        let looks = self.look(instance, set);
        let id = self.push(instance, set, looks);
        self.residuals.insert(residual, id);
        id
    }

    /// Adds the state of a set that has none yet, of which it is known whether it is final, reads something, calls something.
    fn push(
        &mut self,
        instance: u32,
        set: &[u32],
        (is_final, scannable, calling): (bool, bool, bool),
    ) -> u32 {
        let Instance { rule, block, source, .. } = &self.instances[instance as usize];
        // One state stands for all returns, but for those that a trace asks the mark of.
        let mark = match source {
            Source::Dispatch(dispatch) => dispatch.mark(set[0]),
            _ => Mark::Plain,
        };
        let (rule, block) = (*rule, *block);
        let RuleFacts { kept, name, only_name, .. } = *self.facts(rule);
        self.has_names |= name;
        let returns = is_final && !scannable && !calling;
        let pure_return = returns && block == NO_BLOCK && !kept;
        if pure_return && mark == Mark::Plain {
            return Program::RETURN;
        }
        let span = Span { at: self.sets.len() as u32, len: set.len() as u32 };
        self.sets.extend_from_slice(set);
        self.states.push(State {
            rule,
            block,
            is_final,
            scannable,
            pure_return,
            calling,
            gate: calling && matches!(mark, Mark::Fired { .. }),
            behind: if returns { self.compiled.scopes.behind(rule) } else { Behind::Nothing },
            name,
            ends_name: returns && block == NO_BLOCK && only_name,
            expanded: false,
            alike: UNKNOWN,
            instance,
            set: span,
            bytes: Span::default(),
            calls: Span::default(),
            specials: Span::default(),
            enters: Span::default(),
        });
        self.states.len() as u32 - 1
    }

    /// Whether a set is final, reads something, calls something.
    fn look(&mut self, instance: u32, set: &[u32]) -> (bool, bool, bool) {
        match &self.instances[instance as usize].source {
            Source::Dfa(dfa) => (dfa.is_final(set[0]), !dfa.edges(set[0]).is_empty(), false),
            Source::Sets(unit, part) => unit.part(*part).look(set),
            Source::Members(unit, number) => self.members[*number as usize].look(unit, set),
            Source::Counted(unit) => {
                let states: Vec<u32> = set.iter().copied().step_by(2).collect();
                unit.main.look(&states)
            }
            Source::Dispatch(dispatch) => dispatch.look(set[0]),
        }
    }
}
