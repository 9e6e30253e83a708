//! Regular expressions of Lark texts: the syntax of the Rust crates, matched as a whole. `\d`, `\w` and `\s` are ASCII, `.` is
//! any code point but a line feed (any at all with flag `s`), flag `i` is about ASCII letters only.

use std::ops::Range;

use regex_syntax::ast::{self, Ast, ClassSet, ClassSetItem, Flag, FlagsItemKind};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

use super::escapes;
use crate::front::regex::spell_utf8;
use crate::ir::Expr;
use crate::limits::Limits;

/// What is wrong with a pattern and where in it.
#[derive(Debug)]
pub(super) struct PatternError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

/// What flags say.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    /// `i`
    fold: bool,
    /// `s`
    dot_all: bool,
}

/// Whether nothing has been read before a place, and nothing can be read behind it.
#[derive(Clone, Copy)]
struct Edges {
    start: bool,
    end: bool,
}

/// The texts a pattern matches as a whole. Linear, counted repeats stay counted. `left` is how many ranges of code points there may
/// still be; those of the pattern are taken off.
pub(super) fn lower(
    pattern: &str,
    flags: &str,
    limits: &Limits,
    left: &mut usize,
) -> Result<Expr, PatternError> {
    let mut known = Flags::default();
    for (i, flag) in flags.char_indices() {
        match flag {
            'i' => known.fold = true,
            's' => known.dot_all = true,
            // Patterns are about code points as it is.
            'u' => {}
            _ => {
                let at = pattern.len() + 1 + i;
                let message = format!("flag `{flag}` is not supported; known are i, s and u");
                return Err(PatternError { span: at..at + 1, message });
            }
        }
    }
    let nest = u32::try_from(limits.depth).unwrap_or(u32::MAX);
    let parse = |text: &str| {
        ast::parse::ParserBuilder::new().nest_limit(nest).build().parse(text).map_err(|error| {
            let message = format!("not a regular expression: {}", error.kind());
            PatternError { span: span(error.span()), message }
        })
    };
    let edges = Edges { start: true, end: true };
    if let Ok(ast) = parse(pattern) {
        return Walk { flags: known, left }.expr(&ast, edges);
    }
    // Perhaps it is written as elsewhere.
    let rewritten = escapes::rewrite(pattern);
    let lowered =
        parse(&rewritten.text).and_then(|ast| Walk { flags: known, left }.expr(&ast, edges));
    lowered.map_err(|PatternError { span, message }| {
        let start = rewritten.source(span.start);
        PatternError { span: start..rewritten.source(span.end).max(start), message }
    })
}

fn span(span: &ast::Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

fn error<T>(at: &ast::Span, message: &str) -> Result<T, PatternError> {
    Err(PatternError { span: span(at), message: message.to_owned() })
}

fn one(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

fn of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(lo, hi)| ClassUnicodeRange::new(lo, hi)))
}

/// With the other cases of its ASCII letters.
pub(super) fn folded(mut class: ClassUnicode) -> ClassUnicode {
    let mut more = Vec::new();
    for range in class.ranges() {
        for (first, last) in [('a', 'z'), ('A', 'Z')] {
            let (lo, hi) = (range.start().max(first), range.end().min(last));
            if lo <= hi {
                let other = |c: char| {
                    if c.is_ascii_lowercase() {
                        c.to_ascii_uppercase()
                    } else {
                        c.to_ascii_lowercase()
                    }
                };
                more.push(ClassUnicodeRange::new(other(lo), other(hi)));
            }
        }
    }
    more.into_iter().for_each(|range| class.push(range));
    class
}

fn spelled(class: &ClassUnicode) -> Expr {
    let ranges: Vec<(u32, u32)> =
        class.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect();
    spell_utf8(&ranges)
}

/// A text, its ASCII letters in either case.
pub(super) fn folded_text(text: &str) -> Expr {
    Expr::seq(text.chars().map(|c| spelled(&folded(one(c)))))
}

/// One code point of a range.
pub(super) fn range(low: char, high: char) -> Expr {
    spelled(&of(&[(low, high)]))
}

struct Walk<'l> {
    flags: Flags,
    left: &'l mut usize,
}

