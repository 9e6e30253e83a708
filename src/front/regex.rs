//! Regular expressions: parses patterns and lowers them to grammar expressions or automata.
//!
//! The syntax is that of ECMA-262, with the additions on which other engines agree. It is the same
//! for every front end (docs/REGEX.md). [`RegexOptions`] select the meaning of classes and whether
//! a match is searched for.
//!
//! `regex-syntax` parses all patterns. `translate` first rewrites the syntax to which ECMA-262
//! gives another meaning: `\d` is ASCII, `.` excludes four line terminators, `$` is only the end of
//! the text, `[^]`, `\cX`, `\uXXXX`, `\/`, a literal `{`, and others. It rejects patterns that are
//! not regular (backreferences). Look-around and word boundaries become assertion marks, which
//! `assertions` resolves.
//!
//! A pattern is lowered in one of two ways:
//! * [`Pattern::branches`] keeps the structure: counted repeats stay counters, and the caller
//!   spells each class of code points. It requires `^` and `$` at the ends of alternatives.
//! * [`Pattern::search_dfa`] and [`Pattern::match_dfa`] build automata over Unicode scalar values,
//!   with `^` and `$` at any position.

mod assertions;
mod cache;
mod lengths;
mod options;
mod translate;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::fsm::{Dfa, Nfa, TooLarge};
use crate::fuel;
use crate::ir::{Expr, Grammar, GrammarBuilder};
use crate::limits::Limits;

use assertions::{MarkCondition, MarkedDfa};
pub(crate) use cache::{CachedPattern, CountedDfa, cached_pattern, pattern_stats};
pub(crate) use lengths::Lengths;
pub use options::{Case, Classes, Dot, LookAround, RegexOptions, Scope};
use translate::{AssertionMark, Side, mark_number, translate};

/// All Unicode scalar values: the alphabet of the code-point automata.
pub const SCALARS: [(u32, u32); 2] = [(0, 0xD7FF), (0xE000, 0x10FFFF)];

