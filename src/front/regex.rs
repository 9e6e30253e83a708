//! Regular expressions to grammar expressions and automata. The syntax is ECMA-262's and what other
//! engines agree on beside it, the same for every door (docs/REGEX.md); [`RegexOptions`] say what
//! classes mean and whether a match is looked for.
//!
//! One parser: `regex-syntax`. [`translate`] rewrites what ECMA-262 means differently (`\d` is ASCII, `.` excludes four
//! line terminators, `$` is only the end of the text, `[^]`, `\cX`, `\uXXXX`, `\/`, a literal `{`, ...) and refuses what no
//! automaton can do (backreferences), and look-behind. Look-ahead and word boundaries become marks that `condition` checks.
//!
//! Two routes lead on:
//! * [`Pattern::branches`] keeps the structure (counted repeats stay counters) and spells each class of code points as the
//!   caller likes; it needs `^` and `$` at the edges.
//! * [`Pattern::search_dfa`] and [`Pattern::match_dfa`] give automata over Unicode scalar values, `^` and `$` anywhere.

mod condition;
mod known;
mod options;
mod translate;

use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::fsm::{Dfa, Nfa, TooLarge};
use crate::fuel;
use crate::ir::{Expr, Grammar, GrammarBuilder};
use crate::limits::Limits;

pub(crate) use known::{Known, known, pattern_stats};
pub use options::{Case, Classes, Dot, LookAround, RegexOptions, Scope};
pub use translate::translate;
use translate::{Mark, mark_number};

/// All Unicode scalar values: the alphabet of the code-point automata.
pub const SCALARS: [(u32, u32); 2] = [(0, 0xD7FF), (0xE000, 0x10FFFF)];

/// A pattern that is malformed or that no automaton can match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegexError {
    /// Not a regular expression.
    #[error("invalid pattern at offset {offset}: {reason}")]
    Syntax {
        /// Byte offset in the pattern.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
    /// Not regular, not supported, or the spelling of another engine.
    #[error("unsupported in a pattern at offset {offset}: {what}")]
    Unsupported {
        /// Byte offset in the pattern.
        offset: usize,
        /// What is not supported.
        what: &'static str,
    },
    /// Past a limit.
    #[error("the pattern is too large: {0}")]
    TooLarge(#[from] TooLarge),
}

impl RegexError {
    /// The error with the pattern and a mark under the place. `name` is what the pattern is called.
    pub fn diagnostics(&self, name: &str, source: &str) -> Diagnostics {
        let mut all = Diagnostics::new(name, source);
        let at = |offset: usize| offset..(offset + 1).min(source.len());
        all.push(match self {
            RegexError::Syntax { offset, reason } => {
                Diagnostic::error(at(*offset), "not a regular expression").label(reason.clone())
            }
            RegexError::Unsupported { offset, what } => {
                Diagnostic::error(at(*offset), "no automaton matches this, or it is not supported")
                    .label(*what)
            }
            RegexError::TooLarge(_) => Diagnostic::error(0..source.len(), self.to_string()),
        });
        all
    }
}

/// A parsed pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    hir: Hir,
    /// Look-ahead and word boundaries, by the number of their group.
    conditions: Vec<Condition>,
}

/// What must hold at a place.
#[derive(Clone, Debug)]
enum Condition {
    /// The rest begins with a match of a pattern, which begins with `^`; or does not.
    Ahead { pattern: Pattern, negated: bool },
    /// A word begins or ends; or does not.
    Boundary { negated: bool },
}

/// One top-level alternative of a pattern whose anchors all stand at its edges.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Begins with `^`.
    pub at_start: bool,
    /// Ends with `$`.
    pub at_end: bool,
    /// What stands between.
    pub body: Expr,
}

impl Pattern {
    /// Parses a pattern of JSON Schema, which is ECMA-262. Cost: linear, plus Unicode tables for `\p{...}`.
    pub fn parse(source: &str, limits: &Limits) -> Result<Pattern, RegexError> {
        Pattern::with_options(source, &RegexOptions::ECMA, limits)
    }

