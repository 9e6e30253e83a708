//! A byte trie in flat arrays, nodes in depth-first order: a node's descendants follow it directly, and `end` skips them.

use crate::fsm::{BLACK_CODE_POINTS, ByteSet, CODE_POINTS, NOT_ASCII, kind, utf8};
use crate::fuel;
use crate::hash::HashMap;
use crate::ids::TokenId;

/// One node: the byte that leads to it, where its subtree ends, and which words end here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index of the first node after this one's subtree.
    pub end: u32,
    /// First word of the subtree in the word list. The words of the whole subtree are
    /// `words..nodes[end].words`; those that end at this very node come first.
    pub words: u32,
    /// Number of bytes that lead to this node.
    pub depth: u16,
    /// The byte on the edge into this node (0 at the root).
    pub byte: u8,
    /// Characters that begin on the longest way down from this node, as far as they can be told.
    height: u8,
}

/// Nodes in depth-first order, and the words that end at them. Node 0 is the root.
///
/// Invariant: the words of a subtree are one run of the list of words, those of its root first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// All nodes, then one sentinel.
    nodes: Vec<Node>,
    words: Vec<TokenId>,
}

/// A trie over byte strings, each with an id.
///
/// Invariants: children of a node appear in ascending byte order; words are in the order of their strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trie {
    tree: Tree,
    root: Box<[u32; 256]>,
    /// Per node: which kinds of bytes its subtree has below it; see [`kind`] and [`CODE_POINTS`].
    below: Vec<u64>,
    fans: Fans,
    white: Option<White>,
}

/// The words of a trie that begin with white space, if many are nothing else. Where any white space may be, and all of it leads to one place, they are read by
/// what is behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct White {
    /// Those that are nothing else.
    pub(crate) only: Vec<TokenId>,
    /// The nodes of the first byte behind it, by that byte, in ascending order.
    behind: Vec<(u8, u32)>,
}

/// The children of nodes that have many, in a large trie: most walks go on with few of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fans {
    /// By node: the bytes that lead to its children, and where in the list of children they begin.
    of: HashMap<u32, (ByteSet, u32)>,
    children: Vec<u32>,
}

/// The children of a node that has many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fan<'t> {
    /// The bytes that lead to them.
    pub(crate) bytes: ByteSet,
    children: &'t [u32],
}

impl Fan<'_> {
    /// The child for a byte that leads to one.
    #[inline]
    pub(crate) fn child(&self, byte: u8) -> u32 {
        self.children[self.bytes.rank(byte)]
    }
}

/// Nodes of a trie from which on fans are worth their memory, of a subtree from which on they are worth a look, and children of a node.
const LARGE: usize = 1 << 12;
const WIDE: u32 = 32;
const MANY: usize = 8;
/// Fewer words of nothing but white space are as good as a list.
const MANY_WHITE: usize = 16;

/// No such child.
pub(crate) const NO_NODE: u32 = u32::MAX;

impl Tree {
    /// Builds from sorted `(string, id)` pairs.
    pub(crate) fn of(entries: &[(&[u8], TokenId)]) -> Tree {
        let mut tree = Planting::with_words(entries.len(), |byte| matches!(byte, 0x80..0xC0));
        let mut previous: &[u8] = &[];
        for (bytes, id) in entries {
            let shared = previous.iter().zip(*bytes).take_while(|(a, b)| a == b).count();
            for (depth, &byte) in bytes.iter().enumerate().skip(shared) {
                tree.node(depth + 1, byte);
            }
            tree.words(&[*id]);
            previous = bytes;
        }
        tree.finish()
    }

    /// A node.
    #[inline]
    pub fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    /// Characters that begin on the longest way down from a node, that is, bytes that continue no code point; none if they are too many to be told.
    #[inline]
    pub(crate) fn height(&self, node: u32) -> Option<u8> {
        Some(self.node(node).height).filter(|&height| height < u8::MAX)
    }

    /// The same; the most there can be where they are too many.
    #[inline]
    pub(crate) fn longest_below(&self, node: u32) -> u16 {
        self.height(node).map_or(u16::MAX, u16::from)
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Whether the trie holds no string but perhaps the empty one.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 2
    }