/// Error of a pattern that is malformed, not regular or not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegexError {
    /// The pattern is malformed.
    #[error("invalid pattern at offset {offset}: {reason}")]
    Syntax {
        /// Byte offset in the pattern.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
    /// The pattern is not regular, not supported, or uses the syntax of another engine.
    #[error("unsupported in a pattern at offset {offset}: {what}")]
    Unsupported {
        /// Byte offset in the pattern.
        offset: usize,
        /// What is not supported.
        what: &'static str,
    },
    /// The pattern exceeds a limit.
    #[error("the pattern is too large: {0}")]
    TooLarge(#[from] TooLarge),
}

impl RegexError {
    /// The error as a diagnostic that shows its position in the pattern. `name` is the name of the
    /// pattern.
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
    /// Look-around, by the number of its mark.
    assertions: Vec<Assertion>,
}

/// A zero-width assertion: the text after a position begins with a match of the pattern, or the
/// text before it ends with one.
#[derive(Clone, Debug)]
struct Assertion {
    pattern: Pattern,
    is_lookbehind: bool,
    negated: bool,
}

/// A top-level alternative of a pattern that has anchors only at its ends.
#[derive(Clone, Debug)]
pub struct AnchoredBranch {
    /// Whether it begins with `^`.
    pub at_start: bool,
    /// Whether it ends with `$`.
    pub at_end: bool,
    /// The expression between the anchors.
    pub body: Expr,
}

impl Pattern {
    /// Parses a pattern of JSON Schema with ECMA-262 options. Cost: linear, plus the Unicode tables
    /// of `\p{...}`.
    ///
    /// ```
    /// use louver::Limits;
    /// use louver::front::regex::Pattern;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pattern = Pattern::parse("^ab|c$", &Limits::default())?;
    /// // Like `pattern` in JSON Schema, a search: the automaton reads texts with a match inside.
    /// let dfa = pattern.search_dfa(1_000)?;
    /// let accepts = |text: &str| dfa.accepts(text.chars().map(u32::from));
    /// assert!(accepts("abx") && accepts("xc") && !accepts("xab"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn parse(source: &str, limits: &Limits) -> Result<Pattern, RegexError> {
        Pattern::with_options(source, &RegexOptions::ECMA, limits)
    }

    /// Parses a pattern; ignores the scope, which callers apply. Limited by
    /// [`Limits::source_bytes`], [`Limits::depth`] and, for ranges of code points and literals
    /// together, [`Limits::nodes`].
    pub fn with_options(
        source: &str,
        options: &RegexOptions,
        limits: &Limits,
    ) -> Result<Pattern, RegexError> {
        Pattern::parse_side(source, options, Side::Whole, limits)
    }

    /// As [`Pattern::with_options`], for a pattern that sees a side of the text.
    fn parse_side(
        source: &str,
        options: &RegexOptions,
        side: Side,
        limits: &Limits,
    ) -> Result<Pattern, RegexError> {
        if source.len() > limits.source_bytes {
            return Err(TooLarge::States { limit: limits.source_bytes }.into());
        }
        if source.len() / BYTES_PER_NODE > limits.nodes {
            return Err(TooLarge::States { limit: limits.nodes }.into());
        }
        let translated = translate(source, options, side)?;
        if translated.tables > limits.nodes / RANGES_PER_TABLE {
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
        if node_count(&hir, limits.nodes) > limits.nodes {
            return Err(TooLarge::States { limit: limits.nodes }.into());
        }
        let assertions: Result<Vec<Assertion>, RegexError> =
            translated.marks.iter().map(|mark| Pattern::parse_assertion(mark, limits)).collect();
        Ok(Pattern { hir, assertions: assertions? })
    }

    /// Parses the body of an assertion.
    fn parse_assertion(mark: &AssertionMark, limits: &Limits) -> Result<Assertion, RegexError> {
        let Some(depth) = limits.depth.checked_sub(1) else {
            let what = "so deep a look-ahead or look-behind";
            return Err(RegexError::Unsupported { offset: mark.offset, what });
        };
        let limits = Limits { depth, ..limits.clone() };
        let side = if mark.is_lookbehind { Side::Before } else { Side::After };
        let pattern = Pattern::parse_side(&mark.body, &mark.options, side, &limits);
        let pattern = pattern.map_err(|error| match error {
            RegexError::Syntax { offset, reason } => {
                RegexError::Syntax { offset: mark.offset + offset, reason }
            }
            RegexError::Unsupported { offset, what } => {
                RegexError::Unsupported { offset: mark.offset + offset, what }
            }
            other => other,
        })?;
        Ok(Assertion { pattern, is_lookbehind: mark.is_lookbehind, negated: mark.negated })
    }

    /// Least and greatest number of code points of a text that *contains* a match, as far as the
    /// pattern alone decides.
    pub fn search_length(&self) -> (u32, Option<u32>) {
        let (min, max) = length_bounds(&self.hir);
        match split_branches(&self.hir) {
            Some(branches) if branches.iter().all(|b| b.at_start && b.at_end) => (min, max),
            _ => (min, None),
        }
    }

    /// The top-level alternatives. `spell` spells each class, given as sorted, disjoint ranges of
    /// code points. `None` if the pattern has an anchor inside an alternative, look-around or a
    /// word boundary.
    pub fn branches(
        &self,
        spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr,
    ) -> Option<Vec<AnchoredBranch>> {
        let branches = split_branches(&self.hir).filter(|_| self.assertions.is_empty())?;
        Some(
            branches
                .into_iter()
                .map(|b| AnchoredBranch {
                    at_start: b.at_start,
                    at_end: b.at_end,
                    body: Expr::seq(b.parts.into_iter().map(|h| lower_hir(h, spell))),
                })
                .collect(),
        )
    }

    /// Whether all alternatives of [`Pattern::branches`] are anchored at both ends; `None` where
    /// that returns `None`.
    pub(crate) fn is_anchored(&self) -> Option<bool> {
        let branches = split_branches(&self.hir).filter(|_| self.assertions.is_empty())?;
        Some(branches.iter().all(|b| b.at_start && b.at_end))
    }

    /// Whether a counted repeat has a body of unbounded length, such as a word. One token can then
    /// advance both the counter and the body.
    pub(crate) fn repeats_unbounded_texts(&self) -> bool {
        repeats_unbounded_texts(&self.hir)
    }

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
        fn without_captures(mut part: &Hir) -> &Hir {
            while let HirKind::Capture(capture) = part.kind() {
                part = &capture.sub;
            }
            part
        }
        let parts: Vec<&Hir> = parts.iter().map(|part| without_captures(part)).collect();
        let is_fixed = |part: &Hir| {
            let (fewest, most) = length_bounds(part);
            most == Some(fewest)
        };
        let mut varying = parts.iter().filter(|part| !is_fixed(part));
        let (Some(repeat), None) = (varying.next(), varying.next()) else { return None };
        let HirKind::Repetition(repetition) = repeat.kind() else { return None };
        if length_bounds(&repetition.sub) != (1, Some(1)) {
            return None;
        }
        let fixed_length = parts
            .iter()
            .filter(|part| is_fixed(part))
            .fold(0u32, |n, part| n.saturating_add(length_bounds(part).0));
        let fewest = repetition.min.max(min.saturating_sub(fixed_length));
        let most = match (repetition.max, max) {
            (repeat_max, Some(max)) => {
                Some(repeat_max.unwrap_or(u32::MAX).min(max.checked_sub(fixed_length)?))
            }
            (repeat_max, None) => repeat_max,
        };
        Some(Expr::seq(parts.iter().map(|part| match part.kind() {
            HirKind::Repetition(r) if !is_fixed(part) => {
                Expr::repeat(lower_hir(&r.sub, spell), fewest, most)
            }
            _ => lower_hir(part, spell),
        })))
    }

    /// The minimal automaton of the texts that contain a match (JSON Schema's `pattern`).
    pub fn search_dfa(&self, limit: usize) -> Result<Dfa, TooLarge> {
        self.dfa(Scope::Search, limit)
    }

    /// The minimal automaton of the texts that match as a whole.
    pub fn match_dfa(&self, limit: usize) -> Result<Dfa, TooLarge> {
        self.dfa(Scope::Match, limit)
    }

    /// The automaton for a scope, with all assertions resolved.
    fn dfa(&self, scope: Scope, limit: usize) -> Result<Dfa, TooLarge> {
        let any = scope == Scope::Search;
        if self.assertions.is_empty() {
            return self.marked_dfa((any, any), limit);
        }
        let mut automata = Vec::new();
        self.add_automata((any, any), false, limit, &mut automata)?;
        assertions::resolve(&automata, limit)
    }

    /// Adds the automata of all assertions, and then the pattern's, unless they are there. Returns
    /// the number of the last.
    fn add_automata(
        &self,
        open: (bool, bool),
        is_lookbehind: bool,
        limit: usize,
        automata: &mut Vec<MarkedDfa>,
    ) -> Result<u32, TooLarge> {
        let mut conditions = Vec::with_capacity(self.assertions.len());
        for Assertion { pattern, is_lookbehind, negated } in &self.assertions {
            let body = pattern.add_automata(
                (*is_lookbehind, !is_lookbehind),
                *is_lookbehind,
                limit,
                automata,
            )?;
            conditions.push(MarkCondition { body, negated: *negated });
        }
        let marked = MarkedDfa { dfa: self.marked_dfa(open, limit)?, conditions, is_lookbehind };
        let is_assertion = open.0 != open.1;
        let equal = automata.iter().position(|other| is_assertion && *other == marked);
        Ok(equal.unwrap_or_else(|| {
            automata.push(marked);
            automata.len() - 1
        }) as u32)
    }

    /// The automaton with marks. `open` says whether any text may come before and after a match.
    fn marked_dfa(&self, open: (bool, bool), limit: usize) -> Result<Dfa, TooLarge> {
        let anchored = !self.hir.properties().look_set().is_empty();
        let mut builder = PatternNfaBuilder {
            nfa: Nfa::new(),
            layers: if anchored { 4 } else { 1 },
            edges: 0,
            limit,
        };
        let start = builder.state()?;
        let end = builder.state()?;
        let mut from = start;
        if open.0 {
            // A new state, so that the loop does not re-enter `^`.
            builder.any_loop(start);
            from = builder.state()?;
            builder.epsilon(start, from);
        }
        let to = builder.hir(from, &self.hir)?;
        builder.epsilon(to, end);
        if open.1 {
            builder.any_loop(end);
        }
        for layer in 0..builder.layers {
            // After a match any text may follow, unless `$` was passed or an assertion constrains
            // it.
            if open.1 && layer < FRESH_ENDED && self.assertions.is_empty() {
                builder.nfa.set_universal(end + layer);
            } else {
                builder.nfa.set_final(end + layer);
            }
        }
        builder.nfa.set_start(start);
        Ok(builder.nfa.determinize(limit)?.minimize())
    }
}

