//! ECMA-262 pattern syntax to `regex-syntax` syntax, with the meaning ECMA-262 gives it.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::CharIndices;

use super::RegexError;

/// `\s` of ECMA-262: WhiteSpace and LineTerminator.
const SPACE: &str = r"\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";

/// A translated pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// The pattern in `regex-syntax` syntax.
    pub text: String,
    /// `(offset in text, offset in source)`, ascending.
    offsets: Vec<(usize, usize)>,
}

impl Translated {
    /// Where in the source the piece at this offset of the text came from.
    pub fn source_offset(&self, offset: usize) -> usize {
        let i = self.offsets.partition_point(|&(text, _)| text <= offset);
        i.checked_sub(1).map_or(0, |i| self.offsets[i].1)
    }
}

/// Rewrites an ECMA-262 pattern (as with the `u` flag where the two differ, but lenient about needless escapes and literal
/// braces as without it). Refuses look-around, word boundaries, backreferences, flags and lone surrogates.
pub fn translate(source: &str) -> Result<Translated, RegexError> {
    let out = Translated { text: String::with_capacity(source.len() + 8), offsets: Vec::new() };
    let mut shim = Shim { source, chars: source.char_indices().peekable(), out };
    shim.pattern()?;
    Ok(shim.out)
}

struct Shim<'s> {
    source: &'s str,
    chars: Peekable<CharIndices<'s>>,
    out: Translated,
}

/// What an escape stands for.
enum Escape {
    /// One code point.
    Char(u32),
    /// The inside of a class.
    Class(String),
    /// The complement of the inside of a class.
    NotClass(String),
}

