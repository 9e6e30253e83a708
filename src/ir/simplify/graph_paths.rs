//! Reachability within one graph expression.

use crate::ir::{Expr, Graph};

/// Whether an end node is reachable over edges that pass.
pub(super) fn reaches_end(graph: &Graph, passes: &[bool]) -> bool {
    let seen = reachable_nodes(graph, &[graph.start], passes, |&(from, _, to)| (from, to));
    graph.ends.iter().any(|&end| seen[end as usize])
}

/// The nodes reachable from `roots` over edges that pass; `ends` gives the direction of an edge.
pub(super) fn reachable_nodes(
    graph: &Graph,
    roots: &[u32],
    passes: &[bool],
    ends: impl Fn(&(u32, Expr, u32)) -> (u32, u32),
) -> Vec<bool> {
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes as usize];
    for (edge, _) in graph.edges.iter().zip(passes).filter(|(_, passes)| **passes) {
        let (from, to) = ends(edge);
        out[from as usize].push(to);
    }
    let mut seen = vec![false; graph.nodes as usize];
    let mut stack = roots.to_vec();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            stack.extend(&out[node as usize]);
        }
    }
    seen
}
