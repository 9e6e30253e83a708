//! Composite expressions as graphs, and graphs as sequences.

use crate::ir::{AlgebraError, Expr, Graph};

/// A sequence, repeat, graph or member set as a graph; `None` if it derives nothing. That of a
/// member set has a node for each set of seen members. Fails if a repeat or a member set has more
/// than `limit` nodes.
pub(super) fn graph_of(expr: &Expr, limit: usize) -> Result<Option<Graph<&Expr>>, AlgebraError> {
    Ok(Some(match expr {
        Expr::Seq(parts) => {
            let edges = (0u32..).zip(parts).map(|(i, part)| (i, part, i + 1)).collect();
            let last = parts.len() as u32;
            Graph { nodes: last + 1, start: 0, ends: vec![last], edges }
        }
        Expr::Repeat { min, max: Some(max), .. } if min > max => return Ok(None),
        Expr::Repeat { min, max, .. } if max.unwrap_or(*min) as usize > limit => {
            return Err(AlgebraError::TooLarge { limit });
        }
        Expr::Repeat { body, min, max } => Graph::repeat(body, *min, *max),
        Expr::Graph(graph) => graph.map(|expr| expr),
        Expr::Members(members) => {
            members.to_graph(limit).map_err(|_| AlgebraError::TooLarge { limit })?
        }
        _ => return Ok(None),
    }))
}

/// By node: whether it is accepting.
pub(super) fn end_flags<E>(graph: &Graph<E>) -> Vec<bool> {
    let mut out = vec![false; graph.nodes as usize];
    graph.ends.iter().for_each(|&end| out[end as usize] = true);
    out
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
