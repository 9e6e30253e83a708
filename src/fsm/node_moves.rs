//! Equivalence of graph nodes under a bounded number of moves.
//!
//! A *move* is an edge to another node; an edge from a node to itself is none. Where a pattern
//! counts words, the letters of a word are no moves and the space after it is one. Two nodes are
//! equivalent for n moves if no text that takes at most n moves from either of them tells them
//! apart. A token of k bytes takes at most k moves, so nodes far from a bound share one mask.
//!
//! Found by partition refinement, one round for each number of moves (Moore's algorithm, with
//! self-loops apart).

use super::Nfa;
use crate::fuel;
use crate::hash::HashMap;

/// Most moves for which equivalence is computed.
const MAX_MOVES: u32 = 64;
/// Most nodes times rounds that are stored.
const MAX_TABLE_SIZE: usize = 1 << 20;

/// An edge: its range of bytes or symbols, and the node it leads to.
type LabelledEdge = (u32, u32, u32);

/// Whether the graph may end at a node, and its edges with their targets replaced by classes.
type NodeSignature = (bool, Vec<LabelledEdge>);

/// The nodes of a graph, partitioned for each number of moves.
#[derive(Debug)]
pub(crate) struct NodeMoves {
    /// By node: its edges in ascending order.
    edges: Vec<Vec<LabelledEdge>>,
    /// By node: whether the graph may end there.
    ends: Vec<bool>,
    /// By number of moves: the class of each node.
    levels: Vec<Box<[u32]>>,
    /// Whether the last partition holds for all greater numbers of moves.
    is_stable: bool,
}

impl NodeMoves {
    /// The graph whose nodes are the states `first..first + nodes` of an automaton, and which ends
    /// where state `end` is reached. `None` if an edge has more than one symbol.
    pub(crate) fn new(nfa: &Nfa, (first, nodes, end): (u32, u32, u32)) -> Option<NodeMoves> {
        let is_node = |state: u32| (first..first + nodes).contains(&state);
        let (mut edges, mut ends) = (Vec::new(), Vec::new());
        for node in first..first + nodes {
            let (mut node_edges, mut may_end) = (Vec::new(), false);
            let mut stack = vec![node];
            let mut seen = stack.clone();
            while let Some(state) = stack.pop() {
                if state == end {
                    may_end = true;
                    continue;
                }
                for edge in nfa.edges(state) {
                    let mut to = edge.to;
                    while !is_node(to) {
                        let mut successors = nfa.epsilons(to);
                        let (Some(next), None, true) =
                            (successors.next(), successors.next(), nfa.is_edgeless(to))
                        else {
                            return None;
                        };
                        to = next;
                    }
                    node_edges.push((edge.lo, edge.hi, to - first));
                }
                for to in nfa.epsilons(state) {
                    if is_node(to) {
                        return None;
                    }
                    if !seen.contains(&to) {
                        seen.push(to);
                        stack.push(to);
                    }
                }
            }
            node_edges.sort_unstable();
            node_edges.dedup();
            edges.push(node_edges);
            ends.push(may_end);
        }
        Some(NodeMoves { edges, ends, levels: Vec::new(), is_stable: false })
    }

    /// Whether no text with at most `moves` moves from one of the nodes tells it from the other.
    /// Cost of a new number of moves: all edges.
    pub(crate) fn are_equivalent(&mut self, a: u32, b: u32, moves: u32) -> bool {
        if a == b {
            return true;
        }
        match self.level(moves) {
            Some(level) => level[a as usize] == level[b as usize],
            None => false,
        }
    }

    /// Whether merging equivalent nodes is worth it: the node has a self-loop, and several nodes
    /// are equivalent to it for so many moves.
    pub(crate) fn has_many_equivalents(&mut self, node: u32, moves: u32) -> bool {
        /// With fewer, merging is not worth it.
        const MIN_EQUIVALENT_NODES: usize = 4;
        let stays = self.edges[node as usize].iter().any(|&(_, _, to)| to == node);
        let alike =
            |level: &[u32]| level.iter().filter(|&&class| class == level[node as usize]).count();
        stays && self.level(moves).is_some_and(|level| alike(level) >= MIN_EQUIVALENT_NODES)
    }

    /// The partition for so many moves; `None` where it is out of bounds.
    fn level(&mut self, moves: u32) -> Option<&[u32]> {
        if moves > MAX_MOVES {
            return None;
        }
        while self.levels.len() <= moves as usize && !self.is_stable {
            if (self.levels.len() + 1) * self.edges.len() > MAX_TABLE_SIZE {
                return None;
            }
            let (classes, next) = self.refine();
            self.is_stable = self
                .levels
                .last()
                .is_some_and(|last| last.iter().max() == classes.checked_sub(1).as_ref());
            self.levels.push(next);
        }
        self.levels.get((moves as usize).min(self.levels.len() - 1)).map(|level| &level[..])
    }

