//! Aho-Corasick automaton, stored as a trie with failure links (Aho and Corasick, 1975).
//!
//! Construction takes time and memory linear in the bytes of the texts. The transition table of a
//! node is computed on request; the full table would take 256 entries per byte of text.

use crate::fsm::ByteSet;

/// The root: the node of the empty text.
pub(super) const ROOT: u32 = 0;
/// No node.
pub(super) const NO_NODE: u32 = u32::MAX;

/// A trie. Nodes are numbered breadth-first; the children of a node are consecutive, ordered by
/// byte.
#[derive(Debug, Default)]
pub(super) struct AhoCorasickTrie {
    /// By node: the last byte of its text.
    bytes: Vec<u8>,
    /// By node: its parent.
    parents: Vec<u32>,
    /// By node: the length of its text.
    depths: Vec<u32>,
    /// By node: its first child. The children end where those of the next node begin.
    children: Vec<u32>,
    /// By node: the failure link, to the node of its longest proper suffix.
    failures: Vec<u32>,
    /// By node: the nearest node along failure links that has a child over a byte for which this
    /// node has none.
    skip_links: Vec<u32>,
    /// By node: some byte leads back to the root.
    returns_to_root: Vec<bool>,
}

impl AhoCorasickTrie {
    /// Builds the trie; also returns the node of each text.
    pub(super) fn new(texts: &[&[u8]]) -> (AhoCorasickTrie, Vec<u32>) {
        let mut trie = AhoCorasickTrie::default();
        let nodes = trie.build_nodes(texts);
        trie.link_failures();
        trie.link_skips();
        (trie, nodes)
    }

    /// Creates the nodes, breadth-first.
    fn build_nodes(&mut self, texts: &[&[u8]]) -> Vec<u32> {
        let mut sorted: Vec<u32> = (0..texts.len() as u32).collect();
        sorted.sort_unstable_by_key(|&text| texts[text as usize]);
        let mut ends = vec![ROOT; texts.len()];
        self.push(0, ROOT, 0);
        // By node: the range of sorted texts below it.
        let mut begun = vec![(0, sorted.len())];
        let mut node = 0;
        while node < begun.len() {
            self.children.push(begun.len() as u32);
            let ((begin, end), depth) = (begun[node], self.depths[node] as usize);
            let mut from = begin;
            for at in begin..end {
                count_steps(1);
                let text = texts[sorted[at] as usize];
                let Some(&byte) = text.get(depth) else {
                    ends[sorted[at] as usize] = node as u32;
                    from = at + 1;
                    continue;
                };
                let last =
                    at + 1 == end || texts[sorted[at + 1] as usize].get(depth) != Some(&byte);
                if last {
                    begun.push((from, at + 1));
                    self.push(byte, node as u32, depth as u32 + 1);
                    from = at + 1;
                }
            }
            node += 1;
        }
        self.children.push(begun.len() as u32);
        ends
    }

    /// Appends a node.
    fn push(&mut self, byte: u8, parent: u32, depth: u32) {
        self.bytes.push(byte);
        self.parents.push(parent);
        self.depths.push(depth);
    }

    /// Computes failure links. Along a text, the depth of the link grows by at most one per byte:
    /// linear in total.
    fn link_failures(&mut self) {
        self.failures = vec![ROOT; self.len()];
        for node in 1..self.len() as u32 {
            let (parent, byte) = (self.parent(node), self.byte(node));
            if parent == ROOT {
                continue;
            }
            let mut at = self.failures[parent as usize];
            self.failures[node as usize] = loop {
                count_steps(1);
                match self.child(at, byte) {
                    Some(child) => break child,
                    None if at == ROOT => break ROOT,
                    None => at = self.failures[at as usize],
                }
            };
        }
    }

