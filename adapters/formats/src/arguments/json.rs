//! JSON as models were trained on it.

use std::io;

use louver::spec::json::{Json, write_spaced, write_string};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

/// JSON as Python's `json.dumps(value, ensure_ascii=False)` writes it, which is what models were trained on: `", "`
/// and `": "` between members, floats as Python's `repr`. Cost: linear.
pub fn python_json(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, PythonStyle);
    if value.serialize(&mut serializer).is_err() {
        // Writing to memory does not fail, and neither does a value.
        return value.to_string();
    }
    String::from_utf8_lossy(&out).into_owned()
}

struct PythonStyle;

impl Formatter for PythonStyle {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(python_float(value).as_bytes())
    }
}

/// Python's `repr` of a float: shortest digits that read back the same, with an exponent below 1e-4 and from 1e16 on.
fn python_float(value: f64) -> String {
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

/// As [`python_json`], of a value whose numbers are kept as they were written.
pub(crate) fn spaced(out: &mut String, value: &Json) {
    write_spaced(out, value, write_string, |out, scalar| out.push_str(&scalar.to_string()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn as_python_writes_it() {
        let value =
            json!({"a": [1, 2.0, "é\n\u{7f}\"/"], "b": {}, "c": [], "d": {"e": null, "f": true}});
        let want = "{\"a\": [1, 2.0, \"é\\n\u{7f}\\\"/\"], \"b\": {}, \"c\": [], \"d\": {\"e\": null, \"f\": true}}";
        assert_eq!(python_json(&value), want);
    }

    #[test]
    fn floats_as_python_writes_them() {
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
