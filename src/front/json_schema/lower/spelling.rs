//! JSON string escapes: the spellings of code points in JSON strings, as expressions over bytes.

use super::super::options::{Escapes, NonAscii};
use crate::cache::ProcessCell;
use crate::front::regex::{scalar_from, scalar_until};
use crate::fsm::{ByteSet, Dfa, DfaBuilder, TooLarge};
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

/// The hexadecimal digits from `lo` to `hi`, in either case.
fn hex(lo: u8, hi: u8) -> Expr {
    let mut set = ByteSet::EMPTY;
    for digit in lo..=hi {
        match digit {
            0..=9 => set.insert(b'0' + digit),
            _ => {
                set.insert(b'a' + digit - 10);
                set.insert(b'A' + digit - 10);
            }
        }
    }
    Expr::Class(set)
}

/// An expression that every schema uses, as an automaton that is built once per process.
fn cached_automaton(
    make: fn(NonAscii) -> Expr,
    cells: &'static [ProcessCell<Expr>; 3],
    non_ascii: NonAscii,
) -> Expr {
    let index = match non_ascii {
        NonAscii::Either => 0,
        NonAscii::Raw => 1,
        NonAscii::Escaped => 2,
    };
    let build = || {
        let expr = make(non_ascii);
        regular::automaton(&expr, &[], MAX_STATES)
            .map_or(expr, |dfa| Expr::Automaton(dfa.minimize().into()))
    };
    cells[index].get_or_make(build).clone()
}

