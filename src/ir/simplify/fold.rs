//! Local simplification of expressions, bottom-up.

use std::hash::{Hash, Hasher as _};

use super::any_changed;
use super::graph_paths::reachable_nodes;
use crate::fsm::ByteSet;
use crate::hash::{HashMap, Hasher, hasher};
use crate::ir::{Expr, Grammar, Graph, Members};

/// Largest bound made by folding nested repeats.
const MAX_BOUND: u32 = 1 << 16;
/// Up to this many alternatives are compared pairwise; beyond, only those with equal hashes.
const MAX_COMPARED: usize = 8;

/// Runs the pass; returns whether anything changed.
pub(super) fn run(grammar: &mut Grammar) -> bool {
    any_changed(&mut grammar.rules, |rule| fold(&mut rule.body))
}

/// Folds an expression; returns whether it changed.
pub(super) fn fold(expr: &mut Expr) -> bool {
    let mut changed = match expr {
        Expr::Seq(parts) | Expr::Alt(parts) => any_changed(parts, fold),
        Expr::Repeat { body, .. } => fold(body),
        Expr::Graph(graph) => any_changed(&mut graph.edges, |(_, e, _)| fold(e)),
        Expr::Members(members) => any_changed(members.parts_mut(), fold),
        _ => false,
    };
    let folded = match expr {
        Expr::Bytes(bytes) if bytes.is_empty() => Some(Expr::Empty),
        Expr::Class(set) => class(set),
        Expr::Automaton(dfa) if dfa.edge_count() == 0 => {
            Some(if dfa.is_final(0) { Expr::Empty } else { Expr::Never })
        }
        Expr::Seq(parts) => seq(parts),
        Expr::Alt(parts) => alt(parts),
        Expr::Repeat { body, min, max } => repeat(body, min, max, &mut changed),
        Expr::Graph(graph) => trim(graph, &mut changed),
        Expr::Members(set) => members(set, &mut changed),
        _ => None,
    };
    match folded {
        Some(folded) => {
            *expr = folded;
            true
        }
        None => changed,
    }
}

/// A class of no byte or of one byte, simplified.
fn class(set: &ByteSet) -> Option<Expr> {
    match set.len() {
        0 => Some(Expr::Never),
        1 => Some(Expr::Bytes(set.iter().collect())),
        _ => None,
    }
}

/// A sequence, simplified; `None` if it already is.
fn seq(parts: &mut Vec<Expr>) -> Option<Expr> {
    if parts.contains(&Expr::Never) {
        return Some(Expr::Never);
    }
    let literals = |pair: &[Expr]| matches!(pair, [Expr::Bytes(_), Expr::Bytes(_)]);
    let tidy = parts.len() > 1 && !parts.iter().any(|p| matches!(p, Expr::Empty | Expr::Seq(_)));
    if tidy && !parts.windows(2).any(literals) {
        return None;
    }
    let mut out: Vec<Expr> = Vec::with_capacity(parts.len());
    // Pending bytes of adjacent literals.
    let mut bytes: Vec<u8> = Vec::new();
    let mut push = |part| match part {
        Expr::Empty => {}
        Expr::Bytes(more) => bytes.extend_from_slice(&more),
        part => {
            out.extend((!bytes.is_empty()).then(|| Expr::bytes(&bytes)));
            bytes.clear();
            out.push(part);
        }
    };
    for part in parts.drain(..) {
        match part {
            Expr::Seq(inner) => inner.into_iter().for_each(&mut push),
            part => push(part),
        }
    }
    out.extend((!bytes.is_empty()).then(|| Expr::bytes(&bytes)));
    Some(Expr::seq(out))
}

/// An alternation, simplified; `None` if it already is.
fn alt(parts: &mut Vec<Expr>) -> Option<Expr> {
    let single = |part: &Expr| match part {
        Expr::Class(set) => Some(*set),
        Expr::Bytes(bytes) if bytes.len() == 1 => Some(ByteSet::from_bytes(bytes)),
        _ => None,
    };
    let nested = parts.iter().any(|p| matches!(p, Expr::Never | Expr::Alt(_)));
    let tidy = parts.len() > 1 && !nested && parts.iter().filter_map(single).nth(1).is_none();
    if tidy && !has_duplicates(parts) {
        return None;
    }
    let mut out: Vec<Expr> = Vec::with_capacity(parts.len());
    let mut joined: Option<(usize, ByteSet)> = None;
    let mut push = |part| match (single(&part), &mut joined) {
        (Some(set), Some((_, all))) => *all = all.union(&set),
        (Some(set), None) => {
            joined = Some((out.len(), set));
            out.push(part);
        }
        (None, _) if part == Expr::Never => {}
        (None, _) => out.push(part),
    };
    for part in parts.drain(..) {
        match part {
            Expr::Alt(inner) => inner.into_iter().for_each(&mut push),
            part => push(part),
        }
    }
    if let Some((at, set)) = joined {
        out[at] = class(&set).unwrap_or(Expr::Class(set));
    }
    let mut seen = EarlierAlternatives::default();
    let mut kept: Vec<Expr> = Vec::with_capacity(out.len());
    for part in out {
        if !seen.contains(&kept, &part) {
            kept.push(part);
        }
    }
    Some(Expr::alt(kept))
}