    /// A node's children, in ascending order.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.node(node).end;
        let begin = move |child: u32| (child < end).then_some(child);
        std::iter::successors(begin(node + 1), move |&child| begin(self.node(child).end))
    }

    /// Words that end exactly at a node.
    #[inline]
    pub fn words_at(&self, node: u32) -> &[TokenId] {
        self.words(self.range_at(node))
    }

    /// Words by their positions in the list of all words.
    #[inline]
    pub fn words(&self, range: std::ops::Range<usize>) -> &[TokenId] {
        &self.words[range]
    }

    /// Positions, in the list of all words, of those that end exactly at a node.
    #[inline]
    pub fn range_at(&self, node: u32) -> std::ops::Range<usize> {
        // The next node in depth-first order is the first child or the node after the subtree: its words begin where ours end.
        self.nodes[node as usize].words as usize..self.nodes[node as usize + 1].words as usize
    }

    /// Positions, in the list of all words, of those that end strictly below a node.
    #[inline]
    pub fn range_below(&self, node: u32) -> std::ops::Range<usize> {
        let n = self.nodes[node as usize];
        self.nodes[node as usize + 1].words as usize..self.nodes[n.end as usize].words as usize
    }

    /// Words that end in a node's subtree.
    #[inline]
    pub fn words_below(&self, node: u32) -> &[TokenId] {
        let n = self.nodes[node as usize];
        &self.words[n.words as usize..self.nodes[n.end as usize].words as usize]
    }
}

/// Visits the nodes below a tree's root depth first. `visit` gets a node and what its parent left, and leaves something for
/// the node's children, or nothing where they need not be looked at.
pub(crate) fn descend<T: Copy, E>(
    tree: &Tree,
    root: T,
    visit: impl FnMut(u32, u8, T) -> Result<Option<T>, E>,
) -> Result<(), E> {
    descend_from(tree, 0, root, visit)
}

/// The same below another node.
pub(crate) fn descend_from<T: Copy, E>(
    tree: &Tree,
    node: u32,
    left: T,
    mut visit: impl FnMut(u32, u8, T) -> Result<Option<T>, E>,
) -> Result<(), E> {
    let end = tree.node(node).end;
    let mut stack = vec![(end, left)];
    let mut at = node + 1;
    while at < end {
        fuel::charge(1);
        while at >= stack[stack.len() - 1].0 {
            stack.pop();
        }
        let node = tree.node(at);
        match visit(at, node.byte, stack[stack.len() - 1].1)? {
            Some(left) => {
                stack.push((node.end, left));
                at += 1;
            }
            None => at = node.end,
        }
    }
    Ok(())
}

/// A tree under construction: nodes are given in depth-first order.
pub(crate) struct Planting {
    tree: Tree,
    /// The nodes on the way to the last one.
    path: Vec<u32>,
    /// Whether what leads to a node continues a code point.
    continues: fn(u8) -> bool,
}

impl Planting {
    /// A tree with a root, and room for so many words. `continues`: whether what leads to a node continues a code point.
    pub(crate) fn with_words(words: usize, continues: fn(u8) -> bool) -> Planting {
        let root = Node { end: 0, words: 0, depth: 0, byte: 0, height: 0 };
        Planting {
            tree: Tree { nodes: vec![root], words: Vec::with_capacity(words) },
            path: vec![0],
            continues,
        }
    }

    /// Adds a node below the last one with a smaller depth.
    pub(crate) fn node(&mut self, depth: usize, byte: u8) -> u32 {
        self.leave(depth);
        let Tree { nodes, words } = &mut self.tree;
        let at = nodes.len() as u32;
        self.path.push(at);
        nodes.push(Node {
            end: 0,
            words: words.len() as u32,
            depth: depth as u16,
            byte,
            height: 0,
        });
        at
    }

    /// Ends the nodes from a depth on: the next one is not below them.
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

    /// Adds words that end at the last node.
    pub(crate) fn words(&mut self, words: &[TokenId]) {
        self.tree.words.extend_from_slice(words);
    }

    pub(crate) fn finish(mut self) -> Tree {
        self.leave(0);
        let Tree { nodes, words } = &mut self.tree;
        let end = nodes.len() as u32;
        nodes.push(Node { end: end + 1, words: words.len() as u32, depth: 0, byte: 0, height: 0 });
        self.tree
    }
}

impl Fans {
    /// Of a tree, if it is large. The root has a table of its own.
    fn of_large(tree: &Tree) -> Fans {
        let mut fans = Fans::default();
        if tree.nodes.len() <= LARGE {
            return fans;
        }
        for node in (1..tree.len() as u32).filter(|&node| tree.node(node).end - node >= WIDE) {
            let (from, mut bytes) = (fans.children.len(), ByteSet::EMPTY);
            fans.children
                .extend(tree.children(node).inspect(|&child| bytes.insert(tree.node(child).byte)));
            if fans.children.len() - from < MANY {
                fans.children.truncate(from);
            } else {
                fans.of.insert(node, (bytes, from as u32));
            }
        }
        fans
    }
}

impl White {
    /// Of a tree; none where few words are white space and nothing else.
    fn of(tree: &Tree) -> Option<White> {
        let mut white = White::default();
        let mut queue = vec![0];
        while let Some(node) = queue.pop() {
            if node > 0 {
                white.only.extend_from_slice(tree.words_at(node));
            }
            for child in tree.children(node) {
                match tree.node(child).byte {
                    byte if ByteSet::WHITE_SPACE.contains(byte) => queue.push(child),
                    byte if node > 0 => white.behind.push((byte, child)),
                    _ => {}
                }
            }
        }
        white.behind.sort_unstable();
        (white.only.len() >= MANY_WHITE).then_some(white)
    }

