//! Parsed patterns: their alternatives, the lengths of their matches, and their expressions.

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use crate::ir::Expr;

/// A top-level alternative without its anchors.
pub(super) struct HirBranch<'h> {
    pub(super) at_start: bool,
    pub(super) at_end: bool,
    pub(super) parts: Vec<&'h Hir>,
}

/// Splits a pattern at its top-level alternations and strips `^` and `$` from the ends of each.
/// `None` if another anchor remains.
pub(super) fn split_branches(hir: &Hir) -> Option<Vec<HirBranch<'_>>> {
    if hir.properties().look_set().is_empty() {
        return Some(vec![HirBranch { at_start: false, at_end: false, parts: vec![hir] }]);
    }
    match hir.kind() {
        HirKind::Alternation(alternatives) => {
            let mut out = Vec::new();
            for alternative in alternatives {
                out.extend(split_branches(alternative)?);
            }
            Some(out)
        }
        HirKind::Capture(capture) => split_branches(&capture.sub),
        HirKind::Look(Look::Start) => {
            Some(vec![HirBranch { at_start: true, at_end: false, parts: Vec::new() }])
        }
        HirKind::Look(Look::End) => {
            Some(vec![HirBranch { at_start: false, at_end: true, parts: Vec::new() }])
        }
        HirKind::Concat(parts) => {
            let is = |h: &Hir, look: Look| matches!(h.kind(), HirKind::Look(l) if *l == look);
            let begin = parts.iter().take_while(|p| is(p, Look::Start)).count();
            let end =
                parts.len() - parts[begin..].iter().rev().take_while(|p| is(p, Look::End)).count();
            let middle = &parts[begin..end];
            if let [inner] = middle
                && !inner.properties().look_set().is_empty()
            {
                let mut branches = split_branches(inner)?;
                for e in &mut branches {
                    e.at_start |= begin > 0;
                    e.at_end |= end < parts.len();
                }
                return Some(branches);
            }
            if middle.iter().any(|p| !p.properties().look_set().is_empty()) {
                return None;
            }
            Some(vec![HirBranch {
                at_start: begin > 0,
                at_end: end < parts.len(),
                parts: middle.iter().collect(),
            }])
        }
        _ => None,
    }
}

/// Number of nodes, literal bytes and ranges of code points, counted up to `cap`.
pub(super) fn node_count(hir: &Hir, cap: usize) -> usize {
    let mut total = 0;
    let mut stack = vec![hir];
    while let Some(hir) = stack.pop().filter(|_| total <= cap) {
        total += match hir.kind() {
            HirKind::Literal(literal) => literal.0.len(),
            HirKind::Class(Class::Unicode(class)) => class.ranges().len(),
            _ => 1,
        };
        stack.extend(hir.kind().subs());
    }
    total
}

/// Whether a repeat with an upper bound above 4 has a body of unbounded length.
pub(super) fn repeats_unbounded_texts(hir: &Hir) -> bool {
    let is_unbounded =
        |r: &Repetition| r.max.is_some_and(|max| max > 4) && length_bounds(&r.sub).1.is_none();
    matches!(hir.kind(), HirKind::Repetition(r) if is_unbounded(r))
        || hir.kind().subs().iter().any(repeats_unbounded_texts)
}

/// Least and greatest number of code points of a match.
pub(super) fn length_bounds(hir: &Hir) -> (u32, Option<u32>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, Some(0)),
        HirKind::Literal(literal) => {
            let n = std::str::from_utf8(&literal.0).map_or(literal.0.len(), |s| s.chars().count())
                as u32;
            (n, Some(n))
        }
        HirKind::Class(_) => (1, Some(1)),
        HirKind::Capture(capture) => length_bounds(&capture.sub),
        HirKind::Repetition(r) => {
            let (min, max) = length_bounds(&r.sub);
            let most = match (max, r.max) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (Some(a), Some(b)) => a.checked_mul(b),
                _ => None,
            };
            (min.saturating_mul(r.min), most)
        }
        HirKind::Concat(parts) => parts.iter().fold((0, Some(0)), |(min, max), part| {
            let (a, b) = length_bounds(part);
            (min.saturating_add(a), max.zip(b).and_then(|(x, y)| x.checked_add(y)))
        }),
        HirKind::Alternation(parts) => {
            let mut lengths = parts.iter().map(length_bounds);
            let first = lengths.next().unwrap_or((0, Some(0)));
            lengths
                .fold(first, |(min, max), (a, b)| (min.min(a), max.zip(b).map(|(x, y)| x.max(y))))
        }
    }
}

/// Lowers a pattern without anchors; `spell` spells classes.
pub(super) fn lower_hir(hir: &Hir, spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr) -> Expr {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Expr::Empty,
        HirKind::Literal(literal) => Expr::seq(literal_chars(&literal.0).map(|c| spell(&[(c, c)]))),
        HirKind::Class(class) => spell(&class_ranges(class)),
        HirKind::Capture(capture) => lower_hir(&capture.sub, spell),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            Expr::repeat(lower_hir(sub, spell), *min, *max)
        }
        HirKind::Concat(parts) => {
            Expr::seq(parts.iter().map(|p| lower_hir(p, spell)).collect::<Vec<_>>())
        }
        HirKind::Alternation(parts) => {
            Expr::alt(parts.iter().map(|p| lower_hir(p, spell)).collect::<Vec<_>>())
        }
    }
}

/// The code points of a literal.
pub(super) fn literal_chars(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    // The parser is in UTF-8 mode, so a literal is always UTF-8.
    std::str::from_utf8(bytes).unwrap_or_default().chars().map(u32::from)
}

/// The ranges of scalar values in a class.
pub(super) fn class_ranges(class: &Class) -> Vec<(u32, u32)> {
    match class {
        Class::Unicode(class) => {
            let mut out: Vec<(u32, u32)> = Vec::with_capacity(class.ranges().len() + 1);
            for range in class.ranges() {
                // A range of `char`s contains no surrogates, even if it extends across them.
                let (lo, hi) = (u32::from(range.start()), u32::from(range.end()));
                if lo < 0xD800 && hi > 0xDFFF {
                    out.extend([(lo, 0xD7FF), (0xE000, hi)]);
                } else {
                    out.push((lo, hi));
                }
            }
            out
        }
        Class::Bytes(class) => {
            class.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect()
        }
    }
}
