//! Unrolling of counted repeats.

use super::{Expr, Grammar, Graph};

impl Grammar {
    /// An equivalent grammar in which counted repeats are unrolled into graphs, with a copy of the
    /// body for each repetition.
    ///
    /// A repeat stays as it is if it would have more than `most` nodes, or if all together would
    /// exceed `total`. [`Expr::Counted`], dispatches and [`Expr::Deferred`] bodies are not changed.
    pub fn unroll_repeats(&self, most: usize, total: usize) -> Grammar {
        let mut grammar = self.clone();
        let mut budget = total;
        grammar.rules.iter_mut().for_each(|rule| rule.body.unroll_repeats(most, &mut budget));
        grammar
    }
}

impl Expr {
    /// Unrolls the repeats of an expression, inner ones first.
    fn unroll_repeats(&mut self, most: usize, budget: &mut usize) {
        if !matches!(self, Expr::Counted(_)) {
            self.children_mut().for_each(|part| part.unroll_repeats(most, budget));
        }
        let Expr::Repeat { body, min, max } = self else { return };
        let (copies, size) = (max.unwrap_or(*min) as usize, body.size());
        let cost = copies.saturating_mul(size);
        if copies > 1 && cost <= most.min(*budget) {
            *budget -= cost;
            let graph = Graph::repeat((**body).clone(), *min, *max);
            *self = Expr::Graph(Box::new(graph));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::GrammarBuilder;

    #[test]
    fn repeats_are_unrolled_within_bounds() {
        let of = |body: Expr| {
            let mut b = GrammarBuilder::new();
            let start = b.rule("start", body);
            b.finish(start).unwrap()
        };
        let a = || Expr::text("a");
        let unrolled = |grammar: &Grammar, most, total| {
            grammar.unroll_repeats(most, total).rules[0].body.clone()
        };
        let two_to_four = of(Expr::repeat(a(), 2, Some(4)));
        let Expr::Graph(graph) = unrolled(&two_to_four, 100, 100) else { panic!("no graph") };
        assert_eq!((graph.nodes, &graph.ends[..], graph.edges.len()), (5, &[2, 3, 4][..], 4));
        let Expr::Graph(graph) = unrolled(&of(Expr::repeat(a(), 3, None)), 100, 100) else {
            panic!("no graph")
        };
        assert_eq!((&graph.ends[..], graph.edges.last()), (&[3][..], Some(&(3, a(), 3))));
        // Large repeats stay as they are: single ones, all together, and outer ones around unrolled
        // ones.
        assert_eq!(unrolled(&two_to_four, 3, 100), two_to_four.rules[0].body);
        let twice = of(Expr::seq([
            Expr::repeat(a(), 0, Some(5)),
            Expr::text("b"),
            Expr::repeat(a(), 0, Some(6)),
        ]));
        let Expr::Seq(parts) = unrolled(&twice, 100, 8) else { panic!("no sequence") };
        assert!(matches!((&parts[0], &parts[2]), (Expr::Graph(_), Expr::Repeat { .. })));
        let nested = of(Expr::repeat(Expr::repeat(a(), 0, Some(3)), 0, Some(50)));
        let Expr::Repeat { body, .. } = unrolled(&nested, 40, 1_000) else { panic!("no repeat") };
        assert!(matches!(*body, Expr::Graph(_)));
        // `x*`, `x?` and `x+` have no counters.
        for body in [Expr::star(a()), Expr::optional(a()), Expr::repeat(a(), 1, None)] {
            let grammar = of(body);
            assert_eq!(grammar.unroll_repeats(100, 100), grammar);
        }
    }
}