    /// The nodes of words whose first byte behind white space is this one.
    pub(crate) fn behind(&self, byte: u8) -> impl Iterator<Item = u32> + '_ {
        let from = self.behind.partition_point(|&(other, _)| other < byte);
        self.behind[from..]
            .iter()
            .take_while(move |&&(other, _)| other == byte)
            .map(|&(_, node)| node)
    }
}

impl std::ops::Deref for Trie {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}

/// Per node: whether all that is below it may be written between two code points, as the automaton has it.
fn spelt(nodes: &[Node], parents: &[u32], steps: &utf8::Steps) -> Vec<bool> {
    let mut may_follow = vec![u32::MAX; nodes.len()];
    for at in (1..nodes.len() - 1).rev() {
        let (byte, then) = (nodes[at].byte, may_follow[at]);
        let may = |state: u8| match steps.next(state, byte) {
            Some(next) => (then >> next & 1) << state,
            None => 0,
        };
        may_follow[parents[at] as usize] &= match byte {
            0..=0x7F => then & 1 << utf8::WHOLE,
            0x80..=0xBF => (0..steps.states).fold(0, |all, state| all | may(state)),
            // Only between two code points another one begins.
            0xC0.. => may(utf8::WHOLE),
        };
    }
    may_follow.into_iter().map(|may| may >> utf8::WHOLE & 1 == 1).collect()
}

impl Trie {
    /// Builds from `(string, id)` pairs in any order. The empty string ends at the root. Cost: one sort.
    pub fn build(mut entries: Vec<(&[u8], TokenId)>) -> Trie {
        entries.sort_unstable();
        let tree = Tree::of(&entries);
        let nodes = &tree.nodes;
        let mut root = Box::new([NO_NODE; 256]);
        tree.children(0).for_each(|child| root[usize::from(tree.node(child).byte)] = child);
        // Children come after their parent: backwards, each node is complete when its parent takes it over.
        let mut below = vec![0u64; nodes.len()];
        let mut parents: Vec<u32> = vec![0; nodes.len()];
        let mut open: Vec<u32> = Vec::new();
        for at in 0..nodes.len() as u32 - 1 {
            while open.last().is_some_and(|&top| nodes[top as usize].end <= at) {
                open.pop();
            }
            parents[at as usize] = open.last().copied().unwrap_or(0);
            open.push(at);
        }
        for at in (1..nodes.len() - 1).rev() {
            below[parents[at] as usize] |= below[at] | kind(nodes[at].byte);
        }
        if below[0] & NOT_ASCII != 0 {
            let whole = spelt(nodes, &parents, &utf8::ANY);
            let black = spelt(nodes, &parents, &utf8::BLACK);
            for (at, below) in
                below.iter_mut().enumerate().filter(|(_, below)| **below & NOT_ASCII != 0)
            {
                match (whole[at], black[at]) {
                    (_, true) => *below = *below & !NOT_ASCII | BLACK_CODE_POINTS,
                    (true, false) => *below = *below & !NOT_ASCII | CODE_POINTS,
                    (false, false) => {}
                }
            }
        }
        Trie { fans: Fans::of_large(&tree), white: White::of(&tree), tree, root, below }
    }

    /// The words that begin with white space, if many are nothing else.
    #[inline]
    pub(crate) fn white(&self) -> Option<&White> {
        self.white.as_ref()
    }

    /// The children of a node, if it is known to have many.
    #[inline]
    pub(crate) fn fan(&self, node: u32) -> Option<Fan<'_>> {
        if self.node(node).end - node < WIDE {
            return None;
        }
        let &(bytes, from) = self.fans.of.get(&node)?;
        Some(Fan { bytes, children: &self.fans.children[from as usize..] })
    }

    /// The kinds of all bytes strictly below a node; [`CODE_POINTS`] or [`BLACK_CODE_POINTS`] in place of those that are not ASCII where they spell
    /// some, read from the node on.
    #[inline]
    pub(crate) fn kinds_below(&self, node: u32) -> u64 {
        self.below[node as usize]
    }

    /// The root's child for a byte.
    #[inline]
    pub fn root_child(&self, byte: u8) -> Option<u32> {
        let child = self.root[usize::from(byte)];
        (child != NO_NODE).then_some(child)
    }

    /// A node's child for a byte. Cost: linear in the number of smaller children, constant at the root.
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        if node == 0 {
            return self.root_child(byte);
        }
        let child = self.children(node).find(|&child| self.node(child).byte >= byte)?;
        (self.node(child).byte == byte).then_some(child)
    }
}
