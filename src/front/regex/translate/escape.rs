//! Escapes and classes of patterns.

use std::fmt::Write;

use super::super::{Ambiguous, Classes, LookAround, RegexError};
use super::{LOOK_AROUND_IN_TERMINAL, Translator};
use crate::utf16::{SURROGATES, surrogate_pair};

/// `\s` of ECMA-262: WhiteSpace and LineTerminator.
const SPACE: &str = concat!(
    r"\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}",
    r"\x{3000}\x{FEFF}"
);

/// A class of no code point.
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// ASCII white space.
const ASCII_SPACE: &str = r"\t\n\x0B\x0C\r ";

/// Letters of escapes that only other engines have, with the error text.
const FOREIGN_ESCAPES: [(&str, &str); 6] = [
    ("AZz", r"an anchor of another engine: write `$`, which is the end of the text, or `^`"),
    ("hH", r"an escape that ECMA-262 does not have: write `[ \t]` or `[^ \t]`"),
    ("RN", r"an escape that ECMA-262 does not have: write `(?:\r\n|\n|\r)` or `[^\n]`"),
    ("QE", r"an escape that ECMA-262 does not have: write a backslash before each character"),
    ("U", r"an escape that ECMA-262 does not have: write `\u{...}`"),
    ("GKX", "an escape that ECMA-262 does not have"),
];

/// Signs in a class that other engines read as operations.
const CLASS_OPERATORS: [&str; 3] = ["&&", "--", "~~"];

/// Meaning of an escape.
pub(super) enum EscapeMeaning {
    /// One code point.
    Char(u32),
    /// The inside of a class, or of one that is negated.
    Class { inside: String, negated: bool },
    /// The beginning or the end of the text.
    Anchor { start: bool },
    /// A word boundary.
    Boundary { negated: bool },
}

