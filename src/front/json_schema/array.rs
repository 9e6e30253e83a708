//! Arrays: a prefix of positions, then counted elements.

use super::SchemaErrorReason as Reason;
use super::facets::ArrayFacets;
use super::lower::Lowering;
use crate::ir::{Expr, Graph};

impl<'a> Lowering<'a, '_> {
    /// An array with these facets, brackets included.
    pub(super) fn array(&mut self, facets: &ArrayFacets) -> Expr {
        if !facets.contains.is_empty() {
            return self.containing(facets);
        }
        let (open, close, comma) = self.brackets();
        let prefix = facets.prefix();
        let rest = self.value(facets.element(prefix));
        let mut max = facets.max.map_or(usize::MAX, |max| max as usize);
        if rest == Expr::Never {
            max = max.min(prefix);
        }
        let min = facets.min as usize;
        let mut graph = Graph::default();
        let (start, end) = (graph.node(), graph.node());
        graph.start = start;
        graph.ends.push(end);
        // `inside`: behind the bracket; `behind`: behind element i.
        let inside = graph.node();
        graph.edge(start, open, inside);
        if min == 0 {
            graph.edge(inside, Expr::text("]"), end);
        }
        let mut at = inside;
        for i in 0..prefix.min(max) {
            let element = self.value(facets.element(i));
            let behind = graph.node();
            let lead = if i == 0 { Expr::Empty } else { comma.clone() };
            graph.edge(at, Expr::seq([lead, element.clone()]), behind);
            if min <= i + 1 {
                graph.edge(behind, close.clone(), end);
            }
            at = behind;
            if element == Expr::Never {
                max = i;
                break;
            }
        }
        if max > prefix {
            let bound = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let (mut min, mut max) =
                (bound(min.saturating_sub(prefix)), facets.max.map(|m| m.saturating_sub(bound(prefix))));
            let mut from = at;
            if prefix == 0 {
                from = graph.node();
                graph.edge(inside, rest.clone(), from);
                (min, max) = (min.saturating_sub(1), max.map(|m| m - 1));
            }
            graph.edge(from, Expr::seq([Expr::repeat(Expr::seq([comma, rest]), min, max), close]), end);
        }
        Expr::Graph(Box::new(graph))
    }

    /// At least one element satisfies the `contains` schema: any elements, that one, any elements.
    fn containing(&mut self, facets: &ArrayFacets) -> Expr {
        let [wanted] = facets.contains[..] else {
            return self.unsupported_contains(facets, "several `contains` together");
        };
        if facets.prefix() > 0 || facets.min > 1 || facets.max.is_some() {
            return self.unsupported_contains(facets, "`contains` beside other bounds on the elements");
        }
        let (open, close, comma) = self.brackets();
        let any = self.value(facets.element(0));
        let mut locs = facets.element(0);
        locs.push(wanted);
        let hit = self.value(locs);
        let before = Expr::star(Expr::seq([any.clone(), comma.clone()]));
        let after = Expr::star(Expr::seq([comma, any]));
        Expr::seq([open, before, hit, after, close])
    }

    fn unsupported_contains(&mut self, facets: &ArrayFacets, what: &str) -> Expr {
        let at = facets.contains[0];
        self.norm.report(at, "", Reason::Unsupported(what.into()));
        Expr::Never
    }
}
