//! Which nodes of a graph no text with few moves tells apart. A *move* is an edge to another node: where words are counted, letters
//! of a word are none, and the space behind it is one.

use super::Nfa;
use crate::fuel;
use crate::hash::HashMap;

/// Most moves that nodes are told apart by.
const MAX_MOVES: u32 = 64;
/// Most nodes times moves.
const MAX_SIZE: usize = 1 << 20;

/// An edge of a graph: its label (bytes, or symbols) and the node it leads to.
type Labelled = (u32, u32, u32);

/// What a node says of itself and of its edges, where some nodes are taken for the same.
type Said = (bool, Vec<Labelled>);

/// The nodes of a graph, by how many moves it takes to tell them apart.
#[derive(Debug)]
pub(crate) struct Moves {
    /// Per node: its edges, in ascending order.
    edges: Vec<Vec<Labelled>>,
    /// Per node: whether the graph may end there.
    ends: Vec<bool>,
    /// By number of moves: each node's class.
    levels: Vec<Box<[u32]>>,
    /// The last level is that of all numbers of moves behind it.
    is_stable: bool,
}

impl Moves {
    /// Of the graph whose nodes are so many states of an automaton from one on; where it ends, `end` is reached. None where an edge has more than one
    /// symbol.
    pub(crate) fn of(nfa: &Nfa, (first, nodes, end): (u32, u32, u32)) -> Option<Moves> {
        let is_node = |state: u32| (first..first + nodes).contains(&state);
        let (mut edges, mut ends) = (Vec::new(), Vec::new());
        for node in first..first + nodes {
            let (mut own, mut may_end) = (Vec::new(), false);
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
                        let mut behind = nfa.epsilons(to);
                        let (Some(next), None, true) =
                            (behind.next(), behind.next(), nfa.is_edgeless(to))
                        else {
                            return None;
                        };
                        to = next;
                    }
                    own.push((edge.lo, edge.hi, to - first));
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
            own.sort_unstable();
            own.dedup();
            edges.push(own);
            ends.push(may_end);
        }
        Some(Moves { edges, ends, levels: Vec::new(), is_stable: false })
    }

    /// Whether no text that takes at most so many moves from one of the nodes tells it from the other. Cost: the edges, once for each number of moves.
    pub(crate) fn are_alike(&mut self, a: u32, b: u32, moves: u32) -> bool {
        if a == b {
            return true;
        }
        match self.level(moves) {
            Some(level) => level[a as usize] == level[b as usize],
            None => false,
        }
    }

    /// Whether so many moves are few for a node: it does not move with each character, and several others are like it.
    pub(crate) fn has_many_like(&mut self, node: u32, moves: u32) -> bool {
        /// With fewer it is hardly worth a look.
        const MANY: usize = 4;
        let stays = self.edges[node as usize].iter().any(|&(_, _, to)| to == node);
        let alike =
            |level: &[u32]| level.iter().filter(|&&class| class == level[node as usize]).count();
        stays && self.level(moves).is_some_and(|level| alike(level) >= MANY)
    }

    fn level(&mut self, moves: u32) -> Option<&[u32]> {
        if moves > MAX_MOVES {
            return None;
        }
        while self.levels.len() <= moves as usize && !self.is_stable {
            if (self.levels.len() + 1) * self.edges.len() > MAX_SIZE {
                return None;
            }
            let (classes, next) = self.next();
            self.is_stable = self
                .levels
                .last()
                .is_some_and(|last| last.iter().max() == classes.checked_sub(1).as_ref());
            self.levels.push(next);
        }
        self.levels.get((moves as usize).min(self.levels.len() - 1)).map(|level| &level[..])
    }

    /// The classes with one move more, and how many there are.
    fn next(&self) -> (u32, Box<[u32]>) {
        /// An edge that leads back, and one to some other node.
        const LOOP: u32 = u32::MAX;
        const SOME: u32 = u32::MAX - 1;
        let before = self.levels.last();
        let mut classes: HashMap<Said, u32> = HashMap::default();
        let mut next = Vec::with_capacity(self.edges.len());
        for (node, edges) in self.edges.iter().enumerate() {
            let class = |to: u32| match before {
                _ if to as usize == node => LOOP,
                Some(before) => before[to as usize],
                None => SOME,
            };
            let mut said: Vec<Labelled> =
                edges.iter().map(|&(lo, hi, to)| (lo, hi, class(to))).collect();
            fuel::charge(2 + said.len());
            said.sort_unstable();
            said.dedup();
            let number = classes.len() as u32;
            next.push(*classes.entry((self.ends[node], said)).or_insert(number));
        }
        (classes.len() as u32, next.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The automaton of a graph over single symbols, and where its nodes are.
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

    /// Whether two nodes do the same with all texts of at most `left` symbols that take at most so many moves from either.
    fn same(
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
                    same(edges, ends, (x, y), moves, left - 1)
                }
                (Some(x), Some(y)) if x != a && y != b => {
                    moves == 0 || same(edges, ends, (x, y), moves - 1, left - 1)
                }
                _ => false,
            }
        })
    }

    proptest! {
        #[test]
        fn nodes_that_are_alike_do_the_same(
            targets in prop::collection::vec(prop::option::weighted(0.8, 0..7u32), 14),
            ends in prop::collection::vec(0..7u32, 0..4),
        ) {
            let edge = |(i, to): (usize, &Option<u32>)| to.map(|to| (i as u32 / 2, i as u32 % 2, to));
            let edges: Vec<(u32, u32, u32)> = targets.iter().enumerate().filter_map(edge).collect();
            let (nfa, graph) = automaton(7, &edges, &ends);
            let mut moves = Moves::of(&nfa, graph).unwrap();
            for (a, b, most) in (0..7).flat_map(|a| (0..7).flat_map(move |b| (0..5).map(move |most| (a, b, most)))) {
                let same = a == b || same(&edges, &ends, (a, b), most, 12);
                prop_assert!(!moves.are_alike(a, b, most) || same, "{} and {}, {} moves", a, b, most);
            }
        }
    }

    #[test]
    fn words_left_are_told_apart_by_as_many_moves() {
        // Words of at most ten: node 2k behind k words, in or before the next; 2k + 1 in the space behind it.
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
        let mut moves = Moves::of(&nfa, graph).unwrap();
        assert!(
            moves.are_alike(0, 12, 4) && moves.are_alike(1, 13, 4) && !moves.are_alike(0, 1, 4)
        );
        assert!(
            !moves.are_alike(0, 12, 8) && !moves.are_alike(0, 18, 1) && moves.are_alike(18, 18, 1)
        );
        assert!(
            moves.has_many_like(4, 3) && !moves.has_many_like(19, 1) && !moves.has_many_like(0, 19)
        );
        assert!(!moves.has_many_like(0, 1_000));
        // An edge of two symbols is none that is counted.
        let mut nfa = Nfa::new();
        let (a, b, c, d) = (nfa.state(), nfa.state(), nfa.state(), nfa.state());
        nfa.edge(a, 0, 0, b);
        nfa.edge(b, 0, 0, c);
        nfa.epsilon(c, a);
        assert!(Moves::of(&nfa, (a, 1, d)).is_none());
    }
}
