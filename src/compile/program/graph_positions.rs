//! Positions in counted graphs, for masks.
//!
//! A state may be one node of its rule's graph, after a number of steps. A step count farther from
//! its bounds than a token reaches has no effect on a mask.

use super::{Instance, InstanceId, Program, StateId, StateSource};
use crate::compile::counted_graph::{FAR_FROM_BOUNDS, GraphNode, StepCounts};
use crate::compile::rule_nfa::RuleNfa;
use crate::hash::HashMap;

/// A state that is one node of a counted graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GraphPosition {
    instance: InstanceId,
    node: GraphNode,
    /// Steps taken so far; [`FAR_FROM_BOUNDS`] if no bound is within reach.
    steps: u32,
}

/// Memo of [`Program::graph_position`]; `None`: the state is not one node.
pub(super) type GraphPositions = HashMap<StateId, Option<GraphPosition>>;

/// The automaton and the step counts of an instance of a counted graph.
fn counted(instances: &[Instance], instance: InstanceId) -> Option<(&RuleNfa, &StepCounts)> {
    match &instances.get(instance.index())?.source {
        StateSource::Counted(rule_nfa) => Some((rule_nfa, rule_nfa.step_counts.as_ref()?)),
        _ => None,
    }
}

impl Program {
    /// Whether the set of a state contains a node of a counted graph; it may hold more than that.
    pub(crate) fn contains_graph_node(&self, state: StateId) -> bool {
        let instance = self.states.get(state).key.instance;
        counted(&self.instances, instance).is_some_and(|(_, counts)| {
            let mut states = self.states.set(state).iter().step_by(2);
            states.any(|&state| counts.begins_at(state).is_some())
        })
    }

    /// The graph position of a state. Memoised.
    fn graph_position(&mut self, state: StateId) -> Option<GraphPosition> {
        let instance = self.states.get(state).key.instance;
        let (_, counts) = counted(&self.instances, instance)?;
        if let Some(&known) = self.graph_positions.get(&state) {
            return known;
        }
        let position = match *self.states.set(state) {
            [begin, steps, ..] => {
                counts.begins_at(begin).map(|node| GraphPosition { instance, node, steps })
            }
            _ => None,
        };
        let position = position.filter(|&position| self.state_at(position) == state);
        self.graph_positions.insert(state, position);
        position
    }

    /// The state of a graph position.
    fn state_at(&mut self, GraphPosition { instance, node, steps }: GraphPosition) -> StateId {
        let mut set = std::mem::take(&mut self.scratch.set);
        set.clear();
        if let Some((rule_nfa, counts)) = counted(&self.instances, instance) {
            counts.close(&rule_nfa.main, &[(node.raw(), steps)], &mut set);
        }
        let state = self.intern(instance, &set);
        self.scratch.set = set;
        state
    }

    /// The representative of a state for tokens of at most `max_token_bytes` bytes: the same node,
    /// after a number of steps that stands for all others that such a token cannot tell apart.
    pub(crate) fn canonical_node_state(&mut self, state: StateId, max_token_bytes: u32) -> StateId {
        let Some(position) = self.graph_position(state) else { return state };
        let Some((_, counts)) = counted(&self.instances, position.instance) else { return state };
        let steps = counts.canonical_steps(position.steps, max_token_bytes);
        self.state_at(GraphPosition { steps, ..position })
    }

    /// How many further steps stay below the upper bound regardless of their path. `None` without
    /// an upper bound, and before the lower bound is met.
    pub(crate) fn steps_left(&mut self, state: StateId) -> Option<u32> {
        let position = self.graph_position(state)?;
        let (_, counts) = counted(&self.instances, position.instance)?;
        counts.steps_left(position.steps).filter(|_| position.steps >= counts.min)
    }

    /// The same node with its step bounds out of reach.
    pub(crate) fn without_bounds(&mut self, state: StateId) -> StateId {
        match self.graph_position(state) {
            Some(position) => self.state_at(GraphPosition { steps: FAR_FROM_BOUNDS, ..position }),
            None => state,
        }
    }

    /// Whether `state` is a node, with bounds out of reach, of the graph that `of` belongs to.
    pub(crate) fn is_without_bounds(&mut self, state: StateId, of: StateId) -> bool {
        match (self.graph_position(state), self.graph_position(of)) {
            (Some(position), Some(of)) => {
                position.instance == of.instance && position.steps == FAR_FROM_BOUNDS
            }
            _ => false,
        }
    }

    /// Whether `steps` further steps may lead from one state to another.
    pub(crate) fn steps_fit(&mut self, from: StateId, to: StateId, steps: u32) -> bool {
        let (Some(from), Some(to)) = (self.graph_position(from), self.graph_position(to)) else {
            return false;
        };
        counted(&self.instances, from.instance)
            .is_some_and(|(_, counts)| counts.allows(to.node, from.steps.saturating_add(steps)))
    }
}
