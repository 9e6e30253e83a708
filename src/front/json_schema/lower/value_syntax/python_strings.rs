//! Strings of Python.

use super::super::SchemaLowering;
use super::super::memo::CommonRule;
use super::TextSpelling;
use crate::front::regex::{CountedDfa, SCALARS, spell_not_ascii};
use crate::fsm::ByteSet;
use crate::ids::RuleId;
use crate::ir::{Except, Expr, Literal};

/// The quotes of Python strings.
const QUOTES: [u8; 2] = [b'"', b'\''];

/// A string between quotes, in both kinds. `body`: the text of the string in a kind.
fn quoted(mut body: impl FnMut(u8) -> Expr) -> Expr {
    Expr::alt(QUOTES.map(|quote| Expr::seq([quote_expr(quote), body(quote), quote_expr(quote)])))
}

/// One string.
pub(super) fn constant(text: &str) -> Expr {
    let chars = text.chars().map(u32::from);
    quoted(|quote| Expr::seq(chars.clone().map(|c| python_spell(&[(c, c)], quote))))
}

/// Strings with a number of code points within the bounds.
pub(super) fn of_length(min: u32, max: Option<u32>) -> Expr {
    quoted(|quote| Expr::repeat(python_char(quote), min, max))
}

/// Whether a text has no character that is escaped.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = QUOTES.map(python_plain);
    text.bytes().all(|byte| plain.iter().all(|plain| plain.contains(byte)))
}

/// One quote.
fn quote_expr(quote: u8) -> Expr {
    Expr::bytes(&[quote])
}

/// The ASCII characters that stand for themselves in a Python string.
fn python_plain(quote: u8) -> ByteSet {
    let mut plain = ByteSet::range(0x20, 0x7E);
    plain.remove(quote);
    plain.remove(b'\\');
    plain
}

/// One code point of an unconstrained Python string, in the usual spellings.
fn python_char(quote: u8) -> Expr {
    let plain = python_plain(quote);
    let hex = ByteSet::from_bytes(b"0123456789abcdefABCDEF");
    let not_d = ByteSet::from_bytes(b"0123456789abcefABCEF");
    let unit = |first: ByteSet, second: ByteSet| {
        let digits = [first, second, hex, hex].map(Expr::Class);
        Expr::seq([Expr::text("u")].into_iter().chain(digits))
    };
    let scalar = Expr::alt([
        unit(not_d, hex),
        unit(ByteSet::from_bytes(b"dD"), ByteSet::from_bytes(b"01234567")),
    ]);
    let escape = Expr::alt([
        Expr::Class(ByteSet::from_bytes(b"\\\"'nrtbf")),
        Expr::seq([Expr::text("x"), Expr::Class(hex), Expr::Class(hex)]),
        scalar,
    ]);
    Expr::alt([
        Expr::Class(plain),
        Expr::code_points('\u{80}', char::MAX),
        Expr::seq([Expr::text("\\"), escape]),
    ])
}

/// One code point of the ranges, which are sorted, in a Python string, escaped only where required.
pub(super) fn python_spell(ranges: &[(u32, u32)], quote: u8) -> Expr {
    let (mut plain, mut short, mut hex) = (ByteSet::EMPTY, ByteSet::EMPTY, Vec::new());
    for &(lo, hi) in ranges {
        for code in lo..=hi.min(0x7F) {
            let byte = code as u8;
            match byte {
                b'\n' => short.insert(b'n'),
                b'\r' => short.insert(b'r'),
                b'\t' => short.insert(b't'),
                8 => short.insert(b'b'),
                12 => short.insert(b'f'),
                b'\\' => short.insert(byte),
                _ if byte == quote => short.insert(byte),
                0x20..=0x7E => plain.insert(byte),
                _ => hex.push(Expr::text(&format!("x{byte:02x}"))),
            }
        }
    }
    let escape = Expr::alt([Expr::class(short)].into_iter().chain(hex));
    let escape = Expr::seq([Expr::text("\\"), escape]);
    Expr::alt([Expr::class(plain), spell_not_ascii(ranges), escape])
}

impl SchemaLowering<'_, '_> {
    /// All Python strings but these (sorted), which are spelled without escapes.
    pub(in super::super) fn python_complement(&mut self, excluded: &[&str]) -> Expr {
        let words: Vec<Literal> = excluded.iter().map(|name| name.as_bytes().into()).collect();
        Expr::alt(QUOTES.map(|quote| {
            let (leave, close) = (python_plain(quote), [quote][..].into());
            let (tail, other) = (self.python_tail(quote), self.python_special_tail(quote));
            let except = Except { words: words.clone(), leave, tail, other, close };
            Expr::seq([quote_expr(quote), Expr::Except(Box::new(except))])
        }))
    }

    /// The rule of the rest of an unconstrained Python string, quote included.
    fn python_tail(&mut self, quote: u8) -> RuleId {
        self.common_rule(CommonRule::PythonTail(quote), |_| {
            Expr::seq([Expr::star(python_char(quote)), quote_expr(quote)])
        })
    }

    /// The rule of a character that is not plain ASCII (escaped only where required), and the rest
    /// of an unconstrained Python string.
    fn python_special_tail(&mut self, quote: u8) -> RuleId {
        let code = u32::from;
        let [low, high] = SCALARS;
        let special = [(0, 0x1F), (code(quote), code(quote)), (code(b'\\'), code(b'\\'))];
        let special = special.into_iter().chain([(0x7F, low.1), high]).collect::<Vec<_>>();
        self.common_rule(CommonRule::PythonSpecialTail(quote), |this| {
            Expr::seq([python_spell(&special, quote), Expr::Ref(this.python_tail(quote))])
        })
    }

    /// The texts of automata, each with bounds on the length, as Python strings.
    pub(super) fn python_text(&mut self, parts: &[CountedDfa]) -> Expr {
        quoted(|quote| self.spell_parts(parts, TextSpelling::Python(quote)))
    }
}