impl Walk<'_> {
    fn spelled(&mut self, class: &ClassUnicode, at: &ast::Span) -> Result<Expr, PatternError> {
        match self.left.checked_sub(class.ranges().len()) {
            Some(left) => *self.left = left,
            None => return error(at, "too many ranges of code points in all patterns together"),
        }
        Ok(spelled(class))
    }

    fn expr(&mut self, ast: &Ast, edges: Edges) -> Result<Expr, PatternError> {
        Ok(match ast {
            Ast::Empty(_) => Expr::Empty,
            Ast::Flags(set) => {
                self.set(&set.flags)?;
                Expr::Empty
            }
            Ast::Literal(literal) if !self.flags.fold => {
                Expr::text(literal.c.encode_utf8(&mut [0; 4]))
            }
            Ast::Literal(literal) => self.spelled(&folded(one(literal.c)), &literal.span)?,
            Ast::Dot(at) if self.flags.dot_all => self.spelled(&of(&[('\0', char::MAX)]), at)?,
            Ast::Dot(at) => self.spelled(&of(&[('\0', '\u{9}'), ('\u{B}', char::MAX)]), at)?,
            Ast::Assertion(assertion) => self.assertion(assertion, edges)?,
            Ast::ClassUnicode(class) => {
                let set = self.folded(property(class)?);
                self.spelled(&set, &class.span)?
            }
            Ast::ClassPerl(class) => self.spelled(&perl(class), &class.span)?,
            Ast::ClassBracketed(class) => {
                let set = self.bracketed(class)?;
                self.spelled(&set, &class.span)?
            }
            Ast::Repetition(repetition) => self.repetition(repetition)?,
            Ast::Group(group) => {
                let before = self.flags;
                if let ast::GroupKind::NonCapturing(flags) = &group.kind {
                    self.set(flags)?;
                }
                let body = self.expr(&group.ast, edges)?;
                self.flags = before;
                body
            }
            Ast::Alternation(alternation) => {
                let mut parts = Vec::with_capacity(alternation.asts.len());
                for part in &alternation.asts {
                    parts.push(self.expr(part, edges)?);
                }
                Expr::alt(parts)
            }
            Ast::Concat(concat) => {
                let (mut parts, count) = (Vec::with_capacity(concat.asts.len()), concat.asts.len());
                let wide = |ast: &Ast| match ast {
                    Ast::Assertion(assertion) => is_angle(assertion),
                    other => !matches!(other, Ast::Flags(_) | Ast::Empty(_)),
                };
                let first = concat.asts.iter().position(wide).unwrap_or(count);
                let last = concat.asts.iter().rposition(wide).unwrap_or(0);
                for (i, part) in concat.asts.iter().enumerate() {
                    let edges =
                        Edges { start: edges.start && i <= first, end: edges.end && i >= last };
                    parts.push(self.expr(part, edges)?);
                }
                Expr::seq(parts)
            }
        })
    }

    fn set(&mut self, flags: &ast::Flags) -> Result<(), PatternError> {
        let mut value = true;
        for item in &flags.items {
            match item.kind {
                FlagsItemKind::Negation => value = false,
                FlagsItemKind::Flag(Flag::CaseInsensitive) => self.flags.fold = value,
                FlagsItemKind::Flag(Flag::DotMatchesNewLine) => self.flags.dot_all = value,
                // Layout of the pattern, which its parser has seen to; greed changes no match of the whole.
                FlagsItemKind::Flag(Flag::IgnoreWhitespace | Flag::SwapGreed) => {}
                FlagsItemKind::Flag(Flag::Unicode) if value => {}
                FlagsItemKind::Flag(_) => return error(&item.span, "this flag is not supported"),
            }
        }
        Ok(())
    }

    fn assertion(&self, assertion: &ast::Assertion, edges: Edges) -> Result<Expr, PatternError> {
        use ast::AssertionKind::{
            EndLine, EndText, StartLine, StartText, WordBoundaryEndAngle, WordBoundaryStartAngle,
        };
        match assertion.kind {
            // Elsewhere these are no boundaries but the signs themselves.
            WordBoundaryStartAngle => Ok(Expr::text("<")),
            WordBoundaryEndAngle => Ok(Expr::text(">")),
            StartLine | StartText if edges.start => Ok(Expr::Empty),
            EndLine | EndText if edges.end => Ok(Expr::Empty),
            StartLine | StartText => {
                error(&assertion.span, "nothing can match before the beginning of a terminal")
            }
            EndLine | EndText => {
                error(&assertion.span, "nothing can match behind the end of a terminal")
            }
            _ => error(&assertion.span, "word boundaries are not supported"),
        }
    }

    fn repetition(&mut self, repetition: &ast::Repetition) -> Result<Expr, PatternError> {
        use ast::{RepetitionKind, RepetitionRange};
        let (min, max) = match &repetition.op.kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(RepetitionRange::Exactly(n)) => (*n, Some(*n)),
            RepetitionKind::Range(RepetitionRange::AtLeast(n)) => (*n, None),
            RepetitionKind::Range(RepetitionRange::Bounded(n, m)) => (*n, Some(*m)),
        };
        let body = self.expr(&repetition.ast, Edges { start: false, end: false })?;
        Ok(Expr::repeat(body, min, max))
    }

    fn folded(&self, class: ClassUnicode) -> ClassUnicode {
        if self.flags.fold { folded(class) } else { class }
    }

    fn bracketed(&self, class: &ast::ClassBracketed) -> Result<ClassUnicode, PatternError> {
        let mut inside = self.set_of(&class.kind)?;
        if class.negated {
            inside.negate();
        }
        Ok(inside)
    }

    /// Letters are folded before anything is left out.
    fn set_of(&self, set: &ClassSet) -> Result<ClassUnicode, PatternError> {
        match set {
            ClassSet::Item(item) => self.item(item),
            ClassSet::BinaryOp(op) => {
                let (mut left, right) = (self.set_of(&op.lhs)?, self.set_of(&op.rhs)?);
                match op.kind {
                    ast::ClassSetBinaryOpKind::Intersection => left.intersect(&right),
                    ast::ClassSetBinaryOpKind::Difference => left.difference(&right),
                    ast::ClassSetBinaryOpKind::SymmetricDifference => {
                        left.symmetric_difference(&right)
                    }
                }
                Ok(left)
            }
        }
    }

    fn item(&self, item: &ClassSetItem) -> Result<ClassUnicode, PatternError> {
        Ok(match item {
            ClassSetItem::Empty(_) => ClassUnicode::empty(),
            ClassSetItem::Literal(literal) => self.folded(one(literal.c)),
            ClassSetItem::Range(range) => self.folded(of(&[(range.start.c, range.end.c)])),
            ClassSetItem::Ascii(class) => {
                let text = if class.negated { "[[:^" } else { "[[:" };
                self.folded(translated(
                    &format!("{text}{}:]]", ascii_name(&class.kind)),
                    &class.span,
                )?)
            }
            ClassSetItem::Unicode(class) => self.folded(property(class)?),
            ClassSetItem::Perl(class) => perl(class),
            ClassSetItem::Bracketed(class) => self.bracketed(class)?,
            ClassSetItem::Union(union) => {
                let mut all = ClassUnicode::empty();
                for item in &union.items {
                    all.union(&self.item(item)?);
                }
                all
            }
        })
    }
}

