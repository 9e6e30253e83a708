//! `multipleOf`: the automaton of the multiples of a unit.
//!
//! The automaton tracks the remainder of the digits read so far. Of a unit such as 86400, it is the
//! remainder by 864 of the digits without the zeros at their end, of which it counts two. Of a unit
//! such as 0.25, it is the remainder by 25, once per decimal place.

use super::number_text::{DECIMAL_SYMBOLS, MINUS, POINT, digit};
use crate::decimal::{Decimal, MAX_REMAINDERS, TrackedUnit, tracked_unit};
use crate::fsm::Dfa;

/// The automaton of decimal texts that are whole multiples of a positive unit. The texts have no
/// exponent; their syntax is not checked.
pub(super) fn multiples_dfa(unit: &Decimal) -> Result<Dfa, String> {
    let unit = tracked_unit(unit).ok_or_else(|| too_many_remainders(unit))?;
    let next = |read, symbol| next(&unit, read, symbol);
    let dfa =
        Dfa::explored(ReadDigits::None, DECIMAL_SYMBOLS, next, |read| is_multiple(&unit, read));
    // Minimised because it is combined with other automata; few states remain as a rule.
    Ok(dfa.minimize())
}

/// Why the multiples of a unit have no automaton.
fn too_many_remainders(unit: &Decimal) -> String {
    let place = unit.last_place();
    let most = MAX_REMAINDERS / place.unsigned_abs().saturating_add(2);
    let last = match place {
        0 => String::new(),
        place => format!(" times 1e{place}, the place of the last digit that is not 0"),
    };
    format!("multiples are tracked up to {MAX_REMAINDERS} remainders: of at most {most}{last}")
}

/// What has been read of a text, with the remainder of its digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ReadDigits {
    /// No digit.
    None,
    /// Digits before the point. Of the zeros at their end, so many are counted as those of the
    /// unit, and left out of the remainder.
    Integer { zeros: usize, rest: u64 },
    /// The digits before the point, and so many after it, up to one more than the unit has places.
    Fraction { places: usize, rest: u64 },
}

/// The remainder after `count` more digits, of which the last is `digit` and the others are 0.
fn remainder_after(unit: &TrackedUnit, rest: u64, count: usize, digit: u8) -> u64 {
    let shifted = (0..count).fold(rest, |rest, _| rest * 10 % unit.modulus);
    (shifted + u64::from(digit)) % unit.modulus
}

/// What has been read after one more symbol.
fn next(unit: &TrackedUnit, read: ReadDigits, symbol: u32) -> Option<ReadDigits> {
    use ReadDigits::{Fraction, Integer};
    Some(match (read, digit(symbol)) {
        (ReadDigits::None, None) if symbol == MINUS => ReadDigits::None,
        // Zero is followed by as many zeros as is wanted.
        (ReadDigits::None, Some(_)) => {
            return next(unit, Integer { zeros: unit.zeros, rest: 0 }, symbol);
        }
        (Integer { zeros, rest }, Some(0)) if zeros < unit.zeros => {
            Integer { zeros: zeros + 1, rest }
        }
        (Integer { zeros, rest }, Some(0)) => {
            Integer { zeros, rest: remainder_after(unit, rest, 1, 0) }
        }
        (Integer { zeros, rest }, Some(digit)) => {
            Integer { zeros: 0, rest: remainder_after(unit, rest, zeros + 1, digit) }
        }
        // An integer without enough zeros is not a multiple, with a fraction neither.
        (Integer { zeros, rest }, None) if symbol == POINT && zeros == unit.zeros => {
            Fraction { places: 0, rest }
        }
        (Fraction { places, rest }, Some(digit)) if places < unit.places => {
            Fraction { places: places + 1, rest: remainder_after(unit, rest, 1, digit) }
        }
        // After the decimal places, only zeros follow.
        (Fraction { rest, .. }, Some(0)) => Fraction { places: unit.places + 1, rest },
        _ => return None,
    })
}

/// Whether a text with these digits is a multiple.
fn is_multiple(unit: &TrackedUnit, read: ReadDigits) -> bool {
    let (read, rest) = match read {
        ReadDigits::Integer { zeros, rest } if zeros == unit.zeros => (0, rest),
        // A digit follows the point.
        ReadDigits::Fraction { places: places @ 1.., rest } => (places, rest),
        _ => return false,
    };
    remainder_after(unit, rest, unit.places.saturating_sub(read), 0) == 0
}

#[cfg(test)]
mod tests {
    use super::super::number_text::{MantissaSyntax, SAMPLES};
    use super::*;
    use crate::fsm::Combine;

    #[test]
    fn multiple_automata_agree_with_division() {
        let syntax = MantissaSyntax::Decimal.dfa();
        for unit in
            ["1", "2", "3", "7", "10", "100", "0.5", "0.1", "0.01", "2.5", "1.50", "150", "1e9"]
        {
            let unit = Decimal::parse(unit);
            let dfa = multiples_dfa(&unit).unwrap().combine(syntax, Combine::And, 100_000).unwrap();
            for sample in SAMPLES.iter().filter(|s| !s.contains('e')) {
                let want = Decimal::parse(sample).is_multiple_of(&unit).unwrap();
                assert_eq!(
                    dfa.accepts(sample.bytes().map(u32::from)),
                    want,
                    "{sample} of {unit:?}"
                );
            }
        }
        assert!(multiples_dfa(&Decimal::parse("123456789")).is_err());
        for (unit, multiples, others) in [
            ("86400", ["0", "86400", "604800", "-8640000"], ["86401", "864", "8640", "960000"]),
            ("1e6", ["0.0", "1000000", "5000000.0", "30000000"], ["100000", "1", "1500000", "1e6"]),
        ] {
            let dfa = multiples_dfa(&Decimal::parse(unit)).unwrap();
            let accepts = |text: &str| dfa.accepts(text.bytes().map(u32::from));
            assert!(multiples.into_iter().all(accepts), "{unit}");
            assert!(!others.into_iter().any(accepts), "{unit}");
        }
    }
}
