//! Composite expressions as graphs.

use crate::ir::AlgebraError;
use crate::ir::{Expr, Graph};

/// A sequence, repeat, graph or member set, viewed as a graph. For a member set it has a node for
/// each set of seen members.
pub(super) struct GraphView<'e> {
    pub(super) nodes: u32,
    pub(super) start: u32,
    pub(super) ends: Vec<u32>,
    pub(super) edges: Vec<(u32, &'e Expr, u32)>,
}

impl<'e> GraphView<'e> {
    /// A composite expression as a graph; `None` if it derives nothing. Fails if a repeat or a
    /// member set has more than `limit` nodes.
    pub(super) fn of(expr: &'e Expr, limit: usize) -> Result<Option<Self>, AlgebraError> {
        Ok(Some(match expr {
            Expr::Seq(parts) => {
                let edges = (0u32..).zip(parts).map(|(i, part)| (i, part, i + 1)).collect();
                let last = parts.len() as u32;
                GraphView { nodes: last + 1, start: 0, ends: vec![last], edges }
            }
            Expr::Repeat { min, max: Some(max), .. } if min > max => return Ok(None),
            Expr::Repeat { body, min, max } => {
                let last = max.unwrap_or(*min);
                if last as usize > limit {
                    return Err(AlgebraError::TooLarge { limit });
                }
                let mut edges: Vec<_> = (0..last).map(|i| (i, &**body, i + 1)).collect();
                if max.is_none() {
                    edges.push((last, body, last));
                }
                GraphView { nodes: last + 1, start: 0, ends: (*min..=last).collect(), edges }
            }
            Expr::Graph(graph) => GraphView {
                nodes: graph.nodes,
                start: graph.start,
                ends: graph.ends.clone(),
                edges: graph.edges.iter().map(|(from, expr, to)| (*from, expr, *to)).collect(),
            },
            Expr::Members(members) => {
                let paths =
                    members.to_graph(limit).map_err(|_| AlgebraError::TooLarge { limit })?;
                GraphView { nodes: paths.nodes, start: 0, ends: paths.ends, edges: paths.edges }
            }
            _ => return Ok(None),
        }))
    }

    /// By node: whether it is accepting.
    pub(super) fn end_flags(&self) -> Vec<bool> {
        let mut out = vec![false; self.nodes as usize];
        self.ends.iter().for_each(|&end| out[end as usize] = true);
        out
    }
}

/// Turns a graph that is a single path into a sequence.
pub(super) fn to_sequence(graph: Graph) -> Expr {
    let one = |edges: &[(u32, Expr, u32)]| {
        (0u32..).zip(edges).all(|(i, (from, _, to))| *from == i && *to == i + 1)
    };
    if graph.start == 0 && one(&graph.edges) && graph.ends == [graph.edges.len() as u32] {
        return Expr::seq(graph.edges.into_iter().map(|(_, expr, _)| expr));
    }
    Expr::Graph(Box::new(graph))
}
