//! Bounds on the length of a text that its pattern states: `^[a-z]{1,5000}$`, or `(?=.{1,253}$)`
//! after `^`.
//!
//! The automaton of such a pattern has a state for each length, and look-ahead multiplies them with
//! the states of the rest. The pattern without the bounds is small, and the length is counted.

use std::borrow::Borrow;

use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

use super::hir::{HirBranch, length_bounds, lower_hir, split_branches};
use super::{Assertion, Pattern};
use crate::hash::HashSet;
use crate::ir::Expr;

/// Bounds on a number of code points.
pub(crate) type Lengths = (u32, Option<u32>);

/// A pattern, and bounds on the number of code points of the texts that contain a match of it.
#[derive(Clone, Debug)]
pub(crate) struct LengthForm {
    pub(crate) pattern: Pattern,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

/// A form without assertions: the pattern, and the bounds.
type WholeForm = (Hir, u32, Option<u32>);

/// Shorter repeats are not counted.
const MIN_COUNTED: u32 = 32;
/// Most forms of one pattern.
const MAX_FORMS: usize = 8;

impl Pattern {
    /// The texts of `min..=max` code points that contain a match, as an expression. `None` where
    /// that needs an automaton. It needs none if the pattern is anchored at both ends, has no
    /// alternatives, and only one part of variable length, which repeats single code points.
    pub fn expr_of_length(
        &self,
        min: u32,
        max: Option<u32>,
        spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr,
    ) -> Option<Expr> {
        let branches = split_branches(&self.hir).filter(|_| self.assertions.is_empty())?;
        let [HirBranch { at_start: true, at_end: true, parts }] = &branches[..] else {
            return None;
        };
        let (at, repeat, fixed) = only_repeat(parts, |repeat| repeat.max != Some(repeat.min))?;
        let fewest = repeat.min.max(min.saturating_sub(fixed));
        let most = match max {
            Some(max) => Some(repeat.max.unwrap_or(u32::MAX).min(max.checked_sub(fixed)?)),
            None => repeat.max,
        };
        Some(Expr::seq(parts.iter().enumerate().map(|(i, part)| match i == at {
            true => Expr::repeat(lower_hir(&repeat.sub, spell), fewest, most),
            false => lower_hir(part, spell),
        })))
    }

    /// The texts that contain a match, as a union of forms. `None` if the pattern bounds no length,
    /// or only in ways that need an automaton.
    pub(crate) fn length_forms(&self) -> Option<Vec<LengthForm>> {
        if self.assertions.is_empty() {
            let form = |(hir, min, max)| LengthForm { pattern: unasserted(hir), min, max };
            return Some(whole_forms(&self.hir, true)?.into_iter().map(form).collect());
        }
        // Look-ahead directly after `^` constrains the whole text.
        let HirKind::Concat(parts) = self.hir.kind() else { return None };
        let (HirKind::Look(Look::Start), rest) = (parts.first()?.kind(), &parts[1..]) else {
            return None;
        };
        let mut forms = vec![LengthForm { pattern: self.clone(), min: 0, max: None }];
        let mut is_counted = false;
        // Equal look-ahead has one number. Where it also stands later, it constrains less.
        let ahead: Vec<usize> = rest.iter().map_while(|part| self.part_mark(part)).collect();
        let mut seen = HashSet::default();
        rest[ahead.len()..].iter().for_each(|part| self.collect_marks(part, &mut seen));
        for number in ahead {
            if !seen.insert(number) {
                continue;
            }
            let Some(Assertion { pattern, is_lookbehind: false, negated: false }) =
                self.assertions.get(number)
            else {
                continue;
            };
            let ahead = whole_forms(&pattern.hir, false);
            let Some(ahead) = ahead.filter(|_| pattern.assertions.is_empty()) else { continue };
            is_counted = true;
            let conjoin = |form: &LengthForm| {
                let with = |(hir, min, max): &WholeForm| {
                    let mut form = form.clone();
                    form.pattern.assertions[number].pattern = unasserted(hir.clone());
                    form.min = form.min.max(*min);
                    form.max = form.max.into_iter().chain(*max).min();
                    form
                };
                ahead.iter().map(with).collect::<Vec<_>>()
            };
            forms = forms.iter().flat_map(conjoin).collect();
        }
        (is_counted && forms.len() <= MAX_FORMS).then_some(forms)
    }

    /// The number of the assertion that a part is.
    fn part_mark(&self, part: &Hir) -> Option<usize> {
        match part.kind() {
            HirKind::Capture(capture) => self.mark(capture).map(|number| number as usize),
            _ => None,
        }
    }