impl Shim<'_> {
    fn syntax<T>(&self, offset: usize, reason: &str) -> Result<T, RegexError> {
        Err(RegexError::Syntax { offset, reason: reason.to_owned() })
    }

    fn literal(&mut self, code: u32) {
        let _ = write!(self.out.text, "\\x{{{code:X}}}");
    }

    fn rest(&mut self) -> &str {
        let at = self.chars.peek().map_or(self.source.len(), |&(i, _)| i);
        &self.source[at..]
    }

    fn skip(&mut self, chars: usize) {
        for _ in 0..chars {
            self.chars.next();
        }
    }

    fn pattern(&mut self) -> Result<(), RegexError> {
        // Whether a quantifier may follow.
        let mut atom = false;
        while let Some((at, c)) = self.chars.next() {
            self.out.offsets.push((self.out.text.len(), at));
            let mut next_atom = true;
            match c {
                '\\' => match self.escape(at, false)? {
                    Escape::Char(code) => self.literal(code),
                    Escape::Class(inside) => {
                        let _ = write!(self.out.text, "[{inside}]");
                    }
                    Escape::NotClass(inside) => {
                        let _ = write!(self.out.text, "[^{inside}]");
                    }
                },
                '[' => self.class(at)?,
                '.' => self.out.text.push_str(r"[^\n\r\x{2028}\x{2029}]"),
                '^' => {
                    self.out.text.push_str(r"\A");
                    next_atom = false;
                }
                '$' => {
                    self.out.text.push_str(r"\z");
                    next_atom = false;
                }
                '(' => {
                    self.group(at)?;
                    next_atom = false;
                }
                ')' => self.out.text.push(')'),
                '|' => {
                    self.out.text.push('|');
                    next_atom = false;
                }
                '*' | '+' | '?' => {
                    if !atom {
                        return self.syntax(at, "nothing to repeat");
                    }
                    self.out.text.push(c);
                    self.lazy();
                    next_atom = false;
                }
                '{' => match self.counts(at)? {
                    Some(counts) if atom => {
                        self.out.text.push_str(&counts);
                        self.lazy();
                        next_atom = false;
                    }
                    Some(_) => return self.syntax(at, "nothing to repeat"),
                    None => self.literal(u32::from(c)),
                },
                // Letters, digits and spaces mean themselves to both; anything else is written by code.
                c if c.is_ascii_alphanumeric() || c == ' ' || c == '_' => self.out.text.push(c),
                c => self.literal(u32::from(c)),
            }
            atom = next_atom;
        }
        Ok(())
    }

    fn lazy(&mut self) {
        // Laziness does not change the language.
        if self.rest().starts_with('?') {
            self.skip(1);
        }
    }

    /// `{n}`, `{n,}` or `{n,m}` behind a `{`; anything else is a literal brace.
    fn counts(&mut self, at: usize) -> Result<Option<String>, RegexError> {
        let rest = self.rest();
        let Some(end) = rest.find('}') else { return Ok(None) };
        let inside = &rest[..end];
        let (min, max) = inside.split_once(',').map_or((inside, None), |(min, max)| (min, Some(max)));
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

    fn group(&mut self, at: usize) -> Result<(), RegexError> {
        let unsupported = |what| Err(RegexError::Unsupported { offset: at, what });
        let rest = self.rest();
        if !rest.starts_with('?') {
            self.out.text.push_str("(?:");
            return Ok(());
        }
        if rest.starts_with("?=") || rest.starts_with("?!") {
            return unsupported("look-ahead");
        }
        if rest.starts_with("?<=") || rest.starts_with("?<!") {
            return unsupported("look-behind");
        }
        let skip = if rest.starts_with("?:") {
            2
        } else if rest.starts_with("?<")
            && let Some(end) = rest.find('>')
        {
            rest[..=end].chars().count()
        } else {
            return unsupported("flags or an unknown kind of group");
        };
        self.skip(skip);
        self.out.text.push_str("(?:");
        Ok(())
    }

    /// An escape behind its backslash.
    fn escape(&mut self, at: usize, in_class: bool) -> Result<Escape, RegexError> {
        let unsupported = |what| Err(RegexError::Unsupported { offset: at, what });
        let Some((_, c)) = self.chars.next() else {
            return self.syntax(at, "a backslash at the end");
        };
        Ok(match c {
            'd' => Escape::Class("0-9".into()),
            'D' => Escape::NotClass("0-9".into()),
            'w' => Escape::Class("0-9A-Za-z_".into()),
            'W' => Escape::NotClass("0-9A-Za-z_".into()),
            's' => Escape::Class(SPACE.into()),
            'S' => Escape::NotClass(SPACE.into()),
            'p' | 'P' => {
                let rest = self.rest();
                let Some(end) = rest.find('}').filter(|_| rest.starts_with('{')) else {
                    return self.syntax(at, "a property escape needs braces");
                };
                let name = &rest[1..end];
                if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '=') {
                    return self.syntax(at, "invalid property name");
                }
                let inside = format!("\\p{{{name}}}");
                self.skip(end + 1);
                if c == 'p' { Escape::Class(inside) } else { Escape::NotClass(inside) }
            }
            'b' if in_class => Escape::Char(8),
            'b' | 'B' if !in_class => return unsupported("word boundary"),
            't' => Escape::Char(9),
            'n' => Escape::Char(10),
            'v' => Escape::Char(11),
            'f' => Escape::Char(12),
            'r' => Escape::Char(13),
            'c' => match self.chars.next() {
                Some((_, letter)) if letter.is_ascii_alphabetic() => Escape::Char(u32::from(letter) % 32),
                _ => return self.syntax(at, "\\c needs a letter"),
            },
            '0' if !self.rest().starts_with(|c: char| c.is_ascii_digit()) => Escape::Char(0),
            '0'..='9' => return unsupported("backreference or octal escape"),
            'k' => return unsupported("backreference"),
            'x' => match self.hex(2) {
                Some(code) => Escape::Char(code),
                None => return self.syntax(at, "\\x needs two hexadecimal digits"),
            },
            'u' => Escape::Char(self.unicode(at)?),
            'A' | 'Z' | 'z' | 'G' | 'Q' | 'E' | 'h' | 'H' | 'R' | 'X' | 'K' | 'a' | 'e' => {
                return unsupported("an escape that ECMA-262 does not have");
            }
            c => Escape::Char(u32::from(c)),
        })
    }

    /// Exactly `n` hexadecimal digits.
    fn hex(&mut self, n: usize) -> Option<u32> {
        let rest = self.rest();
        let digits = rest.get(..n).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.skip(n);
        Some(code)
    }

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

    /// A class behind its `[`.
    fn class(&mut self, at: usize) -> Result<(), RegexError> {
        let negated = self.rest().starts_with('^');
        self.skip(usize::from(negated));
        if self.rest().starts_with(']') {
            self.skip(1);
            // `[]` matches nothing, `[^]` any code point.
            self.out.text.push_str(if negated { r"[\x{0}-\x{10FFFF}]" } else { r"[^\x{0}-\x{10FFFF}]" });
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
            let low = self.class_atom(begin, c)?;
            let rest = self.rest();
            let is_range = rest.starts_with('-') && !rest.starts_with("-]") && rest.len() > 1;
            let Escape::Char(low) = low else {
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
                Escape::Char(high) if high < low => return self.syntax(begin, "a class range out of order"),
                Escape::Char(high) => {
                    self.out.text.push('-');
                    self.literal(high);
                }
                set => {
                    // `[a-\d]`: the hyphen is itself.
                    self.literal(u32::from('-'));
                    self.class_set(set);
                }
            }
        }
        self.out.text.push(']');
        Ok(())
    }

    fn class_atom(&mut self, at: usize, c: char) -> Result<Escape, RegexError> {
        if c == '\\' { self.escape(at, true) } else { Ok(Escape::Char(u32::from(c))) }
    }

    fn class_set(&mut self, set: Escape) {
        match set {
            Escape::Class(inside) => self.out.text.push_str(&inside),
            Escape::NotClass(inside) => {
                let _ = write!(self.out.text, "[^{inside}]");
            }
            Escape::Char(code) => self.literal(code),
        }
    }
}
