//! Listed numbers: the automaton of all spellings of the numbers in an `enum` or `const`.

use super::exponent::{ExponentInterval, NumberUnion};
use crate::decimal::Decimal;
use crate::fsm::Dfa;

/// Maximum number of digits of a text without an exponent.
const MAX_DIGITS: usize = 64;
/// Maximum number of digits before the point of a number with an exponent.
const MAX_BEFORE: i64 = 20;

/// Spellings that listed numbers may have besides the shortest one.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberSpellings {
    /// Whole numbers may have a fraction of zeros, and an exponent if numbers may have exponents.
    pub(super) zero_fraction: bool,
    /// Numbers may have exponents.
    pub(super) exponents: bool,
}

/// Builds the minimal automaton over bytes of the spellings of `values`.
///
/// A number is spelled without an exponent, or with an exponent and the point at any position
/// within or around its digits. Fractions may have trailing zeros, and exponents leading zeros.
/// Numbers of more than 64 digits have no spelling without an exponent. Cost: close to linear in
/// the digits of the numbers, up to 20 of each. Fails if the fuel is spent.
pub(super) fn listed_dfa(values: &[Decimal], spellings: NumberSpellings) -> Result<Dfa, String> {
    let mut union = NumberUnion::new(usize::MAX);
    for value in values {
        let has_exponents = spellings.exponents && (spellings.zero_fraction || !value.is_integer());
        let plain = match value.is_zero() {
            true => vec!["0".to_owned(), "-0".to_owned()],
            false => value.plain(MAX_DIGITS).into_iter().collect(),
        };
        for text in &plain {
            union.add_text(text.as_bytes(), None, spellings.zero_fraction)?;
        }
        if !has_exponents {
            continue;
        }
        if value.is_zero() {
            for text in &plain {
                union.add_text(text.as_bytes(), Some(ExponentInterval::ANY), true)?;
            }
        }
        for (mantissa, exponent) in mantissas(value) {
            union.add_text(&mantissa, Some(ExponentInterval::just(exponent)), true)?;
        }
    }
    Ok(union.finish()?.minimize())
}

/// The mantissas of a number other than zero, each with its exponent. None, if there are too many
/// digits.
fn mantissas(value: &Decimal) -> impl Iterator<Item = (Vec<u8>, i64)> {
    let digits: Vec<u8> = value.digits().iter().map(|digit| b'0' + digit).collect();
    let length = digits.len() as i64;
    let most = length.max(value.first_place() + 1).min(MAX_BEFORE);
    let is_spelled = (1..=MAX_DIGITS).contains(&digits.len());
    (0..=most).filter(move |_| is_spelled).map(move |before| {
        let mut text = if value.is_negative() { b"-".to_vec() } else { Vec::new() };
        let point = before.min(length) as usize;
        text.extend(if before == 0 { b"0" } else { &digits[..point] });
        text.resize(text.len() + (before - length).max(0) as usize, b'0');
        if before < length {
            text.push(b'.');
            text.extend(&digits[point..]);
        }
        (text, value.first_place() + 1 - before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::spec::json::Json;

    /// All JSON numbers of up to `n` bytes with the digits 0, 1, 5.
    fn numbers(n: usize) -> Vec<String> {
        let json =
            |text: &str| matches!(Json::parse(text, &Limits::default()), Ok(Json::Number(_)));
        let mut out = vec![String::new()];
        for from in 0.. {
            let Some(text) = out.get(from).cloned() else { break };
            if text.len() < n {
                let longer = "-+015.e".chars().map(|c| format!("{text}{c}"));
                // Texts that at most two more bytes complete to a number.
                out.extend(longer.filter(|text| {
                    ["", "0", "00"].iter().any(|end| json(&format!("{text}{end}")))
                }));
            }
        }
        out.retain(|text| json(text));
        out
    }

    #[test]
    fn listed_numbers_have_exactly_the_documented_spellings() {
        let texts = numbers(7);
        let lists: [&[&str]; 7] = [
            &["0"],
            &["1"],
            &["-15", "150"],
            &["1.5", "1.505", "0.05"],
            &["5e3", "1e-4"],
            &["10", "100", "1", "0.1"],
            &[],
        ];
        for list in lists {
            let values: Vec<Decimal> = list.iter().map(|text| Decimal::parse(text)).collect();
            for zero_fraction in [false, true] {
                for exponents in [false, true] {
                    let spellings = NumberSpellings { zero_fraction, exponents };
                    let dfa = listed_dfa(&values, spellings).unwrap();
                    let mut accepted = 0;
                    for text in &texts {
                        let value = Decimal::parse(text);
                        let (mantissa, power) =
                            text.split_once('e').map_or((&text[..], None), |(m, e)| (m, Some(e)));
                        let (whole, fraction) = mantissa
                            .split_once('.')
                            .map_or((mantissa, None), |(w, f)| (w, Some(f)));
                        let digits = whole.trim_start_matches('-');
                        // The point is not further out than the digits.
                        let near = value.is_zero()
                            || (digits != "0" || fraction.is_some_and(|f| !f.starts_with('0')))
                                && (digits == "0"
                                    || digits.len() as i64
                                        <= (value.digits().len() as i64)
                                            .max(value.first_place() + 1));
                        let spelled = (power.is_none() || exponents && near)
                            && (!value.is_integer()
                                || zero_fraction
                                || power.is_none() && fraction.is_none());
                        let want = values.contains(&value) && spelled;
                        assert_eq!(
                            dfa.accepts(text.bytes().map(u32::from)),
                            want,
                            "{text} {list:?} {exponents}"
                        );
                        accepted += usize::from(want);
                    }
                    assert!(list.is_empty() || accepted > 0);
                }
            }
        }
    }

    #[test]
    fn thousands_of_listed_numbers_build_one_automaton() {
        let values: Vec<Decimal> =
            (0..2_000).map(|n| Decimal::parse(&(n * 7_919).to_string())).collect();
        let spellings = NumberSpellings { zero_fraction: true, exponents: true };
        let dfa = listed_dfa(&values, spellings).unwrap();
        let accepts = |text: &str| dfa.accepts(text.bytes().map(u32::from));
        assert!(
            accepts("7919")
                && accepts("7.919e3")
                && accepts("15830081.0")
                && !accepts("7920")
                && !accepts("7.919e2")
        );
    }
}
