//! JSON string escapes: the spellings of code points in JSON strings, as expressions over bytes.

use super::super::options::{Escapes, NonAscii};
use crate::cache::ProcessCell;
use crate::front::regex::SCALARS;
use crate::fsm::{ByteSet, Dfa, DfaBuilder, Digit, Edge, NumeralBuilder, TooLarge};
use crate::hash::HashMap;
use crate::ir::{Expr, Literal, regular};
use crate::spec::json::{short_escape, write_string};

/// Limit on the states of the automata that are built once per process; none reaches it.
const MAX_STATES: usize = 1_000;

/// The spellings that code points have in strings with constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Spellings of code points that are not ASCII.
    pub(super) non_ascii: NonAscii,
    /// Which code points may be escaped.
    pub(super) escapes: Escapes,
}

/// ASCII bytes that stand for themselves in a JSON string.
pub(super) fn plain_ascii() -> ByteSet {
    let mut set = ByteSet::range(0x20, 0x7F);
    set.remove(b'"');
    set.remove(b'\\');
    set
}

/// An expression that every schema uses, as an automaton that is built once per process.
fn cached_automaton(
    make: fn(NonAscii) -> Expr,
    cells: &'static [ProcessCell<Expr>; 3],
    non_ascii: NonAscii,
) -> Expr {
    let build = || {
        let expr = make(non_ascii);
        regular::automaton(&expr, &[], MAX_STATES)
            .map_or(expr, |dfa| Expr::Automaton(dfa.minimize().into()))
    };
    cells[non_ascii as usize].get_or_make(build).clone()
}

/// One code point of a JSON string, in any spelling.
fn any_char_expr(non_ascii: NonAscii) -> Expr {
    // What has no constraints may be escaped.
    let non_ascii = if non_ascii == NonAscii::Raw { NonAscii::Either } else { non_ascii };
    Spelling { non_ascii, escapes: Escapes::Any }.spell(&SCALARS)
}

impl Spelling {
    /// A text as a JSON string, quotes included.
    pub(super) fn literal(self, text: &str) -> Expr {
        if self.is_single(text) {
            return Expr::Bytes(single(text));
        }
        let quote = || Expr::text("\"");
        let chars = text.chars().map(|c| self.spell(&[(u32::from(c), u32::from(c))]));
        Expr::seq([quote()].into_iter().chain(chars).chain([quote()]))
    }

    /// Whether a text has exactly one spelling, that of [`write_string`].
    pub(super) fn is_single(self, text: &str) -> bool {
        let raw = self.non_ascii == NonAscii::Raw;
        text.is_empty()
            || self.escapes == Escapes::Required
                && text.chars().all(|c| if c.is_ascii() { u32::from(c) >= 0x20 } else { raw })
    }

    /// Whether the only spelling of a text is the text itself.
    pub(super) fn is_plain(self, text: &str) -> bool {
        let plain = plain_ascii();
        self.escapes == Escapes::Required && text.bytes().all(|byte| plain.contains(byte))
    }

    /// One code point of an unconstrained JSON string, in any spelling.
    pub(super) fn any_char(self) -> Expr {
        static CELLS: [ProcessCell<Expr>; 3] = [const { ProcessCell::new() }; 3];
        cached_automaton(any_char_expr, &CELLS, self.non_ascii)
    }

    /// The rest of an unconstrained string: any code points, then the closing quote.
    pub(super) fn free_tail(self) -> Expr {
        static CELLS: [ProcessCell<Expr>; 3] = [const { ProcessCell::new() }; 3];
        cached_automaton(
            |non_ascii| Expr::seq([Expr::star(any_char_expr(non_ascii)), Expr::text("\"")]),
            &CELLS,
            self.non_ascii,
        )
    }

