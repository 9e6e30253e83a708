//! Minimisation by partition refinement on edges, in O(m log n) for m edges and n states.
//!
//! Minimisation trims the automaton first and numbers states breadth-first last, so that equal
//! languages over equal symbols give equal automata.
//!
//! Source: Valmari and Lehtinen, "Efficient Minimization of DFAs with Partial Transition
//! Functions", STACS 2008.

use super::alphabet::Alphabet;
use super::dfa::push_merged;
use super::{Csr, Dfa, Edge};
use crate::fuel;

/// Fuel of partition refinement, in units an edge.
const FUEL_PER_EDGE: usize = 6;

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
/// edge a label. Returns each element's class. O(m log n) for m edges `(tail, label, head)`.
pub(crate) fn coarsest(keys: &[u32], tail: &[u32], label: &[u32], head: &[u32]) -> Vec<u32> {
    refine(keys, tail, label, head).set_of
}

/// The partition of [`coarsest`].
fn refine(keys: &[u32], tail: &[u32], label: &[u32], head: &[u32]) -> Partition {
    let n = keys.len();
    let mut blocks = Partition::by_key(keys);
    let mut cords = Partition::by_key(label);
    let mut incoming_at = vec![0u32; n + 1];
    for &h in head {
        incoming_at[h as usize + 1] += 1;
    }
    for i in 0..n {
        incoming_at[i + 1] += incoming_at[i];
    }
    let mut incoming = vec![0u32; head.len()];
    let mut fill = incoming_at.clone();
    for (i, &h) in head.iter().enumerate() {
        incoming[fill[h as usize] as usize] = i as u32;
        fill[h as usize] += 1;
    }
    // Every block but one must split the cords (sets of edges with one label); block 0 is left out.
    let (mut b, mut c) = (1, 0);
    loop {
        while b < blocks.blocks() {
            for i in blocks.first[b]..blocks.past[b] {
                let s = blocks.elems[i as usize] as usize;
                for j in incoming_at[s]..incoming_at[s + 1] {
                    cords.mark(incoming[j as usize]);
                }
            }
            cords.split();
            b += 1;
        }
        if c >= cords.blocks() {
            return blocks;
        }
        for i in cords.first[c]..cords.past[c] {
            blocks.mark(tail[cords.elems[i as usize] as usize]);
        }
        blocks.split();
        c += 1;
    }
}

impl Dfa {
    /// The minimal automaton: useless states dropped, equivalent states merged, numbered
    /// breadth-first. Out of [`fuel`], it returns `self`: code that caches the result must check
    /// the fuel.
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
        if fuel::spend(FUEL_PER_EDGE * head.len()).is_err() {
            return self.clone();
        }
        let keys: Vec<u32> = self.finals.iter().map(|&is_final| u32::from(is_final)).collect();
        self.quotient(&refine(&keys, &tail, &label, &head))
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
        let mut kept = 0;
        for (number, _) in number.iter_mut().zip(keep).filter(|(_, keep)| **keep) {
            *number = kept;
            kept += 1;
        }
        let mut out = Dfa::from_parts(vec![0], Vec::new(), Vec::with_capacity(kept as usize));
        for state in (0..self.len() as u32).filter(|&s| keep[s as usize]) {
            let kept = self.edges(state).iter().filter(|e| keep[e.to as usize]);
            out.edges.extend(kept.map(|e| Edge { to: number[e.to as usize], ..*e }));
            out.offsets.push(out.edges.len() as u32);
            out.finals.push(self.is_final(state));
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

    /// The automaton with each block as one state, numbered breadth-first.
    fn quotient(&self, blocks: &Partition) -> Dfa {
        let mut number = vec![u32::MAX; blocks.blocks()];
        let mut order: Vec<u32> = vec![0];
        number[blocks.set_of[0] as usize] = 0;
        let mut out = Dfa::from_parts(vec![0], Vec::new(), Vec::new());
        let mut i = 0;
        while i < order.len() {
            let s = order[i];
            out.finals.push(self.is_final(s));
            let begin = out.edges.len();
            for e in self.edges(s) {
                let block = blocks.set_of[e.to as usize] as usize;
                if number[block] == u32::MAX {
                    number[block] = order.len() as u32;
                    order.push(e.to);
                }
                push_merged(&mut out.edges, begin, Edge { to: number[block], ..*e });
            }
            out.offsets.push(out.edges.len() as u32);
            i += 1;
        }
        out
    }
}
