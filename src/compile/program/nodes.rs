//! States that are a node of a graph, and which of them stand for others where masks are concerned: no token tells apart where in a graph of
//! many nodes it begins if it gets to few of them, nor how many steps there have been if the bounds are out of its reach.

use super::{Instance, Program, Source, State};
use crate::compile::counted::{FAR, NONE};
use crate::compile::units::Unit;
use crate::fsm::Moves;

/// A token hardly takes more moves where it is worth while to count them.
const FEW_MOVES: u32 = 4;
/// Most nodes of a graph whose moves are measured.
const MEASURED: usize = 8;

/// A state that is one node of its rule's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtNode {
    instance: u32,
    node: u32,
    /// Where steps are counted: how many there have been.
    steps: u32,
}

/// Nodes of one graph that stand for others.
#[derive(Debug, Default)]
pub(super) struct Likes {
    /// Which are alike, once it matters; none where that cannot be told.
    moves: Option<Option<Moves>>,
    /// The one that was asked for first.
    first: Option<u32>,
    /// Nodes whose moves have been measured, and how many a token takes from there; none where that cannot be told.
    measured: Vec<(u32, Option<u32>)>,
}

/// What stands for a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// A state; perhaps itself.
    State(u32),
    /// That is known once this state's moves have been measured: see [`Program::note_moves`].
    Unmeasured(u32),
}

/// What an instance is of, if it may be a graph.
fn unit(instances: &[Instance], instance: u32) -> Option<&Unit> {
    match &instances.get(instance as usize)?.source {
        Source::Counted(unit) | Source::Sets(unit, 0) => Some(unit),
        _ => None,
    }
}

impl Program {
    /// The node of its rule's graph that a state is, and the state's rule: two states are at one node if and only if these are equal.
    pub(crate) fn node(&mut self, state: u32) -> Option<(u32, u32)> {
        self.at_node(state).map(|at| (at.instance, at.node))
    }

    /// Whether a state is at least one node of its rule's graph, and perhaps more than that.
    pub(crate) fn touches_nodes(&self, state: u32) -> bool {
        let State { instance, set, .. } = self.states[state as usize];
        let Some(unit) = unit(&self.instances, instance) else { return false };
        let (Some(nodes), set) = (unit.graph, &self.sets[set.range()]) else { return false };
        match &unit.counts {
            Some(counts) => {
                set.iter().step_by(2).any(|&state| counts.begins_at[state as usize] != NONE)
            }
            None => set.iter().any(|&state| nodes.of(state).is_some()),
        }
    }

    fn at_node(&mut self, state: u32) -> Option<AtNode> {
        let State { instance, set, .. } = self.states[state as usize];
        let unit = unit(&self.instances, instance)?;
        let nodes = unit.graph?;
        if let Some(&known) = self.at_nodes.get(&state) {
            return known;
        }
        let set = &self.sets[set.range()];
        let (node, steps) = match &unit.counts {
            Some(counts) => match *set {
                [begin, steps, ..] => {
                    (Some(counts.begins_at[begin as usize]).filter(|&node| node != NONE), steps)
                }
                _ => (None, FAR),
            },
            None => (set.iter().find_map(|&state| nodes.of(state)), FAR),
        };
        let at = node
            .map(|node| AtNode { instance, node, steps })
            .filter(|&at| self.state_at(at) == state);
        self.at_nodes.insert(state, at);
        at
    }

    /// The state that is a node.
    fn state_at(&mut self, AtNode { instance, node, steps }: AtNode) -> u32 {
        let mut set = std::mem::take(&mut self.scratch.set);
        set.clear();
        match &self.instances[instance as usize].source {
            Source::Counted(unit) => {
                if let Some(counts) = &unit.counts {
                    counts.close(&unit.main, &[(node, steps)], &mut set);
                }
            }
            Source::Sets(unit, part) => {
                let (unit, part) = (unit.clone(), *part);
                let first = unit.graph.map_or(0, |nodes| nodes.first);
                self.scratch.close(&unit, part, &[first + node], &mut set);
            }
            _ => {}
        }
        let state = self.intern(instance, &set);
        self.scratch.set = set;
        state
    }

