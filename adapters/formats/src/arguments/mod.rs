//! Argument styles: the syntax of a tool's arguments on the wire, as a writer and a streaming
//! reader to JSON. A style is code; a family chooses one by name and gives its markers. Its grammar
//! is in `lower`.

mod input;
mod json;
mod literal;
mod nested;
mod scalar;
mod tagged;
mod write;

pub(crate) use self::input::{InputReader, read_input, write_input};
pub(crate) use self::json::spaced;
pub use self::json::{python_float, python_json};
use self::literal::LiteralReader;
use self::nested::NestedReader;
use self::tagged::TaggedReader;
pub(crate) use self::tagged::{known_types, types_by_word, written_name};
pub use self::write::RenderError;
pub(crate) use self::write::{arguments as write, code, python_string};

use louver::front::json_schema::{LazyTypes, ValueTypes};

use crate::channel::Channel;
use crate::format::{ArgumentStyle, escape_json};

/// Reads arguments in one style, in chunks, and writes them as JSON text.
#[derive(Clone, Debug)]
pub(crate) enum ArgumentReader {
    /// JSON, which is copied.
    Copy(Channel),
    /// Literals that are not JSON.
    Literal(LiteralReader),
    /// Arguments between tags.
    Tagged(Box<TaggedReader>),
    /// Arguments between tags at any depth.
    Nested(Box<NestedReader>),
    /// Code, which becomes the member `code` of an object.
    Code(Channel),
    /// The input of a custom tool: the one string of such arguments, as text.
    Input(Box<ArgumentReader>, InputReader),
}

impl Default for ArgumentReader {
    fn default() -> Self {
        ArgumentReader::Copy(Channel::default())
    }
}

impl ArgumentReader {
    /// A reader of arguments in a style. `types` are those of the arguments, where the text alone
    /// does not tell them.
    pub(crate) fn new(style: &ArgumentStyle, types: LazyTypes) -> ArgumentReader {
        match style {
            ArgumentStyle::Json => ArgumentReader::default(),
            ArgumentStyle::Keywords | ArgumentStyle::JsonKeywords => {
                ArgumentReader::Literal(LiteralReader::keywords())
            }
            ArgumentStyle::Delimited(mark) => {
                ArgumentReader::Literal(LiteralReader::delimited(&mark.write()))
            }
            ArgumentStyle::Tagged(style) => {
                ArgumentReader::Tagged(Box::new(TaggedReader::new(style, types)))
            }
            ArgumentStyle::Nested(tags) => {
                ArgumentReader::Nested(Box::new(NestedReader::new(tags, types)))
            }
        }
    }

    /// As [`ArgumentReader::new`], for arguments of unknown types.
    pub(crate) fn untyped(style: &ArgumentStyle) -> ArgumentReader {
        ArgumentReader::new(style, known_types(ValueTypes::default()))
    }

    /// The JSON text of a whole text.
    pub(crate) fn read_whole(mut self, text: &str) -> String {
        self.push(text.as_bytes()) + &self.close()
    }

    /// A reader of code.
    pub(crate) fn code() -> ArgumentReader {
        ArgumentReader::Code(Channel::default())
    }

    /// Takes bytes, and returns the JSON text that is decided.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        match self {
            ArgumentReader::Copy(channel) => channel.push(bytes),
            ArgumentReader::Literal(reader) => reader.push(bytes),
            ArgumentReader::Tagged(reader) => reader.push(bytes),
            ArgumentReader::Nested(reader) => reader.push(bytes),
            ArgumentReader::Code(channel) => {
                let open = code_open(channel);
                open.to_owned() + &escape_json(&channel.push(bytes))
            }
            ArgumentReader::Input(json, input) => input.push(&json.push(bytes)),
        }
    }

    /// Ends complete arguments, and returns the rest of the JSON text.
    pub(crate) fn close(&mut self) -> String {
        match self {
            ArgumentReader::Copy(channel) => channel.flush(),
            ArgumentReader::Literal(reader) => reader.close(),
            ArgumentReader::Tagged(reader) => reader.close(),
            ArgumentReader::Nested(reader) => reader.close(),
            ArgumentReader::Code(channel) => {
                let open = code_open(channel);
                open.to_owned() + &escape_json(&channel.flush()) + "\"}"
            }
            ArgumentReader::Input(json, input) => input.push(&json.close()) + &input.cut(),
        }
    }

    /// Ends arguments that were cut off, and returns the rest of the JSON text that is decided.
    pub(crate) fn cut(&mut self) -> String {
        match self {
            ArgumentReader::Copy(channel) => channel.flush(),
            ArgumentReader::Literal(_) => String::new(),
            ArgumentReader::Tagged(reader) => reader.cut(),
            ArgumentReader::Nested(reader) => reader.cut(),
            ArgumentReader::Code(channel) => escape_json(&channel.flush()),
            ArgumentReader::Input(json, input) => input.push(&json.cut()) + &input.cut(),
        }
    }

    /// Whether it reads code.
    pub(crate) fn is_code(&self) -> bool {
        matches!(self, ArgumentReader::Code(_))
    }

    /// The reader of the arguments as JSON text, for custom tools too.
    pub(crate) fn without_input(self) -> ArgumentReader {
        match self {
            ArgumentReader::Input(json, _) => *json,
            other => other,
        }
    }
}

/// The JSON text before code, if none of the code has been read yet.
fn code_open(channel: &Channel) -> &'static str {
    if channel.is_fresh() { "{\"code\": \"" } else { "" }
}

/// Whether a name can be the name of a keyword argument.
pub(crate) fn is_keyword(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', ',', '(', ')', '"', '\''])
        && !name.contains(char::is_whitespace)
}
