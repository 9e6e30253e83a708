//! Translates ECMA-262 pattern syntax, with a few additions, to `regex-syntax` syntax of the same
//! meaning.

mod escape;

use std::fmt::Write;
use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

use super::assertions::MAX_MARKS;
use super::{Ambiguous, Case, Classes, Dot, LookAround, RegexError, RegexOptions};
use crate::hash::{HashSet, IndexMap};
use crate::ir::MAX_COUNT;
use escape::EscapeMeaning;
pub(in crate::front) use escape::is_javascript_literal;

/// A translated pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Translated {
    /// The pattern in `regex-syntax` syntax.
    pub(super) text: String,
    /// `(offset in text, offset in source)`, ascending.
    offsets: Vec<(usize, usize)>,
    /// Number of classes that are Unicode tables.
    pub(super) tables: usize,
    /// Different assertions, with the offset at which the body of each begins in the source.
    pub(super) assertions: IndexMap<AssertionMark, usize>,
    /// By capturing group: the number of the assertion that it stands for.
    pub(super) marks: Vec<u32>,
}

/// A zero-width assertion: look-ahead or look-behind. The translated text has an empty capturing
/// group in its place. No other group captures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AssertionMark {
    /// The pattern that it looks for.
    pub(super) body: String,
    /// The options of the body.
    pub(super) options: RegexOptions,
    /// Code points that `.` does not match without flags.
    pub(super) default_dot: Dot,
    /// Whether the match is before the position.
    pub(super) is_lookbehind: bool,
    /// Whether there must be no match.
    pub(super) negated: bool,
}

/// The part of the text that a pattern sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// All of it.
    Whole,
    /// What is before a position: the body of a look-behind. `$` is an assertion.
    Before,
    /// What is after a position: the body of a look-ahead. `^` is an assertion.
    After,
}

/// Why look-around is rejected in a terminal.
const LOOK_AROUND_IN_TERMINAL: &str =
    "look-around or a word boundary in a terminal, where it would depend on the text around it";

/// Groups of look-around, by their beginning after the `(`: whether it looks after, and whether
/// it is negated.
const LOOK_AROUND: [(&str, bool, bool); 4] =
    [("?=", false, false), ("?!", false, true), ("?<=", true, false), ("?<!", true, true)];

/// Group syntax of other engines, by its beginning after the `(`, with the error text.
const FOREIGN_GROUPS: [(&str, &str); 8] = [
    ("?P=", "backreference"),
    ("?P>", "a call of a group: patterns do not recurse"),
    ("?&", "a call of a group: patterns do not recurse"),
    ("?R", "a call of a group: patterns do not recurse"),
    ("?>", "an atomic group; write `(?:...)` if it need not keep what it has read"),
    ("?#", "a comment in a pattern; leave it out"),
    ("?(", "a group that depends on another group"),
    ("?|", "alternatives that share group numbers; write `(?:...)`"),
];

impl Translated {
    /// The source offset of the construct at an offset of the translated text.
    pub(super) fn source_offset(&self, offset: usize) -> usize {
        let i = self.offsets.partition_point(|&(text, _)| text <= offset);
        i.checked_sub(1).map_or(0, |i| self.offsets[i].1)
    }
}

/// Translates an ECMA-262 pattern.
///
/// The syntax is that of the `u` flag, except that needless escapes and literal braces are allowed
/// as without it. Additions: the flags `i` and `s`, `(?P<name>...)`, `\a`, `\e`, `\A` and `\z`.
/// Errors: backreferences, lone surrogates, other flags, and syntax to which other engines give
/// another meaning (option `ambiguous`). Ignores the scope and the case option, which callers
/// apply. `default_dot`: what `.` does not match after `(?-s)`.
pub(super) fn translate(
    source: &str,
    options: &RegexOptions,
    default_dot: Dot,
    side: Side,
) -> Result<Translated, RegexError> {
    let text = String::with_capacity(source.len() + 8);
    let out = Translated { text, ..Translated::default() };
    let chars = source.char_indices().peekable();
    let mut translator = Translator {
        source,
        chars,
        out,
        default_dot,
        options: *options,
        side,
        outer: Vec::new(),
        names: HashSet::default(),
        may_nest: true,
        posix_end: source.rfind(":]").unwrap_or(0),
    };
    translator.pattern()?;
    Ok(translator.out)
}

