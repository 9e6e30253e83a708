//! Representatives of states within graphs, for masks.
//!
//! A state may be one node of its rule's graph, such as a pattern that counts words. An edge to
//! another node is a *move*. If a token makes at most `k` moves, all nodes with equal continuations
//! of `k` moves have the same mask (bounded bisimulation; partition refinement in [`NodeMoves`]).
//! Likewise, a step count farther from its bounds than a token reaches has no effect.

use super::{Instance, Program, State, StateSource};
use crate::compile::counted_graph::{FAR, NO_NODE};
use crate::compile::rule_nfa::RuleNfa;
use crate::fsm::NodeMoves;
use crate::hash::HashMap;

/// A node is measured only if many others are equivalent to it for this many moves.
const FEW_MOVES: u32 = 4;
/// Most nodes per graph whose moves are measured.
const MAX_MEASURED: usize = 8;

/// A state that is one node of its rule's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GraphPosition {
    instance: u32,
    node: u32,
    /// Steps taken so far, in a counted graph; else [`FAR`].
    steps: u32,
}

/// Graph positions of states, and equivalence classes of nodes.
#[derive(Debug, Default)]
pub(super) struct NodeClasses {
    /// Memo of [`Program::graph_position`]; `None`: the state is not one node.
    positions: HashMap<u32, Option<GraphPosition>>,
    by_instance: HashMap<u32, GraphClasses>,
}

/// Equivalence classes of the nodes of one graph.
#[derive(Debug, Default)]
struct GraphClasses {
    /// The partition, computed on first use; `Some(None)`: it is too large.
    moves: Option<Option<NodeMoves>>,
    /// The first node that was asked for.
    first: Option<u32>,
    /// Measured nodes, with the most moves of a token from there; `None`: unbounded.
    measured: Vec<(u32, Option<u32>)>,
}

/// The representative of a graph state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRepresentative {
    /// The representative; perhaps the state itself.
    State(u32),
    /// Unknown until the moves of this state have been measured: see [`Program::record_moves`].
    Unmeasured(u32),
}

/// The nondeterministic automaton of an instance that may hold a graph.
fn graph_nfa(instances: &[Instance], instance: u32) -> Option<&RuleNfa> {
    match &instances.get(instance as usize)?.source {
        StateSource::Counted(rule_nfa) | StateSource::Sets(rule_nfa, 0) => Some(rule_nfa),
        _ => None,
    }
}

impl Program {
    /// The instance and node of a state. Two states are at the same node if and only if these are
    /// equal. `None` if the state is not exactly one node.
    pub(crate) fn node(&mut self, state: u32) -> Option<(u32, u32)> {
        self.graph_position(state).map(|position| (position.instance, position.node))
    }

    /// Whether the set of a state contains a node; it may hold more than that.
    pub(crate) fn contains_graph_node(&self, state: u32) -> bool {
        let State { instance, set, .. } = self.states[state as usize];
        let Some(rule_nfa) = graph_nfa(&self.instances, instance) else { return false };
        let (Some(nodes), set) = (rule_nfa.graph, &self.sets[set.range()]) else { return false };
        match &rule_nfa.step_counts {
            Some(counts) => {
                set.iter().step_by(2).any(|&state| counts.begins_at[state as usize] != NO_NODE)
            }
            None => set.iter().any(|&state| nodes.of(state).is_some()),
        }
    }

    /// The graph position of a state. Memoised.
    fn graph_position(&mut self, state: u32) -> Option<GraphPosition> {
        let State { instance, set, .. } = self.states[state as usize];
        let rule_nfa = graph_nfa(&self.instances, instance)?;
        let nodes = rule_nfa.graph?;
        if let Some(&known) = self.node_classes.positions.get(&state) {
            return known;
        }
        let set = &self.sets[set.range()];
        let (node, steps) = match &rule_nfa.step_counts {
            Some(counts) => match *set {
                [begin, steps, ..] => {
                    (Some(counts.begins_at[begin as usize]).filter(|&node| node != NO_NODE), steps)
                }
                _ => (None, FAR),
            },
            None => (set.iter().find_map(|&state| nodes.of(state)), FAR),
        };
        let position = node
            .map(|node| GraphPosition { instance, node, steps })
            .filter(|&position| self.state_at(position) == state);
        self.node_classes.positions.insert(state, position);
        position
    }

    /// The state of a graph position.
    fn state_at(&mut self, GraphPosition { instance, node, steps }: GraphPosition) -> u32 {
        let mut set = std::mem::take(&mut self.scratch.set);
        set.clear();
        match &self.instances[instance as usize].source {
            StateSource::Counted(rule_nfa) => {
                if let Some(counts) = &rule_nfa.step_counts {
                    counts.close(&rule_nfa.main, &[(node, steps)], &mut set);
                }
            }
            StateSource::Sets(rule_nfa, part) => {
                let (rule_nfa, part) = (rule_nfa.clone(), *part);
                let first = rule_nfa.graph.map_or(0, |nodes| nodes.first);
                self.scratch.close(&rule_nfa, part, &[first + node], &mut set);
            }
            _ => {}
        }
        let state = self.intern(instance, &set);
        self.scratch.set = set;
        state
    }