    /// Parses a pattern. The scope is the caller's matter. Bounded by [`Limits::source_bytes`], [`Limits::depth`] and, for ranges of
    /// code points and literals together, [`Limits::nodes`].
    pub fn with_options(
        source: &str,
        options: &RegexOptions,
        limits: &Limits,
    ) -> Result<Pattern, RegexError> {
        if source.len() > limits.source_bytes {
            return Err(TooLarge::States { limit: limits.source_bytes }.into());
        }
        if source.len() / BYTES_OF_A_NODE > limits.nodes {
            return Err(TooLarge::States { limit: limits.nodes }.into());
        }
        let translated = translate(source, options)?;
        if translated.tables > limits.nodes / RANGES_OF_A_TABLE {
            return Err(TooLarge::States { limit: limits.nodes }.into());
        }
        let nest = u32::try_from(limits.depth).unwrap_or(u32::MAX);
        let insensitive = options.case == Case::Insensitive;
        let mut parser = regex_syntax::ParserBuilder::new()
            .nest_limit(nest)
            .case_insensitive(insensitive)
            .build();
        let hir = parser.parse(&translated.text).map_err(|error| {
            let (offset, reason) = match &error {
                regex_syntax::Error::Parse(e) => (e.span().start.offset, e.kind().to_string()),
                regex_syntax::Error::Translate(e) => (e.span().start.offset, e.kind().to_string()),
                other => (0, other.to_string()),
            };
            RegexError::Syntax { offset: translated.source_offset(offset), reason }
        })?;
        if size(&hir, limits.nodes) > limits.nodes {
            return Err(TooLarge::States { limit: limits.nodes }.into());
        }
        let mut conditions = Vec::with_capacity(translated.marks.len());
        for mark in translated.marks {
            conditions.push(match mark {
                Mark::Boundary { negated } => Condition::Boundary { negated },
                Mark::Ahead { body, negated, options } => Condition::Ahead {
                    pattern: Pattern::ahead(source, body, &options, limits)?,
                    negated,
                },
            });
        }
        Ok(Pattern { hir, conditions })
    }

    /// The inside of a look-ahead.
    fn ahead(
        source: &str,
        body: Range<usize>,
        options: &RegexOptions,
        limits: &Limits,
    ) -> Result<Pattern, RegexError> {
        const BEGIN: &str = "^(?:";
        let unsupported = |what| Err(RegexError::Unsupported { offset: body.start, what });
        let Some(depth) = limits.depth.checked_sub(1) else {
            return unsupported("so deep a look-ahead");
        };
        let limits = Limits { depth, ..limits.clone() };
        let inside = &source[body.clone()];
        let place =
            |offset: usize| body.start + offset.saturating_sub(BEGIN.len()).min(inside.len());
        let pattern = Pattern::with_options(&format!("{BEGIN}{inside})"), options, &limits);
        let pattern = pattern.map_err(|error| match error {
            RegexError::Syntax { offset, reason } => {
                RegexError::Syntax { offset: place(offset), reason }
            }
            RegexError::Unsupported { offset, what } => {
                RegexError::Unsupported { offset: place(offset), what }
            }
            other => other,
        })?;
        // What is before the place is not known inside.
        if pattern
            .conditions
            .iter()
            .any(|condition| matches!(condition, Condition::Boundary { .. }))
        {
            return unsupported("a word boundary in a look-ahead");
        }
        if anchors(&pattern.hir) > 1 {
            return unsupported("`^` in a look-ahead");
        }
        Ok(pattern)
    }

    /// Fewest and most code points of a text that *contains* a match may have, as far as the pattern alone decides it.
    pub fn search_length(&self) -> (u32, Option<u32>) {
        let (min, max) = length(&self.hir);
        match edges(&self.hir) {
            Some(branches) if branches.iter().all(|b| b.at_start && b.at_end) => (min, max),
            _ => (min, None),
        }
    }

    /// The top-level alternatives, classes spelled by `spell` (ranges of code points, sorted and disjoint). `None` if an
    /// anchor stands elsewhere than at the edge of an alternative, or there is look-ahead or a word boundary.
    pub fn branches(&self, spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr) -> Option<Vec<Branch>> {
        let branches = edges(&self.hir).filter(|_| self.conditions.is_empty())?;
        Some(
            branches
                .into_iter()
                .map(|b| Branch {
                    at_start: b.at_start,
                    at_end: b.at_end,
                    body: Expr::seq(b.parts.into_iter().map(|h| lower_hir(h, spell))),
                })
                .collect(),
        )
    }

