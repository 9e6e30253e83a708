//! Spellings: code points and automata over them as bytes of UTF-8, or as a caller spells them.

use crate::fsm::{ByteSet, Dfa, NumeralBuilder, TooLarge};
use crate::fuel;
use crate::ir::{Expr, Graph};

/// Up to so many ranges, code points are spelled as alternatives, which people can read.
const MAX_ALTERNATIVES: usize = 16;

/// The expression of one code point of the ranges, as UTF-8 bytes. Ranges are sorted and disjoint.
pub fn spell_utf8(ranges: &[(u32, u32)]) -> Expr {
    let mut ascii = ByteSet::EMPTY;
    for &(lo, hi) in ranges.iter().filter(|range| range.0 < 0x80) {
        ascii.insert_range(lo as u8, hi.min(0x7F) as u8);
    }
    Expr::alt([Expr::class(ascii), spell_not_ascii(ranges)])
}

/// As [`spell_utf8`], without ASCII.
pub(crate) fn spell_not_ascii(ranges: &[(u32, u32)]) -> Expr {
    if ranges.len() > MAX_ALTERNATIVES {
        let (mut build, mut first) = (NumeralBuilder::new(), Vec::new());
        build.utf8(ranges, &mut first);
        return match first.is_empty() {
            true => Expr::Never,
            false => Expr::Automaton(build.finish(first).into()),
        };
    }
    let ranges = ranges.iter().filter(|range| range.1 >= 0x80);
    Expr::alt(ranges.filter_map(|&(lo, hi)| {
        Some(Expr::code_points(scalar_from(lo.max(0x80))?, scalar_until(hi)?))
    }))
}

/// Lowers an automaton over code points to a graph over bytes. `spell` spells the ranges of an
/// edge. Errors: out of fuel.
pub fn spell_dfa(
    dfa: &Dfa,
    spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr,
) -> Result<Expr, TooLarge> {
    let mut graph = Graph { nodes: dfa.len() as u32, ..Graph::default() };
    for state in 0..dfa.len() as u32 {
        fuel::spend(dfa.edges(state).len())?;
        for (to, ranges) in edges_by_target(dfa, state) {
            graph.edge(state, spell(&ranges), to);
        }
        if dfa.is_final(state) {
            graph.ends.push(state);
        }
    }
    Ok(Expr::Graph(Box::new(graph)))
}

/// The edges of a state, grouped by target.
pub(crate) fn edges_by_target(dfa: &Dfa, state: u32) -> Vec<(u32, Vec<(u32, u32)>)> {
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
fn scalar_from(code: u32) -> Option<char> {
    char::from_u32(if (0xD800..0xE000).contains(&code) { 0xE000 } else { code })
}

/// The last scalar value at or before a code point.
fn scalar_until(code: u32) -> Option<char> {
    char::from_u32(if (0xD800..0xE000).contains(&code) { 0xD7FF } else { code.min(0x10FFFF) })
}