    /// Computes the skip links, and from which nodes a byte leads back to the root.
    fn link_skips(&mut self) {
        self.skip_links = vec![NO_NODE; self.len()];
        self.returns_to_root = vec![true; self.len()];
        let mut covered = vec![ByteSet::EMPTY; self.len()];
        for node in 0..self.len() as u32 {
            let children = self.children(node);
            count_steps(children.len());
            children.clone().for_each(|child| covered[node as usize].insert(self.byte(child)));
            if node != ROOT {
                let fail = self.failure(node);
                let fail_children = self.children(fail);
                let adds = fail_children.len() > children.len()
                    || fail_children.into_iter().any(|c| self.child(node, self.byte(c)).is_none());
                self.skip_links[node as usize] =
                    if adds { fail } else { self.skip_links[fail as usize] };
                covered[node as usize] = covered[node as usize].union(&covered[fail as usize]);
            }
            self.returns_to_root[node as usize] = covered[node as usize] != ByteSet::ALL;
        }
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The last byte of a node's text.
    fn byte(&self, node: u32) -> u8 {
        self.bytes[node as usize]
    }

    /// The parent of a node.
    pub(super) fn parent(&self, node: u32) -> u32 {
        self.parents[node as usize]
    }

    /// The length of a node's text.
    pub(super) fn depth(&self, node: u32) -> u32 {
        self.depths[node as usize]
    }

    /// The failure link: the node of the longest proper suffix.
    pub(super) fn failure(&self, node: u32) -> u32 {
        self.failures[node as usize]
    }

    /// The children of a node.
    pub(super) fn children(&self, node: u32) -> std::ops::Range<u32> {
        self.children[node as usize]..self.children[node as usize + 1]
    }

    /// The children of a node, with the bytes that lead to them.
    pub(super) fn children_with_bytes(&self, node: u32) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.children(node).map(|child| (self.byte(child), child))
    }

    /// The child over a byte.
    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let all = self.children(node);
        let at = self.bytes[all.start as usize..all.end as usize].binary_search(&byte).ok()?;
        Some(all.start + at as u32)
    }

    /// Whether some byte leads from a node back to the root.
    pub(super) fn can_return_to_root(&self, node: u32) -> bool {
        self.returns_to_root[node as usize]
    }

    /// The transition table of a node: the target of each byte.
    pub(super) fn transitions(&self, node: u32) -> [u32; 256] {
        let mut row = [ROOT; 256];
        let mut at = node;
        while at != NO_NODE {
            for (byte, child) in self.children_with_bytes(at) {
                // Children are never the root, so the root means: not set yet.
                let to = &mut row[byte as usize];
                *to = if *to == ROOT { child } else { *to };
            }
            at = self.skip_links[at as usize];
        }
        row
    }

    /// Approximate memory use in bytes.
    pub(super) fn bytes_held(&self) -> usize {
        self.len() * 22
    }
}

/// Counts construction steps, in tests.
#[inline]
pub(super) fn count_steps(_count: usize) {
    #[cfg(test)]
    tests::BUILD_STEPS.with(|steps| steps.set(steps.get() + _count));
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        pub(super) static BUILD_STEPS: Cell<usize> = const { Cell::new(0) };
    }

    /// The construction steps that `f` takes on this thread.
    pub(in crate::compile::dispatch) fn count_build_steps(f: impl FnOnce()) -> usize {
        let before = BUILD_STEPS.get();
        f();
        BUILD_STEPS.get() - before
    }

    fn text(trie: &AhoCorasickTrie, mut node: u32) -> Vec<u8> {
        let mut out = Vec::new();
        while node != ROOT {
            out.push(trie.byte(node));
            node = trie.parent(node);
        }
        out.reverse();
        out
    }

    proptest! {
        #[test]
        fn transitions_lead_to_the_longest_suffix(
            texts in prop::collection::vec(prop::collection::vec(0u8..3, 1..7), 0..7),
        ) {
            let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
            let (trie, ends) = AhoCorasickTrie::new(&texts);
            let nodes: Vec<Vec<u8>> =
                (0..trie.len() as u32).map(|node| text(&trie, node)).collect();
            for (given, &end) in texts.iter().zip(&ends) {
                prop_assert_eq!(&nodes[end as usize], given);
            }
            for (node, prefix) in nodes.iter().enumerate() {
                prop_assert_eq!(trie.depth(node as u32) as usize, prefix.len());
                let row = trie.transitions(node as u32);
                for byte in 0..4u8 {
                    let read = [&prefix[..], &[byte]].concat();
                    let mut suffixes = (0..=read.len()).map(|at| &read[at..]);
                    let longest =
                        suffixes.find_map(|suffix| nodes.iter().position(|node| *node == suffix));
                    let to = row[byte as usize] as usize;
                    prop_assert_eq!(Some(to), longest, "{:?} {}", prefix, byte);
                }
                prop_assert!(trie.can_return_to_root(node as u32));
            }
        }
    }
}
