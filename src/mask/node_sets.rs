//! Sorted sets of trie nodes, by radix sort. Nodes are numbers below the size of the token trie,
//! and long walks leave many of them.

use std::hash::Hash;

use crate::hash::HashMap;
use crate::ids::id;
use crate::vocab::NodeId;

id! {
    /// Id of an interned set of trie nodes.
    pub(super) NodeSetId
}

/// Below this length, a comparison sort is faster.
const RADIX_SORT_MIN: usize = 256;
/// Bits per round of the radix sort.
const DIGIT_BITS: u32 = 9;
/// Values of one digit.
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts nodes and removes duplicates. Cost: one pass for every nine bits of the largest node.
/// Sorted input costs one pass.
pub(crate) fn sort_nodes(nodes: &mut Vec<NodeId>) {
    if !nodes.is_sorted() {
        if nodes.len() < RADIX_SORT_MIN {
            nodes.sort_unstable();
        } else {
            radix_sort(nodes);
        }
    }
    nodes.dedup();
}

/// Least-significant-digit radix sort.
fn radix_sort(nodes: &mut Vec<NodeId>) {
    let largest = nodes.iter().max().map_or(0, |node| node.raw());
    let mut sorted = vec![NodeId::ROOT; nodes.len()];
    let mut shift = 0;
    while shift < u32::BITS && largest >> shift > 0 {
        let digit = |node: NodeId| (node.raw() >> shift) as usize % DIGITS;
        let mut offsets = [0usize; DIGITS];
        nodes.iter().for_each(|&node| offsets[digit(node)] += 1);
        prefix_sums(&mut offsets);
        for &node in nodes.iter() {
            let offset = &mut offsets[digit(node)];
            sorted[*offset] = node;
            *offset += 1;
        }
        std::mem::swap(nodes, &mut sorted);
        shift += DIGIT_BITS;
    }
}

/// Sorts nodes, given in ascending order, by the byte that leads to each (a stable counting sort).
/// Cost: linear.
pub(crate) fn sorted_by_bytes(mut nodes: Vec<(u8, NodeId)>) -> Vec<(u8, NodeId)> {
    if nodes.is_sorted() {
        return nodes;
    }
    if nodes.len() < RADIX_SORT_MIN {
        nodes.sort_unstable();
        return nodes;
    }
    let mut offsets = [0usize; 256];
    nodes.iter().for_each(|&(byte, _)| offsets[usize::from(byte)] += 1);
    prefix_sums(&mut offsets);
    let mut sorted = vec![(0, NodeId::ROOT); nodes.len()];
    for node in nodes {
        let offset = &mut offsets[usize::from(node.0)];
        sorted[*offset] = node;
        *offset += 1;
    }
    sorted
}

/// Replaces lengths of parts by the offsets at which they begin (an exclusive prefix sum).
fn prefix_sums(lengths: &mut [usize]) {
    let mut begin = 0;
    for length in lengths {
        begin += std::mem::replace(length, begin);
    }
}

/// Sorts nodes by group, each group's nodes in order, and removes duplicates. Cost: as
/// [`sort_nodes`], and one look-up for each run of one group.
pub(crate) fn sort_by_group<K: Copy + Ord + Hash>(nodes: &mut Vec<(K, NodeId)>) {
    if nodes.len() < RADIX_SORT_MIN {
        nodes.sort_unstable();
        nodes.dedup();
        return;
    }
    let mut groups: Vec<(K, Vec<NodeId>)> = Vec::new();
    let mut group_numbers: HashMap<K, usize> = HashMap::default();
    for run in nodes.chunk_by(|a, b| a.0 == b.0) {
        let number = *group_numbers.entry(run[0].0).or_insert_with(|| {
            groups.push((run[0].0, Vec::new()));
            groups.len() - 1
        });
        groups[number].1.extend(run.iter().map(|&(_, node)| node));
    }
    groups.sort_unstable_by_key(|&(group, _)| group);
    nodes.clear();
    for (group, mut members) in groups {
        sort_nodes(&mut members);
        nodes.extend(members.into_iter().map(|node| (group, node)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sort_nodes_is_sort_and_dedup(
            nodes in prop::collection::vec(prop_oneof![0u32..400, 0u32..300_000, any::<u32>()], 0..900),
        ) {
            let nodes: Vec<NodeId> = nodes.into_iter().map(NodeId::from_raw).collect();
            let (mut sorted, mut expected) = (nodes.clone(), nodes);
            expected.sort_unstable();
            expected.dedup();
            sort_nodes(&mut sorted);
            prop_assert_eq!(sorted, expected);
        }

        #[test]
        fn sorted_by_bytes_is_a_stable_sort(bytes in prop::collection::vec(any::<u8>(), 0..900)) {
            let nodes: Vec<(u8, NodeId)> =
                bytes.into_iter().zip((7..).map(NodeId::from_raw)).collect();
            let mut expected = nodes.clone();
            expected.sort_unstable();
            prop_assert_eq!(sorted_by_bytes(nodes), expected);
        }

        #[test]
        fn sort_by_group_is_sort_and_dedup(
            nodes in prop::collection::vec((0u8..5, prop_oneof![0u32..400, 0u32..300_000]), 0..900),
        ) {
            let nodes = nodes.into_iter().map(|(group, node)| (group, NodeId::from_raw(node)));
            let nodes: Vec<(u8, NodeId)> = nodes.collect();
            let (mut sorted, mut expected) = (nodes.clone(), nodes);
            expected.sort_unstable();
            expected.dedup();
            sort_by_group(&mut sorted);
            prop_assert_eq!(sorted, expected);
        }
    }
}
