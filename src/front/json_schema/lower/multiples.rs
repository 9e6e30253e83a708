//! `multipleOf`: the automaton of the multiples of a unit.
//!
//! The automaton tracks the remainder of the digits read so far, once per decimal place.

use super::number_text::{MINUS, POINT, ZERO};
use crate::decimal::{Decimal, MAX_REMAINDERS, modulus_and_places};
use crate::fsm::{Dfa, DfaBuilder};

/// The automaton of decimal texts that are whole multiples of a positive unit. The texts have no
/// exponent; their syntax is not checked.
pub(super) fn multiples_dfa(unit: &Decimal) -> Result<Dfa, String> {
    let (modulus, places) = modulus_and_places(unit)
        .ok_or_else(|| format!("multiples are tracked up to {MAX_REMAINDERS} remainders"))?;
    let scaled = |rest: u64, by: usize| (0..by).fold(rest, |r, _| r * 10 % modulus) == 0;
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    // One block of states per digit position: the integer part, then each place after the point.
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
/// own after the point, so that a digit must follow.
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
    use super::super::number_text::{MantissaSyntax, SAMPLES};
    use super::*;
    use crate::fsm::Combine;

    #[test]
    fn multiple_automata_agree_with_division() {
        let syntax = MantissaSyntax::Decimal.dfa();
        for unit in ["1", "2", "3", "7", "10", "100", "0.5", "0.1", "0.01", "2.5", "1.50"] {
            let unit = Decimal::parse(unit);
            let dfa = multiples_dfa(&unit).unwrap().combine(syntax, Combine::And, 100_000).unwrap();
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
}
