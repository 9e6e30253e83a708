//! JSON serialisation in the format of Python's `json.dumps(value, ensure_ascii=False)`, with exact
//! numbers.

use louver::spec::json::{Json, write_spaced, write_string};

/// Serialises a value. Integers keep all digits; floats are written like Python's `repr`.
pub(super) fn dumps(value: &Json) -> String {
    let mut out = String::new();
    write_spaced(&mut out, value, write_string, |out, scalar| match scalar {
        Json::Number(number) => out.push_str(&self::number(number.as_str())),
        other => out.push_str(&other.to_string()),
    });
    out
}

/// As [`dumps`], without white space.
pub(super) fn compact(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(compact).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(members) => {
            let member = |(name, value): (&str, &Json)| {
                let mut out = String::new();
                write_string(&mut out, name);
                out + ":" + &compact(value)
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(","))
        }
        scalar => dumps(scalar),
    }
}

fn number(text: &str) -> String {
    if !text.contains(['.', 'e', 'E']) {
        return if text == "-0" { "0".to_owned() } else { text.to_owned() };
    }
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() => louver_formats::python_json(&float.into()),
        Ok(float) if float < 0.0 => "-Infinity".to_owned(),
        _ => "Infinity".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use louver::limits::Limits;

    use super::*;

    #[test]
    fn output_equals_pythons() {
        let text = r#"{"b":[1,-0,2.50,1e3,1E-7,123456789012345678901234567890],"a":{"x":"é\u0007\"/\u007f","y":null},"c":[],"d":{},"e":true}"#;
        let value = Json::parse(text, &Limits::default()).unwrap();
        let expected = "{\"b\": [1, 0, 2.5, 1000.0, 1e-07, 123456789012345678901234567890], \
                    \"a\": {\"x\": \"é\\u0007\\\"/\u{7f}\", \"y\": null}, \"c\": [], \"d\": {}, \"e\": true}";
        assert_eq!(dumps(&value), expected);
        let expected = expected.replace(", ", ",").replace(": ", ":");
        assert_eq!(compact(&value), expected);
    }
}
