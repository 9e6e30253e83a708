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

/// Largest exponent behind a mantissa with one digit before the point. Behind more digits,
/// exponents have at most two digits.
const LARGEST_EXPONENT: [u8; 3] = *b"307";

/// The automaton of texts whose exponents double precision can represent. Magnitudes are below
/// 1e308 if there are at most 209 digits before the point. The syntax is not checked.
pub(super) static DOUBLE_RANGE: LazyLock<Dfa> = LazyLock::new(|| {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, MINUS, MINUS, minus);
    // more[n]: up to n more digits of the exponent may follow, and nothing else.
    let more = [0; 3].map(|_| b.state(true));
    (1..3).for_each(|n| b.edge(more[n], ZERO, NINE, more[n - 1]));
    let exponent_states = |b: &mut DfaBuilder| {
        let (mark, sign) = (b.state(false), b.state(false));
        b.edge(mark, PLUS, PLUS, sign);
        b.edge(mark, MINUS, MINUS, sign);
        [mark, sign]
    };
    let (large, small) = (exponent_states(&mut b), exponent_states(&mut b));
    small.into_iter().for_each(|from| b.edge(from, ZERO, NINE, more[1]));
    let mut from = Vec::from(large);
    for (n, digit) in LARGEST_EXPONENT.map(u32::from).into_iter().enumerate() {
        let tied = b.state(true);
        for from in from.drain(..) {
            if digit > ZERO {
                b.edge(from, ZERO, digit - 1, more[2 - n]);
            }
            b.edge(from, digit, digit, tied);
            // Behind a digit above the limit's, the exponent has one digit less.
            if n < 2 {
                b.edge(from, digit + 1, NINE, more[1 - n]);
            }
        }
        from.push(tied);
    }
    let [one, many, one_fraction, many_fraction] = [0; 4].map(|_| b.state(true));
    [start, minus].into_iter().for_each(|from| b.edge(from, ZERO, NINE, one));
    for (from, fraction, [exponent, _]) in
        [(one, one_fraction, large), (many, many_fraction, small)]
    {
        b.edge(from, ZERO, NINE, many);
        b.edge(from, POINT, POINT, fraction);
        b.edge(fraction, ZERO, NINE, fraction);
        add_exponent_marks(&mut b, from, exponent);
        add_exponent_marks(&mut b, fraction, exponent);
    }
    b.finish()
});

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
