//! The numbers of steps in which a graph can be left: from which nodes an end is reached in exactly
//! n edges.
//!
//! An upper bound alone asks for the shortest path to an end, which is one number a node. A lower
//! bound asks for paths of exactly n edges: level n is the set of nodes that have one, as a bit
//! set. Each level determines the next one, so levels repeat once one recurs.

use std::collections::hash_map::Entry;

use super::{Csr, TooLarge};
use crate::fuel;
use crate::hash::HashMap;

/// Most levels that are stored.
const MAX_STORED_LEVELS: usize = 4_096;
/// Most words of all levels together, each for 64 nodes.
const MAX_STORED_WORDS: usize = 1 << 20;
/// The distance of a node from which no end is reached.
const UNREACHED: u32 = u32::MAX;

/// From which nodes of a graph an end is reached in exactly so many steps.
#[derive(Clone, Debug)]
pub(crate) struct PathLengths {
    /// By node: the fewest steps to an end.
    nearest: Vec<u32>,
    /// By node: the fewest steps to an end, but at least one.
    nearest_nonempty: Vec<u32>,
    /// The greatest of the fewest steps, without nodes beyond the upper bound.
    farthest: u32,
    /// By number of steps: one bit a node. Empty if no lower bound needs it.
    table: Vec<Box<[u64]>>,
    /// After the last level, levels repeat from this one on. `None`: the table ends at the upper
    /// bound.
    repeat_from: Option<usize>,
}

impl PathLengths {
    /// The levels of a graph with this many nodes, for bounds of at most `min` and `max` steps.
    /// Errors: they are too many to be stored, or out of fuel. Cost: the edges; with a lower bound
    /// above 1, times the levels before they repeat.
    pub(crate) fn new(
        nodes: usize,
        edges: &[(u32, u32)],
        ends: &[u32],
        min: u32,
        max: Option<u32>,
    ) -> Result<PathLengths, TooLarge> {
        fuel::spend(nodes / 8 + edges.len())?;
        let back = Csr::new(nodes, || edges.iter().map(|&(from, to)| (to, from)));
        let mut nearest = vec![UNREACHED; nodes];
        ends.iter().for_each(|&end| nearest[end as usize] = 0);
        let mut queue = std::collections::VecDeque::from_iter(ends.iter().copied());
        while let Some(node) = queue.pop_front() {
            let steps = nearest[node as usize] + 1;
            for &from in back.row(node).iter() {
                if nearest[from as usize] == UNREACHED {
                    nearest[from as usize] = steps;
                    queue.push_back(from);
                }
            }
        }
        let mut nearest_nonempty = vec![UNREACHED; nodes];
        for &(from, to) in edges {
            let ahead = &mut nearest_nonempty[from as usize];
            *ahead = nearest[to as usize].saturating_add(1).min(*ahead);
        }
        let most = max.unwrap_or(UNREACHED - 1);
        let farthest = nearest.iter().copied().filter(|&steps| steps <= most).max().unwrap_or(0);
        let (table, repeat_from) =
            if min > 1 { levels(nodes, edges, ends, max)? } else { (Vec::new(), None) };
        Ok(PathLengths { nearest, nearest_nonempty, farthest, table, repeat_from })
    }

    /// The greatest of the nodes' fewest numbers of steps, within the upper bound.
    pub(crate) fn farthest(&self) -> u32 {
        self.farthest
    }

    /// The first lower bound from which on answers repeat, and their period. Answers to questions
    /// with lower bounds from there on depend on the remainder only, if `max - min` stays the same.
    /// `None` if that is not known.
    pub(crate) fn repetition(&self) -> Option<(u32, u32)> {
        let from = self.repeat_from?;
        Some((from as u32, (self.table.len() - from) as u32))
    }

    /// Whether an end is reached from a node in at least `min` and at most `max` steps. The bounds
    /// must not exceed those of [`PathLengths::new`].
    pub(crate) fn has_path_within(&self, node: u32, min: u32, max: Option<u32>) -> bool {
        let nearest = self.nearest[node as usize];
        let most = max.unwrap_or(UNREACHED - 1);
        if nearest > most || nearest >= min {
            return nearest <= most;
        }
        if min == 1 {
            return self.nearest_nonempty[node as usize] <= most;
        }
        let from = self.repeat_from.unwrap_or(0);
        let period = self.table.len() - from;
        // After one whole period nothing new comes.
        let past = (min as usize).max(from) + period;
        let last = max.map_or(past, |max| (max as usize).min(past));
        (min as usize..=last).any(|steps| {
            let level = match steps.checked_sub(self.table.len()) {
                None => steps,
                Some(over) => from + over % period,
            };
            self.table[level][node as usize / 64] >> (node % 64) & 1 == 1
        })
    }
}