/// Whether two alternatives are known to be equal.
fn has_duplicates(parts: &[Expr]) -> bool {
    let mut seen = EarlierAlternatives::default();
    (0..parts.len()).any(|i| seen.contains(&parts[..i], &parts[i]))
}

/// The alternatives so far, indexed by a shallow hash.
#[derive(Default)]
struct EarlierAlternatives {
    by_hash: HashMap<u64, Vec<u32>>,
}

impl EarlierAlternatives {
    /// Whether `expr` is among the earlier alternatives. Of those with equal hashes, only the first
    /// few are compared, to bound the cost; a duplicate may then remain.
    fn contains(&mut self, before: &[Expr], expr: &Expr) -> bool {
        if before.len() < MAX_COMPARED {
            return before.contains(expr);
        }
        if self.by_hash.is_empty() {
            for (i, expr) in before.iter().enumerate() {
                self.by_hash.entry(shallow_hash(expr)).or_default().push(i as u32);
            }
        }
        let same_hash = self.by_hash.entry(shallow_hash(expr)).or_default();
        if same_hash.iter().take(MAX_COMPARED).any(|&i| before[i as usize] == *expr) {
            return true;
        }
        same_hash.push(before.len() as u32);
        false
    }
}

/// A hash of the first levels of an expression. Bounded work.
fn shallow_hash(expr: &Expr) -> u64 {
    fn look(expr: &Expr, depth: u32, hasher: &mut Hasher) {
        std::mem::discriminant(expr).hash(hasher);
        match expr {
            Expr::Bytes(bytes) => bytes.hash(hasher),
            Expr::Class(set) => set.hash(hasher),
            Expr::Special(special) => special.hash(hasher),
            Expr::Ref(rule) => rule.hash(hasher),
            Expr::Seq(parts) | Expr::Alt(parts) => {
                parts.len().hash(hasher);
                parts
                    .iter()
                    .take(if depth > 0 { MAX_COMPARED } else { 0 })
                    .for_each(|p| look(p, depth - 1, hasher));
            }
            Expr::Repeat { body, min, max } => {
                (min, max).hash(hasher);
                if depth > 0 {
                    look(body, depth - 1, hasher);
                }
            }
            Expr::Automaton(dfa) => (dfa.len(), dfa.edge_count()).hash(hasher),
            Expr::Graph(graph) => (graph.nodes, graph.edges.len()).hash(hasher),
            Expr::Members(members) => {
                (members.once.len(), members.often.len()).hash(hasher);
                let first = members.parts().take(if depth > 0 { MAX_COMPARED } else { 0 });
                first.for_each(|part| look(part, depth - 1, hasher));
            }
            Expr::Except(except) => except.hash(hasher),
            Expr::Counted(counted) => {
                (counted.min, counted.max, counted.graph.edges.len()).hash(hasher)
            }
            Expr::Empty | Expr::Never | Expr::Dispatch(_) | Expr::Deferred(_) => {}
        }
    }
    let mut hasher = hasher();
    look(expr, 2, &mut hasher);
    hasher.finish()
}

/// Changes the bounds in place and sets `changed`. Returns the replacement if the expression is no
/// longer a repeat.
fn repeat(
    body: &mut Expr,
    min: &mut u32,
    max: &mut Option<u32>,
    changed: &mut bool,
) -> Option<Expr> {
    if max.is_some_and(|max| max < *min) {
        return Some(Expr::Never);
    }
    if *max == Some(0) || *body == Expr::Empty || (*body == Expr::Never && *min == 0) {
        return Some(Expr::Empty);
    }
    if *body == Expr::Never {
        return Some(Expr::Never);
    }
    if let Expr::Alt(parts) = body
        && let Some(at) = parts.iter().position(|p| *p == Expr::Empty)
    {
        // A nullable repetition can stand for a missing one.
        parts.remove(at);
        *body = Expr::alt(std::mem::take(parts));
        *min = 0;
        *changed = true;
    }
    if let Expr::Repeat { body: inner, min: from, max: to } = body
        && let Some((low, high)) = nested_bounds((*from, *to), (*min, *max))
    {
        let inner = std::mem::replace(&mut **inner, Expr::Empty);
        *body = inner;
        (*min, *max) = (low, high);
        *changed = true;
    }
    if (*min, *max) == (1, Some(1)) {
        return Some(std::mem::replace(body, Expr::Empty));
    }
    None
}

