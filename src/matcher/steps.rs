//! The end of what is counted in steps (see [`crate::ir::Counted`]): which tokens have too many.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, DEAD};
use crate::fsm::ByteSet;
use crate::hash::HashMap;

/// A configuration in which an upper bound of steps is near.
#[derive(Debug)]
pub(crate) struct NearEnd {
    /// So many code points a token must have for the bound to matter to it.
    pub(crate) chars: usize,
    /// What stands for the configuration without bounds.
    pub(crate) unbounded: ConfigId,
    /// The configuration without bounds.
    far: ConfigId,
    /// The one state that is near its bound, if it is one.
    state: Option<u32>,
    /// Where in its graph configurations are.
    known: HashMap<ConfigId, Place>,
}

/// Where in a graph a configuration is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At this node, without bounds, and nothing else but what follows the graph, which reads these bytes.
    Node(u32, ByteSet),
    /// At none: inside of a character, or outside.
    Nowhere,
    /// At a node, and something else.
    Mixed,
}

impl Parser {
    /// Whether an upper bound of steps is near; nothing where a lower one is not reached yet.
    pub(crate) fn near_its_end(&mut self, config: ConfigId) -> Option<NearEnd> {
        if !self.compiled().keeps_no_account() {
            return None;
        }
        let near = self.near_bounds(config);
        let chars = near.iter().map(|&(_, left)| left).min()? as usize + 1;
        let unbounded = |parser: &mut Parser, state| {
            let near = parser.program_mut().steps_left(state).is_some();
            Ok(if near { parser.program_mut().without_bounds(state) } else { state })
        };
        let far = self.with_states(config, unbounded).ok()?;
        if !self.near_bounds(far).is_empty() {
            // One graph behind the other: what follows the first one has bounds of its own.
            return None;
        }
        let state = if let [(state, _)] = near[..] { Some(state) } else { None };
        Some(NearEnd { chars, unbounded: self.normal(far), far, state, known: HashMap::default() })
    }

    /// States near an upper bound of steps, and how many steps more are fine.
    fn near_bounds(&mut self, config: ConfigId) -> Vec<(u32, u32)> {
        let mut near = Vec::new();
        for i in 0..self.store().items(config).len() {
            let state = self.store().items(config)[i].state;
            near.extend(self.program_mut().steps_left(state).map(|left| (state, left)));
        }
        near
    }

    /// Whether there are not too many steps in a token that can follow without bounds. None where that takes more than counting: it leaves the graph, or there
    /// is more than one way to read it.
    pub(crate) fn has_room_for(
        &mut self,
        near: &mut NearEnd,
        bytes: &[u8],
    ) -> Result<Option<bool>, ParserLimit> {
        let Some(from) = near.state else { return Ok(None) };
        let (mut at, mut steps) = (near.far, 0);
        let mut place = self.place_in_graph(near, at, from)?;
        for &byte in bytes {
            match place {
                Place::Node(_, outside) if outside.contains(byte) => return Ok(None),
                Place::Mixed => return Ok(None),
                Place::Node(..) | Place::Nowhere => {}
            }
            at = self.step(at, byte)?;
            if at == DEAD {
                return Ok(None);
            }
            place = self.place_in_graph(near, at, from)?;
            steps += u32::from(matches!(place, Place::Node(..)));
        }
        let Place::Node(node, _) = place else { return Ok(None) };
        Ok(Some(self.program_mut().has_room(from, (node, steps))))
    }

    /// Where a configuration is in the graph that a state is of. Looked at once.
    fn place_in_graph(
        &mut self,
        near: &mut NearEnd,
        config: ConfigId,
        of: u32,
    ) -> Result<Place, ParserLimit> {
        if let Some(&known) = near.known.get(&config) {
            return Ok(known);
        }
        let place = self.find_place_in_graph(config, of)?;
        near.known.insert(config, place);
        Ok(place)
    }

    fn find_place_in_graph(&mut self, config: ConfigId, of: u32) -> Result<Place, ParserLimit> {
        let items = self.store().items(config).to_vec();
        let mut node = None;
        for &item in &items {
            let is_node = self.program_mut().is_without_bounds(item.state, of);
            if is_node && node.replace(item).is_some()
                || !is_node && self.program().touches_nodes(item.state)
            {
                return Ok(Place::Mixed);
            }
        }
        let Some(node) = node else { return Ok(Place::Nowhere) };
        if self.close_items(&[node])? != config {
            return Ok(Place::Mixed);
        }
        let mut outside = ByteSet::EMPTY;
        for item in items.into_iter().filter(|&item| item != node) {
            // What is called at the node returns to one.
            let returns = self.store().returns(item.frame);
            if returns.is_empty()
                || !returns.iter().all(|back| self.program().touches_nodes(back.state))
            {
                outside = outside.union(&self.reads_of(item.state));
            }
        }
        Ok(Place::Node(node.state, outside))
    }
}