    /// A code point that is not plain ASCII, escaped only where required, then the rest of an
    /// unconstrained string.
    pub(super) fn special_tail(self) -> Expr {
        static CELLS: [ProcessCell<Expr>; 3] = [const { ProcessCell::new() }; 3];
        const RANGES: [(u32, u32); 5] =
            [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x80, 0xD7FF), (0xE000, 0x10FFFF)];
        let tail = |non_ascii| {
            let first = Spelling { non_ascii, escapes: Escapes::Required }.spell(&RANGES);
            Expr::seq([first, Expr::star(any_char_expr(non_ascii)), Expr::text("\"")])
        };
        cached_automaton(tail, &CELLS, self.non_ascii)
    }

    /// One code point of the ranges, in all spellings that the options allow. Ranges are sorted and
    /// disjoint.
    pub(super) fn spell(self, ranges: &[(u32, u32)]) -> Expr {
        let (plain, rest) = self.parts(ranges);
        Expr::alt([Expr::class(plain), rest])
    }

    /// As [`Spelling::spell`], in two parts: plain ASCII bytes, and an automaton of all other
    /// spellings.
    pub(super) fn parts(self, ranges: &[(u32, u32)]) -> (ByteSet, Expr) {
        let (mut ascii, mut short, mut units) = (ByteSet::EMPTY, ByteSet::EMPTY, Vec::new());
        let any = self.escapes == Escapes::Any;
        for &(lo, hi) in ranges {
            for c in lo..=hi.min(0x7F) {
                let byte = c as u8;
                if plain_ascii().contains(byte) {
                    ascii.insert(byte);
                }
                match short_escape(char::from(byte)) {
                    Some(escape) => short.insert(escape.as_bytes()[1]),
                    None if byte == b'/' && any => short.insert(byte),
                    None => {}
                }
                if any || byte < 0x20 {
                    units.push((c, c));
                }
            }
            if hi >= 0x80 && self.non_ascii != NonAscii::Raw {
                units.push((lo.max(0x80), hi));
            }
        }
        let mut build = NumeralBuilder::new();
        let (mut first, mut escape) = (Vec::new(), unicode_escapes(&mut build, &units));
        if self.non_ascii != NonAscii::Escaped {
            build.utf8(ranges, &mut first);
        }
        let to = build.end();
        escape.extend(short.iter().map(|byte| byte_edge(byte, to)));
        if !escape.is_empty() {
            first.push(byte_edge(b'\\', build.state(escape)));
        }
        let none = first.is_empty();
        (ascii, if none { Expr::Never } else { Expr::Automaton(build.finish(first).into()) })
    }

    /// Lowers an acyclic automaton over code points to an automaton over the bytes of its texts as
    /// JSON strings. Fails past `limit` states.
    pub(super) fn words(self, texts: &Dfa, limit: usize) -> Result<Dfa, TooLarge> {
        let mut b = DfaBuilder::new();
        let start = b.state(false);
        let states: Vec<u32> = (0..texts.len()).map(|_| b.state(false)).collect();
        let end = b.state(true);
        let edge = |b: &mut DfaBuilder, from, byte: u8, to| {
            b.edge(from, u32::from(byte), u32::from(byte), to)
        };
        edge(&mut b, start, b'"', states[0]);
        // States within the spelling of a character, by their predecessor and the symbol read.
        // Spellings of one state that begin alike share them.
        let mut inner: HashMap<(u32, u8), u32> = HashMap::default();
        let mut spellings = Vec::new();
        for (state, &from) in states.iter().enumerate() {
            inner.clear();
            if texts.is_final(state as u32) {
                edge(&mut b, from, b'"', end);
            }
            for e in texts.edges(state as u32) {
                for c in (e.lo..=e.hi).filter_map(char::from_u32) {
                    self.spellings(c, &mut spellings);
                    for spelling in &spellings {
                        let Some((last, first)) = spelling.split_last() else { continue };
                        let mut at = from;
                        for &symbol in first {
                            at = *inner.entry((at, symbol.code())).or_insert_with(|| {
                                let next = b.state(false);
                                symbol.bytes().for_each(|byte| edge(&mut b, at, byte, next));
                                next
                            });
                        }
                        last.bytes().for_each(|byte| edge(&mut b, at, byte, states[e.to as usize]));
                    }
                }
            }
            if b.len() > limit {
                return Err(TooLarge::States { limit });
            }
        }
        Ok(b.finish())
    }

    /// The spellings of one character. None is a prefix of another.
    fn spellings(self, c: char, out: &mut Vec<Vec<SpellingSymbol>>) {
        out.clear();
        let raw = if c.is_ascii() {
            plain_ascii().contains(c as u8)
        } else {
            self.non_ascii != NonAscii::Escaped
        };
        if raw {
            out.push(c.encode_utf8(&mut [0; 4]).bytes().map(SpellingSymbol::Byte).collect());
        }
        let any = self.escapes == Escapes::Any;
        let short = short_escape(c).or((c == '/' && any).then_some("\\/"));
        out.extend(short.map(|text| text.bytes().map(SpellingSymbol::Byte).collect()));
        let escaped =
            if c.is_ascii() { any || u32::from(c) < 0x20 } else { self.non_ascii != NonAscii::Raw };
        if escaped {
            let unit = |unit: &u16| {
                let digits =
                    [12, 8, 4, 0].map(|shift| SpellingSymbol::Hex((unit >> shift & 15) as u8));
                [SpellingSymbol::Byte(b'\\'), SpellingSymbol::Byte(b'u')]
                    .into_iter()
                    .chain(digits)
                    .collect::<Vec<_>>()
            };
            out.push(c.encode_utf16(&mut [0; 2]).iter().flat_map(unit).collect());
        }
    }
}