    /// Collects the numbers of the assertions in a part.
    fn collect_marks(&self, part: &Hir, out: &mut HashSet<usize>) {
        out.extend(self.part_mark(part));
        part.kind().subs().iter().for_each(|sub| self.collect_marks(sub, out));
    }
}

/// A pattern without assertions.
fn unasserted(hir: Hir) -> Pattern {
    Pattern { hir, assertions: Vec::new(), marks: Vec::new() }
}

/// As [`Pattern::length_forms`], for a pattern without assertions that is anchored at both ends.
/// The body of a look-ahead has no `^` (`starts`): it begins where it stands.
fn whole_forms(hir: &Hir, starts: bool) -> Option<Vec<WholeForm>> {
    let branches = split_branches(hir)?;
    let mut forms = Vec::new();
    let mut is_counted = false;
    for branch in &branches {
        if branch.at_start != starts || !branch.at_end {
            return None;
        }
        let mut expanded: Vec<Vec<Hir>> = vec![Vec::new()];
        for part in &branch.parts {
            // A short optional part is there or not.
            let optional = match part.kind() {
                HirKind::Repetition(Repetition { min: 0, max: Some(1), sub, .. }) => {
                    Some(sub).filter(|sub| is_fixed(sub))
                }
                _ => None,
            };
            let without = if optional.is_some() { expanded.clone() } else { Vec::new() };
            let part = optional.map_or_else(|| (*part).clone(), |sub| (**sub).clone());
            expanded.iter_mut().for_each(|parts| parts.push(part.clone()));
            expanded.extend(without);
            if expanded.len() > MAX_FORMS {
                return None;
            }
        }
        let counted: Option<Vec<WholeForm>> =
            expanded.into_iter().map(|parts| counted_form(&parts, starts)).collect();
        is_counted |= counted.is_some();
        let whole = || {
            let parts = branch.parts.iter().map(|part| (*part).clone()).collect();
            vec![(anchored(parts, starts), 0, None)]
        };
        forms.extend(counted.unwrap_or_else(whole));
    }
    (is_counted && forms.len() <= MAX_FORMS).then_some(forms)
}

/// The form of a sequence that has one long repeat of single code points, and whose other parts
/// have fixed lengths.
fn counted_form(parts: &[Hir], starts: bool) -> Option<WholeForm> {
    let is_long = |repeat: &Repetition| repeat.max.is_some_and(|max| max >= MIN_COUNTED);
    let (at, repeat, fixed) = only_repeat(parts, is_long)?;
    let mut relaxed = parts.to_vec();
    relaxed[at] = Hir::repetition(Repetition { min: 0, max: None, ..repeat.clone() });
    let max = repeat.max.map(|max| max.saturating_add(fixed));
    Some((anchored(relaxed, starts), repeat.min.saturating_add(fixed), max))
}

/// The only part that is a repeat of single code points which is `counted`, with its index and the
/// length of all others. `None` if the length of another part is not fixed.
fn only_repeat<H: Borrow<Hir>>(
    parts: &[H],
    counted: impl Fn(&Repetition) -> bool,
) -> Option<(usize, &Repetition, u32)> {
    let mut repeats = parts.iter().enumerate().filter_map(|(i, part)| {
        Some((i, single_repeat(part.borrow()).filter(|repeat| counted(repeat))?))
    });
    let (Some((at, repeat)), None) = (repeats.next(), repeats.next()) else { return None };
    let mut fixed = 0u32;
    for (_, part) in parts.iter().enumerate().filter(|&(i, _)| i != at) {
        let (fewest, most) = length_bounds(part.borrow());
        fixed = fixed.saturating_add(most.filter(|&most| most == fewest)?);
    }
    Some((at, repeat, fixed))
}

/// The part as a repeat of single code points.
fn single_repeat(mut part: &Hir) -> Option<&Repetition> {
    while let HirKind::Capture(capture) = part.kind() {
        part = &capture.sub;
    }
    let HirKind::Repetition(repeat) = part.kind() else { return None };
    (length_bounds(&repeat.sub) == (1, Some(1))).then_some(repeat)
}

/// Whether all matches have the same number of code points.
fn is_fixed(hir: &Hir) -> bool {
    let (fewest, most) = length_bounds(hir);
    most == Some(fewest)
}

/// The parts between `^`, if `starts` is set, and `$`.
fn anchored(parts: Vec<Hir>, starts: bool) -> Hir {
    let start = starts.then(|| Hir::look(Look::Start));
    Hir::concat(start.into_iter().chain(parts).chain([Hir::look(Look::End)]).collect())
}