    /// Whether all alternatives of [`Pattern::branches`] are anchored at both ends; `None` where there are none.
    pub(crate) fn is_anchored(&self) -> Option<bool> {
        let branches = edges(&self.hir).filter(|_| self.conditions.is_empty())?;
        Some(branches.iter().all(|b| b.at_start && b.at_end))
    }

    /// Whether it counts texts without a bound on their length, such as words: the counter is one of two that a token may move.
    pub(crate) fn counts_texts(&self) -> bool {
        counts_texts(&self.hir)
    }

    /// The texts of `min..=max` code points that contain a match, where that needs no automaton: the pattern is anchored, without
    /// alternatives, and all of its parts but one have a fixed length; that one repeats single code points. `None` otherwise.
    pub fn of_length(
        &self,
        min: u32,
        max: Option<u32>,
        spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr,
    ) -> Option<Expr> {
        let branches = edges(&self.hir).filter(|_| self.conditions.is_empty())?;
        let [Edges { at_start: true, at_end: true, parts }] = &branches[..] else { return None };
        fn bare(mut part: &Hir) -> &Hir {
            while let HirKind::Capture(capture) = part.kind() {
                part = &capture.sub;
            }
            part
        }
        let parts: Vec<&Hir> = parts.iter().map(|part| bare(part)).collect();
        let is_fixed = |part: &Hir| {
            let (fewest, most) = length(part);
            most == Some(fewest)
        };
        let mut varying = parts.iter().filter(|part| !is_fixed(part));
        let (Some(one), None) = (varying.next(), varying.next()) else { return None };
        let HirKind::Repetition(repetition) = one.kind() else { return None };
        if length(&repetition.sub) != (1, Some(1)) {
            return None;
        }
        let fixed = parts
            .iter()
            .filter(|part| is_fixed(part))
            .fold(0u32, |n, part| n.saturating_add(length(part).0));
        let fewest = repetition.min.max(min.saturating_sub(fixed));
        let most = match (repetition.max, max) {
            (own, Some(max)) => Some(own.unwrap_or(u32::MAX).min(max.checked_sub(fixed)?)),
            (own, None) => own,
        };
        Some(Expr::seq(parts.iter().map(|part| match part.kind() {
            HirKind::Repetition(r) if !is_fixed(part) => {
                Expr::repeat(lower_hir(&r.sub, spell), fewest, most)
            }
            _ => lower_hir(part, spell),
        })))
    }

    /// Texts that contain a match (JSON Schema's `pattern`). Minimal.
    pub fn search_dfa(&self, limit: usize) -> Result<Dfa, TooLarge> {
        self.dfa(Scope::Search, limit)
    }

    /// Texts that match as a whole. Minimal.
    pub fn match_dfa(&self, limit: usize) -> Result<Dfa, TooLarge> {
        self.dfa(Scope::Match, limit)
    }

    fn dfa(&self, scope: Scope, limit: usize) -> Result<Dfa, TooLarge> {
        let anchored = !self.hir.properties().look_set().is_empty();
        let mut build =
            Build { nfa: Nfa::new(), layers: if anchored { 4 } else { 1 }, edges: 0, limit };
        let start = build.state()?;
        let end = build.state()?;
        let mut from = start;
        if scope == Scope::Search {
            // A new state, so that the loop does not re-enter `^`.
            build.any_loop(start);
            from = build.state()?;
            build.epsilon(start, from);
        }
        let to = build.hir(from, &self.hir)?;
        build.epsilon(to, end);
        if scope == Scope::Search {
            build.any_loop(end);
        }
        for layer in 0..build.layers {
            // Behind a match anything may follow, unless the text has ended. Marks may ask for more.
            if scope == Scope::Search && layer < FRESH_ENDED && self.conditions.is_empty() {
                build.nfa.set_universal(end + layer);
            } else {
                build.nfa.set_final(end + layer);
            }
        }
        build.nfa.set_start(start);
        let dfa = build.nfa.determinize(limit)?.minimize();
        if self.conditions.is_empty() {
            return Ok(dfa);
        }
        let conditions: Result<Vec<condition::Condition>, TooLarge> = self
            .conditions
            .iter()
            .map(|condition| match condition {
                Condition::Boundary { negated } => Ok(condition::Condition::Boundary(!negated)),
                Condition::Ahead { pattern, negated } => {
                    let begins = pattern.search_dfa(limit)?;
                    let rest = if *negated { begins.flipped(&SCALARS, limit)? } else { begins };
                    Ok(condition::Condition::Rest(rest))
                }
            })
            .collect();
        condition::checked(&dfa, &conditions?, limit)
    }
}

