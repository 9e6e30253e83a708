//! The token trie, in flat arrays. Nodes are in depth-first order: a node's descendants follow it
//! directly, and `end` skips them, so a walk is one pass over an array.

use crate::fsm::{ByteSet, CODE_POINTS, NON_SPACE_CODE_POINTS, NOT_ASCII, kind_bit, utf8};
use crate::fuel;
use crate::ids::{TokenId, id};

id! {
    /// A node of a [`Tree`]: its index in depth-first order.
    pub NodeId
}

impl NodeId {
    /// The root.
    pub const ROOT: NodeId = NodeId::from_raw(0);
    /// Marks a missing child.
    const NONE: NodeId = NodeId::from_raw(u32::MAX);

    /// The next node in depth-first order: the first child, or the node after the subtree.
    #[inline]
    pub(crate) const fn next(self) -> NodeId {
        NodeId::from_raw(self.raw() + 1)
    }
}

/// A node: the byte that leads to it, the end of its subtree, and the tokens that end at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The first node after the subtree.
    pub end: NodeId,
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
    /// By byte: the child of the root, or [`NodeId::NONE`].
    root: Box<[NodeId; 256]>,
    /// By node: the kinds of bytes below it; see [`kind_bit`] and [`CODE_POINTS`].
    below: Vec<u64>,
    /// See [`nodes_after_white_space`].
    after_white_space: Vec<(u8, NodeId)>,
}

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

    /// The node with this id.
    #[inline]
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }

    /// Number of nodes of a subtree.
    #[inline]
    pub(crate) fn subtree_len(&self, node: NodeId) -> u32 {
        self.node(node).end.raw() - node.raw()
    }

    /// Whether a node has no children.
    #[inline]
    pub(crate) fn is_leaf(&self, node: NodeId) -> bool {
        self.node(node).end == node.next()
    }

    /// Code points that begin on the longest path down from a node (that is, bytes that do not
    /// continue a code point); `None` if there are 255 or more.
    #[inline]
    pub(crate) fn height(&self, node: NodeId) -> Option<u8> {
        Some(self.node(node).height).filter(|&height| height < u8::MAX)
    }

    /// As [`Tree::height`], with `u16::MAX` for `None`.
    #[inline]
    pub(crate) fn longest_below(&self, node: NodeId) -> u16 {
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
    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.node(node).end;
        let begin = move |child: NodeId| (child < end).then_some(child);
        std::iter::successors(begin(node.next()), move |&child| begin(self.node(child).end))
    }

    /// Tokens that end at a node.
    #[inline]
    pub fn tokens_at(&self, node: NodeId) -> &[TokenId] {
        self.tokens(self.range_at(node))
    }

    /// Tokens by their positions in the list of all tokens.
    #[inline]
    pub fn tokens(&self, range: std::ops::Range<usize>) -> &[TokenId] {
        &self.tokens[range]
    }

    /// Positions, in the list of all tokens, of those that end at a node.
    #[inline]
    pub fn range_at(&self, node: NodeId) -> std::ops::Range<usize> {
        // The next node is the first child or the one after the subtree: its tokens begin where
        // these end.
        self.node(node).first_token as usize..self.node(node.next()).first_token as usize
    }

    /// Positions, in the list of all tokens, of those that end strictly below a node.
    #[inline]
    pub fn range_below(&self, node: NodeId) -> std::ops::Range<usize> {
        let end = self.node(node).end;
        self.node(node.next()).first_token as usize..self.node(end).first_token as usize
    }

    /// Tokens that end in a node's subtree, the node included.
    #[inline]
    pub fn tokens_below(&self, node: NodeId) -> &[TokenId] {
        let Node { first_token, end, .. } = *self.node(node);
        &self.tokens[first_token as usize..self.node(end).first_token as usize]
    }

    /// The same without the tokens that end at the node itself.
    #[inline]
    pub(crate) fn tokens_strictly_below(&self, node: NodeId) -> &[TokenId] {
        &self.tokens[self.range_below(node)]
    }
}

/// Visits the nodes below the root depth first. `visit` gets a node, its byte, and the value that
/// its parent's visit returned. It returns the value for the node's children, or `None` to skip
/// them. Spends one unit of fuel a node.
pub(crate) fn descend<T: Copy, E>(
    tree: &Tree,
    root: T,
    visit: impl FnMut(NodeId, u8, T) -> Result<Option<T>, E>,
) -> Result<(), E> {
    descend_from(tree, NodeId::ROOT, root, visit)
}

/// As [`descend`], below any node.
pub(crate) fn descend_from<T: Copy, E>(
    tree: &Tree,
    node: NodeId,
    value: T,
    mut visit: impl FnMut(NodeId, u8, T) -> Result<Option<T>, E>,
) -> Result<(), E> {
    let end = tree.node(node).end;
    let mut stack = vec![(end, value)];
    let mut at = node.next();
    while at < end {
        fuel::charge(1);
        while at >= stack[stack.len() - 1].0 {
            stack.pop();
        }
        let node = tree.node(at);
        match visit(at, node.byte, stack[stack.len() - 1].1)? {
            Some(value) => {
                stack.push((node.end, value));
                at = at.next();
            }
            None => at = node.end,
        }
    }
    Ok(())
}

/// Builds a [`Tree`] from nodes given in depth-first order.
pub(crate) struct TreeBuilder {
    tree: Tree,
    /// The path to the last node.
    path: Vec<NodeId>,
    /// Whether the byte into a node continues a code point.
    continues: fn(u8) -> bool,
}