/// One code point of a JSON string, in any spelling.
fn any_char_expr(non_ascii: NonAscii) -> Expr {
    let surrogate = |lo| {
        let kind = if lo { hex(0xC, 0xF) } else { hex(8, 0xB) };
        Expr::seq([Expr::Class(ByteSet::from_bytes(b"dD")), kind, hex(0, 15), hex(0, 15)])
    };
    let not_d = {
        let Expr::Class(mut set) = hex(0, 15) else { return Expr::Never };
        set.remove(b'd');
        set.remove(b'D');
        Expr::Class(set)
    };
    let unit = Expr::alt([
        Expr::seq([not_d, hex(0, 15), hex(0, 15), hex(0, 15)]),
        Expr::seq([Expr::Class(ByteSet::from_bytes(b"dD")), hex(0, 7), hex(0, 15), hex(0, 15)]),
        Expr::seq([surrogate(false), Expr::text("\\u"), surrogate(true)]),
    ]);
    let escape = Expr::alt([
        Expr::Class(ByteSet::from_bytes(b"\"\\/bfnrt")),
        Expr::seq([Expr::text("u"), unit]),
    ]);
    let raw = if non_ascii == NonAscii::Escaped {
        Expr::Never
    } else {
        Expr::code_points('\u{80}', char::MAX)
    };
    Expr::alt([Expr::Class(plain_ascii()), raw, Expr::seq([Expr::text("\\"), escape])])
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

    /// One code point of the ranges, in all spellings that the options allow.
    pub(super) fn spell(self, ranges: &[(u32, u32)]) -> Expr {
        let (plain, rest) = self.parts(ranges);
        Expr::alt([Expr::class(plain), rest])
    }

    /// As [`Spelling::spell`], in two parts: plain ASCII bytes, and all other spellings.
    pub(super) fn parts(self, ranges: &[(u32, u32)]) -> (ByteSet, Expr) {
        let (mut ascii, mut short, mut rest) = (ByteSet::EMPTY, ByteSet::EMPTY, Vec::new());
        if self.escapes == Escapes::Required
            && ranges.iter().all(|&(lo, hi)| lo >= 0x20 && hi < 0x80)
        {
            ranges.iter().for_each(|&(lo, hi)| ascii.insert_range(lo as u8, hi as u8));
            let plain = ascii.intersect(&plain_ascii());
            if plain == ascii {
                return (plain, Expr::Never);
            }
            ascii = ByteSet::EMPTY;
        }
        let mut controls = [ByteSet::EMPTY; 2];
        let any = self.escapes == Escapes::Any;
        for &(lo, hi) in ranges {
            for c in lo..=hi.min(0x7F) {
                let byte = c as u8;
                match short_escape(char::from(byte)) {
                    Some(escape) => short.insert(escape.as_bytes()[1]),
                    None if byte == b'/' && any => short.insert(byte),
                    None => {}
                }
                if plain_ascii().contains(byte) {
                    ascii.insert(byte);
                } else if byte < 0x20 && !any {
                    let Expr::Class(digit) = hex(byte % 16, byte % 16) else { continue };
                    let row = &mut controls[usize::from(byte / 16)];
                    *row = row.union(&digit);
                }
            }
            if any && lo < 0x80 {
                unicode_escapes(lo, hi.min(0x7F), &mut rest);
            }
            if let (true, Some(lo), Some(hi)) =
                (hi >= 0x80, scalar_from(lo.max(0x80)), scalar_until(hi))
            {
                if self.non_ascii != NonAscii::Escaped {
                    rest.push(Expr::code_points(lo, hi));
                }
                if self.non_ascii != NonAscii::Raw {
                    unicode_escapes(u32::from(lo), u32::from(hi), &mut rest);
                }
            }
        }
        let rows = controls
            .iter()
            .zip(["u000", "u001"])
            .map(|(set, text)| Expr::seq([Expr::text(text), Expr::class(*set)]));
        let escape = Expr::alt([Expr::class(short)].into_iter().chain(rows));
        (ascii, Expr::alt(rest.into_iter().chain([Expr::seq([Expr::text("\\"), escape])])))
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

/// Appends the spellings of `lo..=hi` as `\uXXXX`, with surrogate pairs past the first plane.
fn unicode_escapes(lo: u32, hi: u32, out: &mut Vec<Expr>) {
    let units =
        |lo, hi| Expr::alt(hex_range(lo, hi, 4).into_iter().map(|digits| prefixed("\\u", digits)));
    if lo < 0xD800 {
        out.push(units(lo, hi.min(0xD7FF)));
    }
    if hi >= 0xE000 && lo <= 0xFFFF {
        out.push(units(lo.max(0xE000), hi.min(0xFFFF)));
    }
    if hi < 0x1_0000 {
        return;
    }
    let (lo, hi) = (lo.max(0x1_0000) - 0x1_0000, hi - 0x1_0000);
    let pair = |high: (u32, u32), low: (u32, u32)| {
        Expr::seq([units(0xD800 + high.0, 0xD800 + high.1), units(0xDC00 + low.0, 0xDC00 + low.1)])
    };
    let (first, last) = (lo >> 10, hi >> 10);
    if first == last {
        return out.push(pair((first, last), (lo & 0x3FF, hi & 0x3FF)));
    }
    out.push(pair((first, first), (lo & 0x3FF, 0x3FF)));
    if last - first > 1 {
        out.push(pair((first + 1, last - 1), (0, 0x3FF)));
    }
    out.push(pair((last, last), (0, hi & 0x3FF)));
}

/// A prefix, then hexadecimal digits.
fn prefixed(prefix: &str, digits: Vec<Expr>) -> Expr {
    Expr::seq([Expr::text(prefix)].into_iter().chain(digits))
}

/// The hexadecimal numbers of `width` digits from `lo` to `hi`, as sequences of digit classes.
fn hex_range(lo: u32, hi: u32, width: u32) -> Vec<Vec<Expr>> {
    if width == 0 {
        return vec![Vec::new()];
    }
    let unit = 1 << (4 * (width - 1));
    let (first, last) = (lo / unit, hi / unit);
    let digit = |from: u32, to: u32| hex(from as u8, to as u8);
    let part = |from: u32, to: u32, lo: u32, hi: u32| {
        hex_range(lo, hi, width - 1)
            .into_iter()
            .map(move |rest| [digit(from, to)].into_iter().chain(rest).collect())
    };
    if first == last {
        return part(first, first, lo % unit, hi % unit).collect();
    }
    let mut out: Vec<Vec<Expr>> = Vec::new();
    let (mut from, mut to) = (first, last);
    if !lo.is_multiple_of(unit) {
        out.extend(part(first, first, lo % unit, unit - 1));
        from += 1;
    }
    if hi % unit != unit - 1 {
        out.extend(part(last, last, 0, hi % unit));
        to -= 1;
    }
    if from <= to {
        out.extend(part(from, to, 0, unit - 1));
    }
    out
}