/// How many times `^` stands in a pattern.
fn anchors(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Look(Look::Start) => 1,
        HirKind::Capture(capture) => anchors(&capture.sub),
        HirKind::Repetition(r) => anchors(&r.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(anchors).sum(),
        _ => 0,
    }
}

/// A grammar whose sentences are the UTF-8 texts that match the pattern, or contain a match. Counted repeats stay counters, whatever
/// their bounds; only anchors elsewhere than at the edges need an automaton over code points. A [`Scope::Search`] for a pattern
/// with a counted repeat follows one count for each place where a match may have begun.
pub fn lower(source: &str, options: &RegexOptions, limits: &Limits) -> Result<Grammar, RegexError> {
    fuel::with_default_budget(
        || limits.compile_budget(source.len()),
        || {
            let grammar = lower_within(source, options, limits)?;
            fuel::check().map_err(TooLarge::from)?;
            Ok(grammar)
        },
    )
}

fn lower_within(
    source: &str,
    options: &RegexOptions,
    limits: &Limits,
) -> Result<Grammar, RegexError> {
    let pattern = Pattern::with_options(source, options, limits)?;
    let mut builder = GrammarBuilder::new();
    let body = match (pattern.branches(&mut spell_utf8), options.scope) {
        (Some(branches), Scope::Match) => Expr::alt(branches.into_iter().map(|b| b.body)),
        (Some(branches), Scope::Search) => {
            let any = || Expr::star(spell_utf8(&SCALARS));
            let around = |b: Branch| {
                let before = if b.at_start { Expr::Empty } else { any() };
                Expr::seq([before, b.body, if b.at_end { Expr::Empty } else { any() }])
            };
            Expr::alt(branches.into_iter().map(around))
        }
        (None, scope) => spell_dfa(&pattern.dfa(scope, limits.automaton_states)?, &mut spell_utf8),
    };
    let start = builder.rule("regex", body);
    builder
        .finish(start)
        .map_err(|error| RegexError::Syntax { offset: 0, reason: error.to_string() })
}

/// UTF-8 bytes of the code points.
pub fn spell_utf8(ranges: &[(u32, u32)]) -> Expr {
    let mut ascii = crate::fsm::ByteSet::EMPTY;
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

/// An automaton over code points as a graph over bytes.
pub fn spell_dfa(dfa: &Dfa, spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr) -> Expr {
    let mut graph = crate::ir::Graph { nodes: dfa.len() as u32, ..Default::default() };
    for state in 0..dfa.len() as u32 {
        for (to, ranges) in by_target(dfa, state) {
            graph.edge(state, spell(&ranges), to);
        }
        if dfa.is_final(state) {
            graph.ends.push(state);
        }
    }
    Expr::Graph(Box::new(graph))
}

/// A state's edges, those with one target together.
pub fn by_target(dfa: &Dfa, state: u32) -> Vec<(u32, Vec<(u32, u32)>)> {
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

struct Edges<'h> {
    at_start: bool,
    at_end: bool,
    parts: Vec<&'h Hir>,
}

/// Splits at top-level alternations and strips `^` and `$` from the edges; `None` if an anchor is left inside.
fn edges(hir: &Hir) -> Option<Vec<Edges<'_>>> {
    if hir.properties().look_set().is_empty() {
        return Some(vec![Edges { at_start: false, at_end: false, parts: vec![hir] }]);
    }
    match hir.kind() {
        HirKind::Alternation(alternatives) => {
            let mut out = Vec::new();
            for alternative in alternatives {
                out.extend(edges(alternative)?);
            }
            Some(out)
        }
        HirKind::Capture(capture) => edges(&capture.sub),
        HirKind::Look(Look::Start) => {
            Some(vec![Edges { at_start: true, at_end: false, parts: Vec::new() }])
        }
        HirKind::Look(Look::End) => {
            Some(vec![Edges { at_start: false, at_end: true, parts: Vec::new() }])
        }
        HirKind::Concat(parts) => {
            let is = |h: &Hir, look: Look| matches!(h.kind(), HirKind::Look(l) if *l == look);
            let begin = parts.iter().take_while(|p| is(p, Look::Start)).count();
            let end =
                parts.len() - parts[begin..].iter().rev().take_while(|p| is(p, Look::End)).count();
            let middle = &parts[begin..end];
            if let [only] = middle
                && !only.properties().look_set().is_empty()
            {
                let mut inner = edges(only)?;
                for e in &mut inner {
                    e.at_start |= begin > 0;
                    e.at_end |= end < parts.len();
                }
                return Some(inner);
            }
            if middle.iter().any(|p| !p.properties().look_set().is_empty()) {
                return None;
            }
            Some(vec![Edges {
                at_start: begin > 0,
                at_end: end < parts.len(),
                parts: middle.iter().collect(),
            }])
        }
        _ => None,
    }
}

