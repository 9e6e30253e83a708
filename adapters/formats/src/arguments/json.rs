//! JSON with the spacing that models were trained on.

use louver::spec::json::{Json, write_spaced, write_string};
use serde_json::Value;

/// JSON as Python's `json.dumps(value, ensure_ascii=False)` writes it, which models were trained
/// on: `", "` and `": "` between members, floats as Python's `repr`. Cost: linear.
pub fn python_json(value: &Value) -> String {
    let mut out = String::new();
    write_spaced(&mut out, &Json::from(value), write_string, |out, scalar| {
        let text = scalar.to_string();
        match text.parse::<f64>() {
            Ok(float) if text.contains(['.', 'e', 'E']) => out.push_str(&python_float(float)),
            _ => out.push_str(&text),
        }
    });
    out
}

/// Python's `repr` of a float: the shortest digits that parse to the same float, with an exponent
/// below 1e-4 and from 1e16 on.
pub fn python_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let exponent = scientific
        .split_once('e')
        .and_then(|(mantissa, e)| Some((mantissa, e.parse::<i32>().ok()?)));
    match exponent {
        Some((mantissa, e)) if !(-4..16).contains(&e) && value != 0.0 => {
            let sign = if e < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", e.unsigned_abs())
        }
        _ => format!("{value:?}"),
    }
}

/// As [`python_json`], with numbers as they were written.
pub(crate) fn spaced(out: &mut String, value: &Json) {
    write_spaced(out, value, write_string, |out, scalar| out.push_str(&scalar.to_string()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spacing_and_escapes_are_those_of_python() {
        let value =
            json!({"a": [1, 2.0, "é\n\u{7f}\"/"], "b": {}, "c": [], "d": {"e": null, "f": true}});
        let want = "{\"a\": [1, 2.0, \"é\\n\u{7f}\\\"/\"], \"b\": {}, \"c\": [], \
                    \"d\": {\"e\": null, \"f\": true}}";
        assert_eq!(python_json(&value), want);
    }

    #[test]
    fn floats_are_written_as_python_repr() {
        for (value, want) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (9007199254740993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (123456.789, "123456.789"),
        ] {
            assert_eq!(python_float(value), want);
        }
    }
}