impl Translator<'_> {
    /// Parses an escape, after its backslash.
    pub(super) fn escape(
        &mut self,
        at: usize,
        in_class: bool,
    ) -> Result<EscapeMeaning, RegexError> {
        let unsupported = |what| Err(RegexError::Unsupported { offset: at, what });
        let Some((_, c)) = self.chars.next() else {
            return self.syntax(at, "a backslash at the end");
        };
        Ok(match c {
            'd' | 'w' | 's' | 'D' | 'W' | 'S' => EscapeMeaning::Class {
                inside: self.perl_class(c.to_ascii_lowercase()).into(),
                negated: c.is_ascii_uppercase(),
            },
            'p' | 'P' => EscapeMeaning::Class { inside: self.property(at)?, negated: c == 'P' },
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
            '0' => EscapeMeaning::Char(self.octal()),
            '1'..='9' | 'k' => return unsupported("backreference"),
            'x' if self.rest().starts_with('{') => {
                return unsupported(r"`\x{...}`: write `\u{...}`");
            }
            'x' => match self.hex(2) {
                Some(code) => EscapeMeaning::Char(code),
                None => return self.syntax(at, "\\x needs two hexadecimal digits"),
            },
            'u' => EscapeMeaning::Char(self.unicode(at, in_class)?),
            'a' => EscapeMeaning::Char(7),
            'e' => EscapeMeaning::Char(27),
            'A' if !in_class => EscapeMeaning::Anchor { start: true },
            'z' if !in_class => EscapeMeaning::Anchor { start: false },
            '<' | '>' if !in_class && self.options.ambiguous == Ambiguous::Refused => {
                return unsupported(
                    "a word boundary or a character: write `<` or `>` without the backslash",
                );
            }
            c if c.is_ascii_alphabetic() => {
                let foreign = FOREIGN_ESCAPES.iter().find(|(letters, _)| letters.contains(c));
                return unsupported(foreign.map_or("an unknown escape", |(_, what)| what));
            }
            c => EscapeMeaning::Char(u32::from(c)),
        })
    }

    /// Parses the rest of `\p{...}` or `\P{...}`; returns the inside of the class of `\p{...}`.
    fn property(&mut self, at: usize) -> Result<String, RegexError> {
        let rest = self.rest();
        let Some(end) = rest.find('}').filter(|_| rest.starts_with('{')) else {
            return self.syntax(at, r"a property escape needs braces: `\p{L}`");
        };
        let name = &rest[1..end];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
        if name.is_empty() || !name.chars().all(is_name) {
            return self.syntax(at, "invalid property name");
        }
        let inside = format!("\\p{{{name}}}");
        self.skip(end + 1);
        self.out.tables += 1;
        Ok(inside)
    }

    /// Parses up to two octal digits, after a zero.
    fn octal(&mut self) -> u32 {
        let digits = self.rest().bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b));
        let digits: Vec<u32> = digits.map(|b| u32::from(b - b'0')).collect();
        self.skip(digits.len());
        digits.iter().fold(0, |code, digit| 8 * code + digit)
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

    /// Parses the rest of `\uXXXX`, `\u{...}` or a surrogate pair. In a class it may be half of a
    /// pair, which no text has.
    fn unicode(&mut self, at: usize, in_class: bool) -> Result<u32, RegexError> {
        let code = if self.rest().starts_with('{') {
            let rest = &self.rest()[1..];
            let end = rest.bytes().position(|b| !b.is_ascii_hexdigit()).unwrap_or(rest.len());
            let code = u32::from_str_radix(&rest[..end], 16).ok();
            let Some(code) = code.filter(|_| rest[end..].starts_with('}')) else {
                return self.syntax(at, "invalid code point escape");
            };
            self.skip(end + 2);
            code
        } else {
            let Some(first) = self.hex(4) else {
                return self.syntax(at, "\\u needs four hexadecimal digits");
            };
            let second = self.rest().strip_prefix("\\u").and_then(|rest| rest.get(..4));
            let second = second.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            match second.and_then(|second| surrogate_pair(first, second)) {
                Some(pair) => {
                    self.skip(6);
                    u32::from(pair)
                }
                None => first,
            }
        };
        match char::from_u32(code) {
            Some(_) => Ok(code),
            None if in_class && SURROGATES.contains(&code) => Ok(code),
            None if SURROGATES.contains(&code) => {
                Err(RegexError::Unsupported { offset: at, what: "half of a surrogate pair" })
            }
            None => self.syntax(at, "a code point above 10FFFF"),
        }
    }

    /// Translates a class, after its `[`.
    pub(super) fn class(&mut self, at: usize) -> Result<(), RegexError> {
        let negated = self.rest().starts_with('^');
        self.skip(usize::from(negated));
        if self.rest().starts_with(']') {
            self.skip(1);
            self.check_empty_class(at, negated)?;
            // `[]` matches nothing, `[^]` any code point.
            self.out.text.push_str(if negated { r"[\x{0}-\x{10FFFF}]" } else { NOTHING });
            return Ok(());
        }
        self.out.text.push_str(if negated { "[^" } else { "[" });
        // Whether a hyphen here stands after a class, and whether the next item follows one.
        let (mut after_set, mut after_hyphen) = (false, false);
        loop {
            let Some((begin, c)) = self.chars.next() else {
                return self.syntax(at, "an unclosed class");
            };
            self.out.offsets.push((self.out.text.len(), begin));
            if c == ']' {
                break;
            }
            self.check_ambiguous(begin)?;
            if c == '-' && std::mem::take(&mut after_set) {
                self.literal(u32::from(c));
                after_hyphen = true;
                continue;
            }
            let low = self.class_atom(begin, c)?;
            let rest = self.rest();
            let is_range = rest.starts_with('-') && !rest.starts_with("-]") && rest.len() > 1;
            let follows_hyphen = std::mem::take(&mut after_hyphen);
            let EscapeMeaning::Char(low) = low else {
                self.class_set(low);
                after_set = true;
                continue;
            };
            after_set = false;
            if is_range && follows_hyphen {
                let reason = "a class begins no range; write the hyphen after it as `\\-`";
                return self.syntax(begin, reason);
            }
            let high = if is_range { self.range_end(at, low)? } else { low };
            self.class_range(low, high);
        }
        self.out.text.push(']');
        Ok(())
    }

    /// Rejects `[]` and `[^]`, which have been read, where a further bracket follows: in other
    /// engines that one ends the class, and the first is a character.
    fn check_empty_class(&mut self, offset: usize, negated: bool) -> Result<(), RegexError> {
        let is_refused = self.options.ambiguous == Ambiguous::Refused;
        if is_refused && first_unescaped(self.rest(), ']').is_some() {
            let what = if negated {
                "any character, or a class that begins with a bracket in other engines: write \
                 `[\\s\\S]`, or the bracket as `\\]`"
            } else {
                "no character, or a class that begins with a bracket in other engines: write the \
                 bracket as `\\]`"
            };
            return Err(RegexError::Unsupported { offset, what });
        }
        Ok(())
    }

    /// Parses the rest of a range in the class at `at`, after its first code point.
    fn range_end(&mut self, at: usize, low: u32) -> Result<u32, RegexError> {
        let hyphen = self.source.len() - self.rest().len();
        self.check_ambiguous(hyphen)?;
        self.skip(1);
        let Some((begin, c)) = self.chars.next() else {
            return self.syntax(at, "an unclosed class");
        };
        match self.class_atom(begin, c)? {
            EscapeMeaning::Char(high) if high < low => {
                self.syntax(begin, "a class range out of order")
            }
            EscapeMeaning::Char(high) => Ok(high),
            _ => self.syntax(begin, "a class ends no range; write the hyphen as `\\-`"),
        }
    }

    /// Writes a range in a class, without surrogates at its ends.
    fn class_range(&mut self, mut low: u32, mut high: u32) {
        if SURROGATES.contains(&low) {
            low = SURROGATES.end;
        }
        if SURROGATES.contains(&high) {
            high = SURROGATES.start - 1;
        }
        if low > high {
            self.out.text.push_str(NOTHING);
            return;
        }
        self.literal(low);
        if low < high {
            self.out.text.push('-');
            self.literal(high);
        }
    }

    /// Rejects what other engines read as a POSIX class, an operation or a class at this offset
    /// within a class.
    fn check_ambiguous(&mut self, offset: usize) -> Result<(), RegexError> {
        let unsupported = |what| Err(RegexError::Unsupported { offset, what });
        let text = &self.source[offset..];
        if text.starts_with("[:") && offset < self.posix_end {
            return unsupported("a POSIX class; write its characters: `[a-z]`");
        }
        let is_refused = self.options.ambiguous == Ambiguous::Refused;
        if text.starts_with("&&[")
            || text.starts_with("--[")
            || is_refused && CLASS_OPERATORS.iter().any(|sign| text.starts_with(sign))
        {
            return unsupported(
                "an operation on classes; write the characters that are left, or escape the \
                 signs: `\\&\\&`, `\\-\\-`, `\\~\\~`",
            );
        }
        if is_refused && text.starts_with('[') && self.may_nest {
            self.may_nest = closes_nested_classes(text);
            if self.may_nest {
                return unsupported("a class in a class; write its characters, or escape: `\\[`");
            }
        }
        Ok(())
    }

    /// Parses one item of a class.
    fn class_atom(&mut self, at: usize, c: char) -> Result<EscapeMeaning, RegexError> {
        if c == '\\' { self.escape(at, true) } else { Ok(EscapeMeaning::Char(u32::from(c))) }
    }

    /// Writes an item of a class.
    fn class_set(&mut self, set: EscapeMeaning) {
        match set {
            EscapeMeaning::Class { inside, negated: false } => self.out.text.push_str(&inside),
            EscapeMeaning::Class { inside, negated: true } => {
                let _ = write!(self.out.text, "[^{inside}]");
            }
            EscapeMeaning::Char(code) => self.literal(code),
            // `escape` does not return these inside a class.
            EscapeMeaning::Anchor { .. } | EscapeMeaning::Boundary { .. } => {}
        }
    }
}

