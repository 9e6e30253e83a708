//! `multipleOf`: the automaton of the multiples of a unit.
//!
//! The automaton tracks the remainder of the digits read so far. Of a unit such as 86400, it is the
//! remainder by 864 of the digits without the zeros at their end, of which it counts two. Of a unit
//! such as 0.25, it is the remainder by 25, once per decimal place.

use super::number_text::{MINUS, POINT, ZERO};
use crate::decimal::{Decimal, MAX_REMAINDERS, TrackedUnit, tracked_unit};
use crate::fsm::{Dfa, DfaBuilder};

/// The automaton of decimal texts that are whole multiples of a positive unit. The texts have no
/// exponent; their syntax is not checked.
pub(super) fn multiples_dfa(unit: &Decimal) -> Result<Dfa, String> {
    let unit = tracked_unit(unit)
        .ok_or_else(|| format!("multiples are tracked up to {MAX_REMAINDERS} remainders"))?;
    let mut states = MultipleStates { unit, builder: DfaBuilder::new() };
    states.add();
    // Minimised because it is combined with other automata; few states remain as a rule.
    Ok(states.builder.finish().minimize())
}

/// The states of [`multiples_dfa`], in blocks with a state for each remainder: a block for each
/// number of zeros at the end of the integer part, then one for each decimal place, then one that
/// accepts zeros only.
struct MultipleStates {
    unit: TrackedUnit,
    builder: DfaBuilder,
}

impl MultipleStates {
    /// The state before the first digit.
    const START: u32 = 0;

    /// The state of a remainder in a block.
    fn state(&self, block: usize, rest: u64) -> u32 {
        (1 + block as u64 * self.unit.modulus + rest) as u32
    }

    /// The remainder after `count` more digits, of which the last is `digit` and the others are 0.
    fn remainder_after(&self, rest: u64, count: usize, digit: u64) -> u64 {
        ((0..count).fold(rest, |rest, _| rest * 10 % self.unit.modulus) + digit) % self.unit.modulus
    }

    fn add(&mut self) {
        let TrackedUnit { modulus, zeros, places } = self.unit;
        self.builder.state(false);
        // After the decimal places, only zeros follow.
        let end = zeros + places + 1;
        for block in 0..=end {
            for rest in 0..modulus {
                let is_final = match block {
                    block if block < zeros => false,
                    block => {
                        self.remainder_after(rest, (zeros + places).saturating_sub(block), 0) == 0
                    }
                };
                self.builder.state(is_final);
            }
        }
        self.builder.edge(Self::START, MINUS, MINUS, Self::START);
        // Zero is followed by as many zeros as is wanted.
        self.add_integer_digits(Self::START, zeros, 0);
        for rest in 0..modulus {
            for block in 0..=zeros {
                self.add_integer_digits(self.state(block, rest), block, rest);
            }
            for block in zeros + 1..=end {
                self.add_places(self.state(block, rest), block, rest);
            }
            // An integer without enough zeros is not a multiple, with a fraction neither. A digit
            // must follow the point.
            let point = self.builder.state(false);
            self.builder.edge(self.state(zeros, rest), POINT, POINT, point);
            self.add_places(point, zeros, rest);
        }
    }

    /// Adds the digits of the integer part after a state: `block` zeros follow the digits whose
    /// remainder is `rest`.
    fn add_integer_digits(&mut self, from: u32, block: usize, rest: u64) {
        let zeros = self.unit.zeros;
        let after_zero = match block < zeros {
            true => self.state(block + 1, rest),
            false => self.state(zeros, self.remainder_after(rest, 1, 0)),
        };
        self.builder.edge(from, ZERO, ZERO, after_zero);
        for digit in 1..10u64 {
            let code = ZERO + digit as u32;
            let to = self.state(0, self.remainder_after(rest, block + 1, digit));
            self.builder.edge(from, code, code, to);
        }
    }

    /// Adds the digits of a decimal place after a state.
    fn add_places(&mut self, from: u32, block: usize, rest: u64) {
        let TrackedUnit { zeros, places, .. } = self.unit;
        let last = zeros + places;
        for digit in 0..10u64 {
            let code = ZERO + digit as u32;
            let to = match block < last {
                true => self.state(block + 1, self.remainder_after(rest, 1, digit)),
                false if digit == 0 => self.state(last + 1, rest),
                false => continue,
            };
            self.builder.edge(from, code, code, to);
        }
    }
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
