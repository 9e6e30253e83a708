//! Graphs under construction whose nodes are interned by what they stand for.

use std::hash::Hash;

use crate::hash::HashMap;
use crate::ir::{Expr, Graph};

/// A graph with one start and one end, of which each other node has a key. Nodes are pending until
/// their edges are added.
pub(super) struct InternedGraph<K> {
    graph: Graph,
    nodes: HashMap<K, u32>,
    pending: Vec<(K, u32)>,
}

impl<K: Clone + Eq + Hash> InternedGraph<K> {
    /// The start.
    pub(super) const START: u32 = 0;
    /// The end.
    pub(super) const END: u32 = 1;

    /// A graph with its start and its end.
    pub(super) fn new() -> InternedGraph<K> {
        let graph =
            Graph { nodes: 2, start: Self::START, ends: vec![Self::END], edges: Vec::new() };
        InternedGraph { graph, nodes: HashMap::default(), pending: Vec::new() }
    }

    /// The number of nodes with a key.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node with this key; a new one is pending.
    pub(super) fn node(&mut self, key: K) -> u32 {
        if let Some(&node) = self.nodes.get(&key) {
            return node;
        }
        let node = self.graph.node();
        self.nodes.insert(key.clone(), node);
        self.pending.push((key, node));
        node
    }

    /// The next node whose edges are to be added.
    pub(super) fn pop(&mut self) -> Option<(K, u32)> {
        self.pending.pop()
    }

    /// Adds an edge.
    pub(super) fn edge(&mut self, from: u32, expr: Expr, to: u32) {
        self.graph.edge(from, expr, to);
    }

    /// The finished graph.
    pub(super) fn finish(self) -> Expr {
        Expr::Graph(Box::new(self.graph))
    }
}
