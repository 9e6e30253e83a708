//! The token trie, in flat arrays. Nodes are in depth-first order: a node's descendants follow it
//! directly, and `end` skips them, so a walk is one pass over an array.

use crate::fsm::{ByteSet, CODE_POINTS, NON_SPACE_CODE_POINTS, NOT_ASCII, kind_bit, utf8};
use crate::fuel;
use crate::ids::TokenId;

/// A node: the byte that leads to it, the end of its subtree, and the tokens that end at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index of the first node after the subtree.
    pub end: u32,
    /// Position, in the list of tokens, of the first token of the subtree. The subtree's tokens are
    /// `first_token..nodes[end].first_token`; those that end at this node come first.
    pub first_token: u32,
    /// Number of bytes that lead to this node.
    pub depth: u16,
    /// The byte on the edge into this node; 0 at the root.
    pub byte: u8,
    /// Code points that begin on the longest path down from this node; saturates at 255.
    height: u8,
}

/// Nodes in depth-first order, and the tokens that end at them. Node 0 is the root.
///
/// Invariant: the tokens of a subtree are consecutive in the list of tokens, those of its root
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// All nodes, then one sentinel.
    nodes: Vec<Node>,
    tokens: Vec<TokenId>,
}

/// A trie over byte strings, each with an id.
///
/// ```
/// use louver::vocab::Trie;
/// use louver::TokenId;
///
/// let trie = Trie::build(vec![(b"an", TokenId::from_raw(0)), (b"and", TokenId::from_raw(1))]);
/// let node = trie.find(b"an").unwrap();
/// assert_eq!(trie.tokens_at(node), [TokenId::from_raw(0)]);
/// assert_eq!(trie.tokens_below(node).len(), 2);
/// ```
///
/// Invariants: children of a node are in ascending order of bytes; tokens are in the order of their
/// strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trie {
    tree: Tree,
    /// By byte: the child of the root, or [`NO_NODE`].
    root: Box<[u32; 256]>,
    /// By node: the kinds of bytes below it; see [`kind_bit`] and [`CODE_POINTS`].
    below: Vec<u64>,
    /// See [`nodes_after_white_space`].
    after_white_space: Vec<(u8, u32)>,
}

/// Marks a missing child.
pub(crate) const NO_NODE: u32 = u32::MAX;

impl Tree {
    /// A tree of sorted `(string, id)` pairs.
    pub(crate) fn from_sorted(entries: &[(&[u8], TokenId)]) -> Tree {
        let mut tree = TreeBuilder::with_tokens(entries.len(), |byte| matches!(byte, 0x80..0xC0));
        let mut previous: &[u8] = &[];
        for (bytes, id) in entries {
            let shared = previous.iter().zip(*bytes).take_while(|(a, b)| a == b).count();
            for (depth, &byte) in bytes.iter().enumerate().skip(shared) {
                tree.node(depth + 1, byte);
            }
            tree.tokens(&[*id]);
            previous = bytes;
        }
        tree.finish()
    }

    /// The node with this index.
    #[inline]
    pub fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    /// Code points that begin on the longest path down from a node (that is, bytes that do not
    /// continue a code point); `None` if there are 255 or more.
    #[inline]
    pub(crate) fn height(&self, node: u32) -> Option<u8> {
        Some(self.node(node).height).filter(|&height| height < u8::MAX)
    }

    /// As [`Tree::height`], with `u16::MAX` for `None`.
    #[inline]
    pub(crate) fn longest_below(&self, node: u32) -> u16 {
        self.height(node).map_or(u16::MAX, u16::from)
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Whether the tree has no string, except perhaps the empty one.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 2
    }

    /// A node's children, in ascending order.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.node(node).end;
        let begin = move |child: u32| (child < end).then_some(child);
        std::iter::successors(begin(node + 1), move |&child| begin(self.node(child).end))
    }

    /// Tokens that end at a node.
    #[inline]
    pub fn tokens_at(&self, node: u32) -> &[TokenId] {
        self.tokens(self.range_at(node))
    }

    /// Tokens by their positions in the list of all tokens.
    #[inline]
    pub fn tokens(&self, range: std::ops::Range<usize>) -> &[TokenId] {
        &self.tokens[range]
    }

    /// Positions, in the list of all tokens, of those that end at a node.
    #[inline]
    pub fn range_at(&self, node: u32) -> std::ops::Range<usize> {
        // The next node is the first child or the one after the subtree: its tokens begin where
        // these end.
        self.nodes[node as usize].first_token as usize
            ..self.nodes[node as usize + 1].first_token as usize
    }

    /// Positions, in the list of all tokens, of those that end strictly below a node.
    #[inline]
    pub fn range_below(&self, node: u32) -> std::ops::Range<usize> {
        let n = self.nodes[node as usize];
        self.nodes[node as usize + 1].first_token as usize
            ..self.nodes[n.end as usize].first_token as usize
    }

    /// Tokens that end in a node's subtree, the node included.
    #[inline]
    pub fn tokens_below(&self, node: u32) -> &[TokenId] {
        let n = self.nodes[node as usize];
        &self.tokens[n.first_token as usize..self.nodes[n.end as usize].first_token as usize]
    }

    /// The same without the tokens that end at the node itself.
    #[inline]
    pub(crate) fn tokens_strictly_below(&self, node: u32) -> &[TokenId] {
        &self.tokens[self.range_below(node)]
    }
}

