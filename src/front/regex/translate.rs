//! Translates ECMA-262 pattern syntax, with a few additions, to `regex-syntax` syntax of the same
//! meaning.

use std::fmt::Write;
use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

use super::assertions::MAX_MARKS;
use super::{Case, Classes, Dot, LookAround, RegexError, RegexOptions};
use crate::hash::HashSet;

/// `\s` of ECMA-262: WhiteSpace and LineTerminator.
const SPACE: &str = concat!(
    r"\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}",
    r"\x{3000}\x{FEFF}"
);

/// ASCII white space.
const ASCII_SPACE: &str = r"\t\n\x0B\x0C\r ";

/// A translated pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    /// The pattern in `regex-syntax` syntax.
    pub text: String,
    /// `(offset in text, offset in source)`, ascending.
    offsets: Vec<(usize, usize)>,
    /// Number of classes that are Unicode tables.
    pub(super) tables: usize,
    /// Assertions, by the number in the name of their empty group.
    pub(super) marks: Vec<AssertionMark>,
}

/// A zero-width assertion: look-ahead or look-behind. The translated text has an empty group in its
/// place, named after its number. No other group has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AssertionMark {
    /// The pattern that it looks for.
    pub(super) body: String,
    /// Where in the source the body begins.
    pub(super) offset: usize,
    /// The options of the body.
    pub(super) options: RegexOptions,
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

/// Letters of escapes that only other engines have, with the error text.
const FOREIGN_ESCAPES: [(&str, &str); 6] = [
    ("AZz", r"an anchor of another engine: write `$`, which is the end of the text, or `^`"),
    ("hH", r"an escape that ECMA-262 does not have: write `[ \t]` or `[^ \t]`"),
    ("RN", r"an escape that ECMA-262 does not have: write `(?:\r\n|\n|\r)` or `[^\n]`"),
    ("QE", r"an escape that ECMA-262 does not have: write a backslash before each character"),
    ("U", r"an escape that ECMA-262 does not have: write `\u{...}`"),
    ("GKX", "an escape that ECMA-262 does not have"),
];

/// Prefix of the group name of a mark.
const MARK_PREFIX: &str = "mark";