/// The bounds of a nested repeat, if every count between them is possible.
fn nested_bounds(
    (a, b): (u32, Option<u32>),
    (c, d): (u32, Option<u32>),
) -> Option<(u32, Option<u32>)> {
    let bounded = |n: Option<u32>| n.filter(|&n| n <= MAX_BOUND);
    // `k` repetitions give `k * a ..= k * b`. From 0 to 1 there is no gap if a <= 1; from k to k +
    // 1 if (k + 1) * a <= k * b + 1, which holds for all later k once it holds for the first one.
    let several = d != Some(c);
    let first = c.max(1);
    let joins = |k: u32| {
        b.is_none_or(|b| u64::from(k + 1) * u64::from(a) <= u64::from(k) * u64::from(b) + 1)
    };
    let dense = !several || ((c > 0 || a <= 1) && (d == Some(1) || joins(first)));
    let low = bounded(c.checked_mul(a))?;
    let high = match (b, d) {
        (Some(b), Some(d)) => Some(bounded(b.checked_mul(d))?),
        _ => None,
    };
    dense.then_some((low, high))
}

/// Drops unproductive members. Returns the replacement if at most one member remains.
fn members(set: &mut Members, changed: &mut bool) -> Option<Expr> {
    if !set.derives(|part| *part != Expr::Never) {
        return Some(Expr::Never);
    }
    let before = (set.once.len(), set.often.len());
    set.once.retain(|member| member.body != Expr::Never);
    set.often.retain(|body| *body != Expr::Never);
    *changed |= before != (set.once.len(), set.often.len());
    match (&mut set.once[..], set.often.is_empty()) {
        _ if set.max == Some(0) => Some(Expr::Empty),
        ([], true) => Some(Expr::Empty),
        ([only], true) => {
            let body = std::mem::replace(&mut only.body, Expr::Empty);
            Some(Expr::repeat(body, u32::from(only.required || set.min > 0), Some(1)))
        }
        _ => None,
    }
}

/// Drops edges and ends that are not on a path from the start to an end.
fn trim(graph: &mut Graph, changed: &mut bool) -> Option<Expr> {
    let passes: Vec<bool> = graph.edges.iter().map(|(_, e, _)| *e != Expr::Never).collect();
    let reached = reachable_nodes(graph, &[graph.start], &passes, |&(from, _, to)| (from, to));
    let live = reachable_nodes(graph, &graph.ends, &passes, |&(from, _, to)| (to, from));
    if !live[graph.start as usize] {
        return Some(Expr::Never);
    }
    let edges = graph.edges.len();
    let mut passes = passes.into_iter();
    graph.edges.retain(|(from, _, to)| {
        passes.next() == Some(true) && reached[*from as usize] && live[*to as usize]
    });
    let mut ends = graph.ends.clone();
    ends.sort_unstable();
    ends.dedup();
    ends.retain(|&end| reached[end as usize]);
    *changed |= edges != graph.edges.len() || ends != graph.ends;
    graph.ends = ends;
    let kept: Vec<u32> =
        (0..graph.nodes).filter(|&n| reached[n as usize] && live[n as usize]).collect();
    if kept.len() < graph.nodes as usize {
        let number = |node: u32| kept.partition_point(|&k| k < node) as u32;
        graph
            .edges
            .iter_mut()
            .for_each(|(from, _, to)| (*from, *to) = (number(*from), number(*to)));
        graph.ends.iter_mut().for_each(|end| *end = number(*end));
        graph.start = number(graph.start);
        graph.nodes = kept.len() as u32;
        *changed = true;
    }
    match &mut graph.edges[..] {
        [] => Some(Expr::Empty),
        // A single edge from the start to the only end is its expression.
        [(from, expr, to)] if graph.ends == [*to] && *from == graph.start && from != to => {
            Some(std::mem::replace(expr, Expr::Empty))
        }
        _ => None,
    }
}
