//! Beginnings of scalars: whether a text may still become `null`, a boolean or a number. Readers
//! that expect strings, too, return the text as soon as it may not.

use louver::front::json_schema::JsonTypes;

/// The scalars of JSON that the bytes so far may begin. Each byte is read once.
#[derive(Clone, Debug, Default)]
pub(super) struct ScalarPrefix {
    /// The number of bytes so far.
    len: usize,
    /// Whether the bytes do not begin the word of each type.
    others: [bool; WORDS.len()],
    number: NumberPrefix,
}

const WORDS: [(JsonTypes, &[u8]); 3] =
    [(JsonTypes::NULL, b"null"), (JsonTypes::BOOLEAN, b"true"), (JsonTypes::BOOLEAN, b"false")];

/// The part of a number that was read last.
#[derive(Clone, Copy, Debug, Default)]
enum NumberPrefix {
    #[default]
    Start,
    Sign,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    /// It is no number.
    Other,
}

impl ScalarPrefix {
    /// Reads the bytes of a text that were not read before.
    pub(super) fn read_to(&mut self, text: &[u8]) {
        for &byte in text.iter().skip(self.len) {
            for (is_other, (_, word)) in self.others.iter_mut().zip(WORDS) {
                *is_other |= word.get(self.len) != Some(&byte);
            }
            self.number = self.number.then(byte);
            self.len += 1;
        }
    }

    /// Whether the bytes may begin a scalar of one of these types.
    pub(super) fn may_be(&self, types: JsonTypes) -> bool {
        let mut words = self.others.iter().zip(WORDS);
        words.any(|(is_other, (kind, _))| !is_other && types.meets(kind))
            || types.meets(JsonTypes::NUMBER) && !matches!(self.number, NumberPrefix::Other)
    }
}

impl NumberPrefix {
    fn then(self, byte: u8) -> NumberPrefix {
        use NumberPrefix::*;
        match (self, byte) {
            (Start, b'-') => Sign,
            (Start | Sign, b'0') => Zero,
            (Start | Sign, b'1'..=b'9') | (Integer, b'0'..=b'9') => Integer,
            (Zero | Integer, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Integer | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => ExponentSign,
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => ExponentDigits,
            _ => Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use louver::front::json_schema::{
        NestedStyle, Registry, SchemaOptions, SchemaSource, ValueStyle, ValueSyntax, lower_into,
    };
    use louver::ir::{GrammarBuilder, Trigger};
    use louver::limits::Limits;
    use louver::spec::json::Json;

    use super::super::{ArgumentReader, known_types};
    use super::*;
    use crate::channel::searched_bytes;
    use crate::format::ArgumentStyle;

    #[test]
    fn prefixes_are_those_of_the_scalars_of_the_types() {
        let all = JsonTypes::NULL.union(JsonTypes::BOOLEAN).union(JsonTypes::NUMBER);
        for (text, types, expected) in [
            ("", JsonTypes::STRING, false),
            ("nul", JsonTypes::NULL, true),
            ("nul", JsonTypes::BOOLEAN, false),
            ("nulls", all, false),
            ("f", JsonTypes::BOOLEAN, true),
            ("tr", all, true),
            ("fr", all, false),
            ("-0.50e+1", JsonTypes::NUMBER, true),
            ("-0.50e+1", JsonTypes::NULL, false),
            ("1.", all, true),
            ("01", all, false),
            ("+1", all, false),
            ("1.2.", all, false),
            ("2024-", all, false),
            ("1e5e", all, false),
        ] {
            let mut prefix = ScalarPrefix::default();
            (0..=text.len()).for_each(|len| prefix.read_to(&text.as_bytes()[..len]));
            assert_eq!(prefix.may_be(types), expected, "{text}");
        }
    }

    /// A reader of arguments whose member `x` is of these types, after what opens the member.
    fn reader(style: &str, open: &str, kinds: &str) -> ArgumentReader {
        let style = format!("style = {style}");
        let style = toml::from_str::<toml::Table>(&style).expect("TOML")["style"].clone();
        let style: ArgumentStyle = style.try_into().expect("a style");
        let schema = format!(r#"{{"type": "object", "properties": {{"x": {{"type": {kinds}}}}}}}"#);
        let schema = Json::parse(&schema, &Limits::default()).expect("JSON");
        let (options, limits) = (SchemaOptions::default(), Limits::default());
        let (schema, registry) = (&schema, &Registry::default());
        let source = SchemaSource { schema, registry, options, limits: &limits };
        let nested = NestedStyle { mark: vec![Trigger::Text(b"%".to_vec())], item: "item".into() };
        // Types of all values are collected for this syntax alone.
        let syntax = ValueStyle::Syntax(ValueSyntax::Nested(Box::new(nested)));
        let lowered = lower_into(&mut GrammarBuilder::new(), source, &syntax).expect("lowers");
        let mut reader = ArgumentReader::new(&style, known_types(lowered.types));
        assert_eq!(reader.push(open.as_bytes()), "{\"x\": ", "{open}");
        reader
    }

    const STYLES: [(&str, &str); 2] = [
        ("{ nested = { item = 'item', mark = { text = '%' } } }", "%<x>"),
        ("{ tagged = { open = ['<', { key = 'raw' }, '>'], close = { text = '</>' } } }", "<x>"),
    ];

    #[test]
    fn text_is_returned_once_it_can_be_no_scalar() {
        for (style, open) in STYLES {
            for (kinds, text, expected) in [
                (r#"["string", "null"]"#, "no", "\"no"),
                (r#"["string", "null"]"#, "nu", ""),
                (r#"["string", "null"]"#, "7", "\"7"),
                (r#"["string", "number"]"#, "2024-01", "\"2024-01"),
                (r#"["string", "number"]"#, "2024", ""),
                (r#"["string", "boolean"]"#, "tru", ""),
                (r#"["string", "boolean"]"#, "trust", "\"trust"),
            ] {
                let mut reader = reader(style, open, kinds);
                let read: String = text.bytes().map(|byte| reader.push(&[byte])).collect();
                assert_eq!(read, expected, "{kinds} {text} {open}");
            }
        }
    }

    /// Work is linear in values that may be scalars up to their end, and in names.
    #[test]
    fn what_is_held_back_is_searched_once() {
        let long = 3_000;
        for (style, open) in STYLES {
            let name_open = &open[..open.len() - "x>".len()];
            for (text, kinds) in [
                ("1".repeat(long), r#"["string", "number"]"#),
                ("1".repeat(long), r#""number""#),
                (format!("{name_open}{}", "y".repeat(long)), r#"["string", "null"]"#),
            ] {
                let mut reader = reader(style, open, kinds);
                if !text.starts_with('1') {
                    // Between members.
                    reader.close();
                }
                let before = searched_bytes();
                text.bytes().for_each(|byte| drop(reader.push(&[byte])));
                let searched = searched_bytes() - before;
                assert!(searched < 10 * text.len(), "{open} {kinds}: {searched} bytes");
            }
        }
    }
}
