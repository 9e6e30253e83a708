//! Equality of values, as JSON Schema compares them.

use crate::decimal::Decimal;
use crate::fuel;
use crate::hash::HashSet;
use crate::spec::json::Json;

/// The values of the first list that equal a value of the second, as JSON Schema compares.
pub(crate) fn intersect_values<'a>(a: &[&'a Json], b: &[&'a Json]) -> Vec<&'a Json> {
    let present: HashSet<String> = b.iter().map(|v| canonical(v)).collect();
    a.iter().copied().filter(|v| present.contains(&canonical(v))).collect()
}

/// Fuel for a number or for the text of a value.
const UNITS_PER_VALUE: usize = 8;
/// Bytes of a string that are compared or copied for one unit of fuel.
const BYTES_PER_UNIT: usize = 32;

/// Whether two values are equal, as JSON Schema compares. Spends fuel for each pair that it meets.
pub(crate) fn are_equal(a: &Json, b: &Json) -> bool {
    fuel::charge(1);
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => {
            fuel::charge(UNITS_PER_VALUE);
            Decimal::parse(a.as_str()) == Decimal::parse(b.as_str())
        }
        (Json::String(a), Json::String(b)) => {
            fuel::charge(a.len() / BYTES_PER_UNIT);
            a == b
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_equal(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            let equals = |(name, a)| b.get(name).is_some_and(|b| are_equal(a, b));
            a.len() == b.len() && a.iter().all(equals)
        }
        (a, b) => a == b,
    }
}

/// The same text for all values that JSON Schema calls equal: numbers compare by value, members in
/// any order. Spends fuel for each value inside.
pub(crate) fn canonical(json: &Json) -> String {
    fuel::charge(UNITS_PER_VALUE);
    match json {
        Json::Number(n) => Decimal::parse(n.as_str()).canonical(),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Json::Object(object) => {
            let mut members: Vec<String> = object
                .iter()
                .map(|(k, v)| format!("{}:{}", Json::String(k.to_owned()), canonical(v)))
                .collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        scalar => {
            let text = scalar.to_string();
            fuel::charge(text.len() / BYTES_PER_UNIT);
            text
        }
    }
}
