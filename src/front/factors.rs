//! Factor automata: runs of consecutive chunks of a text, for EBNF and Lark.

use crate::fsm::Dfa;
use crate::hash::IndexSet;
use crate::ir::{Expr, Graph};

/// Lowers the runs of consecutive chunks of a list, the empty run included, to the minimal
/// automaton of the list's factors. Linear.
pub(super) fn substring<C: AsRef<[u8]>>(chunks: &[C]) -> Expr {
    let mut distinct: IndexSet<&[u8]> = IndexSet::default();
    let chunks = chunks.iter().map(AsRef::as_ref).filter(|chunk| !chunk.is_empty());
    let word: Vec<u32> = chunks.map(|chunk| distinct.insert_full(chunk).0 as u32).collect();
    if word.is_empty() {
        return Expr::Empty;
    }
    let factors = Dfa::factors(&word);
    let states = 0..factors.len() as u32;
    let mut graph =
        Graph { nodes: factors.len() as u32, ends: states.clone().collect(), ..Graph::default() };
    for state in states {
        for edge in factors.edges(state) {
            (edge.lo..=edge.hi).for_each(|chunk| {
                graph.edge(state, Expr::bytes(distinct[chunk as usize]), edge.to)
            });
        }
    }
    Expr::Graph(Box::new(graph))
}
