//! The spelling of calls that models of all families are known to write instead of their own: a
//! JSON object with the name of an offered tool and its arguments. Any other object is text.

use std::sync::LazyLock;

use super::marker::unique;
use super::{ArgumentStyle, CallSpelling, Marker, NameStyle, Part};

/// Up to the name, without white space.
const KEYS: [&str; 4] = [r#"{"name":""#, r#"{"function":""#, r#"{"tool":""#, r#"{"tool_name":""#];

/// The same, after a member `type`.
const TYPED_KEYS: [&str; 2] =
    [r#"{"type":"function","name":""#, r#"{"type":"function","function":""#];

/// What encoders of JSON write after a brace, after a comma and around a colon.
type Layout = (&'static str, &'static str, &'static str);

/// The layouts of encoders by default and with an indent of two or four blanks, and without white
/// space.
const USUAL: [Layout; 4] =
    [("", ", ", ": "), ("", ",", ":"), ("\n  ", ",\n  ", ": "), ("\n    ", ",\n    ", ": ")];

/// Other layouts of objects that begin with the name, also in a list or an object.
const WITH_NAME_FIRST: [Layout; 12] = [
    ("", ", ", " : "),
    (" ", ", ", ": "),
    ("\n", ",\n", ": "),
    ("\n ", ",\n ", ": "),
    ("\n   ", ",\n   ", ": "),
    ("\n      ", ",\n      ", ": "),
    ("\n        ", ",\n        ", ": "),
    ("\n            ", ",\n            ", ": "),
    ("\n\t", ",\n\t", ": "),
    ("\n\t\t", ",\n\t\t", ": "),
    ("\r\n  ", ",\r\n  ", ": "),
    ("\r\n    ", ",\r\n    ", ": "),
];

/// What may not follow a name that no tool has.
const ARGUMENTS_KEY: &str = r#"[ \t\r\n]*,[ \t\r\n]*"(arguments|parameters)"[ \t\r\n]*:"#;

/// Calls as JSON objects.
pub(super) static JSON_OBJECTS: LazyLock<CallSpelling> =
    LazyLock::new(|| spelling(&[&KEYS[..], &TYPED_KEYS].concat()));

/// The same without a member `type`.
pub(super) static UNTYPED_OBJECTS: LazyLock<CallSpelling> = LazyLock::new(|| spelling(&KEYS));

/// JSON without white space, with that of a layout. Its strings have no punctuation of JSON.
fn lay_out(compact: &str, (open, comma, colon): Layout) -> String {
    compact.replace(',', comma).replace(':', colon).replace('{', &format!("{{{open}"))
}

/// The spelling that begins with these keys. The first is in all layouts, and written first.
fn spelling(keys: &[&str]) -> CallSpelling {
    let begins = (keys.iter().flat_map(|key| USUAL.iter().map(|layout| lay_out(key, *layout))))
        .chain(WITH_NAME_FIRST.iter().map(|layout| lay_out(keys[0], *layout)));
    let text = |text: &str| Part::Text(text.into());
    let gap = |gap: &str| Part::Gap { gap: gap.into() };
    let key = |key: &str| Marker::Text(format!("\"{key}\""));
    CallSpelling {
        begin: Marker::Any(unique(begins).into_iter().map(Marker::Text).collect()),
        header: vec![
            Part::Name { name: NameStyle::Json },
            text("\""),
            gap(""),
            text(","),
            gap(" "),
            Part::Marker(Marker::Any(vec![key("arguments"), key("parameters")])),
            gap(""),
            text(":"),
            gap(" "),
        ],
        arguments: Some(ArgumentStyle::Json),
        trailer: vec![gap(""), text("}")],
        separator: None,
        end: None,
        text_unless: Some(ARGUMENTS_KEY.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_begin_as_encoders_write_them() {
        let texts = JSON_OBJECTS.begin.plain_texts();
        for begin in [
            "{\"name\": \"",
            "{\"name\":\"",
            "{ \"name\": \"",
            "{\n        \"name\": \"",
            "{\n  \"tool\": \"",
            "{\n    \"type\": \"function\",\n    \"name\": \"",
        ] {
            assert!(texts.iter().any(|text| text == begin), "{begin:?}");
        }
    }
}
