//! Comparison of number text with bounds: automata of the numbers without an exponent that are less
//! than, equal to or greater than a number.

use std::cmp::Ordering;

use super::super::read::facets::Bound;
use super::number_text::{DECIMAL_SYMBOLS, MINUS, POINT, digit};
use crate::decimal::Decimal;
use crate::fsm::Dfa;

/// Maximum number of digits of a bound.
const MAX_DIGITS: usize = 2_000;

/// The automaton of the decimal texts that compare to the bound as `order` says, or equal it where
/// it is inclusive. The texts have no exponent; their syntax is not checked.
pub(super) fn comparison_dfa(bound: &Bound, order: Ordering) -> Result<Dfa, String> {
    let is_within = |actual| match actual {
        Ordering::Equal => !bound.exclusive,
        actual => actual == order,
    };
    Ok(ComparedNumber::new(&bound.value)?.texts(is_within))
}

/// The automaton of the decimal texts that equal `value`. They have no exponent; their syntax is
/// not checked.
pub(super) fn equality_dfa(value: &Decimal) -> Result<Dfa, String> {
    Ok(ComparedNumber::new(value)?.texts(|actual| actual == Ordering::Equal))
}

/// A number to which texts are compared.
struct ComparedNumber {
    /// Its order to zero.
    sign: Ordering,
    /// The digits before the point, at least one.
    integer: Vec<u8>,
    /// The digits after the point.
    fraction: Vec<u8>,
}

/// What has been read of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ReadNumber {
    is_negative: bool,
    /// The position after the last digit, or after the point.
    position: DigitPosition,
    /// The order of the digits to as many of the number's, as far as it is known.
    order: Ordering,
}

/// A position in the text of a number, by the digits before it. Digits past those of the number
/// with which it is compared are not told apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DigitPosition {
    Integer(usize),
    Fraction(usize),
}

impl ComparedNumber {
    fn new(value: &Decimal) -> Result<ComparedNumber, String> {
        let (mut integer, fraction) =
            value.parts(MAX_DIGITS).ok_or(format!("a bound has more than {MAX_DIGITS} digits"))?;
        if integer.is_empty() {
            integer.push(0);
        }
        let sign = value.cmp(&Decimal::parse("0"));
        Ok(ComparedNumber { sign, integer, fraction })
    }

    /// The automaton of the decimal texts whose order to the number is accepted.
    fn texts(&self, accepts: impl Fn(Ordering) -> bool) -> Dfa {
        let position = DigitPosition::Integer(0);
        let start = ReadNumber { is_negative: false, position, order: Ordering::Equal };
        let is_final = |read: ReadNumber| {
            read.position != DigitPosition::Integer(0) && accepts(self.order(read))
        };
        Dfa::explored(start, DECIMAL_SYMBOLS, |read, symbol| self.next(read, symbol), is_final)
    }

    /// What has been read after one more symbol. Relies on a syntax without leading zeros: there,
    /// more digits before the point mean a greater magnitude.
    fn next(&self, read: ReadNumber, symbol: u32) -> Option<ReadNumber> {
        use DigitPosition::{Fraction, Integer};
        let ReadNumber { position, order, .. } = read;
        let (position, order) = match (position, digit(symbol)) {
            (Integer(0), None) if symbol == MINUS && !read.is_negative => {
                return Some(ReadNumber { is_negative: true, ..read });
            }
            (Integer(1..), None) if symbol == POINT => (Fraction(0), self.order_at_point(read)),
            (_, None) => return None,
            (Integer(read), Some(digit)) => match self.integer.get(read) {
                Some(own) => (Integer(read + 1), order.then(digit.cmp(own))),
                None => (Integer(read), Ordering::Greater),
            },
            (Fraction(read), Some(digit)) => match self.fraction.get(read) {
                Some(own) => (Fraction(read + 1), order.then(digit.cmp(own))),
                None => (Fraction(read), order.then(digit.cmp(&0))),
            },
        };
        // Once digits after the point differ, further ones do not matter.
        let position = match position {
            Fraction(_) if order != Ordering::Equal => Fraction(self.fraction.len()),
            position => position,
        };
        Some(ReadNumber { position, order, ..read })
    }

    /// The order of the digits before the point to those of the number.
    fn order_at_point(&self, read: ReadNumber) -> Ordering {
        match read.position {
            DigitPosition::Integer(digits) if digits < self.integer.len() => Ordering::Less,
            _ => read.order,
        }
    }

    /// The order of the whole text to the number.
    fn order(&self, read: ReadNumber) -> Ordering {
        let missing = match read.position {
            DigitPosition::Integer(_) => self.fraction.len(),
            DigitPosition::Fraction(digits) => self.fraction.len() - digits,
        };
        let rest = if missing > 0 { Ordering::Less } else { Ordering::Equal };
        let magnitude = self.order_at_point(read).then(rest);
        match (read.is_negative, self.sign) {
            (false, Ordering::Less) => Ordering::Greater,
            (false, _) => magnitude,
            (true, Ordering::Greater) => Ordering::Less,
            // Zero may have a minus sign.
            (true, _) => magnitude.reverse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::number_text::{MantissaSyntax, SAMPLES};
    use super::*;
    use crate::fsm::Combine;

    #[test]
    fn bound_automata_agree_with_decimal_comparison() {
        let syntax = MantissaSyntax::Decimal.dfa();
        for limit in [
            "0",
            "1",
            "-1",
            "10",
            "-10",
            "0.1",
            "-0.1",
            "1.5",
            "100",
            "12345678901234567890",
            "0.09",
        ] {
            for exclusive in [false, true] {
                let b = Bound { value: Decimal::parse(limit), exclusive };
                for order in [Ordering::Less, Ordering::Greater] {
                    let dfa = comparison_dfa(&b, order)
                        .unwrap()
                        .combine(syntax, Combine::And, 10_000)
                        .unwrap();
                    for sample in SAMPLES.iter().filter(|s| !s.contains('e')) {
                        let value = Decimal::parse(sample);
                        let want = value.cmp(&b.value) == order || (!exclusive && value == b.value);
                        let got = dfa.accepts(sample.bytes().map(u32::from));
                        assert_eq!(got, want, "{sample} {order:?} {limit} exclusive {exclusive}");
                    }
                }
            }
        }
    }
}