/// Most bytes of a pattern for each node that it may have.
const BYTES_OF_A_NODE: usize = 4;

/// Ranges of the largest tables of Unicode, roughly.
const RANGES_OF_A_TABLE: usize = 512;

/// Nodes, literal bytes and ranges of code points, counted up to a cap.
fn size(hir: &Hir, cap: usize) -> usize {
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

/// Whether there is a bounded repetition, of some runs and more, of texts without a bound.
fn counts_texts(hir: &Hir) -> bool {
    let counts = matches!(hir.kind(), HirKind::Repetition(r) if r.max.is_some_and(|max| max > 4) && length(&r.sub).1.is_none());
    counts || hir.kind().subs().iter().any(counts_texts)
}

/// Fewest and most code points a match has.
fn length(hir: &Hir) -> (u32, Option<u32>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, Some(0)),
        HirKind::Literal(literal) => {
            let n = std::str::from_utf8(&literal.0).map_or(literal.0.len(), |s| s.chars().count())
                as u32;
            (n, Some(n))
        }
        HirKind::Class(_) => (1, Some(1)),
        HirKind::Capture(capture) => length(&capture.sub),
        HirKind::Repetition(r) => {
            let (min, max) = length(&r.sub);
            let most = match (max, r.max) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (Some(a), Some(b)) => a.checked_mul(b),
                _ => None,
            };
            (min.saturating_mul(r.min), most)
        }
        HirKind::Concat(parts) => parts.iter().fold((0, Some(0)), |(min, max), part| {
            let (a, b) = length(part);
            (min.saturating_add(a), max.zip(b).and_then(|(x, y)| x.checked_add(y)))
        }),
        HirKind::Alternation(parts) => {
            let mut lengths = parts.iter().map(length);
            let first = lengths.next().unwrap_or((0, Some(0)));
            lengths
                .fold(first, |(min, max), (a, b)| (min.min(a), max.zip(b).map(|(x, y)| x.max(y))))
        }
    }
}