/// The literal of a text as [`write_string`] spells it.
pub(super) fn single(text: &str) -> Literal {
    let plain = plain_ascii();
    if text.bytes().all(|byte| plain.contains(byte)) {
        return Literal::concat(&[b"\"", text.as_bytes(), b"\""]);
    }
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out.into_bytes().into()
}

/// One byte of a spelling, or a hexadecimal digit in either case.
#[derive(Clone, Copy)]
enum SpellingSymbol {
    Byte(u8),
    Hex(u8),
}

impl SpellingSymbol {
    /// The byte; of a hexadecimal digit, the one in lower case.
    fn code(self) -> u8 {
        match self {
            SpellingSymbol::Byte(byte) => byte,
            SpellingSymbol::Hex(digit) => {
                char::from_digit(u32::from(digit), 16).map_or(0, |c| c as u8)
            }
        }
    }

    /// The bytes that spell the symbol.
    fn bytes(self) -> impl Iterator<Item = u8> {
        let code = self.code();
        let upper = code.to_ascii_uppercase();
        let other = matches!(self, SpellingSymbol::Hex(_)) && upper != code;
        [code].into_iter().chain(other.then_some(upper))
    }
}

/// The edge over one byte.
fn byte_edge(byte: u8, to: u32) -> Edge {
    Edge { lo: u32::from(byte), hi: u32::from(byte), to }
}

