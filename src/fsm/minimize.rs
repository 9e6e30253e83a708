//! Minimisation by partition refinement on edges, in O(m log n) for m edges and n states.
//!
//! Minimisation trims the automaton first and numbers states breadth-first last, so that equal
//! languages over equal symbols give equal automata.
//!
//! Source: Valmari and Lehtinen, "Efficient Minimization of DFAs with Partial Transition
//! Functions", STACS 2008.

use super::alphabet::Alphabet;
use super::{Csr, Dfa, Edge};
use crate::fuel;

/// Fuel of partition refinement, in units an edge.
const FUEL_PER_EDGE: usize = 6;
/// Marked elements between two checks of cancel tokens. The fuel is spent before.
const MARKS_PER_CHECK: usize = 1 << 14;

/// A refinable partition of `0..n`. Block `b` is `elems[first[b]..past[b]]`, its marked elements
/// first.
struct Partition {
    elems: Vec<u32>,
    loc: Vec<u32>,
    set_of: Vec<u32>,
    first: Vec<u32>,
    past: Vec<u32>,
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl Partition {
    /// The partition into runs of equal keys.
    fn by_key(keys: &[u32]) -> Partition {
        let n = keys.len();
        let max_key = keys.iter().max().map_or(0, |&max_key| max_key as usize);
        let elems = if max_key <= 4 * n {
            Csr::new(max_key + 1, || keys.iter().copied().zip(0..)).into_values()
        } else {
            let mut elems: Vec<u32> = (0..n as u32).collect();
            elems.sort_by_key(|&e| keys[e as usize]);
            elems
        };
        let mut p = Partition {
            loc: vec![0; n],
            set_of: vec![0; n],
            first: Vec::new(),
            past: Vec::new(),
            marked: Vec::new(),
            touched: Vec::new(),
            elems,
        };
        for i in 0..n {
            let e = p.elems[i] as usize;
            if i == 0 || keys[p.elems[i - 1] as usize] != keys[e] {
                if i > 0 {
                    p.past.push(i as u32);
                }
                p.first.push(i as u32);
                p.marked.push(0);
            }
            p.loc[e] = i as u32;
            p.set_of[e] = (p.first.len() - 1) as u32;
        }
        if n > 0 {
            p.past.push(n as u32);
        }
        p
    }

    /// Number of blocks.
    fn blocks(&self) -> usize {
        self.first.len()
    }

    /// Marks an element, by moving it to the front of its block.
    fn mark(&mut self, element: u32) {
        let set = self.set_of[element as usize] as usize;
        let position = self.loc[element as usize];
        let target = self.first[set] + self.marked[set];
        if position < target {
            return; // already marked
        }
        let other = self.elems[target as usize];
        self.elems[position as usize] = other;
        self.loc[other as usize] = position;
        self.elems[target as usize] = element;
        self.loc[element as usize] = target;
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
    }

    /// Splits every block with marked elements into its marked and unmarked part. The smaller part
    /// becomes the new block.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let s = set as usize;
            let cut = self.first[s] + self.marked[s];
            let marked = std::mem::replace(&mut self.marked[s], 0);
            if cut == self.past[s] {
                continue;
            }
            let new = self.first.len() as u32;
            if marked <= self.past[s] - cut {
                self.first.push(self.first[s]);
                self.past.push(cut);
                self.first[s] = cut;
            } else {
                self.first.push(cut);
                self.past.push(self.past[s]);
                self.past[s] = cut;
            }
            self.marked.push(0);
            for i in self.first[new as usize]..self.past[new as usize] {
                self.set_of[self.elems[i as usize] as usize] = new;
            }
        }
    }
}

/// The coarsest partition that refines `keys` and is stable: two elements of one class have, for
/// every label, edges into the same class or none. Elements with equal keys must have at most one
/// edge a label. Returns each element's class; `None` if the work is cancelled meanwhile.
/// O(m log n) for m edges `(tail, label, head)`.
pub(crate) fn coarsest(
    keys: &[u32],
    tail: &[u32],
    label: &[u32],
    head: &[u32],
) -> Option<Vec<u32>> {
    let mut blocks = Partition::by_key(keys);
    let mut cords = Partition::by_key(label);
    let incoming = Csr::new(keys.len(), || head.iter().copied().zip(0..));
    // Every block but one must split the cords (sets of edges with one label); block 0 is left out.
    let (mut b, mut c) = (1, 0);
    let mut marks = 0;
    let mut count_marks = |more: usize| {
        marks += 1 + more;
        if marks < MARKS_PER_CHECK {
            return Some(());
        }
        marks = 0;
        fuel::check().ok()
    };
    loop {
        while b < blocks.blocks() {
            for i in blocks.first[b]..blocks.past[b] {
                let edges = incoming.row(blocks.elems[i as usize]);
                edges.iter().for_each(|&edge| cords.mark(edge));
                count_marks(edges.len())?;
            }
            cords.split();
            b += 1;
        }
        if c >= cords.blocks() {
            return Some(blocks.set_of);
        }
        for i in cords.first[c]..cords.past[c] {
            blocks.mark(tail[cords.elems[i as usize] as usize]);
            count_marks(0)?;
        }
        blocks.split();
        c += 1;
    }
}