    /// A state that no token of at most `reach` bytes (the same `reach` each time) can tell from this one.
    pub(crate) fn stand_in(&mut self, state: u32, reach: u32) -> StandIn {
        let Some(at) = self.at_node(state) else { return StandIn::State(state) };
        let counts = unit(&self.instances, at.instance).and_then(|unit| unit.counts.as_ref());
        let steps = counts.map_or(FAR, |counts| counts.far_from_bounds(at.steps, reach));
        if steps != FAR {
            return StandIn::State(state);
        }
        match self.like(at) {
            Ok(node) => StandIn::State(self.state_at(AtNode { node, steps, ..at })),
            Err(node) => StandIn::Unmeasured(self.state_at(AtNode { node, steps, ..at })),
        }
    }

    /// A node that stands for another one, or which has to be measured first.
    fn like(&mut self, at: AtNode) -> Result<u32, u32> {
        let Some(unit) = unit(&self.instances, at.instance) else { return Ok(at.node) };
        let Some(nodes) = unit.graph.filter(|nodes| nodes.are_many()) else { return Ok(at.node) };
        let likes = self.likes.entry(at.instance).or_default();
        let first = *likes.first.get_or_insert(at.node);
        if first == at.node {
            return Ok(first);
        }
        let moves = likes.moves.get_or_insert_with(|| {
            Moves::of(&unit.main.nfa, (nodes.first, nodes.count, nodes.end))
        });
        let Some(moves) = moves else { return Ok(at.node) };
        for &(node, measured) in &likes.measured {
            let Some(most) = measured else { return Ok(at.node) };
            if moves.are_alike(node, at.node, most) {
                return Ok(node);
            }
        }
        let mut may_do = |node: u32| moves.has_many_like(node, FEW_MOVES);
        match likes.measured.len() {
            0 if may_do(first) => Err(first),
            MEASURED.. => Ok(at.node),
            _ if may_do(at.node) => Err(at.node),
            _ => Ok(at.node),
        }
    }

    /// Notes how many moves a token takes at most from the node that a state is; none where that cannot be told.
    pub(crate) fn note_moves(&mut self, state: u32, moves: Option<u32>) {
        if let Some(at) = self.at_node(state) {
            self.likes.entry(at.instance).or_default().measured.push((at.node, moves));
        }
    }

    /// How many steps more are fine wherever they lead, where an upper bound is near and the lower one is reached.
    pub(crate) fn steps_left(&mut self, state: u32) -> Option<u32> {
        let at = self.at_node(state)?;
        let counts = unit(&self.instances, at.instance)?.counts.as_ref()?;
        counts.steps_left(at.steps).filter(|_| at.steps >= counts.min)
    }

    /// The same node, with all bounds out of reach.
    pub(crate) fn without_bounds(&mut self, state: u32) -> u32 {
        match self.at_node(state) {
            Some(at) => self.state_at(AtNode { steps: FAR, ..at }),
            None => state,
        }
    }

    /// Whether a state is a node, with all bounds out of reach, of the graph that another one is a node of.
    pub(crate) fn is_without_bounds(&mut self, state: u32, of: u32) -> bool {
        match (self.at_node(state), self.at_node(of)) {
            (Some(at), Some(of)) => at.instance == of.instance && at.steps == FAR,
            _ => false,
        }
    }

    /// Whether so many steps may lead from a state to a node.
    pub(crate) fn has_room(&mut self, from: u32, (to, steps): (u32, u32)) -> bool {
        let (Some(from), Some(to)) = (self.at_node(from), self.at_node(to)) else { return false };
        let counts = unit(&self.instances, from.instance).and_then(|unit| unit.counts.as_ref());
        counts.is_some_and(|counts| counts.allows(to.node, from.steps.saturating_add(steps)))
    }
}
