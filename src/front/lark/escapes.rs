//! Rewrites escapes and classes of Python and ECMA-262 regular expressions to the syntax of the
//! Rust `regex` crate.

use std::fmt::Write;

use crate::utf16::surrogate_pair;

/// A rewritten pattern.
pub(super) struct RewrittenPattern {
    pub(super) text: String,
    /// `(offset in text, offset in the pattern)`, ascending.
    offsets: Vec<(usize, usize)>,
}

impl RewrittenPattern {
    /// The offset in the pattern of the construct at an offset of the text.
    pub(super) fn source_offset(&self, offset: usize) -> usize {
        let i = self.offsets.partition_point(|&(text, _)| text <= offset);
        i.checked_sub(1).map_or(0, |i| self.offsets[i].1)
    }
}

/// Rewrites `\0`, `\cX`, `\uD83D\uDE00`, `[^]` and `[]`, and within classes `\b` and `[`, to Rust
/// syntax. Linear.
pub(super) fn rewrite(pattern: &str) -> RewrittenPattern {
    let mut out =
        RewrittenPattern { text: String::with_capacity(pattern.len() + 16), offsets: Vec::new() };
    let mut in_class = false;
    let mut at = 0;
    while let Some(c) = pattern[at..].chars().next() {
        out.offsets.push((out.text.len(), at));
        let rest = &pattern[at..];
        let length = match c {
            '\\' => rewrite_escape(rest, in_class, &mut out.text),
            '[' if in_class && !rest.starts_with("[:") => {
                out.text.push_str("\\[");
                1
            }
            '[' if rest.starts_with("[^]") => {
                out.text.push_str(r"[\x{0}-\x{10FFFF}]");
                3
            }
            '[' if rest.starts_with("[]") => {
                out.text.push_str(r"[^\x{0}-\x{10FFFF}]");
                2
            }
            '[' if !in_class => {
                in_class = true;
                out.text.push('[');
                1
            }
            c => {
                in_class &= c != ']';
                out.text.push(c);
                c.len_utf8()
            }
        };
        at += length;
    }
    out
}

/// Rewrites the escape at the beginning of `rest`; returns its length.
fn rewrite_escape(rest: &str, in_class: bool, out: &mut String) -> usize {
    let next = rest[1..].chars().next();
    let code =
        |digits: Option<&str>| digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match next {
        Some('0') if !rest[2..].starts_with(|c: char| c.is_ascii_digit()) => {
            out.push_str("\\x00");
            2
        }
        Some('b') if in_class => {
            out.push_str("\\x08");
            2
        }
        Some('c') => match rest[2..].chars().next().filter(char::is_ascii_alphabetic) {
            Some(letter) => {
                let _ = write!(out, "\\x{:02X}", u32::from(letter) % 32);
                3
            }
            None => {
                out.push_str("\\c");
                2
            }
        },
        Some('u') if rest.get(6..8) == Some("\\u") => {
            let units = code(rest.get(2..6)).zip(code(rest.get(8..12)));
            match units.and_then(|(high, low)| surrogate_pair(high, low)) {
                Some(code_point) => {
                    let _ = write!(out, "\\x{{{:X}}}", u32::from(code_point));
                    12
                }
                None => {
                    out.push_str("\\u");
                    2
                }
            }
        }
        Some(c) => {
            out.push('\\');
            out.push(c);
            1 + c.len_utf8()
        }
        None => {
            out.push('\\');
            1
        }
    }
}
