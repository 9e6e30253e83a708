//! The writer of arguments, for the renderer: JSON text -> the syntax of a style.

use louver::limits::Limits;
use louver::spec::json::{Json, JsonError, Object, short_escape, write_spaced};

use super::is_keyword;
use super::json;
use super::nested;
use super::tagged::written;
use crate::format::{ArgumentStyle, KindWords, Part, StringQuotes, TagPart, TaggedStyle};

/// Why a turn cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A call's arguments are not JSON.
    #[error("the arguments of call {call} are not JSON: {error}")]
    NotJson {
        /// The call's number.
        call: usize,
        /// Why.
        error: JsonError,
    },
    /// A call's arguments are not an object.
    #[error("the arguments of call {call} are not an object")]
    NoObject {
        /// The call's number.
        call: usize,
    },
    /// The turn has text and calls, and a turn of the format has one of them only.
    #[error("this format does not write text beside calls")]
    TextBesideCalls,
    /// The format cannot write a name or a string.
    #[error("call {call}: this format cannot write {text:?}")]
    Unwritable {
        /// The call's number.
        call: usize,
        /// The text.
        text: String,
    },
}

/// Arguments, given as JSON text, in a style. Unescaped strings must not contain any of `excludes`.
pub(crate) fn arguments(
    style: &ArgumentStyle,
    excludes: &[String],
    call: usize,
    text: &str,
) -> Result<String, RenderError> {
    if *style == ArgumentStyle::Json {
        return Ok(text.to_owned());
    }
    let value = parse(call, text)?;
    let Json::Object(members) = &value else { return Err(RenderError::NoObject { call }) };
    let mut out = String::new();
    let written = match style {
        ArgumentStyle::Json => Ok(()),
        ArgumentStyle::Keywords => write_keywords(&mut out, members, write_python),
        ArgumentStyle::JsonKeywords => write_keywords(&mut out, members, write_json_words),
        ArgumentStyle::Delimited(mark) => write_delimited(&mut out, &value, &mark.write()),
        ArgumentStyle::Tagged(style) => write_tagged(&mut out, members, style, excludes),
        ArgumentStyle::Nested(tags) => nested::write_members(&mut out, members, tags),
    };
    written.map(|()| out).map_err(|text| RenderError::Unwritable { call, text })
}

fn parse(call: usize, text: &str) -> Result<Json, RenderError> {
    Json::parse(text, &Limits::default()).map_err(|error| RenderError::NotJson { call, error })
}

/// The code in the arguments of a tool that is called with code: the member `code`.
pub(crate) fn code(call: usize, text: &str) -> Result<String, RenderError> {
    match parse(call, text)?.get("code") {
        Some(Json::String(code)) => Ok(code.clone()),
        _ => Err(RenderError::NoObject { call }),
    }
}

/// Writes keyword arguments. As the functions below, fails with a name or string that the style
/// cannot write.
fn write_keywords(
    out: &mut String,
    members: &Object,
    write_value: fn(&mut String, &Json),
) -> Result<(), String> {
    for (i, (name, value)) in members.iter().enumerate() {
        if !is_keyword(name) {
            return Err(name.to_owned());
        }
        out.push_str(if i > 0 { ", " } else { "" });
        out.push_str(name);
        out.push('=');
        write_value(out, value);
    }
    Ok(())
}

fn write_python(out: &mut String, value: &Json) {
    write_spaced(out, value, python_string, |out, scalar| match scalar {
        Json::Null => out.push_str("None"),
        Json::Bool(true) => out.push_str("True"),
        Json::Bool(false) => out.push_str("False"),
        other => out.push_str(&other.to_string()),
    });
}

/// As [`write_python`], with the words of JSON.
fn write_json_words(out: &mut String, value: &Json) {
    write_spaced(out, value, python_string, |out, scalar| out.push_str(&scalar.to_string()));
}

/// Writes a Python string literal.
pub(crate) fn python_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match (short_escape(c), c) {
            (Some(escape), _) => out.push_str(escape),
            (None, '\0'..'\u{20}' | '\u{7f}') => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            (None, c) => out.push(c),
        }
    }
    out.push('"');
}

fn write_delimited(out: &mut String, value: &Json, mark: &str) -> Result<(), String> {
    match value {
        Json::String(text) if text.contains(mark) => return Err(text.clone()),
        Json::String(text) => [mark, text, mark].iter().for_each(|piece| out.push_str(piece)),
        Json::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_delimited(out, item, mark)?;
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (i, (name, item)) in members.iter().enumerate() {
                if name.is_empty() || name.contains([':', ',', '{', '}', '[', ']', '<', '"']) {
                    return Err(name.to_owned());
                }
                out.push_str(if i > 0 { "," } else { "" });
                out.push_str(name);
                out.push(':');
                write_delimited(out, item, mark)?;
            }
            out.push('}');
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn write_tagged(
    out: &mut String,
    members: &Object,
    style: &TaggedStyle,
    excludes: &[String],
) -> Result<(), String> {
    let close = style.close.write();
    out.push_str(&style.before.write());
    for (i, (name, value)) in members.iter().enumerate() {
        if i > 0 {
            out.push_str(&style.between.write());
        }
        for part in &style.open {
            match part {
                TagPart::Text(_) | TagPart::Marker(_) | TagPart::Gap { .. } => {
                    out.push_str(&written(part));
                }
                TagPart::Kind { kind } => out.push_str(type_word(kind, value)),
                TagPart::Key { key } => out.push_str(&key.write(name)),
            }
        }
        out.push_str(&style.lead);
        match value {
            Json::String(text) => write_string(out, text, style, excludes)?,
            other => json::spaced(out, other),
        }
        out.push_str(&style.trail);
        out.push_str(&close);
    }
    let parts = style.after.parts().into_iter();
    let parts = parts.filter(|part| !members.is_empty() || !matches!(part, Part::Gap { .. }));
    parts.for_each(|part| out.push_str(&part.write()));
    Ok(())
}

/// Writes a string between tags, in quotes if the style has some and it needs them.
fn write_string(
    out: &mut String,
    text: &str,
    style: &TaggedStyle,
    excludes: &[String],
) -> Result<(), String> {
    let has_any = |texts: &[String]| texts.iter().any(|other| text.contains(other));
    let is_reserved = text.contains(&style.close.write()) || has_any(excludes);
    let quotes = style.quotes.as_ref();
    let quotes = quotes
        .filter(|quotes| is_reserved || has_any(&quotes.around) || text.starts_with(&quotes.begin));
    match quotes {
        Some(StringQuotes { begin, end, .. }) if !text.contains(end) => {
            [begin, text, end].iter().for_each(|piece| out.push_str(piece));
        }
        None if !is_reserved => out.push_str(text),
        _ => return Err(text.to_owned()),
    }
    Ok(())
}

fn type_word<'a>(words: &'a KindWords, value: &Json) -> &'a str {
    match value {
        Json::Null => &words.null,
        Json::Bool(_) => &words.boolean,
        Json::Number(_) => &words.number,
        Json::String(_) => &words.string,
        Json::Array(_) => &words.array,
        Json::Object(_) => &words.object,
    }
}
