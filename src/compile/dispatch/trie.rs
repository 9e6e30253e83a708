//! Aho-Corasick automaton, stored as a trie with failure links (Aho and Corasick, 1975).
//!
//! Construction takes time and memory linear in the bytes of the texts. The transition table of a
//! node is computed on request; the full table would take 256 entries per byte of text.

use crate::fsm::ByteSet;
use crate::ids::id;

id! {
    /// A node of the trie of a dispatch: an index into the tables of [`AhoCorasickTrie`].
    pub(super) DispatchNodeId
}

impl DispatchNodeId {
    /// The root: the node of the empty text.
    pub(super) const ROOT: DispatchNodeId = DispatchNodeId::from_raw(0);
    /// No node.
    pub(super) const NONE: DispatchNodeId = DispatchNodeId::from_raw(u32::MAX);
}

/// A trie. Nodes are numbered breadth-first; the children of a node are consecutive, ordered by
/// byte.
#[derive(Debug, Default)]
pub(super) struct AhoCorasickTrie {
    /// By node: the last byte of its text.
    bytes: Vec<u8>,
    /// By node: its parent.
    parents: Vec<DispatchNodeId>,
    /// By node: the length of its text.
    depths: Vec<u32>,
    /// By node: its first child. The children end where those of the next node begin.
    children: Vec<DispatchNodeId>,
    /// By node: the failure link, to the node of its longest proper suffix.
    failures: Vec<DispatchNodeId>,
    /// By node: the nearest node along failure links that has a child over a byte for which this
    /// node has none.
    skip_links: Vec<DispatchNodeId>,
    /// By node: some byte leads back to the root.
    returns_to_root: Vec<bool>,
}

impl AhoCorasickTrie {
    /// Builds the trie; also returns the node of each text.
    pub(super) fn new(texts: &[&[u8]]) -> (AhoCorasickTrie, Vec<DispatchNodeId>) {
        let mut trie = AhoCorasickTrie::default();
        let nodes = trie.build_nodes(texts);
        trie.link_failures();
        trie.link_skips();
        (trie, nodes)
    }

    /// Creates the nodes, breadth-first.
    fn build_nodes(&mut self, texts: &[&[u8]]) -> Vec<DispatchNodeId> {
        let mut sorted: Vec<u32> = (0..texts.len() as u32).collect();
        sorted.sort_unstable_by_key(|&text| texts[text as usize]);
        let mut ends = vec![DispatchNodeId::ROOT; texts.len()];
        self.push(0, DispatchNodeId::ROOT, 0);
        // By node: the range of sorted texts below it.
        let mut begun = vec![(0, sorted.len())];
        while self.children.len() < begun.len() {
            let node = DispatchNodeId::new(self.children.len());
            self.children.push(DispatchNodeId::new(begun.len()));
            let ((begin, end), depth) = (begun[node.index()], self.depth(node) as usize);
            let mut from = begin;
            for at in begin..end {
                count_steps(1);
                let text = texts[sorted[at] as usize];
                let Some(&byte) = text.get(depth) else {
                    ends[sorted[at] as usize] = node;
                    from = at + 1;
                    continue;
                };
                let last =
                    at + 1 == end || texts[sorted[at + 1] as usize].get(depth) != Some(&byte);
                if last {
                    begun.push((from, at + 1));
                    self.push(byte, node, depth as u32 + 1);
                    from = at + 1;
                }
            }
        }
        self.children.push(DispatchNodeId::new(begun.len()));
        ends
    }

    /// Appends a node.
    fn push(&mut self, byte: u8, parent: DispatchNodeId, depth: u32) {
        self.bytes.push(byte);
        self.parents.push(parent);
        self.depths.push(depth);
    }

    /// Computes failure links. Along a text, the depth of the link grows by at most one per byte:
    /// linear in total.
    fn link_failures(&mut self) {
        self.failures = vec![DispatchNodeId::ROOT; self.len()];
        for node in self.nodes().skip(1) {
            let (parent, byte) = (self.parent(node), self.byte(node));
            if parent == DispatchNodeId::ROOT {
                continue;
            }
            let mut at = self.failure(parent);
            self.failures[node.index()] = loop {
                count_steps(1);
                match self.child(at, byte) {
                    Some(child) => break child,
                    None if at == DispatchNodeId::ROOT => break DispatchNodeId::ROOT,
                    None => at = self.failure(at),
                }
            };
        }
    }

