//! Members of a JSON object, read by type and range. What is wrong is noted with its pointer, and reading goes on.

use std::ops::RangeInclusive;

use louver::spec::json::{Json, Object, push_token};

use crate::error::ApiFault;

/// An object within a body. `null` members count as absent.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a> {
    object: &'a Object,
    at: String,
}

/// What was found wrong so far.
pub(crate) type Faults = Vec<ApiFault>;

impl<'a> Members<'a> {
    /// A value that must be an object; `at` is its pointer.
    pub(crate) fn of(
        json: &'a Json,
        at: impl Into<String>,
        faults: &mut Faults,
    ) -> Option<Members<'a>> {
        let at = at.into();
        match json {
            Json::Object(object) => Some(Members { object, at }),
            _ => {
                faults.push(ApiFault::at(at, "invalid_type", "must be an object"));
                None
            }
        }
    }

    /// A member's pointer.
    pub(crate) fn pointer(&self, name: &str) -> String {
        let mut pointer = self.at.clone();
        push_token(&mut pointer, name);
        pointer
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.object.iter().map(|(name, _)| name)
    }

    /// All members, those that are `null` too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Json)> {
        self.object.iter()
    }

    /// Notes the members that are none of the known ones.
    pub(crate) fn refuse_unknown(&self, faults: &mut Faults, known: &[&str], message: &str) {
        for name in self.object.unknown(known) {
            self.fail(faults, name, "unknown_member", message);
        }
    }

    /// A member, if it is there and not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name).filter(|value| **value != Json::Null)
    }

    /// Notes a fault of a member.
    pub(crate) fn fail(
        &self,
        faults: &mut Faults,
        name: &str,
        code: &'static str,
        message: impl Into<String>,
    ) {
        faults.push(ApiFault::at(self.pointer(name), code, message));
    }

    fn typed<T>(
        &self,
        faults: &mut Faults,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name)?;
        let found = read(value);
        if found.is_none() {
            self.fail(faults, name, "invalid_type", format!("must be {expected}"));
        }
        found
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

    /// An object.
    pub(crate) fn object(&self, faults: &mut Faults, name: &str) -> Option<Members<'a>> {
        let at = self.pointer(name);
        self.typed(faults, name, "an object", |value| {
            value.as_object().map(|object| Members { object, at })
        })
    }

    /// An integer within a range.
    pub(crate) fn integer(
        &self,
        faults: &mut Faults,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.typed(faults, name, "an integer", integer)?;
        if range.contains(&value) {
            return Some(value);
        }
        let message = format!("must be from {} to {}", range.start(), range.end());
        self.fail(faults, name, "out_of_range", message);
        None
    }

    /// A number of things, from 1 to `most`.
    pub(crate) fn count(&self, faults: &mut Faults, name: &str, most: usize) -> Option<usize> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.integer(faults, name, 1..=most).and_then(|value| usize::try_from(value).ok())
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

    /// One of a few words.
    pub(crate) fn word(&self, faults: &mut Faults, name: &str, words: &[&str]) -> Option<&'a str> {
        let value = self.string(faults, name)?;
        if words.contains(&value) {
            return Some(value);
        }
        self.fail(faults, name, "unknown_value", format!("must be one of {}", quoted(words)));
        None
    }
}

/// `"a", "b"`.
pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// An integer, also where it is written `1.0` or `1e3`, as JSON has it.
fn integer(value: &Json) -> Option<i64> {
    let Json::Number(number) = value else { return None };
    let text = number.as_str();
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    // Beyond 2^53 doubles skip integers; what is written out was read above.
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    #[test]
    fn members_and_their_faults() {
        let text = r#"{"s": "x", "n": 1.5, "i": 3e0, "big": 9007199254740993, "null": null, "a/b": 1, "huge": 1e999}"#;
        let json = Json::parse(text, &Limits::default()).unwrap();
        let mut faults = Faults::new();
        let members = Members::of(&json, "/x", &mut faults).unwrap();
        assert_eq!(members.string(&mut faults, "s"), Some("x"));
        assert_eq!(members.number(&mut faults, "n", 0.0..=2.0), Some(1.5));
        assert_eq!(members.integer(&mut faults, "i", 0..=9), Some(3));
        assert_eq!(members.integer(&mut faults, "big", 0..=i64::MAX), Some(9_007_199_254_740_993));
        assert_eq!(members.boolean(&mut faults, "null"), None);
        assert_eq!(faults, []);
        assert_eq!(members.integer(&mut faults, "n", 0..=9), None);
        assert_eq!(members.string(&mut faults, "a/b"), None);
        assert_eq!(members.count(&mut faults, "i", 2), None);
        assert_eq!(members.number(&mut faults, "huge", 0.0..=1.0), None);
        assert_eq!(members.word(&mut faults, "s", &["a", "b"]), None);
        let places: Vec<_> =
            faults.iter().map(|f| (f.param.as_deref().unwrap(), f.message.as_str())).collect();
        let want = [
            ("/x/n", "must be an integer"),
            ("/x/a~1b", "must be a string"),
            ("/x/i", "must be from 1 to 2"),
            ("/x/huge", "must be from 0 to 1"),
            ("/x/s", "must be one of \"a\", \"b\""),
        ];
        assert_eq!(places, want);
        assert!(Members::of(&Json::Null, "", &mut faults).is_none());
    }
}
