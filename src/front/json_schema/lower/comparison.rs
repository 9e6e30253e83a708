//! Comparison of number text with bounds: automata of the numbers without an exponent that are less
//! than, equal to or greater than a number.

use std::cmp::Ordering;

use super::super::read::facets::Bound;
use super::number_text::{MINUS, NINE, POINT, ZERO};
use crate::decimal::Decimal;
use crate::fsm::{Dfa, DfaBuilder};

/// Maximum number of digits of a bound.
const MAX_DIGITS: usize = 2_000;
/// The orders of a number and a bound, in the order of [`slot`].
const ORDERS: [Ordering; 3] = [Ordering::Less, Ordering::Equal, Ordering::Greater];

/// The automaton of the decimal texts that compare to the bound as `order` says, or equal it where
/// it is inclusive. The texts have no exponent; their syntax is not checked.
pub(super) fn comparison_dfa(bound: &Bound, order: Ordering) -> Result<Dfa, String> {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, MINUS, MINUS, minus);
    let equal = !bound.exclusive;
    let magnitude = bound.value.abs();
    // For each sign, the magnitudes that satisfy the bound.
    let (positive, negative) = match (order, bound.value.is_negative()) {
        (Ordering::Greater, false) => (
            AcceptedOrders::of_order(Ordering::Greater, equal),
            AcceptedOrders::zero(&magnitude, equal),
        ),
        (Ordering::Greater, true) => {
            (AcceptedOrders::ALL, AcceptedOrders::of_order(Ordering::Less, equal))
        }
        (_, false) => (
            AcceptedOrders::of_order(Ordering::Less, equal),
            AcceptedOrders::below_zero(&magnitude, equal),
        ),
        (_, true) => (AcceptedOrders::NONE, AcceptedOrders::of_order(Ordering::Greater, equal)),
    };
    add_magnitude_states(&mut b, start, &magnitude, positive)?;
    add_magnitude_states(&mut b, minus, &magnitude, negative)?;
    Ok(b.finish())
}

/// The automaton of the decimal texts that equal `value`. They have no exponent; their syntax is
/// not checked.
pub(super) fn equality_dfa(value: &Decimal) -> Result<Dfa, String> {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, MINUS, MINUS, minus);
    let accepted = AcceptedOrders { equal: true, ..AcceptedOrders::NONE };
    for (from, negative) in [(start, false), (minus, true)] {
        if value.is_zero() || value.is_negative() == negative {
            add_magnitude_states(&mut b, from, &value.abs(), accepted)?;
        }
    }
    Ok(b.finish())
}

/// The magnitudes to accept: those less than, equal to or greater than the bound's
/// magnitude.
#[derive(Clone, Copy)]
struct AcceptedOrders {
    less: bool,
    equal: bool,
    greater: bool,
}

impl AcceptedOrders {
    /// Every magnitude.
    const ALL: AcceptedOrders = AcceptedOrders { less: true, equal: true, greater: true };
    /// No magnitude.
    const NONE: AcceptedOrders = AcceptedOrders { less: false, equal: false, greater: false };

    /// Magnitudes of one order, and equal ones if `equal` is set.
    fn of_order(order: Ordering, equal: bool) -> AcceptedOrders {
        AcceptedOrders { less: order == Ordering::Less, equal, greater: order == Ordering::Greater }
    }

    /// `-m >= bound` for a non-negative bound: only `-0`, if the bound is zero.
    fn zero(bound: &Decimal, equal: bool) -> AcceptedOrders {
        AcceptedOrders { equal: bound.is_zero() && equal, ..AcceptedOrders::NONE }
    }

    /// `-m <= bound` for a non-negative bound: all, except `-0` where the bound is zero and
    /// exclusive.
    fn below_zero(bound: &Decimal, equal: bool) -> AcceptedOrders {
        AcceptedOrders { equal: equal || !bound.is_zero(), ..AcceptedOrders::ALL }
    }