/// Translates one pattern from left to right.
struct Translator<'s> {
    source: &'s str,
    chars: Peekable<CharIndices<'s>>,
    out: Translated,
    /// Code points that `.` does not match without flags.
    default_dot: Dot,
    /// Options at the current position.
    options: RegexOptions,
    /// The part of the text that the pattern sees.
    side: Side,
    /// Options outside of each open group.
    outer: Vec<RegexOptions>,
    /// Names of groups so far.
    names: HashSet<String>,
    /// Whether a class in a class may end: false once one was found that does not.
    may_nest: bool,
    /// Where the last POSIX class may end; 0 if none does.
    posix_end: usize,
}

impl Translator<'_> {
    /// A syntax error.
    fn syntax<T>(&self, offset: usize, reason: &str) -> Result<T, RegexError> {
        Err(RegexError::Syntax { offset, reason: reason.to_owned() })
    }

    /// Writes the mark of an assertion whose body begins at `offset`.
    fn mark(
        &mut self,
        offset: usize,
        body: &str,
        is_lookbehind: bool,
        negated: bool,
    ) -> Result<(), RegexError> {
        let (body, options, default_dot) = (body.to_owned(), self.options, self.default_dot);
        let mark = AssertionMark { body, options, default_dot, is_lookbehind, negated };
        let entry = self.out.assertions.entry(mark);
        let number = entry.index();
        if number >= MAX_MARKS {
            return Err(RegexError::Unsupported { offset, what: "so many conditions" });
        }
        entry.or_insert(offset);
        self.out.marks.push(number as u32);
        self.out.text.push_str("()");
        Ok(())
    }

    /// Writes a word boundary: a character of words on one side of the position and none on the
    /// other. A plain `\b` in ASCII is one of `regex-syntax`. Others are assertions: words in
    /// Unicode have many ranges, and look-around does not see both sides.
    fn word_boundary(&mut self, at: usize, negated: bool) -> Result<(), RegexError> {
        let RegexOptions { case, classes, .. } = self.options;
        let is_ascii = case == Case::Sensitive && classes != Classes::Unicode;
        if self.side == Side::Whole && !negated && is_ascii {
            self.out.text.push_str(r"(?-u:\b)");
            return Ok(());
        }
        self.out.text.push_str("(?:");
        self.mark(at, r"\w", true, false)?;
        self.mark(at, r"\w", false, !negated)?;
        self.out.text.push('|');
        self.mark(at, r"\w", true, true)?;
        self.mark(at, r"\w", false, negated)?;
        self.out.text.push(')');
        Ok(())
    }

    /// Writes `^` or `$`. In look-around that does not see that end of the text, it is an
    /// assertion.
    fn anchor(&mut self, at: usize, start: bool) -> Result<(), RegexError> {
        match (start, self.side) {
            (true, Side::After) => self.mark(at, "[^]", true, true),
            (false, Side::Before) => self.mark(at, "[^]", false, true),
            (start, _) => {
                self.out.text.push_str(if start { r"\A" } else { r"\z" });
                Ok(())
            }
        }
    }

    /// Skips a group whose beginning has been read; returns the range of its body.
    fn group_body(&mut self, at: usize) -> Result<Range<usize>, RegexError> {
        let begin = self.chars.peek().map_or(self.source.len(), |&(i, _)| i);
        let (mut depth, mut in_class) = (0usize, false);
        while let Some((i, c)) = self.chars.next() {
            match c {
                '\\' => self.skip(1),
                '[' => in_class = true,
                ']' => in_class = false,
                '(' if !in_class => depth += 1,
                ')' if !in_class && depth == 0 => return Ok(begin..i),
                ')' if !in_class => depth -= 1,
                _ => {}
            }
        }
        self.syntax(at, "unclosed group")
    }

    /// Writes a code point.
    fn literal(&mut self, code: u32) {
        let _ = write!(self.out.text, "\\x{{{code:X}}}");
    }

    /// The source from the current position on.
    fn rest(&mut self) -> &str {
        let at = self.chars.peek().map_or(self.source.len(), |&(i, _)| i);
        &self.source[at..]
    }

    /// Skips characters.
    fn skip(&mut self, chars: usize) {
        for _ in 0..chars {
            self.chars.next();
        }
    }

    /// Translates the whole pattern.
    fn pattern(&mut self) -> Result<(), RegexError> {
        let is_whole = self.side == Side::Whole && self.options.ambiguous == Ambiguous::Refused;
        if is_whole && is_javascript_literal(self.source) {
            let what = "a regular expression of JavaScript: leave the slashes out and write flags \
                        as in `(?i)`, or write a slash that is meant as `\\/`";
            return Err(RegexError::Unsupported { offset: 0, what });
        }
        // Whether the last item may be repeated.
        let mut atom = false;
        while let Some((at, c)) = self.chars.next() {
            self.out.offsets.push((self.out.text.len(), at));
            let mut next_atom = true;
            match c {
                '\\' => next_atom = self.escaped_item(at)?,
                '[' => self.class(at)?,
                '.' => self.out.text.push_str(match self.options.dot {
                    Dot::NoLineTerminators => r"[^\n\r\x{2028}\x{2029}]",
                    Dot::NoLineFeed => r"[^\n]",
                    Dot::Any => r"[\x{0}-\x{10FFFF}]",
                }),
                '^' | '$' => {
                    self.anchor(at, c == '^')?;
                    next_atom = false;
                }
                '(' => {
                    self.group(at)?;
                    next_atom = false;
                }
                ')' => {
                    self.options = self.outer.pop().unwrap_or(self.options);
                    self.out.text.push(')');
                }
                '|' => {
                    self.out.text.push('|');
                    next_atom = false;
                }
                '*' | '+' | '?' => {
                    if !atom {
                        return self.syntax(at, "nothing to repeat");
                    }
                    self.out.text.push(c);
                    self.skip_lazy_mark(at)?;
                    next_atom = false;
                }
                '{' => match self.counts(at)? {
                    Some(counts) if atom => {
                        self.out.text.push_str(&counts);
                        self.skip_lazy_mark(at)?;
                        next_atom = false;
                    }
                    Some(_) => return self.syntax(at, "nothing to repeat"),
                    None => self.literal(u32::from(c)),
                },
                // Letters, digits and spaces are literal in both syntaxes; others are written by
                // code.
                c if c.is_ascii_alphanumeric() || c == ' ' || c == '_' => self.out.text.push(c),
                c => self.literal(u32::from(c)),
            }
            atom = next_atom;
        }
        Ok(())
    }

    /// Translates an escape outside of classes. Returns whether it may be repeated.
    fn escaped_item(&mut self, at: usize) -> Result<bool, RegexError> {
        match self.escape(at, false)? {
            EscapeMeaning::Char(code) => self.literal(code),
            EscapeMeaning::Class { inside, negated } => {
                let _ = write!(self.out.text, "[{}{inside}]", if negated { "^" } else { "" });
            }
            EscapeMeaning::Anchor { start } => {
                self.anchor(at, start)?;
                return Ok(false);
            }
            EscapeMeaning::Boundary { negated } => {
                self.word_boundary(at, negated)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Skips the `?` of a lazy repetition, which does not change the language. Errors: a possessive
    /// repetition, which does.
    fn skip_lazy_mark(&mut self, at: usize) -> Result<(), RegexError> {
        if self.rest().starts_with('+') {
            let what = "a possessive repetition; without its `+` it gives back what must follow";
            return Err(RegexError::Unsupported { offset: at, what });
        }
        if self.rest().starts_with('?') {
            self.skip(1);
        }
        Ok(())
    }

    /// Parses the rest of `{n}`, `{n,}` or `{n,m}`; `None` if the brace is a literal.
    fn counts(&mut self, at: usize) -> Result<Option<String>, RegexError> {
        let rest = self.rest();
        let is_of_counts = |b: u8| b.is_ascii_digit() || b == b',';
        let end = rest.bytes().position(|b| !is_of_counts(b)).unwrap_or(rest.len());
        if !rest[end..].starts_with('}') {
            return Ok(None);
        }
        let inside = &rest[..end];
        let (min, max) =
            inside.split_once(',').map_or((inside, None), |(min, max)| (min, Some(max)));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if min.is_empty() && max.is_some_and(|max| !max.is_empty() && digits(max)) {
            let what = "a repetition in other engines: write `{0,n}`, or `\\{,n}` for characters";
            return Err(RegexError::Unsupported { offset: at, what });
        }
        if min.is_empty() || !digits(min) || !max.is_none_or(digits) {
            return Ok(None);
        }
        let parse = |s: &str| s.parse::<u32>().ok();
        let counts = match (parse(min).filter(|min| *min <= MAX_COUNT), max) {
            (Some(min), None) => format!("{{{min}}}"),
            (Some(min), Some("")) => format!("{{{min},}}"),
            (Some(min), Some(max)) => match parse(max) {
                Some(max) if min <= max => format!("{{{min},{max}}}"),
                Some(_) => return self.syntax(at, "counts out of order"),
                None => return self.syntax(at, "count too large"),
            },
            (None, _) => return self.syntax(at, "count too large"),
        };
        let chars = inside.len() + 1;
        self.skip(chars);
        Ok(Some(counts))
    }

    /// Translates the beginning of a group, after its `(`.
    fn group(&mut self, at: usize) -> Result<(), RegexError> {
        let rest = self.rest();
        if let Some((_, what)) = FOREIGN_GROUPS.iter().find(|(open, _)| rest.starts_with(open)) {
            return Err(RegexError::Unsupported { offset: at, what });
        }
        if let Some(&(open, is_lookbehind, negated)) =
            LOOK_AROUND.iter().find(|(open, ..)| rest.starts_with(open))
        {
            if self.options.look_around == LookAround::Refused {
                return Err(RegexError::Unsupported { offset: at, what: LOOK_AROUND_IN_TERMINAL });
            }
            self.skip(open.len());
            let body = self.group_body(at)?;
            return self.mark(body.start, &self.source[body], is_lookbehind, negated);
        }
        let named = ["?<", "?P<"]
            .iter()
            .find_map(|open| rest.strip_prefix(open))
            .and_then(|name| name.split_once('>'))
            .map(|(name, _)| name.to_owned());
        match named {
            _ if !rest.starts_with('?') => {}
            _ if rest.starts_with("?:") => self.skip(2),
            Some(name) => {
                let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
                if !name.chars().all(is_name) || !name.starts_with(|c: char| !c.is_numeric()) {
                    return self.syntax(at, "the name of a group is an identifier");
                }
                while self.chars.next().is_some_and(|(_, c)| c != '>') {}
                if !self.names.insert(name) {
                    return self.syntax(at, "a second group of this name");
                }
            }
            None => return self.flags(at),
        }
        self.outer.push(self.options);
        self.out.text.push_str("(?:");
        Ok(())
    }

    /// Translates flags such as `(?i)`, `(?-s)`, `(?is-i:`, after the `(`.
    fn flags(&mut self, at: usize) -> Result<(), RegexError> {
        let mut on = true;
        let mut seen = String::new();
        let RegexOptions { mut dot, mut case, .. } = self.options;
        let mut text = "(?".to_owned();
        self.skip(1);
        loop {
            let next = self.chars.next();
            match next {
                Some((place, c)) if seen.contains(c) => {
                    return self.syntax(place, "a flag stands twice");
                }
                Some((_, '-')) => on = false,
                Some((place, ':')) if seen == "-" => {
                    return self.syntax(place, "no flag follows the `-`");
                }
                Some((_, 'i')) => {
                    case = if on { Case::Insensitive } else { Case::Sensitive };
                    text.push_str(if on { "i" } else { "-i" });
                }
                Some((_, 's')) if on => dot = Dot::Any,
                // Undoes `(?s)`.
                Some((_, 's')) if self.default_dot == Dot::Any => dot = Dot::NoLineTerminators,
                Some((_, 's')) => dot = self.default_dot,
                Some((_, ':')) => {
                    self.outer.push(self.options);
                    text.push(':');
                    break;
                }
                Some((_, ')')) if seen.ends_with(['i', 's']) => {
                    text.push(')');
                    break;
                }
                Some((place, 'm')) => {
                    let what = "the flag m; `^` and `$` are the ends of the text, \
                                lines begin after `\\n`";
                    return Err(RegexError::Unsupported { offset: place, what });
                }
                Some((place, 'x' | 'U' | 'u' | 'R' | 'a' | 'L')) => {
                    let what = "a flag other than i and s";
                    return Err(RegexError::Unsupported { offset: place, what });
                }
                _ => {
                    let what = "an unknown kind of group";
                    return Err(RegexError::Unsupported { offset: at, what });
                }
            }
            seen.extend(next.map(|(_, c)| c));
        }
        self.options = RegexOptions { dot, case, ..self.options };
        // A group with no flag but `s` is not passed on to `regex-syntax`.
        if text != "(?)" {
            self.out.text.push_str(&text);
        }
        Ok(())
    }
}