    /// Computes the skip links, and from which nodes a byte leads back to the root.
    fn link_skips(&mut self) {
        self.skip_links = vec![DispatchNodeId::NONE; self.len()];
        self.returns_to_root = vec![true; self.len()];
        let mut covered = vec![ByteSet::EMPTY; self.len()];
        for node in self.nodes() {
            let children = self.children(node);
            count_steps(children.len());
            children.clone().for_each(|child| covered[node.index()].insert(self.byte(child)));
            if node != DispatchNodeId::ROOT {
                let fail = self.failure(node);
                let fail_children = self.children(fail);
                let adds = fail_children.len() > children.len()
                    || fail_children.clone().any(|c| self.child(node, self.byte(c)).is_none());
                self.skip_links[node.index()] =
                    if adds { fail } else { self.skip_links[fail.index()] };
                covered[node.index()] = covered[node.index()].union(&covered[fail.index()]);
            }
            self.returns_to_root[node.index()] = covered[node.index()] != ByteSet::ALL;
        }
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// All nodes, parents before their children.
    pub(super) fn nodes(&self) -> impl DoubleEndedIterator<Item = DispatchNodeId> + use<> {
        (0..self.len()).map(DispatchNodeId::new)
    }

    /// The last byte of a node's text.
    fn byte(&self, node: DispatchNodeId) -> u8 {
        self.bytes[node.index()]
    }

    /// The parent of a node.
    pub(super) fn parent(&self, node: DispatchNodeId) -> DispatchNodeId {
        self.parents[node.index()]
    }

    /// The length of a node's text.
    pub(super) fn depth(&self, node: DispatchNodeId) -> u32 {
        self.depths[node.index()]
    }

    /// The failure link: the node of the longest proper suffix.
    pub(super) fn failure(&self, node: DispatchNodeId) -> DispatchNodeId {
        self.failures[node.index()]
    }

    /// The children of a node.
    pub(super) fn children(
        &self,
        node: DispatchNodeId,
    ) -> impl ExactSizeIterator<Item = DispatchNodeId> + Clone + use<> {
        self.range_of_children(node).map(DispatchNodeId::from_raw)
    }

    /// The raw numbers of the children of a node.
    fn range_of_children(&self, node: DispatchNodeId) -> std::ops::Range<u32> {
        self.children[node.index()].raw()..self.children[node.index() + 1].raw()
    }

    /// The children of a node, with the bytes that lead to them.
    pub(super) fn children_with_bytes(
        &self,
        node: DispatchNodeId,
    ) -> impl Iterator<Item = (u8, DispatchNodeId)> + '_ {
        self.children(node).map(|child| (self.byte(child), child))
    }

    /// The child over a byte.
    fn child(&self, node: DispatchNodeId, byte: u8) -> Option<DispatchNodeId> {
        let all = self.range_of_children(node);
        let at = self.bytes[all.start as usize..all.end as usize].binary_search(&byte).ok()?;
        Some(DispatchNodeId::new(all.start as usize + at))
    }

    /// Whether some byte leads from a node back to the root.
    pub(super) fn can_return_to_root(&self, node: DispatchNodeId) -> bool {
        self.returns_to_root[node.index()]
    }

    /// The transition table of a node: the target of each byte.
    pub(super) fn transitions(&self, node: DispatchNodeId) -> [DispatchNodeId; 256] {
        let mut row = [DispatchNodeId::ROOT; 256];
        let mut at = node;
        while at != DispatchNodeId::NONE {
            for (byte, child) in self.children_with_bytes(at) {
                // Children are never the root, so the root means: not set yet.
                let to = &mut row[byte as usize];
                *to = if *to == DispatchNodeId::ROOT { child } else { *to };
            }
            at = self.skip_links[at.index()];
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

    fn text(trie: &AhoCorasickTrie, mut node: DispatchNodeId) -> Vec<u8> {
        let mut out = Vec::new();
        while node != DispatchNodeId::ROOT {
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
            let nodes: Vec<Vec<u8>> = trie.nodes().map(|node| text(&trie, node)).collect();
            for (given, &end) in texts.iter().zip(&ends) {
                prop_assert_eq!(&nodes[end.index()], given);
            }
            for (node, prefix) in trie.nodes().zip(&nodes) {
                prop_assert_eq!(trie.depth(node) as usize, prefix.len());
                let row = trie.transitions(node);
                for byte in 0..4u8 {
                    let read = [&prefix[..], &[byte]].concat();
                    let mut suffixes = (0..=read.len()).map(|at| &read[at..]);
                    let longest =
                        suffixes.find_map(|suffix| nodes.iter().position(|node| *node == suffix));
                    let to = row[byte as usize].index();
                    prop_assert_eq!(Some(to), longest, "{:?} {}", prefix, byte);
                }
                prop_assert!(trie.can_return_to_root(node));
            }
        }
    }
}