/// Visits the nodes below the root depth first. `visit` gets a node, its byte, and the value that
/// its parent's visit returned. It returns the value for the node's children, or `None` to skip
/// them. Spends one unit of fuel a node.
pub(crate) fn descend<T: Copy, E>(
    tree: &Tree,
    root: T,
    visit: impl FnMut(u32, u8, T) -> Result<Option<T>, E>,
) -> Result<(), E> {
    descend_from(tree, 0, root, visit)
}

/// As [`descend`], below any node.
pub(crate) fn descend_from<T: Copy, E>(
    tree: &Tree,
    node: u32,
    value: T,
    mut visit: impl FnMut(u32, u8, T) -> Result<Option<T>, E>,
) -> Result<(), E> {
    let end = tree.node(node).end;
    let mut stack = vec![(end, value)];
    let mut index = node + 1;
    while index < end {
        fuel::charge(1);
        while index >= stack[stack.len() - 1].0 {
            stack.pop();
        }
        let node = tree.node(index);
        match visit(index, node.byte, stack[stack.len() - 1].1)? {
            Some(value) => {
                stack.push((node.end, value));
                index += 1;
            }
            None => index = node.end,
        }
    }
    Ok(())
}

/// Builds a [`Tree`] from nodes given in depth-first order.
pub(crate) struct TreeBuilder {
    tree: Tree,
    /// The path to the last node.
    path: Vec<u32>,
    /// Whether the byte into a node continues a code point.
    continues: fn(u8) -> bool,
}

impl TreeBuilder {
    /// A builder with a root, and capacity for this number of tokens. `continues` tells whether the
    /// byte into a node continues a code point.
    pub(crate) fn with_tokens(tokens: usize, continues: fn(u8) -> bool) -> TreeBuilder {
        let root = Node { end: 0, first_token: 0, depth: 0, byte: 0, height: 0 };
        TreeBuilder {
            tree: Tree { nodes: vec![root], tokens: Vec::with_capacity(tokens) },
            path: vec![0],
            continues,
        }
    }

    /// Adds a node below the last one of smaller depth, and returns its index.
    pub(crate) fn node(&mut self, depth: usize, byte: u8) -> u32 {
        self.leave(depth);
        let Tree { nodes, tokens } = &mut self.tree;
        let index = nodes.len() as u32;
        self.path.push(index);
        nodes.push(Node {
            end: 0,
            first_token: tokens.len() as u32,
            depth: depth as u16,
            byte,
            height: 0,
        });
        index
    }

    /// Closes the nodes of this depth and deeper: the next node is not below them.
    fn leave(&mut self, depth: usize) {
        let nodes = &mut self.tree.nodes;
        while self.path.len() > depth
            && let Some(done) = self.path.pop()
        {
            nodes[done as usize].end = nodes.len() as u32;
            if let Some(&parent) = self.path.last() {
                let begins = u8::from(!(self.continues)(nodes[done as usize].byte));
                let height = nodes[done as usize].height.saturating_add(begins);
                let above = &mut nodes[parent as usize].height;
                *above = height.max(*above);
            }
        }
    }

    /// Adds tokens that end at the last node.
    pub(crate) fn tokens(&mut self, tokens: &[TokenId]) {
        self.tree.tokens.extend_from_slice(tokens);
    }

    /// The tree.
    pub(crate) fn finish(mut self) -> Tree {
        self.leave(0);
        let Tree { nodes, tokens } = &mut self.tree;
        let end = nodes.len() as u32;
        nodes.push(Node {
            end: end + 1,
            first_token: tokens.len() as u32,
            depth: 0,
            byte: 0,
            height: 0,
        });
        self.tree
    }
}

/// The nodes of the first byte after leading white space, by that byte in ascending order.
fn nodes_after_white_space(tree: &Tree) -> Vec<(u8, u32)> {
    let mut after = Vec::new();
    let mut queue = vec![0];
    while let Some(node) = queue.pop() {
        for child in tree.children(node) {
            match tree.node(child).byte {
                byte if ByteSet::WHITE_SPACE.contains(byte) => queue.push(child),
                byte if node > 0 => after.push((byte, child)),
                _ => {}
            }
        }
    }
    after.sort_unstable();
    after
}

impl std::ops::Deref for Trie {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}

