//! Counted graphs: generalised automata with a bounded number of steps.
//!
//! A state is a set of pairs (nondeterministic state, steps taken before it), made on demand.
//! States from which no allowed number of steps reaches an end are never entered.

use std::sync::Arc;

use super::live_nfa::LiveNfa;
use crate::fsm::{Edge, PathLengths};
use crate::ids::id;

id! {
    /// A node of a counted graph. It is the state with the same number of the automaton.
    pub(super) GraphNode
}

/// What a state is in the automaton of a counted graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepRole {
    /// It is this node.
    Node(GraphNode),
    /// The first state of a step.
    Begin { from: GraphNode, to: GraphNode },
    /// A further state of a step.
    Inside { to: GraphNode },
    /// The end of the graph.
    End,
}

/// A count of which only one thing is known: no bound is within reach. Of the steps of a counted
/// graph, the runs of a counted block, or the units of a budget.
pub(crate) const FAR_FROM_BOUNDS: u32 = u32::MAX;

/// Step counting of a rule's automaton: the role of each of its states.
#[derive(Debug)]
pub(super) struct StepCounts {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// State of the start node.
    pub(super) start: u32,
    /// By state.
    pub(super) roles: Vec<StepRole>,
    /// The possible numbers of steps from each node to an end.
    pub(super) path_lengths: Arc<PathLengths>,
}

impl StepCounts {
    /// Whether an end can be reached from `node` after `steps` steps.
    pub(super) fn allows(&self, node: GraphNode, steps: u32) -> bool {
        if steps == FAR_FROM_BOUNDS {
            return self.path_lengths.has_path_within(node.raw(), 0, None);
        }
        let most = match self.max {
            Some(max) if steps > max => return false,
            max => max.map(|max| max - steps),
        };
        self.path_lengths.has_path_within(node.raw(), self.min.saturating_sub(steps), most)
    }

    /// The count after one more step; saturates at the lower bound if there is no upper bound.
    fn next(&self, steps: u32) -> u32 {
        if steps == FAR_FROM_BOUNDS {
            return FAR_FROM_BOUNDS;
        }
        let steps = steps + 1;
        if self.max.is_none() { steps.min(self.min) } else { steps }
    }

    /// The number of steps that stands for `steps` where tokens have at most `max_token_bytes`
    /// bytes, and so take at most as many steps. It is [`FAR_FROM_BOUNDS`] if they reach no bound
    /// and any path to an end still fits after them. Below the lower bound, it is the greatest
    /// number for which every test of [`StepCounts::allows`] on the way has the same result.
    pub(super) fn canonical_steps(&self, steps: u32, max_token_bytes: u32) -> u32 {
        if steps >= self.min {
            return match self.steps_left(steps) {
                Some(left) if left <= max_token_bytes => steps,
                _ => FAR_FROM_BOUNDS,
            };
        }
        let Some((from, period)) = self.path_lengths.repetition() else { return steps };
        let width = self.max.map_or(period, |max| max.saturating_sub(self.min) + 1);
        // A whole period between the bounds includes every remainder.
        let period = if width >= period { 1 } else { period };
        let left = self.min - steps;
        let shortfall = left.saturating_sub(from.saturating_add(max_token_bytes).saturating_add(1));
        steps + shortfall / period * period
    }

    /// How many further steps fit under the upper bound regardless of their path. `None` without an
    /// upper bound, and for [`FAR_FROM_BOUNDS`].
    pub(super) fn steps_left(&self, steps: u32) -> Option<u32> {
        let max = self.max.filter(|_| steps != FAR_FROM_BOUNDS)?;
        Some(max.saturating_sub(steps).saturating_sub(self.path_lengths.farthest()))
    }

    /// Epsilon closure: relevant states, each with its number of steps; sorted.
    pub(super) fn close(&self, part: &LiveNfa, from: &[(u32, u32)], set: &mut Vec<u32>) {
        let mut seen: Vec<(u32, u32)> = Vec::new();
        let mut stack: Vec<(u32, u32)> = from.to_vec();
        while let Some((state, steps)) = stack.pop() {
            if !part.live[state as usize] || seen.contains(&(state, steps)) {
                continue;
            }
            seen.push((state, steps));
            let is_node = matches!(self.roles[state as usize], StepRole::Node(_));
            for to in part.nfa.epsilons(state) {
                match self.roles[to as usize] {
                    StepRole::Node(_) => stack.push((to, self.next(steps))),
                    role if is_node && !self.may_enter(role, steps) => {}
                    _ => stack.push((to, steps)),
                }
            }
        }
        seen.retain(|&(state, _)| !part.nfa.is_edgeless(state) || part.nfa.is_final(state));
        seen.sort_unstable();
        set.clear();
        set.extend(seen.into_iter().flat_map(|(state, steps)| [state, steps]));
    }

    /// Whether a state may be entered from a node after `steps` steps: it begins a step, or ends
    /// the graph.
    fn may_enter(&self, role: StepRole, steps: u32) -> bool {
        match role {
            StepRole::Begin { to, .. } | StepRole::Inside { to } => {
                let has_room = steps == FAR_FROM_BOUNDS || self.max.is_none_or(|max| steps < max);
                has_room && self.allows(to, self.next(steps))
            }
            StepRole::End | StepRole::Node(_) => steps >= self.min,
        }
    }

    /// The node at which a step begins in this state; `None` elsewhere.
    pub(super) fn begins_at(&self, state: u32) -> Option<GraphNode> {
        match self.roles[state as usize] {
            StepRole::Begin { from, .. } => Some(from),
            _ => None,
        }
    }

    /// The byte edges and the other edges of a set, each with the number of steps before it;
    /// sorted.
    pub(super) fn edges(part: &LiveNfa, set: &[u32]) -> [Vec<(Edge, u32)>; 2] {
        let (mut bytes, mut others) = (Vec::new(), Vec::new());
        for pair in set.chunks_exact(2) {
            for e in part.nfa.edges(pair[0]).filter(|e| part.live[e.to as usize]) {
                let list = if e.lo <= 255 { &mut bytes } else { &mut others };
                list.push((e, pair[1]));
            }
        }
        for list in [&mut bytes, &mut others] {
            list.sort_unstable();
            list.dedup();
        }
        [bytes, others]
    }
}
