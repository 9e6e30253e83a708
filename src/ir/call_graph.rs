//! The call graph of a grammar.

use super::Rule;
use crate::ids::RuleId;

/// Calls as flat arrays, in the order of the bodies.
pub(crate) struct CallGraph {
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl CallGraph {
    /// The call graph. Cost: linear.
    pub(crate) fn build(rules: &[Rule]) -> CallGraph {
        let mut calls =
            CallGraph { offsets: Vec::with_capacity(rules.len() + 1), targets: Vec::new() };
        calls.offsets.push(0);
        for rule in rules {
            rule.body.each_ref(&mut |target| calls.targets.push(target.raw()));
            calls.offsets.push(calls.targets.len() as u32);
        }
        calls
    }

    /// Number of rules.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The callees of a rule; with repetitions.
    pub(super) fn callees(&self, rule: u32) -> &[u32] {
        &self.targets
            [self.offsets[rule as usize] as usize..self.offsets[rule as usize + 1] as usize]
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

    /// By rule: number of calls of it.
    pub(super) fn reference_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.len()];
        self.targets.iter().for_each(|&target| counts[target as usize] += 1);
        counts
    }

    /// The graph with all edges reversed.
    pub(super) fn reversed(&self) -> CallGraph {
        let counts = self.reference_counts();
        let mut offsets = vec![0u32; self.len() + 1];
        for (i, n) in counts.iter().enumerate() {
            offsets[i + 1] = offsets[i] + n;
        }
        let mut fill = offsets.clone();
        let mut targets = vec![0; self.targets.len()];
        for caller in 0..self.len() as u32 {
            for &callee in self.callees(caller) {
                let at = &mut fill[callee as usize];
                targets[*at as usize] = caller;
                *at += 1;
            }
        }
        CallGraph { offsets, targets }
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
