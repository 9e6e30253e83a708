//! How many nodes of its rule's graph a token gets to from one of them.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{BOTTOM, ConfigId, DEAD, Item};
use crate::fsm::{BLACK_CODE_POINTS, CODE_POINTS, NOT_ASCII, shape_bytes};
use crate::vocab::{Tree, Vocabulary};

/// Subtrees of so many nodes are looked at as a whole.
const SWALLOW: u32 = 4;

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

/// A configuration is at several nodes at once.
struct Untold;

impl Parser {
    /// Most moves between nodes that a token takes from a state, whatever follows its rule; none where that cannot be told. Cost: a walk of the vocabulary by
    /// shapes.
    pub(super) fn moves(&mut self, state: u32) -> Result<Option<u32>, ParserLimit> {
        let Some(vocab) = self.vocab().cloned() else { return Ok(None) };
        let Some(node) = self.program_mut().node(state) else { return Ok(None) };
        let config = self.close_items(&[Item { state, count: 0, frame: BOTTOM }])?;
        let mut measure = Measure::default();
        let walked = measure.walk(self, &vocab, At { config, node, moves: 0 })?;
        Ok(walked.ok().map(|()| measure.most))
    }

    /// The node that a configuration is at. Other items are of rules that are called there, or of what follows.
    fn node_seen(&mut self, config: ConfigId) -> Seen {
        let mut seen = Seen::Between;
        for i in 0..self.store().items(config).len() {
            let Item { state, frame, .. } = self.store().items(config)[i];
            let node = if frame == BOTTOM { self.program_mut().node(state) } else { None };
            match (seen, node) {
                (_, None) if frame == BOTTOM && self.program().touches_nodes(state) => return Seen::Several,
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
    fn walk(&mut self, parser: &mut Parser, vocab: &Vocabulary, from: At) -> Result<Result<(), Untold>, ParserLimit> {
        let (shapes, trie) = (vocab.shapes(), vocab.trie());
        let tree = shapes.tree();
        let mut stack = vec![(tree.node(0).end, from)];
        let mut at = 1;
        while at < tree.node(0).end {
            while at >= stack[stack.len() - 1].0 {
                stack.pop();
            }
            let (end, before) = (tree.node(at).end, stack[stack.len() - 1].1);
            let shape = tree.node(at).byte;
            let mut below = None;
            if parser.is_uniform(before.config, shape)? {
                match self.step(parser, (tree, at, shapes.kinds_below(at)), shape_bytes(shape).0, before)? {
                    Ok(next) => below = next,
                    Err(untold) => return Ok(Err(untold)),
                }
            } else {
                for &node in shapes.sources(at) {
                    if let Err(untold) = self.walk_trie(parser, vocab, node, before)? {
                        return Ok(Err(untold));
                    }
                }
            }
            match below {
                Some(next) => {
                    stack.push((end, next));
                    at += 1;
                }
                None => at = end,
            }
        }
        debug_assert!(trie.len() >= tree.len());
        Ok(Ok(()))
    }

    /// A node of the vocabulary's trie, and what is below it.
    fn walk_trie(
        &mut self,
        parser: &mut Parser,
        vocab: &Vocabulary,
        node: u32,
        from: At,
    ) -> Result<Result<(), Untold>, ParserLimit> {
        let trie = vocab.trie();
        let mut stack = vec![(trie.node(node).end, from)];
        let mut at = node;
        while at < trie.node(node).end {
            while at >= stack[stack.len() - 1].0 {
                stack.pop();
            }
            let (end, before) = (trie.node(at).end, stack[stack.len() - 1].1);
            match self.step(parser, (trie, at, trie.kinds_below(at)), trie.node(at).byte, before)? {
                Ok(Some(next)) => {
                    stack.push((end, next));
                    at += 1;
                }
                Ok(None) => at = end,
                Err(untold) => return Ok(Err(untold)),
            }
        }
        Ok(Ok(()))
    }

    /// Over a byte to a node of a tree; none where there is nothing more to see below.
    fn step(
        &mut self,
        parser: &mut Parser,
        (tree, node, kinds): (&Tree, u32, u64),
        byte: u8,
        before: At,
    ) -> Result<Result<Option<At>, Untold>, ParserLimit> {
        let config = parser.step(before.config, byte)?;
        let nodes = tree.node(node).end - node;
        let again = config == before.config || matches!(byte, 0x80..0xC0);
        if config == DEAD || again && nodes >= SWALLOW && parser.loops(config, kinds)? {
            return Ok(Ok(None));
        }
        if self.nodes.len() <= config as usize {
            self.nodes.resize(config as usize + 1, None);
        }
        let seen = *self.nodes[config as usize].get_or_insert_with(|| parser.node_seen(config));
        let next = match seen {
            Seen::Several => return Ok(Err(Untold)),
            Seen::Node(to) if to != before.node => At { config, node: to, moves: before.moves + 1 },
            Seen::Node(_) | Seen::Between => At { config, ..before },
        };
        self.most = self.most.max(next.moves);
        // Each move takes a character, and those that are not ASCII take two bytes at least.
        let chars = tree.height(node).map(|bytes| {
            if kinds & !(NOT_ASCII | CODE_POINTS | BLACK_CODE_POINTS) == 0 { bytes.div_ceil(2) } else { bytes }
        });
        let may_be_more = chars.is_none_or(|chars| next.moves + u32::from(chars) > self.most);
        Ok(Ok((nodes > 1 && may_be_more).then_some(next)))
    }
}
