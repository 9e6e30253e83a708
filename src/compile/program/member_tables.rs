//! Rules with member sets: their encoded states, and what is known about these.

use std::sync::Arc;

use super::equivalent_states::MemberClasses;
use super::state_table::StateKey;
use super::{InstanceId, Program, StateId, StateSource};
use crate::compile::member_sets::{MemberLikelihood, MemberSetStates};
use crate::compile::rule_nfa::RuleNfa;
use crate::hash::HashMap;
use crate::ids::id;

id! {
    /// An instance with member sets: an index into [`MemberTables::states`].
    pub(super) MemberTableId
}

/// Tables of all instances with member sets.
#[derive(Debug, Default)]
pub(super) struct MemberTables {
    /// Encoded states; one entry for each instance with member sets.
    pub(super) states: Vec<MemberSetStates>,
    /// Encoded states in all sets; for the memory estimate.
    pub(super) stored_states: usize,
    /// Representatives of states.
    pub(super) classes: MemberClasses,
    /// Memo of [`Program::completion_state`].
    nearing_end: HashMap<StateId, StateId>,
    /// Every state ignores which members have been seen; for reports.
    pub(super) ignores_members: bool,
}

impl MemberTables {
    /// Adds an instance; returns its id.
    pub(super) fn add(&mut self, rule_nfa: &RuleNfa) -> MemberTableId {
        let id = MemberTableId::new(self.states.len());
        self.states.push(MemberSetStates::new(rule_nfa, self.ignores_members));
        id
    }

    /// Approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.stored_states * MemberSetStates::BYTES
    }
}

impl Program {
    /// Whether an opened rule has member sets.
    pub(crate) fn has_members(&self) -> bool {
        !self.members.states.is_empty()
    }

    /// The nondeterministic automaton of an instance with member sets, and its id.
    pub(super) fn member_instance(
        &self,
        instance: InstanceId,
    ) -> Option<(&Arc<RuleNfa>, MemberTableId)> {
        match &self.instances.get(instance.index())?.source {
            StateSource::Members(rule_nfa, number) => Some((rule_nfa, *number)),
            _ => None,
        }
    }

    /// How many unique members may still come; 0 outside of member sets.
    pub(crate) fn members_left(&self, state: StateId) -> u32 {
        match self.source_of(state) {
            Some((StateSource::Members(rule_nfa, number), set)) => {
                self.members.states[number.index()].remaining(rule_nfa, set)
            }
            _ => 0,
        }
    }

    /// The likelihood of a state within its member set. `returned`: the state is the return address
    /// of a call. `None` outside of member sets.
    pub(crate) fn member_likelihood(
        &self,
        state: StateId,
        returned: bool,
    ) -> Option<MemberLikelihood> {
        let state = self.block_of(state).map_or(state, |block| block.exit);
        match self.source_of(state)? {
            (StateSource::Members(rule_nfa, number), set) => {
                Some(self.members.states[number.index()].likelihood(rule_nfa, set, returned))
            }
            _ => None,
        }
    }

    /// A state with the same shortest completion as `state`, in which only missing members may
    /// come, in one order. It keeps the search for the nearest end from meeting exponentially many
    /// member sets.
    pub(crate) fn completion_state(&mut self, state: StateId) -> StateId {
        let StateKey { instance, set } = self.states.get(state).key;
        let Some((rule_nfa, number)) = self.member_instance(instance) else { return state };
        if let Some(&known) = self.members.nearing_end.get(&state) {
            return known;
        }
        let rule_nfa = rule_nfa.clone();
        let nearing_end =
            self.members.states[number.index()].nearing_end(&rule_nfa, self.states.slice(set));
        let to = nearing_end.map_or(state, |set| self.intern(instance, &set));
        self.members.nearing_end.insert(state, to);
        to
    }
}
