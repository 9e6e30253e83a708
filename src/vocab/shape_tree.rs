//! The shape tree: the token trie with bytes merged into shapes (alphabet compression).
//!
//! Grammars seldom tell apart lower-case letters, upper-case letters, digits, or continuation bytes
//! of UTF-8. Tokens that differ only in such bytes share the nodes of this tree, which has about a
//! tenth of the trie's nodes. A state that does tell them apart is continued in the trie, from the
//! nodes that a shape node stands for.

use std::ops::Range;

use super::trie::{NodeId, Tree, TreeBuilder, Trie};
use crate::fsm::{shape, shape_bytes};
use crate::ids::TokenId;

/// The tokens of a trie by the shapes of their bytes; see [`shape`].
#[derive(Clone, Debug)]
pub(crate) struct ShapeTree {
    tree: Tree,
    /// By node: the byte kinds below it; see [`Trie::byte_kinds_below`].
    kinds: Vec<u64>,
    /// The nodes of the trie that each node stands for, node by node.
    sources: Vec<NodeId>,
    /// By node, and at the end: where its nodes begin in `sources`.
    source_offsets: Vec<u32>,
}

impl ShapeTree {
    /// From a trie. Cost: linear in its nodes.
    pub(super) fn new(trie: &Trie) -> ShapeTree {
        let mut tree = TreeBuilder::with_tokens(trie.tokens_below(NodeId::ROOT).len(), |shape| {
            matches!(shape_bytes(shape).0, 0x80..0xC0)
        });
        let (mut kinds, mut sources, mut source_offsets) = (Vec::new(), Vec::new(), Vec::new());
        let mut pending: Vec<(usize, u8, Vec<NodeId>)> = Vec::new();
        let mut children: Vec<(u8, NodeId)> = Vec::new();
        let (mut depth, mut here) = (0, vec![NodeId::ROOT]);
        loop {
            kinds.push(here.iter().fold(0, |kinds, &node| kinds | trie.byte_kinds_below(node)));
            source_offsets.push(sources.len() as u32);
            sources.extend_from_slice(&here);
            for &node in &here {
                tree.tokens(trie.tokens_at(node));
                children
                    .extend(trie.children(node).map(|child| (shape(trie.node(child).byte), child)));
            }
            children.sort_unstable();
            let alike = children.chunk_by(|a, b| a.0 == b.0).rev();
            pending.extend(alike.map(|same| {
                (depth + 1, same[0].0, same.iter().map(|&(_, child)| child).collect())
            }));
            children.clear();
            let Some(next) = pending.pop() else { break };
            let shape;
            (depth, shape, here) = next;
            tree.node(depth, shape);
        }
        source_offsets.push(sources.len() as u32);
        ShapeTree { tree: tree.finish(), kinds, sources, source_offsets }
    }

    /// The tree. The byte of a node is a shape.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The kinds of all bytes strictly below a node; see [`Trie::byte_kinds_below`].
    pub(crate) fn byte_kinds_below(&self, node: NodeId) -> u64 {
        self.kinds[node.index()]
    }

    /// The nodes of the trie that a node stands for.
    pub(crate) fn sources(&self, node: NodeId) -> &[NodeId] {
        let offset = |node: NodeId| self.source_offsets[node.index()] as usize;
        &self.sources[offset(node)..offset(node.next())]
    }

    /// All tokens, in the order of the tree.
    pub(crate) fn tokens(&self) -> &[TokenId] {
        self.tree.tokens_below(NodeId::ROOT)
    }

    /// Positions, in the list of tokens, of those that end in a node's subtree.
    pub(crate) fn range_of_subtree(&self, node: NodeId) -> Range<usize> {
        self.tree.range_at(node).start..self.tree.range_below(node).end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every word is at one node, of its depth and shape, whose sources include its trie node.
        #[test]
        fn each_word_is_at_the_node_of_its_shapes(
            words in prop::collection::btree_set(
                prop::collection::vec(any::<u8>(), 1..6),
                1..200,
            ),
        ) {
            let words: Vec<Vec<u8>> = words.into_iter().collect();
            let trie = Trie::build(
                words.iter().enumerate().map(|(i, word)| (&word[..], TokenId::new(i))).collect(),
            );
            let shapes = ShapeTree::new(&trie);
            let mut seen = vec![false; words.len()];
            for node in (0..shapes.tree().len()).map(NodeId::new) {
                prop_assert_eq!(
                    shapes.byte_kinds_below(node),
                    shapes.sources(node).iter().fold(0, |all, &n| all | trie.byte_kinds_below(n))
                );
                for &word in shapes.tree().tokens_at(node) {
                    prop_assert!(!std::mem::replace(&mut seen[word.index()], true));
                    let bytes = &words[word.index()];
                    let own = trie.find(bytes);
                    prop_assert!(own.is_some_and(|own| shapes.sources(node).contains(&own)));
                    let at = shapes.tree().node(node);
                    prop_assert_eq!(
                        (usize::from(at.depth), at.byte),
                        (bytes.len(), shape(bytes[bytes.len() - 1]))
                    );
                }
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
        }
    }
}
