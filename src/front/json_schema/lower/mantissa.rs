//! The syntax of numbers without an exponent, as automata.

use super::magnitude::{MINUS, NINE, ONE, POINT, ZERO};
use crate::fsm::{Dfa, DfaBuilder};

/// Syntax of a number without its exponent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum MantissaSyntax {
    /// An integer without a fraction.
    Digits,
    /// An integer with an optional fraction of zeros.
    ZeroFraction,
    /// A number with an optional fraction.
    Decimal,
    /// A number with a fraction that is not zero.
    Fraction,
}

impl MantissaSyntax {
    /// The syntax as an automaton over bytes.
    pub(super) fn dfa(self) -> Dfa {
        let mut b = DfaBuilder::new();
        let start = b.state(false);
        let minus = b.state(false);
        let zero = b.state(self != MantissaSyntax::Fraction);
        let whole = b.state(self != MantissaSyntax::Fraction);
        b.edge(start, MINUS, MINUS, minus);
        for from in [start, minus] {
            b.edge(from, ZERO, ZERO, zero);
            b.edge(from, ONE, NINE, whole);
        }
        b.edge(whole, ZERO, NINE, whole);
        if self == MantissaSyntax::Digits {
            return b.finish();
        }
        let point = b.state(false);
        let zeros = b.state(self != MantissaSyntax::Fraction);
        b.edge(zero, POINT, POINT, point);
        b.edge(whole, POINT, POINT, point);
        b.edge(point, ZERO, ZERO, zeros);
        b.edge(zeros, ZERO, ZERO, zeros);
        if self != MantissaSyntax::ZeroFraction {
            let some = b.state(true);
            for from in [point, zeros] {
                b.edge(from, ONE, NINE, some);
            }
            b.edge(some, ZERO, NINE, some);
        }
        b.finish()
    }
}

/// Texts of numbers, for tests.
#[cfg(test)]
pub(super) const SAMPLES: &[&str] = &[
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1",
    "-1",
    "9",
    "10",
    "11",
    "99",
    "100",
    "101",
    "-9",
    "-10",
    "-11",
    "0.1",
    "0.10",
    "0.09",
    "0.11",
    "-0.1",
    "1.5",
    "1.49",
    "1.51",
    "10.0",
    "10.01",
    "9.99",
    "-9.99",
    "-10.01",
    "12345678901234567890",
    "5e-1",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mantissa_syntaxes_accept_their_numbers() {
        let accepts = |s: MantissaSyntax, text: &str| s.dfa().accepts(text.bytes().map(u32::from));
        assert!(
            accepts(MantissaSyntax::Digits, "-10")
                && !accepts(MantissaSyntax::Digits, "1.0")
                && !accepts(MantissaSyntax::Digits, "01")
        );
        assert!(
            accepts(MantissaSyntax::ZeroFraction, "1.00")
                && !accepts(MantissaSyntax::ZeroFraction, "1.01")
        );
        assert!(
            accepts(MantissaSyntax::Fraction, "0.50")
                && !accepts(MantissaSyntax::Fraction, "5.0")
                && !accepts(MantissaSyntax::Fraction, "5")
        );
        assert!(
            accepts(MantissaSyntax::Decimal, "0.50")
                && !accepts(MantissaSyntax::Decimal, "1.")
                && !accepts(MantissaSyntax::Decimal, ".5")
        );
    }
}
