//! Exact decimal numbers of any size, parsed from JSON number text.

use std::cmp::Ordering;

/// Largest exponent; larger ones are clamped when a number is parsed, and refused in schemas.
pub(crate) const MAX_EXPONENT: i64 = 1 << 40;

/// Whether the exponent of a JSON number is larger than [`MAX_EXPONENT`].
pub(crate) fn has_large_exponent(text: &str) -> bool {
    text.split_once(['e', 'E']).is_some_and(|(_, exponent)| magnitude(exponent) > MAX_EXPONENT)
}

/// The absolute value of the text of an exponent, saturating.
fn magnitude(exponent: &str) -> i64 {
    exponent.trim_start_matches(['+', '-']).parse().unwrap_or(i64::MAX)
}

/// The number `sign * 0.d1 d2 ... dn * 10^exponent`, normalised: `d1` and `dn` are not zero. Zero
/// has no digits, exponent 0 and no sign.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Parses a text that may be a JSON number; `None` if it is none.
    pub(crate) fn read(text: &[u8]) -> Option<Decimal> {
        let text = std::str::from_utf8(text).ok()?;
        let is_bare = text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && text.ends_with(|c: char| c.is_ascii_digit());
        let is_number = is_bare && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        is_number.then(|| Decimal::parse(text))
    }

    /// Parses JSON number text.
    pub(crate) fn parse(text: &str) -> Decimal {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let magnitude = magnitude(exponent).min(MAX_EXPONENT);
        let exponent = if exponent.starts_with('-') { -magnitude } else { magnitude };
        let digits = integer.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
        Decimal::new(negative, digits, exponent + integer.len() as i64)
    }

    /// Makes a number of digits `0.d1 d2 ...` and an exponent, and normalises it.
    pub(crate) fn new(negative: bool, mut digits: Vec<u8>, mut exponent: i64) -> Decimal {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let leading = digits.iter().take_while(|&&d| d == 0).count();
        digits.drain(..leading);
        exponent -= leading as i64;
        if digits.is_empty() {
            return Decimal { negative: false, digits, exponent: 0 };
        }
        Decimal { negative, digits, exponent }
    }

    /// Whether the value is zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether the value is less than zero.
    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether the value is a whole number.
    pub(crate) fn is_integer(&self) -> bool {
        self.digits.len() as i64 <= self.exponent.max(0)
    }

    /// The absolute value.
    pub(crate) fn abs(&self) -> Decimal {
        Decimal { negative: false, ..self.clone() }
    }

    /// The digits; the first and the last one are not zero. Zero has none.
    pub(crate) fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// The exponent: the number is `0.d1 d2 ... dn * 10^exponent`.
    pub(crate) fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The power of ten of the first digit.
    pub(crate) fn first_place(&self) -> i64 {
        self.exponent - 1
    }

    /// The power of ten of the last digit.
    pub(crate) fn last_place(&self) -> i64 {
        self.exponent - self.digits.len() as i64
    }

    /// Digits before and after the decimal point, without leading and trailing zeros. `None` past
    /// `cap` digits.
    pub(crate) fn parts(&self, cap: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        if self.exponent.unsigned_abs() as usize > cap || self.digits.len() > cap {
            return None;
        }
        if self.exponent <= 0 {
            let mut fraction = vec![0; self.exponent.unsigned_abs() as usize];
            fraction.extend(&self.digits);
            return Some((Vec::new(), fraction));
        }
        let point = (self.exponent as usize).min(self.digits.len());
        let mut integer = self.digits[..point].to_vec();
        integer.resize(self.exponent as usize, 0);
        Some((integer, self.digits[point..].to_vec()))
    }

    /// The text without an exponent; `None` past `cap` digits.
    pub(crate) fn plain(&self, cap: usize) -> Option<String> {
        let (integer, fraction) = self.parts(cap)?;
        let text = |digits: &[u8]| digits.iter().map(|d| char::from(b'0' + d)).collect::<String>();
        let sign = if self.negative { "-" } else { "" };
        let integer = if integer.is_empty() { "0".to_owned() } else { text(&integer) };
        Some(if fraction.is_empty() {
            format!("{sign}{integer}")
        } else {
            format!("{sign}{integer}.{}", text(&fraction))
        })
    }

    /// The value as a non-negative integer, saturating at `u32::MAX`. `None` for other numbers.
    pub(crate) fn to_count(&self) -> Option<u32> {
        if self.negative || !self.is_integer() {
            return None;
        }
        let (integer, _) = self.parts(10).unwrap_or_else(|| (vec![9; 20], Vec::new()));
        let value =
            integer.iter().fold(0u64, |n, &d| n.saturating_mul(10).saturating_add(u64::from(d)));
        Some(u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Canonical text: equal for equal values.
    pub(crate) fn canonical(&self) -> String {
        let digits: String = self.digits.iter().map(|d| char::from(b'0' + d)).collect();
        format!("{}{digits}e{}", if self.negative { "-" } else { "" }, self.exponent)
    }

    /// Whether `self` is a whole multiple of a positive `unit`. `None` for units of more than 36
    /// digits. Cost: linear in the digits, logarithmic in the exponents.
    pub(crate) fn is_multiple_of(&self, unit: &Decimal) -> Option<bool> {
        if self.is_zero() {
            return Some(true);
        }
        if unit.digits.len() > 36 {
            return None;
        }
        // The digits of neither end in a zero, so a value whose last place is lower than that of
        // the unit is no multiple. One whose last place is higher has more zeros at its end.
        let Ok(power) = u64::try_from(self.last_place().checked_sub(unit.last_place())?) else {
            return Some(false);
        };
        let unit = unit.digits.iter().fold(0u128, |n, &d| n * 10 + u128::from(d));
        let rest = self.digits.iter().fold(0u128, |rest, &d| (rest * 10 + u128::from(d)) % unit);
        Some(product_modulo(rest, power_modulo(10, power, unit), unit) == 0)
    }
}

/// `base^exponent` modulo `modulus`, which is less than 2^127.
fn power_modulo(base: u128, mut exponent: u64, modulus: u128) -> u128 {
    let (mut power, mut square) = (1 % modulus, base % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = product_modulo(power, square, modulus);
        }
        square = product_modulo(square, square, modulus);
        exponent >>= 1;
    }
    power
}