impl TreeBuilder {
    /// A builder with a root, and capacity for this number of tokens. `continues` tells whether the
    /// byte into a node continues a code point.
    pub(crate) fn with_tokens(tokens: usize, continues: fn(u8) -> bool) -> TreeBuilder {
        let root = Node { end: NodeId::ROOT, first_token: 0, depth: 0, byte: 0, height: 0 };
        TreeBuilder {
            tree: Tree { nodes: vec![root], tokens: Vec::with_capacity(tokens) },
            path: vec![NodeId::ROOT],
            continues,
        }
    }

    /// Adds a node below the last one of smaller depth, and returns it.
    pub(crate) fn node(&mut self, depth: usize, byte: u8) -> NodeId {
        self.leave(depth);
        let Tree { nodes, tokens } = &mut self.tree;
        let node = NodeId::new(nodes.len());
        self.path.push(node);
        nodes.push(Node {
            end: NodeId::ROOT,
            first_token: tokens.len() as u32,
            depth: depth as u16,
            byte,
            height: 0,
        });
        node
    }

    /// Closes the nodes of this depth and deeper: the next node is not below them.
    fn leave(&mut self, depth: usize) {
        let nodes = &mut self.tree.nodes;
        while self.path.len() > depth
            && let Some(done) = self.path.pop()
        {
            nodes[done.index()].end = NodeId::new(nodes.len());
            if let Some(&parent) = self.path.last() {
                let begins = u8::from(!(self.continues)(nodes[done.index()].byte));
                let height = nodes[done.index()].height.saturating_add(begins);
                let above = &mut nodes[parent.index()].height;
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
        let sentinel = NodeId::new(nodes.len());
        nodes.push(Node {
            end: sentinel.next(),
            first_token: tokens.len() as u32,
            depth: 0,
            byte: 0,
            height: 0,
        });
        self.tree
    }
}

/// The nodes of the first byte after leading white space, by that byte in ascending order.
fn nodes_after_white_space(tree: &Tree) -> Vec<(u8, NodeId)> {
    let mut after = Vec::new();
    let mut queue = vec![NodeId::ROOT];
    while let Some(node) = queue.pop() {
        for child in tree.children(node) {
            match tree.node(child).byte {
                byte if ByteSet::WHITE_SPACE.contains(byte) => queue.push(child),
                byte if node != NodeId::ROOT => after.push((byte, child)),
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
    parents: &[NodeId],
    automaton: &utf8::Utf8Automaton,
) -> Vec<bool> {
    let mut may_follow = vec![u32::MAX; nodes.len()];
    for node in (1..nodes.len() - 1).rev() {
        let (byte, after) = (nodes[node].byte, may_follow[node]);
        let may = |state: u8| match automaton.next(state, byte) {
            Some(next) => (after >> next & 1) << state,
            None => 0,
        };
        may_follow[parents[node].index()] &= match byte {
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
        let mut root = Box::new([NodeId::NONE; 256]);
        tree.children(NodeId::ROOT)
            .for_each(|child| root[usize::from(tree.node(child).byte)] = child);
        // Children come after their parent: in reverse order, each node is complete before its
        // parent.
        let mut below = vec![0u64; nodes.len()];
        let mut parents = vec![NodeId::ROOT; nodes.len()];
        let mut ancestors: Vec<NodeId> = Vec::new();
        for node in (0..nodes.len() - 1).map(NodeId::new) {
            while ancestors.last().is_some_and(|&top| tree.node(top).end <= node) {
                ancestors.pop();
            }
            parents[node.index()] = ancestors.last().copied().unwrap_or(NodeId::ROOT);
            ancestors.push(node);
        }
        for node in (1..nodes.len() - 1).rev() {
            below[parents[node].index()] |= below[node] | kind_bit(nodes[node].byte);
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
    pub(crate) fn after_white_space(&self, byte: u8) -> impl Iterator<Item = NodeId> + '_ {
        let from = self.after_white_space.partition_point(|&(other, _)| other < byte);
        let nodes = self.after_white_space[from..].iter();
        nodes.take_while(move |&&(other, _)| other == byte).map(|&(_, node)| node)
    }

    /// The kinds of all bytes strictly below a node. Bytes that are not ASCII are replaced by
    /// [`CODE_POINTS`] or [`NON_SPACE_CODE_POINTS`] where they spell code points from the node on.
    #[inline]
    pub(crate) fn byte_kinds_below(&self, node: NodeId) -> u64 {
        self.below[node.index()]
    }

    /// The root's child for a byte.
    #[inline]
    pub fn root_child(&self, byte: u8) -> Option<NodeId> {
        let child = self.root[usize::from(byte)];
        (child != NodeId::NONE).then_some(child)
    }

    /// A node's child for a byte. Cost: linear in the number of smaller children; constant at the
    /// root.
    pub fn child(&self, node: NodeId, byte: u8) -> Option<NodeId> {
        if node == NodeId::ROOT {
            return self.root_child(byte);
        }
        let child = self.children(node).find(|&child| self.node(child).byte >= byte)?;
        (self.node(child).byte == byte).then_some(child)
    }

    /// The node that these bytes lead to.
    pub fn find(&self, bytes: &[u8]) -> Option<NodeId> {
        bytes.iter().try_fold(NodeId::ROOT, |node, &byte| self.child(node, byte))
    }

    /// The tokens that a text begins with, the shortest first: the length of each, and its ids.
    pub(crate) fn prefixes(&self, text: &[u8]) -> impl Iterator<Item = (usize, &[TokenId])> {
        let mut node = NodeId::ROOT;
        let tokens = text.iter().zip(1..).map_while(move |(&byte, length)| {
            node = self.child(node, byte)?;
            Some((length, self.tokens_at(node)))
        });
        tokens.filter(|(_, ids)| !ids.is_empty())
    }
}
