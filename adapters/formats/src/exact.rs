//! JSON numbers and `serde_json`, whose numbers have 64 bits.

use louver::spec::json::Json;
use serde_json::Value;

/// The same value for `serde_json`. Error: the text of a number that would be rounded, as it is no
/// 64-bit integer or has more digits than a float. Cost: linear. Recursive.
///
/// ```
/// use louver::{Json, Limits};
/// use louver_formats::exact_value;
///
/// let json = Json::parse("[1.50, 12345678901234567890123]", &Limits::default())?;
/// assert_eq!(exact_value(&json), Err("12345678901234567890123".to_owned()));
/// # Ok::<(), louver::JsonError>(())
/// ```
pub fn exact_value(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => items.iter().map(exact_value).collect::<Result<_, _>>()?,
        Json::Object(members) => {
            let members = members.iter().map(|(name, v)| Ok((name.to_owned(), exact_value(v)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        Json::Number(number) => {
            let text = number.as_str();
            match serde_json::from_str(text) {
                Ok(Value::Number(read)) if number.is_equal_to(&read.to_string()) => {
                    Value::Number(read)
                }
                _ => return Err(text.to_owned()),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    #[test]
    fn numbers_are_kept_or_refused() {
        let value = |number: &str| {
            exact_value(&Json::parse(&format!("[{number}]"), &Limits::default()).unwrap())
        };
        let kept = "0 -0 0.0 1 1.0 100 1e2 0.1 -2.50 9007199254740993 18446744073709551615 \
                    -9223372036854775808 1.7976931348623157e+308 5e-324 0e999 1E5";
        for number in kept.split_whitespace() {
            assert!(value(number).is_ok(), "{number}");
        }
        // The shortest text of the float nearest to 2^64 is another number.
        let refused = "18446744073709551616 -9223372036854775809 0.1000000000000000000001 1e400 \
                       1e-400 123456789012345678901234567890 9007199254740993.5 \
                       1e99999999999999999999";
        for number in refused.split_whitespace() {
            assert_eq!(value(number), Err(number.to_owned()));
        }
    }
}
