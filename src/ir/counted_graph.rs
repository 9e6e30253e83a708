//! Counted graphs: patterns with bounds on their length, without a node for each length.

use super::{Expr, Graph};

/// The paths of a graph that have between `min` and `max` edges. Each edge expression must be
/// productive and not nullable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counted {
    /// The graph.
    pub graph: Graph,
    /// Fewest edges.
    pub min: u32,
    /// Most edges (no upper bound: `None`).
    pub max: Option<u32>,
}

/// Larger graphs of [`Counted::to_graph`] are not made, except where a caller has its own limit.
pub(in crate::ir) const MAX_UNROLLED: usize = 200_000;

impl Counted {
    /// The size of [`Counted::to_graph`], without making it.
    pub(in crate::ir) fn unrolled_size(&self) -> usize {
        let edges: usize = self.graph.edges.iter().map(|(_, expr, _)| expr.size()).sum();
        self.layers().saturating_mul(self.graph.nodes as usize + edges)
    }

    /// Fewest states of an NFA of [`Counted::to_graph`]: one for each node, and one for each edge
    /// but those that leave the last layer.
    pub(in crate::ir) fn fewest_states(&self) -> usize {
        let (nodes, edges) = (self.graph.nodes as usize, self.graph.edges.len());
        self.layers()
            .saturating_mul(nodes)
            .saturating_add((self.layers() - 1).saturating_mul(edges))
    }

    /// The number of copies of each node in [`Counted::to_graph`].
    fn layers(&self) -> usize {
        self.max.unwrap_or(self.min) as usize + 1
    }

    /// [`Counted::to_graph`], unless its size exceeds the limit.
    pub(in crate::ir) fn to_graph_within(&self, limit: usize) -> Option<Expr> {
        (self.unrolled_size() <= limit).then(|| self.to_graph())
    }

    /// The expression as a graph with a node for each pair of node and number of edges. Cost: the
    /// number of pairs.
    pub fn to_graph(&self) -> Expr {
        let Counted { graph, min, max } = self;
        if max.is_some_and(|max| max < *min) {
            return Expr::Never;
        }
        // Without an upper bound, counts beyond the lower bound make no difference.
        let layers = max.unwrap_or(*min);
        let node = |layer: u32, node: u32| layer * graph.nodes + node;
        let mut out =
            Graph { nodes: (layers + 1) * graph.nodes, start: graph.start, ..Graph::default() };
        for layer in 0..=layers {
            let next = if layer < layers { layer + 1 } else { layer };
            if layer < next || max.is_none() {
                for (from, expr, to) in &graph.edges {
                    out.edge(node(layer, *from), expr.clone(), node(next, *to));
                }
            }
            if layer >= *min {
                out.ends.extend(graph.ends.iter().map(|&end| node(layer, end)));
            }
        }
        Expr::Graph(Box::new(out))
    }

    /// The edges as pairs of nodes, without duplicates.
    pub(crate) fn steps(&self) -> Vec<(u32, u32)> {
        let mut steps: Vec<(u32, u32)> =
            self.graph.edges.iter().map(|&(from, _, to)| (from, to)).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}