/// By node: whether everything below it may be written between two code points, according to a
/// UTF-8 automaton.
fn spells_code_points(
    nodes: &[Node],
    parents: &[u32],
    automaton: &utf8::Utf8Automaton,
) -> Vec<bool> {
    let mut may_follow = vec![u32::MAX; nodes.len()];
    for node in (1..nodes.len() - 1).rev() {
        let (byte, after) = (nodes[node].byte, may_follow[node]);
        let may = |state: u8| match automaton.next(state, byte) {
            Some(next) => (after >> next & 1) << state,
            None => 0,
        };
        may_follow[parents[node] as usize] &= match byte {
            0..=0x7F => after & 1 << utf8::BOUNDARY,
            0x80..=0xBF => (0..automaton.states).fold(0, |all, state| all | may(state)),
            // A lead byte is allowed only between two code points.
            0xC0.. => may(utf8::BOUNDARY),
        };
    }
    may_follow.into_iter().map(|may| may >> utf8::BOUNDARY & 1 == 1).collect()
}

impl Trie {
    /// A trie of `(string, id)` pairs in any order. The empty string ends at the root. Cost: one
    /// sort.
    pub fn build(mut entries: Vec<(&[u8], TokenId)>) -> Trie {
        entries.sort_unstable();
        let tree = Tree::from_sorted(&entries);
        let nodes = &tree.nodes;
        let mut root = Box::new([NO_NODE; 256]);
        tree.children(0).for_each(|child| root[usize::from(tree.node(child).byte)] = child);
        // Children come after their parent: in reverse order, each node is complete before its
        // parent.
        let mut below = vec![0u64; nodes.len()];
        let mut parents: Vec<u32> = vec![0; nodes.len()];
        let mut ancestors: Vec<u32> = Vec::new();
        for node in 0..nodes.len() as u32 - 1 {
            while ancestors.last().is_some_and(|&top| nodes[top as usize].end <= node) {
                ancestors.pop();
            }
            parents[node as usize] = ancestors.last().copied().unwrap_or(0);
            ancestors.push(node);
        }
        for node in (1..nodes.len() - 1).rev() {
            below[parents[node] as usize] |= below[node] | kind_bit(nodes[node].byte);
        }
        if below[0] & NOT_ASCII != 0 {
            let whole = spells_code_points(nodes, &parents, &utf8::ANY);
            let non_space = spells_code_points(nodes, &parents, &utf8::NON_SPACE);
            for (node, below) in
                below.iter_mut().enumerate().filter(|(_, below)| **below & NOT_ASCII != 0)
            {
                match (whole[node], non_space[node]) {
                    (_, true) => *below = *below & !NOT_ASCII | NON_SPACE_CODE_POINTS,
                    (true, false) => *below = *below & !NOT_ASCII | CODE_POINTS,
                    (false, false) => {}
                }
            }
        }
        Trie { after_white_space: nodes_after_white_space(&tree), tree, root, below }
    }

    /// The nodes of tokens whose first byte after leading white space is this one.
    pub(crate) fn after_white_space(&self, byte: u8) -> impl Iterator<Item = u32> + '_ {
        let from = self.after_white_space.partition_point(|&(other, _)| other < byte);
        let nodes = self.after_white_space[from..].iter();
        nodes.take_while(move |&&(other, _)| other == byte).map(|&(_, node)| node)
    }

    /// The kinds of all bytes strictly below a node. Bytes that are not ASCII are replaced by
    /// [`CODE_POINTS`] or [`NON_SPACE_CODE_POINTS`] where they spell code points from the node on.
    #[inline]
    pub(crate) fn byte_kinds_below(&self, node: u32) -> u64 {
        self.below[node as usize]
    }

    /// The root's child for a byte.
    #[inline]
    pub fn root_child(&self, byte: u8) -> Option<u32> {
        let child = self.root[usize::from(byte)];
        (child != NO_NODE).then_some(child)
    }

    /// A node's child for a byte. Cost: linear in the number of smaller children; constant at the
    /// root.
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        if node == 0 {
            return self.root_child(byte);
        }
        let child = self.children(node).find(|&child| self.node(child).byte >= byte)?;
        (self.node(child).byte == byte).then_some(child)
    }

    /// The node that these bytes lead to.
    pub fn find(&self, bytes: &[u8]) -> Option<u32> {
        bytes.iter().try_fold(0, |node, &byte| self.child(node, byte))
    }

    /// The tokens that a text begins with, the shortest first: the length of each, and its ids.
    pub(crate) fn prefixes(&self, text: &[u8]) -> impl Iterator<Item = (usize, &[TokenId])> {
        let mut node = 0;
        let tokens = text.iter().zip(1..).map_while(move |(&byte, length)| {
            node = self.child(node, byte)?;
            Some((length, self.tokens_at(node)))
        });
        tokens.filter(|(_, ids)| !ids.is_empty())
    }
}
