//! Regular expressions: parses patterns and lowers them to grammar expressions or automata.
//!
//! The syntax is that of ECMA-262, with the additions on which other engines agree
//! (docs/REGEX.md); Lark files have that of Rust's `regex` instead. [`RegexOptions`] select the
//! meaning of classes and whether a match is searched for.
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
mod hir;
mod lengths;
mod nfa;
mod options;
mod spell;
mod translate;

use regex_syntax::hir::{Capture, Hir};

use crate::front::diagnostic::{Diagnostic, Diagnostics};
use crate::fsm::{Dfa, TooLarge};
use crate::fuel;
use crate::ir::{Expr, Grammar, GrammarBuilder};
use crate::limits::Limits;

use assertions::{MarkCondition, MarkedDfa};
pub(crate) use cache::{CachedPattern, CountedDfa, cached_pattern, pattern_stats};
use hir::{length_bounds, lower_hir, node_count, split_branches};
pub(crate) use lengths::Lengths;
pub use options::{Ambiguous, Case, Classes, Dot, LookAround, RegexOptions, Scope};
pub(crate) use spell::{edges_by_target, spell_not_ascii};
pub use spell::{spell_dfa, spell_utf8};
pub(in crate::front) use translate::is_javascript_literal;
use translate::{AssertionMark, Side, translate};

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

/// Maximum number of pattern bytes per node that the limit allows.
const BYTES_PER_NODE: usize = 4;
/// Approximate number of ranges in the largest Unicode tables.
const RANGES_PER_TABLE: usize = 512;

/// A parsed pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    hir: Hir,
    /// Different assertions.
    assertions: Vec<Assertion>,
    /// By capturing group, each of which is an assertion: its number.
    marks: Vec<u32>,
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
        Pattern::parse_side(source, options, options.dot, Side::Whole, limits)
    }

    /// As [`Pattern::with_options`], for a pattern that sees a side of the text. After `(?-s)`, `.`
    /// does not match `default_dot`.
    fn parse_side(
        source: &str,
        options: &RegexOptions,
        default_dot: Dot,
        side: Side,
        limits: &Limits,
    ) -> Result<Pattern, RegexError> {
        if source.len() > limits.source_bytes {
            return Err(TooLarge::States { limit: limits.source_bytes }.into());
        }
        if source.len() / BYTES_PER_NODE > limits.nodes {
            return Err(TooLarge::States { limit: limits.nodes }.into());
        }
        let translated = translate(source, options, default_dot, side)?;
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
        let marks = translated.assertions.iter();
        let assertions: Result<Vec<Assertion>, RegexError> =
            marks.map(|(mark, &at)| Pattern::parse_assertion(mark, at, limits)).collect();
        Ok(Pattern { hir, assertions: assertions?, marks: translated.marks })
    }

    /// The number of the assertion that a capturing group stands for.
    fn mark(&self, group: &Capture) -> Option<u32> {
        self.marks.get(group.index.checked_sub(1)? as usize).copied()
    }

    /// Parses the body of an assertion, which begins at an offset of the source.
    fn parse_assertion(
        mark: &AssertionMark,
        at: usize,
        limits: &Limits,
    ) -> Result<Assertion, RegexError> {
        let Some(depth) = limits.depth.checked_sub(1) else {
            let what = "so deep a look-ahead or look-behind";
            return Err(RegexError::Unsupported { offset: at, what });
        };
        let limits = Limits { depth, ..limits.clone() };
        let side = if mark.is_lookbehind { Side::Before } else { Side::After };
        let AssertionMark { body, options, default_dot, .. } = mark;
        let pattern = Pattern::parse_side(body, options, *default_dot, side, &limits);
        let pattern = pattern.map_err(|error| match error {
            RegexError::Syntax { offset, reason } => {
                RegexError::Syntax { offset: at + offset, reason }
            }
            RegexError::Unsupported { offset, what } => {
                RegexError::Unsupported { offset: at + offset, what }
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
        hir::repeats_unbounded_texts(&self.hir)
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
            return nfa::marked_dfa(self, (any, any), limit);
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
        let dfa = nfa::marked_dfa(self, open, limit)?;
        let marked = MarkedDfa { dfa, conditions, is_lookbehind };
        let is_assertion = open.0 != open.1;
        let equal = automata.iter().position(|other| is_assertion && *other == marked);
        Ok(equal.unwrap_or_else(|| {
            automata.push(marked);
            automata.len() - 1
        }) as u32)
    }
}

/// Lowers a pattern to a grammar of the UTF-8 texts that match it, or contain a match.
///
/// Counted repeats stay counters, regardless of their bounds. Anchors inside alternatives,
/// look-around and word boundaries need an automaton over code points. With [`Scope::Search`], a
/// parse of a pattern with a counted repeat keeps one count per position at which a match may have
/// begun.
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
        (None, scope) => spell_dfa(&pattern.dfa(scope, limits.automaton_states)?, &mut spell_utf8)?,
    };
    let start = builder.rule("regex", body);
    builder
        .finish(start)
        .map_err(|error| RegexError::Syntax { offset: 0, reason: error.to_string() })
}

#[cfg(test)]
mod tests;
