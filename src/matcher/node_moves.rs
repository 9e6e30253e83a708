//! Maximal number of graph nodes that a token passes.
//!
//! Representative states of counted graphs depend on how many nodes of its graph a token can pass
//! from a given node. A walk of the vocabulary by shapes measures that.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::self_loops::{MIN_SKIP_NODES, may_be_self_loop};
use super::store::{BOTTOM, ConfigId, DEAD, Item};
use crate::fsm::{NOT_ASCII, shape_bytes};
use crate::vocab::{Tree, Vocabulary, descend, descend_from};

/// Position of the walk.
#[derive(Clone, Copy)]
struct WalkPosition {
    config: ConfigId,
    node: (u32, u32),
    moves: u32,
}

/// Result of the walk so far.
#[derive(Default)]
struct MoveMeasurement {
    /// By configuration: the node that it is at, if it was looked up.
    nodes: Vec<Option<ConfigNode>>,
    max_moves: u32,
}

/// The node of a counted graph that a configuration is at.
#[derive(Clone, Copy)]
enum ConfigNode {
    Node((u32, u32)),
    /// Inside of a character, or after the graph.
    Between,
    /// At more than one node.
    Several,
}

/// Reason for which moves cannot be measured.
enum MeasureError {
    /// A configuration is at several nodes at once.
    Ambiguous,
    Limit(ParserLimit),
}

impl From<ParserLimit> for MeasureError {
    fn from(limit: ParserLimit) -> Self {
        MeasureError::Limit(limit)
    }
}

impl Parser {
    /// The most node moves that a token makes from a state, whatever follows its rule. `None` if
    /// configurations are ambiguous. Cost: a walk of the vocabulary by shapes.
    pub(super) fn max_node_moves(&mut self, state: u32) -> Result<Option<u32>, ParserLimit> {
        let Some(vocab) = self.vocab().cloned() else { return Ok(None) };
        let Some(node) = self.program_mut().node(state) else { return Ok(None) };
        let config = self.close_items(&[Item { state, count: 0, frame: BOTTOM }])?;
        let mut measure = MoveMeasurement::default();
        match measure.walk(self, &vocab, WalkPosition { config, node, moves: 0 }) {
            Ok(()) => Ok(Some(measure.max_moves)),
            Err(MeasureError::Ambiguous) => Ok(None),
            Err(MeasureError::Limit(limit)) => Err(limit),
        }
    }

    /// The node that a configuration is at. Other items belong to rules that the node calls, or to
    /// what follows the graph.
    fn config_node(&mut self, config: ConfigId) -> ConfigNode {
        let mut config_node = ConfigNode::Between;
        for i in 0..self.store().items(config).len() {
            let Item { state, frame, .. } = self.store().items(config)[i];
            let node = if frame == BOTTOM { self.program_mut().node(state) } else { None };
            match (config_node, node) {
                (_, None) if frame == BOTTOM && self.program().contains_graph_node(state) => {
                    return ConfigNode::Several;
                }
                (_, None) => {}
                (ConfigNode::Between, Some(node)) => config_node = ConfigNode::Node(node),
                (ConfigNode::Node(other), Some(node)) if other == node => {}
                _ => return ConfigNode::Several,
            }
        }
        config_node
    }
}

impl MoveMeasurement {
    /// Walks the vocabulary by shapes, and by bytes where a configuration distinguishes the bytes
    /// of a shape.
    fn walk(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        from: WalkPosition,
    ) -> Result<(), MeasureError> {
        let (shapes, trie) = (vocab.shape_tree(), vocab.trie());
        descend(shapes.tree(), from, |at, shape, before| {
            if parser.is_uniform_shape(before.config, shape)? {
                let below = shapes.byte_kinds_below(at);
                return self.step(parser, (shapes.tree(), at, below), shape_bytes(shape).0, before);
            }
            for &node in shapes.sources(at) {
                let mut step = |node: u32, byte: u8, before| {
                    self.step(parser, (trie, node, trie.byte_kinds_below(node)), byte, before)
                };
                if let Some(behind) = step(node, trie.node(node).byte, before)? {
                    descend_from(trie, node, behind, step)?;
                }
            }
            Ok(None)
        })
    }

    /// Steps over a byte to a tree node. `None` if the subtree cannot increase the maximum.
    fn step(
        &mut self,
        parser: &mut Parser,
        (tree, node, kinds): (&Tree, u32, u64),
        byte: u8,
        before: WalkPosition,
    ) -> Result<Option<WalkPosition>, MeasureError> {
        let config = parser.step(before.config, byte)?;
        if config == DEAD {
            return Ok(None);
        }
        if self.nodes.len() <= config as usize {
            self.nodes.resize(config as usize + 1, None);
        }
        let config_node =
            *self.nodes[config as usize].get_or_insert_with(|| parser.config_node(config));
        let next = match config_node {
            ConfigNode::Several => return Err(MeasureError::Ambiguous),
            ConfigNode::Node(to) if to != before.node => {
                WalkPosition { config, node: to, moves: before.moves + 1 }
            }
            ConfigNode::Node(_) | ConfigNode::Between => WalkPosition { config, ..before },
        };
        self.max_moves = self.max_moves.max(next.moves);
        // Each move takes a character; one may have begun already.
        let chars =
            tree.height(node).map(|chars| u32::from(chars) + u32::from(kinds & NOT_ASCII != 0));
        let nodes = tree.node(node).end - node;
        if nodes == 1 || chars.is_some_and(|chars| next.moves + chars <= self.max_moves) {
            return Ok(None);
        }
        let may_loop = may_be_self_loop(before.config, config, byte);
        let stays = may_loop && nodes >= MIN_SKIP_NODES && parser.loops_on(config, kinds)?;
        Ok((!stays).then_some(next))
    }
}