/// The offset of a character that has no backslash before it.
fn first_unescaped(text: &str, sign: char) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == sign {
            return Some(at);
        }
        if c == '\\' {
            chars.next();
        }
    }
    None
}

/// Whether a text is a regular expression of JavaScript, `/a+/i` or `/^a$/`, rather than a path. A
/// slash inside has a backslash, or stands in a class. Without an anchor, it has flags and a sign
/// of expressions: `/usr/`, `/dev/sd` and `/.*/` are paths.
pub(in crate::front) fn is_javascript_literal(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('/') else { return false };
    let (mut chars, mut in_class) = (inside.char_indices(), false);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => {
                let (body, flags) = (&inside[..at], &inside[at + 1..]);
                let are_flags = flags
                    .char_indices()
                    .all(|(at, c)| "dgimsuvy".contains(c) && !flags[..at].contains(c));
                let is_anchored = body.starts_with('^') || body.ends_with('$');
                let has_sign = body.contains(['\\', '[', '(', '+', '*', '?', '|', '{', '^', '$']);
                return are_flags && (is_anchored || has_sign && !flags.is_empty());
            }
            _ => {}
        }
    }
    false
}

/// Whether both classes end if the `[` at the beginning of the text begins a class in a class.
/// Otherwise no engine reads it so.
fn closes_nested_classes(text: &str) -> bool {
    let mut depth = 1;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or(""),
            '[' => {
                depth += 1;
                rest = rest.strip_prefix('^').unwrap_or(rest);
                // A bracket at the beginning of a class is a character.
                rest = rest.strip_prefix(']').unwrap_or(rest);
            }
            ']' if depth == 1 => return true,
            ']' => depth -= 1,
            _ => {}
        }
    }
    false
}
