//! Number prefix: the beginning of a JSON number, as far as its value is concerned.
//!
//! Equal numbers have many spellings (`10`, `1e1`, `10.0`). The prefix at the end of a text tells
//! which bytes can still lead to a given value.

use super::json_value::NUMBER_BYTES;
use crate::decimal::{Decimal, MAX_EXPONENT};
use crate::fsm::ByteSet;
use crate::fuel;
use crate::matcher::symbol::SymbolCode;

/// Bytes that may follow a number: white space and punctuation.
const TERMINATORS: &[u8] = b" \t\r\n,]}";

/// The number that a text ends with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NumberPrefix {
    /// The part read last.
    part: NumberPart,
    /// Digits before the exponent, without leading zeros.
    digits: usize,
    /// Decimal exponent of the digits: the number is `0.d1 d2 ... * 10^point`.
    point: i64,
    /// The exponent read so far.
    exponent: u64,
    /// The sign of the exponent.
    negative_exponent: bool,
    /// The value, if the number may end here.
    value: Option<Decimal>,
}

/// The last part of a number that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NumberPart {
    Start,
    Minus,
    /// A zero before the point, and nothing else.
    Zero,
    Integer,
    Point,
    Fraction,
    ExponentMark,
    ExponentSign,
    Exponent,
    /// Not a number.
    Invalid,
}

impl NumberPart {
    /// The part after one more byte.
    fn next(self, byte: u8) -> NumberPart {
        match (self, byte) {
            (NumberPart::Start, b'-') => NumberPart::Minus,
            (NumberPart::Start | NumberPart::Minus, b'0') => NumberPart::Zero,
            (NumberPart::Start | NumberPart::Minus | NumberPart::Integer, b'0'..=b'9') => {
                NumberPart::Integer
            }
            (NumberPart::Zero | NumberPart::Integer, b'.') => NumberPart::Point,
            (NumberPart::Point | NumberPart::Fraction, b'0'..=b'9') => NumberPart::Fraction,
            (NumberPart::Zero | NumberPart::Integer | NumberPart::Fraction, b'e' | b'E') => {
                NumberPart::ExponentMark
            }
            (NumberPart::ExponentMark, b'+' | b'-') => NumberPart::ExponentSign,
            (
                NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::Exponent,
                b'0'..=b'9',
            ) => NumberPart::Exponent,
            _ => NumberPart::Invalid,
        }
    }
}

impl NumberPrefix {
    /// No number.
    pub(super) const NONE: NumberPrefix = NumberPrefix {
        part: NumberPart::Start,
        digits: 0,
        point: 0,
        exponent: 0,
        negative_exponent: false,
        value: None,
    };

    /// The number at the end of a text; `text` gives the symbols last one first.
    pub(super) fn at_end_of(text: impl Iterator<Item = SymbolCode>) -> NumberPrefix {
        let of_number =
            |symbol: SymbolCode| symbol.byte().filter(|byte| NUMBER_BYTES.contains(byte));
        let mut bytes: Vec<u8> = text.map_while(of_number).collect();
        bytes.reverse();
        fuel::charge(bytes.len());
        let mut number = NumberPrefix { value: Decimal::read(&bytes), ..NumberPrefix::NONE };
        for &byte in &bytes {
            number.part = number.part.next(byte);
            match number.part {
                NumberPart::Zero | NumberPart::Integer | NumberPart::Fraction => {
                    number.digits += usize::from(number.digits > 0 || byte != b'0');
                    // Digits before the point raise it; leading zeros after the point lower it.
                    number.point +=
                        i64::from(number.part != NumberPart::Fraction && number.digits > 0);
                    number.point -=
                        i64::from(number.part == NumberPart::Fraction && number.digits == 0);
                }
                NumberPart::ExponentSign => number.negative_exponent = byte == b'-',
                NumberPart::Exponent => {
                    let more = number.exponent * 10 + u64::from(byte - b'0');
                    number.exponent = more.min(MAX_EXPONENT.unsigned_abs());
                }
                _ => {}
            }
        }
        number
    }

    /// The part of the prefix that matters for rivals that are zero (`zero`) or any numbers. A zero
    /// is unaffected by its exponent.
    pub(super) fn relevant_to(self, zero: bool) -> NumberPrefix {
        if zero {
            NumberPrefix { part: self.part, ..NumberPrefix::NONE }
        } else {
            NumberPrefix { value: None, ..self }
        }
    }

    /// Whether the prefix is a complete number with this value.
    pub(super) fn equals(&self, number: &Decimal) -> bool {
        self.value.as_ref() == Some(number)
    }

    /// A superset of the bytes that lead to this number.
    pub(super) fn next_bytes(&self, number: &Decimal) -> ByteSet {
        let mut next = ByteSet::EMPTY;
        let digit = match self.part {
            NumberPart::Start => !number.is_negative(),
            NumberPart::Minus | NumberPart::Integer | NumberPart::Point | NumberPart::Fraction => {
                true
            }
            _ => false,
        };
        if digit {
            next.insert(b'0' + number.digits().get(self.digits).copied().unwrap_or(0));
            if self.digits == 0 {
                next.insert(b'0');
            }
        }
        match self.part {
            NumberPart::Start if number.is_negative() || number.is_zero() => next.insert(b'-'),
            NumberPart::Zero | NumberPart::Integer => next.insert(b'.'),
            NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::Exponent => {
                next = self.next_in_exponent(number)
            }
            _ => {}
        }
        let may_end =
            matches!(self.part, NumberPart::Zero | NumberPart::Integer | NumberPart::Fraction);
        if may_end && self.digits >= number.digits().len() {
            next.insert(b'e');
            next.insert(b'E');
        }
        if self.equals(number) {
            next = next.union(&ByteSet::from_bytes(TERMINATORS));
        }
        next
    }

    /// As [`NumberPrefix::next_bytes`], in the exponent.
    fn next_in_exponent(&self, number: &Decimal) -> ByteSet {
        let target_exponent = number.exponent() - self.point;
        let (allows_negative, allows_positive) = (target_exponent <= 0, target_exponent >= 0);
        let target_exponent = target_exponent.unsigned_abs();
        let mut next = ByteSet::EMPTY;
        // A zero is unaffected by its exponent, and too large exponents are all equal.
        let any_exponent = number.is_zero() || target_exponent >= MAX_EXPONENT.unsigned_abs();
        if self.part == NumberPart::ExponentMark {
            if allows_positive || any_exponent {
                next.insert(b'+');
            }
            if allows_negative || any_exponent {
                next.insert(b'-');
            }
        }
        if any_exponent {
            next.insert_range(b'0', b'9');
        } else if if self.negative_exponent { allows_negative } else { allows_positive } {
            let read = if self.exponent == 0 { String::new() } else { self.exponent.to_string() };
            if read.is_empty() {
                next.insert(b'0');
            }
            if let Some(&digit) = target_exponent
                .to_string()
                .as_bytes()
                .strip_prefix(read.as_bytes())
                .and_then(<[u8]>::first)
            {
                next.insert(digit);
            }
        }
        next
    }
}