/// The number of the mark with a group name.
pub(super) fn mark_number(name: &str) -> Option<usize> {
    name.strip_prefix(MARK_PREFIX)?.split_once('_')?.0.parse().ok()
}

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
/// Errors: backreferences, lone surrogates, other flags, and syntax to which other
/// engines give another meaning. Ignores the scope and the case option, which callers apply.
pub(super) fn translate(
    source: &str,
    options: &RegexOptions,
    side: Side,
) -> Result<Translated, RegexError> {
    let out = Translated {
        text: String::with_capacity(source.len() + 8),
        offsets: Vec::new(),
        tables: 0,
        marks: Vec::new(),
    };
    let chars = source.char_indices().peekable();
    let mut translator = Translator {
        source,
        chars,
        out,
        default_dot: options.dot,
        options: *options,
        side,
        outer: Vec::new(),
        names: HashSet::default(),
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
}

/// Meaning of an escape.
enum EscapeMeaning {
    /// One code point.
    Char(u32),
    /// The inside of a class.
    Class(String),
    /// The complement of the inside of a class.
    NotClass(String),
    /// The beginning or the end of the text.
    Anchor { start: bool },
    /// A word boundary.
    Boundary { negated: bool },
}

impl Translator<'_> {
    /// A syntax error.
    fn syntax<T>(&self, offset: usize, reason: &str) -> Result<T, RegexError> {
        Err(RegexError::Syntax { offset, reason: reason.to_owned() })
    }

    /// Writes an assertion mark. The name of its group is its number and its place, which makes it
    /// unique.
    fn mark(&mut self, mark: AssertionMark) -> Result<(), RegexError> {
        let same =
            |other: &AssertionMark| AssertionMark { offset: mark.offset, ..other.clone() } == mark;
        let number = self.out.marks.iter().position(same).unwrap_or(self.out.marks.len());
        if number >= MAX_MARKS {
            let what = "so many conditions";
            return Err(RegexError::Unsupported { offset: mark.offset, what });
        }
        let _ = write!(self.out.text, "(?P<{MARK_PREFIX}{number}_{}>)", self.out.text.len());
        if number == self.out.marks.len() {
            self.out.marks.push(mark);
        }
        Ok(())
    }

    /// Writes the assertions `(?<=class)`, `(?<!class)`, `(?=class)`, `(?!class)`.
    fn class_mark(
        &mut self,
        offset: usize,
        class: &str,
        is_lookbehind: bool,
        negated: bool,
    ) -> Result<(), RegexError> {
        let (body, options) = (class.to_owned(), self.options);
        self.mark(AssertionMark { body, offset, options, is_lookbehind, negated })
    }

    /// Writes a word boundary: a character of words on one side of the position and none on the
    /// other.
    fn word_boundary(&mut self, at: usize, negated: bool) -> Result<(), RegexError> {
        self.out.text.push_str("(?:");
        self.class_mark(at, r"\w", true, false)?;
        self.class_mark(at, r"\w", false, !negated)?;
        self.out.text.push('|');
        self.class_mark(at, r"\w", true, true)?;
        self.class_mark(at, r"\w", false, negated)?;
        self.out.text.push(')');
        Ok(())
    }

    /// Writes `^` or `$`. In look-around that does not see that end of the text, it is an
    /// assertion.
    fn anchor(&mut self, at: usize, start: bool) -> Result<(), RegexError> {
        match (start, self.side) {
            (true, Side::After) => self.class_mark(at, "[^]", true, true),
            (false, Side::Before) => self.class_mark(at, "[^]", false, true),
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
        // Whether the last item may be repeated.
        let mut atom = false;
        while let Some((at, c)) = self.chars.next() {
            self.out.offsets.push((self.out.text.len(), at));
            let mut next_atom = true;
            match c {
                '\\' => match self.escape(at, false)? {
                    EscapeMeaning::Char(code) => self.literal(code),
                    EscapeMeaning::Class(inside) => {
                        let _ = write!(self.out.text, "[{inside}]");
                    }
                    EscapeMeaning::NotClass(inside) => {
                        let _ = write!(self.out.text, "[^{inside}]");
                    }
                    EscapeMeaning::Anchor { start } => {
                        self.anchor(at, start)?;
                        next_atom = false;
                    }
                    EscapeMeaning::Boundary { negated } => {
                        self.word_boundary(at, negated)?;
                        next_atom = false;
                    }
                },
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
        let Some(end) = rest.find('}') else { return Ok(None) };
        let inside = &rest[..end];
        let (min, max) =
            inside.split_once(',').map_or((inside, None), |(min, max)| (min, Some(max)));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if min.is_empty() || !digits(min) || !max.is_none_or(digits) {
            return Ok(None);
        }
        let parse = |s: &str| s.parse::<u32>().ok();
        let counts = match (parse(min), max) {
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
        let named = ["?<", "?P<"]
            .iter()
            .find_map(|open| rest.strip_prefix(open))
            .and_then(|name| name.split_once('>'))
            .map(|(name, _)| name.to_owned());
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
            let Range { start, end } = self.group_body(at)?;
            let (body, options) = (self.source[start..end].to_owned(), self.options);
            return self.mark(AssertionMark {
                body,
                offset: start,
                options,
                is_lookbehind,
                negated,
            });
        }
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
        let mut has_flags = false;
        let RegexOptions { mut dot, mut case, .. } = self.options;
        let default_dot = self.default_dot;
        let mut text = "(?".to_owned();
        self.skip(1);
        loop {
            match self.chars.next() {
                Some((_, '-')) if on => {
                    on = false;
                    has_flags = false;
                    continue;
                }
                Some((_, 'i')) => {
                    case = if on { Case::Insensitive } else { Case::Sensitive };
                    text.push_str(if on { "i" } else { "-i" });
                }
                Some((_, 's')) if on => dot = Dot::Any,
                // Undoes `(?s)`.
                Some((_, 's')) if default_dot == Dot::Any => dot = Dot::NoLineTerminators,
                Some((_, 's')) => dot = default_dot,
                Some((_, ':')) => {
                    self.outer.push(self.options);
                    text.push(':');
                    break;
                }
                Some((_, ')')) if has_flags => {
                    text.push(')');
                    break;
                }
                Some((place, 'm')) => {
                    let what = "the flag m; `^` and `$` are the ends of the text, \
                                lines begin after `\\n`";
                    return Err(RegexError::Unsupported { offset: place, what });
                }
                Some((place, 'x' | 'U' | 'u' | 'R' | 'a' | 'L')) => {
                    return Err(RegexError::Unsupported {
                        offset: place,
                        what: "a flag other than i and s",
                    });
                }
                _ => {
                    return Err(RegexError::Unsupported {
                        offset: at,
                        what: "an unknown kind of group",
                    });
                }
            }
            has_flags = true;
        }
        self.options = RegexOptions { dot, case, ..self.options };
        // A group with no flag but `s` is not passed on to `regex-syntax`.
        if text != "(?)" {
            self.out.text.push_str(&text);
        }
        Ok(())
    }

    /// Parses an escape, after its backslash.
    fn escape(&mut self, at: usize, in_class: bool) -> Result<EscapeMeaning, RegexError> {
        let unsupported = |what| Err(RegexError::Unsupported { offset: at, what });
        let Some((_, c)) = self.chars.next() else {
            return self.syntax(at, "a backslash at the end");
        };
        Ok(match c {
            'd' | 'w' | 's' => EscapeMeaning::Class(self.perl_class(c).into()),
            'D' | 'W' | 'S' => {
                EscapeMeaning::NotClass(self.perl_class(c.to_ascii_lowercase()).into())
            }
            'p' | 'P' => {
                let rest = self.rest();
                let Some(end) = rest.find('}').filter(|_| rest.starts_with('{')) else {
                    return self.syntax(at, r"a property escape needs braces: `\p{L}`");
                };
                let name = &rest[1..end];
                if name.is_empty()
                    || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '=')
                {
                    return self.syntax(at, "invalid property name");
                }
                let inside = format!("\\p{{{name}}}");
                self.skip(end + 1);
                self.out.tables += 1;
                if c == 'p' {
                    EscapeMeaning::Class(inside)
                } else {
                    EscapeMeaning::NotClass(inside)
                }
            }
            'b' if in_class => EscapeMeaning::Char(8),
            'b' | 'B' if !in_class => {
                if self.options.look_around == LookAround::Refused {
                    return unsupported(LOOK_AROUND_IN_TERMINAL);
                }
                EscapeMeaning::Boundary { negated: c == 'B' }
            }
            't' => EscapeMeaning::Char(9),
            'n' => EscapeMeaning::Char(10),
            'v' => EscapeMeaning::Char(11),
            'f' => EscapeMeaning::Char(12),
            'r' => EscapeMeaning::Char(13),
            'c' => match self.chars.next() {
                Some((_, letter)) if letter.is_ascii_alphabetic() => {
                    EscapeMeaning::Char(u32::from(letter) % 32)
                }
                _ => return self.syntax(at, "\\c needs a letter"),
            },
            '0' => {
                let digits = self.rest().bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b));
                let digits: Vec<u32> = digits.map(|b| u32::from(b - b'0')).collect();
                self.skip(digits.len());
                EscapeMeaning::Char(digits.iter().fold(0, |code, digit| 8 * code + digit))
            }
            '1'..='9' => return unsupported("backreference"),
            'k' => return unsupported("backreference"),
            'x' if self.rest().starts_with('{') => {
                return unsupported(r"`\x{...}`: write `\u{...}`");
            }
            'x' => match self.hex(2) {
                Some(code) => EscapeMeaning::Char(code),
                None => return self.syntax(at, "\\x needs two hexadecimal digits"),
            },
            'u' => EscapeMeaning::Char(self.unicode(at)?),
            'a' => EscapeMeaning::Char(7),
            'e' => EscapeMeaning::Char(27),
            'A' if !in_class => EscapeMeaning::Anchor { start: true },
            'z' if !in_class => EscapeMeaning::Anchor { start: false },
            c if c.is_ascii_alphabetic() => {
                let foreign = FOREIGN_ESCAPES.iter().find(|(letters, _)| letters.contains(c));
                return unsupported(foreign.map_or("an unknown escape", |(_, what)| what));
            }
            c => EscapeMeaning::Char(u32::from(c)),
        })
    }

    /// The inside of the class for `\d`, `\w` or `\s`.
    fn perl_class(&mut self, letter: char) -> &'static str {
        if self.options.classes == Classes::Unicode {
            self.out.tables += 1;
        }
        match (letter, self.options.classes) {
            ('d', Classes::Unicode) => r"\d",
            ('d', _) => "0-9",
            ('w', Classes::Unicode) => r"\w",
            ('w', _) => "0-9A-Za-z_",
            (_, Classes::Unicode) => r"\s",
            (_, Classes::Ascii) => ASCII_SPACE,
            (_, Classes::Ecma) => SPACE,
        }
    }

    /// Parses exactly `n` hexadecimal digits.
    fn hex(&mut self, n: usize) -> Option<u32> {
        let rest = self.rest();
        let digits = rest.get(..n).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.skip(n);
        Some(code)
    }

    /// Parses the rest of `\uXXXX`, `\u{...}` or a surrogate pair.
    fn unicode(&mut self, at: usize) -> Result<u32, RegexError> {
        let code = if self.rest().starts_with('{') {
            let rest = self.rest();
            let end = rest.find('}');
            let code = end.and_then(|end| u32::from_str_radix(&rest[1..end], 16).ok());
            let Some((code, end)) = code.zip(end) else {
                return self.syntax(at, "invalid code point escape");
            };
            self.skip(end + 1);
            code
        } else {
            let Some(first) = self.hex(4) else {
                return self.syntax(at, "\\u needs four hexadecimal digits");
            };
            if (0xD800..0xDC00).contains(&first) && self.rest().starts_with("\\u") {
                self.skip(2);
                match self.hex(4) {
                    Some(second) if (0xDC00..0xE000).contains(&second) => {
                        0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                    }
                    _ => first,
                }
            } else {
                first
            }
        };
        if char::from_u32(code).is_none() {
            return Err(RegexError::Unsupported { offset: at, what: "half of a surrogate pair" });
        }
        Ok(code)
    }

    /// Translates a class, after its `[`.
    fn class(&mut self, at: usize) -> Result<(), RegexError> {
        let negated = self.rest().starts_with('^');
        self.skip(usize::from(negated));
        if self.rest().starts_with(']') {
            self.skip(1);
            // `[]` matches nothing, `[^]` any code point.
            self.out.text.push_str(if negated {
                r"[\x{0}-\x{10FFFF}]"
            } else {
                r"[^\x{0}-\x{10FFFF}]"
            });
            return Ok(());
        }
        self.out.text.push_str(if negated { "[^" } else { "[" });
        loop {
            let Some((begin, c)) = self.chars.next() else {
                return self.syntax(at, "an unclosed class");
            };
            self.out.offsets.push((self.out.text.len(), begin));
            if c == ']' {
                break;
            }
            let rest = self.rest();
            let unsupported = |what| Err(RegexError::Unsupported { offset: begin, what });
            if c == '[' && rest.starts_with(':') && rest.contains(":]") {
                return unsupported("a POSIX class; write its characters: `[a-z]`");
            }
            if (c == '&' && rest.starts_with("&[")) || (c == '-' && rest.starts_with("-[")) {
                return unsupported("an operation on classes; write the characters that are left");
            }
            let low = self.class_atom(begin, c)?;
            let rest = self.rest();
            let is_range = rest.starts_with('-') && !rest.starts_with("-]") && rest.len() > 1;
            let EscapeMeaning::Char(low) = low else {
                self.class_set(low);
                continue;
            };
            self.literal(low);
            if !is_range {
                continue;
            }
            self.skip(1);
            let Some((begin, c)) = self.chars.next() else {
                return self.syntax(at, "an unclosed class");
            };
            match self.class_atom(begin, c)? {
                EscapeMeaning::Char(high) if high < low => {
                    return self.syntax(begin, "a class range out of order");
                }
                EscapeMeaning::Char(high) => {
                    self.out.text.push('-');
                    self.literal(high);
                }
                _ => return self.syntax(begin, "a class ends no range; write the hyphen as `\\-`"),
            }
        }
        self.out.text.push(']');
        Ok(())
    }

    /// Parses one item of a class.
    fn class_atom(&mut self, at: usize, c: char) -> Result<EscapeMeaning, RegexError> {
        if c == '\\' { self.escape(at, true) } else { Ok(EscapeMeaning::Char(u32::from(c))) }
    }

    /// Writes an item of a class.
    fn class_set(&mut self, set: EscapeMeaning) {
        match set {
            EscapeMeaning::Class(inside) => self.out.text.push_str(&inside),
            EscapeMeaning::NotClass(inside) => {
                let _ = write!(self.out.text, "[^{inside}]");
            }
            EscapeMeaning::Char(code) => self.literal(code),
            // `escape` does not return these inside a class.
            EscapeMeaning::Anchor { .. } | EscapeMeaning::Boundary { .. } => {}
        }
    }
}
