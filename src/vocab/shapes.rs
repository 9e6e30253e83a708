//! The vocabulary by shapes: words whose bytes grammars seldom tell apart (letters of one case, digits, what continues a code point) share the
//! nodes of a tree, which has a tenth of the trie's. A state that does tell them apart goes on in the trie from where it does.

use std::ops::Range;

use super::trie::{Planting, Tree, Trie};
use crate::fsm::{shape, shape_bytes};
use crate::ids::TokenId;

/// The trie's words by the shapes of their bytes; see [`shape`].
#[derive(Clone, Debug)]
pub(crate) struct Shapes {
    tree: Tree,
    /// Per node: as [`Trie::kinds_below`].
    kinds: Vec<u64>,
    /// Nodes of the trie that are one here, node by node.
    sources: Vec<u32>,
    /// Per node, and at the end: where in the list of those its own begin.
    from: Vec<u32>,
}

impl Shapes {
    /// Cost: a look at each node of the trie.
    pub(super) fn new(trie: &Trie) -> Shapes {
        let mut tree = Planting::with_words(trie.words_below(0).len(), |shape| {
            matches!(shape_bytes(shape).0, 0x80..0xC0)
        });
        let (mut kinds, mut sources, mut from) = (Vec::new(), Vec::new(), Vec::new());
        let mut pending: Vec<(usize, u8, Vec<u32>)> = Vec::new();
        let mut children: Vec<(u8, u32)> = Vec::new();
        let (mut depth, mut here) = (0, vec![0]);
        loop {
            kinds.push(here.iter().fold(0, |kinds, &node| kinds | trie.kinds_below(node)));
            from.push(sources.len() as u32);
            sources.extend_from_slice(&here);
            for &node in &here {
                tree.words(trie.words_at(node));
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
        from.push(sources.len() as u32);
        Shapes { tree: tree.finish(), kinds, sources, from }
    }

    /// The tree. The byte of a node is a shape.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The kinds of all bytes strictly below a node, as [`Trie::kinds_below`] says.
    pub(crate) fn kinds_below(&self, node: u32) -> u64 {
        self.kinds[node as usize]
    }

    /// The nodes of the trie that are this one here.
    pub(crate) fn sources(&self, node: u32) -> &[u32] {
        &self.sources[self.from[node as usize] as usize..self.from[node as usize + 1] as usize]
    }

    /// All words, in the order of the tree.
    pub(crate) fn words(&self) -> &[TokenId] {
        self.tree.words_below(0)
    }

    /// Where in the list of words those of a node and of all below it are.
    pub(crate) fn range_from(&self, node: u32) -> Range<usize> {
        self.tree.range_at(node).start..self.tree.range_below(node).end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every word is at one node, at its depth, and its own node of the trie is among that node's.
        #[test]
        fn each_word_is_where_its_bytes_are(words in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 1..6), 1..200)) {
            let words: Vec<Vec<u8>> = words.into_iter().collect();
            let trie = Trie::build(words.iter().enumerate().map(|(i, word)| (&word[..], TokenId::new(i))).collect());
            let shapes = Shapes::new(&trie);
            let mut seen = vec![false; words.len()];
            for node in 0..shapes.tree().len() as u32 {
                prop_assert_eq!(shapes.kinds_below(node), shapes.sources(node).iter().fold(0, |all, &n| all | trie.kinds_below(n)));
                for &word in shapes.tree().words_at(node) {
                    prop_assert!(!std::mem::replace(&mut seen[word.index()], true));
                    let bytes = &words[word.index()];
                    let own = bytes.iter().try_fold(0, |node, &byte| trie.child(node, byte));
                    prop_assert!(own.is_some_and(|own| shapes.sources(node).contains(&own)));
                    let at = shapes.tree().node(node);
                    prop_assert_eq!((usize::from(at.depth), at.byte), (bytes.len(), shape(bytes[bytes.len() - 1])));
                }
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
        }
    }
}
