//! Epsilon closures of sets of nondeterministic states.

use super::super::member_sets::{MemberSetStates, SeenSetId};
use super::super::rule_nfa::{BlockNfaId, RuleNfa};
use super::{Instance, InstanceId, Program, StateSource};
use crate::fuel;

/// The worklist of a closure and its marks, which are reused.
#[derive(Debug, Default)]
pub(super) struct ClosureScratch {
    stack: Vec<u32>,
    /// By nondeterministic state: the round in which it was last visited.
    seen: Vec<u32>,
    /// By nondeterministic state: the seen members with which it was visited first in that round.
    seen_sets: Vec<SeenSetId>,
    round: u32,
}

impl Program {
    /// Epsilon closure of `from`, restricted to relevant states, sorted.
    pub(super) fn close(&mut self, instance: InstanceId, from: &[u32], set: &mut Vec<u32>) {
        let Instance { source, set_budget, .. } = &mut self.instances[instance.index()];
        match source {
            StateSource::Sets(rule_nfa, part) => {
                self.scratch.closure.close(rule_nfa, *part, from, set)
            }
            StateSource::Members(rule_nfa, number) => {
                let states = &mut self.members.states[number.index()];
                let before = states.seen_count();
                self.scratch.closure.close_members(rule_nfa, states, from, set);
                let grown = (states.seen_count() - before) as u32;
                *set_budget = set_budget
                    .saturating_add(grown.saturating_mul(rule_nfa.main.nfa.len() as u32 * 4));
            }
            // These sources close their sets themselves.
            StateSource::Dfa(_) | StateSource::Dispatch(_) | StateSource::Counted(_) => {
                set.clear();
                set.extend_from_slice(from);
            }
        }
    }
}

impl ClosureScratch {
    /// Epsilon closure of `from`, restricted to relevant states (live, and accepting or with an
    /// edge), sorted.
    fn close(
        &mut self,
        rule_nfa: &RuleNfa,
        part: Option<BlockNfaId>,
        from: &[u32],
        set: &mut Vec<u32>,
    ) {
        let part = rule_nfa.part(part);
        set.clear();
        self.begin_round(part.nfa.len());
        let ClosureScratch { stack, seen, round, .. } = self;
        let mut push = |stack: &mut Vec<u32>, s: u32| {
            if part.live[s as usize] && std::mem::replace(&mut seen[s as usize], *round) != *round {
                stack.push(s);
            }
        };
        from.iter().for_each(|&s| push(stack, s));
        while let Some(s) = stack.pop() {
            fuel::charge(2);
            if part.is_relevant(s) {
                set.push(s);
            }
            part.nfa.epsilons(s).for_each(|to| push(stack, to));
        }
        fuel::charge_sort(set.len());
        set.sort_unstable();
    }

    /// Starts a new round of visited marks over `states` states.
    fn begin_round(&mut self, states: usize) {
        self.round = self.round.wrapping_add(1);
        if self.seen.len() < states || self.round == 0 {
            self.seen.clear();
            self.seen.resize(states, 0);
            self.round = 1;
        }
    }

    /// As [`ClosureScratch::close`], for the encoded states of a rule with member sets.
    fn close_members(
        &mut self,
        rule_nfa: &RuleNfa,
        states: &mut MemberSetStates,
        from: &[u32],
        set: &mut Vec<u32>,
    ) {
        set.clear();
        let positions = rule_nfa.main.nfa.len();
        self.begin_round(positions);
        if self.seen_sets.len() < positions {
            self.seen_sets.resize(positions, SeenSetId::EMPTY);
        }
        // States of positions that were visited with other seen members before.
        let mut others: Vec<u32> = Vec::new();
        self.stack.clear();
        self.stack.extend_from_slice(from);
        while let Some(s) = self.stack.pop() {
            fuel::charge(2 + others.len() / 8);
            let (seen_set, place) = states.decode(s);
            let at = place as usize;
            let is_new = if std::mem::replace(&mut self.seen[at], self.round) != self.round {
                self.seen_sets[at] = seen_set;
                true
            } else if self.seen_sets[at] == seen_set || others.contains(&s) {
                false
            } else {
                others.push(s);
                true
            };
            if is_new && states.follow_epsilons(rule_nfa, s, &mut self.stack) {
                set.push(s);
            }
        }
        fuel::charge_sort(set.len());
        set.sort_unstable();
    }
}
