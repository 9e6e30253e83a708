//! Reasoning of a bounded length.

use louver::front::regex::{SCALARS, spell_utf8};
use louver::ir::{Expr, Graph};

use crate::format::ReasoningFormat;
use crate::lower::Lowering;
use crate::marker::Atom;
use crate::plan::Role;
use crate::request::LowerError;

/// Most beginnings of the end marker in a row that bounded reasoning may contain.
const MAX_BEGUN: u32 = 8;

impl Lowering<'_> {
    /// Text of at most `budget` units, and the end marker. A unit is a character, or a run of begun end markers with
    /// the character that shows they were none.
    pub(crate) fn bounded_reasoning(&mut self, format: &ReasoningFormat, budget: u32) -> Result<Expr, LowerError> {
        let unsupported = |what| LowerError::Combination { what };
        if !format.excludes.is_empty() {
            return Err(unsupported("a reasoning budget, in a format whose reasoning has `excludes`"));
        }
        let spellings = format.end.spellings();
        let mut text = None;
        for spelling in &spellings {
            if let Atom::Text(head) = &spelling[0] {
                let chars: Vec<char> = head.chars().collect();
                if text.is_some() || chars[1..].contains(&chars[0]) {
                    return Err(unsupported("a reasoning budget, in a format with such an end of reasoning"));
                }
                text = Some((chars, spelling));
            }
        }
        let unit = match &text {
            Some((marker, _)) => unit(marker),
            None => spell_utf8(&SCALARS),
        };
        let units = self.builder.rule("reasoning unit", unit);
        let body = Expr::repeat(Expr::Ref(units), 0, Some(budget));
        let body = self.builder.labelled("reasoning", Role::Reasoning.label(), body);
        let mut ends = Vec::new();
        for (trigger, rest) in self.heads(&format.end) {
            ends.push(match (trigger, &text) {
                (louver::ir::Trigger::Special(special), text) => {
                    let begun = text.as_ref().map_or(Expr::Empty, |(marker, _)| Expr::optional(tail(marker, false)));
                    Expr::seq([begun, Expr::Special(special), rest])
                }
                (louver::ir::Trigger::Text(_), Some((marker, _))) => Expr::seq([tail(marker, true), rest]),
                (louver::ir::Trigger::Text(bytes), None) => Expr::seq([Expr::bytes(&bytes), rest]),
            });
        }
        Ok(Expr::seq([Expr::Ref(body), Expr::alt(ends)]))
    }
}

/// Every code point but these.
pub(crate) fn all_but(chars: &[char]) -> Expr {
    let mut codes: Vec<u32> = chars.iter().map(|&c| u32::from(c)).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut ranges = Vec::new();
    for (lo, hi) in SCALARS {
        let mut from = lo;
        for &code in codes.iter().filter(|code| (lo..=hi).contains(*code)) {
            if code > from {
                ranges.push((from, code - 1));
            }
            from = code + 1;
        }
        if from <= hi {
            ranges.push((from, hi));
        }
    }
    spell_utf8(&ranges)
}

fn one(c: char) -> Expr {
    Expr::text(c.encode_utf8(&mut [0; 4]))
}

/// Nodes for "so much of the marker has been read, begun for the so many-th time".
fn begun(graph: &mut Graph, marker: &[char]) -> Vec<Vec<u32>> {
    (0..MAX_BEGUN).map(|_| (1..marker.len()).map(|_| graph.node()).collect()).collect()
}

fn unit(marker: &[char]) -> Expr {
    let mut graph = Graph::default();
    let (start, end) = (graph.node(), graph.node());
    graph.start = start;
    graph.ends.push(end);
    let first = marker[0];
    graph.edge(start, all_but(&[first]), end);
    let begun = begun(&mut graph, marker);
    for (round, nodes) in begun.iter().enumerate() {
        if round == 0
            && let Some(&node) = nodes.first()
        {
            graph.edge(start, one(first), node);
        }
        for (k, &node) in nodes.iter().enumerate() {
            graph.edge(node, all_but(&[first, marker[k + 1]]), end);
            if let Some(&next) = nodes.get(k + 1) {
                graph.edge(node, one(marker[k + 1]), next);
            }
            if let Some(&again) = begun.get(round + 1).and_then(|nodes| nodes.first()) {
                graph.edge(node, one(first), again);
            }
        }
    }
    Expr::Graph(Box::new(graph))
}

/// The marker, perhaps begun before; or only so begun that more could follow.
fn tail(marker: &[char], whole: bool) -> Expr {
    let mut graph = Graph::default();
    let (start, end) = (graph.node(), graph.node());
    graph.start = start;
    let first = marker[0];
    let begun = begun(&mut graph, marker);
    graph.ends = if whole { vec![end] } else { begun.iter().flatten().copied().collect() };
    match begun.first().and_then(|nodes| nodes.first()) {
        Some(&node) => graph.edge(start, one(first), node),
        None => graph.edge(start, one(first), end),
    }
    for (round, nodes) in begun.iter().enumerate() {
        for (k, &node) in nodes.iter().enumerate() {
            let next = nodes.get(k + 1).copied().unwrap_or(end);
            graph.edge(node, one(marker[k + 1]), next);
            if let Some(&again) = begun.get(round + 1).and_then(|nodes| nodes.first()) {
                graph.edge(node, one(first), again);
            }
        }
    }
    Expr::Graph(Box::new(graph))
}
