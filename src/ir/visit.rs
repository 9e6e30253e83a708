//! Traversals of expressions.

use super::{Expr, Graph, Members};
use crate::fsm::Csr;

impl Expr {
    /// The expressions that this one consists of, in order. Calls are not followed.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Expr> {
        let (mut parts, mut edges, mut members): (&[Expr], &[(u32, Expr, u32)], _) =
            (&[], &[], None);
        match self {
            Expr::Seq(all) | Expr::Alt(all) => parts = all,
            Expr::Repeat { body, .. } => parts = std::slice::from_ref(body),
            Expr::Graph(graph) => edges = &graph.edges,
            Expr::Counted(counted) => edges = &counted.graph.edges,
            Expr::Members(set) => members = Some(&**set),
            Expr::Empty | Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => {}
            Expr::Ref(_) | Expr::Automaton(_) | Expr::Except(_) => {}
            Expr::Dispatch(_) | Expr::Deferred(_) => {}
        }
        let edges = edges.iter().map(|(_, expr, _)| expr);
        parts.iter().chain(edges).chain(members.into_iter().flat_map(Members::parts))
    }

    /// As [`Expr::children`], to change them.
    pub(crate) fn children_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (mut parts, mut edges, mut members): (&mut [Expr], &mut [(u32, Expr, u32)], _) =
            (&mut [], &mut [], None);
        match self {
            Expr::Seq(all) | Expr::Alt(all) => parts = all,
            Expr::Repeat { body, .. } => parts = std::slice::from_mut(body),
            Expr::Graph(graph) => edges = &mut graph.edges,
            Expr::Counted(counted) => edges = &mut counted.graph.edges,
            Expr::Members(set) => members = Some(&mut **set),
            Expr::Empty | Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => {}
            Expr::Ref(_) | Expr::Automaton(_) | Expr::Except(_) => {}
            Expr::Dispatch(_) | Expr::Deferred(_) => {}
        }
        let edges = edges.iter_mut().map(|(_, expr, _)| expr);
        parts.iter_mut().chain(edges).chain(members.into_iter().flat_map(Members::parts_mut))
    }

    /// Whether the expression derives a text. `known` is asked first at every expression inside; it
    /// must answer calls. Free text, deferred bodies and counted graphs derive a text unless it
    /// answers otherwise: front ends make only such counted graphs.
    pub(crate) fn derives_text(&self, known: &mut dyn FnMut(&Expr) -> Option<bool>) -> bool {
        if let Some(derives) = known(self) {
            return derives;
        }
        match self {
            Expr::Never | Expr::Ref(_) => false,
            Expr::Empty | Expr::Bytes(_) | Expr::Special(_) => true,
            Expr::Dispatch(_) | Expr::Deferred(_) | Expr::Counted(_) => true,
            Expr::Class(set) => !set.is_empty(),
            Expr::Automaton(dfa) => !dfa.is_empty(),
            Expr::Seq(parts) => parts.iter().all(|part| part.derives_text(known)),
            Expr::Alt(parts) => parts.iter().any(|part| part.derives_text(known)),
            Expr::Repeat { body, min, max } => {
                max.is_none_or(|max| max >= *min) && (*min == 0 || body.derives_text(known))
            }
            Expr::Graph(graph) => graph.has_path(|expr| expr.derives_text(known)),
            Expr::Members(members) => members.derives(|part| part.derives_text(known)),
            Expr::Except(except) => {
                except.is_always_productive() || except.to_graph().derives_text(known)
            }
        }
    }
}

impl Graph {
    /// By node: whether it is reached over edges that pass.
    pub(crate) fn reached(&self, mut passes: impl FnMut(&Expr) -> bool) -> Vec<bool> {
        let edges = self.edges.iter().filter(|(_, expr, _)| passes(expr));
        let passing: Vec<(u32, u32)> = edges.map(|&(from, _, to)| (from, to)).collect();
        Csr::new(self.nodes as usize, || passing.iter().copied()).reached([self.start])
    }

    /// Whether an end is reached over edges that pass.
    pub(crate) fn has_path(&self, passes: impl FnMut(&Expr) -> bool) -> bool {
        let reached = self.reached(passes);
        self.ends.iter().any(|&end| reached[end as usize])
    }
}