    /// The representative of a state for tokens of at most `reach` bytes. `reach` must be the same
    /// in each call.
    pub(crate) fn node_representative(&mut self, state: u32, reach: u32) -> NodeRepresentative {
        let Some(position) = self.graph_position(state) else {
            return NodeRepresentative::State(state);
        };
        let counts = graph_nfa(&self.instances, position.instance)
            .and_then(|rule_nfa| rule_nfa.step_counts.as_ref());
        let steps = counts.map_or(FAR, |counts| counts.far_from_bounds(position.steps, reach));
        if steps != FAR {
            return NodeRepresentative::State(self.state_at(GraphPosition { steps, ..position }));
        }
        match self.equivalent_node(position) {
            Ok(node) => {
                NodeRepresentative::State(self.state_at(GraphPosition { node, steps, ..position }))
            }
            Err(node) => NodeRepresentative::Unmeasured(self.state_at(GraphPosition {
                node,
                steps,
                ..position
            })),
        }
    }

    /// The representative of a node, or (`Err`) the node that must be measured first.
    fn equivalent_node(&mut self, position: GraphPosition) -> Result<u32, u32> {
        let Some(rule_nfa) = graph_nfa(&self.instances, position.instance) else {
            return Ok(position.node);
        };
        let Some(nodes) = rule_nfa.graph.filter(|nodes| nodes.are_many()) else {
            return Ok(position.node);
        };
        let classes = self.node_classes.by_instance.entry(position.instance).or_default();
        let first = *classes.first.get_or_insert(position.node);
        if first == position.node {
            return Ok(first);
        }
        let moves = classes.moves.get_or_insert_with(|| {
            NodeMoves::new(&rule_nfa.main.nfa, (nodes.first, nodes.count, nodes.end))
        });
        let Some(moves) = moves else { return Ok(position.node) };
        for &(node, measured) in &classes.measured {
            let Some(most_moves) = measured else { return Ok(position.node) };
            if moves.are_equivalent(node, position.node, most_moves) {
                return Ok(node);
            }
        }
        let mut is_worth_measuring = |node: u32| moves.has_many_equivalents(node, FEW_MOVES);
        match classes.measured.len() {
            0 if is_worth_measuring(first) => Err(first),
            MAX_MEASURED.. => Ok(position.node),
            _ if is_worth_measuring(position.node) => Err(position.node),
            _ => Ok(position.node),
        }
    }

    /// Records the result of a measurement: the most moves of a token from this state; `None` if
    /// unbounded.
    pub(crate) fn record_moves(&mut self, state: u32, moves: Option<u32>) {
        if let Some(position) = self.graph_position(state) {
            self.node_classes
                .by_instance
                .entry(position.instance)
                .or_default()
                .measured
                .push((position.node, moves));
        }
    }

    /// How many further steps stay below the upper bound whatever their path. `None` without an
    /// upper bound, and before the lower bound is met.
    pub(crate) fn steps_left(&mut self, state: u32) -> Option<u32> {
        let position = self.graph_position(state)?;
        let counts = graph_nfa(&self.instances, position.instance)?.step_counts.as_ref()?;
        counts.steps_left(position.steps).filter(|_| position.steps >= counts.min)
    }

    /// The same node with its step bounds out of reach.
    pub(crate) fn without_bounds(&mut self, state: u32) -> u32 {
        match self.graph_position(state) {
            Some(position) => self.state_at(GraphPosition { steps: FAR, ..position }),
            None => state,
        }
    }

    /// Whether `state` is a node, with bounds out of reach, of the graph that `of` belongs to.
    pub(crate) fn is_without_bounds(&mut self, state: u32, of: u32) -> bool {
        match (self.graph_position(state), self.graph_position(of)) {
            (Some(position), Some(of)) => position.instance == of.instance && position.steps == FAR,
            _ => false,
        }
    }

    /// Whether `steps` further steps may lead from one state to another.
    pub(crate) fn steps_fit(&mut self, from: u32, (to, steps): (u32, u32)) -> bool {
        let (Some(from), Some(to)) = (self.graph_position(from), self.graph_position(to)) else {
            return false;
        };
        let counts = graph_nfa(&self.instances, from.instance)
            .and_then(|rule_nfa| rule_nfa.step_counts.as_ref());
        counts.is_some_and(|counts| counts.allows(to.node, from.steps.saturating_add(steps)))
    }
}
