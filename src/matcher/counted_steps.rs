//! Step bounds of counted graphs near their end: rejects tokens that take too many steps.
//!
//! A counted graph (see [`crate::ir::Counted`]) bounds the steps of a text, for example the length
//! of a string with a `pattern`. Near the upper bound, the mask is made without the bound; tokens
//! with too many steps are then removed. See `docs/internals/COUNTERS.md`.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::ConfigId;
use crate::compile::StateId;
use crate::fsm::ByteSet;
use crate::hash::HashMap;

/// A configuration near an upper bound of steps.
#[derive(Debug)]
pub(crate) struct NearStepBound {
    /// Fewest code points of a token that can exceed the bound.
    pub(crate) chars: u32,
    /// The canonical configuration without bounds.
    pub(crate) unbounded: ConfigId,
    /// The configuration without bounds.
    without_bounds: ConfigId,
    /// The state near its bound, if there is exactly one.
    state: Option<StateId>,
    /// Positions in the graph, memoised by configuration.
    positions: HashMap<ConfigId, StepPosition>,
}

/// Position of a configuration in a graph.
#[derive(Clone, Copy, Debug)]
enum StepPosition {
    /// At this node (without bounds). Other items only belong to what follows the graph, and read
    /// these bytes.
    Node(StateId, ByteSet),
    /// At no node: inside of a character, or outside of the graph.
    Nowhere,
    /// At a node and at something else.
    Mixed,
}

impl Parser {
    /// The nearest upper bound of steps, if one is near. `None` while a lower bound is not reached.
    pub(crate) fn near_step_bound(&mut self, config: ConfigId) -> Option<NearStepBound> {
        if !self.compiled().frames_hold_no_counts() {
            return None;
        }
        let near = self.states_near_bound(config);
        let chars = near.iter().map(|&(_, left)| left).min()?.saturating_add(1);
        let unbounded = |parser: &mut Parser, state| {
            let near = parser.program_mut().steps_left(state).is_some();
            Ok(if near { parser.program_mut().without_bounds(state) } else { state })
        };
        let without_bounds = self.map_states(config, unbounded).ok()?;
        if !self.states_near_bound(without_bounds).is_empty() {
            // Two graphs in sequence: the second one has its own bounds.
            return None;
        }
        let state = if let [(state, _)] = near[..] { Some(state) } else { None };
        Some(NearStepBound {
            chars,
            unbounded: self.canonical(without_bounds),
            without_bounds,
            state,
            positions: HashMap::default(),
        })
    }

    /// The states near an upper bound of steps, and the steps left.
    fn states_near_bound(&mut self, config: ConfigId) -> Vec<(StateId, u32)> {
        let mut near = Vec::new();
        for i in 0..self.store().items(config).len() {
            let state = self.store().items(config)[i].state;
            near.extend(self.program_mut().steps_left(state).map(|left| (state, left)));
        }
        near
    }

    /// Whether a token that may follow without bounds keeps the step bound. `None` if counting
    /// steps does not decide: the token leaves the graph, or the parse is ambiguous.
    pub(crate) fn keeps_step_bound(
        &mut self,
        near: &mut NearStepBound,
        bytes: &[u8],
    ) -> Result<Option<bool>, ParserLimit> {
        let Some(from) = near.state else { return Ok(None) };
        let (mut at, mut steps) = (near.without_bounds, 0);
        let mut position = self.graph_position(near, at, from)?;
        for &byte in bytes {
            match position {
                StepPosition::Node(_, outside) if outside.contains(byte) => return Ok(None),
                StepPosition::Mixed => return Ok(None),
                StepPosition::Node(..) | StepPosition::Nowhere => {}
            }
            at = self.step(at, byte)?;
            if at == ConfigId::DEAD {
                return Ok(None);
            }
            position = self.graph_position(near, at, from)?;
            steps += u32::from(matches!(position, StepPosition::Node(..)));
        }
        let StepPosition::Node(node, _) = position else { return Ok(None) };
        Ok(Some(self.program_mut().steps_fit(from, node, steps)))
    }

    /// The position of a configuration in the graph of the state `anchor`. Memoised.
    fn graph_position(
        &mut self,
        near: &mut NearStepBound,
        config: ConfigId,
        anchor: StateId,
    ) -> Result<StepPosition, ParserLimit> {
        if let Some(&cached) = near.positions.get(&config) {
            return Ok(cached);
        }
        let position = self.compute_graph_position(config, anchor)?;
        near.positions.insert(config, position);
        Ok(position)
    }

    /// Computes [`Parser::graph_position`].
    fn compute_graph_position(
        &mut self,
        config: ConfigId,
        anchor: StateId,
    ) -> Result<StepPosition, ParserLimit> {
        let items = self.store().items(config).to_vec();
        let mut node = None;
        for &item in &items {
            let is_node = self.program_mut().is_without_bounds(item.state, anchor);
            if is_node && node.replace(item).is_some()
                || !is_node && self.program().contains_graph_node(item.state)
            {
                return Ok(StepPosition::Mixed);
            }
        }
        let Some(node) = node else { return Ok(StepPosition::Nowhere) };
        if self.close_items(&[node])? != config {
            return Ok(StepPosition::Mixed);
        }
        let mut outside = ByteSet::EMPTY;
        for item in items.into_iter().filter(|&item| item != node) {
            // Rules called at the node return to the graph.
            let returns = self.store().returns(item.frame);
            if returns.is_empty()
                || !returns.iter().all(|back| self.program().contains_graph_node(back.state))
            {
                outside = outside.union(&self.reads_of(item.state));
            }
        }
        Ok(StepPosition::Node(node.state, outside))
    }
}
