//! The input of a custom tool: on the wire, the one string in arguments `{"input": "..."}`.

use louver::limits::Limits;
use louver::spec::json::{Json, write_string};

use super::write::{self, RenderError};
use crate::format::ArgumentStyle;
use crate::request::CUSTOM_INPUT;

/// Reads the JSON text `{"input": "..."}` in chunks, and returns the string.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputReader {
    state: InputState,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum InputState {
    /// Before the colon.
    #[default]
    Name,
    /// After the colon.
    Value,
    /// In the string. `high`: a high surrogate whose low surrogate may follow.
    Text { high: Option<u16> },
    /// After a backslash. `escape`: the escape so far.
    Escape { high: Option<u16>, escape: String },
    /// After the string.
    After,
}

impl InputReader {
    /// Takes JSON text, and returns the text that is decided.
    pub(crate) fn push(&mut self, json: &str) -> String {
        let mut out = String::new();
        for c in json.chars() {
            self.state = match (std::mem::take(&mut self.state), c) {
                (InputState::Name, ':') => InputState::Value,
                (InputState::Name, _) => InputState::Name,
                (InputState::Value, '"') => InputState::Text { high: None },
                (InputState::Value, _) => InputState::Value,
                (InputState::Text { high }, '"') => {
                    write_lone(&mut out, high);
                    InputState::After
                }
                (InputState::Text { high }, '\\') => {
                    InputState::Escape { high, escape: String::new() }
                }
                (InputState::Text { high }, c) => {
                    write_lone(&mut out, high);
                    out.push(c);
                    InputState::Text { high: None }
                }
                (InputState::Escape { high, mut escape }, c) => {
                    escape.push(c);
                    if escape.starts_with('u') && escape.len() < 5 {
                        InputState::Escape { high, escape }
                    } else {
                        InputState::Text { high: unescape(&mut out, high, &escape) }
                    }
                }
                (InputState::After, _) => InputState::After,
            };
        }
        out
    }

    /// Ends the input, and returns what a high surrogate without a low one becomes.
    pub(crate) fn cut(&mut self) -> String {
        let mut out = String::new();
        if let InputState::Text { high } | InputState::Escape { high, .. } =
            std::mem::take(&mut self.state)
        {
            write_lone(&mut out, high);
        }
        out
    }
}

/// Writes U+FFFD for a surrogate without its other half.
fn write_lone(out: &mut String, high: Option<u16>) {
    out.extend(high.map(|_| char::REPLACEMENT_CHARACTER));
}

/// Writes the character of an escape, which is given without its backslash. Returns a high
/// surrogate, whose low surrogate may follow.
fn unescape(out: &mut String, high: Option<u16>, escape: &str) -> Option<u16> {
    let unit = escape.strip_prefix('u').and_then(|hex| u16::from_str_radix(hex, 16).ok());
    if let (Some(first), Some(second)) = (high, unit)
        && let Some(Ok(c)) = char::decode_utf16([first, second]).next()
    {
        out.push(c);
        return None;
    }
    write_lone(out, high);
    match (unit, escape) {
        (Some(unit), _) => match char::from_u32(unit.into()) {
            Some(c) => out.push(c),
            None if (0xD800..0xDC00).contains(&unit) => return Some(unit),
            None => out.push(char::REPLACEMENT_CHARACTER),
        },
        (None, "n") => out.push('\n'),
        (None, "t") => out.push('\t'),
        (None, "r") => out.push('\r'),
        (None, "b") => out.push('\u{8}'),
        (None, "f") => out.push('\u{c}'),
        (None, other) => out.push_str(other),
    }
    None
}

/// The arguments that stand for an input, in a style.
pub(crate) fn write_input(
    style: &ArgumentStyle,
    excludes: &[String],
    call: usize,
    input: &str,
) -> Result<String, RenderError> {
    let mut json = format!("{{\"{CUSTOM_INPUT}\": ");
    write_string(&mut json, input);
    json.push('}');
    write::arguments(style, excludes, call, &json)
}

/// The input in the JSON text of arguments that stand for it. `None` if they do not.
pub(crate) fn read_input(arguments: &str) -> Option<String> {
    let value = Json::parse(arguments, &Limits::default()).ok()?;
    value.get(CUSTOM_INPUT).and_then(|input| input.as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_round_trip_in_chunks_of_any_size() {
        let texts = ["", "plain", "\"\\/\u{8}\u{c}\n\r\t", "é😀\u{0}\u{1f}\u{7f}", ":{}\"input\":"];
        let escaped = [
            ("{\"input\" :\n\"\\ud83d\\ude00\\/\\u00e9\"}", "😀/é"),
            ("{\"input\":\"\\ud83dx\\ude00\"}", "\u{fffd}x\u{fffd}"),
        ];
        let written = texts.iter().map(|text| {
            let json = write_input(&ArgumentStyle::Json, &[], 0, text).expect("JSON");
            assert_eq!(read_input(&json).as_deref(), Some(*text));
            (json, (*text).to_owned())
        });
        let all = written.chain(escaped.map(|(json, text)| (json.to_owned(), text.to_owned())));
        for (json, text) in all {
            let chars: Vec<String> = json.chars().map(String::from).collect();
            for size in 1..=chars.len() {
                let mut reader = InputReader::default();
                let read: String =
                    chars.chunks(size).map(|chunk| reader.push(&chunk.concat())).collect();
                assert_eq!(read + &reader.cut(), text, "{json} by {size}");
            }
        }
        let mut reader = InputReader::default();
        assert_eq!(reader.push("{\"input\": \"a\\ud83d\\u"), "a");
        assert_eq!(reader.cut(), "\u{fffd}");
    }
}