impl Dfa {
    /// The minimal automaton: useless states dropped, equivalent states merged, numbered
    /// breadth-first. Out of [`fuel`], it is `self`, perhaps without useless states: code that
    /// caches the result must check the fuel.
    #[must_use]
    pub fn minimize(&self) -> Dfa {
        if fuel::spend(self.len() + self.edge_count()).is_err() {
            return self.clone();
        }
        let keep = self.useful_states();
        if !keep[0] {
            return Dfa::empty_language();
        }
        if !keep.iter().all(|&keep| keep) {
            return self.restricted_to(&keep).minimize();
        }
        // By class of symbols, so that edges have equal labels iff their classes are equal.
        let alphabet = Alphabet::new(&[self]);
        let (mut tail, mut label, mut head) = (Vec::new(), Vec::new(), Vec::new());
        alphabet.edges(self, |state, class, to| {
            tail.push(state);
            label.push(class);
            head.push(to);
        });
        // Out of fuel, these are not all edges.
        if fuel::spend(FUEL_PER_EDGE * head.len()).is_err() {
            return self.clone();
        }
        let keys: Vec<u32> = self.finals.iter().map(|&is_final| u32::from(is_final)).collect();
        match coarsest(&keys, &tail, &label, &head) {
            Some(classes) => self.quotient(&classes, 0),
            None => self.clone(),
        }
    }

    /// The automaton without states that cannot be reached or cannot reach a final state.
    #[must_use]
    pub fn trim(&self) -> Dfa {
        let keep = self.useful_states();
        match keep.iter().all(|&keep| keep) {
            true => self.clone(),
            false if keep[0] => self.restricted_to(&keep),
            false => Dfa::empty_language(),
        }
    }

    /// The automaton of these states; the start must be among them.
    fn restricted_to(&self, keep: &[bool]) -> Dfa {
        let mut number = vec![0u32; self.len()];
        let kept = number.iter_mut().zip(keep).filter(|(_, keep)| **keep);
        kept.zip(0..).for_each(|((number, _), kept)| *number = kept);
        let mut out = Dfa::unfinished();
        for state in (0..self.len() as u32).filter(|&s| keep[s as usize]) {
            for e in self.edges(state).iter().filter(|e| keep[e.to as usize]) {
                out.push_edge(Edge { to: number[e.to as usize], ..*e });
            }
            out.end_state(self.is_final(state));
        }
        out
    }

    /// By state: whether it can be reached and can reach a final state.
    pub(super) fn useful_states(&self) -> Vec<bool> {
        let n = self.len();
        let mut reach = vec![false; n];
        let mut order = vec![0u32];
        reach[0] = true;
        let mut i = 0;
        while i < order.len() {
            for e in self.edges(order[i]) {
                if !std::mem::replace(&mut reach[e.to as usize], true) {
                    order.push(e.to);
                }
            }
            i += 1;
        }
        let back = Csr::new(n, || {
            order.iter().flat_map(|&s| self.edges(s).iter().map(move |e| (e.to, s)))
        });
        back.reached(order.iter().copied().filter(|&s| self.is_final(s)))
    }

    /// The automaton of what is read from `start`, numbered breadth-first. Minimal automata of
    /// equal languages are equal then.
    pub(crate) fn canonical(&self, start: u32) -> Dfa {
        let classes: Vec<u32> = (0..self.len() as u32).collect();
        self.quotient(&classes, start)
    }

    /// The automaton with each class of equivalent states as one state, numbered breadth-first from
    /// the class of `start`. Classes are numbered from 0, and there are at most as many as states.
    fn quotient(&self, class_of: &[u32], start: u32) -> Dfa {
        let mut number = vec![u32::MAX; self.len()];
        let mut order = vec![start];
        number[class_of[start as usize] as usize] = 0;
        let mut out = Dfa::unfinished();
        let mut current = 0;
        while current < order.len() {
            let state = order[current];
            for e in self.edges(state) {
                let number = &mut number[class_of[e.to as usize] as usize];
                if *number == u32::MAX {
                    *number = order.len() as u32;
                    order.push(e.to);
                }
                out.push_edge(Edge { to: *number, ..*e });
            }
            out.end_state(self.is_final(state));
            current += 1;
        }
        out
    }
}