    /// The partition for one move more, and its number of classes.
    fn refine(&self) -> (u32, Box<[u32]>) {
        /// The class of a node's edge to itself.
        const SELF_LOOP: u32 = u32::MAX;
        /// In the first round, the class of an edge to any other node.
        const OTHER_NODE: u32 = u32::MAX - 1;
        let before = self.levels.last();
        let mut classes: HashMap<NodeSignature, u32> = HashMap::default();
        let mut next = Vec::with_capacity(self.edges.len());
        for (node, edges) in self.edges.iter().enumerate() {
            let class = |to: u32| match before {
                _ if to as usize == node => SELF_LOOP,
                Some(before) => before[to as usize],
                None => OTHER_NODE,
            };
            let mut signature_edges: Vec<LabelledEdge> =
                edges.iter().map(|&(lo, hi, to)| (lo, hi, class(to))).collect();
            fuel::charge(2 + signature_edges.len());
            signature_edges.sort_unstable();
            signature_edges.dedup();
            let number = classes.len() as u32;
            next.push(*classes.entry((self.ends[node], signature_edges)).or_insert(number));
        }
        (classes.len() as u32, next.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The automaton of a graph over single symbols, and the states of its nodes.
    fn automaton(nodes: u32, edges: &[(u32, u32, u32)], ends: &[u32]) -> (Nfa, (u32, u32, u32)) {
        let mut nfa = Nfa::new();
        let first = nfa.state();
        (1..nodes).for_each(|_| _ = nfa.state());
        for &(from, symbol, to) in edges {
            let behind = nfa.state();
            nfa.edge(first + from, symbol, symbol, behind);
            nfa.epsilon(behind, first + to);
        }
        let end = nfa.state();
        ends.iter().for_each(|&node| nfa.epsilon(first + node, end));
        (nfa, (first, nodes, end))
    }

    /// Whether two nodes accept the same texts of at most `left` symbols that take at most `moves`
    /// moves from either.
    fn accepts_the_same(
        edges: &[(u32, u32, u32)],
        ends: &[u32],
        (a, b): (u32, u32),
        moves: u32,
        left: u32,
    ) -> bool {
        if ends.contains(&a) != ends.contains(&b) {
            return false;
        }
        (0..2).all(|symbol| {
            let to = |node| edges.iter().find(|e| (e.0, e.1) == (node, symbol)).map(|e| e.2);
            match (to(a), to(b)) {
                (None, None) => true,
                (Some(_), Some(_)) if left == 0 => true,
                (Some(x), Some(y)) if x == a && y == b => {
                    accepts_the_same(edges, ends, (x, y), moves, left - 1)
                }
                (Some(x), Some(y)) if x != a && y != b => {
                    moves == 0 || accepts_the_same(edges, ends, (x, y), moves - 1, left - 1)
                }
                _ => false,
            }
        })
    }

    proptest! {
        #[test]
        fn equivalent_nodes_accept_the_same_texts(
            targets in prop::collection::vec(prop::option::weighted(0.8, 0..7u32), 14),
            ends in prop::collection::vec(0..7u32, 0..4),
        ) {
            let edge =
                |(i, to): (usize, &Option<u32>)| to.map(|to| (i as u32 / 2, i as u32 % 2, to));
            let edges: Vec<(u32, u32, u32)> = targets.iter().enumerate().filter_map(edge).collect();
            let (nfa, graph) = automaton(7, &edges, &ends);
            let mut moves = NodeMoves::new(&nfa, graph).unwrap();
            for (a, b, most) in
                (0..7).flat_map(|a| (0..7).flat_map(move |b| (0..5).map(move |most| (a, b, most))))
            {
                let same = a == b || accepts_the_same(&edges, &ends, (a, b), most, 12);
                prop_assert!(
                    !moves.are_equivalent(a, b, most) || same,
                    "{} and {}, {} moves",
                    a,
                    b,
                    most
                );
            }
        }
    }

    #[test]
    fn remaining_words_are_told_apart_by_as_many_moves() {
        // Words of at most ten letters. Node 2k is after k words, in or before the next one; 2k + 1
        // in the space after it.
        let edges: Vec<(u32, u32, u32)> = (0..10)
            .flat_map(|k| {
                [
                    (2 * k, 0, 2 * k),
                    (2 * k, 1, 2 * k + 1),
                    (2 * k + 1, 1, 2 * k + 1),
                    (2 * k + 1, 0, 2 * k + 2),
                ]
            })
            .filter(|&(_, _, to)| to < 20)
            .collect();
        let ends: Vec<u32> = (0..10).map(|k| 2 * k).collect();
        let (nfa, graph) = automaton(20, &edges, &ends);
        let mut moves = NodeMoves::new(&nfa, graph).unwrap();
        assert!(
            moves.are_equivalent(0, 12, 4)
                && moves.are_equivalent(1, 13, 4)
                && !moves.are_equivalent(0, 1, 4)
        );
        assert!(
            !moves.are_equivalent(0, 12, 8)
                && !moves.are_equivalent(0, 18, 1)
                && moves.are_equivalent(18, 18, 1)
        );
        assert!(
            moves.has_many_equivalents(4, 3)
                && !moves.has_many_equivalents(19, 1)
                && !moves.has_many_equivalents(0, 19)
        );
        assert!(!moves.has_many_equivalents(0, 1_000));
        // An edge of two symbols is not supported.
        let mut nfa = Nfa::new();
        let (a, b, c, d) = (nfa.state(), nfa.state(), nfa.state(), nfa.state());
        nfa.edge(a, 0, 0, b);
        nfa.edge(b, 0, 0, c);
        nfa.epsilon(c, a);
        assert!(NodeMoves::new(&nfa, (a, 1, d)).is_none());
    }
}
