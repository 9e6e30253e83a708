//! Limits on the digits and exponents of numbers, as automata over number text.

use std::sync::LazyLock;

use crate::fsm::{Dfa, DfaBuilder, TooLarge};

/// The symbols of number text, as bytes.
pub(super) const PLUS: u32 = b'+' as u32;
pub(super) const MINUS: u32 = b'-' as u32;
pub(super) const POINT: u32 = b'.' as u32;
pub(super) const ZERO: u32 = b'0' as u32;
pub(super) const ONE: u32 = b'1' as u32;
pub(super) const NINE: u32 = b'9' as u32;
pub(super) const UPPER_E: u32 = b'E' as u32;
pub(super) const LOWER_E: u32 = b'e' as u32;

/// The digits of the greatest double, whose exponent is 308. Greater mantissas have smaller
/// exponents.
const GREATEST_MANTISSA: &[u8] = b"17976931348623157";

/// The automaton of texts whose exponents double precision can represent. After one digit before
/// the point, magnitudes are at most the greatest double. After more digits, exponents have up to
/// two digits, so that 209 digits stay in range. The syntax is not checked.
pub(super) static DOUBLE_RANGE: LazyLock<Dfa> = LazyLock::new(|| {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, MINUS, MINUS, minus);
    // more[n]: up to n more digits of the exponent may follow, and nothing else.
    let more = [0; 3].map(|_| b.state(true));
    (1..3).for_each(|n| b.edge(more[n], ZERO, NINE, more[n - 1]));
    // After mantissas of one digit that are at most the greatest double's, that are greater, and
    // after mantissas of more digits.
    let at_most = add_exponent(&mut b, b"308", more);
    let greater = add_exponent(&mut b, b"307", more);
    let many = add_exponent(&mut b, b"99", more);

    let digits = b.state(true);
    let mut add_mantissa = |exponent: u32| {
        let [one, fraction] = [0; 2].map(|_| b.state(true));
        b.edge(one, ZERO, NINE, digits);
        b.edge(one, POINT, POINT, fraction);
        b.edge(fraction, ZERO, NINE, fraction);
        add_exponent_marks(&mut b, one, exponent);
        add_exponent_marks(&mut b, fraction, exponent);
        [one, fraction]
    };
    let [less_one, less] = add_mantissa(at_most);
    let [more_one, more_fraction] = add_mantissa(greater);
    let [_, many_fraction] = add_mantissa(many);
    b.edge(digits, ZERO, NINE, digits);
    b.edge(digits, POINT, POINT, many_fraction);
    add_exponent_marks(&mut b, digits, many);
    // Mantissas that begin as the greatest double's does.
    let mut tied = b.state(true);
    for from in [start, minus] {
        b.edge(from, ZERO, ZERO, less_one);
        b.edge(from, ONE, ONE, tied);
        b.edge(from, ONE + 1, NINE, more_one);
    }
    b.edge(tied, ZERO, NINE, digits);
    add_exponent_marks(&mut b, tied, at_most);
    let fraction = b.state(true);
    b.edge(tied, POINT, POINT, fraction);
    tied = fraction;
    add_exponent_marks(&mut b, tied, at_most);
    for digit in GREATEST_MANTISSA[1..].iter().map(|&digit| u32::from(digit)) {
        let next = b.state(true);
        b.edge(tied, ZERO, digit - 1, less);
        b.edge(tied, digit, digit, next);
        if digit < NINE {
            b.edge(tied, digit + 1, NINE, more_fraction);
        }
        add_exponent_marks(&mut b, next, at_most);
        tied = next;
    }
    b.edge(tied, ZERO, ZERO, tied);
    b.edge(tied, ONE, NINE, more_fraction);
    b.finish()
});

/// Adds the states after `e` for exponents up to `limit`, which has at most three digits, and
/// returns the first. `more[n]` accepts up to `n` more digits.
fn add_exponent(b: &mut DfaBuilder, limit: &[u8], more: [u32; 3]) -> u32 {
    let [mark, sign] = [0; 2].map(|_| b.state(false));
    b.edge(mark, PLUS, PLUS, sign);
    b.edge(mark, MINUS, MINUS, sign);
    let mut from = vec![mark, sign];
    for (left, digit) in limit.iter().map(|&digit| u32::from(digit)).enumerate() {
        let left = limit.len() - 1 - left;
        let tied = b.state(true);
        for from in from.drain(..) {
            if digit > ZERO {
                b.edge(from, ZERO, digit - 1, more[left]);
            }
            b.edge(from, digit, digit, tied);
            // After a digit above the limit's, the exponent has one digit less.
            if left > 0 && digit < NINE {
                b.edge(from, digit + 1, NINE, more[left - 1]);
            }
        }
        from.push(tied);
    }
    mark
}

/// Adds edges for `e` and `E`.
pub(super) fn add_exponent_marks(b: &mut DfaBuilder, from: u32, to: u32) {
    b.edge(from, UPPER_E, UPPER_E, to);
    b.edge(from, LOWER_E, LOWER_E, to);
}

/// The automaton over bytes of texts whose integer part, fraction and exponent have at most `cap`
/// digits each. The syntax is not checked. Fails if it would have more than `limit` states.
pub(super) fn digit_cap_dfa(cap: u32, limit: usize) -> Result<Dfa, TooLarge> {
    if cap as usize * 3 > limit {
        return Err(TooLarge::States { limit });
    }
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let mut last = b.state(false);
    b.edge(start, MINUS, MINUS, last);
    let mut run = |first: &[u32], marks: &[u8]| -> (u32, Vec<u32>) {
        let mut from = Vec::from(first);
        let mut digits = Vec::new();
        for _ in 0..cap {
            let next = b.state(true);
            from.drain(..).for_each(|from| b.edge(from, ZERO, NINE, next));
            from.push(next);
            digits.push(next);
        }
        let mark_state = b.state(false);
        for (&mark, &digit) in
            marks.iter().flat_map(|mark| digits.iter().map(move |digit| (mark, digit)))
        {
            b.edge(digit, u32::from(mark), u32::from(mark), mark_state);
        }
        (mark_state, digits)
    };
    let (point, wholes) = run(&[start, last], b".");
    let (exponent, _) = run(&[point], b"eE");
    last = b.state(false);
    wholes.iter().for_each(|&digit| add_exponent_marks(&mut b, digit, exponent));
    for sign in [PLUS, MINUS] {
        b.edge(exponent, sign, sign, last);
    }
    let mut from = vec![exponent, last];
    for _ in 0..cap {
        let next = b.state(true);
        from.drain(..).for_each(|from| b.edge(from, ZERO, NINE, next));
        from.push(next);
    }
    Ok(b.finish())
}
