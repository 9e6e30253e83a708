//! Tokens with quotes in them, which can hold whole strings.

use super::trie::Tree;
use crate::ids::TokenId;

/// Tokens by the quotes they have.
#[derive(Debug)]
pub(crate) struct Quoting {
    whole: Vec<TokenId>,
    two: Quoted,
    four: Quoted,
}

/// Tokens with so many quotes at least, as a trie.
#[derive(Debug)]
pub(crate) struct Quoted {
    pub(crate) tree: Tree,
    /// By node: most quotes behind it.
    behind: Vec<u8>,
}

impl Quoting {
    pub(super) fn of(entries: &[(&[u8], TokenId)]) -> Quoting {
        let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
        let mut two: Vec<_> = entries.iter().copied().filter(|(bytes, _)| quotes(bytes) >= 2).collect();
        let mut whole: Vec<TokenId> = two.iter().map(|(_, id)| *id).collect();
        whole.sort_unstable();
        two.sort_unstable();
        let four: Vec<_> = two.iter().copied().filter(|(bytes, _)| quotes(bytes) >= 4).collect();
        Quoting { whole, two: Quoted::of(&two), four: Quoted::of(&four) }
    }

    /// Those that can hold a whole string, sorted.
    pub(crate) fn whole(&self) -> &[TokenId] {
        &self.whole
    }

    /// The same as a trie.
    pub(crate) fn two(&self) -> &Quoted {
        &self.two
    }

    /// Those that can hold two.
    pub(crate) fn four(&self) -> &Quoted {
        &self.four
    }
}

impl Quoted {
    fn of(sorted: &[(&[u8], TokenId)]) -> Quoted {
        let tree = Tree::of(sorted);
        let mut behind = vec![0u8; tree.len()];
        // Children come after their parents.
        for node in (0..tree.len() as u32).rev() {
            let quotes = |child: u32| behind[child as usize].saturating_add(u8::from(tree.node(child).byte == b'"'));
            behind[node as usize] = tree.children(node).map(quotes).max().unwrap_or(0);
        }
        Quoted { tree, behind }
    }

    /// Most quotes behind a node.
    #[inline]
    pub(crate) fn behind(&self, node: u32) -> u8 {
        self.behind[node as usize]
    }
}