/// Lowers a pattern to a grammar of the UTF-8 texts that match it, or contain a match.
///
/// Counted repeats stay counters, whatever their bounds. Anchors inside alternatives, look-around
/// and word boundaries need an automaton over code points. With [`Scope::Search`], a parse of a
/// pattern with a counted repeat keeps one count per position at which a match may have begun.
///
/// ```
/// use louver::front::regex::{self, RegexError};
/// use louver::{Limits, RegexOptions};
///
/// let lower = |pattern| regex::lower(pattern, &RegexOptions::default(), &Limits::default());
/// assert!(lower("[a-z]{1,9}").is_ok());
/// assert!(matches!(lower("[a-z"), Err(RegexError::Syntax { .. })));
/// ```
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

/// As [`lower`], within the current fuel budget.
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
            let searched = |b: AnchoredBranch| {
                let before = if b.at_start { Expr::Empty } else { any() };
                Expr::seq([before, b.body, if b.at_end { Expr::Empty } else { any() }])
            };
            Expr::alt(branches.into_iter().map(searched))
        }
        (None, scope) => spell_dfa(&pattern.dfa(scope, limits.automaton_states)?, &mut spell_utf8),
    };
    let start = builder.rule("regex", body);
    builder
        .finish(start)
        .map_err(|error| RegexError::Syntax { offset: 0, reason: error.to_string() })
}

