//! The call graph of a grammar.

use super::Rule;
use crate::fsm::Csr;
use crate::ids::RuleId;

/// By rule: its callees, in the order of the body.
pub(crate) struct CallGraph(Csr);

impl CallGraph {
    /// The call graph. Cost: linear.
    pub(crate) fn build(rules: &[Rule]) -> CallGraph {
        CallGraph(Csr::from_rows(rules, |rule, callees| {
            rule.body.each_ref(&mut |callee| callees.push(callee.raw()));
        }))
    }

    /// Number of rules.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The callees of a rule; with repetitions.
    pub(super) fn callees(&self, rule: u32) -> &[u32] {
        self.0.row(rule)
    }

    /// The rules reachable from `roots` in postorder: callees before callers, except along cycles.
    pub(crate) fn callees_first(&self, roots: impl IntoIterator<Item = RuleId>) -> Vec<u32> {
        let mut seen = vec![false; self.len()];
        let mut order = Vec::with_capacity(self.len());
        let mut work: Vec<(u32, usize)> = Vec::new();
        for root in roots {
            if std::mem::replace(&mut seen[root.index()], true) {
                continue;
            }
            work.push((root.raw(), 0));
            while let Some((rule, at)) = work.last_mut() {
                match self.callees(*rule).get(*at) {
                    Some(&callee) => {
                        *at += 1;
                        if !std::mem::replace(&mut seen[callee as usize], true) {
                            work.push((callee, 0));
                        }
                    }
                    None => {
                        order.push(*rule);
                        work.pop();
                    }
                }
            }
        }
        order
    }

    /// All rules in the order of [`CallGraph::callees_first`].
    pub(crate) fn all_callees_first(&self) -> Vec<u32> {
        self.callees_first((0..self.len()).map(RuleId::new))
    }

    /// All calls, as pairs of caller and callee.
    fn calls(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.len() as u32)
            .flat_map(|caller| self.callees(caller).iter().map(move |&callee| (caller, callee)))
    }

    /// By rule: number of calls of it.
    pub(super) fn reference_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.len()];
        self.calls().for_each(|(_, callee)| counts[callee as usize] += 1);
        counts
    }

    /// The graph with all edges reversed.
    pub(super) fn reversed(&self) -> CallGraph {
        CallGraph(Csr::new(self.len(), || self.calls().map(|(caller, callee)| (callee, caller))))
    }

    /// Rules on a cycle, or on a path between two cycles.
    pub(super) fn recursive(&self) -> Vec<bool> {
        let back = self.reversed();
        let mut remaining = vec![true; self.len()];
        // Repeatedly remove rules without remaining callees; then those without remaining callers.
        for (forward, backward) in [(self, &back), (&back, self)] {
            let mut open: Vec<usize> = (0..self.len() as u32)
                .map(|r| forward.callees(r).iter().filter(|&&c| remaining[c as usize]).count())
                .collect();
            let mut queue: Vec<u32> = (0..self.len() as u32)
                .filter(|&r| remaining[r as usize] && open[r as usize] == 0)
                .collect();
            while let Some(rule) = queue.pop() {
                remaining[rule as usize] = false;
                for &caller in backward.callees(rule) {
                    open[caller as usize] -= 1;
                    if open[caller as usize] == 0 && remaining[caller as usize] {
                        queue.push(caller);
                    }
                }
            }
        }
        remaining
    }
}