/// The levels up to `horizon` steps, and the one from which on they repeat. Errors: they are too
/// many to be stored, or out of fuel.
fn levels(
    nodes: usize,
    edges: &[(u32, u32)],
    ends: &[u32],
    horizon: Option<u32>,
) -> Result<(Vec<Box<[u64]>>, Option<usize>), TooLarge> {
    let words = nodes.div_ceil(64);
    let limit = MAX_STORED_LEVELS.min(MAX_STORED_WORDS / words.max(1));
    let mut level: Box<[u64]> = vec![0; words].into();
    ends.iter().for_each(|&end| level[end as usize / 64] |= 1 << (end % 64));
    let mut numbers: HashMap<Box<[u64]>, usize> = HashMap::default();
    let mut table = Vec::new();
    loop {
        match numbers.entry(level.clone()) {
            Entry::Occupied(before) => return Ok((table, Some(*before.get()))),
            Entry::Vacant(new) => new.insert(table.len()),
        };
        let mut next: Box<[u64]> = vec![0; words].into();
        for &(from, to) in edges {
            next[from as usize / 64] |= (level[to as usize / 64] >> (to % 64) & 1) << (from % 64);
        }
        fuel::spend(words + edges.len() / 4)?;
        table.push(std::mem::replace(&mut level, next));
        if horizon.is_some_and(|horizon| table.len() > horizon as usize) {
            return Ok((table, None));
        }
        if table.len() >= limit {
            return Err(TooLarge::States { limit });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two cycles whose common period is longer than the levels that are stored.
    #[test]
    fn too_many_levels_and_little_fuel_are_told_apart() {
        let cycle = |first: u32, length: u32| {
            (0..length).map(move |i| (first + i, first + (i + 1) % length))
        };
        let edges: Vec<(u32, u32)> = cycle(0, 67).chain(cycle(67, 71)).collect();
        let levels = || PathLengths::new(138, &edges, &[0, 67], 5_000, None).err();
        assert_eq!(levels(), Some(TooLarge::States { limit: MAX_STORED_LEVELS }));
        let out_of_fuel = fuel::with_budget(100, levels);
        assert!(matches!(out_of_fuel, Some(TooLarge::Fuel(_))), "{out_of_fuel:?}");
    }

    proptest! {
        #[test]
        fn exact_steps_agree_with_walks(
            edges in prop::collection::vec((0..6u32, 0..6u32), 0..12),
            ends in prop::collection::vec(0..6u32, 0..3),
            min in 0..12u32,
            max in prop::option::of(0..12u32),
        ) {
            let steps = PathLengths::new(6, &edges, &ends, min, max).unwrap();
            // By definition: the nodes from which an end is reached in exactly `steps` steps.
            let mut walks = vec![(0..6).map(|node| ends.contains(&node)).collect::<Vec<bool>>()];
            for steps in 0..120 {
                let next = |node| {
                    edges.iter().any(|&(from, to)| from == node && walks[steps][to as usize])
                };
                let next = (0..6).map(next).collect();
                walks.push(next);
            }
            let questions = (0..6).flat_map(|n| (0..=min).map(move |a| (n, a)));
            for (node, min) in questions {
                for max in min..=max.unwrap_or(20) {
                    let bounded = (min..=max).any(|steps| walks[steps as usize][node as usize]);
                    prop_assert_eq!(steps.has_path_within(node, min, Some(max)), bounded);
                    // Answers repeat.
                    let later = steps.repetition().filter(|&(from, _)| min >= from);
                    if let Some((_, period)) = later {
                        let later = min + period..=max + period;
                        let ends = |steps| walks[steps as usize][node as usize];
                        let later = { later }.any(ends);
                        prop_assert_eq!(later, bounded);
                    }
                }
                if max.is_none() {
                    let open = (min..40).any(|steps| walks[steps as usize][node as usize]);
                    prop_assert_eq!(steps.has_path_within(node, min, None), open);
                }
            }
        }
    }
}
