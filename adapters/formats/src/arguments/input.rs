//! The input of a custom tool: the one string in the arguments that stand for it, written and read.

use louver::front::json_schema::{Kinds, Whitespace};
use louver::ids::RuleId;
use louver::ir::{Expr, Homomorphism};

use super::tagged::{kinds_by_word, text_behind_name};
use super::{LiteralReader, Lowered, Reader, RenderError, TaggedReader};
use crate::custom::{CustomError, CustomErrorReason, CustomTool, INPUT};
use crate::fault::RequestFault;
use crate::format::{ArgumentStyle, TagPart, TaggedStyle};
use crate::lower::{Lowering, gap};
use crate::marker::Marker;
use crate::raw::Frame;

/// Reads the JSON text `{"input": "..."}` in any chunks; gives the string.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputReader {
    state: State,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum State {
    /// Before the colon.
    #[default]
    Name,
    /// Behind it.
    Value,
    /// In the string; the first half of a pair of surrogates.
    Text { high: Option<u16> },
    /// Behind a backslash: the escape so far.
    Escape { high: Option<u16>, begun: String },
    /// Behind the string.
    Behind,
}

impl InputReader {
    /// Takes JSON text; gives the text that is decided.
    pub(crate) fn push(&mut self, json: &str) -> String {
        let mut out = String::new();
        for c in json.chars() {
            self.state = match (std::mem::take(&mut self.state), c) {
                (State::Name, ':') => State::Value,
                (State::Name, _) => State::Name,
                (State::Value, '"') => State::Text { high: None },
                (State::Value, _) => State::Value,
                (State::Text { high }, '"') => {
                    lone(&mut out, high);
                    State::Behind
                }
                (State::Text { high }, '\\') => State::Escape { high, begun: String::new() },
                (State::Text { high }, c) => {
                    lone(&mut out, high);
                    out.push(c);
                    State::Text { high: None }
                }
                (State::Escape { high, mut begun }, c) => {
                    begun.push(c);
                    if begun.starts_with('u') && begun.len() < 5 {
                        State::Escape { high, begun }
                    } else {
                        State::Text { high: escape(&mut out, high, &begun) }
                    }
                }
                (State::Behind, _) => State::Behind,
            };
        }
        out
    }

    /// The generation stops here: half a character.
    pub(crate) fn cut(&mut self) -> String {
        let mut out = String::new();
        if let State::Text { high } | State::Escape { high, .. } = std::mem::take(&mut self.state) {
            lone(&mut out, high);
        }
        out
    }
}

/// Half a pair of surrogates is no character.
fn lone(out: &mut String, high: Option<u16>) {
    out.extend(high.map(|_| char::REPLACEMENT_CHARACTER));
}

/// An escape, without its backslash; gives the first half of a pair.
fn escape(out: &mut String, high: Option<u16>, escape: &str) -> Option<u16> {
    let unit = escape.strip_prefix('u').and_then(|hex| u16::from_str_radix(hex, 16).ok());
    if let (Some(first), Some(second)) = (high, unit)
        && let Some(Ok(c)) = char::decode_utf16([first, second]).next()
    {
        out.push(c);
        return None;
    }
    lone(out, high);
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
    (call, input): (usize, &str),
) -> Result<String, RenderError> {
    let mut json = format!("{{\"{INPUT}\": ");
    louver::spec::json::write_string(&mut json, input);
    json.push('}');
    super::write(style, excludes, (call, &json))
}

/// The input in the JSON text of arguments that stand for it.
pub(crate) fn read_input(arguments: &str) -> Option<String> {
    let value =
        louver::spec::json::Json::parse(arguments, &louver::limits::Limits::default()).ok()?;
    value.get(INPUT).and_then(|input| input.as_str()).map(str::to_owned)
}