    /// Whether a magnitude of this order to the bound is accepted.
    fn accepts(self, order: Ordering) -> bool {
        match order {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }
}

/// The index of an order in [`ORDERS`].
fn slot(order: Ordering) -> usize {
    (order as i8 + 1) as usize
}

/// The states after the point of a text that is compared to a bound.
struct FractionStates {
    /// Where the order is decided: by slot.
    decided: [u32; 3],
    /// Where the digits before the point equal the bound's.
    undecided: u32,
}

impl FractionStates {
    /// Adds the states for a bound with these digits after the point.
    fn add(b: &mut DfaBuilder, fraction: &[u8], accepted: AcceptedOrders) -> FractionStates {
        let decided = ORDERS.map(|order| b.state(accepted.accepts(order)));
        for order in [Ordering::Less, Ordering::Greater] {
            let s = decided[slot(order)];
            b.edge(s, ZERO, NINE, s);
        }
        // The texts agree up to digit j of the fraction.
        let order_at = |j| if j < fraction.len() { Ordering::Less } else { Ordering::Equal };
        let agreed: Vec<u32> =
            (0..=fraction.len()).map(|j| b.state(accepted.accepts(order_at(j)))).collect();
        for (j, &s) in agreed.iter().enumerate() {
            let digit = fraction.get(j).copied().unwrap_or(0);
            let next = agreed.get(j + 1).copied().unwrap_or(s);
            add_digit_edges(b, s, digit, [decided[0], next, decided[2]]);
        }
        FractionStates { decided, undecided: agreed[0] }
    }

    /// The state after the point, where the digits before it are in this order to the bound's.
    fn after_point(&self, order: Ordering) -> u32 {
        match order {
            Ordering::Equal => self.undecided,
            order => self.decided[slot(order)],
        }
    }
}

/// Adds states after `from` that read digits and an optional fraction. They are final where the
/// magnitude read compares to `bound` in an accepted order. Relies on a syntax without leading
/// zeros: there, more digits mean a greater number.
fn add_magnitude_states(
    b: &mut DfaBuilder,
    from: u32,
    bound: &Decimal,
    accepted: AcceptedOrders,
) -> Result<(), String> {
    let (mut integer, fraction) =
        bound.parts(MAX_DIGITS).ok_or(format!("a bound has more than {MAX_DIGITS} digits"))?;
    if integer.is_empty() {
        integer.push(0);
    }
    let fractions = FractionStates::add(b, &fraction, accepted);
    // More integer digits than the bound has.
    let longer = b.state(accepted.greater);
    b.edge(longer, ZERO, NINE, longer);
    b.edge(longer, POINT, POINT, fractions.after_point(Ordering::Greater));
    // States after i digits, by their comparison with the first i digits of the bound.
    let mut row = [from; 3];
    for (i, &digit) in integer.iter().enumerate() {
        let last = i + 1 == integer.len();
        let at_end = |order: Ordering| match order {
            _ if !last => Ordering::Less,
            Ordering::Equal if !fraction.is_empty() => Ordering::Less,
            order => order,
        };
        let next = ORDERS.map(|order| b.state(accepted.accepts(at_end(order))));
        for order in ORDERS {
            let s = next[slot(order)];
            let order = if last { order } else { Ordering::Less };
            b.edge(s, POINT, POINT, fractions.after_point(order));
            if last {
                b.edge(s, ZERO, NINE, longer);
            }
        }
        add_digit_edges(b, row[1], digit, next);
        if i > 0 {
            b.edge(row[0], ZERO, NINE, next[0]);
            b.edge(row[2], ZERO, NINE, next[2]);
        }
        row = next;
    }
    Ok(())
}

/// Adds edges for the digits below, equal to and above `digit`.
fn add_digit_edges(b: &mut DfaBuilder, from: u32, digit: u8, to: [u32; 3]) {
    let code = u32::from(b'0' + digit);
    if digit > 0 {
        b.edge(from, ZERO, code - 1, to[0]);
    }
    b.edge(from, code, code, to[1]);
    if digit < 9 {
        b.edge(from, code + 1, NINE, to[2]);
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
