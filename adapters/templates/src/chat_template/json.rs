//! JSON in templates: values that keep the order of members, and the filter `tojson` as used in
//! model training (Python's `json.dumps(value, ensure_ascii=False)`, without HTML escapes).

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, Value, ValueKind};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Converts a JSON value to a template value.
pub(crate) fn to_template(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            Value::from_object(JsonObject(json.clone()))
        }
        leaf => Value::from_serialize(leaf),
    }
}

/// A JSON array or object as a template object.
#[derive(Debug)]
struct JsonObject(serde_json::Value);

impl Object for JsonObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.0.is_array() { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let found = match &self.0 {
            serde_json::Value::Array(items) => items.get(key.as_usize()?),
            object => object.get(key.as_str()?),
        };
        found.map(to_template)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match &self.0 {
            serde_json::Value::Array(items) => Enumerator::Seq(items.len()),
            serde_json::Value::Object(members) => {
                Enumerator::Values(members.keys().map(|key| Value::from(key.as_str())).collect())
            }
            _ => Enumerator::Empty,
        }
    }

    /// As Python prints it: templates that join it with text rely on that.
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_python(&self.0, f)
    }
}

/// Writes a value as Python's `repr` does.
fn write_python(value: &serde_json::Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use serde_json::Value as Json;
    match value {
        Json::Null => f.write_str("None"),
        Json::Bool(true) => f.write_str("True"),
        Json::Bool(false) => f.write_str("False"),
        Json::Number(number) => write_python_number(number, f),
        Json::String(text) => write_python_string(text, f),
        Json::Array(items) => {
            f.write_str("[")?;
            for (k, item) in items.iter().enumerate() {
                f.write_str(if k > 0 { ", " } else { "" })?;
                write_python(item, f)?;
            }
            f.write_str("]")
        }
        Json::Object(members) => {
            f.write_str("{")?;
            for (k, (key, member)) in members.iter().enumerate() {
                f.write_str(if k > 0 { ", " } else { "" })?;
                write_python_string(key, f)?;
                f.write_str(": ")?;
                write_python(member, f)?;
            }
            f.write_str("}")
        }
    }
}

fn write_python_number(number: &serde_json::Number, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => f.write_str(&louver_formats::python_float(float)),
        None => write!(f, "{number}"),
    }
}

/// In single quotes, or in double quotes if the text has only single ones.
fn write_python_string(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    f.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c == quote => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\x{:02x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char(quote)
}

/// The filter `tojson` with the options of Python's `json.dumps`: `indent`, `separators`,
/// `sort_keys` and `ensure_ascii`, which is off unless it is given.
pub(crate) fn tojson(value: &Value, options: Kwargs) -> Result<Value, minijinja::Error> {
    let failed =
        |error: String| minijinja::Error::new(minijinja::ErrorKind::BadSerialization, error);
    let indent: Option<usize> =
        options.get::<Option<Value>>("indent")?.and_then(|indent| indent.as_usize());
    let separators = options.get::<Option<Value>>("separators")?.filter(|pair| !pair.is_none());
    let is_set = |name| -> Result<bool, minijinja::Error> {
        Ok(options.get::<Option<Value>>(name)?.is_some_and(|value| value.is_true()))
    };
    let mut plain = to_json(value).map_err(|error| failed(error.to_string()))?;
    if is_set("sort_keys")? {
        plain.sort_all_objects();
    }
    let mut text = if indent.is_none() && separators.is_none() {
        louver_formats::python_json(&plain)
    } else {
        let mut layout = Layout::new(indent.map(|width| width.min(MAX_INDENT)));
        if let Some(pair) = separators {
            let text = |k| pair.get_item_by_index(k).map(|text| text.to_string());
            (layout.comma, layout.colon) = (text(0)?, text(1)?);
        }
        let mut out = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut out, layout);
        plain.serialize(&mut serializer).map_err(|error| failed(error.to_string()))?;
        String::from_utf8(out).map_err(|error| failed(error.to_string()))?
    };
    if is_set("ensure_ascii")? {
        text = ascii(&text);
    }
    Ok(Value::from_safe_string(text))
}

/// The most spaces of an indentation step.
const MAX_INDENT: usize = 16;

/// JSON text with every character beyond ASCII as an escape of UTF-16. Only strings have any.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c.is_ascii() {
            true => out.push(c),
            false => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out += &format!("\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// The layout of Python's `json.dumps`.
struct Layout {
    comma: String,
    colon: String,
    indent: Option<usize>,
    depth: usize,
    is_empty: bool,
}

impl Layout {
    /// Python's separators: no space before a line break.
    fn new(indent: Option<usize>) -> Layout {
        let comma = if indent.is_some() { "," } else { ", " };
        let (comma, colon) = (comma.to_owned(), ": ".to_owned());
        Layout { comma, colon, indent, depth: 0, is_empty: true }
    }

    fn begin<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        (self.depth, self.is_empty) = (self.depth + 1, true);
        writer.write_all(bracket)
    }

    fn end<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if !std::mem::replace(&mut self.is_empty, false) {
            self.line_break(writer)?;
        }
        writer.write_all(bracket)
    }

    fn element<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(self.comma.as_bytes())?;
        }
        self.is_empty = false;
        self.line_break(writer)
    }

    fn line_break<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        match self.indent {
            Some(width) => write!(writer, "\n{:width$}", "", width = self.depth * width),
            None => Ok(()),
        }
    }
}

impl Formatter for Layout {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(louver_formats::python_float(value).as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.element(writer, first)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.element(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.colon.as_bytes())
    }
}

/// The filters `length` and `count`. What is undefined has no elements, as in Jinja.
pub(crate) fn length(value: &Value) -> Result<usize, minijinja::Error> {
    let no_length = || {
        let what = format!("cannot calculate the length of a value of type {}", value.kind());
        minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, what)
    };
    if value.is_undefined() { Ok(0) } else { value.len().ok_or_else(no_length) }
}

/// Converts a template value to JSON, with the order of members.
fn to_json(value: &Value) -> Result<serde_json::Value, serde_json::Error> {
    if let Some(json) = value.downcast_object_ref::<JsonObject>() {
        return Ok(json.0.clone());
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value
            .try_iter()
            .map(|items| items.map(|item| to_json(&item)).collect())
            .unwrap_or(Ok(().into())),
        ValueKind::Map => {
            let keys: Vec<Value> = value.try_iter().map(Iterator::collect).unwrap_or_default();
            let member = |key: &Value| {
                Ok((key.to_string(), to_json(&value.get_item(key).unwrap_or_default())?))
            };
            keys.iter()
                .map(member)
                .collect::<Result<serde_json::Map<_, _>, _>>()
                .map(serde_json::Value::Object)
        }
        _ => serde_json::to_value(value),
    }
}
