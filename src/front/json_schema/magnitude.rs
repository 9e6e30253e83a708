//! Limits on the digits and exponents of numbers, as automata over number text.

use std::sync::LazyLock;

use crate::fsm::{Dfa, DfaBuilder, TooLarge};

/// Largest exponent behind a mantissa with one digit before the point. Behind more digits,
/// exponents have at most two digits.
const LARGEST_EXPONENT: [u8; 3] = *b"307";

/// The automaton of texts whose exponents double precision can represent. Magnitudes are below
/// 1e308 if there are at most 209 digits before the point. The syntax is not checked.
pub(super) static DOUBLE_RANGE: LazyLock<Dfa> = LazyLock::new(|| {
    let mut b = DfaBuilder::new();
    let start = b.state(false);
    let minus = b.state(false);
    b.edge(start, 45, 45, minus);
    // more[n]: up to n more digits of the exponent may follow, and nothing else.
    let more = [0; 3].map(|_| b.state(true));
    (1..3).for_each(|n| b.edge(more[n], 48, 57, more[n - 1]));
    let behind = |b: &mut DfaBuilder| {
        let (mark, sign) = (b.state(false), b.state(false));
        b.edge(mark, 43, 43, sign);
        b.edge(mark, 45, 45, sign);
        [mark, sign]
    };
    let (large, small) = (behind(&mut b), behind(&mut b));
    small.into_iter().for_each(|from| b.edge(from, 48, 57, more[1]));
    let mut from = Vec::from(large);
    for (n, digit) in LARGEST_EXPONENT.map(u32::from).into_iter().enumerate() {
        let tied = b.state(true);
        for from in from.drain(..) {
            if digit > 48 {
                b.edge(from, 48, digit - 1, more[2 - n]);
            }
            b.edge(from, digit, digit, tied);
            // Behind a digit above the limit's, the exponent has one digit less.
            if n < 2 {
                b.edge(from, digit + 1, 57, more[1 - n]);
            }
        }
        from.push(tied);
    }
    let [one, many, one_fraction, many_fraction] = [0; 4].map(|_| b.state(true));
    [start, minus].into_iter().for_each(|from| b.edge(from, 48, 57, one));
    for (from, fraction, [exponent, _]) in
        [(one, one_fraction, large), (many, many_fraction, small)]
    {
        b.edge(from, 48, 57, many);
        b.edge(from, 46, 46, fraction);
        b.edge(fraction, 48, 57, fraction);
        add_exponent_marks(&mut b, from, exponent);
        add_exponent_marks(&mut b, fraction, exponent);
    }
    b.finish()
});

/// Adds edges for `e` and `E`.
pub(super) fn add_exponent_marks(b: &mut DfaBuilder, from: u32, to: u32) {
    b.edge(from, 69, 69, to);
    b.edge(from, 101, 101, to);
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
    b.edge(start, 45, 45, last);
    let mut run = |first: &[u32], marks: &[u8]| -> (u32, Vec<u32>) {
        let mut from = Vec::from(first);
        let mut digits = Vec::new();
        for _ in 0..cap {
            let next = b.state(true);
            from.drain(..).for_each(|from| b.edge(from, 48, 57, next));
            from.push(next);
            digits.push(next);
        }
        let behind = b.state(false);
        for (&mark, &digit) in
            marks.iter().flat_map(|mark| digits.iter().map(move |digit| (mark, digit)))
        {
            b.edge(digit, u32::from(mark), u32::from(mark), behind);
        }
        (behind, digits)
    };
    let (point, wholes) = run(&[start, last], b".");
    let (exponent, _) = run(&[point], b"eE");
    last = b.state(false);
    wholes.iter().for_each(|&digit| add_exponent_marks(&mut b, digit, exponent));
    for sign in [43, 45] {
        b.edge(exponent, sign, sign, last);
    }
    let mut from = vec![exponent, last];
    for _ in 0..cap {
        let next = b.state(true);
        from.drain(..).for_each(|from| b.edge(from, 48, 57, next));
        from.push(next);
    }
    Ok(b.finish())
}
