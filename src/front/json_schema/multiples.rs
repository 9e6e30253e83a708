//! `multipleOf`: the automaton of the multiples of a unit, and the least common multiple of two
//! units.
//!
//! The automaton tracks the remainder of the digits read so far, once per decimal place.

use super::decimal::Decimal;
use super::magnitude::{MINUS, POINT, ZERO};
use crate::fsm::{Dfa, DfaBuilder};

/// Maximum number of remainder states of a unit.
const MAX_REMAINDERS: u64 = 20_000;

/// The least common multiple of two units; `None` if its automaton would have too many remainders.
pub(super) fn common_multiple(a: &Decimal, b: &Decimal) -> Option<Decimal> {
    // Both as integers, in units of the finer one's last decimal place.
    let place = a.last_place().min(b.last_place());
    let whole = |unit: &Decimal| {
        let zeros =
            u32::try_from(unit.last_place() - place).ok().filter(|_| unit.digits().len() <= 18)?;
        let digits = unit.digits().iter().fold(0u64, |n, &digit| n * 10 + u64::from(digit));
        digits.checked_mul(10u64.checked_pow(zeros)?)
    };
    let (a, b) = (whole(a)?, whole(b)?);
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let least = (a / divisor).checked_mul(b)?;
    let digits: Vec<u8> = least.to_string().bytes().map(|byte| byte - b'0').collect();
    let exponent = place + digits.len() as i64;
    let unit = Decimal::new(false, digits, exponent);
    modulus_and_places(&unit).map(|_| unit)
}

/// The unit as an integer modulus, scaled by its number of decimal places, and that number. `None`
/// if there are too many remainders to track.
fn modulus_and_places(unit: &Decimal) -> Option<(u64, usize)> {
    let (integer, fraction) = unit.parts(18)?;
    if integer.len() + fraction.len() > 18 {
        return None;
    }
    let modulus = integer.iter().chain(&fraction).fold(0u64, |n, &d| n * 10 + u64::from(d));
    (modulus.saturating_mul(fraction.len() as u64 + 2) <= MAX_REMAINDERS)
        .then_some((modulus, fraction.len()))
}

/// The automaton of decimal texts that are whole multiples of a positive unit. The texts have no
/// exponent; their syntax is not checked.
pub(super) fn multiples_dfa(unit: &Decimal) -> Result<Dfa, String> {
    let (modulus, places) = modulus_and_places(unit)
        .ok_or_else(|| format!("multiples are tracked up to {MAX_REMAINDERS} remainders"))?;
    let scaled = |rest: u64, by: usize| (0..by).fold(rest, |r, _| r * 10 % modulus) == 0;
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    // One block of states per digit position: the integer part, then each place behind the point.
    // The last block accepts only zeros.
    let block = |position: usize, rest: u64| (1 + position as u64 * modulus + rest) as u32;
    for position in 0..=places + 1 {
        for rest in 0..modulus {
            let is_final = match position {
                0 => scaled(rest, places),
                p if p <= places => scaled(rest, places - p),
                _ => rest == 0,
            };
            b.state(is_final);
        }
    }
    b.edge(start, MINUS, MINUS, start);
    for position in 0..=places + 1 {
        for rest in 0..modulus {
            let from = block(position, rest);
            let zeros_only = position > places;
            for digit in 0..=if zeros_only { 0 } else { 9u64 } {
                let code = ZERO + digit as u32;
                let next = (rest * 10 + digit) % modulus;
                match position {
                    0 => b.edge(from, code, code, block(0, next)),
                    p if p < places => b.edge(from, code, code, block(p + 1, next)),
                    _ if digit == 0 => b.edge(from, code, code, block(places + 1, rest)),
                    _ => {}
                }
            }
        }
    }
    for digit in 0..10u64 {
        let code = ZERO + digit as u32;
        b.edge(start, code, code, block(0, digit % modulus));
    }
    // Minimised because it is combined with other automata; few states remain as a rule.
    Ok(add_point_edges(b, modulus, places).minimize())
}

/// Adds the edges for the decimal point to [`multiples_dfa`]. Each remainder gets a state of its
/// own behind the point, so that a digit must follow.
fn add_point_edges(mut b: DfaBuilder, modulus: u64, places: usize) -> Dfa {
    for rest in 0..modulus {
        let point = b.state(false);
        b.edge(1 + rest as u32, POINT, POINT, point);
        for digit in 0..10u64 {
            let code = ZERO + digit as u32;
            let to = match places {
                0 if digit == 0 => 1 + (modulus + rest) as u32,
                0 => continue,
                _ => (1 + modulus + (rest * 10 + digit) % modulus) as u32,
            };
            b.edge(point, code, code, to);
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::json_schema::number::tests::{SAMPLES, decimal_syntax};
    use crate::fsm::Combine;

    #[test]
    fn multiple_automata_agree_with_division() {
        let syntax = decimal_syntax();
        for unit in ["1", "2", "3", "7", "10", "100", "0.5", "0.1", "0.01", "2.5", "1.50"] {
            let unit = Decimal::parse(unit);
            let dfa =
                multiples_dfa(&unit).unwrap().combine(&syntax, Combine::And, 100_000).unwrap();
            for sample in SAMPLES.iter().filter(|s| !s.contains('e')) {
                let want = Decimal::parse(sample).is_multiple_of(&unit, 100).unwrap();
                assert_eq!(
                    dfa.accepts(sample.bytes().map(u32::from)),
                    want,
                    "{sample} of {unit:?}"
                );
            }
        }
        assert!(multiples_dfa(&Decimal::parse("123456789")).is_err());
    }

    #[test]
    fn common_multiples_are_least() {
        for (a, b, both) in [
            ("4", "6", "12"),
            ("0.5", "0.2", "1"),
            ("3", "24", "24"),
            ("1.5", "10", "30"),
            ("1e3", "7", "7e3"),
        ] {
            assert_eq!(
                common_multiple(&Decimal::parse(a), &Decimal::parse(b)),
                Some(Decimal::parse(both)),
                "{a} {b}"
            );
        }
        for (a, b) in
            [("7919", "7927"), ("1e40", "3"), ("1e-40", "3"), ("123456789012345678901", "1")]
        {
            assert_eq!(common_multiple(&Decimal::parse(a), &Decimal::parse(b)), None, "{a} {b}");
        }
    }
}
