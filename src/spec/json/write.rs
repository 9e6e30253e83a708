//! Writing of JSON texts.

use std::fmt;

use super::Json;

/// The two-character escape of a character in JSON (RFC 8259, section 7) and Python; `None` if it
/// has none.
pub fn short_escape(c: char) -> Option<&'static str> {
    Some(match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        _ => return None,
    })
}

/// Writes a value with `", "` between elements and members and `": "` after names, as Python does.
/// `string` writes strings and names, `scalar` other scalars.
pub fn write_spaced(
    out: &mut String,
    value: &Json,
    string: fn(&mut String, &str),
    scalar: fn(&mut String, &Json),
) {
    match value {
        Json::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_spaced(out, item, string, scalar);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (i, (name, item)) in members.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                string(out, name);
                out.push_str(": ");
                write_spaced(out, item, string, scalar);
            }
            out.push('}');
        }
        Json::String(text) => string(out, text),
        Json::Null | Json::Bool(_) | Json::Number(_) => scalar(out, value),
    }
}

/// Writes a JSON string with only the escapes that JSON requires.
pub fn write_string(out: &mut String, text: &str) {
    use fmt::Write;
    out.push('"');
    for c in text.chars() {
        match (short_escape(c), c) {
            (Some(escape), _) => out.push_str(escape),
            (None, c) if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            (None, c) => out.push(c),
        }
    }
    out.push('"');
}

/// Compact JSON.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(b) => write!(f, "{b}"),
            Json::Number(n) => f.write_str(n.as_str()),
            Json::String(s) => {
                let mut out = String::new();
                write_string(&mut out, s);
                f.write_str(&out)
            }
            Json::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Json::Object(object) => {
                f.write_str("{")?;
                for (i, (key, value)) in object.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    let mut out = String::new();
                    write_string(&mut out, key);
                    write!(f, "{out}:{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}
