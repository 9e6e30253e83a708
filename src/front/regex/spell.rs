//! Spellings: code points and automata over them as bytes of UTF-8, or as a caller spells them.

use crate::fsm::{ByteSet, Dfa};
use crate::ir::{Expr, Graph};

/// The expression of one code point of the ranges, as UTF-8 bytes.
pub fn spell_utf8(ranges: &[(u32, u32)]) -> Expr {
    let mut ascii = ByteSet::EMPTY;
    let mut parts = Vec::new();
    for &(lo, hi) in ranges {
        if lo < 0x80 {
            ascii.insert_range(lo as u8, hi.min(0x7F) as u8);
        }
        if let (true, Some(lo), Some(hi)) =
            (hi >= 0x80, scalar_from(lo.max(0x80)), scalar_until(hi))
        {
            parts.push(Expr::code_points(lo, hi));
        }
    }
    parts.insert(0, Expr::class(ascii));
    Expr::alt(parts)
}

/// Lowers an automaton over code points to a graph over bytes. `spell` spells the ranges of an
/// edge.
pub fn spell_dfa(dfa: &Dfa, spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr) -> Expr {
    let mut graph = Graph { nodes: dfa.len() as u32, ..Graph::default() };
    for state in 0..dfa.len() as u32 {
        for (to, ranges) in edges_by_target(dfa, state) {
            graph.edge(state, spell(&ranges), to);
        }
        if dfa.is_final(state) {
            graph.ends.push(state);
        }
    }
    Expr::Graph(Box::new(graph))
}

/// The edges of a state, grouped by target.
pub fn edges_by_target(dfa: &Dfa, state: u32) -> Vec<(u32, Vec<(u32, u32)>)> {
    let mut out: Vec<(u32, Vec<(u32, u32)>)> = Vec::new();
    let mut edges: Vec<_> = dfa.edges(state).iter().collect();
    edges.sort_by_key(|e| (e.to, e.lo));
    for e in edges {
        match out.last_mut() {
            Some((to, ranges)) if *to == e.to => ranges.push((e.lo, e.hi)),
            _ => out.push((e.to, vec![(e.lo, e.hi)])),
        }
    }
    out
}

/// The first scalar value at or after a code point.
pub(crate) fn scalar_from(code: u32) -> Option<char> {
    char::from_u32(if (0xD800..0xE000).contains(&code) { 0xE000 } else { code })
}

/// The last scalar value at or before a code point.
pub(crate) fn scalar_until(code: u32) -> Option<char> {
    char::from_u32(if (0xD800..0xE000).contains(&code) { 0xD7FF } else { code.min(0x10FFFF) })
}