/// The edges that spell code points as `uXXXX`, with surrogate pairs past the first plane. Ranges
/// are sorted and disjoint.
fn unicode_escapes(build: &mut NumeralBuilder, ranges: &[(u32, u32)]) -> Vec<Edge> {
    const HEX: Digit = Digit::hex(4, 0);
    const D: Digit = Digit::hex(0, 0xD);
    let (mut unit, mut after_d) = (Vec::new(), Vec::new());
    for (lo, hi) in [(0, 0xCFFF), (0xE000, 0xFFFF)] {
        build.numerals(ranges, lo, hi, 0, &[HEX; 4], &mut unit);
    }
    build.numerals(ranges, 0xD000, 0xD7FF, 0xD000, &[Digit::hex(3, 0), HEX, HEX], &mut after_d);
    let [escape, u] = [b'\\', b'u'].map(|byte| Digit::byte(0, byte));
    let pair = [Digit::hex(2, 8), HEX, HEX, escape, u, D, Digit::hex(2, 12), HEX, HEX];
    build.numerals(ranges, 0x1_0000, 0x10_FFFF, 0x1_0000, &pair, &mut after_d);
    if !after_d.is_empty() {
        D.spell(Edge { lo: 0, hi: 0, to: build.state(after_d) }, &mut unit);
    }
    match unit.is_empty() {
        true => Vec::new(),
        false => vec![byte_edge(b'u', build.state(unit))],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Code points at the ends of lengths, planes, surrogates and rows of escapes.
    const ENDS: [u32; 14] = [
        0x1F, 0x20, 0x7F, 0x80, 0xFF, 0x7FF, 0x800, 0xCFFF, 0xD7FF, 0xE000, 0xFFFF, 0x1_0000,
        0x1_03FF, 0x10_FFFF,
    ];

    /// Sorted, disjoint ranges of scalar values.
    fn ranges() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let scalar = prop_oneof![
            prop::sample::select(&ENDS[..]),
            0..0x300u32,
            0xD780..0xE080u32,
            0..0x11_0000u32,
        ];
        prop::collection::vec(scalar, 0..40).prop_map(|mut ends| {
            ends.sort_unstable();
            ends.dedup();
            let pairs = ends.chunks_exact(2).map(|pair| (pair[0], pair[1]));
            let scalars =
                |(lo, hi): (u32, u32)| SCALARS.map(|range| (lo.max(range.0), hi.min(range.1)));
            pairs.flat_map(scalars).filter(|(lo, hi)| lo <= hi).collect()
        })
    }

    proptest! {
        #[test]
        fn classes_have_all_spellings_of_their_code_points_and_no_other(
            ranges in ranges(),
            others in prop::collection::vec(0..0x11_0000u32, 20),
            non_ascii in prop::sample::select(vec![
                NonAscii::Either, NonAscii::Raw, NonAscii::Escaped,
            ]),
            any: bool,
        ) {
            let escapes = if any { Escapes::Any } else { Escapes::Required };
            let spelling = Spelling { non_ascii, escapes };
            let dfa = regular::automaton(&spelling.spell(&ranges), &[], 100_000).expect("regular");
            prop_assert!(ranges.is_empty() == dfa.is_empty());
            let ends = ranges.iter().flat_map(|&(lo, hi)| [lo, hi, lo.wrapping_sub(1), hi + 1]);
            let mut allowed = Vec::new();
            for c in ends.chain(others).chain(ENDS).filter_map(char::from_u32) {
                let is_in = ranges.iter().any(|&(lo, hi)| (lo..=hi).contains(&u32::from(c)));
                spelling.spellings(c, &mut allowed);
                let allowed = allowed.iter().map(|symbols| {
                    symbols.iter().map(|symbol| symbol.code()).collect::<Vec<u8>>()
                });
                let allowed: Vec<Vec<u8>> = if is_in { allowed.collect() } else { Vec::new() };
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                let escape = units.map(|unit| format!("\\u{unit:04x}")).collect::<String>();
                let short = short_escape(c).or((c == '/').then_some("\\/")).unwrap_or_default();
                for text in [escape.as_str(), short, c.encode_utf8(&mut [0; 4])] {
                    let accepted = dfa.accepts(text.bytes().map(u32::from));
                    let is_allowed = allowed.iter().any(|spelling| spelling == text.as_bytes());
                    prop_assert_eq!(accepted, is_allowed, "{}", text);
                    let upper = text.to_ascii_uppercase().replace('U', "u");
                    prop_assert!(
                        !text.starts_with("\\u")
                            || dfa.accepts(upper.bytes().map(u32::from)) == accepted
                    );
                }
            }
        }
    }
}
