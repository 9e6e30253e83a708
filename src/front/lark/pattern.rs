//! Regular expressions of Lark terminals: lowers patterns in the syntax of the Rust `regex` crate.
//!
//! A pattern must match a terminal as a whole. `\d`, `\w` and `\s` are ASCII. `.` is any code point
//! except a line feed, and any code point with flag `s`. Flag `i` affects ASCII letters only.

use std::ops::Range;

use regex_syntax::ast::{self, Ast, ClassSet, ClassSetItem, Flag, FlagsItemKind};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

use super::escapes;
use crate::front::regex::spell_utf8;
use crate::ir::Expr;
use crate::limits::Limits;

/// An error in a pattern, with its range in the pattern.
#[derive(Debug)]
pub(super) struct PatternError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

/// The flags in effect.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    /// Flag `i`.
    fold: bool,
    /// Flag `s`.
    dot_all: bool,
}

/// Whether a position is at an end of the pattern.
#[derive(Clone, Copy)]
struct AtEnds {
    /// Nothing is read before it.
    start: bool,
    /// Nothing is read after it.
    end: bool,
}

/// Lowers the texts that a pattern matches as a whole. Linear; counted repeats stay counters.
/// Ranges of code points are charged to `left`.
pub(super) fn lower(
    pattern: &str,
    flags: &str,
    limits: &Limits,
    left: &mut usize,
) -> Result<Expr, PatternError> {
    let mut parsed_flags = Flags::default();
    for (i, flag) in flags.char_indices() {
        match flag {
            'i' => parsed_flags.fold = true,
            's' => parsed_flags.dot_all = true,
            // Patterns always match code points.
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
    let edges = AtEnds { start: true, end: true };
    if let Ok(ast) = parse(pattern) {
        return PatternLowering { flags: parsed_flags, left }.expr(&ast, edges);
    }
    // Retry with syntax of Python and ECMA-262.
    let rewritten = escapes::rewrite(pattern);
    let lowered = parse(&rewritten.text)
        .and_then(|ast| PatternLowering { flags: parsed_flags, left }.expr(&ast, edges));
    lowered.map_err(|PatternError { span, message }| {
        let start = rewritten.source_offset(span.start);
        PatternError { span: start..rewritten.source_offset(span.end).max(start), message }
    })
}

/// The byte range of a span.
fn span(span: &ast::Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

/// An error at a span.
fn error<T>(at: &ast::Span, message: &str) -> Result<T, PatternError> {
    Err(PatternError { span: span(at), message: message.to_owned() })
}

/// The class of one code point.
fn char_class(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

/// The class of the ranges.
fn range_class(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(lo, hi)| ClassUnicodeRange::new(lo, hi)))
}

/// Adds the other case of all ASCII letters of a class.
pub(super) fn fold_class(mut class: ClassUnicode) -> ClassUnicode {
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

/// The expression of a class over UTF-8 bytes.
fn class_expr(class: &ClassUnicode) -> Expr {
    let ranges: Vec<(u32, u32)> =
        class.ranges().iter().map(|r| (r.start().into(), r.end().into())).collect();
    spell_utf8(&ranges)
}

/// A text with its ASCII letters in either case.
pub(super) fn folded_text(text: &str) -> Expr {
    Expr::seq(text.chars().map(|c| class_expr(&fold_class(char_class(c)))))
}

/// One code point of a range.
pub(super) fn range(low: char, high: char) -> Expr {
    class_expr(&range_class(&[(low, high)]))
}

/// Lowers the syntax tree of a pattern.
struct PatternLowering<'l> {
    flags: Flags,
    /// Remaining ranges of code points.
    left: &'l mut usize,
}

impl PatternLowering<'_> {
    /// The expression of a class; charges its ranges.
    fn charged_class(
        &mut self,
        class: &ClassUnicode,
        at: &ast::Span,
    ) -> Result<Expr, PatternError> {
        match self.left.checked_sub(class.ranges().len()) {
            Some(left) => *self.left = left,
            None => return error(at, "too many ranges of code points in all patterns together"),
        }
        Ok(class_expr(class))
    }

    /// Lowers a subpattern.
    fn expr(&mut self, ast: &Ast, edges: AtEnds) -> Result<Expr, PatternError> {
        Ok(match ast {
            Ast::Empty(_) => Expr::Empty,
            Ast::Flags(set) => {
                self.set_flags(&set.flags)?;
                Expr::Empty
            }
            Ast::Literal(literal) if !self.flags.fold => {
                Expr::text(literal.c.encode_utf8(&mut [0; 4]))
            }
            Ast::Literal(literal) => {
                self.charged_class(&fold_class(char_class(literal.c)), &literal.span)?
            }
            Ast::Dot(at) if self.flags.dot_all => {
                self.charged_class(&range_class(&[('\0', char::MAX)]), at)?
            }
            Ast::Dot(at) => {
                self.charged_class(&range_class(&[('\0', '\u{9}'), ('\u{B}', char::MAX)]), at)?
            }
            Ast::Assertion(assertion) => self.assertion(assertion, edges)?,
            Ast::ClassUnicode(class) => {
                let set = self.property(class)?;
                self.charged_class(&set, &class.span)?
            }
            Ast::ClassPerl(class) => self.charged_class(&perl_class(class), &class.span)?,
            Ast::ClassBracketed(class) => {
                let set = self.bracketed(class)?;
                self.charged_class(&set, &class.span)?
            }
            Ast::Repetition(repetition) => self.repetition(repetition)?,
            Ast::Group(group) => {
                let before = self.flags;
                if let ast::GroupKind::NonCapturing(flags) = &group.kind {
                    self.set_flags(flags)?;
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
            Ast::Concat(concat) => self.concat(&concat.asts, edges)?,
        })
    }

    /// Lowers a sequence. Parts before the first, and after the last, that reads anything are at
    /// the ends of the pattern, too.
    fn concat(&mut self, asts: &[Ast], edges: AtEnds) -> Result<Expr, PatternError> {
        let wide = |ast: &Ast| match ast {
            Ast::Assertion(assertion) => is_angle(assertion),
            other => !matches!(other, Ast::Flags(_) | Ast::Empty(_)),
        };
        let first = asts.iter().position(wide).unwrap_or(asts.len());
        let last = asts.iter().rposition(wide).unwrap_or(0);
        let mut parts = Vec::with_capacity(asts.len());
        for (i, part) in asts.iter().enumerate() {
            let edges = AtEnds { start: edges.start && i <= first, end: edges.end && i >= last };
            parts.push(self.expr(part, edges)?);
        }
        Ok(Expr::seq(parts))
    }

    /// Applies inline flags.
    fn set_flags(&mut self, flags: &ast::Flags) -> Result<(), PatternError> {
        let mut value = true;
        for item in &flags.items {
            match item.kind {
                FlagsItemKind::Negation => value = false,
                FlagsItemKind::Flag(Flag::CaseInsensitive) => self.flags.fold = value,
                FlagsItemKind::Flag(Flag::DotMatchesNewLine) => self.flags.dot_all = value,
                // The parser handles white space.
                FlagsItemKind::Flag(Flag::IgnoreWhitespace) => {}
                FlagsItemKind::Flag(Flag::Unicode) if value => {}
                FlagsItemKind::Flag(_) => return error(&item.span, "this flag is not supported"),
            }
        }
        Ok(())
    }

    /// Lowers an anchor at an end of the pattern.
    fn assertion(&self, assertion: &ast::Assertion, edges: AtEnds) -> Result<Expr, PatternError> {
        use ast::AssertionKind::{
            EndLine, EndText, StartLine, StartText, WordBoundaryEndAngle, WordBoundaryStartAngle,
        };
        match assertion.kind {
            // In other engines, these are escaped literals rather than word boundaries.
            WordBoundaryStartAngle => Ok(Expr::text("<")),
            WordBoundaryEndAngle => Ok(Expr::text(">")),
            StartLine | StartText if edges.start => Ok(Expr::Empty),
            EndLine | EndText if edges.end => Ok(Expr::Empty),
            StartLine | StartText => {
                error(&assertion.span, "nothing can match before the beginning of a terminal")
            }
            EndLine | EndText => {
                error(&assertion.span, "nothing can match after the end of a terminal")
            }
            _ => error(&assertion.span, "word boundaries are not supported"),
        }
    }

    /// Lowers a repeat.
    fn repetition(&mut self, repetition: &ast::Repetition) -> Result<Expr, PatternError> {
        use ast::{RepetitionKind, RepetitionRange};
        if let (RepetitionKind::OneOrMore, Ast::Repetition(inner)) =
            (&repetition.op.kind, &*repetition.ast)
            && repetition.greedy
            && inner.greedy
        {
            let message = "a possessive repetition in other engines; write it without its `+`, \
                           or with parentheses: `(a+)+`";
            return error(&repetition.op.span, message);
        }
        let (min, max) = match &repetition.op.kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(RepetitionRange::Exactly(n)) => (*n, Some(*n)),
            RepetitionKind::Range(RepetitionRange::AtLeast(n)) => (*n, None),
            RepetitionKind::Range(RepetitionRange::Bounded(n, m)) => (*n, Some(*m)),
        };
        let body = self.expr(&repetition.ast, AtEnds { start: false, end: false })?;
        Ok(Expr::repeat(body, min, max))
    }

    /// Folds a class if flag `i` is set.
    fn folded(&self, class: ClassUnicode) -> ClassUnicode {
        if self.flags.fold { fold_class(class) } else { class }
    }

    /// Folds a class if flag `i` is set, and then negates it if `negated`. The complement of a
    /// class, folded, would contain the letters whose other case the class has.
    fn negatable(&self, class: ClassUnicode, negated: bool) -> ClassUnicode {
        let mut class = self.folded(class);
        if negated {
            class.negate();
        }
        class
    }

    /// The class of `\p{...}` or `\P{...}`, from the tables of `regex-syntax`.
    fn property(&self, class: &ast::ClassUnicode) -> Result<ClassUnicode, PatternError> {
        let name = match &class.kind {
            ast::ClassUnicodeKind::OneLetter(letter) => letter.to_string(),
            ast::ClassUnicodeKind::Named(name) => name.clone(),
            ast::ClassUnicodeKind::NamedValue { name, value, .. } => format!("{name}={value}"),
        };
        let set = translated(&format!("\\p{{{name}}}"), &class.span)?;
        Ok(self.negatable(set, class.is_negated()))
    }

    /// The class in brackets.
    fn bracketed(&self, class: &ast::ClassBracketed) -> Result<ClassUnicode, PatternError> {
        let mut inside = self.set_class(&class.kind)?;
        if class.negated {
            inside.negate();
        }
        Ok(inside)
    }

    /// The class of what stands in brackets.
    fn set_class(&self, set: &ClassSet) -> Result<ClassUnicode, PatternError> {
        match set {
            ClassSet::Item(item) => self.item(item),
            // Other engines read the signs as characters.
            ClassSet::BinaryOp(op) => error(
                &op.span,
                "an operation on classes; write the characters that are left, \
                 or escape the signs: `\\&\\&`, `\\-\\-`, `\\~\\~`",
            ),
        }
    }

    /// The class of one item in brackets.
    fn item(&self, item: &ClassSetItem) -> Result<ClassUnicode, PatternError> {
        Ok(match item {
            ClassSetItem::Empty(_) => ClassUnicode::empty(),
            ClassSetItem::Literal(literal) => self.folded(char_class(literal.c)),
            ClassSetItem::Range(range) => self.folded(range_class(&[(range.start.c, range.end.c)])),
            ClassSetItem::Ascii(class) => {
                let text = format!("[[:{}:]]", ascii_name(&class.kind));
                self.negatable(translated(&text, &class.span)?, class.negated)
            }
            ClassSetItem::Unicode(class) => self.property(class)?,
            ClassSetItem::Perl(class) => perl_class(class),
            ClassSetItem::Bracketed(class) => {
                let message = "a class in a class; write its characters, or escape: `\\[`";
                return error(&class.span, message);
            }
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

/// Whether an assertion is `\<` or `\>`.
fn is_angle(assertion: &ast::Assertion) -> bool {
    use ast::AssertionKind::{WordBoundaryEndAngle, WordBoundaryStartAngle};
    matches!(assertion.kind, WordBoundaryStartAngle | WordBoundaryEndAngle)
}

/// The ASCII class of `\d`, `\s` or `\w`.
fn perl_class(class: &ast::ClassPerl) -> ClassUnicode {
    let mut set = range_class(match class.kind {
        ast::ClassPerlKind::Digit => &[('0', '9')][..],
        ast::ClassPerlKind::Space => &[('\t', '\r'), (' ', ' ')],
        ast::ClassPerlKind::Word => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
    });
    if class.negated {
        set.negate();
    }
    set
}

/// Translates a class with `regex-syntax`.
fn translated(class: &str, at: &ast::Span) -> Result<ClassUnicode, PatternError> {
    let hir = regex_syntax::parse(class);
    match hir.as_ref().map(regex_syntax::hir::Hir::kind) {
        Ok(HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => Ok(class.clone()),
        // A class of one code point.
        Ok(HirKind::Literal(literal)) => {
            match std::str::from_utf8(&literal.0).ok().and_then(|s| s.chars().next()) {
                Some(c) => Ok(char_class(c)),
                None => error(at, "this class is not about code points"),
            }
        }
        _ => error(at, "there is no such class of code points"),
    }
}

/// The name of a POSIX class.
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
