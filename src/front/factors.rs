//! Factor automata: runs of consecutive chunks of a text, for EBNF and Lark.

use crate::fsm::Dfa;
use crate::hash::HashMap;
use crate::ir::{Expr, Graph};

/// Lowers the runs of consecutive chunks of a list, the empty run included, to the minimal
/// automaton of the list's factors. Linear.
pub(super) fn substring<C: AsRef<[u8]>>(chunks: &[C]) -> Expr {
    let mut ids: HashMap<&[u8], u32> = HashMap::default();
    let mut distinct: Vec<&[u8]> = Vec::new();
    let mut word = Vec::with_capacity(chunks.len());
    for chunk in chunks.iter().map(AsRef::as_ref).filter(|chunk| !chunk.is_empty()) {
        let id = *ids.entry(chunk).or_insert_with(|| {
            distinct.push(chunk);
            (distinct.len() - 1) as u32
        });
        word.push(id);
    }
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