/// `a * b` modulo `modulus`, which is less than 2^127, by doubling.
fn product_modulo(mut a: u128, mut b: u128, modulus: u128) -> u128 {
    let mut sum = 0;
    a %= modulus;
    while b > 0 {
        if b & 1 == 1 {
            sum = (sum + a) % modulus;
        }
        a = (a << 1) % modulus;
        b >>= 1;
    }
    sum
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |d: &Decimal| if d.is_zero() { 0 } else { 1 - 2 * i32::from(d.negative) };
        let signs = sign(self).cmp(&sign(other));
        if signs != Ordering::Equal {
            return signs;
        }
        let magnitude =
            self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        if self.negative { magnitude.reverse() } else { magnitude }
    }
}

/// The largest number of remainders by a unit that are tracked.
pub(crate) const MAX_REMAINDERS: u64 = 20_000;

/// The least common multiple of two units; `None` if it has too many remainders to track.
pub(crate) fn common_multiple(a: &Decimal, b: &Decimal) -> Option<Decimal> {
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
    tracked_unit(&unit).map(|_| unit)
}

/// A unit whose multiples an automaton can recognize: `modulus * 10^(zeros - places)`, where
/// `zeros` or `places` is zero.
pub(crate) struct TrackedUnit {
    /// The digits of the unit without zeros at the end.
    pub(crate) modulus: u64,
    /// Number of zeros at the end of an integer.
    pub(crate) zeros: usize,
    /// Number of decimal places.
    pub(crate) places: usize,
}

/// The unit for an automaton; `None` if there are too many remainders to track.
pub(crate) fn tracked_unit(unit: &Decimal) -> Option<TrackedUnit> {
    let (integer, fraction) = unit.parts(18)?;
    if integer.len() + fraction.len() > 18 {
        return None;
    }
    let digits = || integer.iter().chain(&fraction);
    let zeros = match fraction.len() {
        0 => integer.iter().rev().take_while(|&&digit| digit == 0).count(),
        _ => 0,
    };
    let significant = digits().take(integer.len() + fraction.len() - zeros);
    let modulus = significant.fold(0u64, |n, &digit| n * 10 + u64::from(digit));
    let places = fraction.len();
    (modulus.saturating_mul((zeros + places) as u64 + 2) <= MAX_REMAINDERS).then_some(TrackedUnit {
        modulus,
        zeros,
        places,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text)
    }

    #[test]
    fn numbers_compare_by_value() {
        for (a, b) in [("1", "1.0"), ("100", "1e2"), ("-0", "0.00"), ("0.5", "50e-2")] {
            assert_eq!(d(a), d(b));
        }
        for (a, b) in
            [("-2", "-1"), ("-1", "0"), ("0.099", "0.1"), ("9", "10"), ("1", "1.5"), ("-1.5", "-1")]
        {
            assert!(d(a) < d(b), "{a} {b}");
        }
    }

    #[test]
    fn texts_that_are_no_numbers_are_not_read() {
        for text in ["0", "-0", "10", "-1.50", "2e+07", "3E-9", "0.0e99999999999999999999"] {
            assert_eq!(Decimal::read(text.as_bytes()), Some(d(text)), "{text}");
        }
        for text in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1e5.0", "--1", "1-", "1 ", " 1"]
        {
            assert_eq!(Decimal::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn plain_text_and_counts_are_exact() {
        assert_eq!(d("-1.250e1").plain(50).unwrap(), "-12.5");
        assert_eq!(d("1e3").plain(50).unwrap(), "1000");
        assert_eq!(d("5e-3").plain(50).unwrap(), "0.005");
        assert_eq!(d("1e999999999999999999999").plain(50), None);
        assert!(d("1e2").is_integer() && !d("1.5").is_integer() && d("0.0").is_integer());
        assert_eq!(d("4294967296").to_count(), Some(u32::MAX));
        assert_eq!(d("3.0").to_count(), Some(3));
    }

    #[test]
    fn multiples_are_exact() {
        for (value, unit, expected) in [
            ("4.35", "0.01", true),
            ("7", "2", false),
            ("1e20", "3", false),
            ("3e20", "3", true),
            ("10", "2.5", true),
            ("0.5", "1", false),
            ("-9e99999", "3", true),
            ("1e99999", "7", false),
            ("1e1000000000000", "1024e-9", true),
            ("1e-99999", "1", false),
            ("3e-99999", "1.5e-99999", true),
            ("1e40", "99999999999999999999999999999999999", false),
            ("99999999999999999999999999999999999e9", "99999999999999999999999999999999999", true),
        ] {
            assert_eq!(d(value).is_multiple_of(&d(unit)), Some(expected), "{value} {unit}");
        }
        assert_eq!(d("1").is_multiple_of(&d("1234567890123456789012345678901234567")), None);
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
