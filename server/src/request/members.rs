//! Typed access to the members of a JSON object. Faults are collected with their JSON pointers, and
//! parsing continues.

use std::ops::{Deref, RangeInclusive};

use louver::front::diagnostic::{is_same_name, similar};
use louver::spec::json::{Json, Object, push_token};

use crate::error::{ApiError, ApiFault, MAX_FAULTS};

/// An object within a request body and its JSON pointer. Members that are `null` count as absent.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a> {
    object: &'a Object,
    base: String,
}

/// The faults collected so far. Those past the maximum are dropped: a body may have millions.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Faults(Vec<ApiFault>);

impl Faults {
    pub(crate) fn new() -> Faults {
        Faults::default()
    }

    /// Whether further faults are dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MAX_FAULTS
    }

    pub(crate) fn push(&mut self, fault: ApiFault) {
        if !self.is_full() {
            self.0.push(fault);
        }
    }
}

impl Extend<ApiFault> for Faults {
    fn extend<I: IntoIterator<Item = ApiFault>>(&mut self, faults: I) {
        self.0.extend(faults.into_iter().take(MAX_FAULTS - self.0.len()));
    }
}

impl Deref for Faults {
    type Target = [ApiFault];

    fn deref(&self) -> &[ApiFault] {
        &self.0
    }
}

impl IntoIterator for Faults {
    type Item = ApiFault;
    type IntoIter = std::vec::IntoIter<ApiFault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> Members<'a> {
    /// The members of a whole body. Error: the body is not an object.
    pub(crate) fn of_body(body: &'a Json) -> Result<Members<'a>, ApiError> {
        Members::from_json(body, "", &mut Faults::new())
            .ok_or_else(|| ApiError::invalid("", "invalid_type", "the body must be an object"))
    }

    /// Takes a value that must be an object; `base` is its JSON pointer.
    pub(crate) fn from_json(
        json: &'a Json,
        base: impl Into<String>,
        faults: &mut Faults,
    ) -> Option<Members<'a>> {
        let base = base.into();
        match json {
            Json::Object(object) => Some(Members { object, base }),
            _ => {
                if !faults.is_full() {
                    faults.push(ApiFault::at(base, "invalid_type", "must be an object"));
                }
                None
            }
        }
    }

    /// The JSON pointer of a member.
    pub(crate) fn pointer(&self, name: &str) -> String {
        let mut pointer = self.base.clone();
        push_token(&mut pointer, name);
        pointer
    }

    /// The members' names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.object.iter().map(|(name, _)| name)
    }

    /// All members, including those that are `null`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Json)> {
        self.object.iter()
    }

    /// Reports the members that are not in `known`, with the one that is likely meant.
    pub(crate) fn refuse_unknown(&self, faults: &mut Faults, known: &[&str]) {
        self.refuse_unknown_with(faults, known, "");
    }

    /// As [`Members::refuse_unknown`], with advice where no known member is similar.
    pub(crate) fn refuse_unknown_with(&self, faults: &mut Faults, known: &[&str], advice: &str) {
        for name in self.object.unknown(known) {
            if faults.is_full() {
                return;
            }
            self.fail_unknown(faults, name, known.iter().copied(), advice);
        }
    }

    /// Reports an unknown member with the known one that is likely meant, or else with advice.
    pub(crate) fn fail_unknown<'k>(
        &self,
        faults: &mut Faults,
        name: &str,
        known: impl Iterator<Item = &'k str>,
        advice: &str,
    ) {
        let known: Vec<&str> = known.collect();
        let same = known.iter().copied().find(|known| is_same_name(name, known));
        let message = match same.or_else(|| similar(name, known, faults.len())) {
            Some(meant) => format!("there is no such member; is `{meant}` meant?"),
            None => format!("there is no such member{advice}"),
        };
        self.fail(faults, name, "unknown_member", message);
    }

    /// A member, if it is present and not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Json> {
        self.object.get_non_null(name)
    }

    /// A member that must be present and not `null`.
    pub(crate) fn require(&self, faults: &mut Faults, name: &str) -> Option<&'a Json> {
        let value = self.get(name);
        if value.is_none() {
            self.fail(faults, name, "missing", "is missing");
        }
        value
    }

    /// A member that must be present, read by a typed reader such as [`Members::array`].
    pub(crate) fn required<T>(
        &self,
        faults: &mut Faults,
        name: &str,
        read: impl FnOnce(&Self, &mut Faults, &str) -> Option<T>,
    ) -> Option<T> {
        self.require(faults, name)?;
        read(self, faults, name)
    }

    /// A string that must be present. The empty text if it is missing or no string.
    pub(crate) fn required_string(&self, faults: &mut Faults, name: &str) -> &'a str {
        self.required(faults, name, Members::string).unwrap_or_default()
    }

    /// Reports a fault of a member.
    pub(crate) fn fail(
        &self,
        faults: &mut Faults,
        name: &str,
        code: &'static str,
        message: impl Into<String>,
    ) {
        if !faults.is_full() {
            faults.push(ApiFault::at(self.pointer(name), code, message));
        }
    }

    fn typed<T>(
        &self,
        faults: &mut Faults,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name)?;
        let value = read(value);
        if value.is_none() {
            self.fail(faults, name, "invalid_type", format!("must be {expected}"));
        }
        value
    }

    /// A string.
    pub(crate) fn string(&self, faults: &mut Faults, name: &str) -> Option<&'a str> {
        self.typed(faults, name, "a string", Json::as_str)
    }

    /// A boolean.
    pub(crate) fn boolean(&self, faults: &mut Faults, name: &str) -> Option<bool> {
        self.typed(faults, name, "a boolean", |value| {
            if let Json::Bool(b) = value { Some(*b) } else { None }
        })
    }

    /// An array.
    pub(crate) fn array(&self, faults: &mut Faults, name: &str) -> Option<&'a [Json]> {
        self.typed(faults, name, "an array", Json::as_array)
    }

    /// Checks that the model may call this tool: the server runs no programs that call tools.
    pub(crate) fn require_direct_callers(&self, faults: &mut Faults) {
        let callers = self.array(faults, "allowed_callers");
        if callers.is_some_and(|callers| !callers.iter().any(|c| c.as_str() == Some("direct"))) {
            let message = "must contain \"direct\": only the model calls tools";
            self.fail(faults, "allowed_callers", "unsupported", message);
        }
    }

    /// An object.
    pub(crate) fn object(&self, faults: &mut Faults, name: &str) -> Option<Members<'a>> {
        let base = self.pointer(name);
        self.typed(faults, name, "an object", |value| {
            value.as_object().map(|object| Members { object, base })
        })
    }

    /// An integer within a range. The maximum `i64::MAX` means none.
    pub(crate) fn integer(
        &self,
        faults: &mut Faults,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.typed(faults, name, "an integer", integer)?;
        let message = match (range.start(), range.end(), value) {
            (_, _, Some(value)) if range.contains(&value) => return Some(value),
            (start, &i64::MAX, Some(_)) => format!("must be at least {start}"),
            (&i64::MIN, _, None) => "must be an integer of 64 bits, written in digits".to_owned(),
            (start, &i64::MAX, None) => format!("must be from {start} to 2^63 - 1"),
            (start, end, _) => format!("must be from {start} to {end}"),
        };
        self.fail(faults, name, "out_of_range", message);
        None
    }

    /// A count from 1 to `max`.
    pub(crate) fn count(&self, faults: &mut Faults, name: &str, max: usize) -> Option<usize> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        self.integer(faults, name, 1..=max).and_then(|value| usize::try_from(value).ok())
    }

    /// A number within a range.
    pub(crate) fn number(
        &self,
        faults: &mut Faults,
        name: &str,
        range: RangeInclusive<f64>,
    ) -> Option<f64> {
        let value = self.typed(faults, name, "a number", |value| match value {
            Json::Number(number) => number.as_str().parse::<f64>().ok(),
            _ => None,
        })?;
        if range.contains(&value) {
            return Some(value);
        }
        let message = format!("must be from {} to {}", range.start(), range.end());
        self.fail(faults, name, "out_of_range", message);
        None
    }

    /// One of the strings in `words`.
    pub(crate) fn one_of(
        &self,
        faults: &mut Faults,
        name: &str,
        words: &[&str],
    ) -> Option<&'a str> {
        let value = self.string(faults, name)?;
        if words.contains(&value) {
            return Some(value);
        }
        self.fail(faults, name, "unknown_value", format!("must be one of {}", quoted(words)));
        None
    }
}

