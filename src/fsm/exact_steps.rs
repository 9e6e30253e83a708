//! The numbers of steps in which a graph can be left: from which nodes an end is reached in exactly
//! n edges.
//!
//! Level n is the set of those nodes, as a bit set. Each level determines the next one, so levels
//! repeat once one recurs, and a graph without a bound on n needs finitely many.

use std::collections::hash_map::Entry;

use crate::hash::HashMap;

use crate::fuel;

/// Most levels that are stored.
const MAX_STORED_LEVELS: usize = 4_096;

/// From which nodes of a graph an end is reached in exactly so many steps.
#[derive(Clone, Debug)]
pub(crate) struct ExactSteps {
    /// By number of steps: one bit a node.
    table: Vec<Box<[u64]>>,
    /// After the last level, levels repeat from this one on.
    repeat_from: usize,
    /// By node: the fewest steps to an end; `None` where no end is reached.
    nearest: Vec<Option<u32>>,
}

impl ExactSteps {
    /// The levels of a graph with so many nodes, up to `horizon` steps. `None` if they are too many
    /// to be stored, or out of fuel. Cost: the edges, times the levels before they repeat.
    pub(crate) fn new(
        nodes: usize,
        edges: &[(u32, u32)],
        ends: &[u32],
        horizon: Option<u32>,
    ) -> Option<ExactSteps> {
        let words = nodes.div_ceil(64);
        let mut level: Box<[u64]> = vec![0; words].into();
        ends.iter().for_each(|&end| level[end as usize / 64] |= 1 << (end % 64));
        let mut levels: HashMap<Box<[u64]>, usize> = HashMap::default();
        let mut out = ExactSteps { table: Vec::new(), repeat_from: 0, nearest: vec![None; nodes] };
        loop {
            let steps = out.table.len();
            match levels.entry(level.clone()) {
                Entry::Occupied(before) => {
                    out.repeat_from = *before.get();
                    return Some(out);
                }
                Entry::Vacant(new) => new.insert(steps),
            };
            for (node, nearest) in
                out.nearest.iter_mut().enumerate().filter(|(_, nearest)| nearest.is_none())
            {
                if level[node / 64] >> (node % 64) & 1 == 1 {
                    *nearest = Some(steps as u32);
                }
            }
            let mut next: Box<[u64]> = vec![0; words].into();
            for &(from, to) in edges {
                next[from as usize / 64] |=
                    (level[to as usize / 64] >> (to % 64) & 1) << (from % 64);
            }
            if fuel::spend(words + edges.len() / 4).is_err() {
                return None;
            }
            out.table.push(std::mem::replace(&mut level, next));
            if horizon.is_some_and(|horizon| steps >= horizon as usize) {
                return Some(out);
            }
            if out.table.len() >= MAX_STORED_LEVELS {
                return None;
            }
        }
    }

    /// The greatest of the nodes' fewest numbers of steps.
    pub(crate) fn farthest(&self) -> u32 {
        self.nearest.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Whether an end is reached from a node in at least `min` and at most `max` steps. `max` must
    /// not exceed the horizon.
    pub(crate) fn ends_within(&self, node: u32, min: u32, max: Option<u32>) -> bool {
        let Some(nearest) = self.nearest[node as usize] else { return false };
        let first = min.max(nearest) as usize;
        // After one whole period nothing new comes.
        let past = first.max(self.repeat_from) + (self.table.len() - self.repeat_from);
        let last = max.map_or(past, |max| (max as usize).min(past));
        (first..=last).any(|steps| {
            let level = match steps.checked_sub(self.table.len()) {
                None => steps,
                Some(over) => self.repeat_from + over % (self.table.len() - self.repeat_from),
            };
            self.table[level][node as usize / 64] >> (node % 64) & 1 == 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exact_steps_agree_with_walks(
            edges in prop::collection::vec((0..6u32, 0..6u32), 0..12),
            ends in prop::collection::vec(0..6u32, 0..3),
            horizon in prop::option::of(0..12u32),
        ) {
            let steps = ExactSteps::new(6, &edges, &ends, horizon).unwrap();
            // By definition: the nodes from which an end is reached in exactly `steps` steps.
            let mut walks = vec![(0..6).map(|node| ends.contains(&node)).collect::<Vec<bool>>()];
            for steps in 0..40 {
                let next = |node| {
                    edges.iter().any(|&(from, to)| from == node && walks[steps][to as usize])
                };
                let next = (0..6).map(next).collect();
                walks.push(next);
            }
            for (node, min, max) in
                (0..6).flat_map(|n| (0..12).flat_map(move |a| (0..12).map(move |b| (n, a, b))))
            {
                let bounded = (min..=max).any(|steps| walks[steps as usize][node as usize]);
                if horizon.is_none_or(|horizon| max <= horizon) {
                    prop_assert_eq!(steps.ends_within(node, min, Some(max)), bounded);
                }
                if horizon.is_none() {
                    let open = (min..40).any(|steps| walks[steps as usize][node as usize]);
                    prop_assert_eq!(steps.ends_within(node, min, None), open);
                }
            }
        }
    }
}
