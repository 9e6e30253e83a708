//! How many nodes of its rule's graph a token gets to from one of them.

use super::limit::ParserLimit;
use super::loops::{SWALLOW, may_be_again};
use super::parser::Parser;
use super::store::{BOTTOM, ConfigId, DEAD, Item};
use crate::fsm::{NOT_ASCII, shape_bytes};
use crate::vocab::{Tree, Vocabulary, descend, descend_from};

/// What a walk has come to.
#[derive(Clone, Copy)]
struct At {
    config: ConfigId,
    node: (u32, u32),
    moves: u32,
}

/// What a walk notes.
#[derive(Default)]
struct Measure {
    /// By configuration: the node that it is at, if it is at one; not there, or none, if it has not been looked at.
    nodes: Vec<Option<Seen>>,
    most: u32,
}

#[derive(Clone, Copy)]
enum Seen {
    Node((u32, u32)),
    /// Inside of a character, or behind the graph.
    Between,
    /// At several.
    Several,
}

/// Why moves cannot be measured.
enum Failed {
    /// A configuration is at several nodes at once.
    Untold,
    Limit(ParserLimit),
}

impl From<ParserLimit> for Failed {
    fn from(limit: ParserLimit) -> Self {
        Failed::Limit(limit)
    }
}

impl Parser {
    /// Most moves between nodes that a token takes from a state, whatever follows its rule; none where that cannot be told. Cost: a walk of the vocabulary by
    /// shapes.
    pub(super) fn moves(&mut self, state: u32) -> Result<Option<u32>, ParserLimit> {
        let Some(vocab) = self.vocab().cloned() else { return Ok(None) };
        let Some(node) = self.program_mut().node(state) else { return Ok(None) };
        let config = self.close_items(&[Item { state, count: 0, frame: BOTTOM }])?;
        let mut measure = Measure::default();
        match measure.walk(self, &vocab, At { config, node, moves: 0 }) {
            Ok(()) => Ok(Some(measure.most)),
            Err(Failed::Untold) => Ok(None),
            Err(Failed::Limit(limit)) => Err(limit),
        }
    }

    /// The node that a configuration is at. Other items are of rules that are called there, or of what follows.
    fn node_seen(&mut self, config: ConfigId) -> Seen {
        let mut seen = Seen::Between;
        for i in 0..self.store().items(config).len() {
            let Item { state, frame, .. } = self.store().items(config)[i];
            let node = if frame == BOTTOM { self.program_mut().node(state) } else { None };
            match (seen, node) {
                (_, None) if frame == BOTTOM && self.program().touches_nodes(state) => {
                    return Seen::Several;
                }
                (_, None) => {}
                (Seen::Between, Some(node)) => seen = Seen::Node(node),
                (Seen::Node(other), Some(node)) if other == node => {}
                _ => return Seen::Several,
            }
        }
        seen
    }
}

impl Measure {
    /// Walks the vocabulary by shapes, and the trie from where bytes of one shape are told apart.
    fn walk(&mut self, parser: &mut Parser, vocab: &Vocabulary, from: At) -> Result<(), Failed> {
        let (shapes, trie) = (vocab.shapes(), vocab.trie());
        descend(shapes.tree(), from, |at, shape, before| {
            if parser.is_uniform(before.config, shape)? {
                let below = shapes.kinds_below(at);
                return self.step(parser, (shapes.tree(), at, below), shape_bytes(shape).0, before);
            }
            for &node in shapes.sources(at) {
                let mut step = |node: u32, byte: u8, before| {
                    self.step(parser, (trie, node, trie.kinds_below(node)), byte, before)
                };
                if let Some(behind) = step(node, trie.node(node).byte, before)? {
                    descend_from(trie, node, behind, step)?;
                }
            }
            Ok(None)
        })
    }

    /// Over a byte to a node of a tree; none where there is nothing more to see below.
    fn step(
        &mut self,
        parser: &mut Parser,
        (tree, node, kinds): (&Tree, u32, u64),
        byte: u8,
        before: At,
    ) -> Result<Option<At>, Failed> {
        let config = parser.step(before.config, byte)?;
        if config == DEAD {
            return Ok(None);
        }
        if self.nodes.len() <= config as usize {
            self.nodes.resize(config as usize + 1, None);
        }
        let seen = *self.nodes[config as usize].get_or_insert_with(|| parser.node_seen(config));
        let next = match seen {
            Seen::Several => return Err(Failed::Untold),
            Seen::Node(to) if to != before.node => At { config, node: to, moves: before.moves + 1 },
            Seen::Node(_) | Seen::Between => At { config, ..before },
        };
        self.most = self.most.max(next.moves);
        // Each move takes a character; one may be under way here.
        let chars =
            tree.height(node).map(|chars| u32::from(chars) + u32::from(kinds & NOT_ASCII != 0));
        let nodes = tree.node(node).end - node;
        if nodes == 1 || chars.is_some_and(|chars| next.moves + chars <= self.most) {
            return Ok(None);
        }
        let again = may_be_again(before.config, config, byte);
        let stays = again && nodes >= SWALLOW && parser.loops(config, kinds)?;
        Ok((!stays).then_some(next))
    }
}
