//! Functions on their own: merging of JSON, regular expressions as Lark.

use serde_json::Value;

/// Merges `source` into `target`: objects member by member, anything else is replaced.
///
/// ```
/// use serde_json::json;
///
/// let mut target = json!({"a": {"b": 1}, "c": [1]});
/// llguidance::json_merge(&mut target, &json!({"a": {"d": 2}, "c": [2]}));
/// assert_eq!(target, json!({"a": {"b": 1, "d": 2}, "c": [2]}));
/// ```
pub fn json_merge(target: &mut Value, source: &Value) {
    match (target, source) {
        (Value::Object(target), Value::Object(source)) => {
            for (key, value) in source {
                json_merge(target.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (target, source) => *target = source.clone(),
    }
}

/// A regular expression as it stands between the slashes of a Lark grammar. `use_ascii` has the
/// letters among `d`, `w` and `s` of the classes that are written out as ASCII.
///
/// ```
/// assert_eq!(llguidance::regex_to_lark("\\d/\n", "d"), r"[0-9]\/\n");
/// ```
pub fn regex_to_lark(rx: &str, use_ascii: &str) -> String {
    let mut lark = String::with_capacity(rx.len());
    let mut chars = rx.chars();
    while let Some(c) = chars.next() {
        match c {
            '/' => lark.push_str("\\/"),
            '\n' => lark.push_str("\\n"),
            '\r' => lark.push_str("\\r"),
            '\t' => lark.push_str("\\t"),
            '\\' => match chars.next() {
                Some(class) if use_ascii.contains(class.to_ascii_lowercase()) => {
                    match ascii_class(class) {
                        Some(written) => lark.push_str(written),
                        None => lark.extend(['\\', class]),
                    }
                }
                // A line feed cannot stand in a regular expression of Lark, escaped or not.
                Some('\n') => lark.push_str("\\n"),
                Some('\r') => lark.push_str("\\r"),
                Some('\t') => lark.push_str("\\t"),
                Some(escaped) => lark.extend(['\\', escaped]),
                None => {}
            },
            c => lark.push(c),
        }
    }
    lark
}

/// A class of ASCII, written out.
fn ascii_class(class: char) -> Option<&'static str> {
    Some(match class {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9a-zA-Z_]",
        'W' => "[^0-9a-zA-Z_]",
        's' => r"[ \t\n\r\f\v]",
        'S' => r"[^ \t\n\r\f\v]",
        _ => return None,
    })
}