/// The expression of one code point of the ranges, as UTF-8 bytes.
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

/// Lowers an automaton over code points to a graph over bytes. `spell` spells the ranges of an
/// edge.
pub fn spell_dfa(dfa: &Dfa, spell: &mut dyn FnMut(&[(u32, u32)]) -> Expr) -> Expr {
    let mut graph = crate::ir::Graph { nodes: dfa.len() as u32, ..Default::default() };
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

/// A top-level alternative without its anchors.
struct HirBranch<'h> {
    at_start: bool,
    at_end: bool,
    parts: Vec<&'h Hir>,
}

/// Splits a pattern at its top-level alternations and strips `^` and `$` from the ends of each.
/// `None` if another anchor remains.
fn split_branches(hir: &Hir) -> Option<Vec<HirBranch<'_>>> {
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

/// Maximum number of pattern bytes per node that the limit allows.
const BYTES_PER_NODE: usize = 4;

/// Approximate number of ranges in the largest Unicode tables.
const RANGES_PER_TABLE: usize = 512;

/// Number of nodes, literal bytes and ranges of code points, counted up to `cap`.
fn node_count(hir: &Hir, cap: usize) -> usize {
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
fn repeats_unbounded_texts(hir: &Hir) -> bool {
    let is_unbounded =
        |r: &Repetition| r.max.is_some_and(|max| max > 4) && length_bounds(&r.sub).1.is_none();
    matches!(hir.kind(), HirKind::Repetition(r) if is_unbounded(r))
        || hir.kind().subs().iter().any(repeats_unbounded_texts)
}

/// Least and greatest number of code points of a match.
fn length_bounds(hir: &Hir) -> (u32, Option<u32>) {
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

/// The code points of a literal.
fn literal_chars(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    // The parser is in UTF-8 mode, so a literal is always UTF-8.
    std::str::from_utf8(bytes).unwrap_or_default().chars().map(u32::from)
}

/// The ranges of scalar values in a class.
fn class_ranges(class: &Class) -> Vec<(u32, u32)> {
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

/// Layers of the automaton. In this one, nothing has been read. After `$`, nothing more may be
/// read.
const FRESH: u32 = 0;
/// Something has been read.
const READ: u32 = 1;
/// Nothing has been read, and `$` was passed.
const FRESH_ENDED: u32 = 2;
/// Something has been read, and `$` was passed.
const READ_ENDED: u32 = 3;

/// Builds a layered NFA, in which anchors are exact at any position. Each state exists once for
/// each combination of "nothing read yet" and "the end was asserted". Patterns without anchors need
/// one layer.
struct PatternNfaBuilder {
    nfa: Nfa,
    /// Number of layers: one or four.
    layers: u32,
    /// Number of ranges of code points on all edges so far.
    edges: usize,
    /// Limit on the states of the automaton.
    limit: usize,
}

impl PatternNfaBuilder {
    /// Adds a state in all layers.
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

    /// Adds an epsilon edge in all layers.
    fn epsilon(&mut self, from: u32, to: u32) {
        for layer in 0..self.layers {
            self.nfa.epsilon(from + layer, to + layer);
        }
    }

    /// Adds edges that read one code point of the ranges.
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

    /// Adds a loop that reads any code point.
    fn any_loop(&mut self, state: u32) {
        self.symbols(state, &SCALARS, state);
    }

    /// Adds the states of a subpattern after `from`; returns its last state.
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
                    let mark = assertions::FIRST_MARK + number as u32;
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

    /// As [`PatternNfaBuilder::hir`], for a repeat.
    fn repetition(&mut self, from: u32, r: &Repetition) -> Result<u32, TooLarge> {
        let mut at = from;
        for _ in 0..r.min {
            let before = self.nfa.len();
            at = self.hir(at, &r.sub)?;
            if self.nfa.len() == before {
                break; // The body is empty.
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
