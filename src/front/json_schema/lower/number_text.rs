//! The syntax of JSON numbers, as automata over bytes.

use super::builtin_pattern::builtin_pattern_dfa;
use crate::cache::ProcessCell;
use crate::fsm::{Dfa, DfaBuilder, TooLarge};

/// The symbols of number text, as bytes.
pub(super) const PLUS: u32 = b'+' as u32;
pub(super) const MINUS: u32 = b'-' as u32;
pub(super) const POINT: u32 = b'.' as u32;
pub(super) const ZERO: u32 = b'0' as u32;
pub(super) const NINE: u32 = b'9' as u32;
pub(super) const UPPER_E: u32 = b'E' as u32;
pub(super) const LOWER_E: u32 = b'e' as u32;
/// Those of numbers without an exponent, ascending.
pub(super) const DECIMAL_SYMBOLS: &[u8] = b"-.0123456789";

/// The digit that a symbol is.
pub(super) fn digit(symbol: u32) -> Option<u8> {
    (ZERO..=NINE).contains(&symbol).then(|| (symbol - ZERO) as u8)
}

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
    /// The syntax as an automaton.
    pub(super) fn dfa(self) -> &'static Dfa {
        static CELLS: [ProcessCell<Dfa>; 4] = [const { ProcessCell::new() }; 4];
        CELLS[self as usize].get_or_make(|| {
            builtin_pattern_dfa(match self {
                MantissaSyntax::Digits => r"-?(?:0|[1-9][0-9]*)",
                MantissaSyntax::ZeroFraction => r"-?(?:0|[1-9][0-9]*)(?:\.0+)?",
                MantissaSyntax::Decimal => r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?",
                MantissaSyntax::Fraction => r"-?(?:0|[1-9][0-9]*)\.0*[1-9][0-9]*",
            })
        })
    }
}

/// The signs that a number may have.
#[derive(Clone, Copy)]
pub(super) struct Signs {
    pub(super) zero: bool,
    pub(super) positive: bool,
    pub(super) negative: bool,
}

impl Signs {
    /// The automaton of the numbers of these signs, with and without exponents. Zero may have a
    /// minus sign.
    pub(super) fn dfa(self) -> &'static Dfa {
        static CELLS: [ProcessCell<Dfa>; 8] = [const { ProcessCell::new() }; 8];
        let Signs { zero, positive, negative } = self;
        let cell = usize::from(zero) | usize::from(positive) << 1 | usize::from(negative) << 2;
        CELLS[cell].get_or_make(|| {
            const OTHER: &str = r"(?:[1-9][0-9]*(?:\.[0-9]+)?|0\.0*[1-9][0-9]*)";
            const NOTHING: &str = "[]";
            let zero = if zero { r"-?0(?:\.0+)?" } else { NOTHING };
            let sign = match (positive, negative) {
                (true, true) => "-?",
                (true, false) => "",
                (false, true) => "-",
                (false, false) => NOTHING,
            };
            builtin_pattern_dfa(&format!("(?:{zero}|{sign}{OTHER})(?:[eE][+-]?[0-9]+)?"))
        })
    }
}

/// The automaton of texts whose exponents double precision can represent. After one digit before
/// the point, magnitudes are at most the greatest double. After more digits, exponents have up to
/// two digits, so that 209 digits stay in range. The syntax is not checked.
pub(super) fn double_range_dfa() -> &'static Dfa {
    static CELL: ProcessCell<Dfa> = ProcessCell::new();
    CELL.get_or_make(|| {
        // The greatest double is 1.7976931348623157e308. Digits after the point of mantissas that
        // are at most this one, and greater: from the last digit on, where those before are equal.
        let (mut at_most, mut greater) = ("0*".to_owned(), "0*[1-9][0-9]*".to_owned());
        for digit in [7, 9, 7, 6, 9, 3, 1, 3, 4, 8, 6, 2, 3, 1, 5, 7].into_iter().rev() {
            let above = if digit == 9 { "[]".to_owned() } else { format!("[{}-9]", digit + 1) };
            at_most = format!("(?:[0-{}][0-9]*|{digit}{at_most})?", digit - 1);
            greater = format!("(?:{above}[0-9]*|{digit}{greater})");
        }
        // Exponents of up to three digits, up to the limit 30x.
        let up_to = |last: u32| {
            format!("[eE][+-]?(?:[0-2][0-9]{{0,2}}|3(?:[1-9]|0[0-{last}]?)?|[4-9][0-9]?)")
        };
        let parts = [
            r"[0-9]+(?:\.[0-9]*)?".to_owned(),
            format!(r"(?:0(?:\.[0-9]*)?|1(?:\.{at_most})?){}", up_to(8)),
            format!(r"(?:[2-9](?:\.[0-9]*)?|1\.{greater}){}", up_to(7)),
            r"[0-9]{2,}(?:\.[0-9]*)?[eE][+-]?[0-9]{1,2}".to_owned(),
        ];
        builtin_pattern_dfa(&format!("-?(?:{})", parts.join("|")))
    })
}

/// The automaton of texts whose integer part, fraction and exponent have at most `cap` digits each:
/// no more digits are in a row. The syntax is not checked. Fails if it would have more than `limit`
/// states.
pub(super) fn digit_cap_dfa(cap: u32, limit: usize) -> Result<Dfa, TooLarge> {
    if cap as usize >= limit {
        return Err(TooLarge::States { limit });
    }
    let mut b = DfaBuilder::new();
    // By number of digits in a row.
    for read in 0..=cap {
        b.state(true);
        for mark in [PLUS, MINUS, POINT, UPPER_E, LOWER_E] {
            b.edge(read, mark, mark, 0);
        }
        if read < cap {
            b.edge(read, ZERO, NINE, read + 1);
        }
    }
    Ok(b.finish())
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