/// Formats words as `"a", "b"`.
pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// An integer, also if written as `1.0` or `1e3`, which JSON Schema treats as integers; `None`
/// inside if it is too large.
fn integer(value: &Json) -> Option<Option<i64>> {
    let Json::Number(number) = value else { return None };
    let text = number.as_str();
    if let Ok(whole) = text.parse() {
        return Some(Some(whole));
    }
    // Beyond 2^53 doubles skip integers. Plain integer notation was parsed exactly above.
    let value: f64 = text.parse().ok()?;
    let is_exact = value.abs() <= 9_007_199_254_740_992.0;
    (value.fract() == 0.0 || !is_exact).then_some(is_exact.then_some(value as i64))
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    #[test]
    fn members_and_their_faults() {
        let text = r#"{"s": "x", "n": 1.5, "i": 3e0, "big": 9007199254740993, "null": null,
            "a/b": 1, "huge": 1e999, "over": 9223372036854775808}"#;
        let json = Json::parse(text, &Limits::default()).unwrap();
        let mut faults = Faults::new();
        let members = Members::from_json(&json, "/x", &mut faults).unwrap();
        assert_eq!(members.string(&mut faults, "s"), Some("x"));
        assert_eq!(members.number(&mut faults, "n", 0.0..=2.0), Some(1.5));
        assert_eq!(members.integer(&mut faults, "i", 0..=9), Some(3));
        assert_eq!(members.integer(&mut faults, "big", 0..=i64::MAX), Some(9_007_199_254_740_993));
        assert_eq!(members.boolean(&mut faults, "null"), None);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(members.integer(&mut faults, "n", 0..=9), None);
        assert_eq!(members.integer(&mut faults, "over", i64::MIN..=i64::MAX), None);
        assert_eq!(members.string(&mut faults, "a/b"), None);
        assert_eq!(members.count(&mut faults, "i", 2), None);
        assert_eq!(members.number(&mut faults, "huge", 0.0..=1.0), None);
        assert_eq!(members.one_of(&mut faults, "s", &["a", "b"]), None);
        let reported: Vec<_> =
            faults.iter().map(|f| (f.param.as_deref().unwrap(), f.message.as_str())).collect();
        let expected = [
            ("/x/n", "must be an integer"),
            ("/x/over", "must be an integer of 64 bits, written in digits"),
            ("/x/a~1b", "must be a string"),
            ("/x/i", "must be from 1 to 2"),
            ("/x/huge", "must be from 0 to 1"),
            ("/x/s", "must be one of \"a\", \"b\""),
        ];
        assert_eq!(reported, expected);
        assert!(Members::from_json(&Json::Null, "", &mut faults).is_none());
    }
}