/// `\<` and `\>`.
fn is_angle(assertion: &ast::Assertion) -> bool {
    use ast::AssertionKind::{WordBoundaryEndAngle, WordBoundaryStartAngle};
    matches!(assertion.kind, WordBoundaryStartAngle | WordBoundaryEndAngle)
}

fn perl(class: &ast::ClassPerl) -> ClassUnicode {
    let mut set = of(match class.kind {
        ast::ClassPerlKind::Digit => &[('0', '9')][..],
        ast::ClassPerlKind::Space => &[('\t', '\r'), (' ', ' ')],
        ast::ClassPerlKind::Word => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
    });
    if class.negated {
        set.negate();
    }
    set
}

/// `\p{...}`, from the tables of `regex-syntax`.
fn property(class: &ast::ClassUnicode) -> Result<ClassUnicode, PatternError> {
    let sign = if class.negated { 'P' } else { 'p' };
    let name = match &class.kind {
        ast::ClassUnicodeKind::OneLetter(letter) => letter.to_string(),
        ast::ClassUnicodeKind::Named(name) => name.clone(),
        ast::ClassUnicodeKind::NamedValue { name, value, .. } => format!("{name}={value}"),
    };
    translated(&format!("\\{sign}{{{name}}}"), &class.span)
}

fn translated(class: &str, at: &ast::Span) -> Result<ClassUnicode, PatternError> {
    let hir = regex_syntax::parse(class);
    match hir.as_ref().map(regex_syntax::hir::Hir::kind) {
        Ok(HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => Ok(class.clone()),
        // A class of one code point.
        Ok(HirKind::Literal(literal)) => {
            match std::str::from_utf8(&literal.0).ok().and_then(|s| s.chars().next()) {
                Some(c) => Ok(one(c)),
                None => error(at, "this class is not about code points"),
            }
        }
        _ => error(at, "there is no such class of code points"),
    }
}

fn ascii_name(kind: &ast::ClassAsciiKind) -> &'static str {
    use ast::ClassAsciiKind as Kind;
    match kind {
        Kind::Alnum => "alnum",
        Kind::Alpha => "alpha",
        Kind::Ascii => "ascii",
        Kind::Blank => "blank",
        Kind::Cntrl => "cntrl",
        Kind::Digit => "digit",
        Kind::Graph => "graph",
        Kind::Lower => "lower",
        Kind::Print => "print",
        Kind::Punct => "punct",
        Kind::Space => "space",
        Kind::Upper => "upper",
        Kind::Word => "word",
        Kind::Xdigit => "xdigit",
    }
}