impl Lowering<'_> {
    /// The arguments that stand for a custom tool's input.
    pub(crate) fn custom_arguments(&mut self, k: usize, custom: &CustomTool) -> Option<Lowered> {
        if !self.callable(&custom.name) {
            return None;
        }
        let lowered = match custom.grammar(&self.request.limits) {
            Ok(None) => {
                let Lowered { rule, reader } =
                    self.lower_arguments(&CustomTool::schema(), &custom.definition())?;
                Ok((rule, reader))
            }
            Ok(Some((grammar, warnings))) => {
                self.warnings.extend(RequestFault::of_text(&custom.definition(), &warnings));
                self.input(&grammar)
            }
            Err(reason) => Err(reason),
        };
        match lowered {
            Ok((rule, reader)) => {
                let reader = Reader::Input(Box::new(reader), InputReader::default());
                Some(self.as_arguments(
                    self.request.tools.len() + k,
                    &custom.name,
                    Lowered { rule, reader },
                ))
            }
            Err(reason) => {
                self.parts.customs.push(CustomError { pointer: custom.definition(), reason });
                None
            }
        }
    }

    /// Arguments whose one string is a sentence of a grammar.
    fn input(
        &mut self,
        grammar: &louver::ir::Grammar,
    ) -> Result<(RuleId, Reader), CustomErrorReason> {
        let (format, limits) = (self.format, &self.request.limits);
        let at = (&*format.name, limits);
        let quoted = |map: &Homomorphism| -> Result<_, CustomErrorReason> {
            Ok(CustomTool::framed(grammar, &Frame::default(), at)?.image(map, limits)?)
        };
        Ok(match self.style {
            ArgumentStyle::Json => {
                let text = self
                    .builder
                    .import(&quoted(&Homomorphism::quoted(louver::spec::json::write_string))?);
                let body = self.json_object(text);
                (self.builder.rule("input", body), Reader::default())
            }
            ArgumentStyle::Keywords => {
                let text = self
                    .builder
                    .import(&quoted(&Homomorphism::quoted(super::write::python_string))?);
                let body = Expr::seq([
                    Expr::text(&format!("{INPUT}=\"")),
                    Expr::Ref(text),
                    Expr::text("\""),
                ]);
                (self.builder.rule("input", body), Reader::Literal(LiteralReader::keywords()))
            }
            ArgumentStyle::Delimited(mark) => {
                let frame = Frame { trail: Vec::new(), ends: spelled(mark), ..Frame::default() };
                let text = self.builder.import(&CustomTool::framed(grammar, &frame, at)?);
                let mark_expr = self.marker(mark);
                let (open, close) = (Expr::text(&format!("{{{INPUT}:")), Expr::text("}"));
                let body = Expr::seq([open, mark_expr.clone(), Expr::Ref(text), mark_expr, close]);
                (
                    self.builder.rule("input", body),
                    Reader::Literal(LiteralReader::delimited(&mark.write())),
                )
            }
            ArgumentStyle::Tagged(style) => self.tagged_input(style, grammar, at)?,
        })
    }

    /// `{"input": "TEXT"}`, with white space as schemas have it.
    fn json_object(&mut self, text: RuleId) -> Expr {
        let (inner, before_colon, behind_colon) = match self.request.schema_options.whitespace {
            Whitespace::Compact => (Expr::Empty, Expr::Empty, Expr::Empty),
            Whitespace::PythonLike => (Expr::Empty, Expr::Empty, Expr::text(" ")),
            Whitespace::Exact { after_colon, .. } => {
                (Expr::Empty, Expr::Empty, Expr::text(&" ".repeat(after_colon as usize)))
            }
            Whitespace::Pretty { indent } => {
                let body = Expr::seq([
                    Expr::text("\n"),
                    Expr::repeat(Expr::text(" "), 0, indent.checked_mul(64)),
                ]);
                (Expr::Ref(self.builder.rule("ws", body)), Expr::Empty, Expr::text(" "))
            }
            Whitespace::Flexible { max } => {
                let space = Expr::Class(louver::fsm::ByteSet::WHITE_SPACE);
                let gap = match Expr::repeat(space, 0, Some(max)) {
                    Expr::Empty => Expr::Empty,
                    body => Expr::Ref(self.builder.rule("ws", body)),
                };
                (gap.clone(), gap.clone(), gap)
            }
        };
        let name = Expr::text(&format!("\"{INPUT}\""));
        let (open, colon, quote, close) =
            (Expr::text("{"), Expr::text(":"), Expr::text("\""), Expr::text("}"));
        let value = [quote.clone(), Expr::Ref(text), quote];
        let before = [open, inner.clone(), name, before_colon, colon, behind_colon];
        Expr::seq(before.into_iter().chain(value).chain([inner, close]))
    }

    fn tagged_input(
        &mut self,
        style: &TaggedStyle,
        grammar: &louver::ir::Grammar,
        (format, limits): (&str, &louver::limits::Limits),
    ) -> Result<(RuleId, Reader), CustomErrorReason> {
        let excludes =
            self.format.excluded_values(style).into_iter().map(String::into_bytes).collect();
        let frame = Frame {
            trail: style.trail.clone().into_bytes(),
            ends: spelled(&style.close),
            excludes,
        };
        let text = self.builder.import(&CustomTool::framed(grammar, &frame, (format, limits))?);
        let mut parts = vec![self.glue(&style.before)];
        for part in &style.open {
            parts.push(match part {
                TagPart::Text(text) => Expr::text(text),
                TagPart::Marker(marker) => self.marker(marker),
                TagPart::Gap(_) => gap(),
                TagPart::Key(part) => {
                    let name = part.key.write(INPUT);
                    let behind = text_behind_name(style);
                    if name.is_empty() || !behind.is_empty() && name.contains(&behind) {
                        return Err(CustomErrorReason::Empty { format: format.to_owned() });
                    }
                    Expr::text(&name)
                }
                TagPart::Kind(part) => {
                    let words = kinds_by_word(&part.kind);
                    let word = words.iter().find(|(kinds, _)| kinds.meets(Kinds::STRING));
                    word.map_or(Expr::Never, |(_, word)| Expr::bytes(word))
                }
            });
        }
        // What stands around a value is written here: without it, a text that begins or ends so would be read as another.
        let close = self.marker(&style.close);
        parts.extend([Expr::text(&style.lead), Expr::Ref(text), Expr::text(&style.trail), close]);
        parts.push(self.glue(&style.behind));
        let kinds = vec![(INPUT.to_owned(), Kinds::STRING)];
        let reader = TaggedReader::new(style, kinds, Kinds::STRING);
        Ok((self.builder.rule("input", Expr::seq(parts)), Reader::Tagged(Box::new(reader))))
    }
}

/// The texts of a marker's spellings, special tokens as they are spelled.
fn spelled(marker: &Marker) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    for text in marker.texts_of_spellings().into_iter().map(String::into_bytes) {
        if !text.is_empty() && !out.contains(&text) {
            out.push(text);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_in_any_chunks() {
        let texts = ["", "plain", "\"\\/\u{8}\u{c}\n\r\t", "é😀\u{0}\u{1f}\u{7f}", ":{}\"input\":"];
        let escaped = [
            ("{\"input\" :\n\"\\ud83d\\ude00\\/\\u00e9\"}", "😀/é"),
            ("{\"input\":\"\\ud83dx\\ude00\"}", "\u{fffd}x\u{fffd}"),
        ];
        let written = texts.iter().map(|text| {
            let json = write_input(&ArgumentStyle::Json, &[], (0, text)).expect("JSON");
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