fn lower_hir(hir: &Hir, spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr) -> Expr {
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

fn literal_chars(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    // The parser is in UTF-8 mode, so a literal is always UTF-8.
    std::str::from_utf8(bytes).unwrap_or_default().chars().map(u32::from)
}

fn class_ranges(class: &Class) -> Vec<(u32, u32)> {
    match class {
        Class::Unicode(class) => {
            let mut out: Vec<(u32, u32)> = Vec::with_capacity(class.ranges().len() + 1);
            for range in class.ranges() {
                // A range of characters has no surrogates in it, whatever its ends.
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

/// Symbols read so far: none, some. Whether `$` has been passed (nothing may be read any more) doubles that.
const FRESH: u32 = 0;
const READ: u32 = 1;
const FRESH_ENDED: u32 = 2;
const READ_ENDED: u32 = 3;

/// Builds the automaton in layers, so that anchors are exact anywhere: a state exists once for each combination of
/// "nothing read yet" and "the end has been asserted". Without anchors one layer does.
struct Build {
    nfa: Nfa,
    layers: u32,
    /// Ranges of code points so far. A class in a repeat is many of them in one step.
    edges: usize,
    limit: usize,
}

impl Build {
    fn state(&mut self) -> Result<u32, TooLarge> {
        if self.nfa.len() >= self.limit.saturating_mul(4)
            || self.edges >= self.limit.saturating_mul(40)
        {
            return Err(TooLarge::States { limit: self.limit });
        }
        fuel::spend(self.layers as usize)?;
        let first = self.nfa.state();
        for _ in 1..self.layers {
            self.nfa.state();
        }
        Ok(first)
    }

    fn epsilon(&mut self, from: u32, to: u32) {
        for layer in 0..self.layers {
            self.nfa.epsilon(from + layer, to + layer);
        }
    }

    fn symbols(&mut self, from: u32, ranges: &[(u32, u32)], to: u32) {
        self.edges += ranges.len();
        fuel::charge(ranges.len());
        for &(lo, hi) in ranges {
            if self.layers == 1 {
                self.nfa.edge(from, lo, hi, to);
            } else {
                self.nfa.edge(from + FRESH, lo, hi, to + READ);
                self.nfa.edge(from + READ, lo, hi, to + READ);
            }
        }
    }

    fn any_loop(&mut self, state: u32) {
        self.symbols(state, &SCALARS, state);
    }

    fn hir(&mut self, from: u32, hir: &Hir) -> Result<u32, TooLarge> {
        Ok(match hir.kind() {
            HirKind::Empty => from,
            HirKind::Literal(literal) => {
                let mut at = from;
                for c in literal_chars(&literal.0) {
                    let to = self.state()?;
                    self.symbols(at, &[(c, c)], to);
                    at = to;
                }
                at
            }
            HirKind::Class(class) => {
                let to = self.state()?;
                self.symbols(from, &class_ranges(class), to);
                to
            }
            HirKind::Look(look) => {
                let to = self.state()?;
                if *look == Look::Start {
                    self.nfa.epsilon(from + FRESH, to + FRESH);
                    self.nfa.epsilon(from + FRESH_ENDED, to + FRESH_ENDED);
                } else {
                    for (layer, ended) in [
                        (FRESH, FRESH_ENDED),
                        (FRESH_ENDED, FRESH_ENDED),
                        (READ, READ_ENDED),
                        (READ_ENDED, READ_ENDED),
                    ] {
                        self.nfa.epsilon(from + layer, to + ended);
                    }
                }
                to
            }
            HirKind::Capture(capture) => match capture.name.as_deref().and_then(mark_number) {
                Some(number) => {
                    let to = self.state()?;
                    let mark = condition::FIRST_MARK + number as u32;
                    for layer in 0..self.layers {
                        self.nfa.edge(from + layer, mark, mark, to + layer);
                    }
                    to
                }
                None => self.hir(from, &capture.sub)?,
            },
            HirKind::Concat(parts) => {
                let mut at = from;
                for part in parts {
                    at = self.hir(at, part)?;
                }
                at
            }
            HirKind::Alternation(parts) => {
                let end = self.state()?;
                for part in parts {
                    let begin = self.state()?;
                    self.epsilon(from, begin);
                    let to = self.hir(begin, part)?;
                    self.epsilon(to, end);
                }
                end
            }
            HirKind::Repetition(r) => self.repetition(from, r)?,
        })
    }

    fn repetition(&mut self, from: u32, r: &Repetition) -> Result<u32, TooLarge> {
        let mut at = from;
        for _ in 0..r.min {
            let before = self.nfa.len();
            at = self.hir(at, &r.sub)?;
            if self.nfa.len() == before {
                break; // the body adds nothing
            }
        }
        match r.max {
            None => {
                let hub = self.state()?;
                self.epsilon(at, hub);
                let begin = self.state()?;
                self.epsilon(hub, begin);
                let to = self.hir(begin, &r.sub)?;
                self.epsilon(to, hub);
                Ok(hub)
            }
            Some(max) => {
                let end = self.state()?;
                self.epsilon(at, end);
                for _ in r.min..max {
                    let begin = self.state()?;
                    self.epsilon(at, begin);
                    at = self.hir(begin, &r.sub)?;
                    self.epsilon(at, end);
                }
                Ok(end)
            }
        }
    }
}

#[cfg(test)]
mod tests;
