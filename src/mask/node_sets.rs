//! Nodes of tries in order. They are numbers below the size of a vocabulary's trie, and there are many of them where a long walk leaves much undecided.

use std::hash::Hash;

use crate::hash::HashMap;

/// So few are sorted by comparing them.
const FEW: usize = 256;
/// Bits that one round of sorting looks at.
const BITS: u32 = 9;
const DIGITS: usize = 1 << BITS;

/// Sorts nodes and keeps each once. Cost: a look at each for every nine bits of the largest; nodes that are in order are looked at once.
pub(crate) fn sort_nodes(nodes: &mut Vec<u32>) {
    if !nodes.is_sorted() {
        if nodes.len() < FEW {
            nodes.sort_unstable();
        } else {
            by_digits(nodes);
        }
    }
    nodes.dedup();
}

fn by_digits(nodes: &mut Vec<u32>) {
    let most = nodes.iter().copied().max().unwrap_or(0);
    let mut other = vec![0; nodes.len()];
    let mut shift = 0;
    while shift < u32::BITS && most >> shift > 0 {
        let digit = |node: u32| (node >> shift) as usize % DIGITS;
        let mut places = [0usize; DIGITS];
        nodes.iter().for_each(|&node| places[digit(node)] += 1);
        begins_of(&mut places);
        for &node in nodes.iter() {
            let place = &mut places[digit(node)];
            other[*place] = node;
            *place += 1;
        }
        std::mem::swap(nodes, &mut other);
        shift += BITS;
    }
}

/// Nodes in ascending order, each with the byte that leads to it, by these bytes and each byte's in order. Cost: a look at each.
pub(crate) fn sorted_by_bytes(mut nodes: Vec<(u8, u32)>) -> Vec<(u8, u32)> {
    if nodes.is_sorted() {
        return nodes;
    }
    if nodes.len() < FEW {
        nodes.sort_unstable();
        return nodes;
    }
    let mut places = [0usize; 256];
    nodes.iter().for_each(|&(byte, _)| places[usize::from(byte)] += 1);
    begins_of(&mut places);
    let mut sorted = vec![(0, 0); nodes.len()];
    for node in nodes {
        let place = &mut places[usize::from(node.0)];
        sorted[*place] = node;
        *place += 1;
    }
    sorted
}

/// Where each of some parts begins, in place of its length.
fn begins_of(lengths: &mut [usize]) {
    let mut begin = 0;
    for length in lengths {
        begin += std::mem::replace(length, begin);
    }
}

/// Sorts nodes by their kinds, each kind's in order, and keeps each once. Cost: as [`sort_nodes`], and a look-up for each run of one kind.
pub(crate) fn sort_kinds<K: Copy + Ord + Hash>(nodes: &mut Vec<(K, u32)>) {
    if nodes.len() < FEW {
        nodes.sort_unstable();
        nodes.dedup();
        return;
    }
    let mut kinds: Vec<(K, Vec<u32>)> = Vec::new();
    let mut numbers: HashMap<K, usize> = HashMap::default();
    for same in nodes.chunk_by(|a, b| a.0 == b.0) {
        let number = *numbers.entry(same[0].0).or_insert_with(|| {
            kinds.push((same[0].0, Vec::new()));
            kinds.len() - 1
        });
        kinds[number].1.extend(same.iter().map(|&(_, node)| node));
    }
    kinds.sort_unstable_by_key(|&(kind, _)| kind);
    nodes.clear();
    for (kind, mut own) in kinds {
        sort_nodes(&mut own);
        nodes.extend(own.into_iter().map(|node| (kind, node)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nodes_are_in_the_order_of_their_numbers(
            nodes in prop::collection::vec(prop_oneof![0u32..400, 0u32..300_000, any::<u32>()], 0..900),
        ) {
            let (mut sorted, mut expected) = (nodes.clone(), nodes);
            expected.sort_unstable();
            expected.dedup();
            sort_nodes(&mut sorted);
            prop_assert_eq!(sorted, expected);
        }

        #[test]
        fn nodes_are_in_the_order_of_their_bytes(bytes in prop::collection::vec(any::<u8>(), 0..900)) {
            let nodes: Vec<(u8, u32)> = bytes.into_iter().zip(7..).collect();
            let mut expected = nodes.clone();
            expected.sort_unstable();
            prop_assert_eq!(sorted_by_bytes(nodes), expected);
        }

        #[test]
        fn nodes_are_in_the_order_of_their_kinds(
            nodes in prop::collection::vec((0u8..5, prop_oneof![0u32..400, 0u32..300_000]), 0..900),
        ) {
            let (mut sorted, mut expected) = (nodes.clone(), nodes);
            expected.sort_unstable();
            expected.dedup();
            sort_kinds(&mut sorted);
            prop_assert_eq!(sorted, expected);
        }
    }
}
