//! Interning of automaton states by instance and set.

use std::sync::Arc;

use super::super::dispatch::DispatchStateId;
use super::super::residuals::residual_ids;
use super::super::rule_nfa::{RuleNfa, StateSummary};
use super::super::{BlockId, CompiledRuleId, DispatchMark, ReturnRole, RuleFacts};
use super::state_table::{State, StateKey, StateMemo, StateTable};
use super::{Instance, InstanceId, Program, StateId, StateSource, dispatch_state};
use crate::fsm::ResidualId;
use crate::fuel;

/// Fuel of a new state, in addition to one unit per element of its set.
const STATE_FUEL: usize = 4;

impl Program {
    /// The source of states for a rule's nondeterministic automaton.
    pub(super) fn state_source(&mut self, rule_nfa: Arc<RuleNfa>) -> StateSource {
        if rule_nfa.step_counts.is_some() {
            StateSource::Counted(rule_nfa)
        } else if !rule_nfa.member_sets.is_empty() {
            let number = self.members.add(&rule_nfa);
            StateSource::Members(rule_nfa, number)
        } else {
            StateSource::Sets(rule_nfa, None)
        }
    }

    /// Adds an instance.
    pub(super) fn add_instance(
        &mut self,
        source: StateSource,
        rule: CompiledRuleId,
        block: BlockId,
    ) -> InstanceId {
        let set_budget = match &source {
            StateSource::Dfa(_) | StateSource::Dispatch(_) | StateSource::Counted(_) => u32::MAX,
            StateSource::Sets(rule_nfa, part) => rule_nfa.part(*part).nfa.len() as u32 * 4 + 256,
            // Grows with each member set that is met.
            StateSource::Members(..) => 256,
        };
        let shares_equivalent_states = match &source {
            StateSource::Dfa(dfa) => {
                self.has_only_its_language(rule) && residual_ids(dfa).is_some()
            }
            _ => false,
        };
        let first_rule = self.local_rule(rule).first;
        self.instances.push(Instance {
            source,
            rule,
            block,
            first_rule,
            shares_equivalent_states,
            set_budget,
        });
        InstanceId::new(self.instances.len() - 1)
    }

    /// Whether a rule matters only by its language: it has no attributes, counts or names.
    fn has_only_its_language(&self, rule: CompiledRuleId) -> bool {
        let local = self.local_rule(rule);
        let plain = local
            .grammar
            .split_grammar
            .rules
            .get(local.rule.index())
            .is_some_and(|rule| rule.attributes.is_empty());
        plain
            && self.compiled.frames_hold_no_counts()
            && !self.facts(rule).tracked
            && !self.members.ignores_members
    }

    /// The start state of an instance.
    pub(super) fn start_state(&mut self, instance: InstanceId) -> StateId {
        let mut set = std::mem::take(&mut self.scratch.set);
        match self.instances[instance.index()].source.clone() {
            StateSource::Dfa(_) => {
                set.clear();
                set.push(0);
            }
            StateSource::Dispatch(_) => {
                set.clear();
                set.push(DispatchStateId::START.raw());
            }
            StateSource::Sets(rule_nfa, part) => {
                self.close(instance, &[rule_nfa.part(part).nfa.start()], &mut set)
            }
            StateSource::Members(rule_nfa, number) => {
                let start = self.members.states[number.index()].start(&rule_nfa);
                self.close(instance, &[start], &mut set);
            }
            StateSource::Counted(rule_nfa) => {
                if let Some(counts) = &rule_nfa.step_counts {
                    counts.close(&rule_nfa.main, &[(counts.start, 0)], &mut set);
                }
            }
        }
        let start = self.intern(instance, &set);
        self.scratch.set = set;
        start
    }

    /// Interns the state of a set. A set that only returns becomes [`Program::RETURN`].
    pub(super) fn intern(&mut self, instance: InstanceId, set: &[u32]) -> StateId {
        if let Instance { source: StateSource::Dfa(dfa), shares_equivalent_states: true, .. } =
            &self.instances[instance.index()]
            && let Some(residuals) = residual_ids(dfa)
        {
            let residual = residuals[set[0] as usize];
            return self.intern_residual(instance, set, residual);
        }
        let hash = StateTable::hash(instance, set);
        if let Some(id) = self.states.find(hash, instance, set) {
            return id;
        }
        fuel::charge(STATE_FUEL + set.len());
        let summary = self.summarize(instance, set);
        let id = self.push(instance, set, summary);
        if id != Program::RETURN {
            let Instance { set_budget, source, .. } = &mut self.instances[instance.index()];
            *set_budget = set_budget.saturating_sub(1);
            if let StateSource::Members(..) = source {
                self.members.stored_states += set.len();
            }
            self.states.insert(hash, id);
        }
        id
    }

    /// Interns the state of a residual language. All rules with
    /// [`Instance::shares_equivalent_states`] share it.
    fn intern_residual(
        &mut self,
        instance: InstanceId,
        set: &[u32],
        residual: ResidualId,
    ) -> StateId {
        if let Some(&known) = self.states.residuals.get(&residual) {
            return known;
        }
        let summary = self.summarize(instance, set);
        let id = self.push(instance, set, summary);
        self.states.residuals.insert(residual, id);
        id
    }

    /// Appends a state without an equal.
    fn push(
        &mut self,
        instance: InstanceId,
        set: &[u32],
        StateSummary { is_final, has_scan_edge, has_call_edge }: StateSummary,
    ) -> StateId {
        let Instance { rule, block, source, .. } = &self.instances[instance.index()];
        // A return state of a dispatch keeps its mark, which traces read.
        let mark = match source {
            StateSource::Dispatch(dispatch) => dispatch.automaton.mark(dispatch_state(set)),
            _ => DispatchMark::Plain,
        };
        let (rule, block) = (*rule, *block);
        let RuleFacts { tracked, unique_key, only_unique_key, .. } = *self.facts(rule);
        let returns = is_final && !has_scan_edge && !has_call_edge;
        let is_return_only = returns && block == BlockId::NONE && !tracked;
        if is_return_only && mark == DispatchMark::Plain {
            return Program::RETURN;
        }
        let key = StateKey { instance, set: self.states.append_set(set) };
        self.states.push(State {
            rule,
            block,
            is_final,
            has_scan_edge,
            is_return_only,
            has_call_edge,
            is_trigger_state: has_call_edge && matches!(mark, DispatchMark::Fired { .. }),
            return_role: if returns {
                self.compiled.scopes.return_role(rule)
            } else {
                ReturnRole::Nothing
            },
            unique_key,
            ends_unique_key: returns && block == BlockId::NONE && only_unique_key,
            key,
            memo: StateMemo::EMPTY,
        })
    }

    /// The summary of a set.
    fn summarize(&mut self, instance: InstanceId, set: &[u32]) -> StateSummary {
        match &self.instances[instance.index()].source {
            StateSource::Dfa(dfa) => StateSummary {
                is_final: dfa.is_final(set[0]),
                has_scan_edge: !dfa.edges(set[0]).is_empty(),
                has_call_edge: false,
            },
            StateSource::Sets(rule_nfa, part) => rule_nfa.part(*part).summarize(set),
            StateSource::Members(rule_nfa, number) => {
                self.members.states[number.index()].summarize(rule_nfa, set)
            }
            StateSource::Counted(rule_nfa) => {
                let states: Vec<u32> = set.iter().copied().step_by(2).collect();
                rule_nfa.main.summarize(&states)
            }
            StateSource::Dispatch(dispatch) => dispatch.automaton.summarize(dispatch_state(set)),
        }
    }
}
