//! Equality of values, as JSON Schema compares them.

use crate::decimal::Decimal;
use crate::hash::HashSet;
use crate::spec::json::Json;

/// The values of the first list that equal a value of the second, as JSON Schema compares.
pub(crate) fn intersect_values<'a>(a: &[&'a Json], b: &[&'a Json]) -> Vec<&'a Json> {
    let present: HashSet<String> = b.iter().map(|v| canonical(v)).collect();
    a.iter().copied().filter(|v| present.contains(&canonical(v))).collect()
}

/// The same text for all values that JSON Schema calls equal: numbers compare by value, members in
/// any order.
pub(crate) fn canonical(json: &Json) -> String {
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
        scalar => scalar.to_string(),
    }
}
